"""What the timings of derivatives measure: the same derivative in both modes, as one kernel, in little
memory. Timings are never tests.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import nsjax
from experiments.performance import gradients
from nsjax import models, schemes

STEPS = 1500  # flight, two impacts of both corners of a wall, and flight again


def both_modes(name: str, steps: int) -> tuple[Any, Any, Any]:
    """The program of reverse mode, its gradient, and the derivatives forward in six directions."""
    reverse = jax.jit(gradients.program(name, "reverse", steps)).lower(gradients.AT).compile()
    forward = jax.jit(gradients.program(name, "forward6", steps))(gradients.AT)
    return reverse, np.asarray(reverse(gradients.AT)), np.asarray(forward)


@pytest.mark.slow
@pytest.mark.parametrize("name", gradients.schemes_with_friction())
def test_forward_and_reverse_agree(name: str) -> None:
    reverse, gradient, forward = both_modes(name, STEPS)
    # the same derivatives in another order of sums; asked for by the specification
    np.testing.assert_allclose(forward, gradient, rtol=1e-9, atol=1e-9 * np.max(np.abs(gradient)))
    assert np.all(np.isfinite(gradient))
    # carries of all steps within the budget of one level, and what one step needs
    assert reverse.memory_analysis().temp_size_in_bytes < 2**20
    assert gradients.is_one_kernel(reverse)


def test_the_same_runs_are_compared() -> None:
    """The program without derivative is the run itself."""
    system, params, state = models.slider_crank()
    traj = nsjax.simulate(system, params, state, schemes.moreau(), dt=gradients.STEP, steps=400, every=400)
    plain = jax.jit(gradients.program("moreau", "plain", 400))(gradients.AT)
    # rounding of two programs, over the first impact
    assert float(plain) == pytest.approx(float(traj.q[-1, 0] + traj.q[-1, 1]), rel=1e-11)
    assert int(np.sum(traj.impacts)) > 0


def test_ratios_are_of_calls_in_the_same_round() -> None:
    seen: list[str] = []
    programs = {name: (lambda x, name=name: seen.append(name)) for name in "abc"}
    base, found = gradients.ratios(programs, 7)
    assert seen == list("abc") * 8
    assert base >= 0.0
    assert set(found) == {"b", "c"}
