"""A batch of a loop drops lanes that have ended; every lane is that of the plain loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from nsjax.jaxtools import control_flow
from nsjax.jaxtools.control_flow import repeat
from tests.design import in_turn


@pytest.fixture(autouse=True)
def accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")


def collatz(loop: Callable[..., Any], n: Any, step: Any) -> Any:
    """Passes to one, at most 200, and a sum on the way: between 0 and 118 passes below 100."""
    carry = (n, jnp.zeros((), int), jnp.zeros(2))

    def going(c: Any) -> Any:
        return (c[0] != 1) & (c[1] < 200)

    def body(c: Any) -> Any:
        n, k, total = c
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), k + 1, total + step * n

    return loop(going, body, carry)


def uneven(going: Any, body: Any, start: Any) -> Any:
    return repeat(going, body, start, uneven=True)


def alike(found: Any, wanted: Any) -> None:
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(("lanes", "axes"), in_turn((1, 3, 31, 257), ((0, 0), (0, None), (None, 0))))
def test_lanes_are_those_of_the_plain_loop(lanes: int, axes: tuple[int | None, int | None]) -> None:
    rng = np.random.default_rng(lanes)
    n = rng.integers(1, 1_000, lanes) if axes[0] == 0 else 97
    step = rng.normal(size=(lanes, 2)) if axes[1] == 0 else np.array([1.0, -2.0])
    batches = [
        jax.jit(jax.vmap(lambda n, step, loop=loop: collatz(loop, n, step), axes))(n, step)
        for loop in (uneven, lax.while_loop)
    ]
    alike(*batches)


def test_late_passes_have_few_lanes() -> None:
    """Lane k takes k passes: 512 lanes pass through the loop until 64 are left, these to the end."""

    def body(c: Any) -> Any:
        return c[0] - 1, c[1] + 1

    def count(n: Any) -> Any:
        return uneven(lambda c: c[0] > 0, body, (n, jnp.zeros((), int)))[1]

    found = jax.vmap(count)(np.arange(512))
    np.testing.assert_array_equal(found, np.arange(512))
    program = jax.jit(jax.vmap(count)).lower(np.arange(512)).as_text()
    loops = [x for x in program.splitlines() if "stablehlo.while" in x]
    assert len(loops) == 2
    few = 512 // control_flow.KEPT
    assert few >= control_flow.LEAST > few // control_flow.KEPT
