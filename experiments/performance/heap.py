"""Heaps of spheres in a box, with friction: a step beside MuJoCo's on the same scene.

The scene is that of `experiments.contact.table_spheres`: spheres of slightly different radii that fall
into a box. MuJoCo's contacts are soft, its friction cones elliptic, and its solver takes as many iterations
as it is set to by default. Ours are rigid, and every step has a certificate.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

import nsjax
from nsjax import Problem, schemes
from nsjax.analysis import observed_order

from ..contact.table_spheres import DT, FRICTION, box
from .side_by_side import Row

SIZES, FALL, MEASURED = (100, 300, 1_000), 300, 50
"""Numbers of spheres; of steps before the measurement, at a loose tolerance; and of timed steps."""

LOOSE, CERTIFIED = 1e-3, 1e-8
"""Tolerance of the steps before the measurement, and bound on the certificate of the timed steps."""

OVER_MUJOCO, SLOPE = 3.0, 1.2


def scene(problem: Problem) -> str:
    """The heap in MuJoCo's format."""
    p: Any = problem.params
    places = np.asarray(problem.state.q).reshape(-1, 6)[:, :3]
    planes = [
        f'<geom type="plane" size="0 0 1" pos="{_words(level * normal)}" zaxis="{_words(normal)}"/>'
        for normal, level in zip(np.asarray(p.normal), np.asarray(p.level), strict=True)
    ]
    balls = [
        f'<body pos="{_words(x)}"><freejoint/><geom size="{r:.17g}" mass="{m:.17g}"/></body>'
        for x, r, m in zip(places, np.asarray(p.radius), np.asarray(p.mass), strict=True)
    ]
    return (
        f'<mujoco><option timestep="{DT}" cone="elliptic"/><size memory="200M"/>'
        f'<default><geom friction="{FRICTION} 0 0" condim="3"/></default>'
        f"<worldbody>{''.join(planes + balls)}</worldbody></mujoco>"
    )


def _words(x: np.ndarray) -> str:
    return " ".join(f"{y:.17g}" for y in x)


def _theirs(problem: Problem, fall: int, measured: int) -> tuple[float, int]:
    """Time of a step of MuJoCo [ms], and its number of contacts at the end."""
    import mujoco

    model: Any = mujoco.MjModel.from_xml_string(scene(problem))
    data: Any = mujoco.MjData(model)
    speed = np.asarray(problem.state.v).reshape(-1, 6)
    data.qvel[:] = speed.reshape(-1)
    mujoco.mj_step(model, data, nstep=fall)
    began = time.process_time()
    mujoco.mj_step(model, data, nstep=measured)
    return 1e3 * (time.process_time() - began) / measured, int(data.ncon)


def _ours(problem: Problem, fall: int, measured: int) -> tuple[float, float, float]:
    """Time of a step at the default tolerance [ms], the largest certificate, and loaded contacts."""
    keep = ("iterations", "residual", "impulse_normal")
    system, params, state = problem

    def run(steps: int, scheme: Any, carry: Any) -> Any:
        return jax.block_until_ready(
            nsjax.simulate(system, params, state, scheme, dt=DT, steps=steps, save=keep, carry=carry)
        )

    carry = run(fall, schemes.moreau(tolerance=LOOSE), None).carry
    run(measured, schemes.moreau(tolerance=LOOSE), carry)  # compiles
    began = time.process_time()
    traj = run(measured, schemes.moreau(), carry)
    spent = 1e3 * (time.process_time() - began) / measured
    loaded = np.mean(np.sum(np.asarray(traj.impulse_normal)[1:] > 0.0, axis=1))
    return spent, float(np.max(np.asarray(traj.residual))), float(loaded)


def heap(quick: bool) -> Iterator[Row]:
    """Spheres that settle: time of a step over MuJoCo's, certificate, exponent of the cost."""
    nsjax.configure()
    cost, sizes = [], (20,) if quick else SIZES
    fall, measured = (50, 10) if quick else (FALL, MEASURED)
    for count in sizes:
        problem = box(count)
        spent, worst, loaded = _ours(problem, fall, measured)
        cost.append(spent)
        yield Row(f"{count} spheres: largest certificate", worst, CERTIFIED)
        try:
            theirs, touching = _theirs(problem, fall, measured)
        except ImportError:
            yield Row(f"{count} spheres: moreau over mj_step", note="no MuJoCo: pip install 'nsjax[bench]'")
            continue
        note = f"{spent:.3g} over {theirs:.3g} ms, {loaded:.0f} and {touching} contacts"
        yield Row(f"{count} spheres: moreau over mj_step", spent / theirs, OVER_MUJOCO, note=note)
    if not quick:
        found = observed_order(sizes, cost)
        yield Row("exponent of the cost of a step", found, SLOPE)
