"""How good a labeller is, on any task: precision, recall and F1 of each label, with intervals, and what is confused.

A task says what is labelled, as places with labels; nothing here knows what a place is.

Imports `hasten.support` and the page of the reports.
"""
