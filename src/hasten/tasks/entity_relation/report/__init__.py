"""The results for people: terminal, tables, figures, a page.

Imports `names`, and the core's words for theta: all that it shows stands in `results.json`.
"""
