"""Bounds of gaps by which pairs are chosen: never above the gap, and near it where shapes are."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.multibody.contacts.gap_functions import Around, gap_bound

SHAPES, SAMPLES, PAIRS = ("sphere", "box", "capsule", "cylinder"), 4_000, 40


def turned(draw: np.random.Generator, dimension: int) -> np.ndarray:
    """A rotation (d, d)."""
    return np.linalg.qr(draw.normal(size=(dimension, dimension)))[0]


def drawn(draw: np.random.Generator, kind: str, dimension: int) -> tuple[Around, np.ndarray]:
    """A shape and points (SAMPLES, d) of its surface."""
    centre, axes = draw.uniform(-0.6, 0.6, dimension), turned(draw, dimension)
    half, radius = draw.uniform(0.05, 0.4, dimension), draw.uniform(0.05, 0.2)
    ball = draw.normal(size=(SAMPLES, dimension))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    if kind == "sphere":
        return Around(centre=centre, radius=radius, thick=radius), centre + radius * ball
    if kind == "box":
        cube = draw.uniform(-1.0, 1.0, (SAMPLES, dimension))
        cube /= np.max(np.abs(cube), axis=1, keepdims=True)
        shape = Around(centre=centre, radius=np.linalg.norm(half), axes=axes, half=half, thick=0.0)
        return shape, centre + (cube * half) @ axes.T
    along, length = axes[:, :1], half[:1]
    s = draw.choice([-1.0, 1.0, 0.0], SAMPLES)
    s = np.where(s == 0.0, draw.uniform(-1.0, 1.0, SAMPLES), s)
    if kind == "cylinder":
        flat = ball - (ball @ along) * along[:, 0]
        ball = flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-9)
        ball = ball * np.where(np.abs(s) == 1.0, np.sqrt(draw.uniform(0.0, 1.0, SAMPLES)), 1.0)[:, None]
    size = length[0] + radius if kind == "capsule" else np.hypot(length[0], radius)
    shape = Around(centre=centre, radius=size, axes=along, half=length, thick=radius)
    return shape, centre + length * s[:, None] * along[:, 0] + radius * ball


def nearest(one: np.ndarray, other: np.ndarray) -> float:
    """Smallest distance between two sets of points."""
    from scipy.spatial import cKDTree

    return float(np.min(cKDTree(one).query(other)[0]))


CASES = [(3, x) for x in combinations_with_replacement(SHAPES, 2)]
CASES += [(2, x) for x in combinations_with_replacement(SHAPES[:3], 2)]  # cylinders are shapes in space


@pytest.mark.parametrize(
    ("dimension", "kinds"),
    [x if k in (0, 10) else pytest.param(*x, marks=pytest.mark.slow) for k, x in enumerate(CASES)],
)
def test_the_bound_is_not_above_the_gap(dimension: int, kinds: tuple[str, str]) -> None:
    draw = np.random.default_rng(17)
    bound: Any = jax.jit(lambda one, other: gap_bound(kinds, one, other))
    short = []
    for _ in range(PAIRS):
        (one, here), (other, there) = (drawn(draw, kind, dimension) for kind in kinds)
        found = float(bound(*jax.tree.map(jnp.asarray, (one, other))))
        gap = nearest(here, there)
        assert found <= gap + 1e-12
        if found > 0.05:  # apart: sampled points are a few hundredths from the nearest ones at most
            short.append(gap - found)
    assert len(short) > 4
    # exact but for the places of the sampled points
    if set(kinds) <= {"sphere", "capsule"}:
        assert max(short) < 0.06
