"""Spatial beam elements against closed forms, published numbers and rigid motions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.fem import (
    committed,
    incremental_strains,
    objective_energy,
    objective_forces,
    objective_strains,
    relative_rotation,
    started,
)
from nsjax.math import rotations
from tests.design import slow_but
from tests.fem import cantilevers
from tests.fem.cantilevers import STIFF, arc

RNG = np.random.default_rng(0)
CIRCLE = (0.0, 0.0, 2.0 * np.pi * 100.0 / 10.0)
"""End moment that bends the beam of length 10 to a full circle."""


def straight(elements: int) -> np.ndarray:
    return np.linspace(0.0, 10.0, elements + 1)[:, None] * np.array([1.0, 0.0, 0.0])


def unit(p: np.ndarray) -> np.ndarray:
    return p / np.linalg.norm(p)


def random_element():
    nodes = np.stack([np.concatenate([RNG.normal(size=3), unit(RNG.normal(size=4))]) for _ in range(2)])
    axes = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    return jnp.asarray(nodes), jnp.asarray(axes), jnp.asarray(RNG.uniform(1.0, 2.0, 6))


def test_forces_are_minus_the_gradient_of_the_energy() -> None:
    nodes, axes, stiffness = random_element()

    def energy(xi):
        a, b = jax.vmap(rotations.move_pose)(nodes, xi.reshape(2, 6))
        found = objective_strains(a[:3], a[3:], b[:3], b[3:], 1.3, axes, jnp.ones(3))
        return objective_energy(found, stiffness, 1.3)

    force = jax.jit(objective_forces)(nodes, None, 1.3, axes, jnp.ones(3), stiffness)
    np.testing.assert_allclose(force.reshape(-1), -jax.jit(jax.grad(energy))(jnp.zeros(12)), atol=1e-13)


def test_damping_takes_the_energy_of_strain_rates() -> None:
    """Power of the forces of damping: ``-l tau rate . stiffness rate``, none in rigid motion."""
    nodes, axes, stiffness = random_element()
    rates = jnp.asarray(RNG.normal(size=(2, 6)))
    plain, damped = (
        jax.jit(objective_forces)(nodes, rates, 1.3, axes, jnp.zeros(3), stiffness, tau)
        for tau in (None, 0.2)
    )

    def strains(s):
        a, b = jax.vmap(rotations.move_pose)(nodes, s * rates)
        return objective_strains(a[:3], a[3:], b[:3], b[3:], 1.3, axes, jnp.zeros(3))

    rate = jax.jit(lambda s: jax.jvp(strains, (s,), (1.0,))[1])(0.0)
    power = jnp.sum((damped - plain) * rates)
    np.testing.assert_allclose(power, -1.3 * 0.2 * jnp.sum(stiffness * rate**2), rtol=1e-12)


@pytest.mark.slow
def test_many_turns_leave_no_strain() -> None:
    """V7 for the element: ten turns in steps of 60 degrees about a skew axis."""
    place, step = jnp.asarray([0.3, -0.2, 1.0]), jnp.asarray([1.0, 2.0, 2.0]) / 3.0 * jnp.pi / 3.0
    axes = jnp.eye(3)
    ends = [jnp.zeros(3), jnp.asarray([0.0, 0.0, 2.0])]
    p = [jnp.asarray([1.0, 0, 0, 0])] * 2
    x = ends
    turn = rotations.matrix(rotations.exponential(step))
    for _ in range(60):
        p = [rotations.multiply(rotations.exponential(step), y) for y in p]
        x = [place + turn @ (y - place) for y in x]
    found = objective_strains(x[0], p[0], x[1], -p[1], 2.0, axes, jnp.zeros(3))
    assert float(jnp.max(jnp.abs(found))) < 1e-13  # 60 products of rotations; asked: 1e-10


def test_the_logarithm_is_smooth_at_its_branch() -> None:
    one, axis = jnp.asarray([1.0, 0, 0, 0]), jnp.asarray([0.6, 0.0, 0.8])
    angle_of = jax.jit(lambda a: relative_rotation(one, rotations.exponential(a * axis)))
    slope_of = jax.jit(jax.jacfwd(angle_of))
    for angle in (0.0, 1.99e-4, 2.01e-4, 1e-2, 3.0):
        found = angle_of(angle)
        np.testing.assert_allclose(found, angle * axis, atol=1e-15 if angle < 1e-3 else 1e-14)
        np.testing.assert_allclose(
            slope_of(angle), axis, atol=1e-11
        )  # 1 / sine in the derivative of the quotient


@pytest.mark.parametrize("nodes", slow_but([2, 3], 2))
def test_incremental_curvature_of_a_pure_twist(nodes: int) -> None:
    """Increments that turn every section about the axis: twist grows by ``Xi' alpha'``, and adds up."""
    places = jnp.asarray(np.linspace(0.0, 2.0, nodes)[:, None] * np.array([0.0, 0.0, 1.0]))
    history = started(places, jnp.asarray([1.0, 0.0, 0.0]))
    angles, total = np.linspace(0.0, 1e-3, nodes), 0.0
    steps = np.zeros((nodes, 6))
    steps[:, 5] = 2.0 * np.tan(angles / 2.0)
    for _ in range(3):
        history = jax.jit(committed)(places, jnp.asarray(steps), history)
        total += 1e-3 / 2.0
    found = incremental_strains(places, jnp.zeros((nodes, 6)), history)
    # tan(a / 2) is linear to a^2 / 12 of itself: 1e-7
    np.testing.assert_allclose(found[:, 5], total, rtol=1e-6)
    np.testing.assert_allclose(found[:, :5], 0.0, atol=1e-12)


@pytest.mark.slow  # of four elements, beside the quick tests of equilibria
def test_roll_up_is_exact() -> None:
    """V1: a full circle, of five objective elements a closed pentagon."""
    nodes = cantilevers.objective(straight(5), STIFF["roll"], moment=CIRCLE, steps=10)
    assert np.linalg.norm(nodes[-1, :3]) < 1e-12  # rounding over the length of 10


@pytest.mark.slow
@pytest.mark.parametrize("follower", [False, True])
def test_roll_up_with_follower_moment(follower: bool) -> None:
    nodes = cantilevers.objective(straight(10), STIFF["roll"], moment=CIRCLE, steps=10, follower=follower)
    assert np.linalg.norm(nodes[-1, :3]) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("elements", "per", "published"), [(10, 1, 3.2e-4), (20, 1, 8.1e-5), (5, 2, 1.5e-5), (10, 2, 1e-6)]
)
def test_roll_up_of_incremental_elements(elements: int, per: int, published: float) -> None:
    points = straight(elements * per)
    x, _ = cantilevers.incremental(points, STIFF["roll"], moment=CIRCLE, steps=10, per=per)
    # two printed digits, one of the last
    assert np.linalg.norm(x[-1]) == pytest.approx(published, rel=0.1 if published == 1e-6 else 0.02)


@pytest.mark.slow
def test_bend_of_45_degrees() -> None:
    """V2: printed positions of the tip, of both elements, to their last digit."""
    tips = {}
    for elements, per, steps in ((8, 1, 6), (8, 1, 60), (8, 2, 6)):
        x, _ = cantilevers.incremental(
            arc(elements * per), STIFF["bend"], (0, 0, 600), steps=steps, per=per
        )
        tips[per, steps] = x[-1]
    np.testing.assert_allclose(tips[1, 6], (47.233, 15.802, 53.369), atol=0.004)
    np.testing.assert_allclose(tips[2, 6], (47.151, 15.685, 53.474), atol=0.001)
    # path dependence: 0.003 of 47
    assert 1e-4 < np.linalg.norm(tips[1, 60] - tips[1, 6]) < 6e-3


@pytest.mark.slow
def test_bend_of_objective_elements() -> None:
    """V2: order 2 in the mesh, towards the printed limit; another path ends at the same place."""
    limit = np.array([47.151, 15.685, 53.474])
    found = [
        cantilevers.objective(arc(n), STIFF["bend"], (0, 0, 600), steps=24)[-1, :3] for n in (8, 16, 32)
    ]
    errors = [np.linalg.norm(x - limit) for x in found]
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)
    assert np.linalg.norm(found[0] - found[1]) / np.linalg.norm(found[1] - found[2]) == pytest.approx(
        4.0, rel=0.1
    )
    other = cantilevers.objective(arc(8), STIFF["bend"], (0, 0, 600), steps=31)[-1, :3]
    np.testing.assert_allclose(other, found[0], atol=1e-8)
