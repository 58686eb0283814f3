"""Every error that hasten raises on purpose.

    HastenError
    ├── SchemaError        a schema, or a structure built from it, is ill-formed
    ├── ProblemError       costs, tables, rows or labels do not fit their structure
    │   ├── OutOfRange         there is no problem of this number
    │   └── TooWide            tables and rules join too many variables to sum over all labellings
    ├── SolverError        a solver cannot do what it was asked
    │   ├── SolverMissing      its package is not installed
    │   ├── SolverTooSmall     its licence or design does not allow a problem of this size
    │   └── SolverWrong        its answer failed our check
    │       └── SolverDisagrees    it calls an answer optimal, or a problem infeasible, that has a better answer
    ├── NoAnswerError      the labels of a solution that has none were asked for
    ├── NotFittedError     a speedup was asked to work before it learned
    ├── ModelError         a saved file is damaged, or belongs to another schema
    ├── CorpusError        a corpus file is malformed
    ├── ProgramError       a program cannot be read, or cannot be adopted
    ├── WriteError         a file cannot be written where it should be
    ├── WorkerError        a process that shared the work died
    └── MissingExtra       an import needs an extra that is not installed

An outcome (infeasible, out of time, a dead end) is never an error: see `hasten.model.solution.Status`.
"""

from __future__ import annotations


class HastenError(Exception):
    """The root of the tree above. Its message has no control characters, whatever names of the user's it quotes."""

    def __str__(self) -> str:
        words = super().__str__()
        return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in words)


class SchemaError(HastenError):
    """A schema, or a structure built from it, is ill-formed."""


class ProblemError(HastenError):
    """Costs, tables, rows or labels do not fit their structure."""


class OutOfRange(ProblemError, IndexError):  # noqa: N818
    """There is no problem, or answer, of this number."""


class TooWide(ProblemError):  # noqa: N818
    """Tables and rules join too many variables to sum over all labellings."""


class SolverError(HastenError):
    """A solver cannot do what it was asked."""


class SolverMissing(SolverError):  # noqa: N818
    """The solver's package is not installed."""


class SolverTooSmall(SolverError):  # noqa: N818
    """The solver's licence or design does not allow a problem of this size."""


class SolverWrong(SolverError):  # noqa: N818
    """The solver's answer failed our check of its constraints or its objective."""


class SolverDisagrees(SolverWrong):
    """The solver says that there is nothing better than its answer, and there is."""


class NoAnswerError(HastenError):
    """The labels of a solution that has none were asked for."""


class NotFittedError(HastenError):
    """A speedup was asked to work before it learned."""


class ModelError(HastenError):
    """A saved file is damaged, or belongs to another schema."""


class CorpusError(HastenError):
    """A corpus file is malformed."""


class ProgramError(HastenError):
    """A program cannot be read from its file, or cannot be adopted from its library."""


class WriteError(HastenError, OSError):
    """A file cannot be written where it should be."""


class WorkerError(HastenError):
    """A process that shared the work died."""


class MissingExtra(HastenError, ImportError):  # noqa: N818
    """An import needs an extra that is not installed."""
