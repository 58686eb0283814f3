"""Tasks that come with the package, each in a room of its own.

Imports the core; nothing of the core imports a task.
"""
