"""Cylinders on hulls: distances by a convex program, depths over all directions, what stands and lies."""

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


def distance(points: np.ndarray, axis: np.ndarray) -> float:
    """Of a hull from the cylinder round the origin: a convex program over a point of each."""
    faces = ConvexHull(points).equations
    limits = [
        {"type": "ineq", "fun": lambda x: -faces[:, :3] @ x[3:] - faces[:, 3]},
        {"type": "ineq", "fun": lambda x: HALF**2 - (axis @ x[:3]) ** 2},
        {"type": "ineq", "fun": lambda x: RADIUS**2 - x[:3] @ x[:3] + (axis @ x[:3]) ** 2},
    ]
    start = np.concatenate([np.zeros(3), np.mean(points, axis=0)])
    found = optimize.minimize(
        lambda x: np.sum((x[:3] - x[3:]) ** 2), start, constraints=limits, method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 500},
    )  # fmt: skip
    return float(np.sqrt(found.fun))


@pytest.mark.slow
def test_distances_by_minimisation(program: Program) -> None:
    """The smallest gap is the distance of both, to what the program leaves; rates forward and reverse."""
    draw, compared = np.random.default_rng(1), 0
    for k in range(30):
        q, one, other = pose(k, draw.normal(size=3), draw.uniform(0.45, 1.0))
        v = draw.normal(size=12)
        gap, rate, reverse, slip = (np.asarray(x) for x in program.run(q, v))
        assert all(np.all(np.isfinite(x)) for x in (gap, rate, slip))
        assert np.max(np.abs(rate - reverse)) < 1e-12
        asked = distance(q[7:10] + other.apply(ROCK), one.apply(ALONG))
        if asked > 1e-3:
            compared += 1
            assert abs(np.min(gap) - asked) < 1e-6, k
    assert compared > 15


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
