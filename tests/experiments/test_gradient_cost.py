"""What the timings of derivatives measure: the same derivative in both modes, as one kernel, in little
memory. Timings are never tests.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest

import nsjax
from experiments.performance import gradients
from nsjax import models, schemes


@pytest.mark.slow
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
