"""A mass that lands on a wall without rebound, and that the wall repels the more the farther it is."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import ContactLaw, State, System, schemes
from tests.design import each_family
from tests.points import position, unit_mass

COUNTS = (131, 499, 2003)
X = np.array([3.0, 0.5, 0.4, 3.0, 0.5])  # rate, offset, height and approach at the start, end


def force(t, q, v, p):
    return p["rate"] ** 2 * (q + p["offset"])


def law(p):
    return ContactLaw(restitution=0.0)


SYSTEM = System(nq=1, nv=1, nc=1, mass=unit_mass, force=force, gap=position, law=law)


def exact(x):
    """With ``u = q + offset``: ``u'' = rate^2 u``, a sinh down to the wall, a cosh from rest there on."""
    k, d, q, v, time = x
    size = jnp.sqrt((v / k) ** 2 - (q + d) ** 2)
    landed = (jnp.arctanh((q + d) * k / v) - jnp.arcsinh(d / size)) / k
    since = k * (time - landed)
    return jnp.stack([d * jnp.cosh(since) - d, d * k * jnp.sinh(since)])


@each_family("name")
def test_derivatives_after_a_landing_that_does_not_last(name: str) -> None:
    """A contact that is at rest for an instant and leaves at once is not held by the next step."""
    scheme = schemes.REGISTRY[name].factory()

    def end(x, steps):
        k, d, q, v, time = x
        state, p = State(t=0.0, q=jnp.array([q]), v=jnp.array([-v])), {"rate": k, "offset": d}
        traj = nsjax.simulate(SYSTEM, p, state, scheme, dt=time / steps, steps=steps, every=steps)
        return jnp.concatenate([traj.q[-1], traj.v[-1]])

    wanted = np.asarray(jax.jacfwd(exact)(jnp.asarray(X)))
    trend = []
    for steps in COUNTS:
        off = np.asarray(jax.jit(jax.jacfwd(lambda x, n=steps: end(x, n)))(jnp.asarray(X))) - wanted
        trend.append(steps * np.max(np.abs(off)) / np.max(np.abs(wanted)))
    # first order: steps by which the impact is late; an error of 3 % that stays would be 60 at the last.
    # Measured over the three counts: 3.3, 2.2, 2.6 for moreau and moreau_theta; 0.5, 2.5, 2.9 for
    # half_explicit, generalized_alpha, hht, newmark and bathe
    assert np.max(trend) < 20.0, trend
