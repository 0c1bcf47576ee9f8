"""Batches of a stepper: lanes against single runs, numbers of their own, derivatives, refusals."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from tests.control.mechanisms import hopper

DT, STEPS, LANES = 1e-3, 200, 5
COMMAND = (0.5 + 0.1 * np.sin(0.05 * np.arange(STEPS)))[:, None] + np.linspace(-0.05, 0.05, LANES)
"""Lengths of the legs (steps, lanes): all land, at steps of their own."""


def stepper(**more: Any) -> nsjax.Stepper:
    return nsjax.stepper(
        hopper(), schemes.moreau(), DT, inputs=["motor"], outputs=["foot.force", "guide.position"], **more
    )


def drops() -> nsjax.State:
    """Starts of their own."""
    q = np.array([0.65, 0.5]) + 0.01 * np.arange(LANES)[:, None] * np.array([1.0, -1.0])
    return nsjax.State(t=0.0, q=q, v=np.zeros(2))


@pytest.mark.slow
def test_lanes_are_single_runs() -> None:
    own, start = stepper(), drops()
    many = own.batch(LANES)
    carry, rows = jax.lax.scan(many.step, many.reset(state=start), COMMAND)
    assert rows.q.shape == (STEPS, LANES, 2)
    run = jax.jit(lambda first, u: jax.lax.scan(own.step, first, u))
    for k in range(LANES):
        last, alone = run(own.reset(state=dataclasses.replace(start, q=start.q[k])), COMMAND[:, k])
        assert float(jnp.max(alone.outputs["foot.force"])) > 0.0  # it lands
        # the same operations; a compiler may round them in another order
        np.testing.assert_allclose(rows.q[:, k], alone.q, atol=1e-13)
        np.testing.assert_allclose(
            rows.outputs["foot.force"][:, k], alone.outputs["foot.force"], rtol=1e-9, atol=1e-9
        )
        assert int(carry.status[k]) == int(last.status) == 0


def test_a_policy_answers_all_lanes_and_sees_starts() -> None:
    many = stepper().batch(LANES)
    start = many.reset(state=drops())
    seen = many.observe(start)
    np.testing.assert_allclose(seen.outputs["guide.position"], drops().q[:, 0])

    def policy(state: Any, _: Any) -> Any:
        carry, seen = state
        carry, seen = many.step(carry, {"motor": 0.4 + 0.1 * seen.outputs["guide.position"]})
        return (carry, seen), seen.t

    (carry, _), t = jax.jit(lambda x: jax.lax.scan(policy, x, None, length=30))((start, seen))
    np.testing.assert_allclose(t[-1], np.full(LANES, 30 * DT))
    assert not np.any(carry.status)
