"""LP files, through HiGHS, which reads them in a process of its own: a forged file can end no more than that."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hasten.errors import ProgramError
from hasten.programs.highs_arrays import from_highs
from hasten.programs.highs_process import Elsewhere
from hasten.programs.reading.text import Text
from hasten.programs.statement import Statement


def read_lp(text: Text) -> Statement:
    """Reads an LP file."""
    with tempfile.TemporaryDirectory() as place:
        plain = Path(place) / "program.lp"
        plain.write_text(text.text)
        process = Elsewhere()
        try:
            said = process.ask({"read": str(plain)})
        finally:
            process.end()
    if said is None:
        raise ProgramError("HiGHS crashed over it. Is this an LP file?")
    if "error" in said:
        raise ProgramError(f"HiGHS cannot read it ({said['error'].replace(str(plain), text.name)}). Is it an LP file?")
    return from_highs(said, text.name)
