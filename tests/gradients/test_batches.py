"""Derivatives of batches: those of a sum over lanes are those of the lanes, one by one."""

import jax
import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import System, models, schemes
from nsjax.contact import ContactLaw
from tests.design import each_family


@each_family("name")
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


SLIDE = System(
    name="slide", nq=2, nv=2, nc=1, nt=1, mass=lambda q, p: jnp.eye(2), gap=lambda t, q, p: q[1:],
    slip=lambda t, q, v, p: v[None, :1], force=lambda t, q, v, p: jnp.stack([0.5, -p["gravity"]]),
    law=lambda p: ContactLaw(restitution=0.4, friction=p["friction"]),
)  # fmt: skip

HEIGHTS = (0.0, 0.05, 9.0)
"""Lanes that lie, that bounce and slide, and that fly to the end: each takes branches of its own."""


@each_family("name")
def test_lanes_that_take_different_branches(name):
    scheme = schemes.REGISTRY[name].factory()
    weights = jnp.array([1.0, 2.0])

    def end(values, height):
        p = {"gravity": values[0], "friction": values[1]}
        start = nsjax.State(t=0.0, q=jnp.stack([0.0, height]), v=jnp.array([0.8, 0.0]))
        traj = nsjax.simulate(SLIDE, p, start, scheme, dt=5e-3, steps=60, every=60)
        return traj.q[-1] @ weights + jnp.sum(traj.closed_time[-1] + traj.gap_min[-1])

    at = jnp.array([[9.81, 0.3], [9.0, 0.2], [9.5, 0.25]]), jnp.array(HEIGHTS)
    alone = jax.jit(jax.grad(end))
    wanted = np.array([alone(*x) for x in zip(*at, strict=True)])
    assert np.max(np.abs(wanted[1])) > 0.1
    # the same arithmetic but for the order of sums
    inside = jax.jit(jax.vmap(jax.grad(end)))(*at)
    # nsga_coupled ends its passes at a tolerance; rounding decides their number: 3e-7 after two bounces
    atol = 1e-6 if name == "nsga_coupled" else 1e-12
    np.testing.assert_allclose(inside, wanted, rtol=1e-10, atol=atol)
    lanes = jax.vmap(end)
    around = jax.jit(jax.grad(lambda *x: jnp.sum(lanes(*x))))
    along = jax.jit(lambda x, h: jax.jvp(lambda x: lanes(x, h), (x,), (jnp.ones((3, 2)),))[1])
    np.testing.assert_allclose(around(*at), wanted, rtol=1e-10, atol=atol)
    np.testing.assert_allclose(along(*at), wanted.sum(axis=1), rtol=1e-10, atol=2 * atol)
