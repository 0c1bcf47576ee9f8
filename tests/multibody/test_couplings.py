"""Gears, racks, polynomials and screws against closed forms, in all coordinates, with several schemes."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.multibody import (
    actuator,
    assemble,
    body,
    coupling,
    force,
    gear,
    hinge,
    joint_spring,
    rack_pinion,
    screw,
    slide,
)

BOTH = ("joint", "absolute")
SLOW = pytest.mark.slow
MIXED = [
    (False, "joint", schemes.moreau),
    *(
        pytest.param(*x, marks=SLOW)
        for x in ((True, "joint", schemes.generalized_alpha), (False, "absolute", schemes.moreau),
                  (True, "absolute", schemes.ggl_decoupled))
    ),
]  # fmt: skip
MOSTLY = ("joint", pytest.param("absolute", marks=SLOW))
RATIO, TORQUE, INERTIAS = -0.4, 0.7, (0.1, 0.5)


def wheels(coordinates="joint", spatial=False, ratio=RATIO, **more):
    """Two wheels on fixed shafts, the first of which is driven."""
    axis = {"axis": (0.0, 0.0, 1.0)} if spatial else {}
    x = [(0.3, 0.2, i) if spatial else i for i in INERTIAS]
    at = (0.5, 0.0, 0.0) if spatial else 0.5
    parts = [
        body("a", mass=1.0, inertia=x[0]), hinge("A", "ground", "a", **axis),
        body("b", mass=2.0, inertia=x[1]), hinge("B", "ground", "b", at=at, **axis),
        actuator("motor", "A", TORQUE), gear("mesh", "B", "A", ratio=ratio, offset=0.1),
    ]  # fmt: skip
    return assemble(*parts, coordinates=coordinates, **more)


def run(problem, scheme=schemes.generalized_alpha, dt=1e-3, steps=200, **more):
    traj = nsjax.simulate(*problem, scheme(), dt=dt, steps=steps, **more)
    traj.raise_for_status()
    return traj


@pytest.mark.parametrize(("spatial", "coordinates", "scheme"), MIXED)
def test_gear(coordinates, spatial, scheme) -> None:
    """``(J1 + i^2 J2) a = M``; the row carries what accelerates the second wheel."""
    problem = wheels(coordinates, spatial, start={"a": (0.0, 1.0)})
    acceleration = TORQUE / (INERTIAS[0] + RATIO**2 * INERTIAS[1])
    traj = run(problem, scheme)
    rates = traj.joint("A").rate, traj.joint("B").rate
    np.testing.assert_allclose(rates[0], 1.0 + acceleration * traj.t, rtol=0, atol=1e-10)
    np.testing.assert_allclose(rates[1], RATIO * rates[0], rtol=0, atol=1e-10)
    if scheme is not schemes.moreau:
        force = traj.constraint_force[-1, problem.system.labels.constraints.index("mesh")]
        assert abs(float(force) - INERTIAS[1] * RATIO * acceleration) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", MOSTLY)
def test_derivative_of_a_gear(coordinates) -> None:
    """Forward and reverse, against the closed form's."""

    def speed(ratio):
        problem = wheels(coordinates).replace(**{"mesh.ratio": ratio, "mesh.offset": 0.1})
        return nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=50).v[-1, -1]

    def wanted(ratio):
        return 0.05 * ratio * TORQUE / (INERTIAS[0] + ratio**2 * INERTIAS[1])

    x = jnp.asarray(RATIO)
    forward = jax.jit(lambda x: jax.jvp(speed, (x,), (jnp.ones(()),))[1])(x)
    reverse, exact = jax.jit(jax.grad(speed))(x), jax.grad(wanted)(x)
    assert abs(float(forward - exact)) < 1e-10
    assert abs(float(reverse - exact)) < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", MOSTLY)
