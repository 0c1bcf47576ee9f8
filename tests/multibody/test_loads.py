"""Loads of kinds of their own against closed forms: media, thrusters, springs in ball joints."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import Problem, schemes
from nsjax import multibody as mb
from nsjax.core import InputError
from nsjax.core.operators import prepared
from nsjax.math import rotations
from tests.multibody.files.oracle import compared, quiet

# Forces of a medium on an ellipsoid: closed forms of a sphere, derivatives at rest, sentences.
RADIUS, RHO, MU = 0.2, 900.0, 25.0
BLUNT, SLENDER, TURNS, KUTTA, MAGNUS = 0.5, 0.25, 1.5, 1.0, 0.7
U, W = np.array([1.0, -2.0, 0.5]), np.array([3.0, 1.0, -2.0])


def forces(velocity: Any, coordinates: str = "joint", **given: Any) -> jax.Array:
    """Force and moment on a sphere at the centre of a body, (6,)."""
    ball = mb.body("a", mass=1.0, inertia=(1.0, 1.0, 1.0))
    medium = mb.ellipsoid_drag("water", "a", (RADIUS,) * 3, **given)
    problem = mb.assemble(
        ball, medium, start={"a": ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))}, coordinates=coordinates
    )
    system = problem.system
    p = prepared(system, jax.tree.map(lambda x: jnp.asarray(x, float), problem.params))
    return jax.jit(system.force)(0.0, problem.state.q, velocity, p)


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_a_sphere(coordinates: str) -> None:
    """Stokes' drag, ``C rho A |u| u``, Magnus' force, and no lift of Kutta: the normal is along ``u``."""
    slow = forces(np.concatenate([U, W]), coordinates, viscosity=MU)
    wanted = np.concatenate([-6.0 * np.pi * MU * RADIUS * U, -8.0 * np.pi * MU * RADIUS**3 * W])
    assert np.allclose(slow, wanted, rtol=1e-12)
    fast = forces(
        np.concatenate([U, W]), coordinates, density=RHO,
        coefficients=(BLUNT, SLENDER, TURNS, KUTTA, MAGNUS),
    )  # fmt: skip
    push = -BLUNT * RHO * np.pi * RADIUS**2 * np.linalg.norm(U) * U
    push += MAGNUS * RHO * 4.0 / 3.0 * np.pi * RADIUS**3 * np.cross(W, U)
    turn = -TURNS * RHO * 8.0 / 15.0 * np.pi * RADIUS**5 * np.linalg.norm(W) * W
    assert np.allclose(fast, np.concatenate([push, turn]), rtol=1e-12)


def test_wind_and_added_mass() -> None:
    """In the wind nothing resists but turns; added masses act across the motion."""
    still = forces(np.concatenate([U, np.zeros(3)]), density=RHO, viscosity=MU, wind=U)
    assert np.allclose(still, 0.0, atol=1e-12)
    added = np.array([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])
    more = forces(np.concatenate([U, W]), density=RHO, added=added) - forces(
        np.concatenate([U, W]), density=RHO
    )
    p, l = RHO * added[:3] * U, RHO * added[3:] * W  # noqa: E741
    assert np.allclose(more[:3], np.cross(p, W), rtol=1e-9)
    assert np.allclose(more[3:], np.cross(p, U) + np.cross(l, W), rtol=1e-9)


@pytest.mark.slow
def test_derivatives_at_rest() -> None:
    """They are those of the viscous drag, forward and reverse."""
    for derivative in (jax.jacfwd, jax.jacrev):
        slope = derivative(lambda v: forces(v, density=RHO, viscosity=MU))(jnp.zeros(6))
        wanted = [-6.0 * np.pi * MU * RADIUS] * 3 + [-8.0 * np.pi * MU * RADIUS**3] * 3
        assert np.allclose(slope, np.diag(wanted), rtol=1e-12, atol=1e-12)


def test_in_the_plane_it_is_refused() -> None:
    medium = mb.ellipsoid_drag("medium", "a", (1.0, 1.0, 1.0), density=1.0)
    problem = mb.assemble(mb.body("a", mass=1.0, inertia=1.0), medium, gravity=9.81)
    with pytest.raises(InputError, match="the mechanism is planar, and an ellipsoid is in space; take"):
        problem.system.force(jnp.zeros(()), jnp.zeros(3), jnp.zeros(3), problem.params)


# Resistance of a medium: closed forms of a fall, of a spin and of a glide.
SLOW = pytest.mark.slow
MASS, BOX, DENSE, THICK, G = 1.3, (0.3, 0.2, 0.1), 900.0, 25.0, 9.81
INERTIA = (0.05, 0.08, 0.11)
TIME, STEPS = 0.4, 400


def fallen(density, dimension, coordinates):
    """Height lost by a plate that falls from rest along the second axis of its box."""
    flat = dimension == 2
    plate = mb.body("plate", mass=MASS, inertia=INERTIA[2] if flat else INERTIA)
    medium = mb.fluid_drag("water", "plate", BOX, density=DENSE)
    gravity = (0.0, -G) if flat else (0.0, -G, 0.0)
    problem = mb.assemble(plate, medium, gravity=gravity, coordinates=coordinates)
    problem = problem.replace(**{"water.own.density": density})
    run = nsjax.simulate(*problem, schemes.generalized_alpha(), dt=TIME / STEPS, steps=STEPS, every=STEPS)
    return -run.body("plate").position[-1, 1]


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "coordinates"), [(2, "joint"), (3, "absolute")])
def test_a_falling_plate(dimension, coordinates) -> None:
    """Quadratic resistance k v^2: the height is ``m/k log cosh(t sqrt(g k/m))``."""

    def exact(density):
        k = 0.5 * density * BOX[0] * BOX[2]
        return MASS / k * jnp.log(jnp.cosh(TIME * jnp.sqrt(G * k / MASS)))

    run = jax.jit(jax.value_and_grad(lambda x: fallen(x, dimension, coordinates)))
    height, slope = run(DENSE)
    # order 2; the fall's time scale sqrt(m/(g k)) is a hundred steps
    assert abs(height - exact(DENSE)) < 3e-5 * exact(DENSE)
    assert abs(slope - jax.grad(exact)(DENSE)) < 1e-4 * abs(jax.grad(exact)(DENSE))
    forward = jax.jit(lambda x: jax.jvp(lambda y: fallen(y, dimension, coordinates), (x,), (1.0,))[1])(
        DENSE
    )
    assert abs(forward - slope) < 1e-10 * abs(slope)


@pytest.mark.parametrize("coordinates", [pytest.param("absolute", marks=SLOW)])
def test_spins_and_glides(coordinates) -> None:
    """Viscous resistance leaves an exponential, quadratic one ``w / (1 + k w t)``, each about a principal
    axis; a box turned about that axis by a quarter has its edges exchanged.
    """
    mean, (a, b, c) = sum(BOX) / 3.0, BOX
    start = {"disc": ((0.0, 0.0, 0.0), ((0.0, 0.0, 2.0), (0.0, 0.0, 30.0)))}
    disc = mb.body("disc", mass=MASS, inertia=INERTIA, com=(0.0, 0.0, 0.05))

    def end(**given):
        medium = mb.fluid_drag("oil", ("disc", (0.0, 0.0, 0.05)), BOX, **given)
        problem = mb.assemble(disc, medium, start=start, coordinates=coordinates)
        run = nsjax.simulate(
            *problem, schemes.generalized_alpha(), dt=TIME / STEPS, steps=STEPS, every=STEPS
        )
        found = run.body("disc")
        return np.array([found.spin[-1, 2], found.velocity[-1, 2]])

    thick = np.array([np.pi * mean**3 * THICK / INERTIA[2], 3.0 * np.pi * mean * THICK / MASS])
    wanted = np.array([30.0, 2.0]) * np.exp(-thick * TIME)
    # order 2, time constants of more than twenty steps: (dt/T)^2/12 t/T is the error of the trapezoid
    assert np.allclose(end(viscosity=THICK), wanted, rtol=4e-3)
    still = np.array([DENSE * c * (a**4 + b**4) / 64.0 / INERTIA[2], 0.5 * DENSE * a * b / MASS])
    wanted = np.array([30.0, 2.0]) / (1.0 + still * np.array([30.0, 2.0]) * TIME)
    assert np.allclose(end(density=DENSE), wanted, rtol=1e-4)
    assert np.allclose(end(density=DENSE, turned=(0.0, 0.0, np.pi / 2.0)), wanted, rtol=1e-4)
    # with the wind nothing resists
    assert np.allclose(end(density=DENSE, wind=(0.0, 0.0, 2.0))[1], 2.0, rtol=1e-12)


def test_turned_in_the_plane() -> None:
    """A box turned by a quarter resists with the other edge."""
    for turned, edge in ((0.0, BOX[0]), (np.pi / 2.0, BOX[1])):
        plate = mb.body("plate", mass=MASS, inertia=INERTIA[2])
        medium = mb.fluid_drag("air", "plate", BOX, density=DENSE, turned=turned)
        problem = mb.assemble(plate, medium, start={"plate": ((0.0, 0.0, 0.0), (0.0, 3.0, 0.0))})
        force = problem.system.force(0.0, problem.state.q, problem.state.v, problem.params)
        assert np.allclose(force, [0.0, -0.5 * DENSE * edge * BOX[2] * 9.0, 0.0], rtol=1e-12, atol=1e-9)


# Thrusters: forces and moments in proportion to one effort, and actuators of model files that are such.
OWN, ARM, EFFORT, SIDE = 0.2, 0.4, 2.0, 0.3


def force_of(problem: Any) -> np.ndarray:
    system = problem.system
    p = prepared(system, jax.tree.map(lambda x: jnp.asarray(x, float), problem.params))
    return np.asarray(
        system.force(jnp.zeros(()), jnp.asarray(problem.state.q), jnp.asarray(problem.state.v), p)
    )


@pytest.mark.parametrize(("coordinates", "follower"), [("joint", True), ("absolute", False)])
def test_in_the_plane(follower: bool, coordinates: str) -> None:
    """Force and moment about the centre, in turned axes or those of the ground."""
    angle = 0.7
    push = mb.thruster("jet", ("a", (ARM, 0.1)), EFFORT, axis=(0.0, 1.5), moment=SIDE, follower=follower)
    problem = mb.assemble(
        mb.body("a", mass=MASS, inertia=OWN), push, start={"a": (0.0, 0.0, angle)}, coordinates=coordinates
    )
    turned = angle if follower else 0.0
    along = 1.5 * EFFORT * np.array([-np.sin(turned), np.cos(turned)])
    c, s = np.cos(angle), np.sin(angle)
    x, y = c * ARM - s * 0.1, s * ARM + c * 0.1
    wanted = [*along, x * along[1] - y * along[0] + SIDE * EFFORT]
    assert np.allclose(force_of(problem), wanted, atol=1e-14)


def test_a_law_of_the_rate() -> None:
    """``m v' = -k v`` by a law, and its derivative: ``v = v0 exp(-k t / m)``, ``dv/dk = -v t / m``."""

    def end(k: Any) -> Any:
        brake = mb.thruster(
            "brake", "a", axis=(1.0, 0.0), law=lambda t, length, rate, own: -own * rate, own=0.5
        )
        problem = mb.assemble(
            mb.body("a", mass=MASS, inertia=OWN), brake, start={"a": (np.zeros(3), (2.0, 0.0, 0.0))}
        )
        problem = problem.replace({"brake.own": k})
        return nsjax.simulate(*problem, schemes.generalized_alpha(), dt=5e-3, steps=200).v[-1, 0]

    found, slope = jax.value_and_grad(end)(0.5)
    wanted = 2.0 * np.exp(-0.5 / MASS)
    assert abs(found - wanted) < 1e-5  # order 2: (k dt / m)^2 / 12
    assert abs(slope + wanted / MASS) < 1e-5


