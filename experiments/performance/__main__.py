"""Everything that part of the package's quality which is cost asks for, beside what is found.

    python -m experiments.performance [SECTION ...] [--quick] [--robots NAME ...] [--mjx FOLDER]

Times are CPU time of this process or of a fresh one; what is compared runs in turn, A-B-A-B, and medians
are printed. A loaded machine makes CPU seconds longer, by up to a factor of two where two threads
share a core; ratios suffer less. Robots are skipped without their files (`NSJAX_DATA`) or MuJoCo, the
numba loop without numba (both: ``pip install 'nsjax[bench]'``), MJX without a folder that holds it:

    pip install --target FOLDER --no-deps mujoco-mjx absl-py trimesh fsspec importlib_resources zipp

Behind each figure stand its change since the last run and the most memory held so far by this process or
one it started. Figures are kept in ``results/performance/last.json`` with machine, load and releases. Times
measured above a load of the number of CPUs are marked invalid and not kept.

``results/performance/table.png`` shows each figure of a call over its bound. Exudyn and Siconos are
compared with where they are installed.

``--quick``: the first figure of each section with less work; its times mean little and are not kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from ..common import Numbers, results
from . import breadth, crank, devices, drawing, heap, lanes, last, peers, robots, scaling
from .side_by_side import Row, shown

TITLES = {
    "sizes": "programs of robots over their mechanics",
    "operations": "slider-crank: operations of lowered programs",
    "kept": "runs that tests keep: operations of lowered programs",
    "steps": "robots: a step beside mj_step",
    "crank": "slider-crank: a step over the numba loop",
    "first": "robots: first call of a fresh process, nothing kept",
    "compile": "slider-crank: compile and trace, nothing kept",
    "second": "slider-crank: first step of a second process, programs kept",
    "landing": "robots: reverse gradient through the landing",
    "lanes": "many robots on one core, beside MJX",
    "throughput": "many slider-cranks on one core, beside a single run",
    "cores": "two cores beside one",
    "devices": "many lanes on each kind of device",
    "gradients": "slider-crank: reverse gradients of long runs",
    "unknowns": "cost over unknowns: bar, flexible rod",
    "contacts": "cost over contacts: balls on each other",
    "bodies": "cost over bodies: chains of rods in space",
    "heap": "heaps of spheres: a step beside mj_step, certificate",
    "exported": "an exported gradient in a new process",
    "peers": "a chain of rods beside Exudyn and Siconos",
    "pairs": "every scheme on every model",
}
COUNTED = ("sizes", "operations", "kept")
"""Sections that count operations: a loaded machine changes nothing."""

LANDED = ("hopper", "ant")
"""Robots whose landing is differentiated unless others are named."""


def sections(
    quick: bool, names: Sequence[str] | None, mjx: str | None
) -> Mapping[str, Callable[[], Iterator[Row]]]:
    """The sections by name; each is measured as its rows are asked for."""
    some = robots.ROBOTS[: 1 if quick else None] if names is None else names
    landed = [x for x in LANDED if x in some] if names is None else names
    return {
        "sizes": partial(robots.sizes, some, quick),
        "operations": partial(crank.operations, quick),
        "kept": partial(breadth.counted, quick),
        "steps": partial(robots.steps, [x for x in some if x in robots.OVER_MUJOCO or names], quick),
        "crank": partial(crank.steps, quick),
        "first": partial(robots.first_calls, [x for x in some if x in robots.FIRST_CALL or names], quick),
        "compile": partial(crank.compiling, quick),
        "second": partial(crank.second_process, quick),
        "landing": partial(robots.landings, landed, quick),
        "lanes": partial(lanes.lanes, mjx, quick),
        "throughput": partial(scaling.throughput, quick),
        "cores": partial(scaling.cores, quick),
        "devices": partial(devices.devices, quick),
        "gradients": partial(scaling.long_gradients, quick),
        "unknowns": partial(scaling.unknowns, quick),
        "contacts": partial(scaling.contacts, quick),
        "bodies": partial(scaling.bodies, quick),
        "heap": partial(heap.heap, quick),
        "exported": partial(scaling.exported, quick),
        "peers": partial(peers.peers, quick),
        "pairs": partial(breadth.pairs, quick),
    }


def main(
    chosen: Sequence[str] = (), quick: bool = False, names: Sequence[str] | None = None,
    mjx: str | None = None, folder: str | Path | None = None,
) -> Numbers:  # fmt: skip
    """Measures the chosen sections, all if none is named, prints the table and returns its numbers.

    Args:
        chosen: names of sections.
        quick: the first figure of each, with less work; nothing is kept.
        names: robots.
        mjx: folder that holds MJX.
        folder: where results are kept; None: ``results/performance``.
    """
    numbers: Numbers = {}
    kept = None if quick else results(__file__, folder).parent
    before = last.read(kept) if kept else {}
    seen: list[tuple[str, Row]] = []
    for name, rows in sections(quick, names, mjx).items():
        if chosen and name not in chosen:
            continue
        on = last.machine()
        invalid = name not in COUNTED and on.loaded()
        said = "; INVALID: other programs run, and times are not kept" if invalid else ""
        print(f"{name}: {TITLES[name]} (load {on.load:.1f} of {on.cpus} CPUs{said})", flush=True)
        found = shown(name, _noted(name, rows(), seen), before, on)
        if kept and not invalid:
            last.write(kept, found, on)
        numbers |= found | {f"{name}: load": on.load}
    if picture := drawing.draw(seen, kept) if kept else None:
        print(f"drawn: {picture}")
    return numbers


def _noted(section: str, rows: Iterable[Row], seen: list[tuple[str, Row]]) -> Iterator[Row]:
    """The rows as they come, which are noted for the picture."""
    for row in rows:
        seen.append((section, row))
        yield row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m experiments.performance", description="cost beside bounds"
    )
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"of {', '.join(TITLES)}; all if none"
    )
    parser.add_argument("--quick", action="store_true", help="the first figure of each, with less work")
    parser.add_argument(
        "--robots", nargs="+", metavar="NAME", help=f"of {', '.join(robots.ROBOTS)}, or files"
    )
    parser.add_argument("--mjx", metavar="FOLDER", help="where mujoco-mjx is installed")
    given = parser.parse_args()
    if unknown := set(given.sections) - set(TITLES):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(TITLES)}")
    main(given.sections, given.quick, given.robots, given.mjx)
