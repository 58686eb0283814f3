"""The commands of the command line, one group a module; `hasten.cli` lists them. Imports everything."""
