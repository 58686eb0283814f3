"""Draws the pictures of the page about seeing: `python docs/pictures/draw.py` writes them anew.

`tests/test_docs.py` sees that they are what the code draws.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import hasten
from hasten.paper.demo import NAMES, running_example


def pictures() -> dict[str, str]:
    """Returns the pictures by the names of their files."""
    problem = running_example()
    proof = hasten.Certifier(max_join=0).trace(problem, names=NAMES)
    args = problem.structure.schema.factors["args"]
    weights = np.zeros(problem.structure.schema.n_weights)
    block = weights[args.weight_at : args.weight_at + args.size].reshape(args.shape)
    block[0, 1, 1] = 1.0  # learned: persons live in locations
    block[:, 5, :] = 0.5  # and most pairs are not related
    learned = hasten.BeamSearch(width=2, weights=weights, theta=0.4)
    return {
        "greedy.svg": hasten.greedy().trace(problem, proof.labels, names=NAMES)._repr_svg_(),
        "beam.svg": learned.trace(problem, proof.labels, names=NAMES)._repr_svg_(),
        "proof.svg": proof._repr_svg_(),
    }


if __name__ == "__main__":
    for name, picture in pictures().items():
        (Path(__file__).parent / name).write_text(picture + "\n", encoding="utf-8")
