"""The geometrically exact planar element against closed forms and the continuum."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import models
from nsjax.core.step import mass_matrix
from nsjax.fem.beam import BeamStiffness, beam_energy, beam_inertia

LENGTH, ELEMENTS = 1.0, 8
SECTION = BeamStiffness(axial=2.1e7, shear=6.730769e6, bending=174.93)
LENGTHS = jnp.full(ELEMENTS, LENGTH / ELEMENTS)
RNG = np.random.default_rng(5)


def straight() -> np.ndarray:
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
    k = np.asarray(jax.hessian(energy)(jnp.asarray(straight().reshape(-1))))
    load = np.zeros(len(k))
    load[-2] = 1.0
    tip = np.linalg.solve(k[3:, 3:], load[3:])[-2]
    bending, shear = LENGTH**3 / (3 * SECTION.bending), LENGTH / SECTION.shear
    # rounding of a matrix of condition 1e7
    assert tip == pytest.approx(bending * (1 - 1 / (4 * ELEMENTS**2)) + shear, rel=1e-9)
    assert tip / (bending + shear) == pytest.approx(0.99609, abs=5e-6)


def test_rigid_motions_cost_nothing_and_change_nothing() -> None:
    nodes = straight()
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


def test_three_motions_without_stiffness() -> None:
    k = np.asarray(jax.hessian(energy)(jnp.asarray(turned(straight(), 0.7, (0.0, 0.0)).reshape(-1))))
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
    nodes = straight()
    spin = np.stack([0 * nodes[:, 0], nodes[:, 0], np.ones(ELEMENTS + 1)], axis=1)
    twice = float(np.sum(spin * np.asarray(beam_inertia(jnp.asarray(spin), mass, rotary))))
    # of linear velocities the consistent mass is exact
    assert twice == pytest.approx(0.8 * LENGTH**2 / 3 + 8e-3, rel=1e-13)
