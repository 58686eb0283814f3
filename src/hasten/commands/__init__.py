"""What each command of the command line does, one group a module; `hasten.cli` lists them. Imports everything."""
