"""Damping of joints of mechanisms, taken implicitly: what counts, one step against mujoco, impacts."""

from __future__ import annotations

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes, stability
from nsjax.core.operators import prepared
from nsjax.multibody import (
    actuator,
    assemble,
    ball,
    body,
    contact,
    hinge,
    joint_spring,
    plane,
    point,
    read_mjcf,
    servo,
    slide,
)

IMPLICIT = schemes.moreau(joint_damping="implicit")

# ------------------------------------------------------------- what counts


def stall(t, x, rate, own):
    """A motor that resists, and drives at small rates."""
    return own * rate - 2.0 * rate * jnp.abs(rate)


def rod(name, space):
    moments = (0.1, 0.2, 0.3) if space else 0.1
    return body(name, mass=1.0, inertia=moments, com=(0.5, 0.1, 0.0) if space else 0.5)


def chain(space):
    axis = {"axis": (0.0, 1.0, 0.0)} if space else {}
    along, end = {"axis": (1.0, 0.0, 0.0) if space else (1.0, 0.0)}, (1.0, 0.0, 0.0) if space else 1.0
    loads = (
        joint_spring("soft", "first", stiffness=3.0, damping=4.0, quadratic_damping=0.5),
        joint_spring("second_soft", "second", damping=7.0),
        servo("drive", "second", position=0.2, stiffness=5.0, damping=6.0, limit=50.0),
        actuator("motor", "rail", law=stall, own=1.0),
    )
    parts = (
        rod("a", space), rod("b", space), rod("c", space), hinge("first", "ground", "a", **axis),
        hinge("second", "a", "b", at=end, **axis), slide("rail", "b", "c", at=end, **along), *loads,
    )  # fmt: skip
    return assemble(*parts, gravity=9.81)


