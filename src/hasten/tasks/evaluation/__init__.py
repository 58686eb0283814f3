"""Shared by all tasks: methods timed in turns, scores against gold labels, and the pages that show them.

Imports the core and `tasks.task`, never a task: a task is given to it.
"""
