"""Gradients of reduced sweeps: right, and in the memory of one lane."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import reductions, schemes
from tests.sweep.press import BALL

LANES, DT, STEPS = 256, 5e-4, 500
HEIGHTS = np.linspace(0.05, 0.1, LANES)


def loss(both):
    """Mean square distance from 0.2 m after 0.25 s over starting heights; each ball bounces once."""
    restitution, gravity = both
    found = nsjax.sweep(
        BALL.replace(restitution=restitution, gravity=gravity), schemes.moreau(),
        {"state.q[0]": HEIGHTS}, reduce=reductions.final("z"), dt=DT, steps=STEPS, every=STEPS,
    )  # fmt: skip
    return jnp.mean((found.values - 0.2) ** 2)


@pytest.fixture(scope="module")
def compiled():
    return jax.jit(jax.value_and_grad(loss)).lower(np.array([0.9, 9.81])).compile()


def test_memory_is_that_of_one_lane(compiled) -> None:
    memory = compiled.memory_analysis().temp_size_in_bytes
    # carries of the steps of one lane, and inputs, results and status of all; carries of 500 steps of 256
    # lanes would take more than 256 * 500 * 80 bytes = 10 MB
    assert memory < STEPS * 120 + LANES * 200