@pytest.mark.parametrize("space", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_damping_is_that_of_the_rates_of_joints(space) -> None:
    """``D = B' diag(c) B`` with the rates ``B v`` of the joints: differences of velocities in the plane."""
    problem = chain(space)
    system, p = problem.system, prepared(problem.system, problem.params)
    v = np.array([0.3, -0.4, 0.8])
    B = np.eye(3) if space else np.array([[1.0, 0.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    rate = B @ v
    # the motor resists with -d/dr (r - 2 |r| r)
    c = np.array([4.0 + 2 * 0.5 * abs(rate[0]), 13.0, 4.0 * abs(rate[2]) - 1.0])
    found = system.damping(0.0, problem.state.q, v, p)
    wanted = B.T @ np.diag(c) @ B
    np.testing.assert_allclose(np.diag(found) if space else found, wanted, atol=1e-13)
    # where the motor drives it counts nothing, nor does the servo at its limit
    fast = np.linalg.solve(B, [0.3, 20.0, 0.1])
    found = system.damping(0.0, problem.state.q, fast, p)
    wanted = B.T @ np.diag([4.3, 7.0, 0.0]) @ B
    np.testing.assert_allclose(np.diag(found) if space else found, wanted, atol=1e-13)


@pytest.mark.slow
def test_a_damped_ball_joint_loses_its_spin_as_it_must() -> None:
    """About a principal axis through the joint: ``omega_1 = omega_0 / (1 + c dt / J)``."""
    parts = (
        body("a", mass=1.0, inertia=(0.1, 0.2, 0.3)),
        ball("b", "ground", "a"),
        joint_spring("d", "b", damping=500.0),
    )
    problem = assemble(
        *parts, gravity=(0.0, 0.0, 0.0), start={"b": ((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 2.0))}
    )
    traj = nsjax.simulate(*problem, IMPLICIT, dt=1e-2, steps=4)
    x = 1e-2 * 500.0 / 0.3
    np.testing.assert_allclose(traj.v[:, 2], 2.0 / (1.0 + x) ** np.arange(5), rtol=1e-12)


@pytest.mark.slow
def test_activations_and_inputs_stand_beside_damping() -> None:
    """A step with the effort as a number, as the activation of a slow motor, and as an input over time."""
    parts = (
        rod("a", True), hinge("h", "ground", "a", axis=(0.0, 1.0, 0.0)),
        joint_spring("d", "h", damping=80.0), actuator("motor", "h", effort=3.0),
    )  # fmt: skip
    problem, dt = assemble(*parts, gravity=9.81), 1e-2
    wanted = nsjax.simulate(*problem, IMPLICIT, dt=dt, steps=1).v[1, 0]
    slow = nsjax.with_actuator_dynamics(problem, {"motor": 0.05}, start={"motor": 3.0})
    np.testing.assert_allclose(nsjax.simulate(*slow, IMPLICIT, dt=dt, steps=1).v[1, 0], wanted, rtol=1e-13)
    given = nsjax.simulate(
        *problem.replace({"motor.value": 0.0}), IMPLICIT, dt=dt, steps=1,
        inputs={"motor": nsjax.signal([0.0, 1.0], [3.0, 3.0])},
    )  # fmt: skip
    np.testing.assert_allclose(given.v[1, 0], wanted, rtol=1e-13)


# ------------------------------------------------------------- against mujoco

ARM = """<mujoco><option timestep="0.01" integrator="{integrator}"><flag contact="disable"/></option>
<worldbody><body><joint name="a" axis="0 1 0" damping="40" armature="0.01"/>
<geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.04"/>
<body pos="0.5 0 0"><joint name="b" axis="0 1 0" damping="900" stiffness="5"/>
<geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03"/>
<body pos="0.4 0 0"><joint name="c" axis="1 0 0" type="slide" damping="2000"/>
<geom type="sphere" pos="0.1 0.05 0" size="0.05"/></body></body></body></worldbody>
<actuator><position joint="a" kp="30" kv="{gain}" forcerange="-20 20"/>
<velocity joint="b" kv="{gain}"/></actuator></mujoco>"""


@pytest.mark.parametrize(
    ("integrator", "gain"), [("implicitfast", 60.0), pytest.param("Euler", 0.0, marks=pytest.mark.slow)]
)
def test_a_step_is_that_of_mujoco(integrator, gain) -> None:
    """Its Euler integrator takes dampers of joints implicitly, ``implicitfast`` gains of servos, too.
    Velocities are equal to rounding where both look at one position: here the midpoint of a step, there its
    start. Servos reach their limits in some of the states.
    """
    mujoco = pytest.importorskip("mujoco", reason="the package mujoco is not installed")
    text = ARM.format(integrator=integrator, gain=gain)
    model = mujoco.MjModel.from_xml_string(text)
    data, problem, rng = mujoco.MjData(model), read_mjcf(text).problem(), np.random.default_rng(5)
    held = 0
    for _ in range(12):
        q, v = rng.uniform(-0.4, 0.4, 3), rng.normal(size=3)
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_step(model, data)
        held += abs(data.actuator_force[0]) >= 20.0
        begin = problem.replace({"state.q": q - 0.005 * v, "state.v": v})
        traj = nsjax.simulate(*begin, IMPLICIT, dt=0.01, steps=1)
        np.testing.assert_allclose(traj.v[1], data.qvel, atol=1e-12)
        # ours moves with the mean of both velocities, theirs with the last
        np.testing.assert_allclose(traj.q[1] - begin.state.q, 0.005 * (v + data.qvel), atol=1e-14)
    assert held == 0 if integrator == "Euler" else 0 < held < 12


# ------------------------------------------------------------- a stiff step: warned of, or stable


def door(damping, **start):
    parts = (
        rod("a", True), rod("b", True), hinge("h", "ground", "a", axis=(0.0, 1.0, 0.0)),
        hinge("k", "a", "b", at=(1.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0)),
        joint_spring("d", "k", damping=damping),
    )  # fmt: skip
    return assemble(*parts, gravity=9.81, **start)


@pytest.mark.slow
def test_the_warning_names_the_option_and_the_option_is_not_warned_of() -> None:
    stiff = door(1e4)
    with pytest.warns(
        UserWarning, match=r'or joint_damping="implicit" of moreau, which is stable at this dt'
    ):
        nsjax.simulate(*stiff, schemes.moreau(), dt=1e-2, steps=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traj = nsjax.simulate(*stiff, IMPLICIT, dt=1e-2, steps=600)
    traj.raise_for_status()
    assert np.abs(traj.v).max() < 20.0
    # a spring is as explicit as before
    spring = assemble(
        rod("a", True), hinge("h", "ground", "a", axis=(0.0, 1.0, 0.0)),
        joint_spring("s", "h", stiffness=1e6, damping=1e-3), gravity=9.81,
    )  # fmt: skip
    with pytest.warns(UserWarning, match="is above the largest stable step of moreau") as said:
        nsjax.simulate(*spring, IMPLICIT, dt=1e-2, steps=2)
    assert "joint_damping" not in str(said[0].message)


@pytest.mark.slow
@pytest.mark.parametrize("damping", [2e3, 0.0, 3.0])
def test_the_largest_step_is_known(damping) -> None:
    """A rod on a stiff spring: ``omega^2 dt^2 = 4 + 2 c dt``."""
    parts = (
        rod("a", True), hinge("h", "ground", "a", axis=(0.0, 1.0, 0.0)),
        joint_spring("s", "h", stiffness=1e6, damping=damping),
    )  # fmt: skip
    problem = assemble(*parts, gravity=None)
    J = 0.2 + 0.25
    w2, c = 1e6 / J, damping / J
    limit = (c + np.sqrt(c * c + 4.0 * w2)) / w2
    for dt in (0.9 * limit, 1.1 * limit):
        found = stability.fastest(*problem, dt)
        np.testing.assert_allclose(found.explicit_limit(), limit, rtol=1e-6)
        assert (stability.largest_step(IMPLICIT, found, dt) is None) == (dt < limit)
        quiet = problem.replace({"state.v": np.array([1.0])})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            traj = nsjax.simulate(*quiet, IMPLICIT, dt=dt, steps=400, every=400)
        assert (np.abs(traj.v[-1, 0]) < 2.0) == (dt < limit)


# ------------------------------------------------------------- impacts with friction


@functools.cache
def arm():
    """A planar arm of two rods with a damped elbow, whose tip falls onto a rough floor."""
    parts = (
        body("upper", mass=1.0, inertia=0.03, com=0.3), body("lower", mass=0.7, inertia=0.02, com=0.25),
        hinge("shoulder", "ground", "upper"), hinge("elbow", "upper", "lower", at=0.6),
        joint_spring("viscous", "elbow", damping=2.0),
        contact("tip", point("lower", at=(0.5, 0.0)), plane("ground", at=(0.0, -0.6)),
                restitution=0.3, friction=0.4),
    )  # fmt: skip
    return assemble(*parts, gravity=9.81, start={"upper": (-0.2, 0.0), "lower": (-0.9, 0.0)})


@pytest.mark.slow
def test_derivatives_through_impacts_with_a_damper_far_faster_than_the_step() -> None:
    """The elbow stands still within 2.5e-5 s, a tenth of a step: the tip lands, and from a start a little
    aside, with the elbow as it was, both rods end where they did. Secants over wide starts say so; the
    derivative with all of ``dt D`` in the accelerations around impacts is off by 0.07.
    """
    problem, dt, steps = arm(), 2e-4, 1500

    @jax.jit
    def end(aside):
        moved = problem.replace({"state.q": problem.state.q + aside, "viscous.damping": 2e3})
        return nsjax.simulate(*moved, IMPLICIT, dt=dt, steps=steps, every=steps).q[-1]

    wide = 0.05
    secant = (end(wide) - end(-wide)) / (2 * wide)
    assert np.abs(secant).max() < 1e-4
    # 1.6e-3 of starts that move by one
    np.testing.assert_allclose(jax.jacfwd(end)(0.0), secant, atol=3e-3)
