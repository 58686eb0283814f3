"""Numba kernels: plain functions on arrays, without objects, checks or printing. Slow twins: `tests/naive.py`."""
