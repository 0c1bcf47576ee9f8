"""Every registered model moves in pictures, and its contacts stand where its gaps say."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import models
from nsjax.core.operators import prepared
from nsjax.motion import motion
from tests.common.test_models import LIGHT, NAMES, moving, small
from tests.design import slow_but
from tests.plot.coasting import coasting

MATERIAL = (
    "block", "elastic_bar", "flexible_cube", "flexible_pendulum", "slider_crank", "slider_crank_flexible",
)  # fmt: skip
"""Models whose contacts are points of bodies: places move as gaps and slips do."""


@pytest.mark.parametrize("name", slow_but(NAMES, *LIGHT))
def test_every_model_moves(name: str) -> None:
    problem = small(name)
    _, q, v = moving(problem)
    state = dataclasses.replace(problem.state, q=np.asarray(q), v=np.asarray(v))
    problem = dataclasses.replace(problem, state=state)
    seen = motion(problem, coasting(problem, push=1e-3))
    bodies = [x for x in seen.shapes if x.role == "body"]
    assert bodies
    assert not all(x.still for x in bodies)
    assert all(np.isfinite(x.world[:, 0]).all() for x in seen.shapes)
    assert (seen.places is None) == (problem.system.nc == 0)
    if seen.forces is not None:
        sizes = np.linalg.norm(seen.forces, axis=-1)
        assert not sizes[0].any()
        np.testing.assert_allclose(sizes[1:], 1.0, rtol=1e-12)  # 1 mN s in 1 ms, along unit normals


@pytest.mark.parametrize("name", MATERIAL)
def test_contacts_move_as_gaps_and_slips_say(name: str) -> None:
    """Rates of the drawn places against the functions that the schemes see; exact but for rounding."""
    problem = small(name)
    t, q, v = moving(problem)
    s = problem.system

    def rates(p, q, v):
        p = prepared(s, p)
        along = lambda x: s.retract(q, x * v)  # noqa: E731
        here = s.shapes(t, q, p).contacts
        _, moved = jax.jvp(lambda x: s.shapes(t, along(x), p).contacts.points, (0.0,), (1.0,))
        _, opened = jax.jvp(lambda x: s.gap(t, along(x), p), (0.0,), (1.0,))
        slip = jnp.zeros((s.nc, 0)) if s.slip is None else s.slip(t, q, v, p)
        return jnp.sum(here.normals * moved, -1), opened, jnp.sum(here.tangents * moved[:, None], -1), slip

    up, opened, across, slip = jax.jit(rates)(problem.params, q, v)
    np.testing.assert_allclose(up, opened, atol=1e-12)
    np.testing.assert_allclose(across, slip, atol=1e-12)


def test_the_rotor_touches_its_ring_where_the_gap_is_zero() -> None:
    problem = models.rubbing_rotor(initial_q=(1.8e-4, 2.4e-4, 0.0))
    seen = motion(problem, coasting(problem))
    ring, disc = (next(x for x in seen.shapes if x.name == name) for name in ("ring", "disc"))
    centre = disc.points[0, -2]
    radius = np.linalg.norm(disc.points[0, 0] - centre)
    left = np.linalg.norm(ring.points[0, 0]) - np.linalg.norm(centre) - radius
    assert abs(left) < 1e-12
    assert seen.magnified == pytest.approx(0.3 * 0.05 / 3e-4)
