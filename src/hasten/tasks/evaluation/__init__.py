"""How good a labeller is, on any task: precision, recall and F1 of each label, with intervals, and what is confused.

A task says what is labelled, as places with labels; nothing here knows what a place is.

Imports the core, `tasks.task`, `tasks.experiment` and the page of the reports, never a task.
"""
