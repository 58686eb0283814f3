"""The layer: scores as a network gives them, padded and in batches, to the best valid labellings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from hasten.errors import ProblemError
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.padded.layout import Layout, Shape
from hasten.padded.search import PLAIN, Inference, Request, answerer
from hasten.support.checks import brief, check_whole
from hasten.torch.calls import ENGINES, Call, registered
from hasten.torch.operators import ask
from hasten.torch.sums import log_partitions

Tensors: TypeAlias = Tensor | Mapping[str, Tensor]  # by field, or the only one
Sizes: TypeAlias = Tensor | Mapping[str, Tensor]  # by size, or the only one


class Answer(NamedTuple):
    """The answers to a batch: label numbers padded with -100, as the scores were given: by field, or one tensor."""

    labels: Any
    proved: Tensor  # (examples,) whether it is the optimum, or none is valid
    cost: Tensor  # (examples,) minus the score of the answer; inf without one
    gap: Tensor  # (examples,) how far the cost may be above the optimum


class Form(NamedTuple):
    """How scores are given."""

    flat: bool  # all labels of the one structure in a row
    single: bool  # without an axis of examples


class Layer(nn.Module):
    """Exact inference under constraints, for batches of padded scores.

    given
        A schema, with `shape` and `fields`; or the one structure that all examples have.
    shape
        A function that returns the structure of an example of some sizes; called once for each.
    fields
        The axes of the scores of each kind, between the examples and the labels: {"entity": "n", "relation":
        "n n -diagonal"}. A name is a size, which differs between examples; "-diagonal" and "-lower" leave cells
        out. The cells, row by row, are the variables of that kind, in the structure's order.
    maximize
        Whether scores are maximised, as they are by default, or are costs.
    solver
        What answers batches: a `Certifier` (the default, without a limit), a `Speedup`, or a solver or its name, which
        is then asked for what cannot be proved.
    tables
        Kinds of factors whose tables are trained: a parameter `tables.NAME` each, scores that are added to what the
        schema says. A number is the rank of a table; None, or a list of names, makes it dense. They begin at zero.
    name
        What programs that were exported call the layer; by default a number. No two layers may have the same.

    All methods take the same words:

    scores
        A dict of tensors (examples, *axes, labels) of any float type, on any device; or one tensor, if there is one
        field; or, of one structure, a matrix (examples, all labels). The axis of examples may be left out for one.
    lengths, mask
        Of each size by name, or of the only one: (examples,), or (examples, n) where entries that do not count lie
        between others. Without them all entries count. A mask may also be that of a field's cells, by its name.
    structures
        One for each example, where sizes do not say it: a list, or the numbers that `number` returned.
    tables
        Scores of label tuples by kind of factor, in place of the layer's own.
    """

    def __init__(
        self,
        given: Schema | Structure,
        shape: Shape | None = None,
        fields: Mapping[str, str] | None = None,
        *,
        maximize: bool = True,
        solver: Any = None,
        tables: Mapping[str, int | None] | Sequence[str] = (),
        name: str | None = None,
    ) -> None:
        super().__init__()
        layout = Layout(given, shape, fields)
        self.names, self.sizes = tuple(layout.fields), layout.sizes
        self.n_axes = len(next(iter(layout.fields.values())).axes)
        self.inference = Inference(layout, answerer(layout.schema, solver), -1.0 if maximize else 1.0)
        self.name = registered(self.inference, name)
        ranks = tables if isinstance(tables, Mapping) else dict.fromkeys(tables)
        self.has_tables = bool(ranks)
        self.tables = nn.ModuleDict({name: Table(layout.schema, name, rank) for name, rank in ranks.items()})

    def decode(
        self,
        scores: Tensors,
        *,
        lengths: Sizes | None = None,
        mask: Sizes | None = None,
        structures: Sequence[Structure] | Tensor | None = None,
        tables: Mapping[str, Tensor] | None = None,
    ) -> Answer:
        """Returns the best valid labelling of each example."""
        call = self.call("decode", scores, lengths=lengths, mask=mask, structures=structures, tables=tables)
        score, gap, proved, *labels = ask(call)
        score, gap, proved = (self.values(numbers, scores) for numbers in (score, gap, proved))
        return Answer(self.named(labels, scores), proved, -score, gap)

    forward = decode

    def log_partition(self, scores: Tensors, **words: Any) -> Tensor:
        """Returns the logarithm of the sum of exp(score) over all valid labellings, differentiable; -inf without one.

        Its gradient is the marginals. A structure that is too wide to be summed is refused, by `TooWide`.
        """
        return self.values(log_partitions(self.call("sums", scores, **words)), scores)

    def marginals(self, scores: Tensors, **words: Any) -> Any:
        """Returns the probability of each label, where its score is; 0 elsewhere. Not differentiable."""
        with torch.no_grad():
            call = self.call("sums", scores, asked=Request(sharing=True), **words)
            _, *found = ask(call)
        sign = -self.inference.sign
        return self.named([sign * each for each in found[: len(call.scores)]], scores)

    def entropy(self, scores: Tensors, **words: Any) -> Tensor:
        """Returns the entropy of each example's distribution over labellings, in nats. Not differentiable."""
        return self.values(ask(self.call("entropy", scores, **words))[0], scores)

    def sample(self, scores: Tensors, n: int = 1, *, seed: int = 0, **words: Any) -> Any:
        """Draws `n` labellings of each example by their probabilities: labels padded with -100, samples first."""
        check_whole("n", n)
        check_whole("seed", seed)
        found = ask(self.call("draw", scores, asked=Request(n), seed=torch.tensor(seed, device="cpu"), **words))
        return self.named([each.transpose(0, 1) for each in found], scores, axis=1)

    def margins(self, scores: Tensors, **words: Any) -> Any:
        """Returns how much less the best labelling with each label scores than the best of all; nan where none is.

        0 is a label of the best labelling, inf one that no valid labelling has. The second least of a variable is its
        margin: how sure the answer is of it. Not differentiable.
        """
        return self.named(ask(self.call("margins", scores, **words)), scores)

    def call(
        self,
        what: str,
        scores: Tensors,
        tables: Mapping[str, Tensor] | None = None,
        gold: Tensors | None = None,
        *,
        asked: Request = PLAIN,
        seed: Tensor | None = None,
        **where: Any,
    ) -> Call:
        """Returns a call of an operation, given what all methods are."""
        form, own = self.form(scores), self.table_scores(tables)
        given = self.listed(scores, form, "scores")
        known = [] if gold is None else [each.long() for each in self.listed(gold, form, "gold")]
        n_flat = (self.inference.layout.structure.n_variables,) if form.flat else ()
        for each, like in zip(known, given, strict=True) if known else ():
            wanted = (*like.shape[:1], *n_flat) if form.flat else like.shape[:-1]
            if each.shape != wanted:
                raise ProblemError(f"Gold has shape {tuple(each.shape)}; these scores need {tuple(wanted)}.")
        return Call(
            what,
            self.name,
            " ".join(own),
            asked._replace(flat=True) if form.flat else asked,
            given,
            list(own.values()),
            self.where(form.single, **where) if where else (),
            known,
            last=() if seed is None else [seed],
        )

    def values(self, found: Tensor, scores: Tensors) -> Tensor:
        """Returns the number of each example, or of the only one."""
        return found[0] if self.form(scores).single else found

    def named(self, found: Sequence[Tensor], scores: Tensors, axis: int = 0) -> Any:
        """Returns tensors, one for each field, as the scores were given; examples are along `axis`."""
        each = [tensor.select(axis, 0) for tensor in found] if self.form(scores).single else list(found)
        return each[0] if isinstance(scores, Tensor) else dict(zip(self.names, each, strict=True))

    def where(
        self,
        single: bool,
        lengths: Sizes | None = None,
        mask: Sizes | None = None,
        structures: Sequence[Structure] | Tensor | None = None,
    ) -> list[Tensor]:
        """Returns where the variables of scores are, as calls have it, given the words that all methods take.

        Those of a single example may lack the axis of examples, too.
        """
        if lengths is None and mask is None and structures is None:
            return []
        try:
            given = self.inference.layout.by_size(lengths, mask)
            known = {name: torch.as_tensor(each) for name, each in given.items()}
            if single:
                known = {name: self._among_examples(name, each) for name, each in known.items()}
        except (TypeError, ValueError, RuntimeError) as error:
            raise ProblemError(f"Lengths and masks are numbers ({error}). Give a tensor, an array or a list.") from None
        nothing = torch.empty(0, device="cpu")
        if structures is None or isinstance(structures, Tensor):
            number = nothing if structures is None else structures
        else:
            number = self.number(structures)
        return [*(known.get(name, nothing) for name in (*self.sizes, *self.names)), number]

    def _among_examples(self, name: str, given: Tensor) -> Tensor:
        """Returns a length or mask of a single example with an axis of examples."""
        n_axes = 1 if name in self.sizes else len(self.inference.layout.fields[name].axes)
        alone = given.ndim == 0 or (given.ndim == n_axes and (name not in self.sizes or given.numel() != 1))
        return given[None] if alone else given

    def number(self, structures: Sequence[Structure]) -> Tensor:
        """Returns the numbers of structures, to be given in their place; the layer keeps one of each shape."""
        return torch.from_numpy(self.inference.layout.numbers(structures))

    def table_scores(self, tables: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        """Returns the scores of label tuples by kind: those given, and the layer's own for the other kinds."""
        if tables and not (isinstance(tables, Mapping) and all(isinstance(each, Tensor) for each in tables.values())):
            raise ProblemError(f"Give tables as a dict with a tensor for each kind of factor; got {brief(tables)}.")
        given = dict(tables or {})
        if not self.has_tables:
            return given
        return {name: table() for name, table in self.tables.items() if name not in given} | given

    def form(self, scores: Tensors) -> Form:
        """Returns how scores are given."""
        flat = isinstance(scores, Tensor) and self.inference.layout.flat and scores.ndim <= 2
        first = self._in_order(scores)[0]
        return Form(flat, first.ndim == (1 if flat else self.n_axes + 1))

    def listed(self, given: Tensors, form: Form, what: str) -> list[Tensor]:
        """Returns tensors, by field or one, in the order of the fields, with an axis of examples."""
        found = self._in_order(given)
        if len(found) < len(self.names) and not form.flat:
            raise ProblemError(f"Give a dict with a tensor for each field: {', '.join(self.names)}.")
        for each in found:
            dense = isinstance(each, Tensor) and each.layout == torch.strided and not (each.is_nested or each.is_meta)
            if not dense or each.is_floating_point() != (what == "scores"):
                wanted = "dense tensors of floats" if what == "scores" else "dense tensors of label numbers"
                got = brief(each)
                if isinstance(each, Tensor):
                    got = f"{'nested ' * each.is_nested}{each.dtype}, {each.layout}, on {each.device}"
                raise ProblemError(f"Give {what} as {wanted}; got {got}.")
        return [each[None] for each in found] if form.single else found

    def _in_order(self, given: Any) -> list[Tensor]:
        if isinstance(given, Tensor):
            return [given]
        if not isinstance(given, Mapping):
            raise ProblemError(f"Give a tensor, or a dict with one for each field; got {brief(given)}.")
        return self.inference.layout.in_order(given)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Makes a layer that was pickled or copied known in this process."""
        super().__setstate__(state)
        self.name = registered(self.inference, None if self.name in ENGINES else self.name)


class Table(nn.Module):
    """The scores of the label tuples of a kind of factor, trained: dense, or a sum of `rank` products of vectors."""

    def __init__(self, schema: Schema, kind: str, rank: int | None = None) -> None:
        super().__init__()
        shape = schema.factor_kind(kind).shape
        if rank is None:
            self.parts = nn.ParameterList([torch.zeros(shape)])
        else:
            check_whole(f"The rank of {kind}", rank, least=1)
            scale = rank ** (-0.5 / max(1, len(shape)))  # so that entries begin alike, whatever the rank
            parts = [scale * 0.1 * torch.randn(n, rank) for n in shape]
            self.parts = nn.ParameterList([*parts[:-1], torch.zeros_like(parts[-1])])

    def forward(self) -> Tensor:
        """Returns the table."""
        if self.parts[0].ndim == len(self.parts) == 1 or len(self.parts) == 1:
            return self.parts[0]
        letters = "abcdefghijklmnopqrstuvwxy"[: len(self.parts)]
        return torch.einsum(",".join(f"{each}z" for each in letters) + "->" + letters, *self.parts)
