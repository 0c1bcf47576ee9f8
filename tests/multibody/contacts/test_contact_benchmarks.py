"""Contacts of mechanisms from parts against closed forms: rolling, row of spheres, stack, drop."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.multibody import (
    assemble,
    body,
    contact,
    plane,
    points,
    slide,
    sphere,
)
from tests.design import slow_but


@pytest.mark.slow
def test_from_sliding_to_rolling() -> None:
    """A sphere that starts sliding rolls with 5/7 of its speed, whatever the friction and the step."""
    radius, mass = 0.1, 2.0
    problem = assemble(
        body("ball", mass=mass, inertia=np.full(3, 0.4 * mass * radius**2)),
        contact("floor", sphere("ball", radius), plane(), friction=0.3),
        gravity=9.81,
        start={"ball": ((0.0, 0.0, radius), (3.0, 4.0, 0.0))},
    )
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=2e-3, time=1.0, every=10)
    speed = traj.body("ball").velocity
    assert np.allclose(speed[-1], np.array([3.0, 4.0, 0.0]) * 5.0 / 7.0, atol=1e-10)
    sliding = traj.t < 2.0 / 7.0 * 5.0 / (0.3 * 9.81)
    wanted = 5.0 - 0.3 * 9.81 * traj.t[sliding]
    assert np.max(np.abs(np.linalg.norm(speed[sliding], axis=1) - wanted)) <= 1e-9


def collided(x: np.ndarray, v: np.ndarray, size: float, restitution: float, until: float) -> np.ndarray:
    """Velocities of equal spheres in a row after their impacts one by one."""
    t, x, v = 0.0, x.copy(), v.copy()
    while True:
        closing = v[:-1] - v[1:]
        room = np.where(closing > 1e-12, np.diff(x) - size, np.inf) / np.where(
            closing > 1e-12, closing, 1.0
        )
        k = int(np.argmin(room))
        if t + room[k] > until:
            return v
        t, x = t + room[k], x + room[k] * v
        change = (1.0 + restitution) * closing[k] / 2.0
        v[k], v[k + 1] = v[k] - change, v[k + 1] + change


@pytest.mark.parametrize("restitution", slow_but([1.0, 0.7], 0.7))
def test_row_of_spheres(restitution: float) -> None:
    """Four equal spheres with room between them: velocities after all impacts, and momentum."""
    names, places = "abcd", np.array([0.0, 0.35, 0.68, 1.03])
    problem = assemble(
        *(body(x, mass=1.5) for x in names),
        *(slide(f"rail_{x}", "ground", x) for x in names),
        *(
            contact(f"{x}{y}", sphere(x, 0.1), sphere(y, 0.1), restitution=restitution)
            for x, y in itertools.pairwise(names)
        ),
        start={f"rail_{x}": (float(s), 2.0 * (x == "a")) for x, s in zip(names, places, strict=True)},
    )
    problem = problem.replace({f"{x}{y}.restitution": restitution for x, y in ("ab", "bc", "cd")})
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-4, time=1.0, every=1000)
    found = collided(places, np.array([2.0, 0.0, 0.0, 0.0]), 0.2, restitution, 1.0)
    assert np.allclose(traj.v[-1], found, atol=1e-12)
    assert np.allclose(np.sum(traj.v, axis=1), 2.0, atol=1e-13)
    if restitution == 1.0:
        assert np.allclose(found, [0.0, 0.0, 0.0, 2.0], atol=1e-13)


def stack(n: int) -> Any:
    """Boxes on one another: the lower corners of each against the top of the one below."""
    half, parts = 0.05, []
    feet = np.array([[-half, -half], [half, -half]])
    for k in range(n):
        parts.append(body(f"box{k}", mass=1.0, inertia=2.0 / 3.0 * half**2))
        below = plane() if k == 0 else plane(f"box{k - 1}", at=(0.0, half))
        parts.append(contact(f"on{k}", points(f"box{k}", feet), below, friction=0.5))
    start = {f"box{k}": (0.0, half * (2 * k + 1), 0.0) for k in range(n)}
    return assemble(*parts, gravity=9.81, start=start)


@pytest.mark.slow
def test_stack_at_rest() -> None:
    """Nothing moves, and every pair of feet carries the weight above it."""
    n, steps = 3, 1000
    problem = stack(n)
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=steps, every=steps // 10)
    traj.raise_for_status()
    assert np.max(np.abs(traj.v)) <= 1e-9
    # rest of the solver's tolerance, which may add up over the steps
    assert np.max(np.abs(traj.q - problem.state.q)) <= 1e-12 * steps
    for k in range(n):
        load = np.sum(np.asarray(traj.contact(f"on{k}").force)[-1].reshape(2, -1)[:, 0])
        assert abs(load - (n - k) * 9.81) <= 1e-6
