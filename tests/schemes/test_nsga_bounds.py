"""Friction at its bound in the nonsmooth generalized-alpha family: rounding chooses no derivative."""

from __future__ import annotations

import dataclasses
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import ContactLaw, schemes
from nsjax.core.system import row_groups
from nsjax.loop import system_of_steps
from nsjax.schemes.nsga.levels import PositionLevel, Prediction, VelocityLevel
from tests.gradients.dry import carriage, drawn

SCHEME = schemes.nsga_coupled()
SYSTEM = system_of_steps(SCHEME, carriage(2))
ROUGH, DRY = 2, 2


def step(seed: int) -> tuple[Prediction, np.random.Generator, np.ndarray]:
    """A step of the carriage on its floor and at its stop, with normal multipliers (nc,) that push."""
    rng = np.random.default_rng(seed)
    params, state = drawn(3 * seed + 1)
    state.q[:2] = params["stop"], 0.01 * np.cos(3.0 * params["stop"])
    zero, one = np.zeros(SYSTEM.nv), np.ones(())
    law: ContactLaw = SYSTEM.law(params)
    s = Prediction(
        params=params, dt=0.01 * one, t=state.t + 0.01, q=state.q, xi=zero, v=zero, c1=one, c2=one,
        scale=one, creep=np.zeros((SYSTEM.nc, SYSTEM.nt)), restitution=np.zeros(row_groups(SYSTEM).count),
        friction=law.friction_of(SYSTEM.nc), given=law.given(0.01),
    )  # fmt: skip
    return s, rng, rng.uniform(0.5, 2.0, SYSTEM.nc)


def at_the_bound(radius: Any, part: float, rng: np.random.Generator) -> np.ndarray:
    """Tangents (nc, 2) of this part of their bounds; bounded rows have one."""
    angle = np.concatenate([rng.uniform(0.0, 2 * np.pi, ROUGH), np.pi * rng.integers(0, 2, DRY)])
    way = np.stack([np.cos(angle), np.where(np.arange(ROUGH + DRY) < ROUGH, np.sin(angle), 0.0)], axis=1)
    return part * np.asarray(radius)[:, None] * way


def creeps(s: Prediction, normal: np.ndarray, creep: Any, answer: bool) -> Any:
    """What acts of a creep correction (nc, nt)."""
    level = PositionLevel(SYSTEM, True, False, True, answer=answer)
    data = dataclasses.replace(s, creep=creep), types.SimpleNamespace(contacts=None)
    sigma = jnp.concatenate([normal, jnp.zeros(level.rows - SYSTEM.nc)])
    return level.law(data, sigma)[SYSTEM.nc : SYSTEM.nc + level.tangents].reshape(SYSTEM.nc, -1)


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_creep_correction_at_its_bound_has_the_derivative_of_the_bound(seed: int) -> None:
    s, rng, normal = step(seed)
    half = 0.5 * s.dt * jnp.where(row_groups(SYSTEM).given, s.given.normal, normal / (0.5 * s.dt))
    radius, change = s.friction * half, rng.normal(size=(SYSTEM.nc, SYSTEM.nt))
    for part in (1.0 - 1e-13, 1.0, 1.0 + 1e-13):
        creep = at_the_bound(radius, part, rng)
        value, slope = jax.jvp(lambda x: creeps(s, normal, x, True), (creep,), (0.3 * creep,))
        np.testing.assert_allclose(value, creep, rtol=1e-12)
        np.testing.assert_allclose(slope, 0.0, atol=1e-12)  # the bound does not follow the impulses
        np.testing.assert_allclose(creeps(s, normal, creep, False), creep, rtol=1e-12)
    creep = at_the_bound(radius, 0.99, rng)
    _, slope = jax.jvp(lambda x: creeps(s, normal, x, True), (creep,), (change,))
    np.testing.assert_allclose(slope, change, rtol=1e-12)


def strikes(s: Prediction, block: Any, answer: bool) -> Any:
    """What acts of augmented impulses (nc, 1 + nt)."""
    level = VelocityLevel(SYSTEM, True, False, answer=answer)
    at = types.SimpleNamespace(active=np.ones(SYSTEM.nc, bool), masses=jnp.ones(level.rows))
    groups = row_groups(SYSTEM)
    sigma = groups.stack(block, jnp.zeros(SYSTEM.nb))
    acts = level.law((s, types.SimpleNamespace(contacts=None, v=np.zeros(SYSTEM.nv)), at), sigma)
    return groups.contacts(acts)


@pytest.mark.parametrize("seed", range(1, 4))
def test_an_impulse_at_its_bound_has_the_derivative_of_one_that_slides(seed: int) -> None:
    s, rng, normal = step(seed)
    radius = s.friction * jnp.where(row_groups(SYSTEM).given, s.given.normal, normal)
    change = rng.normal(size=(SYSTEM.nc, 3))
    for part in (1.0 - 1e-13, 1.0, 1.0 + 1e-13):
        tangents = at_the_bound(radius, part, rng)
        block = np.concatenate([normal[:, None], tangents], axis=1)
        value, slope = jax.jvp(lambda x: strikes(s, x, True), (block,), (change,))
        np.testing.assert_allclose(value[:, 1:], tangents, rtol=1e-12)
        way = tangents / np.linalg.norm(tangents, axis=1, keepdims=True)
        push = np.where(np.arange(SYSTEM.nc) < ROUGH, s.friction * change[:, 0], 0.0)
        along = np.sum(way * np.asarray(slope)[:, 1:], axis=1)
        np.testing.assert_allclose(along, push, atol=1e-12)
        np.testing.assert_allclose(strikes(s, block, False)[:, 1:], tangents, rtol=1e-12)
    tangents = at_the_bound(radius, 0.99, rng)
    block = np.concatenate([normal[:, None], tangents], axis=1)
    slope = np.asarray(jax.jvp(lambda x: strikes(s, x, True), (block,), (change,))[1])
    np.testing.assert_allclose(slope[:ROUGH], change[:ROUGH], rtol=1e-12)
    np.testing.assert_allclose(slope[ROUGH:, 1], change[ROUGH:, 1], rtol=1e-12)
