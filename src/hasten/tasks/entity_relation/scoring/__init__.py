"""From text to costs: features, dear and cheap, the linear black box, its training, searches that score as they go.

Imports `data`, `task` and the core up to the searches, proofs and learning.
"""
