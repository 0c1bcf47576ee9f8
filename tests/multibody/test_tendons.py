"""Tendons: closed forms, plane and space, both coordinates, several schemes, derivatives, sentences."""

from __future__ import annotations

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
    hinge,
    joint_spring,
    joint_tendon,
    sensor,
    slide,
    tendon,
)

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


WORDS = [
    (lambda: two(tendon("t", ("ground", 0.0), "a", stiffness=1.0)),
     "length zero at the start, so that its pull has no direction; move its points apart"),
    (lambda: tendon("t", "a"), "a branch of 1 points has no length; give two or more between its"),
    (lambda: tendon("t", "a", "b", -2.0, "c", "d"), "pulley = -2.0; it must be positive"),
    (lambda: tendon("t", "a", "b", limits=(2.0, 1.0)), "the lower must be below the upper"),
    (lambda: tendon("t", "a", "b", length=(2.0, 1.0)),
     "give the free length, or a pair of the least and the largest length between which it exerts"),
    (lambda: two(tendon("t", "ground", "c")), "tendon 't': unknown body 'c'"),
    (lambda: two(tendon("t", ("ground", (1.0, 0.0)), ("a", (1.0, 2.0, 0.5))), gravity=(0.0, -G)),
     "components in a mechanism of 2 dimensions"),
    (lambda: joint_tendon("t", {}), "give a dict of joints with their factors, one or more"),
    (lambda: two(joint_tendon("t", {"B": 1.0})), "joint_tendon 't': unknown joint 'B'"),
    (on_a_ball, "'A' is a ball joint; name a hinge or slide"),
    (lambda: two(joint_tendon("t", {"A": 1.0}), joint_spring("s", "t", stiffness=1.0)),
     "it cannot act on the tendon 't'; give the tendon stiffness and damping of its own"),
]  # fmt: skip
