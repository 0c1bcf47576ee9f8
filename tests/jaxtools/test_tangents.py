"""Derivatives made by hand: of first order, and refused beyond it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive
from jax.interpreters import ad

import nsjax
from nsjax import models, schemes
from nsjax.jaxtools import make_live, only_tangent, with_retract_tangent, with_tangent
from tests.design import slow_but

TWICE = {
    "forward over forward": lambda f: jax.jacfwd(jax.jacfwd(f)),
    "forward over reverse": lambda f: jax.jacfwd(jax.grad(f)),
    "reverse over forward": lambda f: jax.grad(jax.jacfwd(f)),
    "reverse over reverse": lambda f: jax.grad(jax.grad(f)),
}
SENTENCE = r'gradient="saltation" is of first order only. Use schemes.localized\(scheme\)'


def test_values_pass_and_tangents_are_added() -> None:
    x = jnp.array([0.3, 2.0])
    primal, tangent = jax.jvp(lambda x: (only_tangent(x**2), with_tangent(x, x**3)), (x,), (jnp.ones(2),))
    np.testing.assert_array_equal(primal[0], np.zeros(2))
    np.testing.assert_array_equal(primal[1], x)
    np.testing.assert_allclose(tangent[0], 2 * x, rtol=1e-15)
    np.testing.assert_allclose(tangent[1], 1 + 3 * x**2, rtol=1e-15)
    turn = jax.grad(
        lambda x: jnp.sum(with_retract_tangent(lambda q, xi: q * jnp.exp(xi), x, only_tangent(x)))
    )(x)
    np.testing.assert_allclose(turn, 1 + x, rtol=1e-15)


def test_a_carry_that_is_made_live_is_differentiated_once() -> None:
    """Values, derivatives and what is no float stay; the body of the loop is met once, not once for each
    part of the carry that the derivative reaches."""
    met = []
    passed = Primitive("passed")
    passed.def_abstract_eval(lambda x: x)
    ad.primitive_jvps[passed] = lambda x, dx: (met.append(1), (passed.bind(*x), *dx))[1]

    def run(live: bool, p: jax.Array, through=lambda x: x) -> jax.Array:
        start = {"first": jnp.zeros(()), "second": jnp.ones((2,)), "count": 0}

        def body(c, _):
            new = {"first": through(p) * c["first"] + p, "second": c["second"] * c["first"]}
            return {**new, "count": c["count"] + 1}, None

        end, _ = jax.lax.scan(body, make_live(start, p) if live else start, None, length=3)
        return end["first"] + jnp.sum(end["second"]) + end["count"]

    p = jnp.asarray(0.7)
    for d in (jax.value_and_grad, lambda f: lambda x: jax.jvp(f, (x,), (1.0,))):
        plain, live = d(lambda p: run(False, p))(p), d(lambda p: run(True, p))(p)
        np.testing.assert_array_equal(plain, live)
    # a tangent that is not finite does not spread to what does not depend on it
    _, tangent = jax.jvp(lambda p: make_live(jnp.ones(2), p), (p,), (jnp.inf,))
    np.testing.assert_array_equal(tangent, np.zeros(2))

    def times(live: bool) -> int:
        met.clear()
        jax.make_jaxpr(jax.grad(lambda p: run(live, p, passed.bind)))(p)
        return len(met)

    assert times(True) == 1
    assert times(False) > 1


def loop(x: jax.Array) -> jax.Array:
    """As a time loop uses it: in a checkpointed step, in a branch."""

    def step(x, _):
        shift = jax.lax.cond(x > 0.0, lambda x: only_tangent(jnp.sin(x)), lambda x: 0.0 * x, x)
        return 0.9 * with_tangent(x, shift), None

    return jax.lax.scan(jax.checkpoint(step), x, None, length=3)[0]


@pytest.mark.parametrize("order", slow_but(TWICE, *(x for x in TWICE if x != "forward over forward")))
def test_a_second_differentiation_raises_a_sentence(order: str) -> None:
    x = jnp.asarray(0.3)
    for once in (jax.grad, jax.jacfwd):
        # the product of three factors 0.9 (1 + cos x)
        x1, x2 = 0.9 * x, 0.81 * x
        exact = 0.9**3 * (1 + jnp.cos(x)) * (1 + jnp.cos(x1)) * (1 + jnp.cos(x2))
        assert float(once(loop)(x)) == pytest.approx(float(exact), rel=1e-14)
    with pytest.raises(NotImplementedError, match=SENTENCE):
        TWICE[order](loop)(x)


def final(e: jax.Array, scheme: str) -> jax.Array:
    problem = models.bouncing_ball(height=0.05, restitution=e)
    traj = nsjax.simulate(
        *problem, schemes.REGISTRY[scheme].factory(), dt=1e-3, steps=300, every=300, save=[]
    )
    return traj.q[-1, 0]


# the other schemes share these two places of the shift; tracing them twice takes half a minute
@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "order"),
    list(zip(("moreau", "generalized_alpha", "ggl_unified", "moreau"), TWICE, strict=False)),
)
def test_a_run_differentiated_twice_raises_a_sentence(scheme: str, order: str) -> None:
    with pytest.raises(NotImplementedError, match=SENTENCE):
        jax.eval_shape(TWICE[order](lambda e: final(e, scheme)), jnp.asarray(0.8))


def _values(x, y):
    """All functions of the module, of an ``x`` without lanes and a ``y`` with some."""
    fixed = jnp.ones(2)
    return jnp.stack(
        [
            with_tangent(fixed, y - jax.lax.stop_gradient(y)),
            with_retract_tangent(lambda q, xi: q + 3.0 * xi, fixed, y - jax.lax.stop_gradient(y)),
            fixed + only_tangent(y), fixed + only_tangent(y, refuse=False), make_live(fixed, y) * x,
        ]
    )  # fmt: skip


def test_derivatives_of_batches():
    """Values without lanes whose tangents have lanes, inside a compiled function: JAX then took one for the
    other, with wrong numbers or an error deep inside.
    """
    y = jnp.arange(6.0).reshape(3, 2)
    whole = jax.vmap(jax.jit(lambda y: _values(2.0, y)))
    value, tangent = jax.jvp(whole, (y,), (jnp.ones_like(y),))
    np.testing.assert_array_equal(value, np.broadcast_to([[1.0], [1.0], [1.0], [1.0], [2.0]], (3, 5, 2)))
    expected = np.broadcast_to([[1.0], [3.0], [1.0], [1.0], [0.0]], (3, 5, 2))
    np.testing.assert_array_equal(tangent, expected)
    gradient = jax.grad(lambda y: jnp.sum(whole(y)))(y)
    np.testing.assert_array_equal(gradient, np.full((3, 2), 6.0))
