"""What may be varied, how lanes are made of it, and what is refused before any work."""

from __future__ import annotations

import numpy as np
import pytest

import nsjax
from nsjax import models, reductions, schemes

BALL = models.bouncing_ball(balls=2, height=0.1)
FRICTION, RESTITUTION = "params.friction", "params.restitution"


def plan(over, scheme=None, **options):
    """A sweep that is refused before it runs."""
    options = {"dt": 1e-3, "steps": 10, "every": 10, **options}
    return nsjax.sweep(BALL, scheme or schemes.moreau(), over, **options)


@pytest.mark.parametrize(
    ("over", "options", "words"),
    [
        ({"params.frction": [0.1]}, {}, "params has no 'frction'; did you mean 'friction'"),
        ({"friction": [0.1]}, {}, "did you mean 'params.friction'"),
        ({"params": [0.1]}, {}, "'params' is no key; did you mean 'params.NAME'"),
        ({"state.v[7]": [0.1]}, {}, "state.v has shape (2,); there is no such entry"),
        ({"scheme.rho_inf": [0.1]}, {}, "scheme has no 'rho_inf'"),
        ({"state": [0.1]}, {}, "'state' is no key"),
        ({"start.rod": [0.1]}, {}, "'start.rod' is no key; did you mean 'state.q[0]'"),
        ({3: [0.1]}, {}, "3 is no key"),
        ({}, {}, "give a mapping such as"),
        ({FRICTION: []}, {}, "there is no lane"),
        ({FRICTION: 0.1}, {}, "lanes come first"),
        ({FRICTION: [[0.1, 0.2], [0.3]]}, {}, "one value per lane, all of one shape"),
        ({FRICTION: np.zeros(3, np.float32)}, {}, "give real numbers in 64 bits"),
        ({"state.v": np.zeros((3, 5))}, {}, "has shape (3, 5)"),
        ({FRICTION: [0.1, 0.2], RESTITUTION: [0.5]}, {}, "mode='product'"),
        ({FRICTION: [0.1]}, {"mode": "outer"}, "mode = 'outer'"),
        ({"state.v": np.zeros((1, 2)), "state.v[0]": [1.0]}, {}, "are the same number; vary it once"),
        ({"dt": [1e-3]}, {}, "give the step size either as dt or in over"),
        ({FRICTION: [0.1]}, {"dt": None}, "give the step size either as dt or in over"),
        ({FRICTION: [0.1]}, {"rows": 2}, "every = 10 and rows = 2; give one of them"),
        ({"dt": [1e-3, 3e-4]}, {"dt": None, "steps": None, "time": 0.01, "every": None}, "value 1 of dt"),
        (
            {"dt": [1e-3, 2e-3]},
            {"dt": None, "steps": None, "time": 0.01, "every": None, "rows": 10},
            "dt = 0.002 needs 5 steps, which do not make 10 rows",
        ),
        ({FRICTION: [0.1]}, {"reduce": 3}, "reduce = 3; give a fold"),
        ({FRICTION: [0.1]}, {"reduce": {}}, "reduce = {}; give a fold"),
        ({FRICTION: [0.1]}, {"memory_bytes": 0}, "memory_bytes = 0"),
        ({FRICTION: [0.1]}, {"memory_bytes": 100}, "one lane on each of 1 devices needs"),
        ({FRICTION: [0.1]}, {"gradient": "none"}, "gradient"),
        ({FRICTION: [0.1]}, {"reduce": reductions.final("thta")}, "'thta'"),
    ],
)
def test_refusals(over, options, words: str) -> None:
    with pytest.raises(nsjax.InputError) as refused:
        plan(over, **options)
    assert words in str(refused.value)
