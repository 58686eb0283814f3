"""A .uai file: the most probable picture, three pixels high and thirty wide, given what a camera saw.

The file says that neighbouring pixels tend to be alike. The camera's picture is the objective, so each picture has its
own. The answers are checked by variable elimination written out by hand, column by column, in NumPy over all pictures
at once, which is also the peer. To use your own file: `python uai_file.py model.uai`.
"""

import sys
from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from timeit import repeat

import numpy as np

import hasten

HIGH, WIDE, N, ALIKE = 3, 30, 1000, 0.7

if sys.argv[1:]:
    print(hasten.read(sys.argv[1]).solve())
    raise SystemExit

pixel = {(column, row): HIGH * column + row for column in range(WIDE) for row in range(HIGH)}
scopes = [(pixel[c, r], pixel[c, r + 1]) for c, r in pixel if r + 1 < HIGH]
scopes += [(pixel[c, r], pixel[c + 1, r]) for c, r in pixel if c + 1 < WIDE]
lines = ["MARKOV", str(len(pixel)), " ".join(["2"] * len(pixel)), str(len(scopes))]
lines += [f"2 {a} {b}" for a, b in scopes]
lines += [f"4 {ALIKE} {1 - ALIKE} {1 - ALIKE} {ALIKE}"] * len(scopes)
path = Path(mkdtemp()) / "picture.uai"
path.write_text("\n".join(lines) + "\n")

program = hasten.read(path)
print(len(program.columns), len(scopes))  # 90 147
print(np.isclose(program.solve().objective, -np.log(ALIKE) * len(scopes)))  # True

rng = np.random.default_rng(0)
truth = np.arange(len(pixel)) // HIGH % 10 < 5  # stripes
seen = (1 - 2 * truth) + rng.normal(size=(N, len(pixel))) * 1.5  # cost of 1 minus cost of 0, for each pixel
answers = program.solve_all(seen)
print(answers.proved.all(), np.mean(answers.x == truth) > np.mean((seen < 0) == truth))  # True True


def eliminate(seen):
    """Returns the least cost of each picture, minimising out one column of pixels after the other."""
    states = np.array(list(product([0, 1], repeat=HIGH)))
    apart = np.where(states[:, None] == states[None], -np.log(ALIKE), -np.log(1 - ALIKE)).sum(axis=2)
    inside = np.where(states[:, 1:] == states[:, :-1], -np.log(ALIKE), -np.log(1 - ALIKE)).sum(axis=1)
    own = seen.reshape(len(seen), WIDE, HIGH) @ states.T + inside
    best = own[:, 0]
    for c in range(1, WIDE):
        best = (best[:, :, None] + apart).min(axis=1) + own[:, c]
    return best.min(axis=1)


print(np.allclose(answers.objective, eliminate(seen)))  # True
ours = min(repeat(lambda: program.solve_all(seen), number=1, repeat=3))
theirs = min(repeat(lambda: eliminate(seen), number=1, repeat=3))
print(f"{theirs / ours:.1f} times as fast as elimination by hand")  # 1.1 times as fast as elimination by hand
