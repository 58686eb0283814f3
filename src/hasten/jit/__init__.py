"""How kernels are compiled, and what they read: the only room that knows Numba.

Imports `hasten.support`. Kernels import from here: the ways to compile, records and spans.
"""

from hasten.jit import notices as notices
from hasten.jit.compiling import driver, inlined_kernel, kernel, open_kernel
from hasten.jit.lowering import viewer
from hasten.jit.records import Record, grid, keep, part, split

__all__ = ["Record", "driver", "grid", "inlined_kernel", "keep", "kernel", "open_kernel", "part", "split", "viewer"]
