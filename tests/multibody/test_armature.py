"""Armature of free bodies: inertia without weight against closed forms."""

from __future__ import annotations

import re

import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.core import InputError
from nsjax.core.operators import prepared
from nsjax.multibody import assemble, body, hinge, spring

MASS, OWN, CENTRE, TURN, SPIN = 2.0, 0.7, 0.3, 0.8, 1.5


def test_in_the_plane() -> None:
    """``M a = f`` of a body with its centre beside its origin, which turns while it falls."""
    free = body("a", mass=MASS, inertia=0.4, com=CENTRE, armature=OWN)
    problem = assemble(free, gravity=9.81, start={"a": ((0.0, 0.0, TURN), (0.0, 0.0, SPIN))})
    system, (q, v) = problem.system, (problem.state.q, problem.state.v)
    p = prepared(system, problem.params)
    c, s = CENTRE * np.cos(TURN), CENTRE * np.sin(TURN)
    wanted = np.array(
        [
            [MASS + OWN, 0.0, -MASS * s],
            [0.0, MASS + OWN, MASS * c],
            [0.0, 0.0, 0.4 + MASS * CENTRE**2 + OWN],
        ]
    )
    wanted = np.triu(wanted) + np.triu(wanted, 1).T
    assert np.allclose(system.mass(jnp.asarray(q), p), wanted, atol=1e-14)
    force = [MASS * c * SPIN**2, MASS * s * SPIN**2 - MASS * 9.81, -MASS * c * 9.81]
    assert np.allclose(system.force(jnp.zeros(()), jnp.asarray(q), jnp.asarray(v), p), force, atol=1e-13)


@pytest.mark.slow
def test_in_space() -> None:
    """The origin and the spin about each axis of the body are held back, with no weight and no gyration."""
    moments = np.array([0.1, 0.2, 0.25])
    free = body("a", mass=MASS, inertia=moments, armature=OWN)
    spins = np.array([1.0, -2.0, 0.5])
    start = {"a": (((0.0, 0.0, 1.0), (0.4, -0.3, 0.9)), (np.zeros(3), spins))}
    problem = assemble(free, gravity=9.81, start=start)
    system, (q, v) = problem.system, (problem.state.q, problem.state.v)
    p = prepared(system, problem.params)
    mass = np.asarray(system.mass(jnp.asarray(q), p))
    force = np.asarray(system.force(jnp.zeros(()), jnp.asarray(q), jnp.asarray(v), p))
    found = np.linalg.solve(mass, force)
    assert np.allclose(found[:3], [0.0, 0.0, -9.81 * MASS / (MASS + OWN)], atol=1e-13)
    assert np.allclose(found[3:], -np.cross(spins, moments * spins) / (moments + OWN), atol=1e-13)


def test_it_stays_a_number() -> None:
    """Zero is none, and it is found in params by its name."""
    problem = assemble(body("a", mass=MASS, inertia=0.4, armature=0.0), gravity=9.81)
    heavy, p = problem.replace({"a.armature": OWN}), prepared
    light = assemble(body("a", mass=MASS, inertia=0.4), gravity=9.81)
    q = jnp.zeros(3)
    assert np.array_equal(
        problem.system.mass(q, p(problem.system, problem.params)),
        light.system.mass(q, p(light.system, light.params)),
    )
    found = np.diag(np.asarray(heavy.system.mass(q, p(heavy.system, heavy.params))))
    assert np.allclose(found, [MASS + OWN, MASS + OWN, 0.4 + OWN])


@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_bodies_that_have_none(coordinates: str) -> None:
    held = hinge("pin", "ground", "a")
    parts = [body("a", mass=MASS, inertia=0.4, armature=OWN)]
    parts += [held] if coordinates == "joint" else [spring("s", "ground", ("a", 1.0), stiffness=1.0)]
    words = (
        "body 'a': armature = 0.7, and only a free body in joint coordinates has one; give it to the joint "
        'on which the body hangs, or take coordinates="joint"'
    )
    with pytest.raises(InputError, match=re.escape(words)):
        assemble(*parts, coordinates=coordinates)
    with pytest.raises(InputError, match="it must be at least 0"):
        body("a", mass=1.0, armature=-1.0)
