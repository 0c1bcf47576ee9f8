"""Angles of spatial hinges that are constraints, over many turns: against motions in one coordinate."""

from __future__ import annotations

import dataclasses
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import schemes
from nsjax.core import InputError
from nsjax.multibody import (
    actuator,
    assemble,
    ball,
    beam,
    body,
    hinge,
    joint_spring,
    line_load,
    section,
)
from nsjax.multibody.assemble import TurnsWarning
from nsjax.multibody.topology import joint_topology

J, K, C1, C2 = 0.5, 2.0, 0.05, 0.02
AXIS = tuple(np.array([1.0, 2.0, 2.0]) / 3.0)
Z = (0.0, 0.0, 1.0)
MOREAU = schemes.moreau()


def rotor(*more, coordinates="absolute", start=(0.0, 60.0), axis=AXIS, **given):
    """M1 of the specification: a rotor on a hinge with a torsion spring and a quadratic damper."""
    return assemble(
        body("r", mass=1.0, inertia=(J, J, J)), hinge("h", "ground", "r", axis=axis, **given),
        joint_spring("s", "h", stiffness=K, damping=C1, quadratic_damping=C2), *more,
        coordinates=coordinates, start={"h": start},
    )  # fmt: skip


def exact(time, start=(0.0, 60.0), torque=lambda t, x, w: 0.0):
    def rates(t, y):
        x, w = y
        return [w, (torque(t, x, w) - K * x - C1 * w - C2 * abs(w) * w) / J]

    return solve_ivp(rates, (0.0, time), start, method="DOP853", rtol=1e-11, atol=1e-11).y[:, -1]


@pytest.fixture(scope="module")
def absolute():
    return rotor()


def test_torsion_spring_over_many_turns(absolute) -> None:
    """M1, printed: -6.64642136 at 2 s, a maximum of 2.81 turns before; second order."""
    assert exact(2.0)[0] == pytest.approx(-6.64642136, abs=1e-7)
    ends = []
    for dt in (4e-3, 2e-3):
        traj = nsjax.simulate(*absolute, schemes.generalized_alpha(0.8), dt=dt, time=2.0, every=50)
        traj.raise_for_status()
        ends.append([float(np.asarray(x)[-1]) for x in (traj.joint("h").coordinate, traj.joint("h").rate)])
        assert np.max(traj.joint("h").coordinate) > 16.0
    error = np.abs(np.array(ends) - exact(2.0))
    assert np.all(error[1] < 2e-3)
    energy = np.asarray(traj["energy"])  # the spring's, of turns that are counted
    assert energy[-1] == pytest.approx(0.5 * K * ends[-1][0] ** 2 + 0.5 * J * ends[-1][1] ** 2, rel=1e-9)


def ended(problem, along):
    """The rate of the hinge at the end over the stiffness of its spring and a factor of its start; without
    dampers, whose forces Moreau's scheme takes at another velocity where positions are not added.
    """

    def f(k, w):
        spring = dataclasses.replace(problem.params["s"], stiffness=k, damping=0.0, quadratic_damping=0.0)
        state = dataclasses.replace(problem.state, v=jnp.asarray(problem.state.v) * w)
        params = {**problem.params, "s": spring}
        traj = nsjax.simulate(problem.system, params, state, MOREAU, dt=5e-3, steps=200, every=200)
        return jnp.dot(traj.v[-1], along)

    return f


def test_resumed_runs(absolute) -> None:
    """Two parts of a run are the whole run, bit by bit, and the angle is past two turns."""
    given = {"dt": 5e-3, "every": 100}
    whole = nsjax.simulate(*absolute, MOREAU, steps=200, **given)
    first = nsjax.simulate(*absolute, MOREAU, steps=100, **given)
    second = nsjax.simulate(*absolute, MOREAU, steps=100, carry=first.carry, **given)
    np.testing.assert_array_equal(np.asarray(second.q)[-1], np.asarray(whole.q)[-1])
    angles = [np.asarray(x.joint("h").coordinate)[-1] for x in (whole, second)]
    assert angles[0] == angles[1] > 13.0


