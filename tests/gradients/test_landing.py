"""Contacts that come to rest beside joints."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nsjax import State, System, schemes
from nsjax.contact import ContactLaw
from tests.design import each_family
from tests.gradients.program import sensitivity

PUSH = 3.0


def _geared(p):
    """Masses of a slide and of a counterweight that it drives, gear, stop, speed at the start."""
    start = State(t=0.0, q=jnp.stack([0.0 * p[4], 0.0 * p[4]]), v=jnp.stack([p[4], p[2] * p[4]]))
    return {"m": p[:2], "gear": p[2], "stop": p[3]}, start


GEARED = System(
    nq=2, nv=2, nc=1, nb=1, nt=0, mass=lambda q, p: jnp.diag(p["m"]),
    force=lambda t, q, v, p: jnp.stack([PUSH, 0.0 * q[0]]), gap=lambda t, q, p: p["stop"] - q[:1],
    constraint=lambda t, q, p: q[1:] - p["gear"] * q[:1], law=lambda p: ContactLaw(),
)  # fmt: skip


@each_family("name")
def test_a_landing_keeps_the_joints(name: str) -> None:
    """Pressed against its stop the slide stands there, ``q = (stop, gear stop)`` whatever else changes."""
    scheme, rng = schemes.REGISTRY[name].factory(), np.random.default_rng(0)
    for _ in range(6):
        p = np.concatenate([rng.uniform(0.5, 2.0, 3), rng.uniform(0.2, 0.4, 2)])
        run = sensitivity(GEARED, _geared, scheme, p, 1.5, int(rng.integers(90, 130)))
        wanted = np.zeros((4, 5))
        wanted[0, 3], wanted[1, 3], wanted[1, 2] = 1.0, p[2], p[3]
        # schemes without a correction of positions stand where they have noticed the stop
        wanted[1, 2] = run.x[0]
        assert abs(run.x[0] - p[3]) < 0.03
        np.testing.assert_allclose(run.jacobian, wanted, atol=1e-8)
