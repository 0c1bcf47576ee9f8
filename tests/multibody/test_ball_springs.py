"""Springs and dampers on ball joints."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import Problem
from nsjax.math import rotations
from nsjax.multibody import assemble, ball, body, joint_spring


def gyroscope(**spring) -> Problem:
    """A body about its centre, on a body that turns as freely."""
    return assemble(
        body("frame", mass=2.0, inertia=(0.2, 0.3, 0.25)),
        body("rotor", mass=1.0, inertia=(0.1, 0.12, 0.07)),
        ball("base", "ground", "frame"), ball("joint", "frame", "rotor"),
        joint_spring("coil", "joint", **spring),
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
