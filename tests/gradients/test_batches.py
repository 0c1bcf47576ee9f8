"""Derivatives of batches: those of a sum over lanes are those of the lanes, one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes

QUICK = ("moreau",)


@pytest.mark.parametrize(
    "name",
    [x if x in QUICK else pytest.param(x, marks=pytest.mark.slow) for x in schemes.REGISTRY],
)
def test_gradient_of_a_batch_through_impacts(name):
    problem, scheme = models.bouncing_ball(), schemes.REGISTRY[name].factory()

    def end(gravity, restitution):
        ball = problem.replace(gravity=gravity, restitution=restitution)
        return nsjax.simulate(*ball, scheme, dt=2e-3, steps=400, every=400).q[-1, 0]

    at = jnp.linspace(9.0, 10.0, 3), jnp.array([0.5, 0.6, 0.7])
    wanted = [jax.jit(jax.grad(end, k)) for k in (0, 1)]
    wanted = np.array([[f(g, e) for g, e in zip(*at, strict=True)] for f in wanted])
    lanes = jax.vmap(end)
    found = jax.jit(jax.grad(lambda *x: jnp.sum(lanes(*x)), (0, 1)))(*at)
    forward = jax.jit(lambda g, e: jax.jvp(lanes, (g, e), (jnp.ones(3), jnp.zeros(3)))[1])(*at)
    # the same arithmetic but for the order of sums
    np.testing.assert_allclose(found, wanted, rtol=1e-11)
    np.testing.assert_allclose(forward, wanted[0], rtol=1e-11)