@pytest.mark.slow
def test_a_moment_and_its_reaction() -> None:
    """In a ball joint it acts on both bodies: the spin of the pair is not changed by it."""
    twin = {"mass": MASS, "inertia": (OWN, 0.3, 0.4)}
    problem = mb.assemble(
        mb.body("a", **twin), mb.body("b", **twin), mb.ball("pin", "a", "b"),
        mb.thruster("gyro", "b", EFFORT, moment=(0.0, 0.0, SIDE), against="a"),
        start={"a": ((0.0, 0.0, 0.0), (0.3, -0.5, 0.2)), "pin": (0.4, 0.1, -0.2)},
    )  # fmt: skip
    found = force_of(problem)
    assert np.allclose(found[:6], 0.0, atol=1e-14)
    assert np.allclose(found[6:], [0.0, 0.0, EFFORT * SIDE], atol=1e-14)


DRONE = """<mujoco><worldbody><site name="w"/>
<body name="frame" pos="0 0 1"><joint name="fly" type="free"/>
  <geom type="box" size="0.2 0.15 0.05" mass="1"/>
  <site name="r1" pos="0.2 0.1 0.02" euler="10 20 30"/><site name="r2" pos="-0.2 0.1 0"/>
  <body name="hub" pos="0 0 0.1"><site name="r3" pos="0.01 0 0.1" euler="0 40 0"/></body>
  <body name="camera" pos="0.3 0 0"><joint name="gimbal" type="ball"/>
    <geom type="box" size="0.05 0.04 0.03" pos="0.02 0 0.01" mass="0.2"/></body></body></worldbody>
<actuator><motor name="a1" site="r1" gear="0 0 1 0 0 -0.02" ctrlrange="0 0.5"/>
<general name="a2" site="r2" gear="0.5 0 2 0.1 0 0" gainprm="3" biastype="affine" biasprm="0.2 0 -0.3"/>
<general name="a3" site="r3" gear="0 1 1 0 0 0.1" dyntype="filter" dynprm="0.1" gainprm="2"
  forcerange="-1 1"/>
<motor name="a4" joint="gimbal" gear="0.1 -0.2 0.3"/>
<velocity name="a5" joint="gimbal" gear="0 1 0" kv="0.1"/>
<motor name="a6" joint="fly" gear="1 2 3 0.1 0.2 0.3"/>{}</actuator><sensor>{}</sensor></mujoco>"""


