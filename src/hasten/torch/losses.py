"""Losses with exact inference inside: each compares the best labelling with gold, in one call of the certifier.

With scores s, labellings y as indicators and gold g:

- structured perceptron: max_y s·y - s·g
- structured hinge: max_y [s·y + cost(y, g)] - s·g
- Fenchel-Young with normal noise Z: E max_y (s + sigma Z)·y - s·g
- negative log-likelihood: log sum_y exp(s·y) - s·g
- SPO+ with true scores c: max_y (2s - c)·y - (2s - c)·y*(c)

Where gold is partly known (-100 elsewhere), s·g is the score of the best labelling that agrees with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from hasten.errors import ProblemError
from hasten.padded.kernels import IGNORED
from hasten.padded.search import PLAIN, Request
from hasten.support.checks import check_whole
from hasten.torch.layer import Layer, Tensors
from hasten.torch.operators import ask
from hasten.torch.sums import log_partitions

REDUCTIONS = "mean", "sum", "none"


class StructuredLoss(nn.Module):
    """The base of all losses.

    layer
        Whose inference it is.
    reduction
        "mean" of all examples, by their weights, "sum", or "none" for a loss of each.
    invalid
        What to do with examples whose gold breaks a constraint: "raise" an error, or "skip" them, whose loss is then 0.
    """

    what = "loss"  # an operation of `hasten.torch.calls`
    asked = PLAIN  # of each example, besides gold
    seed: int | None = None

    def __init__(self, layer: Layer, *, reduction: str = "mean", invalid: str = "raise") -> None:
        super().__init__()
        if not isinstance(layer, Layer):
            raise ProblemError(f"A loss needs a Layer, got {type(layer).__name__}.")
        if reduction not in REDUCTIONS:
            raise ProblemError(f"There is no reduction {reduction!r}. Choose one of {', '.join(REDUCTIONS)}.")
        if invalid not in ("raise", "skip"):
            raise ProblemError(
                f"Examples whose gold is invalid are raised or skipped, not {invalid!r}: 'raise', 'skip'."
            )
        self.layer, self.reduction, self.invalid = layer, reduction, invalid

    def forward(self, scores: Tensors, gold: Tensors, *, weight: Tensor | None = None, **how: Any) -> Tensor:
        """Returns the loss of scores, given gold: label numbers, -100 where they are not known.

        `weight` is that of each example; the other words, `lengths` and so on, are those of all methods of `Layer`.
        """
        if gold is None:
            raise ProblemError("A loss needs gold: label numbers, -100 where a label is not known.")
        loss = self.each(scores, gold, how)
        if self.invalid == "skip":
            loss = torch.where(torch.isfinite(loss), loss, 0.0)
        loss = self.layer.values(loss, scores)
        if weight is not None:
            if not isinstance(weight, Tensor) or weight.shape != loss.shape:
                raise ProblemError(f"Give a weight for each example, a tensor of shape {tuple(loss.shape)}.")
            loss = loss * weight
        dtype = (scores if isinstance(scores, Tensor) else next(iter(scores.values()))).dtype
        dtype = dtype if dtype.itemsize >= 4 else torch.float32
        if self.reduction == "none":
            return loss.to(dtype)
        if self.reduction == "mean" and weight is None and loss.numel():
            return loss.mean(dtype=dtype)
        total = loss.sum(dtype=dtype)
        return total if self.reduction == "sum" or weight is None else total / weight.sum().to(dtype)

    def each(self, scores: Tensors, gold: Tensors, how: dict[str, Any]) -> Tensor:
        """Returns the loss of each example; `how` are the words that all methods of `Layer` take."""
        asked = self.asked._replace(strict=self.invalid == "raise")
        call = self.layer.call(self.what, scores, gold=gold, asked=asked, seed=drawn(self.asked, self.seed), **how)
        return log_partitions(call) if self.what == "sums" else ask(call)[0]


class StructuredPerceptron(StructuredLoss):
    """How much better the best labelling scores than gold; its gradient is their difference (Collins 2002)."""


class NegativeLogLikelihood(StructuredLoss):
    """Minus the log-probability of gold, as a conditional random field has it (Lafferty et al. 2001).

    Where gold is partly known, it is that of all labellings that agree with it. A structure that is too wide to be
    summed is refused: train with `FenchelYoung`.
    """

    what = "sums"


class StructuredHinge(StructuredLoss):
    """The perceptron with a margin: others must score less than gold by what they cost (Tsochantaridis et al. 2005).

    margin
        The cost of each wrong label (Hamming), where no `cost` is given.
    cost
        What labels cost in place of gold: for each field, or the only one, a table (gold label, label). Gold itself is
        free. It is scaled by `margin`.
    """

    def __init__(self, layer: Layer, margin: float = 1.0, cost: Tensors | None = None, **settings: str) -> None:
        super().__init__(layer, **settings)
        check_positive("margin", margin, zero=True)
        self.margin, self.weighs, fields = float(margin), cost is not None, layer.inference.layout.fields
        self.asked = Request(margin=0.0 if self.weighs else self.margin)
        self.cost: dict[str, Any] = dict(cost) if isinstance(cost, Mapping) else dict.fromkeys(fields, cost)
        for name, field in fields.items():
            each, n = self.cost.get(name), len(field.kind)
            if self.weighs and not (isinstance(each, Tensor) and each.shape == (n, n)):
                raise ProblemError(f"Give what the labels of {name} cost in place of gold as a tensor ({n}, {n}).")

    def each(self, scores: Tensors, gold: Tensors, how: dict[str, Any]) -> Tensor:
        """Returns the loss of each example."""
        if not self.weighs:
            return super().each(scores, gold, how)
        form, names = self.layer.form(scores), self.layer.names
        if form.flat:
            raise ProblemError("A hinge with a cost of its own needs scores by field: a dict, not one matrix.")
        given, known = self.layer.listed(scores, form, "scores"), self.layer.listed(gold, form, "gold")
        triples = zip((self.cost[name] for name in names), known, given, strict=True)
        raised = [each + self._costs(cost, labels, each) for (cost, labels, each) in triples]
        return super().each(dict(zip(names, raised, strict=True)), dict(zip(names, known, strict=True)), how)

    def _costs(self, cost: Tensor, gold: Any, scores: Tensor) -> Tensor:
        """Returns what each label costs in place of gold: nothing where gold is not known."""
        known, sign = gold.clamp(min=0), -self.layer.inference.sign
        found = sign * self.margin * cost.to(scores)[known].scatter(-1, known[..., None], 0.0)
        return torch.where((gold == IGNORED)[..., None], 0.0, found)


class FenchelYoung(StructuredLoss):
    """The loss of perturbed answers (Berthet et al. 2020): smooth, and convex in the scores.

    samples
        How many perturbed answers are averaged.
    sigma
        The standard deviation of the normal noise that is added to each score.
    seed
        With a seed, every call adds the same noise to the same batch, so that losses can be compared (common random
        numbers); without, PyTorch's generator chooses.
    """

    def __init__(
        self, layer: Layer, samples: int = 8, sigma: float = 1.0, seed: int | None = None, **settings: str
    ) -> None:
        super().__init__(layer, **settings)
        self.asked, self.seed = perturbed(samples, sigma, seed), seed


class SPOPlus(StructuredLoss):
    """The most that is lost by deciding with predicted instead of true scores (SPO+, Elmachtoub & Grigas 2022).

    With true scores c and their optimum y*(c), it is the perceptron's loss of scores 2s - c with y*(c) as gold.
    """

    def forward(self, scores: Tensors, gold: Tensors, *, weight: Tensor | None = None, **how: Any) -> Tensor:
        """Returns the loss of predicted scores, given the true ones in place of gold.

        `optimum` has the labels that `decode` finds for the true scores: find them once, not at every step. Tables are
        the same for both. The other words are those of all losses.
        """
        true, optimum = gold, how.pop("optimum", None)
        gold = self.layer.decode(true, **how).labels if optimum is None else optimum
        if isinstance(scores, Tensor):
            moved: Any = 2 * scores - true
        else:
            given: Any = true
            moved = {name: 2 * each - given[name] for name, each in scores.items()}
        return super().forward(moved, gold, weight=weight, **how)


class ImplicitMLE(nn.Module):
    """Perturbed answers inside a network: a mean indicator of labels, whose gradient is that of implicit MLE.

    It returns tensors like the scores, for a loss of yours to compare with anything. The gradient tells how the answers
    move as scores take a step against it (Niepert, Minervini & Franceschi 2021); tables get none.

    samples, sigma, seed
        As for `FenchelYoung`.
    step
        How large that step is: lambda.
    """

    def __init__(
        self, layer: Layer, samples: int = 8, sigma: float = 1.0, step: float = 10.0, seed: int | None = None
    ) -> None:
        super().__init__()
        check_positive("step", step)
        self.layer, self.asked, self.seed = layer, perturbed(samples, sigma, seed)._replace(margin=float(step)), seed

    def forward(self, scores: Tensors, **how: Any) -> Any:
        """Returns the mean indicator of the perturbed answers, as scores are given; words are those of `Layer`."""
        seed = drawn(self.asked, self.seed)
        return self.layer.named(ask(self.layer.call("sample", scores, asked=self.asked, seed=seed, **how)), scores)


def perturbed(samples: int, sigma: float, seed: int | None) -> Request:
    """Returns a request for answers to scores with normal noise; checks the settings."""
    check_whole("samples", samples, least=1)
    check_positive("sigma", sigma, zero=True)
    if seed is not None:
        check_whole("seed", seed)
    return Request(samples, float(sigma))


def drawn(asked: Request, seed: int | None) -> Tensor | None:
    """Returns the seed of the noise of a call: always the same, or of PyTorch's generator; None without noise."""
    if not asked.samples:
        return None
    return torch.randint(2**62, (), device="cpu") if seed is None else torch.tensor(seed, device="cpu")


def check_positive(name: str, value: float, zero: bool = False) -> None:
    """Refuses settings that are not finite, or not positive."""
    if not (0 < value < float("inf") or (zero and value == 0)):
        raise ProblemError(f"{name} must be finite, and {'0 or more' if zero else 'more than 0'}; got {value}.")
