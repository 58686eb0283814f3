"""Builds a wheel that carries its compiled kernels, for this Python, this Numba and a portable processor.

    python tools/wheel.py [--out dist] [--platform manylinux_2_28_x86_64]
    python tools/wheel.py --check dist/hasten-0.1.0-cp311-cp311-linux_x86_64.whl

It builds the package as usual, unpacks it, and compiles the kernels into it. The wheel requires the Numba version that
compiled them. On an older processor kernels are compiled as usual. `--check` installs a wheel into an empty
environment, calls every kernel there, and fails if one is compiled.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path

from hasten.jit.cache import PORTABLE, SUFFIX

ROOT = Path(__file__).parents[1]
MACHINE = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("dist"), help="the directory for the wheel")
    parser.add_argument("--platform", default=re.sub(r"\W", "_", sysconfig.get_platform()), help="the platform tag")
    parser.add_argument("--check", type=Path, metavar="WHEEL", help="check this wheel instead of building one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.check is not None:
            check(options.check.resolve(), Path(folder))
        else:
            print(build(options.out, options.platform, Path(folder)))


def build(out: Path, system: str, folder: Path) -> Path:
    """Builds a wheel and returns its path."""
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (pure,) = folder.glob("*.whl")
    package = folder / "package"
    with zipfile.ZipFile(pure) as archive:
        archive.extractall(package)
    processor = {"NUMBA_CPU_NAME": PORTABLE[MACHINE][0], "NUMBA_CPU_FEATURES": ""}
    places = {"PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(package / "hasten" / "carried")}
    run(sys.executable, "-m", "hasten", "compile", cwd=folder, **processor, **places)

    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    tag = f"{python}-{python}-{system}"
    (about,) = package.glob("*.dist-info")
    pins = "".join(f"Requires-Dist: {name}=={version(name)}\n" for name in ("numba", "llvmlite"))
    edit(about / "METADATA", r"Requires-Dist: numba\b.*\n", pins)
    edit(about / "WHEEL", r"Root-Is-Purelib: true\n", "Root-Is-Purelib: false\n")
    edit(about / "WHEEL", r"Tag: .*\n", f"Tag: {tag}\n")
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / pure.name.replace("py3-none-any", tag)
    pack(package, about / "RECORD", wheel)
    return wheel


def edit(file: Path, pattern: str, text: str) -> None:
    """Replaces the one match of a pattern in a file."""
    changed, n = re.subn(pattern, text, file.read_text(encoding="utf-8"))
    if n != 1:
        raise SystemExit(f"{file.name} has {n} lines like {pattern!r}, not one.")
    file.write_text(changed, encoding="utf-8")


def pack(package: Path, record: Path, wheel: Path) -> None:
    """Writes a wheel of all files, with their digests in RECORD."""
    files = sorted(each for each in package.rglob("*") if each.is_file() and "__pycache__" not in each.parts)
    lines = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in (each for each in files if each != record):
            name, data = file.relative_to(package).as_posix(), file.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(data)}\n")
            archive.writestr(name, data)
        name = record.relative_to(package).as_posix()
        archive.writestr(name, "".join([*lines, f"{name},,\n"]))


def check(wheel: Path, folder: Path) -> None:
    """Installs a wheel into an empty environment and calls every kernel there; fails if one is compiled."""
    with zipfile.ZipFile(wheel) as archive:
        n_carried = sum(name.endswith(SUFFIX) for name in archive.namelist())
    venv.create(folder / "environment", with_pip=True)
    python = folder / "environment" / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel), cwd=folder)
    run(str(python), "-m", "hasten", "compile", cwd=folder, PYTHONPATH="", NUMBA_CACHE_DIR=str(folder / "compiled"))
    compiled = [each.name for each in (folder / "compiled").glob(f"*{SUFFIX}")]
    if compiled or not n_carried:
        raise SystemExit(f"{wheel.name} carries {n_carried} kernels, but these were compiled: {compiled}")
    print(f"{wheel.name} carries {n_carried} kernels, and nothing was compiled.")


def run(*command: str, cwd: Path = ROOT, **environment: str) -> None:
    """Runs a command with changed environment variables."""
    subprocess.run(command, cwd=cwd, env=os.environ | environment, check=True)


if __name__ == "__main__":
    main()
