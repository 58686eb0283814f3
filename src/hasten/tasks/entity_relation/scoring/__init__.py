"""From text to costs: features, the linear black box, its training, searches that score as they go.

Imports `data`, `task` and the core up to the searches and proofs.
"""
