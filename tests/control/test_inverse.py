"""Inverse dynamics against closed forms, the balance of power of a loop, and MuJoCo's on files."""

from __future__ import annotations

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax.analysis import inverse_dynamics
from nsjax.multibody import (
    actuator,
    assemble,
    body,
    contact,
    force,
    hinge,
    joint_spring,
    plane,
    read_mjcf,
    read_urdf,
    slide,
    sphere,
    tendon,
)
from tests.control.mechanisms import CART, GRAVITY, LENGTH, POLE, cart_pole
from tests.design import slow_but
from tests.multibody.files.oracle import Here, Oracle, mujoco, quiet

ROBOTS = pathlib.Path(__file__).parents[3] / "shared" / "data" / "robots"
BOTH = ("joint", "absolute")

# Masses, lengths to the second hinge and to the centres of mass, inertias of two links.
M1, M2, L, C1, C2, J1, J2 = 1.2, 0.8, 0.5, 0.2, 0.15, 0.03, 0.02
ELBOW = 0.07  # dry friction in the elbow
ANGLES = ["shoulder.position", "elbow.position"]


def arm(angles: Any, rates: Any, coordinates: str = "joint", **more: Any) -> nsjax.Problem:
    return assemble(
        body("upper", mass=M1, inertia=J1, com=C1), hinge("shoulder", "ground", "upper"),
        body("lower", mass=M2, inertia=J2, com=C2), hinge("elbow", "upper", "lower", at=L, friction=ELBOW),
        joint_spring("coil", "elbow", stiffness=3.0, damping=0.2), actuator("one", "shoulder", 0.4),
        actuator("two", "elbow", 0.0), gravity=GRAVITY, coordinates=coordinates,
        start={x: (angles[k], rates[k]) for k, x in enumerate(("upper", "lower"))}, **more,
    )  # fmt: skip


