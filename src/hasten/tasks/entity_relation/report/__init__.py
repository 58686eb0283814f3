"""The results for people: terminal, tables, figures, a page.

Imports `names`, what all reports share, and the core's traces and words for theta: all that it shows stands in
`results.json`.
"""
