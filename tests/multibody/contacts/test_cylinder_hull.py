"""Cylinders on hulls: depths over all directions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from nsjax.multibody import assemble, contact, cylinder, hull
from tests.multibody.contacts.held_features import Program, massive

ROCK = np.random.default_rng(8).normal(size=(12, 3)) * (0.2, 0.2, 0.25)
RADIUS, HALF = 0.12, 0.2
ALONG = np.array([0.6, 0.0, 0.8])


@pytest.fixture(scope="module")
def program() -> Program:
    drum = cylinder("a", RADIUS, HALF, axis=ALONG)
    return Program(
        assemble(massive("a"), massive("b"), contact("drum", drum, hull("b", ROCK), friction=0.3))
    )


def pose(k: int, way: np.ndarray, far: float) -> tuple[np.ndarray, Rotation, Rotation]:
    """A state with the hull away from the cylinder, and both turns."""
    turns = Rotation.random(random_state=k), Rotation.random(random_state=100 + k)
    own = [x.as_quat(scalar_first=True) for x in turns]
    return np.concatenate([np.zeros(3), own[0], far * way / np.linalg.norm(way), own[1]]), *turns


def separation(points: np.ndarray, axis: np.ndarray) -> float:
    """Of a hull and the cylinder round the origin, negative in each other: the largest over directions."""

    def along(way: np.ndarray) -> float:
        n = way / np.linalg.norm(way)
        lean = axis @ n
        reach = HALF * abs(lean) + RADIUS * np.sqrt(max(1.0 - lean * lean, 0.0))
        return float(np.min(points @ n)) - reach

    draw = np.random.default_rng(0)
    ways = [*draw.normal(size=(1000, 3)), *-ConvexHull(points).equations[:, :3], axis, -axis]
    best = sorted(ways, key=along)[-6:]
    ends = [
        optimize.minimize(
            lambda x: -along(x), x, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}
        )
        for x in best
    ]
    return max(-float(x.fun) for x in ends)


@pytest.mark.slow
def test_depths_by_all_directions(program: Program) -> None:
    """Of bodies that are in each other by a millimetre. In one of twelve a rim cuts an edge: its gap is the
    depth of the deepest point of the rim, which is less.
    """
    draw, found = np.random.default_rng(2), []
    for k in range(12):
        way = draw.normal(size=3)
        q, one, other = pose(k, way, 1.0)
        unit, axis, points = way / np.linalg.norm(way), one.apply(ALONG), other.apply(ROCK)
        deep = lambda far: separation(points + far * unit, axis) + 1e-3  # noqa: B023, E731
        far = optimize.brentq(deep, 0.1, 1.5, xtol=1e-7)
        q[7:10] = far * unit
        gap = np.min(np.asarray(program.run(q, np.zeros(12))[0]))
        found.append(gap / separation(points + far * unit, axis))
    # the minimisation over directions ends at 1e-9 m
    assert np.sum(np.abs(np.array(found) - 1.0) < 1e-5) == 11
    assert 0.5 < min(found) <= max(found) < 1.0 + 1e-5