def test_rack_and_pinion(coordinates) -> None:
    """A pinion with a spring drives a rack: ``(J + m r^2) a = -k angle``."""
    r, m, inertia, k = 0.2, 3.0, 0.1, 5.0
    problem = assemble(
        body("wheel", mass=1.0, inertia=inertia), hinge("shaft", "ground", "wheel"),
        body("bar", mass=m, inertia=0.2), slide("guide", "ground", "bar", at=(0.0, -r)),
        rack_pinion("teeth", "guide", "shaft", radius=r), joint_spring("k", "shaft", stiffness=k),
        coordinates=coordinates, start={"wheel": 0.5},
    )  # fmt: skip
    traj = run(problem, steps=400)
    omega = np.sqrt(k / (inertia + m * r * r))
    # order 2: the period's error is (omega dt)^2 / 12, and grows with the angle run through
    np.testing.assert_allclose(traj.joint("shaft").position, 0.5 * np.cos(omega * traj.t), atol=2e-6)
    np.testing.assert_allclose(traj.joint("guide").position, 0.1 * np.cos(omega * traj.t), atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", MOSTLY)
def test_polynomial(coordinates) -> None:
    """A slide follows an even turn: its force is the mass times the second derivative of the law."""
    c, rate, m = (0.1, 0.3, -0.2, 0.4), 2.0, 1.5
    problem = assemble(
        body("cam", mass=1.0, inertia=1.0), hinge("shaft", "ground", "cam", motion=lambda t: rate * t),
        body("bar", mass=m, inertia=0.2), slide("guide", "ground", "bar", axis=(0.0, 1.0)),
        coupling("law", "guide", "shaft", polynomial=c), coordinates=coordinates,
    )  # fmt: skip
    traj = run(problem, steps=300)
    x = rate * np.asarray(traj.t)
    place = c[0] + c[1] * x + c[2] * x**2 + c[3] * x**3
    # the scheme holds rows on accelerations: positions drift by its order, 2
    np.testing.assert_allclose(traj.joint("guide").position, place, rtol=0, atol=1e-6)
    found = traj.constraint_force[-1, problem.system.labels.constraints.index("law")]
    assert abs(float(found) - m * rate**2 * (2.0 * c[2] + 6.0 * c[3] * x[-1])) < 1e-2  # order 2 in 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", MOSTLY)
def test_a_joint_held_by_a_constant(coordinates) -> None:
    arm = body("a", mass=2.0, inertia=0.1, com=0.5), hinge("A", "ground", "a")
    hold = coupling("hold", "A", polynomial=(0.3,))
    problem = assemble(*arm, hold, gravity=9.81, coordinates=coordinates)
    traj = run(problem, steps=20)
    assert abs(float(traj.joint("A").position[-1]) - 0.3) < 1e-12
    force = traj.constraint_force[-1, problem.system.labels.constraints.index("hold")]
    assert abs(float(force) - 2.0 * 9.81 * 0.5 * np.cos(0.3)) < 1e-10


THREAD, PUSH = 0.03, -20.0


def nut(coordinates="joint", back=False, **more):
    ends = ("nut", "ground") if back else ("ground", "nut")
    axis = np.array([1.0, 2.0, 2.0]) / 3.0
    return assemble(
        body("nut", mass=2.0, inertia=(0.02, 0.02, 0.02), com=0.1 * axis),
        screw("thread", *ends, pitch=THREAD, axis=axis),
        force("load", "nut", PUSH * axis), coordinates=coordinates, **more,
    )  # fmt: skip


@pytest.mark.parametrize(("back", "coordinates", "scheme"), MIXED)
def test_screw_under_load(coordinates, back, scheme) -> None:
    """``(J + m k^2) a = F k`` with ``k = pitch / (2 pi)``, the same from either body."""
    traj = run(nut(coordinates, back), scheme)
    k = THREAD / (2.0 * np.pi)
    sign = -1.0 if back else 1.0  # the angle is that of the second body
    a = sign * PUSH * k / (0.02 + 2.0 * k * k)
    np.testing.assert_allclose(traj.joint("thread").rate, a * traj.t, rtol=0, atol=1e-9)
    along = np.asarray(traj.body("nut").position) @ (np.array([1.0, 2.0, 2.0]) / 3.0)
    np.testing.assert_allclose(along, sign * k * traj.joint("thread").position, rtol=0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", BOTH)
def test_screw_over_many_turns(coordinates) -> None:
    """It advances by the pitch in each."""
    traj = run(nut(coordinates, start={"thread": (0.0, 100.0)}), steps=500, every=100)
    assert abs(float(traj.joint("thread").position[-1])) > 6.0 * np.pi
    along = np.asarray(traj.body("nut").position) @ (np.array([1.0, 2.0, 2.0]) / 3.0)
    advance = THREAD / (2.0 * np.pi) * traj.joint("thread").position
    np.testing.assert_allclose(along, advance, rtol=0, atol=1e-8)


def pair(*more):
    """Two bodies on hinges."""
    a, b = (body(x, mass=1.0, inertia=0.1) for x in "ab")
    return assemble(a, hinge("A", "ground", "a"), b, hinge("B", "ground", "b", at=1.0), *more)


def another(mesh):
    """The same gear with an offset, under another name."""
    return dataclasses.replace(mesh, name="h", numbers=dataclasses.replace(mesh.numbers, offset=1.0))
