"""A follower whose stem is a beam, on the rigid cam: with a start in equilibrium it leaves the cam at the
same speed. Benchmark M6 of the specification with a flexible stem.

A stem without strain at the start vibrates along its axis with the whole contact force as amplitude, and
opens the contact long before. The equilibrium is that of the load at bottom dead centre, with the
acceleration there added to gravity: the force of the cam then changes slowly.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import schemes
from nsjax.analysis import equilibrium
from nsjax.multibody import (
    assemble,
    beam,
    body,
    contact,
    fixed,
    force,
    hinge,
    joint_spring,
    rectangular,
    slide,
    sphere,
)

from .. import common
from . import cam

LENGTH, WIDTH, ELEMENTS, STEEL, DENSITY = 0.1, 0.01, 3, 2e11, 7800.0
SLOW, NEAR = 50.0, 0.01
STEPS = 1000
"""Number of steps per turn."""

BOTTOM = float(cam.lift(np.array(np.pi)))
"""Height of the roller at bottom dead centre, where the runs begin."""


def follower() -> list[Any]:
    """The stem with a mass on the guide; their total mass is that of the rigid follower."""
    end = (0.0, BOTTOM + LENGTH, 0.0)
    rest = end[1] - cam.PRELOAD / cam.STIFFNESS
    head = cam.MASS - DENSITY * WIDTH**2 * LENGTH
    section = rectangular(WIDTH, WIDTH, E=STEEL, rho=DENSITY)
    return [
        beam("stem", (0.0, BOTTOM, 0.0), end, elements=ELEMENTS, section=section),
        body("head", mass=head, inertia=np.full(3, 1e-4)),
        fixed("neck", "head", "stem.end"),
        slide("guide", "ground", "head", axis=(0.0, 1.0, 0.0)),
        joint_spring("spring", "guide", stiffness=cam.STIFFNESS, rest=rest),
    ]


def rise(speed: float) -> float:
    """Acceleration of the roller at bottom dead centre."""
    h = 1e-4
    bend = cam.lift(np.array([np.pi - h, np.pi, np.pi + h])) @ [1.0, -2.0, 1.0] / h**2
    return float(bend) * speed**2


def strained(speed: float) -> np.ndarray:
    """Poses (n, 7) of the nodes and of the head in equilibrium under the load of the start."""
    push = float(cam.axial(cam.lift, np.array(np.pi), speed))
    load = force("cam", "stem.start", (0.0, push, 0.0))
    problem = assemble(
        *follower(), load, gravity=(0.0, -cam.GRAVITY - rise(speed), 0.0), coordinates="absolute",
        start={"head": (0.0, BOTTOM + LENGTH, 0.0)},
    )  # fmt: skip
    q = equilibrium(problem).positions[-1].reshape(-1, 7).copy()
    q[:, 1] += BOTTOM - q[0, 1]  # on the cam
    return q


def sunk(theta: np.ndarray, speed: float) -> float:
    """Largest distance of the head below that of the rigid follower: the force ``N`` along the guide
    compresses the stem, and at a pressure angle ``chi`` deflects its nose by ``N tan(chi) L^3 / (3 E I)``,
    which lowers the head by ``tan(chi)`` (the slope of the cam) times this deflection.
    """
    push = cam.axial(cam.lift, theta, speed)
    square = 1.0 / cam.along_normal(theta) ** 2 - 1.0
    bent = push * square * LENGTH**3 / (3.0 * STEEL * WIDTH**4 / 12.0)
    return float(np.max(bent + push * LENGTH / (STEEL * WIDTH**2)))


def turned(speed: float, at_rest: bool = True) -> nsjax.Trajectory:
    """A turn from bottom dead centre, the stem in equilibrium or without strain."""
    disc, spin = sphere("cam", cam.RADIUS, at=(0.0, -cam.ECCENTRICITY, 0.0)), (0.0,) * 5 + (speed,)
    problem = assemble(
        body("cam", mass=1.0, inertia=cam.DRIVE * np.array([0.5, 0.5, 1.0])),
        hinge("shaft", "ground", "cam", axis=(0.0, 0.0, 1.0)), *follower(),
        contact("nose", sphere("stem.start", cam.ROLLER), disc),
        gravity=(0.0, -cam.GRAVITY, 0.0), coordinates="absolute",
        start={"cam": ((0.0, 0.0, 0.0), spin), "head": (0.0, BOTTOM + LENGTH, 0.0)},
    )  # fmt: skip
    if at_rest:
        q = np.asarray(problem.state.q).reshape(-1, 7).copy()
        q[1:] = strained(speed)
        problem = problem.replace(initial_q=q.ravel())
    return common.run(problem, schemes.bathe(), 2.0 * np.pi / speed / STEPS, STEPS)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` at 99 % and 101 % of the speed of lift-off alone."""
    theta = np.pi + 2.0 * np.pi * np.arange(STEPS + 1) / STEPS
    speeds = {"99 %": (1.0 - NEAR) * cam.LIFT_OFF, "101 %": (1.0 + NEAR) * cam.LIFT_OFF}
    speeds |= {} if quick else {"99.5 %": (1.0 - 0.5 * NEAR) * cam.LIFT_OFF, "50 rad/s": SLOW}
    numbers: common.Numbers = {}
    arrays: dict[str, Any] = {"theta": theta}

    def pushed(traj: nsjax.Trajectory) -> np.ndarray:
        return np.asarray(traj.contact("nose").force).reshape(len(theta)) * cam.along_normal(theta)

    for k, (name, speed) in enumerate(speeds.items()):
        traj, wanted = turned(speed), cam.axial(cam.lift, theta, speed)
        numbers[f"{name}: largest gap [m]"] = float(np.max(traj.gap))
        arrays |= {f"force_{k}": pushed(traj), f"wanted_{k}": wanted}
        if name.startswith("99"):
            off = float(np.min(pushed(traj)[5:]) - np.min(wanted))
            numbers[f"{name}: error of the smallest force over the largest"] = off / float(np.max(wanted))
        if name == "50 rad/s":
            numbers[f"{name}: median relative error of the force"] = float(
                np.median(np.abs(pushed(traj)[1:] / wanted[1:] - 1.0))
            )
            height = np.asarray(traj.body("head").position)[:, 1] - LENGTH
            distance = float(np.max(np.abs(height - cam.lift(theta))))
            numbers[f"{name}: distance from the rigid lift [m]"] = distance
            numbers[f"{name}: distance from the rigid lift, of that of static bending"] = distance / sunk(
                theta, speed
            )
    if not quick:
        swings = pushed(turned(speeds["99 %"], at_rest=False))
        numbers["99 %, without strain at the start: smallest force [N]"] = float(np.min(swings[5:]))
        arrays |= {"swings": swings}

    def paint(figure: Any) -> None:
        angle = np.degrees(theta)
        for axes, k, name in zip(figure.subplots(1, 2, sharey=True), (0, 1), speeds, strict=False):
            if "swings" in arrays and k == 0:
                axes.plot(angle, arrays["swings"], color="#b0b0b0", label="no strain at the start")
            axes.plot(angle, arrays[f"force_{k}"], "k", label="start in equilibrium")
            axes.plot(angle, arrays[f"wanted_{k}"], "--", color="#1f4e9c", label="rigid")
            axes.set(
                title=f"{name} of the speed of lift-off",
                xlabel="angle of the cam [deg]",
                ylabel="force [N]",
            )
            axes.legend()

    return common.finish(__file__, folder, numbers, arrays, (14.0, 6.0), paint, quick=quick)


if __name__ == "__main__":
    common.command(main)
