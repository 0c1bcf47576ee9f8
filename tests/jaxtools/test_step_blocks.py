"""Runs whose derivative goes through blocks of steps: the derivatives of a scan, in small kernels."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.jaxtools.control_flow import StepBlocks, branch
from nsjax.jaxtools.internals import jaxpr_as_fun
from nsjax.jaxtools.programs import in_one_list
from nsjax.jaxtools.step_blocks import Plan, in_loops, scan_steps

AT = jnp.array([1.1, 0.7, 0.4]), jnp.array([0.3, 0.8, 0.1])
FINE = Plan(steps=2, step=0, whole=0, block=8, part=20)


def total(p: jax.Array, x: jax.Array, scan, length: int) -> jax.Array:
    """Of the last state and of all rows; in some steps a branch is taken that is larger than a part."""

    def body(carry, _):
        x, n, t = carry
        struck = lambda x: jnp.tanh(jnp.sin(p[0] * x) * jnp.cos(x) + x[0] * jnp.exp(0.1 * x[1] * p[1]))  # noqa: E731
        y = branch(x[0] > 0.2, struck, lambda x: jnp.cos(p[1] * x) + p[0] * t, x)
        y = jax.jit(lambda y: 0.3 * y @ jnp.outer(y, p).T)(y) + 0.2 * x
        return (y, n + 1, t + 0.01), (y * y, n, t, x[:0])

    last, (rows, counts, times, _) = scan(body, (x, 0, 0.0), length)
    assert rows.shape == (length, 3)
    weighed = jnp.sum(rows * jnp.arange(length)[:, None]) + jnp.sum(counts * rows[:, 0])
    return jnp.sum(last[0] * jnp.array([1.0, 2.0, 3.0])) + weighed + jnp.sum(times)


def plain(body, carry, length):
    return jax.lax.scan(body, carry, None, length=length)


def in_blocks(body, carry, length, size=16):
    return scan_steps(body, carry, length, StepBlocks(size, True), FINE)


@pytest.mark.parametrize(("length", "size"), [(16, 16), (37, 16)])
def test_blocks_are_a_scan(length: int, size: int) -> None:
    """Values and derivatives in both modes, also where the last block is not full."""
    own, other = (
        lambda *x, scan=scan: total(*x, scan, length)
        for scan in (functools.partial(in_blocks, size=size), plain)
    )
    for f in (lambda f: jax.value_and_grad(f, (0, 1))(*AT), lambda f: jax.jvp(f, AT, AT)):
        for a, b in zip(*(jax.tree.leaves(f(x)) for x in (own, other)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)


def test_a_batch_of_blocks() -> None:
    """Lanes that take the branch in different steps."""
    lanes = [jnp.stack([x, 0.9 * x]) for x in AT]
    found = [
        jax.vmap(jax.grad(lambda p, x, scan=scan: total(p, x, scan, 19), (0, 1)))(*lanes)
        for scan in (in_blocks, plain)
    ]
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.slow
def test_second_derivatives() -> None:
    found = [
        jax.hessian(lambda p, scan=scan: total(p, AT[1], scan, 19))(AT[0]) for scan in (in_blocks, plain)
    ]
    np.testing.assert_allclose(*found, rtol=1e-12)


def test_rows_by_loops_of_few_operations() -> None:
    """A function for each of several rows, of which some take a branch of several parts."""

    def function(a, x):
        far = lambda x: jnp.sin(x) * jnp.cos(x) + jnp.exp(-x) * a  # noqa: E731
        return jax.lax.cond(x > 1.0, far, lambda x: x, 2.0 * x), x + a

    rows = jnp.linspace(0.0, 1.0, 5)
    made = in_one_list(jax.make_jaxpr(function)(0.3, 0.1))
    shared, own = dict(zip(made.jaxpr.invars[:1], [0.3], strict=True)), {made.jaxpr.invars[1]: rows}
    in_loops(made.jaxpr, shared, own, 3)
    expected = jax.vmap(lambda x: jnp.stack(jaxpr_as_fun(made)(0.3, x)))(rows).T
    np.testing.assert_allclose([own[x] for x in made.jaxpr.outvars], expected, rtol=1e-15)
