"""V8 (Lee, Manuel and Rossow 1968): a frame of two legs with pinned feet snaps through under a dead load.

Its path by arc length, for three meshes of the objective elements, and the limit load with the source's
elements of three nodes, without shear: a shear stiffness `RIGID` times that of the material leaves 0.01 of
the 12 by which shear lowers the limit load. The exact limit load is that of shooting on Reissner's beam.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax.analysis import load_path
from nsjax.core import Problem
from nsjax.multibody import assemble, beam, force, hinge, section

from .. import common
from . import quadratic_frame, shared

LEG, MODULUS, AREA, SECOND, RIGID = 120.0, 7.2e6, 6.0, 2.0, 1e3
SHEAR = RIGID * 5.0 / 6.0 * AREA * MODULUS / 2.6
FULL = 20000.0
"""Load at level 1."""
MESHES, QUICK = (5, 10, 20), (5,)
"""Elements per leg; the load acts at a fifth of the second leg."""

QUADRATIC, DEFLECTION = 10, 55.0
"""Three-node elements per leg, and the last deflection of their path, in steps of 1."""


def mechanism(elements: int) -> tuple[Problem, int]:
    """The frame, up from the origin and then along x, and the number of the loaded node."""
    s = np.linspace(0.0, LEG, elements + 1)
    up = np.stack([0 * s, s, 0 * s], axis=1)
    across = np.stack([s[1:], LEG + 0 * s[1:], 0 * s[1:]], axis=1)
    stiff = section(EA=AREA * MODULUS, GA=SHEAR, EI=SECOND * MODULUS, GJ=SECOND * MODULUS)
    node = elements + elements // 5
    problem = assemble(
        beam("frame", np.concatenate([up, across]), section=stiff, first_axis=shared.Z),
        hinge("foot", "ground", "frame.start", axis=shared.Z),
        hinge("far", "ground", "frame.end", at=(LEG, LEG, 0.0), axis=shared.Z),
        force("P", f"frame.{node}", (0.0, 0.0, 0.0)),
    )
    return problem, node


def path(elements: int, whole: bool) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Loads, positions (rows, nodes, 3), load and deflection of the limit point; the whole path until the
    load is a tenth of `FULL` upwards, or the path just beyond the limit.
    """
    problem, node = mechanism(elements)

    def until(level: float, q: np.ndarray) -> bool:
        return level < -0.1 if whole else bool(q[7 * node + 1] < LEG - DEFLECTION)

    found = load_path(
        problem, {"P.value": (0.0, -FULL, 0.0)}, arc=20.0, longest=100.0, points=400, until=until,
    )  # fmt: skip
    q = found.positions.reshape(len(found.levels), -1, 7)[:, :, :3]
    deflection = LEG - found.limit_positions[0].reshape(-1, 7)[node, 1]
    return FULL * found.levels, q, FULL * found.limits[0], float(deflection)


def _paint(figure: Any, curves: dict[int, tuple[np.ndarray, np.ndarray]], q: np.ndarray) -> None:
    shapes, loads = figure.subplots(1, 2)
    for row in q[:: max(1, len(q) // 8)]:
        shapes.plot(row[:, 0], row[:, 1], color="#1f4e9c", linewidth=0.6)
    shapes.set_aspect("equal")
    shapes.set_xlabel("$x$")
    shapes.set_ylabel("$y$")
    for elements, (down, load) in curves.items():
        loads.plot(down, load, label=f"{elements} elements a leg")
    loads.axhline(18556.73, color="black", linewidth=0.4)
    loads.set_xlabel("deflection under the load")
    loads.set_ylabel("load")
    loads.legend(fontsize=6)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` takes one coarse mesh."""
    numbers: common.Numbers = {}
    arrays: dict[str, np.ndarray] = {}
    curves, limits, q = {}, [], np.zeros(0)
    for elements in QUICK if quick else MESHES:
        whole = elements == (QUICK if quick else MESHES)[0]
        loads, places, limit, deflection = path(elements, whole)
        q = places if whole else q
        down = LEG - places[:, elements + elements // 5, 1]
        curves[elements] = down, loads
        arrays |= {f"{elements} loads": loads, f"{elements} deflections": down}
        numbers[f"limit load, {elements} elements a leg"] = limit
        numbers[f"deflection there, {elements} elements a leg"] = deflection
        if whole:
            numbers[f"least load, {elements} elements a leg"] = float(loads.min())
        limits.append(limit)
    if not quick:
        stiff = (SHEAR, SHEAR, AREA * MODULUS, *[SECOND * MODULUS] * 3)
        limit, deflection = quadratic_frame.limit_load(QUADRATIC, LEG, stiff, DEFLECTION, round(DEFLECTION))
        numbers[f"limit load, {QUADRATIC} elements of three nodes a leg"] = limit
        numbers[f"deflection there, {QUADRATIC} elements of three nodes a leg"] = deflection
        coarse, middle, fine = limits
        numbers["order in the mesh"] = float(np.log2((coarse - middle) / (middle - fine)))
        numbers["limit load, extrapolated"] = fine + (fine - middle) / 3.0
    return common.finish(
        __file__, folder, numbers, {"q": q, **arrays}, (17.0, 7.0), lambda f: _paint(f, curves, q),
        quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
