"""Projection of positions: nearest points of a polyhedron and of curves, in both metrics."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import ContactLaw, State, System
from nsjax.contact.projection import Directions, project_position
from nsjax.contact.stage import StageSettings
from nsjax.core.step import SystemState

MASS = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.2]])
NORMALS = np.array([[1.0, 0.2, -0.5], [0.3, 1.0, 0.4], [-0.2, 0.1, 1.0], [1.0, 1.2, -0.1]])
ROW = np.array([0.4, -0.7, 0.5])


def mass(q, p):
    return jnp.asarray(p["scale"][:, None] * MASS * p["scale"])


def no_force(t, q, v, p):
    return 0.0 * v


def half_spaces(t, q, p):
    """Four for three coordinates: the last is the sum of the first two."""
    return jnp.sum(NORMALS * (p["scale"] * q)[None, :], axis=1)


def plane(t, q, p):
    return jnp.sum(ROW * p["scale"] * q)[None] - p["level"] * t


def circle(t, q, p):
    """A point stays outside a circle whose radius grows."""
    return jnp.sqrt(q[:1] ** 2 + q[1:2] ** 2) - 1.0 - p["level"] * t


def law(p):
    return ContactLaw(restitution=0.0)


SPACES = System(nq=3, nv=3, nc=4, mass=mass, force=no_force, gap=half_spaces, law=law)
MIXED = System(
    nq=3, nv=3, nc=4, nb=1, mass=mass, force=no_force, gap=half_spaces, constraint=plane, law=law
)
OUTSIDE = System(nq=3, nv=3, nc=1, mass=mass, force=no_force, gap=circle, law=law)


@functools.cache
def projector(system: System, kinetic: bool, contacts: bool = True):
    """``(q, params, t, at) -> Projection`` with directions at the position ``at``; ``dt`` is 1e-3."""

    @jax.jit
    def project(q, p, t, at):
        end = SystemState(system=system, params=p, state=State(t=t, q=q, v=jnp.ones(3)))
        along = Directions(at=end.moved(q=at), contacts=contacts, kinetic=kinetic)
        settings = StageSettings(tolerance=1e-14, contact_tolerance=1e-14)
        return project_position(end, along, jnp.asarray(1e-3), settings)

    return project


def params(scale=(1.0, 1.0, 1.0), level=0.0):
    return {"scale": np.array(scale), "level": level}


def points(count: int) -> np.ndarray:
    return 0.3 * np.random.default_rng(7).normal(size=(count, 3))


def nearest(q, metric, rows=NORMALS, level=None) -> np.ndarray:
    """Nearest point with ``rows x >= 0`` and, with a level, ``ROW x = level``: the set of active rows whose
    multipliers and gaps have the right signs.
    """
    for count in range(len(rows) + 1):
        for active in itertools.combinations(range(len(rows)), count):
            held = rows[list(active)] if level is None else np.vstack([rows[list(active)], ROW])
            ends = np.zeros(len(held))
            ends[count:] = 0.0 if level is None else level
            if np.linalg.matrix_rank(held) < len(held):
                continue
            d = np.linalg.solve(metric, held.T)
            x = np.linalg.solve(held @ d, ends - held @ q)
            found = q + d @ x
            if np.all(x[:count] >= 0) and np.all(rows @ found >= -1e-12):
                return found
    raise AssertionError("no set of active rows fits")


@pytest.mark.parametrize("kinetic", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_nearest_point_of_dependent_half_spaces(kinetic):
    inside = 0
    for q in points(40):
        found = projector(SPACES, kinetic)(q, params(), jnp.zeros(()), q)
        np.testing.assert_allclose(found.q, nearest(q, MASS if kinetic else np.eye(3)), rtol=0, atol=1e-12)
        gaps = NORMALS @ np.asarray(found.q)
        assert gaps.min() > -1e-12
        assert np.asarray(found.psi).min() >= 0.0
        # gaps are sums of three products of numbers up to one
        rounding = 8.0 * np.finfo(float).eps * np.asarray(found.psi).max()
        assert np.abs(gaps * found.psi).max() < max(1e-12, rounding)
        if (NORMALS @ q).min() >= 0:
            inside += 1
            np.testing.assert_array_equal(found.q, q)
            assert int(found.iterations) == 0
    assert 0 < inside < 20


def test_the_kinetic_metric_does_not_see_the_units():
    # Coordinates in other units: the same motion in the kinetic metric, another one in the Euclidean.
    scale = np.array([1.0, 1e-3, 10.0])
    q = points(1)[0]
    at = NORMALS @ q
    assert at.min() < 0
    for kinetic in (True, False):
        project = projector(SPACES, kinetic)
        plain = np.asarray(project(q, params(), jnp.zeros(()), q).q)
        other = scale * np.asarray(project(q / scale, params(scale), jnp.zeros(()), q / scale).q)
        assert (np.abs(other - plain).max() < 1e-10) == kinetic


@pytest.mark.parametrize("contacts", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_constraint_beside_half_spaces(contacts):
    t, level = 0.5, 0.2
    for q in points(10):
        found = projector(MIXED, True, contacts)(q, params(level=level), jnp.asarray(t), q)
        assert ROW @ np.asarray(found.q) == pytest.approx(level * t, abs=1e-13)
        rows = NORMALS if contacts else NORMALS[:0]
        np.testing.assert_allclose(found.q, nearest(q, MASS, rows, level * t), rtol=0, atol=1e-11)


def test_curved_gap_with_frozen_direction():
    # [S&U&S (32)]: along W at another point, until the gap at the new one is closed, at the new time.
    q, at, t, level = np.array([0.5, 0.2, 1.0]), np.array([0.6, 0.0, 0.0]), 0.5, 0.3
    found = projector(OUTSIDE, False)(q, params(level=level), jnp.asarray(t), at)
    radius = 1 + level * t
    expected = [np.sqrt(radius**2 - q[1] ** 2), q[1], q[2]]
    np.testing.assert_allclose(found.q, expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.psi, [(expected[0] - q[0]) / 1e-3], rtol=1e-12)
    assert float(found.estimate) <= 1e-14
    assert float(found.residual) <= 1e-14


def test_derivative_is_that_of_the_nearest_point():
    # Of the circle: radius times the projector onto the tangent, divided by the distance; and along the
    # normal as the radius grows.
    q, level = np.array([0.5, 0.3, 1.0]), 0.4
    size, normal = np.hypot(*q[:2]), np.array([*q[:2], 0.0]) / np.hypot(*q[:2])
    project = projector(OUTSIDE, False)
    t, one = jnp.asarray(0.5), jnp.asarray(1.0)
    point = lambda q, t: project(q, params(level=level), t, q).q  # noqa: E731
    np.testing.assert_allclose(point(q, t), [*(1.2 * normal[:2]), 1.0], rtol=0, atol=1e-13)
    along = np.array([0.3, -1.0, 0.2])
    for part in (along, normal):
        tangent = part - normal * (normal @ part)
        expected = np.array([*(1.2 / size * tangent[:2]), part[2]]) + level * normal
        found = jax.jvp(point, (q, t), (part, one))[1]
        # the linear solve behind a derivative is regularised by 1e-9, for dependent contacts
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-9)
