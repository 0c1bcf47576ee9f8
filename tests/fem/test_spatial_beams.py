"""Elements of spatial beams against closed and printed forms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import models
from nsjax.core.step import mass_matrix
from nsjax.fem import (
    committed,
    incremental_strains,
    objective_energy,
    objective_forces,
    objective_strains,
    relative_rotation,
    started,
)
from nsjax.fem.beam import BeamStiffness, beam_energy, beam_inertia
from nsjax.math import rotations
from tests.design import slow_but
from tests.fem import cantilevers
from tests.fem.cantilevers import STIFF, arc

# Spatial beam elements against closed forms, published numbers and rigid motions.
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


# The geometrically exact planar element against closed forms and the continuum.
LENGTH, ELEMENTS = 1.0, 8
SECTION = BeamStiffness(axial=2.1e7, shear=6.730769e6, bending=174.93)
LENGTHS = jnp.full(ELEMENTS, LENGTH / ELEMENTS)


def straight_nodes() -> np.ndarray:
    x = np.linspace(0.0, LENGTH, ELEMENTS + 1)
    return np.stack([x, 0 * x, 0 * x], axis=1)


def energy(nodes):
    return beam_energy(nodes.reshape(-1, 3), LENGTHS, SECTION)


def turned(nodes: np.ndarray, angle: float, shift: tuple[float, float]) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    xy = nodes[:, :2] @ np.array([[c, s], [-s, c]]) + np.array(shift)
    return np.concatenate([xy, nodes[:, 2:] + angle], axis=1)


@pytest.mark.slow
def test_cantilever_bends_as_the_discrete_closed_form() -> None:
    """Linear element, one point: ``P L^3 / (3 E I) (1 - 1 / (4 n^2)) + P L / (G A_s)``, exactly."""
    k = np.asarray(jax.hessian(energy)(jnp.asarray(straight_nodes().reshape(-1))))
    load = np.zeros(len(k))
    load[-2] = 1.0
    tip = np.linalg.solve(k[3:, 3:], load[3:])[-2]
    bending, shear = LENGTH**3 / (3 * SECTION.bending), LENGTH / SECTION.shear
    # rounding of a matrix of condition 1e7
    assert tip == pytest.approx(bending * (1 - 1 / (4 * ELEMENTS**2)) + shear, rel=1e-9)
    assert tip / (bending + shear) == pytest.approx(0.99609, abs=5e-6)


def test_rigid_motions_cost_nothing_and_change_nothing() -> None:
    nodes = straight_nodes()
    assert float(energy(jnp.asarray(turned(nodes, 2.5, (0.3, -4.0))))) < 1e-20 * SECTION.axial
    bent = nodes + 0.1 * RNG.normal(size=nodes.shape)
    moved = turned(bent, -1.2, (2.0, 1.0))
    np.testing.assert_allclose(energy(jnp.asarray(moved)), energy(jnp.asarray(bent)), rtol=1e-13)
    # forces turn with the beam, moments do not
    gradient = jax.grad(lambda x: beam_energy(x, LENGTHS, SECTION))
    ours = np.asarray(gradient(jnp.asarray(moved)))
    wanted = turned(np.asarray(gradient(jnp.asarray(bent))), -1.2, (0.0, 0.0))
    wanted[:, 2] += 1.2
    np.testing.assert_allclose(ours, wanted, atol=1e-12 * np.abs(wanted).max())


@pytest.mark.slow
def test_three_motions_without_stiffness() -> None:
    k = np.asarray(jax.hessian(energy)(jnp.asarray(turned(straight_nodes(), 0.7, (0.0, 0.0)).reshape(-1))))
    values = np.sort(np.abs(np.linalg.eigvalsh(k)))
    assert np.all(values[:3] < 1e-13 * values[-1])
    assert values[3] > 1e-10 * values[-1]


def test_uniform_strains_are_uniform_resultants() -> None:
    """A quarter circle: curvature alone, with the energy of a bent beam."""
    angle = np.linspace(0.0, np.pi / 2, ELEMENTS + 1)
    # nodes lie on a circle whose chords, at mean angles, have the length of the elements
    step = LENGTH / ELEMENTS
    middle = 0.5 * (angle[1:] + angle[:-1])
    xy = np.cumsum(np.stack([np.cos(middle), np.sin(middle)], axis=1) * step, axis=0)
    nodes = np.concatenate([np.concatenate([np.zeros((1, 2)), xy]), angle[:, None]], axis=1)
    bending = 0.5 * SECTION.bending * (np.pi / 2 / LENGTH) ** 2 * LENGTH
    assert float(energy(jnp.asarray(nodes))) == pytest.approx(bending, rel=1e-12)


@pytest.mark.slow
def test_frequencies_of_the_pinned_beam() -> None:
    """Pinned and free: 37.57, 129.4, 298.9 Hz with eight elements, continuum (Timoshenko) 36.75, 119.1."""
    system, p, state = models.flexible_pendulum(gravity=0.0)
    q = jnp.asarray(state.q)
    k = -np.asarray(jax.jacfwd(lambda q: system.force(0.0, q, 0 * q, p))(q))
    m = np.asarray(mass_matrix(system, q, p))
    values = np.sort(np.linalg.eigvals(np.linalg.solve(m, k)).real)
    assert abs(values[0]) < 1e-12 * values[-1]
    np.testing.assert_allclose(np.sqrt(values[1:4]) / (2 * np.pi), [37.57, 129.4, 298.9], rtol=4e-4)
    assert np.sqrt(values[-1]) == pytest.approx(1.0e6, rel=0.05)


def test_inertia_is_that_of_the_body() -> None:
    mass, rotary = jnp.full(ELEMENTS, 0.1), jnp.full(ELEMENTS, 1e-3)
    nodes = straight_nodes()
    spin = np.stack([0 * nodes[:, 0], nodes[:, 0], np.ones(ELEMENTS + 1)], axis=1)
    twice = float(np.sum(spin * np.asarray(beam_inertia(jnp.asarray(spin), mass, rotary))))
    # of linear velocities the consistent mass is exact
    assert twice == pytest.approx(0.8 * LENGTH**2 / 3 + 8e-3, rel=1e-13)
