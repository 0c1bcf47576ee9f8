"""Two beams that cross and strike each other: momentum, energy, depth, convergence, derivatives."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import nsjax
from nsjax import schemes
from nsjax.core.operators import prepared
from nsjax.multibody import assemble, beam, circular, contact, fixed, hinge, section, tube

RUBBER = circular(0.02, E=2.1e7, rho=1000.0)
TIME, SPEED = 0.04, 1.0


def crossing(restitution: float, friction: float) -> Any:
    """The upper beam falls on the lower one, which it crosses aside from both middles, and slides on it."""
    return assemble(
        beam("upper", (-0.25, 0.0, 0.05), (0.35, 0.0, 0.05), elements=4, section=RUBBER),
        beam("lower", (0.0, -0.25, 0.0), (0.05, 0.25, 0.0), elements=4, section=RUBBER),
        contact("c", tube("upper", 0.02), tube("lower", 0.02), restitution=restitution, friction=friction),
        start={"upper": ((0.0, 0.0, 0.0), (0.3, 0.5, -SPEED, 0.0, 0.0, 0.0))},
    )  # fmt: skip


def inertia_of(problem: Any) -> np.ndarray:
    """Mass matrix, which does not depend on the position."""
    p = prepared(problem.system, jax.tree.map(lambda x: jnp.asarray(x, float), problem.params))
    inertia, q = problem.system.parts.inertia, jnp.asarray(problem.state.q)
    return np.asarray(jax.jit(jax.vmap(lambda w: inertia(q, w, p)))(jnp.eye(problem.system.nv)))


def momenta(inertia: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Momentum and moment of momentum about the origin (6,): what rigid motions do to the inertia's."""
    moved = inertia @ v
    rows, found = q.reshape(-1, 7), []
    turns = Rotation.from_quat(rows[:, 3:], scalar_first=True).inv()
    for speed, spin in [(e, np.zeros(3)) for e in np.eye(3)] + [(np.zeros(3), e) for e in np.eye(3)]:
        own = turns.apply(np.tile(spin, (len(rows), 1)))
        rigid = np.concatenate([speed + np.cross(spin, rows[:, :3]), own], axis=1).ravel()
        found.append(float(rigid @ moved))
    return np.array(found)


@pytest.mark.slow
def test_an_impact_of_crossing_beams() -> None:
    """Frictional, with and without restitution: momentum to rounding, moment of momentum as the scheme
    turns nodes, which vanishes with the step; energy never exceeds that of the start; the beams are in
    each other by less than a step of approach; places come nearer to those of the finest step.
    """
    for restitution in (0.5, 0.0):
        problem = crossing(restitution, 0.3)
        inertia = inertia_of(problem)
        places, turning, steps = [], [], (2e-4, 1e-4, 5e-5, 2.5e-5)
        for dt in steps:
            traj = nsjax.simulate(*problem, schemes.moreau(), dt=dt, steps=round(TIME / dt))
            traj.raise_for_status()
            q, v = np.asarray(traj.q), np.asarray(traj.v)
            rows = range(0, len(q), len(q) // 20)
            found = np.array([momenta(inertia, q[k], v[k]) for k in rows])
            off = np.max(np.abs(found - found[0]), axis=0)
            assert np.max(off[:3]) <= 1e-13
            turning.append(np.max(off[3:]))
            energy = np.asarray(traj["energy"])
            assert np.max(energy) <= energy[0] * (1.0 + 1e-9)
            assert energy[-1] < 0.95 * energy[0]
            assert np.min(traj.gap) >= -dt * SPEED
            assert np.sum(np.abs(np.asarray(traj.impulse_tangential))) > 0.1
            places.append(q[-1].reshape(-1, 7)[:, :3])
        assert np.all(np.array(turning[1:]) <= 0.75 * np.array(turning[:-1]))  # half a step, half of it
        away = [np.max(np.abs(x - places[-1])) for x in places[:-1]]
        assert away[0] > away[1] > away[2]


SOFT = section(EA=1e3, GA=1e3, EI=5.0, GJ=5.0, line_mass=1.0, line_inertia=1e-2)


def struck() -> Any:
    """An arm on a hinge falls on a beam that crosses its way, held at both ends."""
    return assemble(
        beam("arm", (0, 0, 0), (1, 0, 0), elements=2, section=SOFT, damping=2e-3),
        beam("rest", (0.85, -0.4, -0.35), (0.85, 0.4, -0.35), elements=2, section=SOFT, damping=2e-3),
        hinge("pin", "ground", "arm.start", axis=(0, 1, 0)),
        fixed("left", "ground", "rest.start", at=(0.85, -0.4, -0.35)),
        fixed("right", "ground", "rest.end", at=(0.85, 0.4, -0.35)),
        contact("c", tube("arm", 0.02), tube("rest", 0.02), restitution=0.5), gravity=9.81,
    )  # fmt: skip


@pytest.mark.slow
def test_derivatives() -> None:
    """Against secants wider than the teeth of the discrete map; forward as reverse."""
    problem = struck()
    parameters = ("arm.section.line_mass", "c.second.radius")

    def heights(traj: Any) -> jax.Array:
        return traj.q[-1].reshape(-1, 7)[np.array([1, 2, 4]), 2]  # those of nodes that are not held

    found = nsjax.check_gradient(
        problem, schemes.moreau(), parameters=parameters, dt=2e-4, time=0.25, outputs=heights, samples=9
    )
    assert found.impacts >= 1
    assert found.agrees, str(found)

    def end(radius: jax.Array) -> jax.Array:
        changed = problem.replace({"c.second.radius": radius})
        traj = nsjax.simulate(*changed, schemes.moreau(), dt=5e-4, steps=500, every=500)
        return jnp.sum(jnp.sin(heights(traj)))

    forward, reverse = jax.jacfwd(end)(0.02), jax.grad(end)(0.02)
    assert abs(forward) > 1e-3
    np.testing.assert_allclose(forward, reverse, rtol=1e-9)
