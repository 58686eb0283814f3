"""What things are called in `results.json`, in reports and on the command line: each name is written once, here."""

from __future__ import annotations

from enum import StrEnum

from hasten.support.checks import Choices


class Training(Choices):
    """How a linear black box is trained: with inference in the loop, or each variable alone."""

    STRUCTURED = "structured"
    INDEPENDENT = "independent"


class BlackBox(Choices):
    """The black boxes there are: linear ones by their `Training`, and neural ones by theirs."""

    STRUCTURED = "structured"
    INDEPENDENT = "independent"
    NEURAL = "neural"  # each variable alone
    NEURAL_STRUCTURED = "neural-structured"
    NEURAL_LIKELIHOOD = "neural-likelihood"


class Model(StrEnum):
    """The rows of the results: what answered the test sentences."""

    ILP = "ILP"
    GREEDY = "search"  # as the paper calls it
    CONSTRAINED = "constrained search"
    PAPER_SPEEDUP = "speedup, Algorithm 1"  # the paper's preset: step 1, last weights
    SPEEDUP = "speedup, averaged"  # ours: averaged weights, a step that fits the costs
    ENFORCED = "enforced beam"
    LOOK_AHEAD = "look-ahead beam"
    REDUCED = "reduced beam"
    CERTIFIED = "certified"
    CALIBRATED = "calibrated"
    CALIBRATED_ENFORCED = "calibrated, enforced"

    @classmethod
    def calibrated(cls, enforce: bool) -> Model:
        """Returns the search with a calibrated theta, its constraints enforced or not."""
        return cls.CALIBRATED_ENFORCED if enforce else cls.CALIBRATED

    @classmethod
    def speedup(cls, paper: bool) -> Model:
        """Returns the speedup search with the weights of Algorithm 1 as listed, or with ours."""
        return cls.PAPER_SPEEDUP if paper else cls.SPEEDUP


class Labeller(StrEnum):
    """Who labelled an example sentence."""

    GREEDY = "greedy"
    SPEEDUP = "speedup"
    ILP = "ilp"
    GOLD = "gold"
