"""Keywords of models of another kind than their defaults are refused where the model is made."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from nsjax import InputError, models

WRONG: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("block", {"formulation": ["rotation"]}, r"formulation = \['rotation'\]; give a word, 'rotation'"),
    ("block", {"rough": None}, "rough = None; give True or False"),
    ("block", {"mass": "x"}, "mass = 'x'; numbers and arrays of numbers only"),
    ("block", {"friction": float("nan")}, "friction = nan; every number must be finite"),
    ("block", {"friction": None}, "friction = None; give numbers, or leave it out"),
    ("block", {"gravity": {}}, "gravity = {}; give numbers, or leave it out"),
    ("block", {"height": [1.0, 2.0]}, r"height has shape \(2,\); give one number"),
    ("block", {"size": [1.0, 2.0]}, r"size has shape \(2,\); give \(3,\)"),
    ("block", {"initial_q": "x"}, "initial_q = 'x'; numbers and arrays"),
    ("bouncing_ball", {"balls": 1.5}, "balls = 1.5; give a whole number"),
    ("bouncing_ball", {"balls": True}, "balls = True; give a whole number"),
    ("flexible_cube", {"size": [0.1, 0.1]}, r"size has shape \(2,\); give one number or \(3,\)"),
    ("rubbing_rotor", {"speed": ()}, r"speed has shape \(0,\); give one number"),
    ("slider_crank_flexible", {"elements": [20]}, r"elements = \[20\]; give a whole number"),
)


@pytest.mark.parametrize(("model", "given", "said"), WRONG, ids=[f"{x[0]}-{x[1]}" for x in WRONG])
def test_wrong_keywords_are_named(model: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=f"^{model}: {said}"):
        getattr(models, model)(**given)


def test_numbers_of_all_kinds_are_taken() -> None:
    """Whole numbers, numpy's and traced ones, and one value for each contact."""
    made = models.block(mass=np.float64(2.0), friction=[0.1] * 8, slope=np.array(0.1), height=1)
    assert made.params.friction.shape == (8,)
    assert made.state.q[2] == 1.15
    assert models.bouncing_ball(balls=np.int64(2), height=[1.0, 2.0]).state.q.shape == (2,)
    height = jax.grad(lambda x: models.flexible_pendulum(angle=x, length=2.0 * x).state.q[-2])(0.5)
    assert np.isfinite(height)
