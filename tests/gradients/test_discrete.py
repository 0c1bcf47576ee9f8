"""`gradient="discrete"`: the derivative of the discrete map while contacts stay as they are."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import State, System, schemes
from nsjax.contact import ContactLaw
from tests.design import each_family


def mass(q, p):
    return p["m"] * jnp.eye(2)


def force(t, q, v, p):
    return jnp.stack([p["f"], -p["m"] * p["g"]])


def gap(t, q, p):
    return q[1:]


def slip(t, q, v, p):
    return v[:1].reshape(1, 1)


def law(p):
    return ContactLaw(friction=p["mu"])


SLEDGE = System(nq=2, nv=2, nc=1, nt=1, mass=mass, force=force, gap=gap, slip=slip, law=law)
START = State(t=0.0, q=np.zeros(2), v=np.array([1.0, 0.0]))
NUMBERS = {"m": 2.0, "f": 3.0, "g": 9.81, "mu": 0.1}
DT, STEPS = 1e-2, 20


@pytest.mark.slow
@each_family("name", "moreau")
def test_a_sledge_that_slides_all_the_time(name: str) -> None:
    """``v = v0 + T (f / m - mu g)``: loads, mass and friction act through the closed contact."""

    def end(p):
        scheme = schemes.REGISTRY[name].factory()
        traj = nsjax.simulate(
            SLEDGE, p, START, scheme, dt=DT, steps=STEPS, every=STEPS, gradient="discrete"
        )
        return traj.v[-1][0]

    found, time, p = jax.jit(jax.grad(end))(NUMBERS), DT * STEPS, NUMBERS
    wanted = {
        "m": -time * p["f"] / p["m"] ** 2, "f": time / p["m"], "g": -time * p["mu"], "mu": -time * p["g"],
    }  # fmt: skip
    for key, value in wanted.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-8, err_msg=key)
