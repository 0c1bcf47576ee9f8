"""Programs and derived records live as long as their system, and systems that are gone leave nothing."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from typing import Any

import jax
import numpy as np
import pytest

import nsjax
from nsjax import InputError, models, schemes, stability
from nsjax.analysis import equilibrium
from nsjax.contact import stage
from nsjax.core import checks
from nsjax.jaxtools import owned
from nsjax.multibody import assemble, body, hinge, joint_spring, torque
from nsjax.simulate import _advance
from tests.design import slow_but


def pendulum(law: Any) -> Any:
    motor = [] if law is None else [torque("motor", "rod", law=law)]
    return assemble(
        body("rod", mass=1.0, inertia=0.1, com=0.5), hinge("pin", "ground", "rod"),
        joint_spring("hold", "pin", stiffness=50.0), *motor, gravity=9.81,
    )  # fmt: skip


def run(problem: Any, scheme: Any = None) -> Any:
    return nsjax.simulate(*problem, scheme or schemes.moreau(), dt=1e-3, steps=4)


USES = {
    "run": lambda problem: run(problem)["energy"],
    "iterated": lambda problem: run(problem, schemes.bathe()),
    "start": nsjax.consistent,
    "gradient": lambda problem: jax.grad(lambda mass: run(problem.replace({"rod.mass": mass})).q[-1, 0])(
        1.1
    ),
    "rest": lambda problem: equilibrium(problem),
    "sweep": lambda problem: nsjax.sweep(
        problem, schemes.moreau(), over={"params.rod.mass": np.array([1.0, 2.0])}, dt=1e-3, steps=4
    ),
}


@pytest.mark.parametrize("use", slow_but(USES, "run"))
def test_mechanisms_that_are_gone(use: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with a law of its own, so that no two are equal: the latest stay, the others go."""
    monkeypatch.setattr(owned, "RECENT", 1)
    known = []
    for k in range(3):
        problem = pendulum(lambda t, scene, own, k=k: -0.1 * k * scene.spin("rod"))
        known.append(weakref.ref(problem.system.parts))
        USES[use](problem)
        del problem
    stage._solver.cache_clear()  # its list is as long as that of systems, 16
    for _ in range(4):  # what one collection frees drops entries of JAX's caches, which hold others
        gc.collect()
    assert [found() is not None for found in known] == [False, False, True]


def test_mechanisms_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that somebody holds does not compile again, nor does its equal, however many come after."""
    monkeypatch.setattr(owned, "RECENT", 1)
    law = lambda t, scene, own: -0.1 * scene.spin("rod")  # noqa: E731
    first = pendulum(law)
    run(first)
    run(pendulum(lambda t, scene, own: -0.2 * scene.spin("rod")))
    programs = _advance._cache_size()
    equal = pendulum(law)
    assert equal.system is not first.system
    run(equal)
    run(first)
    assert _advance._cache_size() == programs
    assert owned.owned(equal.system) is owned.owned(first.system)


def test_a_system_that_comes_again() -> None:
    """A loop that builds its mechanism anew in each turn compiles once."""
    law = lambda t, scene, own: -0.3 * scene.spin("rod")  # noqa: E731
    run(pendulum(law))
    gc.collect()
    programs = _advance._cache_size()
    run(pendulum(law))
    assert _advance._cache_size() == programs


def test_checks_are_not_repeated_for_equal_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call with the same numbers, in new arrays or not, examines no start and estimates no largest step;
    one with other numbers does, also where an array has got other numbers.
    """
    examined: list[str] = []
    for module, name in ((checks, "probed"), (stability, "_fastest")):
        real = getattr(module, name)

        def told(*given: Any, real: Any = real, name: str = name) -> Any:
            examined.append(name)
            return real(*given)

        monkeypatch.setattr(module, name, told)
    mass, problem = np.array(1.25), pendulum(None)
    run(problem.replace({"rod.mass": mass}))
    assert examined == ["probed", "_fastest"]
    run(problem.replace({"rod.mass": 1.25}))
    assert len(examined) == 2
    mass[...] = 1.5
    run(problem.replace({"rod.mass": mass}))
    run(problem.replace(initial_v=np.array([0.5])))
    assert len(examined) == 6


def test_numbers_that_were_good_and_changed_are_refused() -> None:
    system, params, state = models.bouncing_ball()
    params = dataclasses.replace(params, restitution=np.array(0.5))
    for _ in range(2):
        run((system, params, state))
    params.restitution[...] = 1.5
    for _ in range(2):
        with pytest.raises(InputError, match=r"restitution = .*1\.5"):
            run((system, params, state))
    params.restitution[...] = np.nan
    with pytest.raises(InputError, match="must be finite"):
        run((system, params, state))
    params.restitution[...] = 0.5
    assert int(run((system, params, state)).status) == 0


def test_as_many_results_as_said_are_held() -> None:
    system, params, state = models.bouncing_ball()
    for k in range(8):
        stability.fastest(system, params, dataclasses.replace(state, t=np.asarray(float(k))))
    found = [x for key, x in owned.owned(system).items() if key[0] is owned.latest]
    assert found
    assert all(len(held) <= 4 for held in found)


def test_keys_of_arrays_that_stay_the_same_are_found_without_their_bits() -> None:
    """Arrays of JAX cannot change; numbers of numpy can, and equal ones of either kind are equal."""
    known: dict = {}
    arrays = [jax.numpy.array([1.0, 2.0]), jax.numpy.array(3.0)]
    first = owned.by_value(arrays, known)
    assert owned.by_value(list(arrays), known) is first
    changing = [np.array([1.0, 2.0]), np.array(3.0)]
    assert owned.by_value(changing, known) == first
    changing[1][...] = 4.0
    assert owned.by_value(changing, known) != first
    assert owned.by_value([arrays[1], arrays[0]], known) != first
    assert owned.by_value({"x": arrays[0], "y": arrays[1]}, known) != first


def test_a_trajectory_has_the_numbers_as_they_were_given() -> None:
    """Not the arrays of the device: checks of these, by the next run, take longer."""
    traj = run(pendulum(None))
    assert all(type(x) is np.ndarray for x in jax.tree.leaves(traj.params))
