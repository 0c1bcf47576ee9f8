"""Shapes by signed distances that are touched at several places: a ball in a groove of two fields, boxes
and hulls that stand in a bowl on their corners, and the warning of hollows narrower than a ball.
"""

from __future__ import annotations

import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.multibody import assemble, body, box, contact, distance_field, hull, sphere

SLOW = pytest.mark.slow
G, MASS, RADIUS = 9.81, 1.3, 0.2
LEFT, RIGHT = 0.6, 0.9
"""Angles of the slopes of a groove."""


def slab(normal: np.ndarray) -> Any:
    """A thick plate in the ground, whose upper face goes through the origin."""
    along = np.roll(normal[[0, -1]], 1) * (1.0, -1.0)
    along = along * np.sign(along[1])  # upwards
    up, half = normal[[0, -1]], np.array([0.5, 0.15, 0.5])[: len(normal)]

    def distance(x: np.ndarray) -> np.ndarray:
        flat = x[:, [0, -1]]
        local = [flat @ along - 0.2, flat @ up + 0.15, *x[:, 1:-1].T]
        beyond = np.abs(np.stack(local, axis=1)) - half
        outside = np.linalg.norm(np.maximum(beyond, 0.0), axis=1)
        return outside + np.minimum(np.max(beyond, axis=1), 0.0)

    return distance_field(
        "ground", distance, spacing=0.025, region=((-1.0,) * len(normal), (1.0,) * len(normal))
    )


def slopes(dimension: int) -> np.ndarray:
    """Normals (2, d) of the groove, which is level along its axis in space."""
    normals = np.array([[np.sin(LEFT), np.cos(LEFT)], [-np.sin(RIGHT), np.cos(RIGHT)]])
    return normals if dimension == 2 else np.insert(normals, 1, 0.0, axis=1)


CASES = [
    (schemes.moreau, 2, "joint"),
    *(pytest.param(*x, marks=SLOW) for x in (
        (schemes.nsga_decoupled, 2, "absolute"), (schemes.generalized_alpha, 3, "joint"),
        (schemes.moreau, 3, "absolute"),
    )),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "dimension", "coordinates"), CASES)
def test_a_ball_rests_in_a_groove_of_two_fields(scheme: Any, dimension: int, coordinates: str) -> None:
    """Both forces in closed form: ``m g sin(other slope) / sin(both)``."""
    normals, dt = slopes(dimension), 1e-3
    place = np.linalg.lstsq(normals, np.full(2, RADIUS + 1e-9), rcond=None)[0]
    inertia: Any = 0.02 if dimension == 2 else (0.02,) * 3
    problem = assemble(
        body("ball", mass=MASS, inertia=inertia),
        *(contact(f"c{k}", sphere("ball", RADIUS), slab(x)) for k, x in enumerate(normals)),
        gravity=G, start={"ball": ((*place, 0.0),) if dimension == 2 else (tuple(place),)},
        coordinates=coordinates,
    )  # fmt: skip
    run = nsjax.simulate(*problem, scheme(), dt=dt, steps=50)
    run.raise_for_status()
    found = [np.ravel(run.contacts(f"c{k}").force[-1])[0] for k in range(2)]
    np.testing.assert_allclose(
        found, MASS * G * np.sin([RIGHT, LEFT]) / np.sin(LEFT + RIGHT), rtol=0, atol=1e-8
    )
    # it falls for one step before its velocity is held
    np.testing.assert_allclose(run.body("ball").position[-1], place, rtol=0, atol=1.01 * G * dt**2)


