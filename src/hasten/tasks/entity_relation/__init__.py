"""Joint entity and relation labelling: the task of the paper (section 5).

Imports the core. Within, each imports those before it: `data`, `task`, `scoring`, `gating`, `tagger`, `experiment`.
`names` has what all of them call things by. `report` imports nothing else of them: it shows what `results.json` holds.
"""