@pytest.mark.slow
def test_batched_and_differentiated_runs(absolute) -> None:
    """Derivatives forward and reverse, and a batch, are those of the joint coordinates."""
    spin = ended(absolute, jnp.array([0.0, 0.0, 0.0, *AXIS]))
    angle = ended(rotor(coordinates="joint"), jnp.ones(1))
    at = jnp.asarray(K), jnp.asarray(1.0)
    reverse, wanted = (jax.grad(f, argnums=(0, 1))(*at) for f in (spin, angle))
    forward = jax.jvp(spin, at, (jnp.ones(()), jnp.ones(())))[1]
    np.testing.assert_allclose(reverse, wanted, rtol=1e-8)
    assert float(forward) == pytest.approx(float(sum(reverse)), rel=1e-10)
    lanes = jax.vmap(spin)(jnp.array([K, 1.5]), jnp.array([1.0, 0.7]))
    wanted = [angle(*at), angle(jnp.asarray(1.5), jnp.asarray(0.7))]
    np.testing.assert_allclose(lanes, wanted, rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_random_drives_limits_and_friction(seed: int) -> None:
    """A motor whose law reads the angle, limits beyond half a turn, dry friction, a start of some turns, a
    hinge given either way round: absolute as joint coordinates, where the angle is a coordinate.
    """
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=3)
    axis = tuple(axis / np.linalg.norm(axis))
    start = (rng.uniform(-8.0, 8.0), rng.uniform(20.0, 40.0) * rng.choice([-1, 1]))
    limits = (start[0] - rng.uniform(4.0, 9.0), start[0] + rng.uniform(4.0, 9.0))
    ends = ("ground", "r") if rng.random() < 0.5 else ("r", "ground")
    traj = {}
    for coordinates in ("joint", "absolute"):
        problem = assemble(
            body("r", mass=1.0, inertia=(J, J, J)),
            hinge("h", *ends, axis=axis, limits=limits, restitution=0.6, friction=0.4,
                  turned=(0.3, -1.0, 0.2)),
            actuator("m", "h", law=_law, own=0.3),
            coordinates=coordinates, start={"h": start},
        )  # fmt: skip
        traj[coordinates] = nsjax.simulate(*problem, MOREAU, dt=2e-3, steps=600, every=20)
        traj[coordinates].raise_for_status()
    joint, absolute = (np.asarray(traj[x].joint("h").coordinate) for x in ("joint", "absolute"))
    assert np.ptp(joint) > np.pi
    assert np.sum(traj["joint"].impacts) > 1
    np.testing.assert_allclose(absolute, joint, atol=1e-9)
    np.testing.assert_array_equal(traj["absolute"].impacts, traj["joint"].impacts)


def _law(t, angle, rate, own):
    return -own * angle


def test_two_bodies_that_turn() -> None:
    """A hinge between two moving bodies, the pair tumbling: its turns are those of the second against the
    first. Absolute coordinates come to joint ones with the step, which Moreau's scheme is of first order in
    (0.103, 0.052, 0.026 rad apart at 5e-4, 2.5e-4 and 1.25e-4).
    """
    ends = []
    for coordinates in ("joint", "absolute"):
        problem = assemble(
            body("a", mass=1.0, inertia=(0.2, 0.3, 0.4)), body("b", mass=0.5, inertia=(0.1, 0.1, 0.15)),
            ball("held", "ground", "a"), hinge("h", "a", "b", axis=AXIS),
            joint_spring("s", "h", stiffness=0.1, damping=0.01), coordinates=coordinates,
            start={"held": ((0.1, 0.2, 0.3), (3.0, -5.0, 2.0)), "h": (10.0, 25.0)},
        )  # fmt: skip
        for dt in (5e-4, 2.5e-4):
            traj = nsjax.simulate(*problem, MOREAU, dt=dt, time=1.0, every=round(1.0 / dt))
            ends.append(float(np.asarray(traj.joint("h").coordinate)[-1]))
    assert ends[0] > 10.0 + 2.0 * 2.0 * np.pi
    apart = [abs(ends[k + 2] - ends[k]) for k in (0, 1)]
    assert apart[0] < 0.15
    assert 1.9 < apart[0] / apart[1] < 2.1


