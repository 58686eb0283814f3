"""The paper's §5 from top to bottom, as measured results.

Imports `data`, `task`, `scoring`, `tagger`, `explain`, `tasks.experiment` and the core, never `report`.
"""
