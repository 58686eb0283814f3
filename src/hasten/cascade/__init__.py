"""A fast front for a slow predictor: a student that learns from its answers, and answers where it is sure.

Imports `hasten.sums`, `hasten.tasks.task`, `hasten.journal`, `hasten.speedup` and the rooms before them.
"""

from hasten.cascade.boxes import Command, Endpoint
from hasten.cascade.cascade import Cascade
from hasten.cascade.keeping import load
from hasten.cascade.parts import Budget, Reply

__all__ = ["Budget", "Cascade", "Command", "Endpoint", "Reply", "load"]
