"""Joints, locks and couplings that come and go within one run, beside closed forms."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, Problem, schemes
from nsjax import multibody as mb
from nsjax.types import Array
from tests.design import in_turn
from tests.slopes import with_slopes

SLOW = pytest.mark.slow
COORDINATES = ("joint", "absolute")
SCHEMES = ["moreau", "half_explicit", "moreau_theta", "ggl_unified", "ggl_decoupled", "generalized_alpha"]


def still(t: Any, scene: Any, own: Any) -> Any:
    return jnp.zeros(2)


def clutch(close: Any, torque: Any, coordinates: str = "joint") -> Problem:
    """A driven disc, and one that turns; a gear between them engages."""
    return mb.assemble(
        mb.body("one", mass=1.0, inertia=2.0), mb.body("other", mass=1.0, inertia=1.0),
        mb.hinge("a", "ground", "one"), mb.hinge("b", "ground", "other"),
        mb.gear("dog", "b", "a", ratio=1.0, active=False), mb.torque("drive", "one", torque),
        mb.force("clock", "one", law=still, own={"close": close}),
        start={"a": (0.0, 0.0), "b": (0.0, 6.0)}, coordinates=coordinates,
    )  # fmt: skip


def closes(t: Any, q: Any, v: Any, p: Any) -> Any:
    return p["clock"].own["close"] - t


def opens(t: Any, q: Any, v: Any, p: Any) -> Any:
    return p["clock"].own["close"] + 0.2 - t


CLUTCH = ((closes, {"dog.active": True}), (opens, {"dog.active": False}))


def engaged(x: Array) -> Array:
    """Angles and rates after 0.6 s: free, together for 0.2 s, free."""
    t, m = x
    free = m * t / 2.0
    one = (2.0 * free + 6.0) / 3.0
    end = one + m * 0.2 / 3.0
    left, turn = 0.4 - t, 0.2 * one + m * 0.02 / 3.0
    after = end * left
    return jnp.stack([
        m * t**2 / 4.0 + turn + after + m * left**2 / 4.0, 6.0 * t + turn + after, end + m * left / 2.0, end
    ])  # fmt: skip


def end(problem: Problem, scheme: Any, dt: Any = 0.01) -> Array:
    """Angles and rates of both discs."""
    traj = nsjax.simulate(*problem, scheme, dt=dt, steps=60, every=60, resets=CLUTCH)
    angles = jnp.stack([traj.body(x).rotation[-1] for x in ("one", "other")])
    return jnp.concatenate([angles, traj["one.omega"][-1:], traj["other.omega"][-1:]])


INSTANTS = (0.1234, 0.2, 0.31)
"""The second and third are ends of steps."""


@pytest.mark.slow
def test_a_clutch_engages_and_lets_go_in_one_run() -> None:
    """Exact, as the motion between the instants is a parabola."""
    for close in INSTANTS:
        found = end(clutch(close, 3.0), schemes.moreau())
        np.testing.assert_allclose(found, engaged(jnp.array([close, 3.0])), atol=1e-12)


@SLOW
@pytest.mark.parametrize(("name", "coordinates"), in_turn(SCHEMES, COORDINATES))
def test_its_derivatives_by_the_instant_and_the_torque(name: str, coordinates: str) -> None:
    scheme = getattr(schemes, name)()

    def run(x: Array) -> Array:
        return end(clutch(*x, coordinates), scheme)

    both = with_slopes(run)
    for close in INSTANTS:
        x = jnp.array([close, 3.0])
        found, slopes = both(x)
        np.testing.assert_allclose(found, engaged(x), atol=1e-9)
        np.testing.assert_allclose(slopes, jax.jacfwd(engaged)(x), atol=1e-6)
    if name == "moreau":
        np.testing.assert_allclose(jax.jacrev(run)(x), slopes, atol=1e-9)
        lanes = jnp.array([[0.1234, 3.0], [0.27, -1.0], [0.31, 2.0]])
        every = jax.jit(jax.vmap(run))(lanes)
        np.testing.assert_allclose(every, jax.vmap(engaged)(lanes), atol=1e-9)


@SLOW
@pytest.mark.parametrize("name", ["generalized_alpha", "bathe"])
def test_instants_near_the_end_of_a_step(name: str) -> None:
    """Before it a short part of the step is left, in which rounding of closed rows is a large force."""

    def run(x: Array) -> Array:
        return end(clutch(*x), getattr(schemes, name)())

    both = with_slopes(run)
    for off in (*(sign * 10.0**k for k in range(-12, -3) for sign in (-1.0, 1.0)), 0.0):
        x = jnp.array([0.2 + off, 3.0])
        found, slopes = both(x)
        # an instant at the end of a step is put 1e-11 s before it, where the rates change by 6 rad/s
        np.testing.assert_allclose(found, engaged(x), atol=1e-10)
        np.testing.assert_allclose(slopes, jax.jacfwd(engaged)(x), atol=1e-7)


def docked(coordinates: str) -> Problem:
    """Two free bodies in space, which a weld joins as they stand to each other."""
    moments = {"hull": (0.2, 0.3, 0.4), "probe": (0.1, 0.12, 0.15)}
    return mb.assemble(
        *(mb.body(x, mass=m, inertia=moments[x]) for x, m in (("hull", 3.0), ("probe", 1.0))),
        mb.fixed("latch", "hull", "probe", at=(0.5, 0.0, 0.0), active=False),
        start={
            "hull": (((0.0, 0.0, 0.0), (0.1, 0.2, -0.3)), ((0.1, 0.0, 0.0), (0.2, -0.1, 0.3))),
            "probe": (((0.6, 0.3, 0.2), (0.5, -0.4, 0.2)), ((-0.4, -0.2, 0.1), (-0.5, 0.4, 0.1))),
        },
        coordinates=coordinates,
    )  # fmt: skip


MEETS = ((lambda t, q, v, p: 0.2503 - t, {"latch.active": True}),)


@SLOW
@pytest.mark.parametrize(
    ("name", "coordinates"),
    in_turn(["moreau", "ggl_unified", "half_explicit", "generalized_alpha"], COORDINATES),
)
def test_a_weld_in_space_keeps_momenta_and_the_relative_pose(name: str, coordinates: str) -> None:
    """Momentum and angular momentum as before; afterwards one rigid body. The weld holds velocities: the
    pose drifts with the step.
    """
    drift = []
    for dt in (0.01, 0.005):
        problem = docked(coordinates)
        traj = nsjax.simulate(*problem, getattr(schemes, name)(), dt=dt, time=1.0, resets=MEETS)
        assert int(traj.status) == 0
        momenta, spins = jnp.zeros((len(traj.t), 3)), jnp.zeros((len(traj.t), 3))
        for x, moments in (("hull", (0.2, 0.3, 0.4)), ("probe", (0.1, 0.12, 0.15))):
            of, m = traj.body(x), {"hull": 3.0, "probe": 1.0}[x]
            momenta += m * of.velocity
            own = jnp.einsum("nij,j,nkj,nk->ni", of.rotation, jnp.array(moments), of.rotation, of.spin)
            spins += m * jnp.cross(of.position, of.velocity) + own
        np.testing.assert_allclose(momenta, momenta[:1] + 0 * momenta, atol=1e-9)
        np.testing.assert_allclose(spins, spins[:1] + 0 * spins, atol=0.02 * dt)  # of the scheme
        one, other = traj.body("hull"), traj.body("probe")
        after = np.asarray(traj.t) > 0.2503
        np.testing.assert_allclose(one.spin[after], other.spin[after], atol=1e-9)
        gone = jnp.einsum("nji,nj->ni", one.rotation, other.position - one.position)[after]
        turn = jnp.einsum("nji,njk->nik", one.rotation, other.rotation)[after]
        drift.append(max(float(jnp.abs(x - x[:1]).max()) for x in (gone, turn)))
    assert drift[0] < 3e-4
    assert drift[1] < 0.6 * drift[0] + 1e-12


@SLOW
def test_a_weld_carries_what_hangs_on_it() -> None:
    """Force and moment of a weld that is active, its impulse when it closes, and none when it is open."""
    hung = mb.assemble(
        mb.body("sign", mass=2.0, inertia=0.1, com=0.3), mb.fixed("bolt", "ground", "sign", active=True),
        gravity=9.81,
    )  # fmt: skip
    falls = (
        (lambda t, q, v, p: 0.1 - t, {"bolt.active": False}),
        (lambda t, q, v, p: 0.3 - t, {"bolt.active": 1.0}),
    )
    traj = nsjax.simulate(*hung, schemes.moreau(), dt=0.01, steps=40, resets=falls)
    bolt = traj.joint("bolt")
    np.testing.assert_allclose(bolt.force[5], [0.0, 2.0 * 9.81], atol=1e-9)
    np.testing.assert_allclose(bolt.torque[5], 2.0 * 9.81 * 0.3, atol=1e-9)
    np.testing.assert_allclose(bolt.force[20], 0.0, atol=1e-12)
    np.testing.assert_allclose(traj["sign.y"][-1], -9.81 * 0.02, atol=1e-12)
    np.testing.assert_allclose(bolt.impulse[30], [0.0, 2.0 * 9.81 * 0.2], atol=1e-9)  # it closes there


LINKS = (
    mb.body("upper", mass=1.0, com=0.5, inertia=0.05), mb.body("lower", mass=1.0, com=0.4, inertia=0.04),
)  # fmt: skip


def arm(locked: Any, friction: Any = None) -> Problem:
    return mb.assemble(
        *LINKS,
        mb.hinge("shoulder", "ground", "upper"),
        mb.hinge("elbow", "upper", "lower", at=1.0, locked=locked, friction=friction),
        gravity=9.81, start={"upper": -0.3, "lower": 0.4},
    )  # fmt: skip


@SLOW
def test_a_locked_hinge_keeps_its_angle() -> None:
    """One program for both; a lock that opens leaves the friction of the joint."""
    run = {"dt": 2e-3, "steps": 300, "every": 300}
    free, held = (nsjax.simulate(*arm(x), schemes.moreau(), **run) for x in (False, True))
    angle = [float(x.joint("elbow").position[-1]) for x in (free, held)]
    assert abs(angle[0] - 0.7) > 0.3
    assert abs(angle[1] - 0.7) < 1e-12
    rigid = mb.assemble(
        *LINKS,
        mb.hinge("shoulder", "ground", "upper"), mb.fixed("elbow", "upper", "lower", at=1.0, turned=0.7),
        gravity=9.81, start={"upper": -0.3},
    )  # fmt: skip
    whole = nsjax.simulate(*rigid, schemes.moreau(), **run)
    np.testing.assert_allclose(held["upper.angle"][-1], whole["upper.angle"][-1], atol=1e-6)
    stuck = nsjax.simulate(*arm(False, 100.0), schemes.moreau(), **run)
    np.testing.assert_allclose(stuck["upper.angle"][-1], held["upper.angle"][-1], atol=1e-9)


def test_a_motor_is_switched_by_a_reset() -> None:
    """Any number of the problem changes at an instant: here by a function of the state."""
    problem = mb.assemble(
        mb.body("car", mass=2.0), mb.slide("road", "ground", "car"), mb.actuator("engine", "road", 4.0),
    )  # fmt: skip
    brake = lambda t, q, v, p: 1.0 - q[0], {"engine": lambda t, q, v, p: -v[0]}
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=0.01, steps=200, resets=[brake])
    reached = np.sqrt(2.0 * 2.0)  # v^2 = 2 a x
    left = 2.0 - reached / 2.0
    np.testing.assert_allclose(traj.v[-1, 0], reached - reached / 2.0 * left, atol=1e-9)
    more = nsjax.simulate(*problem, schemes.moreau(), dt=0.01, steps=100, resets=[brake], carry=traj.carry)
    np.testing.assert_allclose(more.v[-1, 0], reached - reached / 2.0 * (left + 1.0), atol=1e-9)


GRIPPER = """<mujoco><option gravity="0 0 -9.81"/><worldbody>
<geom name="floor" type="plane" size="1 1 1"/>
<body name="hand" pos="0 0 0.3"><joint name="lift" type="slide" axis="0 0 1"/>
  <geom name="palm" type="box" size="0.06 0.02 0.01" mass="0.4" contype="0" conaffinity="0"/>
  <body name="left" pos="-0.06 0 -0.05"><joint name="lf" type="slide" axis="1 0 0"/>
    <geom name="lpad" type="box" size="0.005 0.01 0.03" mass="0.05" contype="0" conaffinity="0"/></body>
  <body name="right" pos="0.06 0 -0.05"><joint name="rf" type="slide" axis="-1 0 0"/>
    <geom name="rpad" type="box" size="0.005 0.01 0.03" mass="0.05" contype="0" conaffinity="0"/></body>
