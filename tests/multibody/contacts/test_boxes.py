"""Contacts of boxes and of capsules with boxes: distances by bounded least squares, faces that lie on
each other, what rests.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, spatial
from scipy.spatial.transform import Rotation

from nsjax.multibody.contacts import boxes
from nsjax.multibody.contacts import closest_points as closest
from nsjax.multibody.contacts.closest_points import ShapeContacts

ONE, OTHER = np.array([0.5, 0.3, 0.2]), np.array([0.25, 0.4, 0.6])
NEAR = 1e-4
"""Distance at which nearest features are looked at: small against the edges."""

CASES = 6


def rotation(dimension: int, draw: Any) -> np.ndarray:
    if dimension == 3:
        return Rotation.random(random_state=draw).as_matrix()
    angle = draw.uniform(0.0, 2.0 * np.pi)
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def distance(one: boxes.Box, other: boxes.Box) -> float:
    """Of two boxes, by bounded least squares over points of both."""
    bounds = np.concatenate([one.half, other.half])
    axes = np.concatenate([np.asarray(one.axes), -np.asarray(other.axes)], axis=1)
    apart = np.asarray(other.centre) - np.asarray(one.centre)
    found = optimize.lsq_linear(axes, apart, (-bounds, bounds), tol=1e-15)
    return float(np.linalg.norm(axes @ found.x - apart))


def approached(dimension: int, half: Any, draw: Any) -> tuple[boxes.Box, boxes.Box]:
    """The first box, moved along a line until it is `NEAR`."""
    d = dimension
    one = boxes.Box(np.zeros(d), rotation(d, draw), np.asarray(half, float)[:d])
    other = boxes.Box(draw.normal(size=d), rotation(d, draw), OTHER[:d])
    way = draw.normal(size=d)
    way, aim = way / np.linalg.norm(way), draw.normal(size=d) * 0.1

    def at(s: float) -> boxes.Box:
        return one._replace(centre=other.centre + aim + s * way)

    return at(optimize.brentq(lambda s: distance(at(s), other) - NEAR, 0.0, 3.0, xtol=1e-9)), other


def rows(one: boxes.Box, other: boxes.Box) -> Any:
    held = boxes.hold(one, other)
    return dataclasses.asdict(boxes.meet(one, other, held)), held


evaluate = jax.jit(rows)


def capsule_rows(one: boxes.Box, other: boxes.Box) -> jax.Array:
    """Distances of the axis of a box without width from another box."""
    local = [boxes.components(other.axes, x) for x in (one.centre - other.centre, one.axes[:, 0])]
    places, kept = closest.along_box(*local, one.half[0], other.half)
    points = local[0][:, None] + places * local[1][:, None]
    gaps, _ = jax.vmap(closest.boxed, (1, None))(points, other.half)
    return jnp.where(kept, gaps, jnp.inf)


@pytest.mark.parametrize("dimension", [3, pytest.param(2, marks=pytest.mark.slow)])
def test_distances(dimension: int) -> None:
    """Of boxes that almost touch, in general positions: the smallest gap is their distance, and follows the
    first box by its own normal into the second; of an axis from a box at any distance.
    """
    draw = np.random.default_rng(dimension)
    line = jax.jit(capsule_rows)
    crossings = 0
    for _ in range(CASES):
        one, other = approached(dimension, ONE, draw)
        found, held = evaluate(one, other)
        met = ShapeContacts(**found)
        k = int(np.argmin(met.gap))
        # nearest points within NEAR of each other are on a feature of each, but where a corner passes an
        # edge so near that both count: off by the square of NEAR over the edges at most
        assert abs(met.gap[k] - NEAR) <= NEAR**1.5
        assert abs(np.linalg.norm(met.here[:, k] - met.there[:, k]) - NEAR) <= NEAR**1.5
        crossings += dimension == 3 and bool(held.crossed)
        moved = one._replace(centre=one.centre - 2.0 * NEAR * np.asarray(met.normal[:, k]))
        assert abs(np.min(evaluate(moved, other)[0]["gap"]) + NEAR) <= NEAR**1.5
        thin = one._replace(half=np.array([0.5, 1e-9, 1e-9])[:dimension])
        assert abs(np.min(line(thin, other)) - distance(thin, other)) <= 1e-7
    assert dimension == 2 or crossings >= 2


@pytest.mark.parametrize("dimension", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_boxes_that_are_apart_are_open(dimension: int) -> None:
    """In general and in right-angled positions, far beside each other: no contact seems to be closed."""
    draw, count = np.random.default_rng(4), 3000
    one = [rotation(dimension, draw) for _ in range(count)]
    other = [rotation(dimension, draw) if k % 2 else np.eye(dimension) for k in range(count)]
    if dimension == 3:  # a quarter of the pairs has parallel axes, another one a common axis
        for k in range(0, count, 4):
            one[k] = Rotation.from_euler("xyz", draw.integers(0, 4, 3) * 90, degrees=True).as_matrix()
            one[k + 2] = one[k] @ Rotation.from_euler("y", draw.uniform(-2.0, 2.0)).as_matrix()
    way = draw.normal(size=(count, dimension))
    spheres = float(np.linalg.norm(ONE[:dimension]) + np.linalg.norm(OTHER[:dimension]))
    away = spheres * (1.01 + draw.exponential(1.5, count))
    way *= (away / np.linalg.norm(way, axis=1))[:, None]

    def least(centre: jax.Array, turn: jax.Array, base: jax.Array) -> jax.Array:
        first = boxes.Box(centre, turn, jnp.asarray(ONE[:dimension]))
        second = boxes.Box(jnp.zeros(dimension), base, jnp.asarray(OTHER[:dimension]))
        return jnp.min(boxes.meet(first, second, boxes.hold(first, second)).gap)

    found = jax.jit(jax.vmap(least))(*map(jnp.asarray, (way, np.stack(one), np.stack(other))))
    assert float(jnp.min(found)) > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [2, 3])
def test_rates_are_those_of_the_points_that_meet(dimension: int) -> None:
    """Of every row with a contact, whichever box moves; all derivatives are numbers."""
    draw = np.random.default_rng(7 + dimension)

    @jax.jit
    def rates(one: boxes.Box, other: boxes.Box, v: jax.Array, spin: jax.Array) -> Any:
        held, found = boxes.hold(one, other), []
        for k, side in ((0, "here"), (1, "there")):
            box = (one, other)[k]
            moved = boxes.Box(v, spin @ box.axes, jnp.zeros(dimension))
            still = jax.tree.map(jnp.zeros_like, moved)
            both = (moved, still) if k == 0 else (still, moved)
            met, rate = jax.jvp(lambda *x: dataclasses.asdict(boxes.meet(*x, held)), (one, other), both)
            velocity = v[:, None] + spin @ (met[side] - box.centre[:, None])
            found.append((rate["gap"], (1.0 - 2.0 * k) * jnp.sum(met["normal"] * velocity, axis=0)))
        return found, met["gap"], rate

    for _ in range(CASES):
        one, other = approached(dimension, ONE, draw)
        turn = draw.normal(size=(dimension, dimension))
        found, gap, every = rates(one, other, draw.normal(size=dimension), turn - turn.T)
        for rate, wanted in found:
            # normals of edges turn with the boxes, which counts by the gap
            assert np.max(np.abs(rate - wanted)[gap <= 2.0 * NEAR]) <= 10.0 * NEAR
        assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(every))


def area(points: np.ndarray) -> float:
    """Of the convex hull of points of the plane; zero for one that is no area."""
    return float(spatial.ConvexHull(points.T).volume)


HALF = np.array([0.3, 0.3, 0.2])
REACH = 0.3 * np.sqrt(2.0)
"""Of a corner of the face from its middle."""

# what of the upper face, with corners at (0.2 +- REACH, 0.2) and (0.2, 0.2 +- REACH), is below x, y = 0.3
PENTAGON = 2.0 * REACH**2 - 2.0 * (REACH - 0.1) ** 2 + 0.5 * (REACH - 0.2) ** 2
LIES = {
    "aligned": (0.0, (0.0, 0.0), 4, 0.36), "shifted": (0.0, (0.3, 0.2), 4, 0.3 * 0.4),
    "twisted": (np.pi / 4.0, (0.0, 0.0), 8, 8.0 * (np.sqrt(2.0) - 1.0) * 0.09),
    "almost aligned": (1e-9, (0.0, 0.0), 4, 0.36), "over a corner": (np.pi / 4.0, (0.2, 0.2), 5, PENTAGON),
    "a corner on a border": (np.pi / 4.0, (0.3, 0.3), 3, 0.5 * 0.18),
}  # fmt: skip
"""Turn and shift of a cube's face on another one; corners of what they share, and its area."""


