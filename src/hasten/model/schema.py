"""The first step: which labels exist, and which combinations of them are allowed, forbidden or costly.

A schema declares *variable kinds* (a name and its labels), *factor kinds* (a small table over named roles,
each role filled by a variable of one kind) and *rules* (linear rows over every variable of a kind). It says
nothing of a particular input: structures do (`hasten.model.structure`). A schema is closed by its first structure,
so that everything built from it agrees for ever.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from hasten.errors import ProgramError, SchemaError
from hasten.model.compiled import Templates
from hasten.model.formulas import read_formula
from hasten.model.kinds import (
    MAX_LABELS,
    MAX_ROLES,
    MAX_TABLE,
    FactorKind,
    Pattern,
    VariableKind,
    check_tables,
    label_names,
)
from hasten.model.rules import KindRule, check_price, check_weight, read_limits
from hasten.support.arrays import FloatArray
from hasten.support.checks import brief, check_switch, is_text, is_whole, listed

if TYPE_CHECKING:
    from hasten.model.compiled import Compiled
    from hasten.model.structure import Structure


class Schema:
    """The declarations that all inputs share: kinds of variables, kinds of factors, rules.

    >>> schema = Schema()
    >>> pet = schema.variable("pet", ["cat", "dog"])
    >>> schema.factor("pair", left=pet, right=pet).forbid(left="cat", right="dog").size
    4
    """

    def __init__(self) -> None:
        self.variables: dict[str, VariableKind] = {}
        self.factors: dict[str, FactorKind] = {}
        self.rules: dict[str, KindRule] = {}
        self.n_weights = 0
        self._closed = False
        self._compiled: WeakValueDictionary[object, Compiled] = WeakValueDictionary()  # by shape; see `Compiled`

    def variable(self, name: str, labels: Sequence[str]) -> VariableKind:
        """Declares a kind of variable."""
        self._check_open()
        self._check_name(name)
        labels = listed(labels, f"The labels of {name}", SchemaError)
        if not labels:
            raise SchemaError(f"{name} has no labels. Give at least one.")
        if len(labels) > MAX_LABELS:
            raise SchemaError(f"{name} has {len(labels):,} labels; the limit is {MAX_LABELS:,}.")
        for label in labels:
            if not is_text(label):
                raise SchemaError(f"{name}: a label is a name, got {brief(label)}.")
        twice = sorted(label for label, times in Counter(labels).items() if times > 1)
        if twice:
            raise SchemaError(f"{name} names a label twice: {', '.join(twice)}. Labels are unique.")
        kind = VariableKind(name, labels, len(self.variables))
        self.variables[name] = kind
        return kind

    def factor(self, name: str, *, learned: bool = True, **roles: VariableKind) -> FactorKind:
        """Declares a kind of factor over named roles.

        `learned` makes an indicator of each of its label tuples a speedup feature (the paper's phi).
        """
        self._check_open()
        self._check_name(name)
        check_switch("learned", learned)
        if not roles:
            raise SchemaError(f"{name} has no roles. Name at least one, such as {name!r}, source=entity.")
        for role, kind in roles.items():
            if not isinstance(kind, VariableKind) or self.variables.get(kind.name) is not kind:
                raise SchemaError(
                    f"{name}: role {role!r} is not a variable kind of this schema, got {brief(kind)}. Give the object "
                    "that schema.variable returned, or schema.variables[name]."
                )
        size = math.prod(len(kind) for kind in roles.values())
        if len(roles) > MAX_ROLES:
            raise SchemaError(f"{name} has {len(roles)} roles; the limit is {MAX_ROLES}. Say it with smaller factors.")
        if size > MAX_TABLE:
            raise SchemaError(
                f"{name} would have {size:,} label tuples; the limit is {MAX_TABLE:,}. "
                "Use smaller scopes, or rules for what large scopes say."
            )
        at = self.n_weights if learned else -1
        kind_of_factor = FactorKind(self, name, roles, learned, len(self.factors), at)
        self.factors[name] = kind_of_factor
        self.n_weights += size if learned else 0
        return kind_of_factor

    def clause(self, formula: str, **roles: VariableKind) -> FactorKind:
        """Declares a factor that allows what a formula says of its roles: `"(car and not pose=up) -> road"`.

        A name is a role and one of its labels, `pose=up`; a role alone, with two labels, has the second of them.

        >>> schema = Schema()
        >>> car, pose = schema.variable("car", ["no", "yes"]), schema.variable("pose", ["up", "down", "left"])
        >>> schema.clause("car -> not pose=up", car=car, pose=pose).table.tolist()
        [[0.0, 0.0, 0.0], [inf, 0.0, 0.0]]
        """
        if not is_text(formula):
            raise SchemaError(f"A clause is a formula such as 'car -> road'; got {brief(formula)}.")
        factor = self.factor(f"clause {formula}", learned=False, **roles)
        labels = [(role, label) for role, kind in roles.items() for label in kind.labels]
        number = {f"{role}={label}": n for n, (role, label) in enumerate(labels, start=1)}
        number |= {role: number[f"{role}={kind.labels[1]}"] for role, kind in roles.items() if len(kind) == 2}
        try:
            clauses = read_formula(formula, number)
        except ProgramError as error:
            del self.factors[factor.name]
            raise SchemaError(str(error)) from None
        at, where = np.indices([len(kind) for kind in roles.values()]), list(roles)
        holds = [at[where.index(role)] == roles[role].label(label) for role, label in labels]
        says = [np.any([holds[abs(n) - 1] == (n > 0) for n in clause], axis=0) for clause in clauses]
        return factor.set_table(np.where(np.all(says, axis=0) if says else True, 0.0, np.inf) + np.zeros(at.shape[1:]))

    def rule(
        self,
        name: str,
        *,
        at_most: float | None = None,
        at_least: float | None = None,
        exactly: float | None = None,
        price: float | None = None,
        per_unit: bool = False,
        **counted: Pattern | Mapping[str, float],
    ) -> KindRule:
        """Declares a linear rule over all variables of the named kinds, in every structure.

        >>> schema = Schema()
        >>> entity = schema.variable("entity", ["person", "place"])
        >>> schema.rule("few people", at_most=3, entity="person").high
        3.0

        A mapping gives weights: `schema.rule("budget", at_most=10, item={"large": 4, "small": 1})`. With a `price` the
        rule may be broken, for that price or, with `per_unit`, for that much for each unit by which it is missed.
        """
        self._check_open()
        low, high = read_limits(name, at_most, at_least, exactly)
        if name in self.rules:
            raise SchemaError(f"There is a rule {name!r} already. Rules have unique names.")
        check_price(name, price, per_unit)
        if not counted:
            raise SchemaError(f"Rule {name!r} counts nothing. Name a variable kind and its labels.")
        weights: dict[int, FloatArray] = {}
        for kind_name, labels in counted.items():
            if kind_name not in self.variables:
                raise SchemaError(
                    f"Rule {name!r}: there is no variable kind {kind_name!r}. "
                    f"There are {', '.join(self.variables) or 'none'}."
                )
            kind = self.variables[kind_name]
            coefficients = weights[kind.index] = np.zeros(len(kind))
            if not isinstance(labels, Mapping):
                labels = Counter(label_names(labels, f"Rule {name!r}: {kind_name}"))
            for label, weight in labels.items():
                coefficients[kind.label(label)] = check_weight(weight, name, label, price is not None)
        rule = KindRule(name, weights, low, high, price, per_unit)
        self.rules[name] = rule
        return rule

    def structure(
        self, kinds: Iterable[VariableKind | str] = (), factors: Mapping[Any, Iterable[Sequence[int]]] | None = None
    ) -> Structure:
        """Starts a structure: the topology of one shape of input. Closes the schema to further declarations.

        It begins with variables of some kinds, given as they are or by name, and with factors: for a factor kind or its
        name, a row of variables for each factor, in the order of the roles.
        """
        from hasten.model.structure import Structure

        self._closed = True
        shape = Structure(self)
        for kind in listed(kinds, "The kinds of variables", SchemaError):
            shape.add(self.variables[kind] if isinstance(kind, str) and kind in self.variables else kind)
        check_tables({} if factors is None else factors)
        for key, scopes in (factors or {}).items():
            factor = self.factor_kind(key)
            for scope in shape.checked_scopes(factor, scopes):
                shape.connect(factor, **dict(zip(factor.roles, scope, strict=True)))
        return shape

    def with_tables(self, tables: Mapping[str, FloatArray]) -> Schema:
        """Returns a schema of the same kinds and rules in which some factors, by name, have other tables.

        Its structures are new shapes, which are compiled; `Batch.with_tables` is for tables that keep changing.
        """
        check_tables(tables)
        given = {self.factor_kind(key).name: table for key, table in tables.items()}
        other = Schema()
        for kind in self.variables.values():
            other.variable(kind.name, kind.labels)
        for name, factor in self.factors.items():
            roles = {role: other.variables[of.name] for role, of in factor.roles.items()}
            like, table = other.factor(name, learned=factor.learned, **roles), given.get(name, factor.table)
            if table is not None:
                like.set_table(table)
        other.rules = self.rules
        return other

    def factor_kind(self, key: object) -> FactorKind:
        """Returns a factor kind of this schema, given itself or its name."""
        name = key.name if isinstance(key, FactorKind) else key
        kind = self.factors.get(name) if isinstance(name, str) else None
        if kind is None:
            hint = " Factors are numbered in each structure: use problem.with_tables." if is_whole(key) else ""
            names = ", ".join(self.factors) or "none"
            raise SchemaError(f"There is no factor kind {brief(name)}. This schema has {names}.{hint}")
        return kind

    @property
    def digest(self) -> str:
        """A fingerprint of all that is declared, so that saved weights know their schema."""
        kinds, factors = [[kind.name, kind.labels] for kind in self.variables.values()], self.factors.values()
        scopes = [[kind.name, [[role, of.name] for role, of in kind.roles.items()], kind.learned] for kind in factors]
        rules = [
            [rule.name, {k: w.tolist() for k, w in rule.weights.items()}, rule.low, rule.high]
            + ([] if rule.price is None else [rule.price, rule.per_unit])
            for rule in self.rules.values()
        ]
        digest = hashlib.sha256(json.dumps([kinds, scopes, rules]).encode())
        for factor in self.factors.values():
            table = factor.table
            digest.update(b"none" if table is None else table.tobytes())
        return digest.hexdigest()

    @cached_property
    def _templates(self) -> Templates:
        """The parts of graphs that all factors of a kind share; only once the schema is closed."""
        return Templates(self.factors.values())

    def _check_open(self) -> None:
        if self._closed:
            raise SchemaError(
                "This schema is in use: its first structure closed it. Declare everything before schema.structure()."
            )

    def _check_name(self, name: str) -> None:
        if not is_text(name) or not name:
            raise SchemaError(f"A kind needs a name, got {brief(name)}.")
        if name in self.variables or name in self.factors:
            raise SchemaError(f"There is a kind {name!r} already. Kinds have unique names.")

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_compiled", "_templates")}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._compiled = WeakValueDictionary()

    def __repr__(self) -> str:
        return f"Schema(variables={list(self.variables)}, factors={list(self.factors)}, rules={list(self.rules)})"
