"""M4: two stiff shafts at 30 degrees with a universal joint between them, against ``tan phi = cos beta tan
theta``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nsjax import schemes
from nsjax.core import Problem
from nsjax.multibody import assemble, beam, hinge, rectangular, universal

from .. import common
from . import shared

SPEED, LEAN, LENGTH = 2.0 * np.pi, np.pi / 6.0, 0.5
SCHEME = schemes.generalized_alpha(0.8, constraint_form="index_3")
RATIOS = (0, 30, 45, 60, 90)


def mechanism(section: Any = None) -> Problem:
    """Input along z, output in the y-z plane; the arm of the input lies along x at the start."""
    c, s = float(np.cos(LEAN)), float(np.sin(LEAN))
    stiff = rectangular(0.02, 0.02, E=2e11, rho=7800.0) if section is None else section
    end = np.array([0.0, s, c])
    return assemble(
        beam("input", (0, 0, -LENGTH), (0, 0, 0), elements=2, section=stiff, first_axis=(1, 0, 0)),
        beam("output", (0, 0, 0), LENGTH * end, elements=2, section=stiff, first_axis=(1, 0, 0)),
        hinge("drive", "ground", "input.start", at=(0, 0, -LENGTH), axis=shared.Z,
              motion=lambda t: SPEED * t),
        universal("cross", "input.end", "output.start", axis=(1, 0, 0), second_axis=(0, c, -s)),
        hinge("far", "ground", "output.end", at=tuple(LENGTH * end), axis=tuple(end)),
    )  # fmt: skip


def exact(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Angle of the output, with its turns [rad], and the ratio of the rates."""
    c, sine, cosine = np.cos(LEAN), np.sin(theta), np.cos(theta)
    # tan(phi - theta), which has no poles
    phi = theta + np.arctan((c - 1.0) * sine * cosine / (cosine**2 + c * sine**2))
    return phi, np.cos(LEAN) / (1.0 - np.sin(LEAN) ** 2 * np.sin(theta) ** 2)


def _paint(figure: Any, theta: np.ndarray, error: np.ndarray, ratio: np.ndarray) -> None:
    rate, angle = figure.subplots(1, 2)
    first = theta <= 2.0 * np.pi
    rate.plot(np.degrees(theta[first]), exact(theta[first])[1], color="black", label="closed form")
    rate.plot(np.degrees(theta[first][::20]), ratio[first][::20], "o", markersize=3, label="beams")
    rate.set_xlabel("angle of the input [degrees]")
    rate.set_ylabel("ratio of the rates")
    rate.legend()
    angle.plot(theta / (2.0 * np.pi), error, color="#1f4e9c")
    angle.set_xlabel("turns")
    angle.set_ylabel("error of the output's angle [rad]")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs one turn of ten."""
    dt = 1e-3
    traj = shared.run(mechanism(), SCHEME, dt, 1.0 if quick else 10.0)
    theta = SPEED * np.asarray(traj.t)
    far = traj.joint("far")
    angle, ratio = np.asarray(far.position), np.asarray(far.rate) / SPEED
    wanted, rates = exact(theta)
    turned = np.unwrap(angle)
    error = turned - wanted
    numbers = {
        "largest error of the angle [rad]": float(np.abs(error).max()),
        "largest error of the ratio": float(np.abs(ratio - rates).max()),
        "turns of the output less those of the input": float((turned - theta)[-1] / (2.0 * np.pi)),
    }
    if not quick:
        numbers["turns of the output"] = float(turned[-1] / (2.0 * np.pi))
    last = len(theta) - round(1.0 / dt) - 1  # the last turn
    for degrees in RATIOS:
        k = last + degrees * round(1.0 / dt) / 360.0
        low = int(np.floor(k))
        near = ratio[low] + (k - low) * (ratio[low + 1] - ratio[low])
        numbers[f"ratio at {degrees} degrees"] = float(near)
    arrays = {"theta": theta, "angle": turned, "ratio": ratio}
    return common.finish(
        __file__, folder, numbers, arrays, (17.0, 6.0), lambda f: _paint(f, theta, error, ratio),
        quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
