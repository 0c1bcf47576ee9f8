"""Gradients of returns of a policy through landings, against wide secants of the mean over many starts.

A run puts an impact at a step of its grid, so that a return is a saw-tooth of its inputs: a secant of one
start is off by what one tooth makes, either way. The mean over starts that land at all parts of a step
evens the teeth out.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from tests.control.mechanisms import hopper

SLOW = pytest.mark.slow
TIME, GAIN, WIDTHS = 0.3, 0.5, np.array([0.025, 0.05, 0.1])
"""Length of a run [s], the gain of the policy, and how far secants go to either side."""


class Returns:
    """Mean height of the trunk over a run, in which its leg becomes shorter the lower it is.

    Args:
        dt: step size [s].
        starts: number of starts, from heights of their own.
    """

    def __init__(self, dt: float, starts: int) -> None:
        self.dt, self.steps = dt, round(TIME / dt)
        self.many = nsjax.stepper(
            hopper(), schemes.moreau(), dt, inputs=["motor"], save=["impacts"]
        ).batch(starts)  # fmt: skip
        q = np.array([0.62, 0.5]) + np.linspace(0.0, 0.06, starts)[:, None] * np.array([1.0, 0.0])
        self.start = nsjax.State(t=0.0, q=q, v=np.zeros(2))

    def __call__(self, gain: Any) -> tuple[Any, Any]:
        """Of every start (starts,), and impacts of every contact."""

        def step(carry: Any, _: Any) -> Any:
            carry, row = self.many.step(carry, 0.5 + gain * (0.6 - carry.state.q[:, 0]))
            return carry, (row.q[:, 0], row.impacts)

        _, (height, impacts) = jax.lax.scan(
            step, self.many.reset(state=self.start), None, length=self.steps
        )
        return self.dt * jnp.sum(height, axis=0), jnp.sum(impacts, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(("dt", "starts"), [(1e-3, 32), pytest.param(5e-4, 64, marks=SLOW)])
def test_the_mean_gradient_is_the_secant_of_the_mean(dt: float, starts: int) -> None:
    """At three widths, all with the same impacts. The scatter of the single secants says how well their
    mean is known: three of its deviations, and the first order of the derivative in ``dt``.
    """
    value = Returns(dt, starts)
    run = jax.jit(value)
    slope = jax.jit(lambda x: jax.jvp(lambda y: value(y)[0], (x,), (1.0,))[1])(GAIN)
    impacts = run(GAIN)[1]
    assert np.all(np.sum(impacts, axis=1) > 0)
    mean = float(jnp.mean(slope))
    for width in WIDTHS:
        (more, one), (less, other) = run(GAIN + width), run(GAIN - width)
        np.testing.assert_array_equal(one, impacts)
        np.testing.assert_array_equal(other, impacts)
        secants = np.asarray(more - less) / (2.0 * width)
        scatter = np.std(secants - slope) / np.sqrt(starts)
        assert scatter < 0.06 * mean  # else the comparison says nothing
        assert abs(np.mean(secants) - mean) < 3.0 * scatter + dt / TIME * mean, (width, secants, slope)
