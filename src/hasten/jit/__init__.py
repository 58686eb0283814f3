"""How kernels are run, interpreted or compiled, and what they read: the only room that knows Numba.

Imports `hasten.support`. Kernels import from here: the decorators, records and spans. Numba itself is imported when
something is first compiled, or loaded from the kernel cache (`hasten.jit.backend`).
"""

from hasten.jit.records import Record, grid, keep, part, split, viewer
from hasten.jit.tiers import driver, inlined_kernel, kernel, open_kernel

__all__ = ["Record", "driver", "grid", "inlined_kernel", "keep", "kernel", "open_kernel", "part", "split", "viewer"]
