"""Sound starts of a batch are those that the checks of a single start let pass."""

import functools

import jax
import numpy as np
import pytest

import nsjax
from nsjax import models
from nsjax.core import checks
from nsjax.core.start_checks import sound
from tests.common.chain import chain

FAULTS = {
    "restitution": (-0.1, 1.5, np.nan), "friction": (-1e-9, np.nan), "gap": (-1e-8, -np.inf, np.nan),
    "constraint": (1e-7, -1e-7, np.nan), "rate": (1.0, np.nan), "mass": (np.nan, -1e3, 1.0),
    "energy": (0.0, -1.0, np.nan), "skew": (1e-6, np.nan), "outside: inertia": (1e-6, np.nan),
    "outside: joints": (1e-3,), "slip: bend": (1e-3,),
}  # fmt: skip


def _passes(system, found):
    try:
        checks.check_found(system, found)
    except nsjax.InputError:
        return False
    return True


@pytest.mark.parametrize(
    "problem",
    [
        models.slider_crank(),
        *(
            pytest.param(x, marks=pytest.mark.slow)
            for x in (
                models.slider_crank_bilateral(),
                chain(3, True, floor=True, loop=True),
            )
        ),
    ],
    ids=["slider_crank", "bilateral", "chain"],
)
def test_the_same_lanes_as_one_by_one(problem):
    system = problem.system
    params, state = checks.canonical(problem.params, "params"), checks.canonical(problem.state, "state")
    good = {name: np.asarray(x) for name, x in checks.probed(system, params, state).items()}
    lanes, rng = [good], np.random.default_rng(1)
    for name, values in FAULTS.items():
        for value in values if name in good else ():
            bad = good[name].copy()
            bad.reshape(-1)[rng.integers(bad.size)] = value
            lanes.append(good | {name: bad})
    batch = {name: np.stack([lane[name] for lane in lanes]) for name in good}
    wanted = [_passes(system, lane) for lane in lanes]
    assert wanted[0]
    assert not all(wanted)
    assert jax.vmap(functools.partial(sound, singular=False))(batch).tolist() == wanted
