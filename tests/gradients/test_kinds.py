"""Steps without events whose derivative is a program of their own, against one program for all steps."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes
from nsjax.jaxtools import implicit


def end(x: jax.Array, scheme: nsjax.Scheme, steps: int, rows: int = 1) -> jax.Array:
    """Height and velocity of a ball that bounces some times."""
    system, params, state = models.bouncing_ball()
    state = nsjax.State(t=0.0, q=jnp.asarray(state.q) * (1.0 + 0.1 * x), v=jnp.asarray(state.v) + 0.3 * x)
    traj = nsjax.simulate(system, params, state, scheme, dt=1e-3, steps=steps, every=steps // rows, save=[])
    return traj.q[-1, 0] + traj.v[-1, 0]


@pytest.mark.parametrize(
    ("name", "lanes"),
    [
        ("moreau", False),
        pytest.param("moreau", True, marks=pytest.mark.slow),
        pytest.param("moreau_theta", False, marks=pytest.mark.slow),
        pytest.param("ggl_decoupled", False, marks=pytest.mark.slow),
    ],
)
def test_through_impacts(name: str, lanes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same derivative to rounding, where every program counts as a large one."""
    scheme, kinds, found = schemes.REGISTRY[name].factory(), implicit._by_kind, []

    def seen(*given):
        both = kinds(*given)
        found.append(both is not None)
        return both

    def slope(rows: int) -> np.ndarray:
        one = jax.grad(lambda x: end(x, scheme, 1000, rows))
        return np.asarray(jax.vmap(one)(jnp.array([1.0, 1.2])) if lanes else one(1.0))

    monkeypatch.setattr(implicit, "_by_kind", seen)
    wanted = slope(1)
    assert not found
    assert np.all(wanted != 0.0)
    monkeypatch.setattr(implicit, "LARGE_WITH_TANGENTS", 0)
    # what has been traced is taken again, but for another number of rows
    np.testing.assert_allclose(slope(2), wanted, rtol=1e-12)
    assert found
    assert all(found)
