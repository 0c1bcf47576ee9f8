"""[GN] Appendices 3, 4: incremental elements in motion, and the Newmark rule (114)-(117) for rotations.

Elements: the frame of `fig_right_angle_frame` with the source's elements of two and three nodes beside
those whose strains do not depend on the path. All describe the same motion: paths of the tip differ by the
square of an element's length, and no more with a smaller step; energy is kept alike.

Rotations: a heavy top by a program of (114)-(117) of its own, with the minus signs of ``a_2``, ``a_3`` that
the print lacks (as printed, one step turns the body backwards, with three times the spin). It is
`schemes.newmark` with Rodrigues vectors in place of rotation vectors as increments, to rounding; both maps
are of second order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

import nsjax
from nsjax import State, System, schemes
from nsjax.analysis import observed_order
from nsjax.math import rotations

from .. import common
from . import fig_right_angle_frame, shared

FRAMES: dict[str, dict[str, Any]] = {
    "objective": {"element": "objective"},
    "incremental": {"element": "incremental"},
    "three nodes": {"element": "incremental", "element_nodes": 3},
}
ELEMENTS, FRAME_STEPS, FRAME_TIME = (6, 12), (0.025, 0.0125), 6.0
"""Elements (of two nodes) per leg, steps and duration [s] of the frame."""

INERTIA, SPIN, TIME = np.array([1.0, 2.0, 3.0]), np.array([0.3, 5.0, 0.2]), 2.0
"""A top: moments of inertia [kg m^2], spin at the start [rad/s], duration [s]."""
MOMENT = 5.0
"""Weight times the distance of the centre along the third axis [N m]."""
BODY_STEPS = (0.01, 0.005, 0.0025)


def tip(kind: str, elements: int, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Path of the frame's tip in common rows, and the energies after the load."""
    problem = fig_right_angle_frame.mechanism(elements, **FRAMES[kind])
    every = round(FRAME_STEPS[0] / dt)
    traj = shared.run(problem, fig_right_angle_frame.SCHEME, dt, FRAME_TIME, every)
    traj.raise_for_status()
    return shared.poses(traj)[:, -1, :3], np.asarray(traj["energy"])[round(2.0 / FRAME_STEPS[0]) :]


def frames(quick: bool) -> tuple[common.Numbers, dict[str, np.ndarray]]:
    """Numbers and paths of the frames."""
    numbers: common.Numbers = {}
    paths = {}
    for n in ELEMENTS[:1] if quick else ELEMENTS:
        for h in FRAME_STEPS:
            for kind in list(FRAMES)[:2] if quick or n != ELEMENTS[0] else FRAMES:
                path, energy = tip(kind, n, h)
                paths[f"{kind}, {n}, {h:g}"] = path
                numbers[f"{kind}, {n} elements, {h:g} s: spread of energy"] = float(
                    np.ptp(energy) / energy[0]
                )
            apart = paths[f"incremental, {n}, {h:g}"] - paths[f"objective, {n}, {h:g}"]
            numbers[f"paths apart, {n} elements, {h:g} s [m]"] = float(np.abs(apart).max())
    keys = [f"paths apart, {n} elements, {FRAME_STEPS[0]:g} s [m]" for n in ELEMENTS]
    if not quick:
        numbers["paths apart: order in the elements"] = float(np.log2(numbers[keys[0]] / numbers[keys[1]]))
    one, two = (numbers[f"paths apart, {ELEMENTS[0]} elements, {h:g} s [m]"] for h in FRAME_STEPS)
    numbers["paths apart: change by half the step"] = abs(two / one - 1.0)
    return numbers, paths


def turned(alpha: np.ndarray) -> np.ndarray:
    """``Q`` of a Rodrigues vector, [GN (84)]."""
    x, y, z = alpha
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + 4.0 / (4.0 + alpha @ alpha) * (skew + 0.5 * skew @ skew)


def printed(dt: float, steps: int, sign: float = -1.0) -> np.ndarray:
    """Third axis (3,) and spin (3,) in the axes of the top, by [GN (114)-(117)], gamma = 1/2, beta = 1/4.

    Args:
        dt, steps: step size [s] and number.
        sign: of ``a_2`` and ``a_3``; as printed 1.
    """
    axes, spin = np.eye(3), SPIN
    rate = -np.cross(SPIN, INERTIA * SPIN) / INERTIA
    a = 4.0 / dt**2, sign * 4.0 / dt, sign, 2.0 / dt, -1.0, 0.0

    def end(alpha: np.ndarray) -> Any:
        q = turned(alpha)
        new = q @ axes
        speed = q @ (a[3] * alpha + a[4] * spin + a[5] * rate)
        change = q @ (a[0] * alpha + a[1] * spin + a[2] * rate)
        momentum = new @ (INERTIA * (new.T @ speed))
        weight = MOMENT * np.array([new[1, 2], -new[0, 2], 0.0])
        turning = new @ (INERTIA * (new.T @ change)) + np.cross(speed, momentum)
        return turning + weight, new, speed, change

    for _ in range(steps):
        alpha = dt * spin
        for _ in range(8):
            residual, size = end(alpha)[0], 1e-6
            slope = [(end(alpha + size * x)[0] - end(alpha - size * x)[0]) / (2 * size) for x in np.eye(3)]
            alpha = alpha - np.linalg.solve(np.stack(slope, axis=1), residual)
        _, axes, spin, rate = end(alpha)
    return np.concatenate([axes[:, 2], axes.T @ spin])