@pytest.mark.parametrize(
    ("scheme", "dt", "time"),
    [(schemes.generalized_alpha(0.6), 2e-3, 2.0), (schemes.moreau(), 2e-4, 0.8)],
    ids=["generalized_alpha", "moreau"],
)
def test_a_beam_that_turns(scheme, dt, time) -> None:
    """A stiff beam on a hinge with a torsion spring and a line load that turns with it: the rigid rotor
    with the beam's inertia, beyond a turn.
    """
    L, line = 0.4, 5.0
    stiff = section(EA=1e5, GA=1e5, EI=1e3, GJ=1e3, line_mass=line, line_inertia=0.01)
    # consistent masses of linear elements: of a rod exactly; lumped rotary inertia as it is
    inertia = line * L**3 / 3.0 + 0.01 * L
    k, push = 0.05, 3.0
    problem = assemble(
        beam("b", (0, 0, 0), (L, 0, 0), elements=1, section=stiff, first_axis=(0, 0, 1)),
        hinge("h", "ground", "b.start", axis=Z), joint_spring("s", "h", stiffness=k),
        line_load("wind", "b", (0.0, push, 0.0), follower=True), start={"b": (None, (0, 0, 0, 0, 0, 8.0))},
    )  # fmt: skip
    traj = nsjax.simulate(*problem, scheme, dt=dt, time=time, every=100)
    traj.raise_for_status()
    moment = push * L * L / 2.0
    w = np.sqrt(k / inertia)
    rest = moment / k
    wanted = rest - rest * np.cos(w * np.asarray(traj.t)) + 8.0 / w * np.sin(w * np.asarray(traj.t))
    assert wanted.max() > 2.0 * np.pi
    # stretch by the spin, some (omega L)^2 rho / (3 E) = 1e-3 at 20 rad/s; the step 1e-3
    np.testing.assert_allclose(traj.joint("h").coordinate, wanted, atol=5e-3 * wanted.max())


def test_who_counts() -> None:
    """Entries of ``q`` for hinges whose angle something reads, and none for others; a hinge asks itself."""
    bare = [body("r", mass=1.0, inertia=(J, J, J)), hinge("h", "ground", "r", axis=Z)]
    assert assemble(*bare, coordinates="absolute").system.nq == 7
    asked = [bare[0], hinge("h", "ground", "r", axis=Z, turns=True)]
    problem = assemble(*asked, coordinates="absolute", start={"h": (40.0, -30.0)})
    assert problem.system.nq == 10
    assert problem.system.labels.q[-3:] == tuple(f"h.turned{k} [rad]" for k in (1, 2, 3))
    traj = nsjax.simulate(*problem, MOREAU, dt=1e-2, steps=200, every=100)
    np.testing.assert_allclose(traj.joint("h").coordinate, [40.0, 10.0, -20.0], atol=1e-9)
    driven = [bare[0], hinge("h", "ground", "r", axis=Z, motion=lambda t: 9.0 * t)]
    problem = assemble(*driven, coordinates="absolute")
    assert problem.system.nq == 7  # the motion tells the turns
    traj = nsjax.simulate(*problem, MOREAU, dt=1e-2, steps=200, every=100)
    np.testing.assert_allclose(traj.joint("h").coordinate, [0.0, 9.0, 18.0], atol=1e-6)


def loop(springs, **options):
    """Four bars in space, the last hinge given closing the loop unless it is read."""

    def bar(name, length):
        return body(name, mass=1.0, inertia=(0.01, 0.1, 0.1), com=length / 2.0)

    return [
        bar("k", 0.1), bar("r", 0.4), bar("s", 0.3), hinge("a", "ground", "k", axis=Z),
        hinge("b", "k", "r", at=0.1, axis=Z), hinge("c", "r", "s", at=0.4, on=0.3, axis=Z),
        hinge("d", "ground", "s", at=0.4, axis=Z, **options),
        *(joint_spring(f"s{x}", x, stiffness=0.01) for x in springs),
    ]  # fmt: skip


def test_a_loop_is_closed_where_nothing_reads() -> None:
    closures = {x: joint_topology(loop(x), 3).closures for x in ("", "c", "cb", "abcd")}
    assert closures == {"": ("c",), "c": ("d",), "cb": ("d",), "abcd": ("c",)}
    narrow = [x for x in loop("") if x.name != "c"]
    narrow.append(hinge("c", "r", "s", at=0.4, on=0.3, axis=Z, limits=(-1.0, 3.0)))
    assert joint_topology(narrow, 3).closures == ("c",)  # within half a turn poses tell the angle


def test_what_cannot_count_says_so() -> None:
    with pytest.warns(TurnsWarning, match="hinge 'c': closes a loop, so that its angle lies between -pi"):
        assemble(*loop("abcd"), start={"a": 1.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error", TurnsWarning)
        assemble(*loop("abc"), start={"a": 1.0})


def test_driven_inertia_of_a_constraint_is_refused() -> None:
    """Of a joint that closes a loop, and of any in absolute coordinates, where it was left out before."""
    with pytest.raises(
        InputError, match=r"armature = 0\.1, but the joint is a constraint and has no coordinate"
    ):
        assemble(*loop("", loop=True, armature=0.1), start={"a": 1.0})
    parts = [body("r", mass=1.0, inertia=(J, J, J)), hinge("h", "ground", "r", axis=Z, armature=1.0)]
    with pytest.raises(InputError, match=r"armature = 1\.0, but the joint is a constraint"):
        assemble(*parts, coordinates="absolute")
