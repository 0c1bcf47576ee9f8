"""Different mechanisms side by side in one program."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from experiments.performance.program_size import operations
from nsjax import multibody as mb
from nsjax import schemes, status
from nsjax.core import InputError, Problem, start_checks
from nsjax.core.operators import prepared
from nsjax.multibody.size_classes.tree_packing import placed
from nsjax.sweep.mechanisms import _run_lanes
from tests.multibody.size_classes.test_plane import four_bar


def chain(links: int, turned: bool = False, **law: Any) -> Problem:
    """A chain whose last link has a ball that strikes the floor, with limits and dry friction."""
    bodies = [mb.body(f"link{k}", mass=1.0 + 0.1 * k, inertia=(0.01, 0.012, 0.013), com=(0.05, 0.0, -0.2))
              for k in range(links)]  # fmt: skip
    above = ["ground", *(x.name for x in bodies)]
    joints = [
        mb.hinge(
            f"pin{k}", above[k], x.name, at=(0.0, 0.0, -0.4 if k else 0.0),
            axis=(1, 0, 0) if (k % 3 == 1) != (turned and k == links - 1) else (0, 1, 0),
            limits=(-1.5, 1.5) if k % 2 else None, friction=0.01 if k == 1 else None,
        )
        for k, x in enumerate(bodies)
    ]  # fmt: skip
    dampers = [mb.joint_spring(f"damper{k}", f"pin{k}", damping=0.01) for k in range(links)]
    ball = mb.sphere(f"link{links - 1}", 0.05, at=(0.0, 0.0, -0.4))
    floor = mb.contact("tip", ball, mb.plane(at=(0.0, 0.0, -0.35 * links)), **({"friction": 0.3} | law))
    return mb.assemble(*bodies, *joints, *dampers, floor, gravity=9.81, start={"pin0": (1.2, 0.5)})


def same(
    problem: Problem, run: Any, scheme: Any, struck: bool = True, angle: str = "pin0.angle", **times: Any
) -> None:
    """A lane is the run of the mechanism alone, and has its names."""
    alone = nsjax.simulate(*problem, scheme, **times)
    assert not int(run.status)
    assert alone.impacts.sum() > 0 or not struck
    np.testing.assert_allclose(run.q, alone.q, atol=1e-12)
    np.testing.assert_allclose(run.v, alone.v, atol=1e-11)
    np.testing.assert_array_equal(run.impacts, alone.impacts)
    np.testing.assert_allclose(run[angle], alone[angle], atol=1e-12)
    np.testing.assert_allclose(run.constraint_impulse, alone.constraint_impulse, atol=1e-12)
    np.testing.assert_allclose(run.gap, alone.gap, atol=1e-12)
    assert list(run.columns) == list(alone.columns)
    assert f"{run}".splitlines()[0] == f"{alone}".splitlines()[0]


def test_chains_of_different_lengths_in_one_batch_and_other_mechanisms_without_compiling() -> None:
    times = {"dt": 1e-3, "steps": 500}
    both = nsjax.side_by_side(chain(1), chain(2))
    runs = both.simulate(schemes.moreau(), **times)
    assert [x.q.shape for x in runs] == [(501, 1), (501, 2)]
    programs = _run_lanes._cache_size()
    others = nsjax.side_by_side(chain(1, restitution=0.4), chain(2, turned=True))
    assert others.size_class == both.size_class
    again = others.simulate(schemes.moreau(), **times)
    assert _run_lanes._cache_size() == programs
    same(chain(2, turned=True), again[1], schemes.moreau(), **times)


@pytest.mark.slow
def test_chains_of_one_to_twelve_links_in_one_batch() -> None:
    times, chains = {"dt": 1e-3, "steps": 500}, [chain(k + 1) for k in range(12)]
    runs = nsjax.side_by_side(*chains).simulate(schemes.moreau(), **times)
    for k in (0, 4, 11):
        same(chains[k], runs[k], schemes.moreau(), struck=k == 0, **times)


@pytest.mark.slow
def test_loops_in_one_batch_and_others_without_compiling() -> None:
    """A four-bar and a slider-crank, then others with more springs, limits and another tree."""
    times = {"dt": 1e-3, "steps": 300}
    both = nsjax.side_by_side(four_bar(), four_bar(rocker=False))
    runs = both.simulate(schemes.moreau(), **times)
    for problem, run in zip(both.problems, runs, strict=True):
        same(problem, run, schemes.moreau(), angle="crank.angle", **times)
    programs = _run_lanes._cache_size()
    others = nsjax.side_by_side(four_bar((0.15, 0.55, 0.4)), four_bar((0.18, 0.45, 0.3), rocker=False))
    assert others.size_class == both.size_class
    again = others.simulate(schemes.moreau(), **times)
    assert _run_lanes._cache_size() == programs
    same(others.problems[1], again[1], schemes.moreau(), angle="crank.angle", **times)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["chain", "loop"])
def test_derivatives_are_those_of_the_mechanism(case: str) -> None:
    """Through the impact of the last link, and through that of a loop on its stop."""
    scheme, steps = schemes.moreau(), 500 if case == "chain" else 300
    problem, other = (chain(3), chain(2)) if case == "chain" else (four_bar(rocker=False), four_bar())
    key, at = ("link1.mass", 1.1) if case == "chain" else ("rod.mass", 0.8)

    def last(given: Problem) -> Any:
        return nsjax.simulate(*given, scheme, dt=1e-3, steps=steps, every=steps).q[-1, 2]

    def beside(mass: Any) -> Any:
        return last(nsjax.side_by_side(problem.replace({key: mass}), other).problem())

    wanted = jax.jvp(lambda mass: last(problem.replace({key: mass})), (at,), (1.0,))[1]
    assert abs(wanted) > 1e-3
    np.testing.assert_allclose(jax.jvp(beside, (at,), (1.0,))[1], wanted, rtol=1e-9)
    np.testing.assert_allclose(jax.grad(beside)(at), wanted, rtol=1e-9)


def legged(free: bool, ball: bool = False) -> Problem:
    """A body with two legs above a floor, free, or upright on slides; one leg on a ball joint."""
    rod = {"mass": 0.4, "inertia": (0.01, 0.012, 0.004), "com": (0.0, 0.0, -0.15)}
    parts = [
        mb.body("trunk", mass=2.0, inertia=(0.03, 0.04, 0.05)),
        mb.body("left", **rod),
        mb.body("right", **rod),
    ]
    if not free:
        parts += [mb.body("cart", mass=0.2), mb.slide("x", "ground", "cart", axis=(1, 0, 0)),
                  mb.slide("z", "cart", "trunk", axis=(0, 0, 1))]  # fmt: skip
    parts += [
        mb.ball("L", "trunk", "left", at=(0.1, 0.1, 0.0)) if ball
        else mb.hinge("L", "trunk", "left", at=(0.1, 0.1, 0.0), axis=(0, 1, 0), limits=(-0.5, 0.6)),
        mb.hinge("R", "trunk", "right", at=(0.1, -0.1, 0.0), axis=(0, 1, 0), limits=(-0.5, 0.6)),
        mb.joint_spring("spring", "R", stiffness=3.0, damping=0.05),
        *(mb.contact(f"{x}_foot", mb.sphere(x, 0.03, at=(0.0, 0.0, -0.3)), mb.plane(), friction=0.6,
                     restitution=0.2) for x in ("left", "right")),
    ]  # fmt: skip
    start = {"trunk": (0.0, 0.0, 0.36)} if free else {"z": 0.36}
    return mb.assemble(*parts, gravity=9.81, start=start | {"R": (0.2, 1.0)})


TEAM = {"upright": (False, False), "free": (True, False), "on a ball": (False, True), "both": (True, True)}


@pytest.mark.slow
def test_quaternions_stand_at_the_same_places_in_all_mechanisms_of_a_class() -> None:
    """None, of a free base before hinges, of a ball among hinges, and both, in one batch."""
    times = {"dt": 1e-3, "steps": 200}
    team = nsjax.side_by_side(*(legged(*x) for x in TEAM.values()))
    for problem, run in zip(team.problems, team.simulate(schemes.moreau(), **times), strict=True):
        same(problem, run, schemes.moreau(), angle="R.angle", **times)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["moreau", "generalized_alpha"])
def test_derivatives_beside_mechanisms_with_other_quaternions(scheme: str) -> None:
    """Forward and reverse through the landing, of each mechanism by the program of all four."""
    made, problems = schemes.REGISTRY[scheme].factory(), [legged(*x) for x in TEAM.values()]
    team = nsjax.side_by_side(*problems)

    def last(system: Any, params: Any, state: Any, v: Any) -> Any:
        start = dataclasses.replace(state, v=v)
        traj = nsjax.simulate(system, params, start, made, dt=1e-3, steps=80, every=80)
        return jnp.concatenate([traj.q[-1], traj.v[-1]])

    @jax.jit
    def beside(params: Any, state: Any, way: Any, back: Any) -> Any:
        end = functools.partial(last, team.size_class.system, params, state)
        return jax.jvp(end, (state.v,), (way,))[1], jax.vjp(end, state.v)[1](back)[0]

    for k, problem in enumerate(problems):
        tree, draw = team.packings[k].tree, np.random.default_rng(k)
        way = draw.normal(size=problem.system.nv)
        back = draw.normal(size=len([*problem.state.q, *problem.state.v]))
        end = functools.partial(last, *problem)
        wanted = np.asarray(
            jax.jit(lambda v, end=end, way=way: jax.jvp(end, (v,), (way,))[1])(problem.state.v)
        )
        at_q, at_v = tree.places(team.size_class)
        rows, one = np.concatenate([at_q, team.size_class.layout.nq + at_v]), team.problem(k)
        wide = placed(way, at_v, len(one.state.v)), placed(back, rows, len(one.state.q) + len(one.state.v))
        forward, reverse = (np.asarray(x) for x in beside(one.params, one.state, *wide))
        np.testing.assert_allclose(forward[rows], wanted, atol=1e-10 * np.max(np.abs(wanted)))
        np.testing.assert_allclose(reverse[at_v] @ way, back @ wanted, rtol=1e-9)


FAULTS = {
    "link1.mass": (1.0, -0.05, status.REFUSED_NEGATIVE),
    "pin1.armature": (0.1, -0.1, status.REFUSED_NEGATIVE),
    "link1.inertia": ((0.1,) * 3, (0.1, 0.1, 0.3), status.REFUSED_NEGATIVE),
    "tip.friction": (0.3, -0.1, status.REFUSED_LAW),
    "link1.com": ((0.0, 0.0, -0.1), (0.0, 0.0, np.nan), status.REFUSED_NOT_FINITE),
}
"""By name of a number: a good value, a bad one, and the bit that says so."""


@pytest.mark.slow
def test_a_lane_of_a_class_says_why_it_is_refused() -> None:
    """Also where the mass matrix stays positive definite."""
    arm = mb.hinge("pin1", "link0", "link1", at=(0.0, 0.0, -0.4), axis=(1, 0, 0), armature=0.1)
    parts = [mb.body(f"link{k}", mass=1.0, inertia=(0.1, 0.1, 0.1), com=(0.0, 0.0, -0.1))
             for k in range(2)]  # fmt: skip
    floor = mb.contact("tip", mb.sphere("link1", 0.05), mb.plane(at=(0.0, 0.0, -9.0)), friction=0.3)
    pin = mb.hinge("pin0", "ground", "link0", axis=(0, 1, 0))
    problem = mb.assemble(*parts, pin, arm, floor, gravity=9.81)

    def run(given: Any) -> Any:
        one = nsjax.side_by_side(problem.replace(given)).problem()
        traj = nsjax.simulate(*one, schemes.moreau(), dt=1e-3, steps=2)
        return traj.status, traj.q

    made, good = jax.jit(run), {key: np.asarray(x, float) for key, (x, _, _) in FAULTS.items()}
    assert int(made(good)[0]) == 0
    for key, (_, bad, bit) in FAULTS.items():
        bits, q = made(good | {key: np.asarray(bad, float)})
        assert int(bits) == status.REFUSED | bit, key
        assert np.isnan(np.asarray(q)).all()


def test_checks_of_a_class_are_few_operations() -> None:
    """Signs and laws alone, as those of a mechanism, not the mechanics again."""
    system, params, state = nsjax.side_by_side(chain(3)).problem()
    examined = jax.jit(lambda *x: start_checks.examined(system, *x, schemes.moreau(), 1e-3))
    force = jax.jit(lambda p, s: system.force(s.t, s.q, s.v, prepared(system, p)))
    few, mechanics = (operations(f.lower(params, state)) for f in (examined, force))
    assert few < mechanics


def rod(name: str) -> Any:
    return mb.body(name, mass=1.0, inertia=(1.0, 1.0, 1.0))


TURNS = mb.hinge("j", "ground", "a", axis=(1, 0, 0))
ROD = [rod("a"), TURNS, rod("b"), mb.hinge("k", "a", "b", axis=(1, 0, 0))]
REFUSED: dict[str, Any] = {
    r"joints of this kind \('j'\)": lambda: [
        rod("a"), mb.screw("j", "ground", "a", axis=(1, 0, 0), pitch=0.1),
    ],
    r"rolling joints \('r'\)": lambda: [
        mb.body("a", mass=1.0, inertia=1.0), mb.rolling("r", "ground", "a", radius=1.0),
    ],
    r"loads that read other bodies, or act in a joint without a coordinate of the tree \('f'\)": lambda: [
        *ROD, mb.force("f", "a", law=lambda t, scene, own: -scene.position("b")),
    ],
    r"limits of joints that close loops, or of tendons through points \('s'\)": lambda: [
        *ROD, mb.slide("s", "ground", "b", limits=(-9.0, 9.0), loop=True),
    ],
    r"shapes whose features are searched for \('c'\)": lambda: [
        rod("a"), TURNS,
        mb.contact("c", mb.cylinder("a", 0.1, 0.1), mb.box("ground", 1.0, 1.0, 0.1, at=(0.0, 0.0, -5.0))),
    ],
}  # fmt: skip


@pytest.mark.parametrize("words", REFUSED)
def test_features_that_arrays_do_not_describe_are_refused(words: str) -> None:
    problem = mb.assemble(*REFUSED[words](), gravity=9.81)
    with pytest.raises(InputError, match=f"the mechanism has {words}, which programs of size"):
        nsjax.side_by_side(problem)


def test_problems_that_are_no_mechanisms_or_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="side_by_side: no problem; give results of assemble"):
        nsjax.side_by_side()
    with pytest.raises(InputError, match="the problem is no mechanism of parts; give what"):
        nsjax.side_by_side(nsjax.models.bouncing_ball())
    flat = mb.assemble(mb.body("a", mass=1.0), mb.slide("s", "ground", "a"))
    with pytest.raises(InputError, match="one mechanism is planar, another spatial; run them apart"):
        nsjax.side_by_side(chain(1), flat)
