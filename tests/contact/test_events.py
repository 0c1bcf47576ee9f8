"""Criteria of events: gate, coupling, slow approaches, reversal and departure, what is remembered."""

from __future__ import annotations

import dataclasses
import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import State, gradient_notes, schemes
from nsjax.contact import events
from nsjax.contact import friction as friction_decisions
from nsjax.contact.events import DEFAULT, Criteria
from nsjax.core.operators import Rows, gap_drift, prepared
from nsjax.core.row_groups import RowGroups
from nsjax.core.scheme import Carry
from nsjax.core.step import Step, SystemState, formed
from nsjax.multibody import assemble, body, contact, corners, plane, sphere
from tests.gradients import balls

DT = jnp.asarray(1e-3)

CURVED = assemble(
    body("box", mass=1.0, inertia=(0.01, 0.02, 0.03)),
    contact("floor", corners("box", 0.1, 0.2, 0.3), plane()),
    contact("post", sphere("box", 0.1, at=(0.1, 0.0, 0.2)), sphere("ground", 0.2)),
    start={"box": (((1.0, 0.5, 2.0), (0.0, 0.0, 0.0)), np.zeros(6))},
)
"""A box with curved gaps."""


def start(v):
    """What is formed of two balls at zero height with the given velocities."""
    params, _ = balls.build(jnp.array([1.0, 1.0, 0.0, 0.0, 0.8, 9.81]))
    at = State(t=jnp.asarray(0.0), q=jnp.zeros(2), v=jnp.asarray(v, float))
    return formed(SystemState(system=balls.SYSTEM, params=params, state=at))


@pytest.mark.slow
def test_the_gate_is_two_steps_of_free_acceleration() -> None:
    """A ball: 2 g dt, whatever else touches it; an option changes it."""
    f = start([-1.0, 0.0])
    for factor in (2.0, 3.0):
        limit, gain, _ = events.gate(Criteria(gate=factor), f, DT)
        np.testing.assert_allclose(gain, 9.81e-3, rtol=1e-12)
        np.testing.assert_allclose(limit, factor * 9.81 * 1e-3, rtol=1e-12)


@functools.partial(jax.jit, static_argnums=0)
def curvatures(system, p, at):
    """As the package computes them, and by nested derivatives: one program for all draws."""
    found = events.gap_curvature(SystemState(system=system, params=p, state=at))
    return found, gap_drift(system, at.t, at.q, at.v, p)


@pytest.mark.parametrize("seed", range(3))
def test_the_curvature_of_gaps_is_their_second_derivative(seed) -> None:
    """A tumbling box, in random attitudes, late, above a plane and beside a ball."""
    rng = np.random.default_rng(seed)
    problem = CURVED
    q = np.asarray(problem.state.q) + np.concatenate([rng.uniform(-2, 2, 3), np.zeros(4)])
    q = problem.system.retract(q, np.concatenate([np.zeros(3), rng.normal(size=3)]))
    at = State(t=jnp.asarray(1e3), q=jnp.asarray(q), v=jnp.asarray(rng.normal(size=6)))
    p = prepared(problem.system, problem.params)
    found, wanted = curvatures(problem.system, p, at)
    speed = 1.0 + float(jnp.max(jnp.abs(at.v)))
    size = float(jnp.max(jnp.abs(at.q)) + 1.0)
    assert float(jnp.max(jnp.abs(wanted))) > 0.1
    # rounding of the gaps, see `events._reach`; radii are 0.1 m and more
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7 * size * speed**2)


