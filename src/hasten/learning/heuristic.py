"""A learned heuristic as a value: the weights of the speedup features.

A heuristic belongs to a schema. It can be read (in label names), saved and loaded. Files are safetensors: a tensor for
each factor kind, with the schema's names and a digest of everything in the metadata.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hasten.errors import ModelError
from hasten.model.kinds import FactorKind
from hasten.model.schema import Schema
from hasten.support import forms
from hasten.support.arrays import FloatArray, floats, ints
from hasten.support.checks import check_type, check_whole
from hasten.support.forms import Tensors, load_tensors, reading, save_tensors

FORMAT = "hasten.heuristic/2"


@dataclass(frozen=True, slots=True)
class Row:
    """One speedup feature in words: its factor kind, its labels by role, its weight."""

    factor: str
    labels: dict[str, str]
    weight: float

    def __str__(self) -> str:
        labels = ", ".join(f"{role}={label}" for role, label in self.labels.items())
        return f"{self.weight:+.4g}  {self.factor}({labels})"


@dataclass(frozen=True, slots=True, eq=False)
class Heuristic:
    """Weights of the speedup features; a positive one draws the search to its label tuple."""

    schema: Schema = field(repr=False)
    weights: FloatArray  # (Schema.n_weights,)

    def __post_init__(self) -> None:
        check_type(self.schema, Schema, "The schema of a heuristic")
        size = self.schema.n_weights
        try:
            weights = floats(self.weights, copy=True)
        except (TypeError, ValueError) as error:
            raise ModelError(f"The weights of a heuristic must be numbers ({error}).") from None
        if weights.shape != (size,):
            raise ModelError(f"Got weights of shape {weights.shape}; this schema needs ({size},).")
        if not np.isfinite(weights).all():
            raise ModelError("The weights of a heuristic must be finite.")
        weights.flags.writeable = False
        object.__setattr__(self, "weights", weights)

    def weights_of(self, factor: str | FactorKind) -> FloatArray:
        """Returns the weights of a factor kind, with an axis per role."""
        kind = self._kind(factor)
        return self.weights[kind.weight_at : kind.weight_at + kind.size].reshape(kind.shape)

    def strongest(self, n: int = 10, factor: str | FactorKind | None = None) -> list[Row]:
        """Returns the features with the largest weights, by magnitude, of one factor kind or of all."""
        check_whole("n", n)
        kinds = learned_kinds(self.schema) if factor is None else [self._kind(factor)]
        at = np.concatenate([ints(()), *(np.arange(kind.weight_at, kind.weight_at + kind.size) for kind in kinds)])
        at = at[np.argsort(-np.abs(self.weights[at]), kind="stable")][:n]
        rows = []
        for i in at[self.weights[at] != 0].tolist():
            kind = next(kind for kind in kinds if kind.weight_at <= i < kind.weight_at + kind.size)
            index = np.unravel_index(i - kind.weight_at, kind.shape)
            labels = {role: of.labels[j] for (role, of), j in zip(kind.roles.items(), index, strict=True)}
            rows.append(Row(kind.name, labels, float(self.weights[i])))
        return rows

    def save(self, path: str | Path) -> None:
        """Writes the heuristic to a file: whole, or not at all."""
        save_tensors(path, FORMAT, self.tensors(), about_schema(self.schema))

    @classmethod
    def load(cls, path: str | Path, schema: Schema) -> Heuristic:
        """Reads a heuristic that was saved for this schema."""
        tensors, about = load_tensors(path, FORMAT, "heuristic")
        check_schema(path, about, schema)
        with reading(path):
            return cls.of_tensors(schema, tensors)

    def tensors(self) -> Tensors:
        """Returns the contents of its file: a tensor for each factor kind."""
        return {f"weights/{kind.name}": np.array(self.weights_of(kind)) for kind in learned_kinds(self.schema)}

    @classmethod
    def of_tensors(cls, schema: Schema, tensors: Tensors) -> Heuristic:
        """Makes a heuristic of what `tensors` returned; what is not of this schema is a `Misfit`."""
        names = {f"weights/{kind.name}": kind for kind in learned_kinds(schema)}
        forms.check_tensors(tensors, {name: forms.Array("float64", kind.shape) for name, kind in names.items()})
        weights = np.zeros(schema.n_weights)
        for name, kind in names.items():
            weights[kind.weight_at : kind.weight_at + kind.size] = tensors[name].ravel()
        return cls(schema, weights)

    def _kind(self, factor: str | FactorKind) -> FactorKind:
        kind = self.schema.factor_kind(factor)
        if not kind.learned:
            raise ModelError(f"{kind.name} has no weights: it was declared with learned=False.")
        return kind

    def __str__(self) -> str:
        rows = self.strongest(10)
        head = f"Heuristic: {np.count_nonzero(self.weights)} of {self.weights.size} weights are not zero"
        return "\n".join([head, *map(str, rows)])

    def __repr__(self) -> str:
        norm = float(np.linalg.norm(self.weights))
        return f"Heuristic({self.weights.size} weights, norm {norm:.4g})"


def learned_kinds(schema: Schema) -> list[FactorKind]:
    """Returns the factor kinds of a schema that have weights."""
    return [kind for kind in schema.factors.values() if kind.learned]


Description = dict[str, dict[str, str]]  # of each kind and rule, all that is declared of it, in words


def describe(schema: Schema) -> Description:
    """Returns all that a schema declares in words, with digests for its tables."""
    check_type(schema, Schema, "The schema")
    found: Description = {
        f"variable kind {k.name!r}": {"labels": ", ".join(k.labels)} for k in schema.variables.values()
    }
    for factor in schema.factors.values():
        found[f"factor kind {factor.name!r}"] = {
            "roles": ", ".join(f"{role}={of.name}" for role, of in factor.roles.items()),
            "learned": str(factor.learned),
            "table": "none" if factor.table is None else hashlib.sha256(factor.table.tobytes()).hexdigest()[:16],
        }
    for rule in schema.rules.values():
        weights = {k: [f"{weight:.17g}" for weight in mine] for k, mine in rule.weights.items()}
        limits = f"from {rule.low:.17g} to {rule.high:.17g}"
        found[f"rule {rule.name!r}"] = {"limits": limits, "weights": json.dumps(weights)}
    return found


def differences(old: Description, new: Description) -> list[str]:
    """Says in words in what a saved description differs from another one."""
    found = [f"{each} is missing here" for each in old if each not in new]
    found += [f"{each} is new" for each in new if each not in old]
    for each in (each for each in new if each in old):
        said = ((what, old[each].get(what, "none"), now) for what, now in new[each].items())
        found += [f"{each} had {what} {was}, now {now}" for what, was, now in said if was != now]
    if not found and list(old) != list(new):
        found.append("its kinds and rules were declared in another order")
    return found


def about_schema(schema: Schema) -> dict[str, str]:
    """Returns what a file says of the schema that it was saved for."""
    return {"schema": schema.digest, "names": json.dumps(describe(schema))}


def check_schema(path: str | Path, about: Mapping[str, str], schema: Schema) -> None:
    """Refuses a file whose metadata describe another schema, and says what differs."""
    with reading(path):
        names = forms.read_json(about.get("names", ""), "the description of its schema", Description)
    found = differences(names, describe(schema))
    if found:
        more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
        raise ModelError(f"{path} cannot be used: the schema differs: {'; '.join(found[:3])}{more}.")
    if about.get("schema") != schema.digest:
        raise ModelError(f"{path} was saved for another schema, with the same names. Learn it again.")
