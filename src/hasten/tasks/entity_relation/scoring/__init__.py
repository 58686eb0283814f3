"""From text to costs: features, the linear black box, its training, searches that score as they go.

Imports `data` and the core.
"""