def torques(q: Any, w: Any, a: Any) -> jax.Array:
    """Of the shoulder and the elbow, by Lagrange's equations in angles from the horizontal."""
    both, apart = M2 * L * C2, q[0] - q[1]
    one = (J1 + M1 * C1**2 + M2 * L**2) * a[0] + both * (jnp.cos(apart) * a[1] + jnp.sin(apart) * w[1] ** 2)
    two = (J2 + M2 * C2**2) * a[1] + both * (jnp.cos(apart) * a[0] - jnp.sin(apart) * w[0] ** 2)
    one += (M1 * C1 + M2 * L) * GRAVITY * jnp.cos(q[0])
    two += M2 * C2 * GRAVITY * jnp.cos(q[1])
    bend, speed = q[1] - q[0], w[1] - w[0]
    return jnp.stack([one + two, two + 3.0 * bend + 0.2 * speed + ELBOW * jnp.sign(speed)])


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", slow_but(BOTH, "joint"))
def test_two_links(coordinates: str) -> None:
    """With gravity, a spring, a damper and dry friction: efforts of motors and of joints, and generalised
    forces; derivatives forward and reverse.
    """
    seeded = np.random.default_rng(3)
    problem = arm((0.3, 0.9), (0.0, 0.0), coordinates)
    motors = inverse_dynamics(problem, ["two", "one"], ANGLES[::-1])
    for _ in range(3):
        q, w, a = seeded.normal(size=(3, 2))
        state = arm(q, w, coordinates).state
        wanted = torques(q, w, a)
        found = motors(0.0, state.q, state.v, [a[1] - a[0], a[0]])
        np.testing.assert_allclose(found, wanted[::-1], atol=1e-12)
        if coordinates == "joint":
            joints = inverse_dynamics(problem, ["shoulder", "elbow"])
            np.testing.assert_allclose(joints(0.0, q, w, a), wanted - jnp.array([0.4, 0.0]), atol=1e-12)
            whole = inverse_dynamics(problem)(0.0, q, w, a)
            np.testing.assert_allclose(whole, [wanted[0] - wanted[1] - 0.4, wanted[1]], atol=1e-12)
    if coordinates == "joint":
        slopes = jax.jacfwd(torques, argnums=(0, 1, 2))(*map(jnp.asarray, (q, w, a)))
        efforts = inverse_dynamics(problem, ["one", "two"])
        for transform in (jax.jacfwd, jax.jacrev):
            found = jax.jit(transform(lambda q, w, a: efforts(0.0, q, w, a), argnums=(0, 1, 2)))(q, w, a)
            np.testing.assert_allclose(found, slopes, atol=1e-11)
        heavier = jax.grad(lambda g: efforts(0.0, q, w, a, problem.replace(gravity=g).params)[0])(GRAVITY)
        by_weight = (M1 * C1 + M2 * L) * np.cos(q[0]) + M2 * C2 * np.cos(q[1])
        np.testing.assert_allclose(heavier, by_weight, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", BOTH)
def test_a_loop_by_its_power(coordinates: str) -> None:
    """A four-bar with a driven crank, a damper and a tendon: the power of the motor is the rate of kinetic
    and potential energy and the losses, all functions of the crank's angle by the law of cosines.
    """
    ground, crank, coupler, rocker = 0.4, 0.1, 0.38, 0.3
    bodies = {"crank": (0.3, 2e-3, 0.04), "coupler": (0.5, 5e-3, 0.17), "rocker": (0.4, 4e-3, 0.12)}

    def linkage(angle: float, rate: float) -> nsjax.Problem:
        return assemble(
            *(body(x, mass=m, inertia=J, com=c) for x, (m, J, c) in bodies.items()),
            hinge("o", "ground", "crank", friction=0.03), hinge("a", "crank", "coupler", at=crank),
            hinge("c", "ground", "rocker", at=ground), joint_spring("oil", "c", damping=0.05),
            hinge("b", "coupler", "rocker", at=coupler, on=rocker), actuator("motor", "o", 0.0),
            tendon("cord", ("ground", (0.1, -0.5)), ("coupler", (0.2, 0.0)), stiffness=40.0, length=0.3),
            gravity=GRAVITY, coordinates=coordinates, start={"crank": (angle, rate)},
            guess={"rocker": 1.5, "coupler": 0.5},
        )  # fmt: skip

    def angles(x: Any) -> jax.Array:
        apart = jnp.stack([ground - crank * jnp.cos(x), -crank * jnp.sin(x)])
        d = jnp.sqrt(jnp.sum(apart**2))
        inner = jnp.arccos((coupler**2 + d**2 - rocker**2) / (2 * coupler * d))
        phi = jnp.arctan2(apart[1], apart[0]) + inner
        eye = coupler * jnp.stack([jnp.cos(phi), jnp.sin(phi)]) - apart
        return jnp.stack([x, phi, jnp.arctan2(eye[1], eye[0])])

    def ray(angle: Any, length: float) -> jax.Array:
        return length * jnp.stack([jnp.cos(angle), jnp.sin(angle)])

    def centres(x: Any) -> list[jax.Array]:
        one, two, three = angles(x)
        return [
            ray(one, 0.04),
            ray(one, crank) + ray(two, 0.17),
            jnp.array([ground, 0.0]) + ray(three, 0.12),
        ]

    def energy(x: Any, w: Any) -> jax.Array:
        places, speeds = jax.jvp(lambda x: (angles(x), centres(x)), (x,), (w,))
        total = 0.0
        for k, (m, J, _) in enumerate(bodies.values()):
            total += 0.5 * J * speeds[0][k] ** 2 + 0.5 * m * jnp.sum(speeds[1][k] ** 2)
            total += m * GRAVITY * places[1][k][1]
        end = ray(x, crank) + ray(places[0][1], 0.2) - jnp.array([0.1, -0.5])
        return total + 20.0 * (jnp.sqrt(jnp.sum(end**2)) - 0.3) ** 2

    problem = linkage(0.3, 5.0)
    motor = inverse_dynamics(problem, ["motor"], ["crank.rotation"])
    for x, w, a in ((0.3, 5.0, -7.0), (2.1, -3.0, 4.0)):
        rate = jax.jvp(energy, (x, w), (w, a))[1]
        loss = 0.03 * abs(w) + 0.05 * jax.jvp(angles, (x,), (w,))[1][2] ** 2
        state = linkage(x, w).state
        np.testing.assert_allclose(motor(0.0, state.q, state.v, [a])[0], (rate + loss) / w, atol=1e-9)


def test_fewer_inputs_than_coordinates() -> None:
    """The force on a cart whose pole swings freely: ``(M + m sin^2) x'' = F + m sin (l w^2 + g cos)`` with
    the angle from below, here from the horizontal; two motors of one joint share its effort.
    """
    problem = cart_pole(angle=0.4)
    push = inverse_dynamics(problem, ["push.value[0]"], ["cart.x"])
    angle, w, a = 0.4, 1.7, 3.0
    s, c = np.cos(angle), -np.sin(angle)  # of the angle from below
    wanted = (CART + POLE * s**2) * a - POLE * s * (LENGTH * w**2 + GRAVITY * c)
    np.testing.assert_allclose(push(0.0, [0.2, angle], [0.3, w], [a]), [wanted], atol=1e-12)
    twice = assemble(
        body("a", mass=2.0, inertia=0.1), slide("rail", "ground", "a"), actuator("one", "rail", 5.0),
        actuator("two", "rail", 1.0),
    )  # fmt: skip
    found = inverse_dynamics(twice, ["one", "two"])(0.0, [0.0], [0.0], [3.0])
    np.testing.assert_allclose(found, [3.0, 3.0], atol=1e-14)


def test_a_foot_that_stands() -> None:
    """A leg that pushes its trunk up: with its foot held on the ground, ``F = m_trunk (a + g)``."""
    leg = assemble(
        body("trunk", mass=3.0, inertia=0.1), slide("guide", "ground", "trunk", axis=(0.0, 1.0)),
        body("leg", mass=0.5, inertia=0.01), slide("thigh", "trunk", "leg", axis=(0.0, -1.0)),
        actuator("motor", "thigh", 0.0), contact("foot", sphere("leg", 0.05), plane()), gravity=GRAVITY,
        start={"trunk": 0.55, "thigh": 0.5},
    )  # fmt: skip
    stands = inverse_dynamics(leg, ["motor"], ["trunk.position.y"], contacts=["foot"])
    flies = inverse_dynamics(leg, ["motor"], ["thigh.position"])
    at = 0.0, leg.state.q, leg.state.v, [2.0]
    np.testing.assert_allclose(stands(*at), [3.0 * (2.0 + GRAVITY)], atol=1e-12)
    np.testing.assert_allclose(flies(*at), [2.0 * 3.0 * 0.5 / 3.5], atol=1e-12)  # of the reduced mass


ARM = pathlib.Path(__file__).parents[1] / "multibody" / "files" / "models" / "arm.urdf"
FILES = {"hopper": (ROBOTS / "hopper.xml", read_mjcf), "ant": (ROBOTS / "ant.xml", read_mjcf)}
FILES |= {"arm": (ARM, read_urdf)}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_files_beside_mujoco(name: str) -> None:
    """Generalised forces are those of ``mj_inverse``; the motors of the file get back the controls by which
    ``mj_forward`` has accelerated their joints.
    """
    path, reader = FILES[name]
    if not path.exists():
        pytest.skip(f"{path} is not there")
    oracle, file = Oracle(path.read_text(), reader), quiet(reader, path.read_text(), contact=False)
    problem = quiet(file.problem)
    here, rng = Here(problem, file, oracle), np.random.default_rng(5)
    model, data, places = oracle.model, oracle.data, here.places()
    whole = inverse_dynamics(problem)
    names = [x.name for x in file if x.kind == "actuator"]
    numbers = [oracle.source.names["actuator", k] for k in range(model.nu)]
    joints = [here.mechanism.topology.of[x].option("joint") for x in names]
    motors = inverse_dynamics(problem, names, [f"{x}.position" for x in joints]) if names else None
    for _ in range(5):
        q, v = oracle.state(rng, 0.5)
        at, rates = here.state(q, v)
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, rng.normal(size=model.nv) * 5.0
        data.ctrl[:] = 0.0
        mujoco.mj_inverse(model, data)
        a = np.zeros(model.nv)
        a[places] = data.qacc
        rubbed = data.qfrc_inverse + model.dof_frictionloss * np.sign(v)
        close(np.asarray(whole(0.0, at, rates, a))[places], rubbed)
        if motors is None:
            continue
        data.ctrl[:] = rng.uniform(-1.0, 1.0, model.nu)
        mujoco.mj_forward(model, data)
        own = [numbers.index(x) for x in names]
        asked = [data.qacc[model.jnt_dofadr[model.actuator_trnid[k, 0]]] for k in own]
        close(motors(0.0, at, rates, asked), data.ctrl[own])


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * (1.0 + np.max(np.abs(wanted))))


def driven() -> nsjax.Problem:
    return assemble(
        body("a", mass=2.0, inertia=0.1), slide("rail", "ground", "a"), body("b", mass=1.0, inertia=0.1),
        slide("free", "a", "b"), force("push", "a", (0.0, 0.0)),
    )  # fmt: skip
