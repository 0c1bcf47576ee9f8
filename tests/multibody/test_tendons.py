"""Tendons and their couplings: closed forms, plane and space, several schemes, derivatives."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import schemes
from nsjax.multibody import (
    assemble,
    ball,
    body,
    coupling,
    hinge,
    joint_tendon,
    sensor,
    slide,
    tendon,
)

# Tendons: closed forms, plane and space, both coordinates, several schemes, derivatives, sentences.
G, A, B = 9.81, 2.0, 1.5
SLOW = pytest.mark.slow


def tackle(coordinates="joint", spatial=False, **given):
    """A mass on one strand over a pulley, and one that hangs in a loop of the same rope."""
    wide = (lambda x, y: (x, 0.0, y)) if spatial else (lambda x, y: (x, y))
    inertia = (0.1, 0.1, 0.1) if spatial else 0.1
    return assemble(
        body("a", mass=A, inertia=inertia), slide("A", "ground", "a", axis=wide(0.0, 1.0)),
        body("b", mass=B, inertia=inertia),
        slide("B", "ground", "b", at=wide(1.0, 0.0), axis=wide(0.0, 1.0)),
        tendon(
            "rope", "a", ("ground", wide(0.0, 2.0)), ("ground", wide(1.0, 2.0)), "b",
            ("ground", wide(1.0, 3.0)), **given,
        ),
        gravity=G, coordinates=coordinates,
    )  # fmt: skip


LENGTH = 2.0 + 1.0 + 2.0 + 3.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "coordinates", "spatial"),
    [
        (schemes.moreau(), "joint", False),
        pytest.param(schemes.moreau(), "absolute", True, marks=SLOW),
        (schemes.half_explicit(), "joint", True),
        pytest.param(schemes.generalized_alpha(), "absolute", False, marks=SLOW),
    ],
    ids=("moreau", "moreau-space", "half_explicit", "generalized_alpha"),
)
def test_a_rope_over_two_pulleys(scheme, coordinates, spatial) -> None:
    """A taut rope has ``x_a = -2 x_b`` and ``(4 A + B) x_b'' = (2 A - B) g``; its tension is
    ``A (g + x_a'')``.
    """
    problem = tackle(coordinates, spatial, limits=(None, LENGTH))
    traj = nsjax.simulate(*problem, scheme, dt=1e-3, steps=200)
    traj.raise_for_status()
    rise = (2.0 * A - B) * G / (4.0 * A + B)
    up = {x: float(traj.body(x).position[-1][-1]) for x in "ab"}
    # order 1 of Moreau's scheme: an error of dt/2 times the speed
    assert abs(up["b"] - rise * 0.2**2 / 2.0) < 1e-3 * rise * 0.2
    assert abs(up["a"] + 2.0 * up["b"]) < 1e-9
    rows = traj.contact("rope.upper")
    pull = rows.force[-1] if float(jnp.max(rows.force)) > 0.0 else rows.impulse[-1] / 1e-3
    assert abs(float(jnp.ravel(pull)[0]) - A * (G - 2.0 * rise)) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize(("spatial", "coordinates"), [(False, "joint"), (True, "absolute")])
def test_an_elastic_tendon(coordinates, spatial) -> None:
    """A pendulum in an oblique cable with damping that goes slack, by another integrator; forward against
    reverse, and against a wide secant of the other integrator.
    """
    k, c, rest = 60.0, 0.8, 1.1

    def rates(t, y, k=k):
        x, z = np.cos(y[0]), np.sin(y[0])
        gone = np.array([x - 0.3, z - 1.2])
        length = np.hypot(*gone)
        across = gone @ np.array([-z, x]) / length
        pull = k * max(length - rest, 0.0) + c * across * y[1]
        return [y[1], (-A * G * 0.5 * x - pull * across) / (A * 0.25 + 0.3)]

    def end(k):
        return solve_ivp(rates, (0.0, 0.4), [0.0, 0.0], args=(k,), rtol=1e-11, atol=1e-12).y[0, -1]

    wide = (lambda x, y: (x, 0.0, y)) if spatial else (lambda x, y: (x, y))
    axis = {"axis": (0.0, -1.0, 0.0)} if spatial else {}
    problem = assemble(
        body("rod", mass=A, inertia=(0.1, 0.3, 0.2) if spatial else 0.3, com=wide(0.5, 0.0)),
        hinge("pin", "ground", "rod", **axis),
        tendon("cable", ("ground", wide(0.3, 1.2)), ("rod", wide(1.0, 0.0)), stiffness=k, damping=c,
               length=(0.0, rest)),
        gravity=G, coordinates=coordinates,
    )  # fmt: skip

    def tip(k):
        run = nsjax.simulate(
            *problem.replace({"cable.stiffness": k}), schemes.generalized_alpha(), dt=1e-3, steps=400
        )
        place = run.body("rod").velocity, run.q[-1]
        return (place[1][0] if coordinates == "joint" else place[1][2 if not spatial else 0]), run

    value, run = tip(k)
    run.raise_for_status()
    if coordinates == "absolute":
        return
    assert abs(float(value) - end(k)) < 5e-6
    energy = np.asarray(run.load("cable").energy)
    assert energy[0] == pytest.approx(0.5 * k * (np.hypot(0.7, 1.2) - rest) ** 2, rel=1e-12)
    if spatial:
        return
    forward = jax.jit(lambda k: jax.jvp(lambda x: tip(x)[0], (k,), (1.0,))[1])(k)
    reverse = jax.jit(jax.grad(lambda x: tip(x)[0]))(k)
    assert abs(float(forward - reverse)) < 1e-12
    assert abs(float(forward) - (end(k + 0.01) - end(k - 0.01)) / 0.02) < 1e-6


def hand(coordinates="joint", **given):
    """A finger of two hinges in space, whose tendon runs over drums; ``factors`` in this order."""
    parts = [
        body("p", mass=0.3, inertia=(0.01, 0.02, 0.02), com=(0.1, 0.0, 0.02)),
        hinge("P", "ground", "p", axis=(0.0, 0.6, 0.8)),
        body("d", mass=0.2, inertia=(0.01, 0.015, 0.02), com=(0.1, 0.01, 0.0)),
        hinge("D", "p", "d", at=(0.2, 0.0, 0.0), axis=(0.0, 1.0, 0.0)),
    ]
    more = given.pop("more", ())
    start = {"P": (0.2, 1.0), "D": (-0.3, 0.5)}
    return assemble(
        *parts, joint_tendon("curl", {"P": 0.5, "D": -0.8}, **given), *more, gravity=G, start=start,
        coordinates=coordinates,
    )  # fmt: skip


@SLOW
@pytest.mark.parametrize(
    ("scheme", "coordinates"),
    [(schemes.moreau(), "joint"), pytest.param(schemes.half_explicit(), "absolute", marks=SLOW)],
    ids=("moreau", "half_explicit"),
)
def test_stops_and_dry_friction_of_a_length(scheme, coordinates) -> None:
    """The length stays below its stop, which it reaches, and its dry friction dissipates."""
    problem = hand(coordinates, limits=(-0.2, 0.3405), friction=0.05)
    run = nsjax.simulate(*problem, scheme, dt=1e-3, steps=100)
    run.raise_for_status()
    length = np.asarray(run.sensor(sensor("l", "coordinate", "curl")))
    assert abs(length.max() - 0.3405) < 1e-4  # a step at the speed of 0.1 m/s
    energy = np.asarray(run["energy"])
    assert energy[-1] < energy[0] - 1e-5


def two(*more, **given):
    return assemble(body("a", mass=1.0, inertia=0.1), hinge("A", "ground", "a"), *more, **given)


def on_a_ball():
    bob = body("a", mass=1.0, inertia=(1.0, 1.0, 1.0))
    return assemble(bob, ball("A", "ground", "a"), joint_tendon("t", {"A": 1.0}), gravity=(0.0, 0.0, -G))


# Tendons of fixed length, and lengths that follow one another, against closed forms.
MASSES = (2.0, 1.5)


def hoist(spatial: bool = False, coordinates: str = "joint", masses: Any = MASSES) -> Any:
    """b hangs on two strands, a on one; the rope is 6 m long."""
    up = (0.0, 0.0, 1.0) if spatial else (0.0, 1.0)

    def point(x: float, y: float) -> Any:
        return (x, 0.0, y) if spatial else (x, y)

    more = {"inertia": (0.1, 0.1, 0.1)} if spatial else {"inertia": 0.1}
    return assemble(
        body("a", mass=masses[0], **more), slide("A", "ground", "a", axis=up),
        body("b", mass=masses[1], **more), slide("B", "ground", "b", at=point(1.0, 0.0), axis=up),
        tendon("rope", ("ground", point(0.0, 2.0)), "a", 0.5, ("ground", point(1.0, 2.0)), "b"),
        coupling("held", "rope", polynomial=(6.0,)), gravity=G, coordinates=coordinates,
        start={"a": (-0.4, 0.3)},
    )  # fmt: skip


def wanted(masses: Any) -> tuple[Any, Any]:
    """Acceleration of a, and the effort on the length: ``y_a + 2 y_b`` is constant."""
    m, n = masses
    acceleration = -G * (m - n / 2.0) / (m + n / 4.0)
    return acceleration, -m * (acceleration + G)  # it pulls


CASES = [
    (False, "joint", schemes.moreau),
    pytest.param(True, "absolute", schemes.generalized_alpha, marks=SLOW),
    pytest.param(False, "absolute", schemes.ggl_decoupled, marks=SLOW),
    pytest.param(True, "joint", schemes.bathe, marks=SLOW),
    pytest.param(True, "joint", schemes.nsga_decoupled, marks=SLOW),
    pytest.param(False, "joint", schemes.half_explicit, marks=SLOW),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("spatial", "coordinates", "scheme"), CASES)
def test_a_rope_of_fixed_length(spatial: bool, coordinates: str, scheme: Any) -> None:
    problem = hoist(spatial, coordinates)
    traj = nsjax.simulate(*problem, scheme(), dt=1e-3, steps=100)
    traj.raise_for_status()
    acceleration, tension = wanted(MASSES)
    rate = traj.joint("A").rate
    np.testing.assert_allclose(rate, 0.3 + acceleration * traj.t, rtol=0, atol=1e-9)
    np.testing.assert_allclose(rate + 2.0 * traj.joint("B").rate, 0.0, rtol=0, atol=1e-10)
    height = traj.joint("A").position + 2.0 * traj.joint("B").position
    np.testing.assert_allclose(height, 0.0, rtol=0, atol=1e-9)  # the start of b follows from the length
    k = problem.system.labels.constraints.index("held")
    found = traj.constraint_impulse[:, k].sum() / traj.t[-1]
    assert float(found) == pytest.approx(tension, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("derivative", [jax.grad, pytest.param(jax.jacfwd, marks=SLOW)])
def test_derivative_of_a_rope(derivative: Any) -> None:
    """By a mass against the closed form."""
    made = hoist()

    def speed(m: Any) -> Any:
        problem = made.replace({"a.mass": m})
        return nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=20).v[-1, 0]

    x = jnp.asarray(2.0)
    exact = jax.grad(lambda m: 0.02 * wanted((m, MASSES[1]))[0])(x)
    assert abs(float(jax.jit(derivative(speed))(x) - exact)) < 1e-10


@SLOW
def test_lengths_that_follow_one_another() -> None:
    """The sum of two angles is held to twice a third one by a polynomial, at the start and in motion."""
    parts = [y for k, x in enumerate("abc") for y in (
        body(x, mass=1.0, inertia=0.1 * (k + 1), com=0.2), hinge(x.upper(), "ground", x, at=float(k)),
    )]  # fmt: skip
    problem = assemble(
        *parts, joint_tendon("sum", {"A": 1.0, "B": 1.0}), joint_tendon("third", {"C": 1.0}),
        coupling("law", "sum", "third", polynomial=(0.1, 2.0, 0.3)), gravity=G, start={"a": 0.2, "c": 0.1},
    )  # fmt: skip
    assert float(problem.state.q[1]) == pytest.approx(0.1 + 0.2 + 0.003 - 0.2, abs=1e-11)
    traj = nsjax.simulate(*problem, schemes.generalized_alpha(), dt=1e-3, steps=100)
    a, b, c = (traj.joint(x).position for x in "ABC")
    # rows are held on accelerations: positions drift by the scheme's order, 2
    np.testing.assert_allclose(a + b, 0.1 + 2.0 * c + 0.3 * c * c, rtol=0, atol=1e-6)
