"""V6 (Simo and Vu-Quoc 1988): a free beam thrown by a force and a moment at its end: exact momenta, books
of energy, order in time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import schemes
from nsjax.core import Problem
from nsjax.math import rotations
from nsjax.multibody import assemble, beam, force, section, torque

from .. import common
from . import shared

ELEMENTS, STEP = 10, 0.025
SCHEME = schemes.newmark()


def _pulse(t: Any) -> Any:
    """Triangle from 0 to 200 at 2.5 s and back."""
    return jnp.where(t < 2.5, 80.0 * t, jnp.where(t < 5.0, 80.0 * (5.0 - t), 0.0))


def _push(t: Any, scene: Any, own: Any) -> Any:
    return jnp.stack([_pulse(t) / 10.0, 0.0 * t, 0.0 * t])


def _turn(t: Any, scene: Any, own: Any) -> Any:
    return jnp.stack([0.0 * t, -_pulse(t) / 2.0, -_pulse(t)])


def mechanism() -> Problem:
    """From (6, 0, 0) to (0, 8, 0), loaded at its start."""
    soft = section(EA=1e4, GA=1e4, EI=500.0, GJ=500.0, line_mass=1.0, line_inertia=10.0)
    return assemble(
        beam("flying", (6, 0, 0), (0, 8, 0), elements=ELEMENTS, section=soft),
        force("F", "flying.start", law=_push), torque("M", "flying.start", law=_turn),
    )  # fmt: skip


def momenta(problem: Problem, traj: Any) -> tuple[np.ndarray, np.ndarray]:
    """Linear and angular momentum about the origin (rows, 3)."""
    s: Any = problem.system
    p, q = s.prepare(problem.params), shared.poses(traj)
    found = jax.jit(jax.vmap(lambda q, v: s.inertia(q, v, p)))(traj.q, traj.v)
    found = np.asarray(found).reshape(len(q), -1, 6)
    turns = np.asarray(jax.vmap(jax.vmap(rotations.matrix))(jnp.asarray(q[:, :, 3:])))
    own = np.einsum("tnij,tnj->tni", turns, found[:, :, 3:])
    spin = (np.cross(q[:, :, :3], found[:, :, :3]) + own).sum(axis=1)
    return found[:, :, :3].sum(axis=1), spin


def work(traj: Any) -> np.ndarray:
    """The work of force and moment at every row, by the trapezoidal rule [J]."""
    t, q = np.asarray(traj.t), shared.poses(traj)[:, 0]
    v = np.asarray(traj.v).reshape(len(t), -1, 6)[:, 0]
    turn = np.asarray(jax.vmap(rotations.matrix)(jnp.asarray(q[:, 3:])))
    pulse = np.asarray(_pulse(t))
    spin = np.einsum("tij,tj->ti", turn, v[:, 3:])
    power = pulse * (0.1 * v[:, 0] - 0.5 * spin[:, 1] - spin[:, 2])
    return np.concatenate([[0.0], np.cumsum(0.5 * np.diff(t) * (power[1:] + power[:-1]))])


def _paint(figure: Any, t: np.ndarray, q: np.ndarray, energy: np.ndarray) -> None:
    shapes, books = figure.subplots(1, 2, width_ratios=(2, 1))
    for k in range(0, len(t), 20):
        shapes.plot(q[k, :, 0], q[k, :, 1], color="#1f4e9c")
    shapes.set_aspect("equal")
    shapes.set_xlabel("$x$ [m]")
    shapes.set_ylabel("$y$ [m]")
    books.plot(t, energy, color="black")
    books.set_xlabel("time $t$ [s]")
    books.set_ylabel("energy [J]")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` leaves the order out."""
    problem = mechanism()
    traj = shared.run(problem, SCHEME, STEP, 10.0)
    five, q, t = round(5.0 / STEP), shared.poses(traj), np.asarray(traj.t)
    linear, spin = momenta(problem, traj)
    mass = np.where(np.isin(np.arange(ELEMENTS + 1), (0, ELEMENTS)), 0.5, 1.0) / ELEMENTS
    centre, energy = np.einsum("n,tni->ti", mass, q[:, :, :3]), np.asarray(traj["energy"])
    late, given = energy[five:], work(traj)
    numbers = {
        "error of the momentum from 5 s on": float(np.abs(linear[five:] - [50.0, 0.0, 0.0]).max()),
        "centre at 5 s [m]": float(centre[five, 0]), "centre at 10 s [m]": float(centre[-1, 0]),
        "energy at 5 s [J]": float(late[0]), "energy: spread from 5 s on": float(np.ptp(late) / late[0]),
        "energy that the loads do not account for": float(np.abs(energy - given)[:five].max() / late[0]),
        "drift of the angular momentum": float(
            np.abs(spin[five:] - spin[five]).max() / np.linalg.norm(spin[five])
        ),
    }  # fmt: skip
    numbers |= {f"loaded end at 5 s: {x} [m]": float(q[five, 0, k]) for k, x in enumerate("xyz")}
    if not quick:
        finer = [shared.run(problem, SCHEME, STEP / k, 5.0) for k in (1, 2, 4)]
        numbers["order in time"] = shared.order([shared.poses(x)[-1, :, :3] for x in finer])
    arrays = {"t": t, "q": q, "energy": energy}
    return common.finish(
        __file__, folder, numbers, arrays, (17.0, 6.0), lambda f: _paint(f, t, q, energy), quick=quick
    )


if __name__ == "__main__":
    common.command(main)