def exact() -> np.ndarray:
    """The same at the end, by Euler's equations."""

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        axes, spin = x[:9].reshape(3, 3), x[9:]
        weight = MOMENT * np.cross(np.array([0.0, 0.0, 1.0]), -axes[2])
        moved = np.stack([np.cross(row, spin) for row in axes])
        return np.concatenate([moved.ravel(), (weight - np.cross(spin, INERTIA * spin)) / INERTIA])

    start = np.concatenate([np.eye(3).ravel(), SPIN])
    end = solve_ivp(rate, (0.0, TIME), start, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    return np.concatenate([end[:9].reshape(3, 3)[:, 2], end[9:]])


def _rodrigues(q: Any, xi: Any) -> Any:
    moved = rotations.multiply(q, jnp.concatenate([jnp.ones(1), 0.5 * xi]))
    return moved / jnp.sqrt(jnp.sum(moved * moved))


def _turning(t: Any, q: Any, v: Any, p: Any) -> Any:
    down = -rotations.matrix(q)[2]
    weight = MOMENT * jnp.cross(jnp.array([0.0, 0.0, 1.0]), down)
    return weight - jnp.cross(v, jnp.asarray(INERTIA) * v)


def packaged(dt: float, retract: Any) -> np.ndarray:
    """The same by the package, with a map of increments."""
    top = System(
        nq=4, nv=3, retract=retract, difference=rotations.rotation_between, force=_turning,
        mass=lambda q, p: jnp.diag(jnp.asarray(INERTIA)),
    )  # fmt: skip
    start: Any = State(t=0.0, q=np.array([1.0, 0.0, 0.0, 0.0]), v=SPIN)  # type: ignore[arg-type]
    scheme = schemes.newmark(contact_tolerance=1e-13)
    traj = nsjax.simulate(top, None, start, scheme, dt=dt, steps=round(TIME / dt))
    traj.raise_for_status()
    axes = np.asarray(rotations.matrix(jnp.asarray(traj.q[-1])))
    return np.concatenate([axes[:, 2], np.asarray(traj.v)[-1]])


MAPS = {"Rodrigues vectors": _rodrigues, "rotation vectors": rotations.rotate}


def rotating() -> common.Numbers:
    """Numbers of the top."""
    numbers: common.Numbers = {}
    end = exact()
    for name, retract in MAPS.items():
        found = {dt: packaged(dt, retract) for dt in BODY_STEPS}
        errors = [float(np.abs(x - end).max()) for x in found.values()]
        numbers[f"{name}: error with {BODY_STEPS[-1]:g} s"] = errors[-1]
        numbers[f"{name}: order"] = observed_order(list(BODY_STEPS), errors)
        own = printed(BODY_STEPS[0], round(TIME / BODY_STEPS[0]))
        numbers[f"{name}: own program beside the package"] = float(np.abs(own - found[BODY_STEPS[0]]).max())
    back = printed(BODY_STEPS[-1], 1, sign=1.0)[3:] @ SPIN / (SPIN @ SPIN)
    numbers["signs as printed: spin after a step over that before"] = float(back)
    return numbers


def _paint(figure: Any, paths: dict[str, np.ndarray]) -> None:
    axes = figure.subplots()
    for k, (name, path) in enumerate(paths.items()):
        if name.endswith(f"{FRAME_STEPS[0]:g}"):
            t = FRAME_STEPS[0] * np.arange(len(path))
            axes.plot(t, path[:, 2], "-" if "obj" in name else "--", color=f"C{k}", label=name)
    axes.set(xlabel="time $t$ [s]", ylabel="height of the tip [m]")
    axes.legend()


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` runs the coarse frame with two kinds of elements."""
    numbers, paths = frames(quick)
    numbers |= rotating()
    return common.finish(
        __file__, folder, numbers, paths, (12.0, 8.0), lambda f: _paint(f, paths), quick=quick
    )


if __name__ == "__main__":
    common.command(main)