</body>
<body name="box" pos="0 0 0.025"><freejoint/>
  <geom name="crate" type="box" size="0.025 0.025 0.025" mass="0.2"/></body>
</worldbody><equality><weld name="grip" body1="hand" body2="box" active="false"/></equality>
<actuator><position name="raise" joint="lift" kp="400" kv="40"/>
  <motor name="close_l" joint="lf"/><motor name="close_r" joint="rf"/></actuator></mujoco>"""
"""A hand whose weld to a box is not active at the start."""

GRIPS = (
    (lambda t, q, v, p: 0.03 - q[1], {"grip.active": True, "close_l": 0.0, "close_r": 0.0}),
    (lambda t, q, v, p: 0.15 - q[0], {"grip.active": False}),
)
"""It grips where the fingers have moved far enough, and lets go at a height."""


@SLOW
def test_a_gripper_from_a_file_lifts_a_box_and_lets_go() -> None:
    """In one run. Derivatives of the height at which the box is held, by the instant of the command and the
    force of the fingers, beside wide secants, whose error falls with the square of their width.
    """
    pytest.importorskip("mujoco", reason="reads a model file")
    file = mb.read_mjcf(GRIPPER, restitution=0.0, friction=0.6)
    assert not file.left_out
    start, scheme = file.problem(), schemes.moreau(joint_damping="implicit")

    def height(x: Array) -> Array:
        problem = start.replace({"close_l.own.control": x[1], "close_r.own.control": x[1]})
        times = jnp.stack([jnp.zeros(()), x[0], x[0] + 0.4])
        command = nsjax.signal(times, jnp.array([0.0, 0.0, 0.2]), "linear")
        traj = nsjax.simulate(
            *problem, scheme, dt=2e-3, steps=600, every=50, inputs={"raise": command}, resets=GRIPS
        )
        return traj.q[:, 5]

    x, run = jnp.array([0.5037, 0.0203]), jax.jit(height)
    z = np.asarray(run(x))
    assert abs(z[3] - 0.025) < 1e-6  # it stands on the floor
    assert z[9] > 0.15
    assert z[11] < z[10]
    slopes = np.asarray(jax.jit(jax.jacfwd(height))(x))[9]
    for k, width in ((0, 4e-3), (1, 4e-4)):
        step = jnp.zeros(2).at[k].set(width)
        secant = (np.asarray(run(x + step)) - np.asarray(run(x - step)))[9] / (2.0 * width)
        np.testing.assert_allclose(slopes[k], secant, rtol=5e-3)


PROBLEM = clutch(0.1, 1.0)


@pytest.mark.parametrize(
    ("then", "words"),
    [
        ({"dog.activ": True}, "unknown number 'dog.activ'"),
        ({"a.locked": True}, "resets change 'a.locked', which is not set"),
        ({"dog.active": np.ones(2)}, "changes the shape of 'dog"),
        (3.0, "give a pair of a function"),
    ],
)
def test_what_cannot_change_is_refused(then: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        nsjax.simulate(*PROBLEM, schemes.moreau(), dt=0.01, steps=2, resets=[(closes, then)])


def test_inputs_and_carries_that_do_not_fit_are_refused() -> None:
    run = {"dt": 0.01, "steps": 2}
    with pytest.raises(InputError, match="is an input, and resets change it"):
        nsjax.simulate(
            *PROBLEM, schemes.moreau(), **run, resets=[(closes, {"drive.value": 0.0})],
            inputs={"drive.value": nsjax.signal([0.0], [1.0])},
        )  # fmt: skip
    traj = nsjax.simulate(*PROBLEM, schemes.moreau(), **run, resets=CLUTCH)
    with pytest.raises(InputError, match="resets of its run change 'dog"):
        nsjax.simulate(*PROBLEM, schemes.moreau(), **run, carry=traj.carry)
    with pytest.raises(InputError, match="a traced number"):
        jax.jit(
            lambda x: nsjax.simulate(
                *PROBLEM, schemes.moreau(), **run, resets=[(closes, {"dog.active": x})]
            )
        )(1.0)
    with pytest.raises(
        InputError,
        match="active = 1 and limits; a joint that comes and goes has no coordinate of its own: leave",
    ):
        mb.hinge("pin", "ground", "one", active=True, limits=(0.0, 1.0))