@pytest.mark.slow
def test_faces_that_lie_on_each_other() -> None:
    """As many different rows as the polygon of contact has corners, whose area is the closed form; finite
    derivatives.
    """
    height = np.array([0.0, 0.0, 0.4])
    still = boxes.Box(np.zeros(3), np.eye(3), HALF)
    for (turn, shift, corners, wanted), flipped in itertools.product(LIES.values(), (False, True)):
        axes = Rotation.from_rotvec([0.0, 0.0, turn]).as_matrix()
        upper = boxes.Box(height + np.array([*shift, 0.0]), axes, HALF)
        found, _ = evaluate(*((still, upper) if flipped else (upper, still)))
        touching = np.abs(found["gap"]) <= 1e-12
        assert np.sum(touching) == corners
        points = np.asarray(found["here"])[:2, touching]
        apart = np.linalg.norm(points[:, :, None] - points[:, None], axis=0) + np.eye(corners)
        assert np.min(apart) > 0.01
        assert area(points) == pytest.approx(wanted, rel=1e-5)
        up = np.asarray(found["normal"])[:, touching]
        assert np.allclose(up, [[0.0], [0.0], [-1.0 if flipped else 1.0]], atol=1e-12)

    def total(centre: jax.Array) -> jax.Array:
        return jnp.sum(rows(still._replace(centre=centre), still)[0]["gap"])

    for centre in (np.zeros(3), height, 2.0 * HALF):
        assert np.all(np.isfinite(jax.jit(jax.grad(total))(centre)))
