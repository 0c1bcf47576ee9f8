"""Every registered model: labels, constructor, energies, directions."""

from __future__ import annotations

import dataclasses
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import InputError, models
from nsjax.core.operators import contact_rows, gap_drift, kinetic_energy, potential_energy
from nsjax.core.step import mass_matrix
from tests.design import slow_but

NAMES = sorted(models.REGISTRY)
LIGHT = ("bouncing_ball", "mass_spring_chain", "rubbing_rotor", "slider_crank", "slider_crank_bilateral")


def small(name: str):
    entry = models.REGISTRY[name]
    return entry.factory(**dict(entry.small))


def moving(problem):
    """A state away from all symmetries."""
    rng = np.random.default_rng(7)
    s = problem.system
    q = s.retract(jnp.asarray(problem.state.q), jnp.asarray(0.3 * rng.normal(size=s.nv)))
    return jnp.asarray(0.1), q, jnp.asarray(rng.normal(size=s.nv))


@pytest.mark.parametrize("name", slow_but(NAMES, *LIGHT))
def test_labels_name_everything(name: str) -> None:
    problem = small(name)
    s, labels = problem.system, problem.system.labels
    assert s.name == name
    assert len(labels.q) == s.nq
    assert len(labels.v) == s.nv
    assert len(labels.contacts) == s.nc
    assert len(labels.constraints) == s.nb
    everything = [*labels.q, *labels.v, *labels.observables]
    assert len(set(everything)) == len(everything)
    t, q, v = moving(problem)
    observed = {} if s.observe is None else s.observe(t, q, v, None, problem.params)
    assert set(observed) == {entry.split(" [")[0] for entry in labels.observables}


@pytest.mark.parametrize("name", NAMES)
def test_constructor_has_its_parameters_as_keywords(name: str) -> None:
    entry = models.REGISTRY[name]
    problem = entry.factory()
    fields = {f.name for f in dataclasses.fields(problem.params)}
    assert fields <= set(inspect.signature(entry.factory).parameters)
    assert entry.factory(**dict(problem.system.choices)).system == problem.system
    with pytest.raises(InputError, match="unknown parameter 'gravty'; did you mean 'gravity'"):
        entry.factory(gravty=1.0)


@pytest.mark.parametrize("name", slow_but(NAMES, *LIGHT))
def test_force_and_energies_belong_together(name: str) -> None:
    """Power balance of Lagrange's equations: d/dt (T + U) along the free motion equals the power of
    the forces without potential, which these models have none of but the crank's torque (zero)."""
    problem = small(name)
    s, p = problem.system, problem.params
    t, q, v = moving(problem)
    a = jnp.linalg.solve(mass_matrix(s, q, p), s.force(t, q, v, p))

    def energy(x):
        moved = s.retract(q, x * v)
        return kinetic_energy(s, moved, v + x * a, p) + potential_energy(s, t, moved, p)

    rate = jax.jvp(energy, (jnp.zeros(()),), (jnp.ones(()),))[1]
    scale = float(jnp.sum(jnp.abs(v * s.force(t, q, v, p))))
    assert abs(rate) <= 1e-12 * scale  # rounding of a sum of a dozen terms


@pytest.mark.parametrize(
    "name", slow_but([n for n in NAMES if models.REGISTRY[n].factory().system.nc], "elastic_bar")
)
def test_directions_are_rates_of_the_gaps(name: str) -> None:
    """W_N' v and W_N' a + drift against a fine central difference of the gap along the motion."""
    problem = small(name)
    s, p = problem.system, problem.params
    t, q, v = moving(problem)
    rows = contact_rows(s, t, q, p)
    every = 1 + s.nt

    def gap(x):
        return np.asarray(s.gap(t + x, s.retract(q, x * v), p))

    x = 1e-4  # second-order differences: truncation about x^2, rounding about 1e-16 / x^2
    first = (gap(x) - gap(-x)) / (2 * x)
    second = (gap(x) - 2 * gap(0.0) + gap(-x)) / x**2
    np.testing.assert_allclose(rows.rate(v)[::every], first, atol=1e-7)
    np.testing.assert_allclose(gap_drift(s, t, q, v, p), second, atol=1e-6)
    if s.nt:
        slip = np.asarray(s.slip(t, q, v, p)).reshape(-1)
        tangents = np.asarray(rows.rate(v)).reshape(s.nc, every)[:, 1:].reshape(-1)
        np.testing.assert_allclose(tangents, slip, atol=1e-12)


@pytest.mark.parametrize("name", slow_but(NAMES, *LIGHT))
def test_difference_inverts_retract(name: str) -> None:
    problem = small(name)
    s = problem.system
    _, q, v = moving(problem)
    moved = s.retract(q, 0.1 * v)
    np.testing.assert_allclose(s.difference(q, moved), 0.1 * v, atol=1e-14)
