"""Joint entity and relation labelling: the task of the paper (section 5).

Imports the core. Within, each imports those before it: `data`, `task`, `scoring`, `tagger`, `experiment`. `report`
imports none of them: it shows what `results.json` holds.
"""