@pytest.mark.parametrize("wanted", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_gaps_and_curvatures_by_one_program(wanted: bool) -> None:
    """A tumbling box over a plane: the gaps to the bit, and their curvature only where it is wanted."""
    moving = ((0.0, 0.0, 1.0), (0.3, -0.2, 0.5)), ((1.0, 2.0, -3.0), (4.0, -5.0, 6.0))
    problem = assemble(
        body("box", mass=1.0, inertia=(0.1, 0.2, 0.3)),
        contact("floor", corners("box", 0.5, 0.4, 0.3), plane()),
        start={"box": moving},
    )
    p = prepared(problem.system, problem.params)
    at = SystemState(system=problem.system, params=p, state=problem.state)
    found = jax.jit(events.gaps_around)(at, jnp.full(8, wanted), 10.0)
    np.testing.assert_array_equal(found.gap, jax.jit(lambda at: at.gap())(at))
    curvature = events.gap_curvature(at) if wanted else np.zeros(8)
    # rounding of the gaps, as in the test of the second derivative: size 2 m, speeds of 1 + 6
    np.testing.assert_allclose(found.curvature, curvature, atol=1e-7 * 2.0 * 7.0**2)
    assert not wanted or np.max(np.abs(curvature)) > 1.0


APPROACH = jax.jit(events.approach)


def look(v, off=100, bounced=False, held=False, closed=True):
    f = start(v)
    touch = events.Touch(
        held=np.full(2, held), off=np.full(2, off), bounced=np.full(2, bounced), slide=np.zeros((2, 0)),
        stuck=np.zeros(2, bool),
    )  # fmt: skip
    step = Step(
        scheme=schemes.moreau(), system=balls.SYSTEM, params=f.at.params, constants=(),
        carry=Carry(state=f.at.state), dt=DT,
    )  # fmt: skip
    return APPROACH(step, f, touch, np.full(2, closed), np.array([-1e-3, -1e-3]))


SLOW = -0.9 * 2 * 9.81e-3


@pytest.mark.parametrize(
    ("options", "impact", "note"),
    [
        # rattles
        ({"v": [-1.0, 1.0], "held": True}, False, 0),  # at rest already
        ({"v": [-1.0, 1.0], "closed": False}, False, 0),
        # slow after a long flight
        ({"v": [SLOW, 1.0], "off": events.NEVER}, False, gradient_notes.GRAZING),
        ({"v": [SLOW, 1.0], "off": 40, "bounced": True}, False, gradient_notes.GRAZING),
        ({"v": [SLOW, 1.0], "off": 4, "bounced": True}, False, gradient_notes.ACCUMULATION),
        ({"v": [SLOW, 1.0], "off": 4}, False, gradient_notes.SETTLING),
        ({"v": [SLOW, 1.0], "off": 40}, False, gradient_notes.SETTLING),  # let go from rest
        ({"v": [-1e-13, 1.0]}, False, 0),  # rounding
        ({"v": [1.0, 1.0]}, False, 0),  # recedes
        ({"v": [-1.0, 1.0]}, True, 0),
        ({"v": [-1.0, 1.0], "off": 1}, False, gradient_notes.COUPLED),
    ],
)
def test_what_is_an_impact(options, impact: bool, note: int) -> None:
    found = look(**options)
    np.testing.assert_array_equal(found.impacts, [impact, False])
    np.testing.assert_array_equal(found.notes, [note, 0])


def coupled_rows(wt, friction, nt: int):
    """What is formed of contacts with these rows and a unit mass."""
    system = types.SimpleNamespace(nc=len(friction), nt=nt)
    at = types.SimpleNamespace(system=system, friction=lambda: jnp.asarray(friction))
    nc = len(friction)
    groups = RowGroups.of(nc, nt, len(wt) - nc * (1 + nt))
    rows = Rows(wt=jnp.asarray(wt), offset=jnp.zeros(len(wt)), groups=groups)
    return types.SimpleNamespace(at=at, rows=rows, response=jnp.asarray(wt.T))


@pytest.mark.parametrize(
    ("present", "friction", "joint", "coupled"),
    [
        # wall and floor, smooth
        ([True, True], 0.3, None, True),  # friction of each acts along the other
        ([True, False], 0.3, None, False),  # only what is there
        # a guide turns one into the other
        ([False, False], 0.0, [1.0, 1.0], False),
        ([True, True], 0.0, None, False),
        ([True, True], 0.0, [1.0, 1.0], True),
    ],
)
def test_coupling(present, friction: float, joint, coupled: bool) -> None:
    """Contacts of a particle with a floor and a wall."""
    wt = np.array([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])  # floor, along it, wall, along it
    if joint is not None:
        wt = np.concatenate([wt, [joint]])
    links = events.linked(DEFAULT, coupled_rows(wt, [friction, friction], 1), jnp.array(present))
    np.testing.assert_array_equal(links, np.eye(2, dtype=bool) | coupled)


def test_coupling_is_passed_on_by_those_between() -> None:
    """A chain of four balls: the ends are linked where all between are present."""
    wt = np.array([[-1.0, 1, 0, 0, 0], [0, -1, 1, 0, 0], [0, 0, -1, 1, 0], [0, 0, 0, -1, 1]])
    for present, reach in (([True] * 4, True), ([True, False, True, True], False)):
        links = events.linked(DEFAULT, coupled_rows(wt, [0.0] * 4, 0), jnp.array(present))
        assert bool(links[0, 3]) == reach
        assert bool(links[2, 3])


def test_partners_that_touch_without_load_are_undefined() -> None:
    """One that carries an impulse without having been under load; not the striking one alone."""
    found = look([-1.0, 0.0])
    linked = jnp.ones((2, 2), bool)
    found = dataclasses.replace(found, links=linked)
    free, both = jnp.array([False, False]), jnp.array([True, True])
    np.testing.assert_array_equal(events.unloaded_partners(found, free, both), gradient_notes.COUPLED)
    np.testing.assert_array_equal(events.unloaded_partners(found, jnp.array([False, True]), both), 0)
    np.testing.assert_array_equal(events.unloaded_partners(found, free, jnp.array([True, False])), 0)


def test_turning_and_leaving() -> None:
    """Sliding contacts that turn within two steps; standing ones that slide off; others."""
    dt, v = jnp.asarray(0.01), jnp.zeros(2)
    slide = jnp.array([0.1, 0.1, -0.1, 0.0, 0.0, 0.1])[:, None]
    change = jnp.array([-6.0, -4.0, 6.0, 5.0, 0.0, -6.0])[:, None]
    held = jnp.array([True, True, True, True, True, False])
    turns = friction_decisions.reversal(DEFAULT, slide, change, held, v, dt)
    np.testing.assert_array_equal(turns, [True, False, True, False, False, False])
    leaves = friction_decisions.departure(DEFAULT, slide, change, held, v, dt)
    np.testing.assert_array_equal(leaves, [False, False, False, True, False, False])
    # in space: against the velocity, or across it
    slide, change = jnp.array([[0.1, 0.0], [0.1, 0.0]]), jnp.array([[-6.0, 1.0], [0.0, 60.0]])
    turns = friction_decisions.reversal(DEFAULT, slide, change, jnp.ones(2, bool), v, dt)
    np.testing.assert_array_equal(turns, [True, False])


def test_what_leaves_in_the_step_does_not_turn() -> None:
    """Held contacts: closed, open for the first step (a hop), open for the second one (it leaves)."""
    three, slow = jnp.ones(3, bool), jnp.full((3, 1), 1e-9)
    touch = events.Touch(
        held=three, off=jnp.array([0, 0, 1]), bounced=~three, slide=jnp.zeros((3, 1)), stuck=~three
    )
    active = jnp.array([True, False, False])
    np.testing.assert_array_equal(
        friction_decisions.slowing(DEFAULT, slow, touch, active), [True, True, False]
    )


def test_border_of_sticking_and_sliding() -> None:
    """Stuck within its cone, stuck near it, sliding, hardly sliding, no friction, no impulse."""
    friction = jnp.array([0.5, 0.5, 0.5, 0.5, 0.0, 0.5])
    p = jnp.array([[2.0, 0.9], [2.0, 0.99], [2.0, 1.0], [2.0, -1.0], [2.0, 0.0], [0.0, 0.0]])
    u = jnp.array([[0.0, 0.0], [0.0, 0.0], [0.0, -0.1], [0.0, 0.01], [0.0, 0.01], [0.0, 0.0]])
    dp = jnp.tile(jnp.array([[1.0, -2.0]]), (6, 1))  # a step of 0.02 moves the margin by up to 0.05
    du = jnp.tile(jnp.array([[0.0, 2.0]]), (6, 1))  # and the slip by 0.04
    near = friction_decisions.at_border(friction, (p, u), (dp, du), jnp.asarray(0.02))
    np.testing.assert_array_equal(near, [False, True, False, True, False, False])


def test_instants_are_known_to_more_steps_after_bounces() -> None:
    """One, and the displaced rebound of the last bounce, of any contact of the same island."""
    bounced, e = jnp.array([False, True, True, False]), jnp.array([0.5, 0.5, 0.0, 0.2])
    np.testing.assert_allclose(friction_decisions.instant_uncertainty(bounced, e, 0), 1.0 + 1.5 / 0.5)
    np.testing.assert_allclose(friction_decisions.instant_uncertainty(bounced, e, 2), [4.0, 4.0, 1.0, 1.0])
    np.testing.assert_allclose(friction_decisions.instant_uncertainty(~bounced, e, 4), [4.0, 1.0, 1.0, 7.0])


def test_what_is_remembered() -> None:
    """A contact that strikes and bounces, one that flies on."""
    found = look([-1.0, 1.0])
    touch = events.Touch(
        held=jnp.zeros(2, bool), off=jnp.full(2, 7), bounced=jnp.zeros(2, bool), slide=jnp.zeros((2, 0)),
        stuck=jnp.zeros(2, bool),
    )  # fmt: skip
    active, none = jnp.array([True, False]), jnp.zeros(2, bool)
    after = events.touch_after_step(touch, found, active, active, none)
    np.testing.assert_array_equal(after.off, [0, 8])
    np.testing.assert_array_equal(after.bounced, [True, False])
    early = events.touch_after_step(touch, found, active, none, none)  # seen a step too early
    np.testing.assert_array_equal(early.off, [8, 8])
    # an impulse while it recedes settles nothing; what comes to rest has not bounced any more
    recedes = events.touch_after_step(after, look([1.0, 1.0]), active, active, none)
    np.testing.assert_array_equal(recedes.bounced, [True, False])
    rests = events.touch_after_step(after, found, active, active, active)
    np.testing.assert_array_equal(rests.bounced, [False, False])
    np.testing.assert_array_equal(events.settling(recedes, active), [gradient_notes.ACCUMULATION, 0])
