"""Surfaces of beams as contact shapes: the curve against circles and Bezier's form of it, distances against
fine minimisation, rates against the velocities of the points that meet.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize
from scipy.spatial.transform import Rotation

from nsjax.core.operators import prepared
from nsjax.multibody import assemble, beam, body, circular, contact, fixed, sphere, tube
from nsjax.multibody.contacts import curves

ROUND = circular(0.05, E=2.1e9, rho=7850.0)


def circle(n: int, radius: float = 1.0, part: float = 1.0) -> np.ndarray:
    angles = 2.0 * np.pi * part * np.arange(n + 1) / n
    points = radius * np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=1)
    if part == 1.0:
        points[-1] = points[0]
    return points


def test_a_circle_is_met_to_sixth_order() -> None:
    """The best cubic on an arc of an angle a is off by ``4/27 (a/4)^6`` radii or so: four times that."""
    part = 0.4
    for n in (8, 16):
        points = circle(n, part=part)
        x = curves.curve_of(points)
        u = np.linspace(0.0, n, 20 * n + 1)
        place, *_ = jax.vmap(lambda s, x=x, y=points: curves.curve_at(x, y.T, x.tangents.T, s))(u)
        off = np.abs(np.linalg.norm(place, axis=1) - 1.0)
        assert np.max(off) <= 4.0 * 4.0 / 27.0 * (2.0 * np.pi * part / n / 4.0) ** 6


def test_unequal_elements_and_single_ones() -> None:
    """Tangents of a circle through uneven nodes are its own to second order of the angles, ends too; one
    element is straight.
    """
    angles = np.array([0.0, 0.1, 0.25, 0.31, 0.5])
    points = np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=1)
    wanted = np.stack([-np.sin(angles), np.cos(angles), 0.0 * angles], axis=1)
    np.testing.assert_allclose(curves.curve_of(points).tangents, wanted, atol=0.2**3)
    straight = curves.curve_of(np.array([[0.0, 0, 0], [2.0, 0, 0]]))
    np.testing.assert_allclose(straight.tangents, [[1.0, 0, 0], [1.0, 0, 0]])
    np.testing.assert_allclose([straight.behind[0], straight.before[1]], 2.0)
    traced = jax.jit(lambda y: curves.curve_of(y).tangents)(points)
    np.testing.assert_allclose(traced, curves.curve_of(points).tangents, atol=1e-14)


def bezier(nodes: np.ndarray, tangents: np.ndarray, x: Any, u: float) -> np.ndarray:
    """The curve in Bezier's form; nodes and tangents (n + 1, 3)."""
    k = min(int(u), len(nodes) - 2)
    s = u - k
    inner = nodes[k] + x.behind[k] / 3 * tangents[k], nodes[k + 1] - x.before[k + 1] / 3 * tangents[k + 1]
    weights = (1 - s) ** 3, 3 * s * (1 - s) ** 2, 3 * s * s * (1 - s), s**3
    return sum(w * p for w, p in zip(weights, (nodes[k], *inner, nodes[k + 1]), strict=True))


def least(nodes: np.ndarray, tangents: np.ndarray, x: Any, point: np.ndarray) -> float:
    """Distance by a minimiser on every piece of a tenth of an element."""

    def away(u: float) -> float:
        return float(np.linalg.norm(bezier(nodes, tangents, x, u) - point))

    found = []
    for low in np.arange(0.0, len(nodes) - 1.0, 0.1):
        best = optimize.minimize_scalar(
            away, bounds=(low, low + 0.1), method="bounded", options={"xatol": 1e-12}
        )
        found += [best.fun, away(low), away(min(low + 0.1, len(nodes) - 1.0))]
    return min(found)


