"""Consistent starts: found, reported, and asked for where they are missing."""

from __future__ import annotations

import dataclasses
import re

import jax
import numpy as np
import pytest

import nsjax
from nsjax import models, multibody, schemes
from nsjax.core.operators import prepared, refreshed
from tests.design import slow_but


def with_state(problem, q, v):
    return problem.replace(initial_q=np.array(q), initial_v=np.array(v))


CRANK = models.slider_crank_bilateral()
L1, L2 = 0.153, 0.306


def test_start_off_the_constraint_is_moved_onto_it_in_the_kinetic_metric() -> None:
    given = with_state(CRANK, [0.3, 0.1], [150.0, 10.0])
    found = nsjax.consistent(given)
    q, v = found.problem.state.q, found.problem.state.v
    assert abs(L1 * np.sin(q[0]) + L2 * np.sin(q[1])) < 1e-13  # the solver stops at an estimated 1e-13
    assert abs(L1 * np.cos(q[0]) * v[0] + L2 * np.cos(q[1]) * v[1]) < 1e-13
    mass = np.asarray(given.system.mass(np.array([0.3, 0.1]), _prepared(given)))
    w = np.array([L1 * np.cos(0.3), L2 * np.cos(0.1)])
    # moved along M^-1 W of the given start, and the velocity along M^-1 W of the new one
    along = np.linalg.solve(mass, w)
    np.testing.assert_allclose(
        np.linalg.det([found.position_change, along]), 0.0, atol=1e-12 * np.abs(along).max()
    )
    mass = np.asarray(given.system.mass(q, _prepared(given)))
    along = np.linalg.solve(mass, [L1 * np.cos(q[0]), L2 * np.cos(q[1])])
    size = np.abs(along).max() * np.abs(found.velocity_change).max()
    np.testing.assert_allclose(np.linalg.det([found.velocity_change, along]), 0.0, atol=1e-13 * size)
    assert "position moved by up to" in str(found)
    assert "velocity moved by up to" in str(found)


def _prepared(problem):
    return problem.system.prepare(problem.params) if problem.system.prepare else problem.params


def test_euclidean_metric_moves_along_the_gradient() -> None:
    given = with_state(CRANK, [0.3, 0.1], [0.0, 0.0])
    change = nsjax.consistent(given, metric="euclidean").position_change
    w = np.array([L1 * np.cos(0.3), L2 * np.cos(0.1)])
    np.testing.assert_allclose(np.linalg.det([change, w]), 0.0, atol=1e-15)
    with pytest.raises(nsjax.InputError, match="metric = 'lunar'; choose one of kinetic, euclidean"):
        nsjax.consistent(given, metric="lunar")


def test_a_consistent_start_is_left_alone() -> None:
    found = nsjax.consistent(CRANK)
    np.testing.assert_array_equal(found.problem.state.q, CRANK.state.q)
    np.testing.assert_allclose(found.problem.state.v, CRANK.state.v, rtol=1e-15)


def test_sunk_balls_are_lifted_and_stopped() -> None:
    """Two balls one above the other: the lower sunk, the upper one in it and falling."""
    problem = models.bouncing_ball(balls=2, radius=0.1, restitution=0.5)
    found = nsjax.consistent(with_state(problem, [0.05, 0.2], [-1.0, -2.0])).problem.state
    np.testing.assert_allclose(found.q, [0.1, 0.3], atol=1e-14)
    np.testing.assert_allclose(found.v, 0.0, atol=1e-14)
    # flying apart is allowed, and stays
    found = nsjax.consistent(with_state(problem, [0.05, 0.2], [1.0, 2.0])).problem.state
    np.testing.assert_allclose(found.v, [1.0, 2.0], atol=1e-14)


BALL = models.bouncing_ball(radius=0.1)
REMEDY = ".*nsjax.consistent"


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        (with_state(CRANK, [0.3, 0.1], [0.0, 0.0]), "residual of constraint 0 "),
        (with_state(CRANK, [0.0, 0.0], [150.0, 0.0]), "rate of constraint 0 .* = 22.95 "),
        (with_state(BALL, [0.05], [0.0]), "the start penetrates"),
    ],
)
def test_inconsistent_starts_are_refused_and_the_remedy_works(problem, sentence) -> None:
    with pytest.raises(nsjax.InputError, match=sentence + REMEDY):
        nsjax.simulate(*problem, schemes.moreau(), dt=1e-4, steps=1)
    ready = nsjax.consistent(problem).problem
    assert nsjax.simulate(*ready, schemes.moreau(), dt=1e-4, steps=1).status == 0