def told(shape: Any, radius: float) -> bool:
    """Whether a contact of a ball warns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        contact("c", sphere("ball", radius), shape)
    return any("one contact, along the mean of both normals" in str(x.message) for x in caught)


def test_hollows_narrower_than_a_ball_are_told() -> None:
    """A groove by one field, and none by two; a hollow of radius 1 from four spacings below it on; no edges
    of a solid, which are not hollow.
    """
    depth = 2.0 * np.array([np.tan(LEFT), np.tan(RIGHT)])
    groove = [(0.0, 0.0), (2.0, depth[1]), (2.0, -1.0), (-2.0, -1.0), (-2.0, depth[0])]
    assert told(distance_field("ground", groove, spacing=0.05), RADIUS)
    assert not any(told(slab(x), RADIUS) for x in slopes(2))
    for dimension in (2, 3):
        region = ((-2.5,) * dimension, (2.5,) * dimension)
        bowl = distance_field(
            "ground", lambda x: np.abs(np.linalg.norm(x, axis=1) - 1.3) - 0.3, spacing=0.1, region=region
        )
        assert [told(bowl, x) for x in (0.2, 0.4, 0.75)] == [False, False, True]
    solid = distance_field("ground", [(0, 0), (1, 0), (1, 1), (0, 1)], spacing=0.05)
    assert not any(told(solid, x) for x in (0.06, 0.1, 0.2))


# Boxes and hulls in a parabolic bowl.

BEND = 0.7
"""Of the bowl, whose height is ``BEND r^2``."""


def bowl(x: np.ndarray) -> np.ndarray:
    """Signed distances of points (k, d) from a parabola, or a paraboloid of revolution: the largest root of
    the cubic equation of the nearest point.
    """
    r, y = np.linalg.norm(x[:, :-1], axis=1), x[:, -1]
    p, q = (1.0 - 2.0 * BEND * y) / (2.0 * BEND**2), -r / (2.0 * BEND**2)
    square = (0.5 * q) ** 2 + (p / 3.0) ** 3
    root = np.sqrt(np.maximum(square, 0.0))
    one = np.cbrt(-0.5 * q + root) + np.cbrt(-0.5 * q - root)
    size = np.sqrt(np.where(p < 0.0, -p / 3.0, 1.0))
    several = 2.0 * size * np.cos(np.arccos(np.clip(-0.5 * q / size**3, -1.0, 1.0)) / 3.0)
    at = np.where(square >= 0.0, one, several)
    return np.where(y > BEND * r * r, 1.0, -1.0) * np.hypot(r - at, y - BEND * at**2)


def standing(kind: str, dimension: int, coordinates: str, spacing: float) -> nsjax.Problem:
    """A box, or a hull of its corners, in the bowl; it starts a little above its place of rest."""
    half = np.array([0.3, 0.2, 0.1]) if dimension == 3 else np.array([0.3, 0.1])
    signs = np.stack(np.meshgrid(*[(-1.0, 1.0)] * dimension), axis=-1).reshape(-1, dimension)
    shape = box("a", *half) if kind == "box" else hull("a", signs * half)
    top = ((-0.8,) * (dimension - 1) + (-0.5,)), ((0.8,) * (dimension - 1) + (0.7,))
    ground = distance_field("ground", bowl, spacing=spacing, region=top)
    height = half[-1] + BEND * float(np.sum(half[:-1] ** 2)) + 1e-4
    place = (0.0, height, 0.0) if dimension == 2 else (0.0, 0.0, height)
    return assemble(
        body("a", mass=MASS, inertia=0.05 if dimension == 2 else (0.05,) * 3),
        contact("c", shape, ground), gravity=G, start={"a": (place,)}, coordinates=coordinates,
    )  # fmt: skip


@SLOW
@pytest.mark.parametrize(
    ("kind", "dimension", "coordinates", "scheme"),
    [
        ("box", 2, "joint", schemes.moreau), ("box", 3, "joint", schemes.generalized_alpha),
        ("hull", 3, "joint", schemes.moreau), ("hull", 3, "absolute", schemes.moreau),
    ],
)  # fmt: skip
def test_a_box_stands_in_a_bowl_on_its_corners(
    kind: str, dimension: int, coordinates: str, scheme: Any
) -> None:
    """Forces of the lower corners, ``m g / (n cos(slope))`` of n, and the height of its centre."""
    problem = standing(kind, dimension, coordinates, 0.04)
    run = nsjax.simulate(*problem, scheme(), dt=1e-3, steps=60, every=10)
    run.raise_for_status()
    wide = 0.3 if dimension == 2 else np.hypot(0.3, 0.2)
    force = np.reshape(np.asarray(run.contacts("c").force[-1]), (2**dimension, -1))[:, 0]
    low = np.sort(force)[2 ** (dimension - 1) :]
    wanted = MASS * G / len(low) * np.hypot(1.0, 2.0 * BEND * wide)
    # normals have errors of third order in the spacing
    np.testing.assert_allclose(low, wanted, rtol=1e-4)
    assert np.all(np.sort(force)[: len(low)] == 0.0)
    height = float(run.body("a").position[-1][-1]) - 0.1
    # a step of a scheme on velocity level ends below the surface, by a step at the speed of the fall
    assert height == pytest.approx(BEND * wide**2, abs=5e-5)


@SLOW
def test_vertices_of_a_hull_are_the_corners_of_a_box() -> None:
    """In other positions, too: equal gaps, in another order."""
    problems = [standing(x, 3, "joint", 0.1) for x in ("box", "hull")]
    draw = np.random.default_rng(3)
    for _ in range(5):
        q = np.concatenate([draw.uniform(-0.3, 0.3, 3), draw.normal(size=4)])
        q[3:] /= np.linalg.norm(q[3:])
        box_, hull_ = (np.sort(x.system.gap(0.0, jnp.asarray(q), x.params)) for x in problems)
        np.testing.assert_allclose(hull_, box_, rtol=0, atol=1e-13)
