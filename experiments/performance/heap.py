"""Heaps of spheres and of boxes, with friction: a step beside MuJoCo's on the same scene.

Spheres of slightly different radii fall into a box (`experiments.contact.table_spheres`), and boxes of
slightly different edges into another one. MuJoCo's contacts are soft, its friction cones elliptic, and its
solver takes as many iterations as it is set to by default. Ours are rigid, and every step is certified.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

import nsjax
from nsjax import Problem, multibody, schemes

from ..contact import table_spheres
from ..contact.table_spheres import DENSITY, DT, FRICTION, RADIUS
from .side_by_side import Row

SIZES, BOXES, FALL, MEASURED = (100, 300, 1_000), 200, 300, 50
"""Numbers of spheres; of boxes; of steps before the measurement, at a loose tolerance; of timed steps."""

LOOSE, CERTIFIED = 1e-3, 1e-8
"""Tolerance of the steps before the measurement, and bound on the certificate of the timed steps."""

OVER_MUJOCO, SLOPE = 3.0, 1.2

NEAR = 8
"""Capacity of a heap of boxes, for pairs of boxes and for those with walls, in multiples of the boxes."""


@dataclasses.dataclass(frozen=True)
class Heap:
    """A heap as a problem, and the same in MuJoCo's format with its velocities (n, 6) at the start."""

    problem: Problem
    scene: str
    speed: np.ndarray


def _words(x: Any) -> str:
    return " ".join(f"{y:.17g}" for y in np.asarray(x))


def _scene(planes: list[tuple[Any, Any]], bodies: list[tuple[Any, str]]) -> str:
    """Fixed planes by place and normal, and free bodies by place and geometry."""
    walls = [f'<geom type="plane" size="0 0 1" pos="{_words(x)}" zaxis="{_words(n)}"/>' for x, n in planes]
    free = [f'<body pos="{_words(x)}"><freejoint/><geom {geom}/></body>' for x, geom in bodies]
    return (
        f'<mujoco><option timestep="{DT}" cone="elliptic"/><size memory="200M"/>'
        f'<default><geom friction="{FRICTION} 0 0" condim="3"/></default>'
        f"<worldbody>{''.join(walls + free)}</worldbody></mujoco>"
    )


def spheres(count: int) -> Heap:
    """Spheres in a box."""
    problem = table_spheres.box(count)
    p: Any = problem.params
    planes = [(level * normal, normal) for normal, level in zip(p.normal, p.level, strict=True)]
    places = np.asarray(problem.state.q).reshape(-1, 6)[:, :3]
    balls = [
        (x, f'size="{r:.17g}" mass="{m:.17g}"') for x, r, m in zip(places, p.radius, p.mass, strict=True)
    ]
    return Heap(problem, _scene(planes, balls), np.asarray(problem.state.v).reshape(-1, 6))


def boxes(count: int, seed: int = 0) -> Heap:
    """Boxes in layers, with sideways speed."""
    draw = np.random.default_rng(seed)
    centres, walls = table_spheres.layers(count, 2.4)
    centres += draw.uniform(-0.05, 0.05, (count, 3)) * RADIUS
    half = RADIUS * draw.uniform(0.9, 1.0, (count, 3))
    speed = np.concatenate([0.3 * draw.normal(size=(count, 3)), np.zeros((count, 3))], axis=1)
    planes, mass = [(level * n, n) for n, level in walls], 8.0 * DENSITY * np.prod(half, axis=1)
    names = [f"box{k}" for k in range(count)]
    square = np.square(half)
    inertia = mass[:, None] / 3.0 * (np.sum(square, axis=1, keepdims=True) - square)
    shapes = [multibody.box(name, *edges) for name, edges in zip(names, half, strict=True)]
    shapes += [multibody.plane(at=x, normal=n) for x, n in planes]
    problem = multibody.assemble(
        *(multibody.body(x, mass=m, inertia=i) for x, m, i in zip(names, mass, inertia, strict=True)),
        multibody.contact_group("heap", shapes, friction=FRICTION, capacity=NEAR * count),
        gravity=9.81, coordinates="absolute",
        start={name: (x, v) for name, x, v in zip(names, centres, speed, strict=True)},
    )  # fmt: skip
    bodies = [
        (x, f'type="box" size="{_words(edges)}" mass="{m:.17g}"')
        for x, edges, m in zip(centres, half, mass, strict=True)
    ]
    return Heap(problem, _scene(planes, bodies), speed)


def _theirs(heap: Heap, fall: int, measured: int) -> tuple[float, int]:
    """Time of a step of MuJoCo [ms], and its number of contacts at the end."""
    import mujoco

    model: Any = mujoco.MjModel.from_xml_string(heap.scene)
    data: Any = mujoco.MjData(model)
    data.qvel[:] = heap.speed.reshape(-1)
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

    carry = run(fall, schemes.moreau(contact_tolerance=LOOSE), None).carry
    run(measured, schemes.moreau(contact_tolerance=LOOSE), carry)  # compiles
    began = time.process_time()
    traj = run(measured, schemes.moreau(), carry)
    spent = 1e3 * (time.process_time() - began) / measured
    loaded = np.mean(np.sum(np.asarray(traj.impulse_normal)[1:] > 0.0, axis=1))
    return spent, float(np.max(np.asarray(traj.residual))), float(loaded)


def _rows(name: str, heap: Heap, fall: int, measured: int) -> tuple[float, list[Row]]:
    """Time of a step [ms], and the rows of a heap."""
    spent, worst, loaded = _ours(heap.problem, fall, measured)
    rows = [Row(f"{name}: largest certificate", worst, CERTIFIED)]
    try:
        theirs, touching = _theirs(heap, fall, measured)
    except ImportError:
        rows.append(Row(f"{name}: moreau over mj_step", note="no MuJoCo: pip install 'nsjax[bench]'"))
    else:
        note = f"{spent:.3g} over {theirs:.3g} ms, {loaded:.0f} and {touching} contacts"
        rows.append(Row(f"{name}: moreau over mj_step", spent / theirs, OVER_MUJOCO, note=note))
    return spent, rows


def heap(quick: bool) -> Iterator[Row]:
    """Bodies that settle: time of a step over MuJoCo's, certificate, exponent of the cost of spheres."""
    nsjax.configure()
    cost, sizes = [], (20,) if quick else SIZES
    fall, measured = (50, 10) if quick else (FALL, MEASURED)
    for count in sizes:
        spent, rows = _rows(f"{count} spheres", spheres(count), fall, measured)
        cost.append(spent)
        yield from rows
    if quick:
        return
    found = float(np.polyfit(np.log(sizes), np.log(cost), 1)[0])
    yield Row("exponent of the cost of a step of spheres", found, SLOPE)
    yield from _rows(f"{BOXES} boxes", boxes(BOXES), fall, measured)[1]
