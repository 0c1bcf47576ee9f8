"""V4 (Simo and Vu-Quoc 1988): a clamped frame of two legs at a right angle, pushed out of its plane at the
elbow, swings on: energy and order in time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import schemes
from nsjax.core import Problem
from nsjax.multibody import assemble, beam, fixed, force, section

from .. import common
from . import shared

LEG, ELEMENTS, STEP = 10.0, 5, 0.025
SCHEME = schemes.newmark()


def _pulse(t: Any) -> Any:
    """Triangle from 0 to 50 at 1 s and back."""
    return jnp.where(t < 1.0, 50.0 * t, jnp.where(t < 2.0, 50.0 * (2.0 - t), 0.0))


def _push(t: Any, scene: Any, own: Any) -> Any:
    return jnp.stack([0.0 * t, 0.0 * t, _pulse(t)])


def mechanism(elements: int = ELEMENTS, **kind: Any) -> Problem:
    """Clamped at the origin, along x and then along y; ``kind``: see `nsjax.multibody.beam`."""
    s = np.linspace(0.0, LEG, elements + 1)
    one = np.stack([s, 0 * s, 0 * s], axis=1)
    other = np.stack([LEG + 0 * s, s, 0 * s], axis=1)[1:]
    stiff = section(EA=1e6, GA=1e6, EI=1e3, GJ=1e3, line_mass=1.0, line_inertia=10.0)
    return assemble(
        beam("frame", np.concatenate([one, other]), section=stiff, first_axis=shared.Z, **kind),
        fixed("clamp", "ground", "frame.start"),
        force("push", f"frame.{elements}", law=_push),
    )  # fmt: skip


def _paint(figure: Any, t: np.ndarray, q: np.ndarray, energy: np.ndarray) -> None:
    shapes = figure.add_subplot(1, 2, 1, projection="3d")
    for k in range(0, round(6.0 / STEP), 16):
        shapes.plot(q[k, :, 0], q[k, :, 1], q[k, :, 2], color="#1f4e9c")
    for way in "xyz":
        getattr(shapes, f"set_{way}label")(f"${way}$ [m]")
    books, place = figure.add_subplot(2, 2, 2), figure.add_subplot(2, 2, 4)
    books.plot(t, energy, color="black")
    books.set_ylabel("energy [J]")
    place.plot(t, q[:, ELEMENTS, 2], label="elbow")
    place.plot(t, q[:, -1, 2], label="tip")
    place.set_xlabel("time $t$ [s]")
    place.set_ylabel("$z$ [m]")
    place.legend()


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs to 4 s of 30."""
    problem, after = mechanism(), round(2.0 / STEP)
    traj = shared.run(problem, SCHEME, STEP, 4.0 if quick else 30.0)
    t, q, energy = np.asarray(traj.t), shared.poses(traj), np.asarray(traj["energy"])
    numbers = {
        "energy: spread from 2 s on": float(np.ptp(energy[after:]) / energy[after]),
        "energy at 2 s [J]": float(energy[after]),
        "largest height of the tip [m]": float(q[:, -1, 2].max()),
    }
    finer = [shared.run(problem, SCHEME, STEP / k, 4.0) for k in (1, 2, 4)]
    late = [np.asarray(x["energy"])[len(x.t) // 2 :] for x in finer]
    numbers["energy: order of its spread to 4 s"] = float(np.log2(np.ptp(late[1]) / np.ptp(late[2])))
    numbers["order in time"] = shared.order([shared.poses(x)[-1, :, :3] for x in finer])
    arrays = {"t": t, "q": q, "energy": energy}
    return common.finish(
        __file__, folder, numbers, arrays, (17.0, 8.0), lambda f: _paint(f, t, q, energy), quick=quick
    )


if __name__ == "__main__":
    common.command(main)
