"""``nsjax reproduce``: the papers' figures and tables, each by one command."""

from __future__ import annotations

import importlib
import pathlib
import sys

import nsjax
from nsjax.core import InputError, nearest

PACKAGE = "experiments"


def _folder() -> pathlib.Path:
    """The experiments: inside an installed package, or beside the package in a checkout."""
    package = pathlib.Path(nsjax.__file__).parent
    for place in (package / PACKAGE, package.parent / PACKAGE):
        if (place / "common.py").is_file():
            return place
    raise InputError("reproduce: the experiments are not installed; use a checkout")


def available() -> list[str]:
    """Names ``paper/experiment`` of everything that can be reproduced."""
    folder = _folder()
    files = sorted(folder.glob("*/*.py"))
    return [f"{f.parent.name}/{f.stem}" for f in files if f.stem.startswith(("fig", "table"))]


def resolve(name: str) -> str:
    """The full name of ``paper/fig03`` or ``paper/table4``: its beginning is enough.

    Raises:
        InputError: for an unknown or ambiguous name.
    """
    known = available()
    paper, _, wanted = name.replace("-", "_").partition("/")
    found = [n for n in known if n == f"{paper}/{wanted}"] or [
        n for n in known if n.startswith(f"{paper}/{wanted}_") and wanted
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"reproduce: {name!r} may be {' or '.join(found)}")
    raise InputError(f"reproduce: unknown {name!r}; {nearest(name, known)}")


def reproduce(name: str | None, folder: str | None, quick: bool) -> int:
    """Runs one experiment, which prints paper, ours and difference and saves figure and data; without a
    name lists them all.
    """
    if name is None:
        print("\n".join(available()))
        return 0
    full = resolve(name)
    sys.path.insert(0, str(_folder().parent))
    module = importlib.import_module(f"{PACKAGE}.{full.replace('/', '.')}")
    module.main(quick=quick, folder=folder)
    place = folder or f"results/{full.split('/')[0]}"
    print(f"saved in {place}")
    return 0
