"""hasten for people with a PyTorch model: decode logits under constraints, and train with exact inference in the loop.

Imports PyTorch, which comes with the extra `torch`, and `hasten.padded`, which does the work; nothing else of the
package imports this room.
"""

from hasten.errors import MissingExtra

try:
    import torch as _needed  # noqa: F401
except ImportError:
    raise MissingExtra("PyTorch is not installed: pip install hasten[torch]") from None

from hasten.torch.gate import Gate, Gated
from hasten.torch.layer import Answer, Layer
from hasten.torch.losses import (
    FenchelYoung,
    ImplicitMLE,
    NegativeLogLikelihood,
    SPOPlus,
    StructuredHinge,
    StructuredPerceptron,
)

__all__ = [
    "Answer",
    "FenchelYoung",
    "Gate",
    "Gated",
    "ImplicitMLE",
    "Layer",
    "NegativeLogLikelihood",
    "SPOPlus",
    "StructuredHinge",
    "StructuredPerceptron",
]