@pytest.mark.parametrize(
    "scheme", slow_but([schemes.moreau, schemes.half_explicit, schemes.bathe], schemes.moreau)
)
def test_a_start_with_an_impact_has_its_restitution(scheme) -> None:
    problem = with_state(models.bouncing_ball(radius=0.1, restitution=0.5, gravity=0.0), [0.1], [-1.0])
    assert nsjax.simulate(*problem, scheme(), dt=1e-4, steps=2).v[-1, 0] == pytest.approx(0.5, rel=1e-12)


def test_states_that_a_scheme_has_left_are_mended() -> None:
    """Schemes that step over an impact leave balls a step inside the table: a start for them, but at
    another time none, until moved.
    """
    ball = models.bouncing_ball(restitution=0.0, height=0.2)
    traj = nsjax.simulate(*ball, schemes.moreau(), dt=1e-3, steps=600, every=20)
    left = [nsjax.State(t=t, q=q, v=v) for t, q, v in zip(traj.t, traj.q, traj.v, strict=True)]
    inside = [ball.replace(state=x) for x, gap in zip(left, traj.gap, strict=True) if gap[0] < -1e-9]
    assert len(inside) > 10
    rest = dataclasses.replace(inside[-1].state, t=0.0)
    assert rest.v == 0.0
    with pytest.raises(nsjax.InputError, match=r"the start penetrates; .* let nsjax\.consistent"):
        nsjax.simulate(*ball.replace(state=rest), schemes.moreau(), dt=1e-3, steps=20)
    for problem in (inside[0], inside[-1]):
        found = nsjax.consistent(problem).problem
        # by what it was inside, and no further
        np.testing.assert_allclose(found.state.q, 0.05, atol=1e-9)
        assert nsjax.simulate(*found, schemes.moreau(), dt=1e-3, steps=20, every=20).status == 0


def test_a_start_that_cannot_be_found_names_its_contacts() -> None:
    """Two walls leave 10 cm to a ball of 20 cm; the contact that is open is not named."""
    wall = multibody.plane
    problem = multibody.assemble(
        multibody.body("ball", mass=1.0, inertia=0.1),
        multibody.contact("left", multibody.sphere("ball", 0.1), wall(at=(-0.05, 0.0), normal=(1.0, 0.0))),
        multibody.contact("right", multibody.sphere("ball", 0.1), wall(at=(0.05, 0.0), normal=(-1.0, 0.0))),
        multibody.contact("above", multibody.sphere("ball", 0.1), wall(at=(0.0, 9.0), normal=(0.0, -1.0))),
    )
    with pytest.raises(
        nsjax.InputError, match="contacts or constraints may contradict each other"
    ) as failed:
        nsjax.consistent(problem)
    words = str(failed.value)
    depths = [float(x) for x in re.findall(r"(?:left|right) is ([\d.]+) m deep", words)]
    assert sum(depths) == pytest.approx(0.1, abs=1e-3)
    assert "above" not in words


def _walker(coordinates: str, dimension: int, sunk: float, radius=0.05) -> nsjax.Problem:
    """Two legs of different length, joined by a hinge at an angle, with spherical feet in the floor."""
    mb, plane = multibody, dimension == 2
    up, inertia = ((0.0, 1.0), 0.01) if plane else ((0.0, 0.0, 1.0), (0.01, 0.012, 0.014))
    axis = {} if plane else {"axis": (0.0, 1.0, 0.0)}
    feet = [
        mb.contact(f"{name}_foot", mb.sphere(name, radius, at=0.4), mb.plane(normal=up), friction=0.5)
        for name in ("left", "right")
    ]
    place = (0.0, sunk, -0.4) if plane else (0.0, 0.0, sunk)
    return mb.assemble(
        mb.body("left", mass=2.0, inertia=inertia), mb.body("right", mass=1.0, inertia=inertia),
        mb.hinge("hip", "left", "right", limits=(-2.0, 2.0), **axis), *feet,
        start={"left": place, "hip": -0.7 if plane else 0.7}, coordinates=coordinates, gravity=9.81,
    )  # fmt: skip


