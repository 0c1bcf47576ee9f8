"""What a step holds fixed (`System.refresh`), and contacts that may not act (`System.allowed`)."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import State, System, schemes
from tests.common.own import OWN
from tests.design import each_family
from tests.points import bouncing, unit_mass

SCHEMES = {**schemes.REGISTRY, **OWN}
RADIUS = 1.0


def force(t, q, v, p):
    return jnp.stack([0.0 * v[0], -p["gravity"]])


def round_gap(t, q, p):
    """Distance from a round hill."""
    return (jnp.sqrt(jnp.sum(q * q)) - RADIUS)[None]


def normal_of_hill(t, q, p):
    return {**p, "normal": q / jnp.sqrt(jnp.sum(q * q))}


def flat_gap(t, q, p):
    """Distance from the hill's tangent below the point, which the step holds fixed."""
    return (jnp.sum(p["normal"] * q) - RADIUS)[None]


HILL = System(nq=2, nv=2, nc=1, mass=unit_mass, force=force, gap=round_gap, law=bouncing)
TANGENT = System(
    nq=2, nv=2, nc=1, mass=unit_mass, force=force, gap=flat_gap, law=bouncing, refresh=normal_of_hill
)
PARAMS = {"gravity": 9.81, "restitution": 0.6}


def end(system, scheme, x, steps):
    """State after 0.4 s of the numbers (x, height, gravity, restitution)."""
    state = State(t=0.0, q=x[:2], v=jnp.array([0.2, 0.0]))
    params = {"gravity": x[2], "restitution": x[3]}
    traj = nsjax.simulate(system, params, state, scheme, dt=0.4 / steps, steps=steps, every=steps)
    return jnp.concatenate([traj.q[-1], traj.v[-1]])


def made(name: str):
    return schemes.localized(schemes.moreau()) if name == "localized" else SCHEMES[name].factory()


@each_family("name")
def test_what_a_step_holds_fixed(name: str) -> None:
    """A tangent instead of a hill: motion and derivative differ by what the point moves in a step, when
    it bounces and when it lands and slides down.
    """
    scheme = made(name)
    starts = jnp.array([[0.1, 1.3, 9.81, 0.6], [0.1, 1.05, 9.81, 0.0]])
    off = []
    for steps in (401, 1601):

        def motion_and_slope(system, x, n=steps):
            """Both from one program."""

            def both(x):
                reached = end(system, scheme, x, n)
                return reached, reached

            slope, reached = jax.jacfwd(both, has_aux=True)(x)
            return reached, slope

        hill, tangent = (
            jax.jit(jax.vmap(lambda x, s=s, f=motion_and_slope: f(s, x)))(starts) for s in (HILL, TANGENT)
        )
        off += [
            steps * np.max(np.abs(b - a)) / np.max(np.abs(a)) for a, b in zip(hill, tangent, strict=True)
        ]
    # first order in the step: at most one step (Moreau, generalized-alpha, nsga_decoupled, localized); an
    # error that does not converge is above the bound at the larger count as soon as it is 1.3 %
    assert np.max(off) < 20.0, off


def floor(t, q, p):
    return q[1:]


def on_the_table(t, q, p):
    """The floor ends at x = 1."""
    return (q[0] < 1.0)[None]


TABLE = System(nq=2, nv=2, nc=1, mass=unit_mass, force=force, gap=floor, law=bouncing, allowed=on_the_table)
BARE = dataclasses.replace(TABLE, allowed=None)


@each_family("name", beside=("localized",))
def test_a_ball_falls_off_the_table(name: str) -> None:
    """As on a floor without end while it is above the table, and freely from there on, below it too."""
    scheme = made(name)
    state = State(t=0.0, q=np.array([0.0, 0.3]), v=np.array([2.0, 0.0]))
    run = {"dt": 1e-3, "steps": 900}
    off, on = (nsjax.simulate(s, PARAMS, state, scheme, **run) for s in (TABLE, BARE))
    off.raise_for_status()
    last = int(np.searchsorted(off.q[:, 0], 1.0)) - 1
    np.testing.assert_array_equal(off.q[:last], on.q[:last])
    assert off.impacts[:last].sum() >= 1
    assert not np.any(off.impulse_normal[last + 2 :])
    assert off.q[-1, 1] < -0.2 < 0.0 <= on.q[-1, 1] + 0.05
    np.testing.assert_allclose(np.diff(off.v[last + 2 :, 1]), -9.81e-3, rtol=1e-9)
    # below the floor, beside the table: a start like any other
    beside = State(t=0.0, q=np.array([1.5, -0.3]), v=np.array([0.0, 1.0]))
    rises = nsjax.simulate(TABLE, PARAMS, beside, scheme, dt=1e-3, steps=100)
    np.testing.assert_allclose(rises.v[-1, 1], 1.0 - 9.81e-1, rtol=1e-9)
