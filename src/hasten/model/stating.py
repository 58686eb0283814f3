"""How rules are stated: what a structure's variables must, or for a price should, have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from hasten.errors import SchemaError
from hasten.model.kinds import Pattern, VariableKind, label_names, read_limits
from hasten.model.rules import Rule, Term, Terms, as_terms
from hasten.support.checks import listed

if TYPE_CHECKING:
    from hasten.model.structure import Scopes


class Stating:
    """The variables that rules speak of, and the rules.

    Every rule takes a `price`: it may then be broken, for that price. With `per_unit`, that is what each unit costs by
    which its sum is too large or too small. Answers cost what they break; `Problem.check` names it.
    """

    kinds: list[VariableKind]
    _scopes: Scopes
    _terms: Terms
    _closed: bool

    def rule(
        self,
        name: str,
        terms: Iterable[Term],
        *,
        at_most: float | None = None,
        at_least: float | None = None,
        exactly: float | None = None,
        price: float | None = None,
        per_unit: bool = False,
    ) -> int:
        """Adds a linear rule over (variable, label) or (variable, label, weight) terms; returns its number."""
        self._check_open()
        given = terms if type(terms) is list else listed(terms, f"Rule {name!r}: the terms", SchemaError)
        limits = read_limits(name, at_most, at_least, exactly)
        if price is not None or per_unit or not self._terms.take(name, given, limits, self._scopes):
            bounds = {"at_most": at_most, "at_least": at_least, "exactly": exactly}
            self._add_rule(Rule.of(name, given, **bounds, price=price, per_unit=per_unit))
        return len(self._terms.names) - 1

    def exactly_one(
        self, name: str, terms: Iterable[Term], *, price: float | None = None, per_unit: bool = False
    ) -> int:
        """Says that one of some (variable, label) terms holds, and no other; returns the rule's number."""
        return self.rule(name, terms, exactly=1, price=price, per_unit=per_unit)

    def at_most_one(
        self, name: str, terms: Iterable[Term], *, price: float | None = None, per_unit: bool = False
    ) -> int:
        """Says that no two of some (variable, label) terms hold; returns the rule's number."""
        return self.rule(name, terms, at_most=1, price=price, per_unit=per_unit)

    def all_different(
        self,
        name: str,
        variables: Iterable[int],
        *,
        but: Pattern = (),
        price: float | None = None,
        per_unit: bool = False,
    ) -> list[int]:
        """Says that no two of some variables have the same label, `but` for some labels; returns the rules' numbers.

        A price is for each label that several have; per unit, for each of the variables that has it, but one.
        """
        given = listed(variables, f"Rule {name!r}: the variables", SchemaError)
        chosen = [self._check_variable(v, f"Rule {name!r}") for v in given]
        free = set(label_names(but, f"Rule {name!r}: but"))
        holders: dict[str, list[int]] = {}
        for v in dict.fromkeys(chosen):
            for label in self.kinds[v].labels:
                holders.setdefault(label, []).append(v)
        if len(set(chosen)) < len(chosen):
            raise SchemaError(f"Rule {name!r} names a variable twice, which cannot differ from itself.")
        unknown = free - holders.keys()
        if unknown:
            raise SchemaError(f"Rule {name!r}: no variable has the label {', '.join(sorted(unknown))}.")
        return [
            self.at_most_one(f"{name}: {label}", [(v, label) for v in having], price=price, per_unit=per_unit)
            for label, having in holders.items()
            if label not in free and len(having) > 1
        ]

    def implies(
        self, name: str, when: Term | Iterable[Term], then: Term | Iterable[Term], *, price: float | None = None
    ) -> int:
        """Says that where all terms of `when` hold, one of `then` does; returns the rule's number.

        A term is (variable, label). Where one factor has all of them in its scope, `FactorKind.imply` is faster.
        """
        condition, result = as_terms(name, when), as_terms(name, then)
        terms: list[Term] = [*condition, *((variable, label, -1.0) for variable, label in result)]
        return self.rule(name, terms, at_most=len(condition) - 1, price=price)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules stated for it, in their order; those of the schema hold as well."""
        return self._terms.rules(self.kinds, self._scopes.first)

    @property
    def n_rules(self) -> int:
        """How many these are."""
        return len(self._terms.names)

    def _check_open(self) -> None:
        if self._closed:
            raise SchemaError("This structure is in use: its first problem closed it. Start another one.")

    def _check_variable(self, variable: int, *what: str) -> int:
        if type(variable) is int and 0 <= variable < len(self.kinds):
            return variable
        if not isinstance(variable, int | np.integer) or not 0 <= variable < len(self.kinds):
            raise SchemaError(
                f"{': '.join(what)}: there is no variable {variable!r}. This structure has {len(self.kinds)}."
            )
        return int(variable)

    def _add_rule(self, rule: Rule) -> None:
        """Adds a rule, or says which of its terms names no variable or label."""
        if rule.price is not None or not self._terms.take(rule.name, rule.terms, (rule.low, rule.high), self._scopes):
            labels = []
            for variable, label, _ in rule.terms:
                v = self._check_variable(variable, f"Rule {rule.name!r}")
                labels.append(self._scopes.first[v] + self.kinds[v].label(label))
            self._terms.add(rule, labels)
