"""M6: an eccentric circular cam with a roller follower, below and above the speed at which it lifts off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax import schemes
from nsjax.multibody import assemble, body, contact, hinge, joint_spring, profile, slide, sphere

from .. import common
from . import shared

RADIUS, ECCENTRICITY, ROLLER, MASS, STIFFNESS, PRELOAD = 0.04, 0.012, 0.01, 0.5, 2000.0, 20.0
REACH = RADIUS + ROLLER
LIFT_OFF = 98.990
STEPS = 1000
"""Of every run."""


def cam() -> Any:
    """The cam's drive is an inertia that the follower, with some 10 J, slows by 1e-6 of its speed."""
    lowest = REACH - ECCENTRICITY
    return assemble(
        body("cam", mass=1.0, inertia=1e4),
        body("follower", mass=MASS),
        hinge("shaft", "ground", "cam"),
        slide("guide", "ground", "follower", axis=(0.0, 1.0)),
        joint_spring("spring", "guide", stiffness=STIFFNESS, rest=lowest - PRELOAD / STIFFNESS),
        contact("nose", sphere("follower", ROLLER), profile("cam", eccentric)),
        gravity=9.81,
    )


def eccentric(angle: float) -> tuple[float, float]:
    """Point of the cam."""
    return ECCENTRICITY + RADIUS * np.cos(angle), RADIUS * np.sin(angle)


def lift(theta: np.ndarray) -> np.ndarray:
    """Of the follower at an angle from top dead centre."""
    return ECCENTRICITY * np.cos(theta) + np.sqrt(REACH**2 - (ECCENTRICITY * np.sin(theta)) ** 2)


def turning(speed: float, turns: float = 1.0) -> Any:
    """A run from the middle of the rise, always of as many steps."""
    height = float(lift(np.array(-np.pi / 2)))
    problem = cam().replace(initial_q=[0.0, height], initial_v=[speed, ECCENTRICITY * speed])
    return shared.run(problem, schemes.nsga_decoupled(), turns * 2 * np.pi / speed / STEPS, STEPS)


def angle(traj: Any) -> np.ndarray:
    """Of the cam from top dead centre."""
    made: np.ndarray = np.asarray(traj["cam.angle"]) - np.pi / 2
    return made


def force(theta: np.ndarray, speed: float) -> np.ndarray:
    """Normal force from the equation of motion of the follower, its acceleration by differences."""
    h = 1e-4
    bend = (lift(theta + h) - 2.0 * lift(theta) + lift(theta - h)) / h**2
    along = MASS * (bend * speed**2 + 9.81) + PRELOAD + STIFFNESS * (lift(theta) - (REACH - ECCENTRICITY))
    made: np.ndarray = along / np.sqrt(1.0 - (ECCENTRICITY * np.sin(theta) / REACH) ** 2)
    return made


def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` turns slowly only."""
    slow = turning(50.0)
    theta, found = angle(slow), np.asarray(slow.contact("nose").force)[1:, 0]
    numbers = {
        "50 rad/s: largest error of the follower [m]": float(
            np.max(np.abs(np.asarray(slow["guide.position"]) - lift(theta)))
        ),
        "50 rad/s: largest error of the force after five steps": float(
            np.max(np.abs(found / force(theta, 50.0)[1:] - 1.0)[5:])
        ),
    }
    arrays = {"theta": theta[1:], "force": found}
    if not quick:
        below, above = (turning(LIFT_OFF * x) for x in (0.99, 1.01))
        fast = turning(120.0, 2.0)
        numbers |= {
            "1 % below lift-off: least force [N]": float(np.min(below.contact("nose").force[5:])),
            "1 % above lift-off: largest gap [m]": float(np.max(above.gap)),
            "120 rad/s: largest gap [m]": float(np.max(fast.gap)),
            "120 rad/s: deepest penetration [m]": -float(np.min(fast.gap)),
        }
        arrays |= {"fast_theta": angle(fast), "fast_gap": np.asarray(fast.gap)[:, 0]}

    def paint(figure: Any) -> None:
        axes = figure.subplots(1, 1 if quick else 2, squeeze=False)[0]
        axes[0].plot(np.degrees(theta[1:]), found, "k")
        axes[0].plot(
            np.degrees(theta[1::25]), force(theta, 50.0)[1::25], "o", color="#1f4e9c", markersize=3
        )
        axes[0].set(xlabel="angle [degrees], 50 rad/s", ylabel="force [N]")
        if not quick:
            axes[1].plot(np.degrees(arrays["fast_theta"]), 1e3 * arrays["fast_gap"], "k")
            axes[1].set(xlabel="angle [degrees], 120 rad/s", ylabel="gap [mm]")

    return shared.finish("fig_cam_follower", __file__, folder, numbers, arrays, paint, quick)


if __name__ == "__main__":
    common.command(main)
