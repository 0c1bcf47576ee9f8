"""Joints that are eliminated with the velocities: the motion of dense rows, at a cost in proportion to
the number of bodies.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from tests.common.chain import chain

FIELDS = ("q", "v", "constraint_force", "constraint_impulse")
CONTACT = ("force_normal", "impulse_normal", "impulse_tangential", "impacts", "closed_time")


def _both(scheme, links, steps, dt, **kind):
    run = {"dt": dt, "steps": steps, "every": steps // 20}
    found, wanted = (nsjax.simulate(*chain(links, k, **kind), scheme, **run) for k in (True, False))
    found.raise_for_status()
    return found, wanted


def _agree(found, wanted, fields, tolerance):
    for field in fields:
        a, b = np.asarray(getattr(found, field)), np.asarray(getattr(wanted, field))
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * (1.0 + np.abs(b).max()), err_msg=field)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["moreau", "generalized_alpha", "bathe"])
def test_twenty_bodies_as_with_dense_rows(name):
    found, wanted = _both(schemes.REGISTRY[name].factory(), 20, 200, 1e-3)
    # solver tolerances 1e-12 of 1 + |v| a step; the chain is chaotic, but not within 0.2 s
    _agree(found, wanted, FIELDS, 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [("moreau", {}), ("moreau_theta", {"grounded": False}), ("generalized_alpha", {"loop": True})],
)
def test_contacts_and_closures_are_a_border(name, kind):
    if "loop" in kind:  # slack, lest the floor stays out of reach
        kind = kind | {"bend": 1.0, "depth": 0.15}
    found, wanted = _both(schemes.REGISTRY[name].factory(), 4, 800, 5e-4, floor=True, **kind)
    assert np.asarray(wanted.impacts).sum() > 0, "the chain is to hit the floor"
    _agree(found, wanted, FIELDS + CONTACT, 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ggl_unified", "nsga_decoupled", "half_explicit"])
def test_other_schemes_meet_the_joints_as_a_border(name):
    found, wanted = _both(schemes.REGISTRY[name].factory(), 3, 100, 1e-3)
    _agree(found, wanted, FIELDS, 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["moreau", "generalized_alpha"])
def test_derivatives_through_impacts(name):
    scheme, found = schemes.REGISTRY[name].factory(), []
    for interleaved in (True, False):
        problem = chain(4, interleaved, floor=True)

        def end(x, problem=problem):
            p = dict(problem.params, mass=x[0], restitution=x[1], gravity=x[2])
            run = nsjax.simulate(problem.system, p, problem.state, scheme, dt=5e-4, steps=600, every=600)
            return jnp.concatenate([run.q[-1], run.v[-1]])

        at = jnp.array([1.0, 0.4, 9.81])
        found += [jax.jit(jax.jacfwd(end))(at), jax.jit(jax.jacrev(end))(at)]
    # rounding of a derivative that grows with every impact: 1e-9 of the largest
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=0, atol=1e-9 * np.abs(found[0]).max())


def _with(**changes):
    problem = chain(4, True)
    return dataclasses.replace(problem, system=dataclasses.replace(problem.system, **changes))


def _far(t, q, p):
    return chain(4, True).system.constraint(t, q, p) + 0.1 * jnp.sin(q[0]) * np.eye(8)[7]