def moved(points: np.ndarray, x: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and their tangents after small motions of their own, which leave one nearest point."""
    rng = np.random.default_rng(seed)
    nodes = points + 0.01 * rng.normal(size=points.shape)
    turns = Rotation.from_rotvec(0.05 * rng.normal(size=points.shape))
    tangents = turns.apply(x.tangents)
    if curves.is_closed(points):
        nodes[-1], tangents[-1] = nodes[0], tangents[0]
    return nodes, tangents


@pytest.mark.slow
@pytest.mark.parametrize("part", [1.0, 0.4])
def test_nearest_points(part: float) -> None:
    """Of random points beside curves of moved nodes; beyond the ends of an open one, the ends."""
    points = circle(9, part=part)
    x, closed = curves.curve_of(points), part == 1.0

    @jax.jit
    def distance(nodes: Any, tangents: Any, point: Any) -> Any:
        near = curves.curve_searched(x, nodes, tangents, point, closed)
        u = curves.closest_on_curve(x, nodes, tangents, point, near, closed)
        return jnp.linalg.norm(curves.curve_at(x, nodes, tangents, u)[0] - point)

    rng = np.random.default_rng(8)
    ends = 0
    for seed in range(12):
        nodes, tangents = moved(points, x, seed)
        angle = 2.0 * np.pi * rng.uniform(-0.1, 0.5)
        point = 1.15 * np.array([np.cos(angle), np.sin(angle), 0.2 * rng.normal()])
        found = float(distance(nodes.T, tangents.T, point))
        assert abs(found - least(nodes, tangents, x, point)) <= 1e-9
        ends += not closed and min(np.linalg.norm(point - nodes[k]) for k in (0, -1)) - found < 1e-12
        slope = jax.grad(distance, argnums=(0, 1, 2))(nodes.T, tangents.T, point)
        assert all(np.all(np.isfinite(s)) for s in slope)
        assert np.linalg.norm(slope[2]) == pytest.approx(1.0, abs=1e-9)  # of any distance
    assert closed or ends >= 2


def ring(points: np.ndarray, *more: Any) -> Any:
    """A ring and a ball beside it."""
    return assemble(
        beam("ring", points, section=ROUND, first_axis=(0, 0, 1.0)),
        body("ball", mass=1.0, inertia=(1.0, 1.0, 1.0)),
        contact("nose", sphere("ball", 0.1, at=(0.0, 0.05, 0.0)), tube("ring", 0.05), friction=0.3), *more,
        start={"ball": (1.3, 0.1, 0.02)},
    )  # fmt: skip


@pytest.mark.slow
def test_rates_of_a_mechanism() -> None:
    """The gap's rate is that of the points that meet, and the slip theirs across; as a rigid body the ring
    carries them so. Where the centre meets the axis, numbers stay numbers.
    """
    problem = ring(circle(8), fixed("seam", "ring.end", "ring.start"))
    system, zero, rng = problem.system, jnp.zeros(()), np.random.default_rng(1)
    mechanism = system.gap.__self__
    p = prepared(system, jax.tree.map(lambda x: jnp.asarray(x, float), problem.params))

    @jax.jit
    def all_of(q: Any, v: Any) -> tuple[Any, ...]:
        fresh = system.refresh(zero, q, p)
        gap = lambda xi: system.gap(zero, system.retract(q, xi), fresh)  # noqa: E731
        value, rate = jax.jvp(gap, (jnp.zeros(system.nv),), (v,))
        (met,) = mechanism.named.meetings(mechanism.scene(zero, q, v, fresh), fresh)
        scene = mechanism.scene(zero, q, v, fresh)
        ball = scene.motion("ball", met.here - scene.frame("ball").origin)
        across = jnp.stack([jnp.sum(t * (ball - met.carried)) for t in met.tangents])
        toward = jnp.sum(met.normal * (ball - met.carried))
        return value[0], rate[0], toward, system.slip(zero, q, v, fresh)[0], across, met.there, met.carried

    q0, gaps = np.asarray(problem.state.q), []
    for k in range(8):
        v = rng.normal(size=system.nv)
        q = np.asarray(system.retract(q0, 0.02 * rng.normal(size=system.nv)))
        if k > 4:  # spins and velocities of one rigid body: the point moves with it
            spin, speed = rng.normal(size=(2, 3))
            q, places = q0, q0.reshape(-1, 7)[:9, :3]
            v[:54] = np.concatenate([speed + np.cross(spin, places), np.tile(spin, (9, 1))], axis=1).ravel()
        if k == 4:
            q = q0.copy()
            q[63:66] = [1.0, -0.05, 0.0]
        value, rate, toward, slip, across, there, carried = all_of(q, v)
        gaps.append(float(value))
        assert all(np.all(np.isfinite(x)) for x in (value, rate, slip))
        assert abs(rate - toward) <= 1e-9 * np.linalg.norm(v)
        np.testing.assert_allclose(slip, across, atol=1e-12)
        if k > 4:
            np.testing.assert_allclose(carried, speed + np.cross(spin, there), atol=1e-9)
    assert gaps[4] == pytest.approx(-0.15, abs=1e-9)
