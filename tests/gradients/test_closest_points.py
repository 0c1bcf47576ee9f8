"""Derivatives through contacts at closest points: a disc that falls onto a corner of a box, or onto the end
of a capsule, whose normal turns with where it falls. Against the motion resolved by its event.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.multibody import assemble, body, box, capsule, contact, sphere

GRAVITY, RADIUS, THICK, TIME, DT = 9.81, 0.1, 0.03, 0.45, 5e-4
CENTRE = np.array([0.2, 0.1])
SHAPES = {
    "corner": (box("ground", *CENTRE), RADIUS),
    "end": (capsule("ground", THICK, 0.3, at=(-0.1, 0.1)), RADIUS + THICK),
}
"""What stands still, its corner or the middle of its end at CENTRE, and how far the disc stays off."""

PLACE = np.array([0.26, 0.6])


def exact(given: jax.Array, reach: float) -> jax.Array:
    """Where the disc is in the end that falls onto a point of the plane; it flies on, for after a plastic
    impact it is too fast for the circle around the point.
    """
    across = given[0] - CENTRE[0]
    normal = jnp.stack([across, jnp.sqrt(reach**2 - across**2)]) / reach
    t = jnp.sqrt(2.0 * (given[1] - CENTRE[1] - reach * normal[1]) / GRAVITY)
    v = jnp.array([0.0, -1.0]) * GRAVITY * t
    v = v - (1.0 + given[2]) * jnp.sum(normal * v) * normal
    rest = TIME - t
    return CENTRE + reach * normal + rest * v - jnp.array([0.0, GRAVITY / 2.0]) * rest**2


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_where_a_disc_ends(shape: str) -> None:
    """After an elastic and after a plastic impact: by its place at the start and by the restitution."""
    other, reach = SHAPES[shape]
    problem = assemble(
        body("disc", mass=1.0, inertia=0.005), contact("touch", sphere("disc", RADIUS), other),
        gravity=GRAVITY, start={"disc": ((*PLACE, 0.0), (0.0, 0.0, 0.0))},
    )  # fmt: skip

    def final(given: jax.Array) -> jax.Array:
        q = jnp.stack([given[0], given[1], jnp.zeros(())])
        changed = problem.replace({"touch.restitution": given[2]}, initial_q=q)
        steps = round(TIME / DT)
        return nsjax.simulate(*changed, schemes.moreau(), dt=DT, steps=steps, every=steps).q[-1, :2]

    derivative = jax.jit(jax.jacfwd(final))
    for restitution in (0.7, 0.0):
        given = np.array([*PLACE, restitution])
        expected, width = np.asarray(jax.jacfwd(exact)(given, reach)), 1e-3
        size = np.max(np.abs(expected))
        secants = [
            (exact(given + width * e, reach) - exact(given - width * e, reach)) / (2.0 * width)
            for e in np.eye(3)
        ]
        assert np.max(np.abs(np.stack(secants, axis=1) - expected)) <= 1e-3 * size
        # the impact is known to the way of a step, by which normals are off: that over the radius
        way = DT * np.sqrt(2.0 * GRAVITY * (PLACE[1] - CENTRE[1]))
        assert np.max(np.abs(derivative(given) - expected)) <= way / RADIUS * size
