"""hasten on a Ray cluster: `predict` answers files and datasets on all nodes (`docs/scale.md`).

Imports Ray, from the extra `ray`, `hasten.scale`, which does the work of each node, and `hasten.serve`, whose models
`hasten.ray.serving` deploys. No other room imports this one.
"""

from hasten.errors import MissingExtra

try:
    import ray.data as _needed  # noqa: F401
except ImportError:
    raise MissingExtra("Ray with its datasets is not installed: pip install hasten[ray]") from None

from hasten.ray.predicting import predict

__all__ = ["predict"]
