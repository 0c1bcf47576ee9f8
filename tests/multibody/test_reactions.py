"""Reactions of joints: both choices of coordinates, statics, and means over rows."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.core.operators import prepared
from nsjax.multibody import assemble, ball, body, contact, hinge, joint_spring, plane, point, slide, spring
from nsjax.multibody.reactions import Instant, Loads
from tests.design import slow_but


def planar() -> list:
    return [
        body("a", mass=1.0, inertia=0.1, com=0.5), body("b", mass=2.0, inertia=0.2, com=(0.4, 0.1)),
        body("c", mass=0.5, inertia=0.05, com=0.1), hinge("h", "ground", "a"), hinge("k", "a", "b", at=1.0),
        slide("s", "b", "c", at=(0.3, 0.2), axis=(0.6, 0.8), turned=0.4),
        joint_spring("t", "k", stiffness=3.0, damping=0.2),
        spring("e", "a", ("c", 0.1), stiffness=5.0, length=0.2),
        contact("p", point("b", at=0.8), plane(at=(0.0, -5.0)), friction=0.3),
    ]  # fmt: skip


def spatial() -> list:
    return [
        body("a", mass=1.0, inertia=(0.1, 0.2, 0.25), com=0.5),
        body("b", mass=2.0, inertia=(0.2, 0.1, 0.15), com=(0.4, 0.1, 0.0)),
        ball("h", "ground", "a", at=(0.0, 0.1, 0.0)),
        hinge("k", "b", "a", at=(0.1, 0.0, 0.2), on=1.0, axis=(0.0, 0.6, 0.8)),
        joint_spring("t", "k", stiffness=3.0, damping=0.2),
        contact("p", point("b", at=0.8), plane(at=(0.0, 0.0, -5.0)), friction=0.3),
    ]


STARTS = {
    2: {"a": (-0.4, 1.0), "b": (0.3, -2.0), "s": (0.15, 0.7)},
    3: {"a": ((0.3, -0.4, 0.2), (1.0, -2.0, 0.5)), "k": (0.7, 1.5)},
}


@pytest.mark.parametrize("dimension", slow_but([2, 3], 2))
def test_coordinates_agree(dimension: int) -> None:
    """Joint coordinates by inverse dynamics and absolute ones by multipliers, at one state with contact
    forces
    that are given: to 1e-9 of the largest.
    """
    parts, found = (planar() if dimension == 2 else spatial()), {}
    for coordinates in ("joint", "absolute"):
        problem = assemble(*parts, gravity=9.81, coordinates=coordinates, start=STARTS[dimension])
        system, state = problem.system, problem.state
        loads = Loads(
            jnp.array([7.0]), jnp.array([[2.0, -1.0][: dimension - 1]]), jnp.zeros(system.nb), jnp.zeros(0)
        )
        p = prepared(system, jax.tree.map(lambda x: jnp.asarray(x, float), problem.params))

        @jax.jit
        def carried(q, v, parts=system.parts, p=p, loads=loads):
            instant = Instant(parts, jnp.zeros(()), q, v, p, loads)
            return [instant.carried(name) for name in parts.part_names("joint")]

        found[coordinates] = carried(jnp.asarray(state.q), jnp.asarray(state.v))
    size = max(float(jnp.max(jnp.abs(x))) for pair in found["joint"] for x in pair)
    for one, other in zip(found["joint"], found["absolute"], strict=True):
        for a, b in zip(one, other, strict=True):
            assert float(jnp.max(jnp.abs(a - b))) <= 1e-9 * size


@pytest.mark.slow
def test_weights_hang() -> None:
    """A bar on two hinges, one of them a loop: what statics says; the moment of a hinge is zero."""
    problem = assemble(
        body("bar", mass=2.0, inertia=0.2, com=0.3), hinge("left", "ground", "bar"),
        body("strut", mass=1e-9, inertia=1e-9, com=0.5), hinge("low", "ground", "strut", at=(1.0, -1.0)),
        hinge("right", "strut", "bar", at=1.0, on=1.0), body("weight", mass=1.0, inertia=1e-3),
        hinge("end", "strut", "weight", at=1.0), gravity=10.0, start={"bar": 0.0, "strut": np.pi / 2},
    )  # fmt: skip
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=2)
    # about the left hinge: 0.3 m * 20 N = 1 m * 6 N; the strut carries these and the weight's 10 N
    assert np.allclose(traj.joint("left").force[0], [0.0, 14.0], atol=1e-6)
    assert np.allclose(traj.joint("low").force[0], [0.0, 16.0], atol=1e-6)
    assert abs(float(traj.joint("left").torque[0])) < 1e-9


@pytest.mark.slow
def test_impulse_is_the_time_integral_of_the_force() -> None:
    """Smooth motion: the impulse of a row is the trapezoid of the forces of its ends, to second order."""
    parts = [dataclasses.replace(x) for x in planar() if x.kind != "contact"]
    problem = assemble(*parts, gravity=9.81, start=STARTS[2])
    traj = nsjax.simulate(*problem, schemes.generalized_alpha(), dt=1e-4, steps=500, every=5)
    rows = traj.joint("h")
    means = 0.5 * (rows.force[1:] + rows.force[:-1]) * 5e-4
    # (row spacing)^2 / 12 of the second derivative of a force of 50 N at 10 rad/s, times the spacing
    assert np.max(np.abs(rows.impulse[1:] - means)) < 5e-4**3 / 12.0 * 50.0 * 1e2 * 10.0
