"""The results for people: terminal, tables, figures, a page.

Imports `hasten.support`, `hasten.errors` and the words for theta: all that it shows stands in `results.json`.
"""
