"""The paper's §5 from top to bottom, as measured results.

Imports `data`, `task`, `scoring`, `tagger` and the core, never `report`.
"""
