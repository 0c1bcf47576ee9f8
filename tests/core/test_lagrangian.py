"""Equations of motion from energies equal those written by hand."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import from_lagrangian, models
from nsjax.core.system_parts import Lagrangian


def kinetic(q, v, p):
    """Crank, rod and slider: energies of the centres of mass, written from the geometry."""
    l1, l2 = p.crank_length, p.rod_length
    crank = 0.5 * l1 * jnp.array([-jnp.sin(q[0]), jnp.cos(q[0])]) * v[0]
    joint = 2 * crank
    half_rod = 0.5 * l2 * jnp.array([-jnp.sin(q[1]), jnp.cos(q[1])]) * v[1]
    rod, slider = joint + half_rod, joint + 2 * half_rod
    translation = p.crank_mass * crank @ crank + p.rod_mass * rod @ rod + p.slider_mass * slider @ slider
    rotation = p.crank_inertia * v[0] ** 2 + p.rod_inertia * v[1] ** 2 + p.slider_inertia * v[2] ** 2
    return 0.5 * (translation + rotation)


def potential(t, q, p):
    y1, y2 = p.crank_length * jnp.sin(q[0]), p.rod_length * jnp.sin(q[1])
    heights = p.crank_mass * y1 / 2 + p.rod_mass * (y1 + y2 / 2) + p.slider_mass * (y1 + y2)
    return p.gravity * heights


def torque(t, q, v, p):
    return p.torque * jnp.array([1.0, 0.0, 0.0])


@pytest.mark.slow
def test_slider_crank_from_energies() -> None:
    derived = from_lagrangian(kinetic, potential, torque)
    system, params, _ = models.slider_crank(torque=0.7)
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, v = rng.normal(size=3), 50 * rng.normal(size=3)
        np.testing.assert_allclose(derived.mass(q, params), system.mass(q, params), rtol=1e-12, atol=1e-15)
        # centrifugal terms of size 10 that cancel in part
        np.testing.assert_allclose(
            derived.force(0.0, q, v, params), system.force(0.0, q, v, params), rtol=1e-11, atol=1e-11
        )
        np.testing.assert_allclose(
            derived.potential(0.0, q, params), system.potential(0.0, q, params), rtol=1e-13
        )


def test_the_same_energies_give_the_same_record() -> None:
    assert from_lagrangian(kinetic, potential) is from_lagrangian(kinetic, potential)
    assert isinstance(from_lagrangian(kinetic), Lagrangian)
    assert from_lagrangian(kinetic).potential(0.0, jnp.ones(3), None) == 0.0
