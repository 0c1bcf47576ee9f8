"""The cube and the woodpecker from parts, beside the hand-written ones."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from experiments.contact.woodpecker import toy, toy_of_parts
from nsjax import Problem, models, schemes
from nsjax.multibody import (
    actuator,
    assemble,
    body,
    contact,
    corners,
    hinge,
    hole,
    plane,
    sphere,
)
from tests.trajectories.models_four_bar import four_bar, torque

CUBE = assemble(
    body("cube", mass=0.37, inertia=8.1e-4 * np.ones(3)),
    contact("floor", corners("cube", 0.0524, 0.0524, 0.0524), plane(), restitution=0.5, friction=0.18),
    gravity=9.81, start={"cube": (((0.0, 0.0, 0.2), (0.5, 0.3, 0.1)), (1.0, 0.0, 0.0, 2.0, -3.0, 1.0))},
)  # fmt: skip


def block() -> Problem:
    return models.block(
        size=(0.1048, 0.1048, 0.1048), mass=0.37, inertia=8.1e-4 * np.ones(3), restitution=0.5,
        friction=0.18, initial_q=CUBE.state.q, initial_v=CUBE.state.v,
    )  # fmt: skip


def test_functions_of_the_cube_at_random_states() -> None:
    """Corners and tangents are the same, in another order."""
    one, other, seeded = CUBE, block(), np.random.default_rng(0)
    rest = one.system.retract(one.state.q, np.zeros(6))
    order = [
        int(np.argmin(np.abs(other.system.gap(0.0, rest, other.params) - g)))
        for g in one.system.gap(0.0, rest, one.params)
    ]
    assert sorted(order) == list(range(8))

    @jax.jit
    def both(xi, v):
        q = one.system.retract(rest, xi)
        found = []
        for s, p, rows in (
            (one.system, one.params, slice(None)),
            (other.system, other.params, np.array(order)),
        ):
            p = s.prepare(p) if s.prepare else p
            force, slip = s.force(0.0, q, v, p), s.slip(0.0, q, v, p)[rows]
            found.append((s.mass(q, p), force, s.gap(0.0, q, p)[rows], jnp.sum(slip**2, axis=1)))
        return found

    for _ in range(100):
        here, there = both(seeded.normal(size=6), seeded.normal(size=6))
        for x, y in zip(here, there, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12 * float(jnp.max(jnp.abs(y))))


@pytest.mark.slow
def test_a_tumbling_cube() -> None:
    """Until rounding decides which corner hits first."""
    runs = [nsjax.simulate(*p, schemes.moreau(), dt=1e-3, steps=300, every=100) for p in (CUBE, block())]
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-9)
    assert runs[0].impacts.sum() == runs[1].impacts.sum() > 0


def test_the_woodpecker_at_zero_angles_is_the_linear_one() -> None:
    linear, made, seeded = toy(), toy_of_parts(), np.random.default_rng(1)
    for _ in range(5):
        q, v = np.array([seeded.normal(), 0.0, 0.0]), seeded.normal(size=3)
        rows = []
        for s, p in ((made.system, made.params), (linear.system, linear.params)):
            gap = lambda q, s=s, p=p: s.gap(0.0, q, p)  # noqa: E731
            force, slip = s.force(0.0, q, np.zeros(3), p), np.abs(s.slip(0.0, q, v, p))
            rows.append((s.mass(q, p), force, gap(q), jax.jacfwd(gap)(q), slip))
        for x, y in zip(*rows, strict=True):  # the pole counts sliding downwards, the toy upwards
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-15)


@pytest.mark.slow
def test_the_woodpecker_of_small_angles_falls_as_the_linear_one() -> None:
    """Two strokes of the beak; what finite angles change vanishes with them."""

    def fall(problem: Problem, scale: float) -> float:
        dt = 2e-5 * np.sqrt(scale)
        traj = nsjax.simulate(*problem, schemes.moreau(), dt=dt, steps=15_000, every=15_000)
        assert traj.impacts.sum(axis=0)[0] == 2
        return float(traj.q[-1, 0]) / scale

    # 0.18 at the angles of the toy (0.3 rad), 0.035, 0.0093, 0.0023 here: in proportion to them
    errors = [abs(fall(toy_of_parts(x), x) / fall(toy(x), x) - 1.0) for x in (1 / 16, 1 / 64, 1 / 256)]
    assert all(fine < 0.5 * coarse for coarse, fine in itertools.pairwise(errors))
    assert errors[-1] < 0.01


def linkage_of_parts() -> Problem:
    """The driven four-bar with pins in bearings: a crank on a hinge, two free rods."""
    hand = four_bar()
    p, q = hand.params, hand.state.q
    a, b = p.coupler / 2, p.rocker / 2
    law = {"restitution": 0.0, "friction": p.friction}

    def drive(t, angle, rate, own):
        return torque(t, angle, rate, own)

    return assemble(
        body("crank", mass=p.weight, inertia=p.weight * p.crank**2 / 12, com=p.crank / 2),
        body("coupler", mass=p.weight, inertia=p.weight * p.coupler**2 / 12),
        body("rocker", mass=p.weight, inertia=p.weight * p.rocker**2 / 12),
        hinge("bearing", "ground", "crank"),
        actuator("motor", "bearing", law=drive, own=p),
        contact("first", sphere("crank", p.pin, p.crank), hole("coupler", p.bearing, at=-a), **law),
        contact("second", sphere("coupler", p.pin, a), hole("rocker", p.bearing, at=b), **law),
        contact("third", sphere("rocker", p.pin, -b), hole("ground", p.bearing, at=p.base), **law),
        gravity=p.gravity,
        start={"crank": q[0], "coupler": (q[3], q[4], q[1]), "rocker": (q[5] + p.base, q[6], q[2])},
    )  # fmt: skip


ORDER = np.array([0, 3, 4, 1, 5, 6, 2])
"""Where the coordinates of the parts stand in those of the hand-written linkage."""


def test_functions_of_the_linkage() -> None:
    """At random states near the start, but for the side from which sliding is counted. The third pin turns
    with the rocker in both; the hand-written model measures the rocker from its pivot.
    """
    hand, made, seeded = four_bar(), linkage_of_parts(), np.random.default_rng(2)
    assert made.system.labels.contacts == ("first", "second", "third")

    @jax.jit
    def both(q, v):
        there = hand.system, hand.params, q, v
        base = jnp.zeros(7).at[4].set(hand.params.base)
        here = made.system, made.params, q[ORDER] + base, v[ORDER]
        found = []
        for s, p, q, v in (here, there):
            slip = jnp.abs(s.slip(0.3, q, v, p))
            found.append((s.mass(q, p), s.force(0.3, q, v, p), s.gap(0.3, q, p), slip))
        return found

    for _ in range(100):
        q = hand.state.q + 0.1 * seeded.normal(size=7)
        here, there = both(q, seeded.normal(size=7))
        there = (there[0][np.ix_(ORDER, ORDER)], there[1][ORDER], *there[2:])
        for x, y in zip(here, there, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12 * float(jnp.max(jnp.abs(y))))


@pytest.mark.slow
def test_the_linkage_moves_as_the_hand_written_one() -> None:
    runs = [
        nsjax.simulate(*p, schemes.moreau(), dt=1e-4, steps=2000, every=1000)
        for p in (linkage_of_parts(), four_bar())
    ]
    there = runs[1].q[:, ORDER] + np.array([0, 0, 0, 0, four_bar().params.base, 0, 0])
    np.testing.assert_allclose(runs[0].q, there, atol=1e-9)
    assert runs[0].impacts.sum() == runs[1].impacts.sum() > 0
