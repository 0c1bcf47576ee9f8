"""A cam that is a closed beam on the spokes of a driven hub, and a follower on a guide with a preloaded
spring: the lift comes to that of a rigid cam as the ring grows stiffer, and the follower leaves it at the
same speed. Benchmark M6 of the specification with a flexible cam.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import schemes
from nsjax.analysis import observed_order
from nsjax.multibody import (
    assemble,
    beam,
    body,
    circular,
    contact,
    fixed,
    hinge,
    joint_spring,
    slide,
    sphere,
    tube,
)

from .. import common
from . import cam

ELEMENTS, SPOKES, WALL = 16, 4, 0.005
"""Elements of the ring; nodes that the hub holds; radius of the ring's section [m]."""

MODULI, STEEL, DENSITY = (2e9, 2e10, 2e11), 2e11, 7800.0
SLOW, FAST, NEAR = 50.0, 120.0, 0.01
STEPS = 1000
"""Number of steps per turn."""


def parts(modulus: float) -> list[Any]:
    """Parts: the ring on the hub, closed at its seam, and the follower."""
    angles = 2.0 * np.pi * np.arange(ELEMENTS + 1) / ELEMENTS
    axis = cam.RADIUS - WALL
    nodes = np.stack(
        [cam.ECCENTRICITY + axis * np.cos(angles), axis * np.sin(angles), 0.0 * angles], axis=1
    )
    nodes[-1] = nodes[0]
    rest = float(cam.lift(np.array(np.pi))) - cam.PRELOAD / cam.STIFFNESS
    held = range(0, ELEMENTS, ELEMENTS // SPOKES)
    return [
        body("hub", mass=1.0, inertia=cam.DRIVE * np.array([0.5, 0.5, 1.0])),
        beam("ring", nodes, section=circular(WALL, E=modulus, rho=DENSITY), first_axis=(0.0, 0.0, 1.0)),
        body("follower", mass=cam.MASS, inertia=np.full(3, 1e-4)),
        hinge("shaft", "ground", "hub", axis=(0.0, 0.0, 1.0)),
        fixed("seam", "ring.end", "ring.start"),
        *(fixed(f"spoke{k}", "hub", f"ring.{k}", at=nodes[k]) for k in held),
        slide("guide", "ground", "follower", axis=(0.0, 1.0, 0.0)),
        joint_spring("spring", "guide", stiffness=cam.STIFFNESS, rest=rest),
        contact("nose", sphere("follower", cam.ROLLER), tube("ring", WALL)),
    ]


def turned(modulus: float, speed: float) -> nsjax.Trajectory:
    """A turn from the middle of the rise, the ring without strain and turning with the hub."""
    height, rise = float(cam.lift(np.array(-np.pi / 2))), cam.ECCENTRICITY * speed
    spin, still = (0.0, 0.0, 0.0, 0.0, 0.0, speed), (0.0, 0.0, 0.0)
    up = (0.0, rise, 0.0, 0.0, 0.0, 0.0)
    problem = assemble(
        *parts(modulus), gravity=(0.0, -cam.GRAVITY, 0.0), coordinates="absolute",
        start={"hub": (still, spin), "ring": (still, spin), "follower": ((0.0, height, 0.0), up)},
    )  # fmt: skip
    return common.run(problem, schemes.nsga_decoupled(), 2.0 * np.pi / speed / STEPS, STEPS)


def seen(traj: nsjax.Trajectory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Angle from top dead centre, height of the follower, force along the guide."""
    turn = np.asarray(traj.body("hub").rotation)
    theta = np.unwrap(np.arctan2(turn[:, 1, 0], turn[:, 0, 0])) - np.pi / 2
    force = np.asarray(traj.contact("nose").force).reshape(len(theta)) * cam.along_normal(theta)
    return theta, np.asarray(traj.body("follower").position)[:, 1], force


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` with two stiffnesses below lift-off."""
    moduli = MODULI[:2] if quick else MODULI
    numbers: common.Numbers = {}
    arrays: dict[str, Any] = {"moduli": np.array(moduli)}
    off = []
    for k, modulus in enumerate(moduli):
        theta, height, force = seen(turned(modulus, SLOW))
        off.append(float(np.max(np.abs(height - cam.lift(theta)))))
        arrays |= {f"theta_{k}": theta, f"off_{k}": height - cam.lift(theta), f"force_{k}": force}
    wanted = cam.axial(cam.lift, arrays["theta_0"], SLOW)
    window = np.full(5, 0.2)
    means = np.convolve(arrays[f"force_{len(moduli) - 1}"][1:], window, "valid")
    numbers["order of the distance from the rigid lift"] = -observed_order(moduli, off)
    if not quick:
        numbers["steel: distance from the rigid lift [m]"] = off[-1]
        relative = means / np.convolve(wanted[1:], window, "valid") - 1.0
        numbers["steel: median relative error of the force"] = float(np.median(np.abs(relative)))
        below, above = (turned(STEEL, x * cam.LIFT_OFF) for x in (1.0 - NEAR, 1.0 + NEAR))
        fast = turned(STEEL, FAST)
        numbers |= {
            "99 % of the speed of lift-off: largest gap [m]": float(np.max(below.gap)),
            "101 %: largest gap [m]": float(np.max(above.gap)),
            "120 rad/s: smallest gap [m]": float(np.min(fast.gap)),
            "120 rad/s: height of the flight over its value": float(
                np.max(seen(fast)[1] - cam.lift(seen(fast)[0]))
            )
            / cam.flight(cam.lift, FAST)[2],
        }
        arrays |= {"fast_theta": seen(fast)[0], "fast_height": seen(fast)[1]}
    arrays |= {"off": np.array(off), "wanted": wanted}

    def paint(figure: Any) -> None:
        near, load = figure.subplots(1, 2)
        near.loglog(moduli, off, "ko", label="flexible ring")
        near.loglog(moduli, off[0] * moduli[0] / np.array(moduli), "--", color="0.6", label="1/E")
        near.legend()
        near.set(xlabel="E of the ring [Pa]", ylabel="distance from the rigid lift [m]")
        last = arrays[f"force_{len(moduli) - 1}"][1:]
        load.plot(np.degrees(arrays["theta_0"][1:]), last, "k", label="flexible ring")
        load.plot(np.degrees(arrays["theta_0"][1:]), wanted[1:], "--", color="0.6", label="rigid cam")
        load.legend()
        load.set(xlabel="angle of the cam [deg]", ylabel=f"force at {SLOW:g} rad/s [N]")

    return common.finish(__file__, folder, numbers, arrays, (14.0, 6.0), paint, quick=quick)


if __name__ == "__main__":
    common.command(main)
