"""Sentences about kinds of arguments, from the functions that users call."""

from __future__ import annotations

import pathlib
import pickle
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
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


WRONG_CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "near": (lambda: simulate(dtt=1e-3), "simulate: unknown argument 'dtt'"),
    "missing": (
        lambda: simulate(*CRANK, dt=1e-3, steps=1),
        r"simulate: missing a required argument: 'scheme'; it takes \(system, params, state, scheme,",
    ),
    "by name only": (lambda: simulate(*CRANK, MOREAU, 1e-3), r"arguments; it takes \(system"),
    "scheme first": (
        lambda: nsjax.simulate(MOREAU, *CRANK, dt=1e-3, steps=1),  # type: ignore[arg-type, misc]
        r"simulate: system = a Scheme; it must be an nsjax.System; give the problem, then the scheme",
    ),
    "parts": (
        lambda: simulate(*PARTS, MOREAU, dt=1e-3, steps=1),
        "simulate: the first argument is a part or a list of parts, which is no problem yet; give simulate",
    ),
    "list of parts": (lambda: simulate(PARTS, MOREAU, dt=1e-3, steps=1), "is a part or a list of parts"),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_wrong_calls_of_simulate_are_refused_with_its_arguments(case: str) -> None:
    call, sentence = WRONG_CALLS[case]
    with pytest.raises(InputError, match=sentence):
        call()


def test_a_call_that_fits_passes() -> None:
    """A TypeError inside the function has its own reason."""
    fitting: Any = (MOREAU,), {"dt": 1e-3}
    check_call(lambda scheme, *, dt: None, *fitting)
    with pytest.raises(InputError, match="missing a required argument: 'steps'"):
        check_call(lambda scheme, steps, *, dt: None, *fitting)


@pytest.mark.parametrize("function", [nsjax.simulate, schemes.moreau, models.slider_crank, hinge])
def test_public_functions_pass_to_other_processes(function: Any) -> None:
    assert pickle.loads(pickle.dumps(function)) is function


NO_PROBLEM: dict[str, Callable[[Any], Any]] = {
    "stepper": lambda x: nsjax.stepper(x, MOREAU, 1e-4),
    "linearise": lambda x: nsjax.analysis.linearise(x),
    "equilibrium": lambda x: nsjax.analysis.equilibrium(x),
    "consistent": lambda x: nsjax.consistent(x),
    "inputs": lambda x: nsjax.driven(x, {"torque": 0.0}),
    "filtered": lambda x: nsjax.filtered(x, {"torque": 0.02}),
    "sweep": lambda x: nsjax.sweep(x, MOREAU, {"dt": [1e-4]}, steps=1),
}


@pytest.mark.parametrize("who", NO_PROBLEM)
@pytest.mark.parametrize("value", [None, CRANK.system], ids=["none", "system"])
def test_what_is_no_problem_is_named(who: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^{who}: problem = .*; it must be an nsjax.Problem"):
        NO_PROBLEM[who](value)


NO_NUMBERS: dict[str, tuple[Callable[[], Any], str]] = {
    "step sizes": (
        lambda: nsjax.sweep_time_step(CRANK, MOREAU, "1e-3", time=0.1, rows=10),  # type: ignore[arg-type]
        "sweep_time_step: dts = '1e-3'",
    ),
    "times": (lambda: nsjax.table("a", [1.0]), "table: times = 'a'"),
    "values": (lambda: nsjax.table([0.0], [None]), r"table: values = \[None\]"),
    "ragged": (lambda: nsjax.table([0.0, 1.0], [[1.0], [1.0, 2.0]]), "table: values = "),
    "constant": (lambda: nsjax.driven(CRANK, {"torque": "a"}), "inputs: 'torque' = 'a'"),
    "constant time": (lambda: nsjax.filtered(CRANK, {"torque": "a"}), "time constant of 'torque' = 'a'"),
    "input": (lambda: stepper().step(stepper().reset(), "a"), "step: u = 'a'"),
    "bound": (lambda: nsjax.environment(stepper(), _reward, low="a", high=1.0), "environment: low = 'a'"),
}


def _reward(row: Any, u: Any) -> Any:
    return row.v[0]


@pytest.mark.parametrize("case", NO_NUMBERS)
def test_what_is_no_number_is_named(case: str) -> None:
    made, said = NO_NUMBERS[case]
    with pytest.raises(InputError, match=f"{said}.*; give a number or an array of numbers"):
        made()


LISTS: dict[str, Callable[[], Any]] = {
    "inputs = 'torque'": lambda: nsjax.stepper(CRANK, MOREAU, 1e-4, inputs="torque"),
    "outputs = 3": lambda: nsjax.stepper(CRANK, MOREAU, 1e-4, outputs=3),  # type: ignore[arg-type]
    "inputs = None": lambda: nsjax.analysis.linearise(CRANK, inputs=None),  # type: ignore[arg-type]
    "contacts = 'x'": lambda: nsjax.analysis.equilibrium(CRANK, contacts="x"),
}


@pytest.mark.parametrize("said", LISTS)
def test_what_is_no_list_is_named(said: str) -> None:
    with pytest.raises(InputError, match=f"{said}; give a list of names"):
        LISTS[said]()


@pytest.mark.parametrize("what", ["time_constants", "start", "ranges"])
def test_what_is_no_mapping_is_named(what: str) -> None:
    given: dict[str, Any] = {"time_constants": {"torque": 0.02}, what: 3}
    with pytest.raises(InputError, match=rf"filtered: {what} = 3; give a mapping of names, \{{'motor'"):
        nsjax.filtered(CRANK, **given)
    with pytest.raises(InputError, match="driven: inputs = None; give a mapping of names"):
        nsjax.driven(CRANK, None)  # type: ignore[arg-type]


FILES: dict[str, Callable[[Any, Any], Any]] = {
    "save": lambda x, traj: nsjax.save(x, CRANK, traj),
    "run": lambda x, traj: nsjax.run(CRANK, MOREAU, x, dt=1e-4, steps=1),
    "to_paraview": lambda x, traj: nsjax.to_paraview(CRANK, traj, x),
    "animate": lambda x, traj: nsjax.animate(CRANK, traj).save(x),
    "export_program": lambda x, traj: nsjax.export_program(x, jnp.sin, 1.0),
    "read_mesh": lambda x, traj: nsjax.fem.read_mesh(x),
    "sweep": lambda x, traj: nsjax.sweep(CRANK, MOREAU, {"dt": [1e-4]}, steps=1, checkpoint=x),
}


@pytest.mark.parametrize("who", FILES)
def test_what_is_no_file_name_is_named(who: str) -> None:
    traj = nsjax.simulate(*CRANK, MOREAU, dt=1e-4, steps=2)
    with pytest.raises(InputError, match="path = 3; give the name of a file"):
        FILES[who](3, traj)


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
    slope = jax.grad(lambda u: nsjax.table([0.0, 1.0], [u, 2.0 * u]).values[1])(1.0)
    assert slope == 2.0


def test_warnings_name_the_line_of_the_caller() -> None:
    loop = [body("a", mass=1.0, inertia=0.1), hinge("h", "ground", "a"), hinge("i", "ground", "a")]
    with pytest.warns(UserWarning, match="follow from the others") as found:
        assemble(*loop)
    assert found[0].filename == __file__
