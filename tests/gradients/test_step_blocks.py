"""Derivatives of runs that go through blocks of steps are those of the same run in one loop."""

from __future__ import annotations

import dataclasses
import importlib
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes
from nsjax.jaxtools.step_blocks import Plan, scan_steps
from nsjax.multibody import assemble, read_mjcf

FINE = Plan(steps=2, step=0, whole=0, part=2000)
NEVER = Plan(steps=10**9)


def derivatives(monkeypatch: pytest.MonkeyPatch, plan: Plan, problem, scheme, run) -> list[np.ndarray]:
    """Of an objective over all rows by the first velocities and a number of the model, in both modes."""
    for module in ("nsjax.loop", "nsjax.simulate"):
        planned = lambda *x, usual=None: scan_steps(*x[:4], plan, usual)  # noqa: E731
        monkeypatch.setattr(importlib.import_module(module), "scan_steps", planned)

    def objective(v: jax.Array, scale: jax.Array) -> jax.Array:
        state = dataclasses.replace(problem.state, v=v)
        params = jax.tree.map(lambda x: x * scale if jnp.ndim(x) == 0 else x, problem.params)
        traj = nsjax.simulate(problem.system, params, state, scheme, **run)
        weights = jnp.linspace(0.5, 1.0, traj.q.shape[0])
        return (
            jnp.sum(weights[:, None] * traj.q**2) + jnp.sum(traj.impulse_normal) + jnp.sum(traj.closed_time)
        )

    at = jnp.asarray(problem.state.v) + 0.1, jnp.asarray(1.0)
    value, slopes = jax.jit(jax.value_and_grad(objective, (0, 1)))(*at)
    along = jax.jit(lambda *x: jax.jvp(objective, x, tuple(map(jnp.ones_like, x)))[1])(*at)
    return [np.asarray(x) for x in (value, *slopes, along)]


def compare(monkeypatch: pytest.MonkeyPatch, *case, plan: Plan = FINE) -> None:
    found, expected = (derivatives(monkeypatch, x, *case) for x in (plan, NEVER))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.max(np.abs(b)))
    assert np.abs(expected[1]).max() > 0.0


@pytest.mark.parametrize("every", [1, pytest.param(21, marks=pytest.mark.slow)])
def test_a_ball_that_bounces(monkeypatch: pytest.MonkeyPatch, every: int) -> None:
    """Two impacts, the last block not full, rows of every step and one row."""
    problem = models.bouncing_ball(height=0.02, restitution=0.6)
    run = {"dt": 1e-2, "steps": 21, "every": every}
    compare(monkeypatch, problem, schemes.moreau(), run)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["moreau", "half_explicit", "generalized_alpha", "ggl_decoupled"])
def test_a_slider_crank_with_clearance(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Impacts and friction at four corners, by schemes of each family."""
    compare(
        monkeypatch, models.slider_crank(), getattr(schemes, name)(), {"dt": 1e-4, "steps": 420, "every": 1}
    )


@pytest.mark.slow
def test_a_hopper_that_lands(monkeypatch: pytest.MonkeyPatch, reference_data: pathlib.Path) -> None:
    """A robot of a file, by parts of the size that long runs have: it falls, lands, slides and lies."""
    hopper = assemble(*read_mjcf(reference_data / "robots" / "hopper.xml"), gravity=9.81)
    compare(
        monkeypatch, hopper, schemes.moreau(), {"dt": 1e-3, "steps": 1001, "every": 1}, plan=Plan(steps=2)
    )
