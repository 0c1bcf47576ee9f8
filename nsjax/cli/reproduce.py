"""``nsjax reproduce``: the figures and tables of the papers, each by one command."""

from __future__ import annotations

import importlib
import pathlib
import sys

import nsjax
from nsjax.core import InputError, nearest
from nsjax.figures import require_matplotlib

PACKAGE = "experiments"


def _folder() -> pathlib.Path:
    """Folder of the experiments: in the installed package, or beside the package in a checkout."""
    package = pathlib.Path(nsjax.__file__).parent
    for place in (package / PACKAGE, package.parent / PACKAGE):
        if (place / "common.py").is_file():
            return place
    raise InputError("reproduce: the experiments are not installed; use a checkout")


def available() -> list[str]:
    """Names ``paper/experiment`` of all experiments."""
    folder = _folder()
    files = sorted(folder.glob("*/*.py"))
    return [f"{f.parent.name}/{f.stem}" for f in files if f.stem.startswith(("fig", "table"))]


def resolve(name: str) -> str:
    """Full name of an experiment from ``paper/fig03`` or ``paper/table4``; both parts may be shortened.

    Raises:
        InputError: for an unknown or ambiguous name.
    """
    known = available()
    paper, _, wanted = name.replace("-", "_").partition("/")
    begun = [n for n in known if n.startswith(paper) and n.partition("/")[2].startswith(wanted)]
    exact = [n for n in begun if n.partition("/")[0] == paper]
    found = exact or begun
    # "fig3" means Figure 3, not fig30 to fig39
    whole = [
        n for n in found if wanted[-1:].isdigit() and f"{n.partition('/')[2]}_".startswith(f"{wanted}_")
    ]
    found = [n for n in found if n.partition("/")[2] == wanted] or whole or found
    if len(found) == 1:
        return found[0]
    if found:
        shown = 8  # largest number of names in a sentence
        more = f" or {len(found) - shown} more" if len(found) > shown else ""
        raise InputError(f"reproduce: {name!r} may be {' or '.join(found[:shown])}{more}")
    near = [n for n in known if paper and n.partition("/")[0].startswith(paper)]
    hint = (
        nearest(name, near) if near else nearest(paper, dict.fromkeys(n.partition("/")[0] for n in known))
    )
    raise InputError(f"reproduce: unknown {name!r}; {hint}; nsjax reproduce lists them all")


def reproduce(name: str | None, folder: str | None, quick: bool, papers: bool = False) -> int:
    """Runs one experiment, which prints the paper's numbers, ours and their difference and saves figure and
    data. Without a name it lists all experiments, or with ``papers`` every figure and table of the papers
    with result, evidence and run time.

    Returns:
        0, or 1 if a number differs by more than its tolerance.
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
