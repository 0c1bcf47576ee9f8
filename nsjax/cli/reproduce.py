"""``nsjax reproduce``: the papers' figures and tables, each by one command."""

from __future__ import annotations

import importlib
import pathlib
import sys

import nsjax
from nsjax.core import InputError, nearest
from nsjax.figures import require_matplotlib

PACKAGE = "experiments"

SHOWN = 8
"""Most names in a sentence."""


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
    """The full name of ``paper/fig03`` or ``paper/table4``: the beginnings of both parts are enough.

    Raises:
        InputError: for an unknown or ambiguous name.
    """
    known = available()
    paper, _, wanted = name.replace("-", "_").partition("/")
    begun = [n for n in known if n.startswith(paper) and n.partition("/")[2].startswith(wanted)]
    exact = [n for n in begun if n.partition("/")[0] == paper]
    found = exact or begun
    # "fig3" names Figure 3, and not the first of fig30 to fig39
    whole = [
        n for n in found if wanted[-1:].isdigit() and f"{n.partition('/')[2]}_".startswith(f"{wanted}_")
    ]
    found = [n for n in found if n.partition("/")[2] == wanted] or whole or found
    if len(found) == 1:
        return found[0]
    if found:
        more = f" or {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise InputError(f"reproduce: {name!r} may be {' or '.join(found[:SHOWN])}{more}")
    near = [n for n in known if paper and n.partition("/")[0].startswith(paper)]
    hint = (
        nearest(name, near) if near else nearest(paper, dict.fromkeys(n.partition("/")[0] for n in known))
    )
    raise InputError(f"reproduce: unknown {name!r}; {hint}; nsjax reproduce lists them all")


def reproduce(name: str | None, folder: str | None, quick: bool, papers: bool = False) -> int:
    """Runs one experiment, which prints asked, ours and difference and saves figure and data; without a
    name lists them all, or with ``papers`` every figure and table of the papers with what came out, on
    which evidence, in which time.

    Returns:
        0, or 1 if a number was missed.
    """
    if papers and name is not None:
        raise InputError("reproduce: --papers lists all figures and tables; leave the name out")
    if papers:
        sys.path.insert(0, str(_folder().parent))
        print(importlib.import_module(f"{PACKAGE}.papers").page())
        return 0
    if name is None:
        print("\n".join(available()))
        return 0
    full = resolve(name)
    require_matplotlib()
    sys.path.insert(0, str(_folder().parent))
    module = importlib.import_module(f"{PACKAGE}.{full.replace('/', '.')}")
    common = importlib.import_module(f"{PACKAGE}.common")
    with common.watched(quick) as rows:
        module.main(quick=quick, folder=folder)
    place = folder or f"results/{full.split('/')[0]}"
    print(f"saved in {place}")
    missed = common.missed(rows)
    if missed:
        print(f"nsjax: {missed}", file=sys.stderr)
    return int(bool(missed))
