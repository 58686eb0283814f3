"""Tasks that come with the package, each in a room of its own.

Imports the core, that is, `hasten.speedup` and the rooms below it, which never import a task.
"""
