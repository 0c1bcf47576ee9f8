"""Pairs of a group in every scheme: an oblique impact that sticks, and its derivative in both modes.

Closed form: the impulse ``x`` of an impact with Newton's restitution and sticking is

    G x = (-(1 + e) u_N, -u_T),      d v_y / d e = -u_N (G^-1)_NN / m

with the relative velocity ``u`` of the contact points before the impact.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import Problem, schemes
from nsjax.multibody import assemble, body, box, capsule, contact_group, hinge, plane, sphere
from tests.design import each_family

pytestmark = pytest.mark.slow

GRAVITY, SPEED, GAP, SIDE, DT, STEPS = 9.81, 1.0, 0.005, 0.1, 1e-3, 10
LAW = {"friction": 1.0, "restitution": 0.3}

CLOSE = 1.5 * GRAVITY * DT / SPEED
"""A scheme sees an impact up to a step early or late, with a speed that is wrong by ``g dt``; half of that
more for the weight within the step of the impact.
"""


def ball_on_an_arm() -> tuple[Problem, np.ndarray, float, int]:
    """A ball that falls on a capsule with a hinge at its mass centre; the operator of the contact, the mass
    of what falls, and the entry of its vertical velocity.
    """
    mass, turning, arm, radius, off = 0.5, 0.002, 0.02, 0.05, 0.1
    shapes = [sphere("ball", radius), capsule("arm", radius, 0.3)]
    problem = assemble(
        body("ball", mass=mass, inertia=turning), body("arm", mass=1.0, inertia=arm),
        hinge("pivot", "ground", "arm", at=(1.0, 0.3)), contact_group("all", shapes, **LAW),
        gravity=(0.0, -GRAVITY),
        start={"ball": ((1.0 + off, 0.3 + 2.0 * radius + GAP, 0.0), (SIDE, -SPEED, 0.0))},
    )  # fmt: skip
    normal, across = 1.0 / mass + off**2 / arm, 1.0 / mass + radius**2 / turning + radius**2 / arm
    coupled = -off * radius / arm
    return problem, np.array([[normal, coupled], [coupled, across]]), mass, 1


def crate_on_a_floor() -> tuple[Problem, np.ndarray, float, int]:
    """A tilted box that falls on one corner."""
    mass, inertia, half, tilt = 1.0, 0.01, 0.1, 0.2
    s, c = np.sin(tilt), np.cos(tilt)
    across, height = half * (s - c), half * (s + c)  # of the lowest corner from the centre
    problem = assemble(
        body("crate", mass=mass, inertia=inertia),
        contact_group("all", [box("crate", half, half), plane()], **LAW), gravity=(0.0, -GRAVITY),
        start={"crate": ((0.0, height + GAP, tilt), (SIDE, -SPEED, 0.0))},
    )  # fmt: skip
    coupled = across * height / inertia
    g = [[1.0 / mass + across**2 / inertia, coupled], [coupled, 1.0 / mass + height**2 / inertia]]
    return problem, np.array(g), mass, 1


@pytest.mark.parametrize("make", [ball_on_an_arm, crate_on_a_floor])
@each_family("name")
def test_an_impact_of_a_pair_and_its_derivative(name: str, make: Any) -> None:
    problem, g, mass, entry = make()
    system, params, state = problem
    (pair,) = [k for k in params if getattr(params[k], "friction", None) is not None]
    scheme = getattr(schemes, name)()

    def end(restitution: Any) -> Any:
        own = dataclasses.replace(params[pair], restitution=restitution)
        traj = nsjax.simulate(system, {**params, pair: own}, state, scheme, dt=DT, steps=STEPS, every=STEPS)
        return traj.v[-1, entry]

    traj = nsjax.simulate(*problem, scheme, dt=DT, steps=STEPS)
    before = -np.sqrt(SPEED**2 + 2.0 * GRAVITY * GAP)
    impulse = np.linalg.solve(g, [-(1.0 + LAW["restitution"]) * before, -SIDE])
    assert abs(impulse[1]) < LAW["friction"] * impulse[0], "the closed form is that of sticking"
    assert traj.status == 0
    assert np.sum(traj.impulse_normal) == pytest.approx(impulse[0], rel=CLOSE)
    e = LAW["restitution"]
    forward = float(jax.jit(lambda e: jax.jvp(end, (e,), (jnp.ones(()),))[1])(e))
    reverse = float(jax.jit(jax.grad(end))(e))
    assert forward == pytest.approx(reverse, rel=1e-12)  # two orders of the same sums
    assert forward == pytest.approx(-before * np.linalg.inv(g)[0, 0] / mass, rel=CLOSE)
