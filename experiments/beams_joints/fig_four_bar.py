"""M7: a crank-rocker of flexible links: its stiff limit against the closure of its loop, and its books.

The crank is brought to 4 pi rad/s in the first second.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import schemes
from nsjax.core import Problem
from nsjax.multibody import assemble, beam, hinge, rectangular

from .. import common
from . import shared

GROUND, CRANK, COUPLER, ROCKER, SPEED = 0.4, 0.1, 0.4, 0.3, 4.0 * np.pi
SCHEME = schemes.generalized_alpha(0.8, constraint_form="index_3")
STIFFER = 1e3


def angle(t: Any) -> Any:
    """The angle of the crank: its rate goes from zero to `SPEED` as ``(1 - cos(pi t)) / 2``."""
    rising = SPEED * (0.5 * t - jnp.sin(jnp.pi * t) / (2.0 * jnp.pi))
    return jnp.where(t < 1.0, rising, SPEED * (t - 0.5))


def eye(psi: Any) -> np.ndarray:
    """Position (..., 2) [m] of the pin between rigid coupler and rocker, by the law of cosines."""
    psi = np.asarray(psi)
    pin = CRANK * np.stack([np.cos(psi), np.sin(psi)], axis=-1)
    apart = np.array([GROUND, 0.0]) - pin
    d = np.linalg.norm(apart, axis=-1)
    inner = np.arccos((COUPLER**2 + d**2 - ROCKER**2) / (2 * COUPLER * d))
    way = np.arctan2(apart[..., 1], apart[..., 0]) + inner
    return pin + COUPLER * np.stack([np.cos(way), np.sin(way)], axis=-1)


def mechanism(factor: float = 1.0, elements: int = 4) -> Problem:
    """The four-bar with ``factor`` times Young's modulus of aluminium."""
    z, far = shared.Z, (*eye(0.0), 0.0)
    square = rectangular(0.01, 0.01, E=7e10 * factor, rho=2700.0)
    return assemble(
        beam("crank", (0, 0, 0), (CRANK, 0, 0), elements=elements, section=square),
        beam("coupler", (CRANK, 0, 0), far, elements=elements, section=square, first_axis=z),
        beam("rocker", far, (GROUND, 0, 0), elements=elements, section=square, first_axis=z),
        hinge("drive", "ground", "crank.start", axis=z, motion=angle),
        hinge("a", "crank.end", "coupler.start", axis=z), hinge("b", "coupler.end", "rocker.start", axis=z),
        hinge("c", "ground", "rocker.end", at=(GROUND, 0, 0), axis=z), gravity=(0.0, -9.81, 0.0),
    )  # fmt: skip


def rocker_error(t: np.ndarray, q: np.ndarray, first: int) -> np.ndarray:
    """Difference of the angle of the rocker's chord from that of rigid links [rad]."""
    wanted = eye(np.asarray(angle(t))) - [GROUND, 0.0]
    found = q[:, first, :2] - [GROUND, 0.0]
    return np.arctan2(found[:, 1], found[:, 0]) - np.arctan2(wanted[:, 1], wanted[:, 0])


def _paint(figure: Any, t: np.ndarray, q: np.ndarray, errors: dict[str, np.ndarray]) -> None:
    shapes, off = figure.subplots(1, 2)
    for k in np.linspace(len(t) - 500, len(t) - 1, 9).astype(int):  # the last turn
        shapes.plot(q[k, :, 0], q[k, :, 1], "-", linewidth=0.8)
    shapes.set_aspect("equal")
    shapes.set_xlabel("$x$ [m]")
    shapes.set_ylabel("$y$ [m]")
    for name, error in errors.items():
        off.plot(t, error, label=name)
    off.set_yscale("symlog", linthresh=1e-7)
    off.set_xlabel("time $t$ [s]")
    off.set_ylabel("rocker minus rigid [rad]")
    off.legend()


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs to 0.5 s of 3."""
    dt, time, n = 1e-3, 0.5 if quick else 3.0, 4
    numbers: common.Numbers = {}
    errors: dict[str, np.ndarray] = {}
    arrays: dict[str, np.ndarray] = {}
    for name, factor in (("stiff", STIFFER), ("flexible", 1.0)):
        traj = shared.run(mechanism(factor, n), SCHEME, dt, time)
        t, q = np.asarray(traj.t), shared.poses(traj)
        errors[name] = rocker_error(t, q, 2 * n + 2)
        arrays |= {f"{name} q": q, "t": t}
        numbers[f"{name}: largest error of the rocker [rad]"] = float(np.abs(errors[name]).max())
        gaps = [q[:, n, :3] - q[:, n + 1, :3], q[:, 2 * n + 1, :3] - q[:, 2 * n + 2, :3]]
        numbers[f"{name}: largest gap of a joint [m]"] = float(max(np.abs(x).max() for x in gaps))
        rate = np.asarray(jax.vmap(jax.grad(angle))(jnp.asarray(t)))
        work = shared.work_of_drive(traj, rate)
        numbers[f"{name}: energy that the drive does not account for"] = shared.imbalance(traj, work)
    return common.finish(
        __file__, folder, numbers, arrays, (17.0, 6.5), lambda f: _paint(f, t, q, errors), quick=quick
    )


if __name__ == "__main__":
    common.command(main)
