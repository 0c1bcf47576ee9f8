"""Rows of contacts from the screws of all velocities, for every pair of shapes."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.core.operators import all_rows, prepared
from nsjax.multibody import (
    assemble,
    ball,
    body,
    box,
    capsule,
    contact,
    corners,
    cylinder,
    distance_field,
    heightfield,
    hinge,
    hole,
    hull,
    plane,
    points,
    sphere,
)
from nsjax.multibody.contacts import all_shapes
from tests.design import in_turn
from tests.multibody.coordinates.random_trees import GRAVITY, near


def egg(x: np.ndarray) -> np.ndarray:
    """About the distances of points from an ellipsoid, whose slope is not one."""
    return np.linalg.norm(x / (1.0, 0.7, 0.8), axis=1) - 1.0


SHAPES = {
    "points": lambda x: points(x, [(0.1, 0.2, 0.0), (-0.2, 0.1, 0.3)]),
    "corners": lambda x: corners(x, 0.1, 0.2, 0.15),
    "sphere": lambda x: sphere(x, 0.15, at=(0.1, 0.0, 0.0)),
    "box": lambda x: box(x, 0.2, 0.15, 0.1, turned=(0.1, 0.2, 0.0)),
    "capsule": lambda x: capsule(x, 0.1, 0.3, axis=(0.0, 0.8, 0.6)),
    "cylinder": lambda x: cylinder(x, 0.1, 0.3, axis=(0.6, 0.0, 0.8)),
    "hole": lambda x: hole(x, 2.0, axis=(1.0, 0.0, 0.0)),
    "hull": lambda x: hull(x, 0.2 * np.random.default_rng(4).normal(size=(20, 3))),
    "heightfield": lambda x: heightfield(x, 0.4 * np.random.default_rng(5).normal(size=(6, 5)), 1.5, 1.5),
    "distance_field": lambda x: distance_field(x, egg, spacing=0.1, region=((-1.5,) * 3, (1.5,) * 3)),
    "plane": lambda x: plane(x, normal=(0.0, 0.6, 0.8)),
}
OURS = {x: kind for x, kind in all_shapes.PAIRS.items() if set(x) <= set(SHAPES)}
HELD_FIXED = [x for x, kind in OURS.items() if not kind.rate_at_points]
KNOWN = [x for x, kind in OURS.items() if kind.hold is None and kind.rate_at_points]
FOLLOWING = [x for x, kind in OURS.items() if kind.follows]


def meeting(first, second, coordinates):
    """Two bodies on a hinge and a ball whose shapes meet."""
    found = [body(x, mass=1.0, inertia=(0.2, 0.3, 0.4)) for x in ("a", "b")]
    found.append(hinge("h", "ground", "a", at=(0.2, 0.0, 0.0), axis=(0.0, 0.6, 0.8)))
    found.append(ball("j", "a", "b", at=(0.3, 0.1, 0.2)))
    met = contact("c", SHAPES[first]("a"), SHAPES[second]("b"), friction=0.3)
    return assemble(*found, met, gravity=GRAVITY, coordinates=coordinates)


CASES = [x for kind in (FOLLOWING, KNOWN, HELD_FIXED) for x in in_turn(sorted(kind), ("absolute", "joint"))]

QUICK = ("sphere", "plane")


def test_every_pair_has_a_kind() -> None:
    assert QUICK in OURS
    assert sorted(x for x, _ in CASES) == sorted(OURS)


@pytest.mark.parametrize(("pair", "coordinates"), [
    pytest.param(*x, marks=[] if x[0] == QUICK else [pytest.mark.slow], id="-".join((*x[0], x[1])))
    for x in CASES
])  # fmt: skip
def test_rows_of_all_pairs(pair, coordinates) -> None:
    """Far from each other and inside, with how the rows change: of features that a step holds, away from
    where they were found, too; of gaps whose rate is not that of the contact points; of the screws of free
    bodies, whatever joins them.
    """
    rows_are_those_by_hand(meeting(*pair, coordinates), len("".join(pair)))


def rows_are_those_by_hand(problem, seed: int) -> None:
    system, p, start = problem
    by_hand, rng = dataclasses.replace(system, rows=None), np.random.default_rng(seed)
    assert system.rows is not None

    @jax.jit
    def seen(q, away, xi, p):
        p = prepared(system, p)
        if system.refresh is not None:
            p = system.refresh(jnp.zeros(()), q, p)

        def rows(s, x):
            return all_rows(s, jnp.zeros(()), s.retract(q, x), p).wt

        return [jax.jvp(functools.partial(rows, s), (0.1 * away,), (xi,)) for s in (system, by_hand)]

    for _ in range(20):
        q = system.retract(start.q, rng.normal(size=system.nv))
        found, wanted = seen(q, *rng.normal(size=(2, system.nv)), p)
        for x, y in zip(found, wanted, strict=True):
            near(x, y, 1e-10)  # directions between points a millimetre apart lose three digits
