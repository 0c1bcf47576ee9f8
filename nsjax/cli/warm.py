"""Programs of size classes that are compiled before they are needed: ``nsjax warm``."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import nsjax
from nsjax import multibody as mb
from nsjax.cli.inputs import read_problem, read_scheme
from nsjax.core import InputError, Problem
from nsjax.jaxtools import use_cache

EPILOG = "example: nsjax warm robot.xml --scheme generalized-alpha"


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``nsjax warm``."""
    add.add_argument(
        "model", nargs="*", metavar="FILE",
        help="mechanisms in URDF or MJCF (.urdf, .xml), or Python files with a function problem(); "
        "their own programs are compiled, too (default: chains, loops and balls above a floor)",
    )  # fmt: skip
    add.add_argument("--scheme", default="moreau", help="a scheme of `nsjax list` (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Compiles, and says what took how long."""
    folder = use_cache()
    if folder is None:
        raise InputError("warm: programs are not kept; nsjax.configure(cache='folder') chooses a folder")
    scheme, begun = read_scheme(args.scheme, {}), time.perf_counter()
    given = [(name, read_problem(name, {})[0]) for name in args.model]
    for name, problem in given or common():
        before, own, said = time.perf_counter(), [problem] if given else [], ""
        try:
            own.append(nsjax.side_by_side(problem).problem())
        except InputError as error:
            said = f" ({error})"
        for one in own:
            nsjax.simulate(one.system, one.params, one.state, scheme, dt=1e-6, steps=1)
        print(f"{name}: {time.perf_counter() - before:.1f} s{said}", flush=True)
    print(f"programs in {folder}: {time.perf_counter() - begun:.0f} s")
    return 0


def common() -> Iterator[tuple[str, Problem]]:
    """Mechanisms of classes that are often met, with their descriptions."""
    for dimension in (2, 3):
        for links in (1, 2, 3, 4, 8, 12):
            yield f"chain of {links} hinges, {dimension}D", chain(links, dimension)
    yield "slider-crank, 2D", loop(slider=True)
    yield "four-bar, 2D", loop(slider=False)
    for dimension in (2, 3):
        ball, floor = mb.sphere("body", 0.1), mb.plane()
        contact = mb.contact("contact", ball, floor, friction=0.5, restitution=0.5)
        height = (0.0, 0.2) if dimension == 2 else (0.0, 0.0, 0.2)
        start = {"body": (*height, 0.0) if dimension == 2 else height}
        yield (
            f"ball above a floor, {dimension}D",
            mb.assemble(*_bodies(dimension, "body"), contact, gravity=9.81, start=start),
        )


def _bodies(dimension: int, *names: str) -> list[Any]:
    inertia: Any = 0.1 if dimension == 2 else (0.1, 0.1, 0.1)
    com = (0.5, 0.0, 0.0)[:dimension]
    return [mb.body(name, mass=1.0, inertia=inertia, com=com) for name in names]


def chain(links: int, dimension: int) -> Problem:
    """Links on hinges, under gravity."""
    names = [f"link{k}" for k in range(links)]
    axis: Any = {} if dimension == 2 else {"axis": (0, 1, 0)}
    hinges = [
        mb.hinge(f"hinge{k}", above, name, at=(0.1 * bool(k), 0.0, 0.0)[:dimension], **axis)
        for k, (above, name) in enumerate(zip(["ground", *names], names, strict=False))
    ]
    return mb.assemble(*_bodies(dimension, *names), *hinges, gravity=9.81)


def loop(slider: bool) -> Problem:
    """A slider-crank, or a crank and a rocker, closed by a hinge."""
    end: Any = (
        mb.slide("guide", "ground", "end") if slider else mb.hinge("post", "ground", "end", at=(0.6, 0.0))
    )
    parts = [
        mb.hinge("crank_pin", "ground", "crank"), mb.hinge("rod_pin", "crank", "rod", at=(0.2, 0.0)), end,
        mb.hinge("end_pin", "rod", "end", at=(0.5, 0.0), on=None if slider else (0.4, 0.0), loop=True),
    ]  # fmt: skip
    return mb.assemble(*_bodies(2, "crank", "rod", "end"), *parts, gravity=9.81, start={"crank_pin": 1.0})
