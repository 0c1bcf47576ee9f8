"""A cam with beams on both sides: a closed beam on the spokes of a driven hub turns under a follower whose
stem is a beam, against the closed form of the rigid cam.

With increasing stiffness of ring and stem the lift converges to that of the rigid eccentric cam, in
proportion to their compliance; with ring and stem of steel the force is that of the rigid cam. Benchmark M6
of the specification [P] with beams on both sides, as in the last example of [GN].
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import schemes
from nsjax.multibody import (
    assemble,
    beam,
    body,
    circular,
    contact,
    fixed,
    hinge,
    joint_spring,
    rectangular,
    slide,
    sphere,
    tube,
)

from .. import common
from ..contact import cam
from . import shared

ELEMENTS, SPOKES, WALL = 12, 4, 0.005
"""Elements of the ring; nodes that the hub holds; radius of the ring's section [m]."""

STEM, WIDTH, PIECES = 0.05, 0.01, 1
"""Length and width of the stem [m]; its elements."""

MODULI, STEEL, DENSITY, SPEED, STEPS = (2e10, 2e11), 2e11, 7800.0, 50.0, 1000
BEGIN = -0.5 * np.pi
"""Angle from top dead centre at the start: in the middle of the rise."""


def parts(modulus: float) -> list[Any]:
    """Parts: the ring on the hub, closed at its seam; the stem from the ring to the guided head."""
    angles = 2.0 * np.pi * np.arange(ELEMENTS + 1) / ELEMENTS
    axis = cam.RADIUS - WALL
    nodes = np.stack(
        [cam.ECCENTRICITY + axis * np.cos(angles), axis * np.sin(angles), 0.0 * angles], axis=1
    )
    nodes[-1] = nodes[0]
    nose = float(cam.lift(np.array(BEGIN)))
    rest = float(cam.lift(np.array(np.pi))) + STEM - cam.PRELOAD / cam.STIFFNESS
    slim = rectangular(WIDTH, WIDTH, E=modulus, rho=DENSITY)
    head = cam.MASS - DENSITY * WIDTH**2 * STEM
    held = range(0, ELEMENTS, ELEMENTS // SPOKES)
    return [
        body("hub", mass=1.0, inertia=cam.DRIVE * np.array([0.5, 0.5, 1.0])),
        beam("ring", nodes, section=circular(WALL, E=modulus, rho=DENSITY), first_axis=(0.0, 0.0, 1.0)),
        beam("stem", (0.0, nose, 0.0), (0.0, nose + STEM, 0.0), elements=PIECES, section=slim),
        body("head", mass=head, inertia=np.full(3, 1e-4)),
        hinge("shaft", "ground", "hub", axis=shared.Z),
        fixed("seam", "ring.end", "ring.start"),
        *(fixed(f"spoke{k}", "hub", f"ring.{k}", at=nodes[k]) for k in held),
        fixed("neck", "head", "stem.end"),
        slide("guide", "ground", "head", axis=(0.0, 1.0, 0.0)),
        joint_spring("spring", "guide", stiffness=cam.STIFFNESS, rest=rest),
        contact("nose", sphere("stem.start", cam.ROLLER), tube("ring", WALL)),
    ]


def turned(modulus: float, turns: float) -> nsjax.Trajectory:
    """A run from the middle of the rise, without initial strain, with the ring rotating with the hub."""
    nose, rise = float(cam.lift(np.array(BEGIN))), cam.ECCENTRICITY * SPEED
    spin, still = (0.0, 0.0, 0.0, 0.0, 0.0, SPEED), (0.0, 0.0, 0.0)
    up = (0.0, rise, 0.0, 0.0, 0.0, 0.0)
    problem = assemble(
        *parts(modulus), gravity=(0.0, -cam.GRAVITY, 0.0),
        start={"hub": (still, spin), "ring": (still, spin), "stem": (still, up),
               "head": ((0.0, nose + STEM, 0.0), up)},
    )  # fmt: skip
    dt = 2.0 * np.pi / SPEED / STEPS
    return shared.run(problem, schemes.generalized_alpha(0.6), dt, round(turns * STEPS) * dt)


def seen(traj: nsjax.Trajectory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Angle from top dead centre, height of the roller, force along the guide."""
    turn = np.asarray(traj.body("hub").rotation)
    theta = np.unwrap(np.arctan2(turn[:, 1, 0], turn[:, 0, 0])) + BEGIN
    force = np.asarray(traj.contact("nose").force).reshape(len(theta)) * cam.along_normal(theta)
    return theta, np.asarray(traj.body("head").position)[:, 1] - STEM, force


def _paint(figure: Any, theta: np.ndarray, off: list[np.ndarray], force: np.ndarray) -> None:
    near, load = figure.subplots(1, 2)
    for modulus, x in zip(MODULI, off, strict=False):
        near.plot(np.degrees(theta), x, label=f"E = {modulus / 1e9:g} GPa")
    near.set(xlabel="angle of the cam [degrees]", ylabel="lift less the rigid one [m]")
    near.legend()
    stiffest = f"beams, {MODULI[len(off) - 1] / 1e9:g} GPa"
    load.plot(np.degrees(theta[1:]), force[1:], color="black", label=stiffest)
    load.plot(np.degrees(theta), cam.axial(cam.lift, theta, SPEED), "--", color="0.5", label="rigid cam")
    load.set(xlabel="angle of the cam [degrees]", ylabel="force along the guide [N]")
    load.legend()


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs a twentieth of a turn of the softer one."""
    off, gaps = [], []
    for modulus in MODULI[:1] if quick else MODULI:
        traj = turned(modulus, 0.05 if quick else 1.0)
        theta, height, force = seen(traj)
        off.append(height - cam.lift(theta))
        gaps.append(float(np.abs(np.asarray(traj.gap)).max()))
    wanted = cam.axial(cam.lift, theta, SPEED)
    numbers: common.Numbers = {
        "E = 2e10: distance from the rigid lift [m]": float(np.abs(off[0]).max()),
        "largest gap or penetration while it rests on the cam [m]": max(gaps),
    }
    window = np.full(5, 0.2)
    means = np.convolve(force[1:], window, "valid") / np.convolve(wanted[1:], window, "valid") - 1.0
    if not quick:
        largest = [float(np.abs(x).max()) for x in off]
        numbers |= {
            "steel: distance from the rigid lift [m]": largest[-1],
            "order of the distance in 1/E": float(np.log10(largest[0] / largest[1])),
            "steel: median relative error of the force": float(np.median(np.abs(means))),
        }
    arrays = {"theta": theta, "off": off[-1], "force": force, "wanted": wanted}
    return common.finish(
        __file__, folder, numbers, arrays, (17.0, 6.0), lambda f: _paint(f, theta, off, force), quick=quick
    )


if __name__ == "__main__":
    common.command(main)
