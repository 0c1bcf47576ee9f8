"""Sentences about kinds of arguments, from the functions that users call."""

from __future__ import annotations

import pathlib
import pickle
from typing import Any

import jax
import numpy as np
import pytest

import nsjax
from nsjax import InputError, models, schemes
from nsjax.core.arguments import check_call, numbers
from nsjax.multibody import assemble, body, hinge

CRANK = models.slider_crank()
MOREAU = schemes.moreau()
PARTS = [body("rod", mass=1.0, inertia=0.1), hinge("pin", "ground", "rod")]
simulate: Any = nsjax.simulate


def stepper() -> Any:
    return nsjax.stepper(CRANK, MOREAU, 1e-4, inputs=["torque"], outputs=["theta1"])


def test_a_call_that_fits_passes() -> None:
    """A TypeError inside the function has its own reason."""
    fitting: Any = (MOREAU,), {"dt": 1e-3}
    check_call(lambda scheme, *, dt: None, *fitting)
    with pytest.raises(InputError, match="missing a required argument: 'steps'"):
        check_call(lambda scheme, steps, *, dt: None, *fitting)


@pytest.mark.parametrize("function", [nsjax.simulate, schemes.moreau, models.slider_crank, hinge])
def test_public_functions_pass_to_other_processes(function: Any) -> None:
    assert pickle.loads(pickle.dumps(function)) is function


def _reward(row: Any, u: Any) -> Any:
    return row.v[0]


def test_what_is_no_carry_is_named() -> None:
    step = stepper()
    for made in (step.step, step.observe):
        with pytest.raises(InputError, match="carry = None; give what reset"):
            made(None)
    with pytest.raises(InputError, match=r"carry.state.t has shape \(\), and the batch 2 lanes"):
        step.batch(2).step(step.reset(), np.zeros((2, 1)))
    with pytest.raises(InputError, match=r"reset: params = .*; give problem.params, of which"):
        step.reset(params=3.0)


def test_deviations_and_bounds_of_another_shape_are_named() -> None:
    linear = nsjax.analysis.linearise(CRANK)
    with pytest.raises(InputError, match=r"q and v have the shapes \(1,\) and \(3,\); give \(3,\)"):
        linear.deviation([0.0], [0.0, 0.0, 0.0])  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"\(2, 3\) and \(3,\); give \(3,\) and \(3,\), or lanes of them"):
        linear.deviation(np.zeros((2, 3)), np.zeros(3))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"dt = -1\.0; it must be positive"):
        linear.discrete(-1.0)
    pytest.importorskip("gymnasium")
    with pytest.raises(InputError, match=r"environment: low has shape \(2,\); give one number, or \(1,\)"):
        nsjax.environment(stepper(), _reward, low=[0.0, 1.0], high=2.0)


def test_numbers_keep_values_and_tracers(tmp_path: pathlib.Path) -> None:
    assert numbers("x", "y", [[1, 2]]).tolist() == [[1.0, 2.0]]
    assert numbers("x", "y", ()).shape == (0,)
    with pytest.raises(InputError, match="x: y = True; give a number"):
        numbers("x", "y", True)
    slope = jax.grad(lambda u: nsjax.signal([0.0, 1.0], [u, 2.0 * u]).values[1])(1.0)
    assert slope == 2.0


def test_warnings_name_the_line_of_the_caller() -> None:
    loop = [body("a", mass=1.0, inertia=0.1), hinge("h", "ground", "a"), hinge("i", "ground", "a")]
    with pytest.warns(UserWarning, match="follow from the others") as found:
        assemble(*loop)
    assert found[0].filename == __file__
