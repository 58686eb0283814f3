"""Joint entity and relation labelling: the task of the paper (section 5).

Imports the core, what tasks share, and the rooms within: `data`, then `task`, then `scoring`. `labelling` and `tagger`
answer text; `evaluating` and `explain` look at the answers.
"""