@SLOW
def test_a_drone_of_a_file() -> None:
    """Rotors at turned sites, motors of a ball and of the free body, with servos of rates and filters."""
    worst = compared(DRONE.format("", "<gyro site='r1'/>"), states=6)
    assert worst["accelerations"] < 1e-12
    assert max(worst.values()) < 1e-12


def test_what_is_left_out_beside_a_drone() -> None:
    more = (
        "<position name='b1' joint='gimbal' gear='1 0 0' kp='1'/>"
        "<motor name='b2' site='r1' refsite='r2' gear='1 0 0 0 0 0'/>"
        "<motor name='b3' site='w' gear='1 0 0 0 0 0'/>"
    )
    with pytest.warns(mb.LeftOutWarning) as told:
        file = mb.read_mjcf(DRONE.format(more, "<actuatorfrc actuator='a1'/>"))
    said = " ".join(str(x.message) for x in told)
    assert "actuators that serve the position of a ball are left out: 'b1'" in said
    assert "actuators that act at a site relative to another one (refsite) are left out: 'b2'" in said
    assert "actuators that act at a site of the ground are left out: 'b3'" in said
    assert "sensors that have no equal are left out" in said
    assert [x.name for x in file if x.kind == "thruster"] == ["a1", "a2", "a3", "a4", "a5", "a6"]


