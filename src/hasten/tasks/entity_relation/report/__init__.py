"""The results for people: terminal, tables, figures, a page.

Imports `experiment`, `data` and the core.
"""
