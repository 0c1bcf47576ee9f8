"""A ball on a floor whose run can be made to fail: by a press that nothing stops, or by a force that
stops being a number.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax import Labels, Problem, State, System
from tests.points import bouncing, unit_mass


def force(t, q, v, p):
    """Weight, until the time ``lost``."""
    return jnp.where(t > p["lost"], jnp.nan, -p["gravity"])[None]


def gap(t, q, p):
    """Height above the floor, and a press that closes at the time ``press`` whatever the ball does."""
    return jnp.stack([q[0], p["press"] - t])


def potential(t, q, p):
    """Of the weight."""
    return p["gravity"] * q[0]


SYSTEM = System(
    nq=1, nv=1, nc=2, mass=unit_mass, force=force, gap=gap, potential=potential, law=bouncing,
    labels=Labels(q=("z [m]",), v=("w [m/s]",), contacts=("floor", "press")),
)  # fmt: skip
BALL = Problem(
    system=SYSTEM,
    params={"gravity": 9.81, "restitution": 0.7, "press": 1e3, "lost": 1e3},
    state=State(t=0.0, q=np.full(1, 0.05), v=np.zeros(1)),
)
