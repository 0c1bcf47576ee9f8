"""Rows of the nonsmooth generalized-alpha family that depend on others: against least squares of numpy."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.contact.equations import linearised
from nsjax.linalg import Dense
from nsjax.schemes.nsga.correction import Tangent, correction

N, ROWS = 4, 6


@functools.partial(jax.jit, static_argnames="derivative")
def found(case: dict, dynamic: jax.Array, rows: jax.Array, derivative: bool = True):
    """The correction, made of plain arrays."""
    linear = linearised(
        Dense(), lambda w: case["j"] @ w, jnp.zeros(N), case["w"].T, case["w"], jnp.zeros((N, N))
    )
    law = jnp.where(case["on"], 1.0, 0.0)[:, None] * np.eye(ROWS)
    added = jnp.zeros(ROWS, bool)
    x = Tangent(linear=linear, law=law, k=case["k"], p=case["k"], added=added, weight=1e-9)
    return correction(x, dynamic, rows, derivative)


def drawn(seed: int) -> tuple[dict[str, np.ndarray], np.random.Generator]:
    """Six rows of four velocities, some of them equal, opposite or empty; most of them hold. What is
    independent is clearly so, and digits are left to compare.
    """
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(N, N))
    while True:
        w = rng.normal(size=(ROWS, N))
        w[3], w[5] = -2.0 * w[0], rng.choice([0.0, 1.0]) * w[1]
        if np.linalg.svd(w[[0, 1, 2, 4]], compute_uv=False)[-1] > 0.1:
            break
    on = rng.uniform(size=ROWS) < 0.8
    return {"j": half @ half.T + np.eye(N), "w": w, "on": on, "k": rng.uniform(0.3, 3.0, ROWS)}, rng


@pytest.mark.parametrize("seed", range(30))
def test_rows_that_agree_are_fulfilled(seed: int) -> None:
    case, rng = drawn(seed)
    wanted, dynamic = rng.normal(size=(2, N))
    w, k, on = case["w"], case["k"], case["on"]
    dw, dx = found(case, dynamic, np.where(on, -k * (w @ wanted), 0.0))
    held = w[on]
    # the motion with these speeds whose residual the directions of the rows that hold carry
    free = np.linalg.solve(case["j"], -dynamic)
    response = np.linalg.solve(case["j"], held.T)
    force = np.linalg.pinv(held @ response, rcond=1e-9) @ (held @ (wanted - free))
    np.testing.assert_allclose(dw, free + response @ force, atol=1e-10)
    force = np.where(on, k * (dx - w @ dw), 0.0)
    np.testing.assert_allclose(case["j"] @ dw + dynamic, w.T @ force, atol=1e-10)


@pytest.mark.parametrize("seed", range(30))
def test_what_rows_cannot_fulfil_stays_small(seed: int) -> None:
    """Two rows in one direction that ask for different speeds: neither by one over a weight."""
    case, rng = drawn(seed)
    case["on"] = np.isin(np.arange(ROWS), [0, 1, 3])
    rows = case["on"] * rng.normal(size=ROWS)
    _, dx = found(case, np.zeros(N), rows)
    w = case["w"][:2]
    own = w @ np.linalg.solve(case["j"], w.T)
    # two independent rows alone, whose response is at least this, ask for no more; the third one's speed
    # is up to twice theirs
    least, k = np.linalg.eigvalsh(own)[0], np.min(case["k"])
    assert np.abs(dx).max() <= np.linalg.norm(rows) / k * (2.0 + 1.0 / (k * least))
    weighted = found(case, np.zeros(N), rows, derivative=False)[1]
    assert np.abs(weighted).max() > 1e6