@pytest.mark.slow
def test_a_drone_hovers() -> None:
    """Four commands that carry the weight, as inputs by the names of the rotors."""
    text = "<mujoco><worldbody><body name='d' pos='0 0 1'><freejoint/>"
    text += "<geom type='box' size='.1 .1 .02' mass='0.5'/>"
    text += "".join(
        f"<site name='s{k}' pos='{x} {y} 0'/>"
        for k, (x, y) in enumerate(((1, 1), (-1, 1), (-1, -1), (1, -1)))
    )
    text += "</body></worldbody><actuator>"
    text += "".join(f"<motor name='m{k}' site='s{k}' gear='0 0 1 0 0 {(-1) ** k}'/>" for k in range(4))
    problem = quiet(mb.read_mjcf, text + "</actuator></mujoco>").problem()
    inputs = {f"m{k}": 0.5 * 9.81 / 4.0 for k in range(4)}
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=50, inputs=inputs)
    assert np.allclose(traj.q[-1], problem.state.q, atol=1e-12)


# Springs and dampers on ball joints.
def gyroscope(**spring) -> Problem:
    """A body about its centre, on a body that turns as freely."""
    return mb.assemble(
        mb.body("frame", mass=2.0, inertia=(0.2, 0.3, 0.25)),
        mb.body("rotor", mass=1.0, inertia=(0.1, 0.12, 0.07)),
        mb.ball("base", "ground", "frame"), mb.ball("joint", "frame", "rotor"),
        mb.joint_spring("coil", "joint", **spring),
        start={"frame": ((0.3, 0.2, -0.4), (1.0, 0.0, 0.5)), "rotor": ((0.5, -1.0, 0.7), (0.0, 2.0, 0.3))},
    )  # fmt: skip