LIFTED = (("joint", 3), ("absolute", 2), ("absolute", 3))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("coordinates", "dimension"),
    [("joint", 2), *(pytest.param(*x, marks=pytest.mark.slow) for x in LIFTED)],
)
def test_a_mechanism_is_lifted_as_a_whole(coordinates: str, dimension: int) -> None:
    """By the depth of its deepest foot, with nothing turned or bent, and by no more."""
    given = _walker(coordinates, dimension, 0.1)
    before = np.asarray(_gaps(given))[:2]
    found = nsjax.consistent(given)
    change = np.asarray(found.position_change)
    deep = -before.min()
    assert deep > 0.01
    moved = np.flatnonzero(np.abs(change) > 1e-12)
    assert len(moved) == (1 if coordinates == "joint" else 2)
    np.testing.assert_allclose(change[moved], deep, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(_gaps(found.problem))[:2], before + deep, atol=1e-12)
    axis = "y" if dimension == 2 else "z"
    assert f"position moved by up to {deep:.3g} m (left.{axis}), velocity unchanged" in str(found)
    bent = nsjax.consistent(given, lift=False)
    assert np.count_nonzero(np.abs(bent.position_change) > 1e-6) > len(moved)


def _gaps(problem):
    system, state = problem.system, problem.state

    @jax.jit
    def gaps(q, p):
        return system.gap(0.0, q, refreshed(system, 0.0, q, prepared(system, p)))

    return gaps(state.q, problem.params)


def test_a_limit_is_mended_before_the_lift() -> None:
    """Joints beyond their limits return to them; what is left of the depth is a lift."""
    given = _walker("joint", 2, 0.1)
    q = np.array(given.state.q)
    q[3] = q[2] - 2.3
    found = nsjax.consistent(given.replace(initial_q=q)).problem
    assert float(found.state.q[3] - found.state.q[2]) == pytest.approx(-2.0, abs=1e-9)
    assert np.asarray(_gaps(found)).min() > -1e-9


@pytest.mark.slow
def test_corner_slide_and_held_mechanisms() -> None:
    """A ball in a corner leaves both walls, a body on a slide moves along it, and mechanisms that hang on
    the ground move their joints as before.
    """
    mb = multibody
    walls = [
        mb.contact("floor", mb.sphere("b", 0.1), mb.plane(normal=(0.0, 1.0))),
        mb.contact("wall", mb.sphere("b", 0.1), mb.plane(normal=(1.0, 0.0))),
    ]
    ball = mb.body("b", mass=1.0, inertia=0.01)
    problem = mb.assemble(ball, *walls, start={"b": (0.09, 0.05, 0.0)})
    np.testing.assert_allclose(nsjax.consistent(problem).problem.state.q, [0.1, 0.1, 0.0], atol=1e-12)
    rail = mb.slide("rail", "ground", "b", axis=(0.0, 1.0))
    problem = mb.assemble(ball, rail, walls[0], start={"rail": 0.02})
    assert problem.system.parts.translations == ((0,),)
    assert float(nsjax.consistent(problem).problem.state.q[0]) == pytest.approx(0.1, abs=1e-12)
    pin = mb.hinge("pin", "ground", "b", on=(-0.5, 0.0), at=(0.0, 0.3))
    problem = mb.assemble(ball, pin, walls[0], start={"pin": -0.6})
    assert problem.system.parts.translations == ()
    assert float(_gaps(nsjax.consistent(problem).problem)[0]) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
def test_derivative_of_a_lift() -> None:
    """A foot that is larger by a millimetre lifts the mechanism by one: forward and reverse."""
    given = _walker("joint", 2, 0.1)

    def height(radius):
        sizes = {f"{x}_foot.first.radius": radius for x in ("left", "right")}
        return nsjax.consistent(given.replace(sizes)).problem.state.q[1]

    for derivative in (jax.grad, jax.jacfwd):
        assert float(derivative(height)(0.05)) == pytest.approx(1.0, abs=1e-9)
