"""`hasten compile` and `hasten solvers`: what is on this machine."""

from __future__ import annotations

import hasten
from hasten.commands.common import console, errors
from hasten.support.progress import show_progress
from hasten.support.words import count


def compile_all() -> None:
    """Compiles every kernel now, so that nothing waits for it later: for images, clusters and continuous integration.

    Kernels are kept beside the package; where that cannot be written, in the user's cache directory. NUMBA_CACHE_DIR
    names another place. What other versions left there is removed.
    """
    from hasten.warm import compile_and_tidy

    with show_progress(errors) as tell:
        done = compile_and_tidy(tell)
    console.print(f"{count(done.n_drivers, 'driver')} compiled, {done.n_new} of them now.", highlight=False)
    if done.n_removed:
        console.print(f"Removed {count(done.n_removed, 'file')} that other versions left.", highlight=False)


def solvers() -> None:
    """Lists the solvers, and how to install those that are missing."""
    from hasten.solvers import package_of

    for name, installed in hasten.available_solvers().items():
        console.print(f"{name:10s} " + ("installed" if installed else f"not installed: pip install {package_of(name)}"))
