"""The results for people: terminal, tables, figures, a page.

Imports `hasten.support` and `hasten.errors`: all that it shows stands in `results.json`.
"""
