"""Joint entity and relation labelling: the task of the paper (section 5)."""
