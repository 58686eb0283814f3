"""Losses with exact inference inside: each compares the best labelling with gold, in one call of the certifier.

With scores s, labellings y as indicators and gold g:

- structured perceptron: max_y s·y - s·g
- structured hinge: max_y [s·y + cost(y, g)] - s·g

Where gold is partly known (-100 elsewhere), s·g is the score of the best labelling that agrees with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hasten.errors import ProblemError
from hasten.model.structure import Structure
from hasten.padded.kernels import IGNORED
from hasten.torch.layer import Layer, Sizes, Tensors

REDUCTIONS = "mean", "sum", "none"


class StructuredLoss(nn.Module):
    """What all losses share.

    layer
        Whose inference it is.
    reduction
        "mean" of all examples, by their weights, "sum", or "none" for a loss of each.
    """

    def __init__(self, layer: Layer, reduction: str = "mean") -> None:
        super().__init__()
        if not isinstance(layer, Layer):
            raise ProblemError(f"A loss needs a Layer, got {type(layer).__name__}.")
        if reduction not in REDUCTIONS:
            raise ProblemError(f"There is no reduction {reduction!r}. Choose one of {', '.join(REDUCTIONS)}.")
        self.layer, self.reduction = layer, reduction

    def forward(
        self,
        scores: Tensors,
        gold: Tensors,
        *,
        lengths: Sizes | None = None,
        mask: Sizes | None = None,
        structures: Sequence[Structure] | Tensor | None = None,
        tables: Mapping[str, Tensor] | None = None,
        weight: Tensor | None = None,
    ) -> Tensor:
        """Returns the loss of scores, given gold: label numbers, -100 where they are not known.

        `weight` is that of each example; the other words are those of all methods of `Layer`.
        """
        where = self.layer.where(lengths, mask, structures)
        loss = self.each(scores, gold, (where, tables))
        dtype = (scores if isinstance(scores, Tensor) else next(iter(scores.values()))).dtype
        loss = loss.to(dtype if dtype.itemsize >= 4 else torch.float32)
        if weight is not None:
            loss = loss * weight
        if self.reduction == "none":
            return loss
        if self.reduction == "sum":
            return loss.sum()
        return loss.sum() / (max(1, len(loss)) if weight is None else weight.sum())

    def each(self, scores: Tensors, gold: Tensors, how: tuple[Any, Any]) -> Tensor:
        """Returns the loss of each example."""
        raise NotImplementedError


class StructuredPerceptron(StructuredLoss):
    """How much better the best labelling scores than gold; its gradient is their difference (Collins 2002)."""

    def each(self, scores: Tensors, gold: Tensors, how: tuple[Any, Any]) -> Tensor:
        """Returns the loss of each example."""
        score, *_ = self.layer.search(scores, *how, gold)
        return score[0] - score[1]


class StructuredHinge(StructuredLoss):
    """The perceptron with a margin: others must score less than gold by what they cost (Tsochantaridis et al. 2005).

    margin
        The cost of each wrong label (Hamming), where no `cost` is given.
    cost
        What labels cost in place of gold: for each field, or the only one, a table (gold label, label). Gold itself is
        free. It is scaled by `margin`.
    """

    def __init__(self, layer: Layer, margin: float = 1.0, cost: Tensors | None = None, reduction: str = "mean") -> None:
        super().__init__(layer, reduction)
        if not 0.0 <= margin < float("inf"):
            raise ProblemError(f"The margin of a hinge must be finite, and 0 or more; got {margin}.")
        self.margin, self.cost = float(margin), cost

    def each(self, scores: Tensors, gold: Tensors, how: tuple[Any, Any]) -> Tensor:
        """Returns the loss of each example."""
        if self.cost is None:
            score, *_ = self.layer.search(scores, *how, gold, margin=self.margin)
        else:
            score, *_ = self.layer.search(self._raised(scores, gold), *how, gold)
        return score[0] - score[1]

    def _raised(self, scores: Tensors, gold: Tensors) -> Tensors:
        """Returns scores with the costs of labels added, where gold is known."""
        cost: Any = self.cost
        if isinstance(scores, Tensor):
            return scores + self._costs(cost, gold, scores)
        return {name: scores[name] + self._costs(cost[name], gold[name], scores[name]) for name in scores}

    def _costs(self, cost: Tensor, gold: Any, scores: Tensor) -> Tensor:
        known = gold.clamp(min=0)
        found = self.margin * cost.to(scores)[known].scatter(-1, known[..., None], 0.0)
        return torch.where((gold == IGNORED)[..., None], 0.0, found)
