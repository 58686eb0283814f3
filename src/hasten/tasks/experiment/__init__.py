"""Measures contenders on any task: in turns, with intervals, against gold labels and against the ILP.

Imports the core and `tasks.task`, never a task: a task is given to it.
"""
