"""Arrays that all passes of a loop share, in one vector."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.jaxtools.control_flow import Shared, lanes_around


def total(a: jax.Array, b: jax.Array, still: jax.Array, together: bool) -> jax.Array:
    """A sum of products over passes of a loop, of arrays of some shapes and types."""
    tree = {"a": a, "still": still, "more": [b, jnp.arange(3)]}
    shared = Shared.of(tree, lanes_around(tree)[1])

    def one(x: jax.Array, _: None) -> tuple[jax.Array, None]:
        own = {"x": x, **tree}
        if together:
            some, whole = shared.apart(own)
            assert [y.shape for y in some[1]] == [(3,), (2,), ()]  # integers, what does not move, x
            kinds = [y.dtype for y in jax.tree.leaves(own)]
            own = whole(some)
            assert [y.dtype for y in jax.tree.leaves(own)] == kinds
        matrix, turns = own["more"]
        return own["x"] * own["a"] + jnp.sum(matrix * turns) * own["still"][0], None

    return jax.lax.scan(one, jnp.asarray(1.0), None, length=4)[0]


@pytest.mark.parametrize("lanes", [False, True])
def test_the_same_derivative(lanes: bool) -> None:
    a, b = jnp.asarray(0.7), jnp.asarray([[0.3, -0.2, 0.9], [1.1, 0.4, -0.6]], dtype=jnp.float32)
    still = jnp.array([0.5, 2.0])

    def slopes(together: bool):
        one = jax.jit(jax.grad(lambda a, b: total(a, b, still, together), argnums=(0, 1)))
        return jax.vmap(one, (0, None))(jnp.stack([a, 2.0 * a]), b) if lanes else one(a, b)

    for x, y in zip(slopes(True), slopes(False), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-6 if x.dtype == jnp.float32 else 1e-14)


def test_one_sum_for_each_pass() -> None:
    """Reverse mode adds up one cotangent, of the vector."""
    made = jax.make_jaxpr(jax.grad(lambda a, b: total(a, b, jnp.ones(2), True), argnums=(0, 1)))
    loops = [x for x in made(0.7, jnp.ones((2, 3))).eqns if x.primitive is jax.lax.scan_p]
    sums = [x for x in loops[-1].params["jaxpr"].eqns if x.primitive.name == "add_any"]
    assert [x.outvars[0].aval.shape for x in sums] == [(7,)]
