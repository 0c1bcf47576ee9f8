"""Other numbers for a problem: `Problem.replace` through nested parameters."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import InputError, Problem, State, System
from nsjax.types import record


@record()
class Rod:
    mass: Any
    length: Any
    joints: Any


class Spring(NamedTuple):
    stiffness: Any
    rest: Any


def mass(q, p):
    return p["rod"].mass * jnp.eye(1)


def force(t, q, v, p):
    return -p["springs"]["left"].stiffness * q


PARAMS = {
    "rod": Rod(mass=1.0, length=2.0, joints={"inner": 0.1, "outer": 0.2}),
    "springs": {"left": Spring(3.0, np.array([4.0, 5.0])), "right": Spring(6.0, np.array([7.0, 8.0]))},
    "friction": 0.3,
}
PROBLEM = Problem(
    system=System(nq=1, nv=1, mass=mass, force=force), params=PARAMS,
    state=State(t=0.0, q=np.zeros(1), v=np.ones(1)),
)  # fmt: skip


def differences(new: Problem) -> dict[str, Any]:
    """Leaves that are not those of `PROBLEM`, by their paths."""
    old, _ = jax.tree_util.tree_flatten_with_path(PROBLEM)
    pairs = zip(old, jax.tree.leaves(new), strict=True)
    changed = {jax.tree_util.keystr(p): y for (p, x), y in pairs if not np.array_equal(x, y)}
    assert jax.tree.structure(new) == jax.tree.structure(PROBLEM)
    return changed


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("friction", 0.1, ".params['friction']"),
        ("params.friction", 0.1, ".params['friction']"),
        ("rod.mass", 0.05, ".params['rod'].mass"),
        ("params.rod.mass", 0.05, ".params['rod'].mass"),
        ("rod.joints.outer", 0.9, ".params['rod'].joints['outer']"),
        ("springs.left.stiffness", 9.0, ".params['springs']['left'].stiffness"),
        ("springs.right.rest", [1.0, 2.0], ".params['springs']['right'].rest"),
        ("state.q", [0.4], ".state.q"),
        ("state.v", [0.4], ".state.v"),
        ("state.t", 0.4, ".state.t"),
        ("initial_q", [0.4], ".state.q"),
    ],
)
def test_one_number_and_no_other(name: str, value: Any, place: str) -> None:
    for new in (PROBLEM.replace({name: value}), PROBLEM.replace(**{name: value})):
        found = differences(new)
        assert list(found) == [place]
        np.testing.assert_array_equal(found[place], value)


def test_several_at_once_and_the_problem_itself_stays() -> None:
    new = PROBLEM.replace({"rod.mass": 0.05, "springs.left.rest[1]": 0.5}, friction=0.1, initial_v=[2.0])
    assert len(differences(new)) == 4
    left = new.params["springs"]["left"].rest
    np.testing.assert_array_equal(left, [4.0, 0.5])
    assert left.dtype == np.float64
    assert not differences(PROBLEM)
    assert not differences(PROBLEM.replace())


def test_a_group_with_all_of_its_names() -> None:
    joints = PROBLEM.replace(rod={"mass": 9.0, "length": 2.0, "joints": {"inner": 8.0, "outer": 0.2}})
    assert list(differences(joints).values()) == [9.0, 8.0]
    record = PROBLEM.replace(rod=dataclasses.replace(PARAMS["rod"], mass=7.0))
    assert list(differences(record).values()) == [7.0]
    spring = PROBLEM.replace({"springs.left": Spring(1.0, np.array([4.0, 5.0]))})
    assert list(differences(spring).values()) == [1.0]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rod": {"mass": 1}}, r"rod = {'mass': 1} leaves out some of its numbers; give rod\.mass$"),
        ({"rod": 1.0}, r"give rod\.mass or rod\.length or rod\.joints\.inner or rod\.joints\.outer$"),
        ({"springs": {"left": PARAMS["rod"], "right": PARAMS["springs"]["right"]}},
         r"springs\.left = .*; give springs\.left\.stiffness or springs\.left\.rest"),
        ({"params.rod.joints": {"iner": 1, "outer": 2}}, r"give params\.rod\.joints\.outer$"),
        ({"rod.mas": 1.0}, r"unknown parameter 'rod\.mas'; did you mean 'rod\.mass'"),
        ({"params.rod.mas": 1.0}, r"unknown parameter 'params\.rod\.mas'; did you mean 'rod\.mass'"),
        ({"mass": 1.0}, r"unknown parameter 'mass'; did you mean 'rod\.mass'"),
        ({"rod.mass.inner": 1.0}, r"unknown parameter 'rod\.mass\.inner'"),
        ({"state.p": 1.0}, r"unknown parameter 'state\.p'; .*Known: state\.t, state\.q, state\.v"),
        ({"friction": {"left": 1.0}}, r"friction = {'left': 1\.0}; it is one number or array"),
        ({"springs.left.rest[2]": 1.0}, r"the array has shape \(2,\); there is no such entry"),
        ({"scheme.rho_inf": 0.5}, r"scheme\.rho_inf: numbers of the scheme are given where"),
        ({"rod.mass": 1.0, "params.rod.mass": 2.0}, r"rod\.mass and params\.rod\.mass are the same number"),
        ({"springs.left": PARAMS["springs"]["left"], "springs.left.stiffness": 2.0}, "are the same number"),
        ({"state.q": [1.0], "initial_q": [1.0]}, r"state\.q and initial_q are the same number; give"),
    ],
)  # fmt: skip
def test_what_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=f"^replace: .*{sentence}"):
        PROBLEM.replace(changes)


def test_names_that_look_like_others_are_parameters_first() -> None:
    odd = dataclasses.replace(PROBLEM, params={"rod.mass": 1.0, "dt": 2.0, "a b": 3.0})
    new = odd.replace({"rod.mass": 4.0, "dt": 5.0, "a b": 6.0})
    assert new.params == {"rod.mass": 4.0, "dt": 5.0, "a b": 6.0}


def test_under_a_transformation() -> None:
    def stiffness(x):
        new = PROBLEM.replace({"springs.left.stiffness": x, "springs.left.rest[0]": x})
        return new.params["springs"]["left"].rest[0] * new.params["springs"]["left"].stiffness

    assert jax.grad(stiffness)(3.0) == pytest.approx(6.0)


def test_all_numbers_at_once() -> None:
    """As under ``jax.grad`` with respect to the whole record; what does not fit is refused."""
    twice = jax.tree.map(lambda x: 2.0 * x, PARAMS)
    new = PROBLEM.replace(params=twice, state=State(t=1.0, q=np.ones(1), v=np.zeros(1)))
    assert new.params["springs"]["right"].stiffness == 12.0
    assert new.state.t == 1.0

    def stiffness(params):
        return PROBLEM.replace(params=params).params["springs"]["left"].stiffness ** 2

    slope = jax.grad(stiffness)(jax.tree.map(lambda x: jnp.asarray(x, float), PARAMS))
    assert slope["springs"]["left"].stiffness == 6.0
    assert slope["rod"].mass == 0.0
    with pytest.raises(
        InputError, match=r"replace: params = .* leaves out some of its numbers; give params.f"
    ):
        PROBLEM.replace(params={"friction": 0.2})
    with pytest.raises(InputError, match=r"params and params.friction are the same number; give it once"):
        PROBLEM.replace({"params": twice, "params.friction": 0.2})
