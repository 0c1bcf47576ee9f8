"""Free bodies that land in any attitude, bounce, slide and come to rest: every step is solved."""

from __future__ import annotations

import numpy as np
import pytest

import nsjax
from nsjax import Problem, schemes
from nsjax.multibody import assemble, body, box, capsule, contact, cylinder, plane
from tests.design import each_family

THIRD = 1.0 / 600.0  # m^2, of a cube of 1 kg with edges of 0.1 m
SHAPES = {
    "cube": ((THIRD, THIRD, THIRD), box("a", 0.05, 0.05, 0.05)),
    "cylinder": ((THIRD, THIRD, 1.0 / 800.0), cylinder("a", 0.05, 0.05, axis=(0.0, 0.0, 1.0))),
    "capsule": ((1.0 / 800.0, THIRD, THIRD), capsule("a", 0.04, 0.06)),
}


def landing(kind: str) -> Problem:
    """A body above a plane, or two boxes that meet above it."""
    given = {"restitution": 0.3, "friction": 0.5}
    if kind != "boxes":
        inertia, shape = SHAPES[kind]
        return assemble(
            body("a", mass=1.0, inertia=inertia), contact("floor", shape, plane(), **given),
            gravity=9.81, start={"a": (0.0, 0.0, 0.2)},
        )  # fmt: skip
    a, b = box("a", 0.05, 0.05, 0.05), box("b", 0.05, 0.05, 0.06)
    return assemble(
        body("a", mass=1.0, inertia=(THIRD, THIRD, THIRD)),
        body("b", mass=1.7, inertia=(1.7 * THIRD, 1.7 * THIRD, 2.0 * THIRD)),
        contact("floor_a", a, plane(), **given), contact("floor_b", b, plane(), **given),
        contact("blow", a, b, **given),
        gravity=9.81, start={"a": (0.0, 0.0, 0.2), "b": (0.3, 0.0, 0.15)},
    )  # fmt: skip


def failures(kind: str, scheme: str, dt: float, runs: int, seed: int, duration: float) -> list[tuple]:
    """Restitution, friction and status of runs that did not end well: attitudes and spins (3 rad/s) drawn,
    restitution 0 to 0.9, friction 0 to 1, every tenth run with coefficients at the ends of these.
    """
    problem, rng = landing(kind), np.random.default_rng(seed)
    q, v = (np.tile(np.asarray(x), (runs, 1)) for x in (problem.state.q, problem.state.v))
    for k in range(v.shape[1] // 6):
        turn, spin = rng.normal(size=(runs, 4)), rng.normal(size=(runs, 3))
        q[:, 7 * k + 3 : 7 * k + 7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
        v[:, 6 * k + 3 : 6 * k + 6] = 3.0 * spin / np.linalg.norm(spin, axis=1, keepdims=True)
        if kind == "boxes":
            q[:, 7 * k + 1] += rng.uniform(-0.03, 0.03, runs)
            v[:, 6 * k : 6 * k + 3] = 0.3 * rng.normal(size=(runs, 3)) + np.array([1.0 - 2.0 * k, 0.0, 0.0])
    ends = rng.uniform(size=(2, runs)) < 0.1
    e = np.where(ends[0], rng.choice([0.0, 0.9], runs), rng.uniform(0.0, 0.9, runs))
    mu = np.where(ends[1], rng.choice([0.0, 1.0], runs), rng.uniform(0.0, 1.0, runs))
    over = {"state.q": q, "state.v": v}
    for name in ("floor",) if kind != "boxes" else ("floor_a", "floor_b", "blow"):
        over |= {f"params.{name}.restitution": e, f"params.{name}.friction": mu}
    steps = round(duration / dt)
    swept = nsjax.sweep(problem, schemes.REGISTRY[scheme].factory(), over, dt=dt, steps=steps, every=steps)
    status = np.asarray(swept.status)
    return [(k, e[k], mu[k], status[k]) for k in np.flatnonzero(status != 0)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*SHAPES, "boxes"])
def test_bodies_come_to_rest(kind: str) -> None:
    assert failures(kind, "moreau", 1e-3, 380, 1, 1.5) == []


@each_family("scheme")
def test_a_cube_comes_to_rest_with_every_scheme(scheme: str) -> None:
    assert failures("cube", scheme, 1e-3, 12, 3, 1.0) == []
