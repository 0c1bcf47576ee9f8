"""A motion that is sound although its derivative is not finite: behind a root of zero."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax import Labels, Problem, State, System
from tests.points import unit_mass


def force(t, q, v, p):
    """A spring that has no derivative where it is slack: the root of zero."""
    return -p["k"] * jnp.sqrt(jnp.maximum(q, 0.0)) + 0.0 * p["idle"]


ROOT = Problem(
    system=System(
        nq=1, nv=1, mass=unit_mass, force=force, labels=Labels(q=("x [m]",), v=("vx [m/s]",))
    ),
    params={"k": 1.0, "idle": 0.5}, state=State(t=2.0, q=np.array([1.0]), v=np.array([-2.0])),
)  # fmt: skip
