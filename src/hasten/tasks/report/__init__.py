"""What the reports of all tasks share: the page and its style, tables, charts, numbers as text.

Imports the core's words for theta, and no task: all that a report shows stands in `results.json`.
"""