def test_moment_and_energy() -> None:
    """``k phi`` and ``k phi^2 / 2`` of turns up to almost a half, and none; the damper opposes the relative
    angular velocity, which is the velocity of the joint.
    """
    damped, seeded = gyroscope(stiffness=3.0, damping=0.5), np.random.default_rng(0)
    free, s = damped.replace({"coil.damping": 0.0}), damped.system
    force = jax.jit(lambda q, v, p: (s.force(0.0, q, v, s.prepare(p)), s.potential(0.0, q, s.prepare(p))))
    for size in (0.0, 1e-6, 1e-4, 0.1, 1.0, 2.5, 3.14):
        axis, base, v = seeded.normal(size=3), seeded.normal(size=3), seeded.normal(size=6)
        turn = size * axis / np.linalg.norm(axis)
        q = np.concatenate([rotations.exponential(jnp.asarray(x)) for x in (base, turn)])
        found, energy = force(q, np.zeros(6), damped.params)
        # in the axes of both bodies: a rotation vector is its own image
        np.testing.assert_allclose(found, [0, 0, 0, *(-3.0 * turn)], rtol=1e-9, atol=1e-12)
        assert float(energy) == pytest.approx(1.5 * size**2, rel=1e-9, abs=1e-15)
        change = force(q, v, damped.params)[0] - force(q, v, free.params)[0]
        np.testing.assert_allclose(change, [0, 0, 0, *(-0.5 * v[3:])], rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_derivatives_of_aligned_bodies() -> None:
    problem = gyroscope(stiffness=3.0)
    s, p = problem.system, problem.system.prepare(problem.params)
    aligned = np.array([1.0, 0, 0, 0, 1, 0, 0, 0])
    force = lambda xi: s.force(0.0, s.retract(aligned, xi), np.zeros(6), p)  # noqa: E731
    np.testing.assert_allclose(jax.jacfwd(force)(np.zeros(6))[3:, 3:], -3.0 * np.eye(3), atol=1e-12)
