"""Contacts of boxes: none where they are apart, faces that lie on each other."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import spatial
from scipy.spatial.transform import Rotation

from nsjax.multibody.contacts import boxes

ONE, OTHER = np.array([0.5, 0.3, 0.2]), np.array([0.25, 0.4, 0.6])


def rotation(dimension: int, draw: Any) -> np.ndarray:
    if dimension == 3:
        return Rotation.random(random_state=draw).as_matrix()
    angle = draw.uniform(0.0, 2.0 * np.pi)
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def rows(one: boxes.Box, other: boxes.Box) -> Any:
    held = boxes.hold(one, other)
    return dataclasses.asdict(boxes.meet(one, other, held)), held


evaluate = jax.jit(rows)


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
