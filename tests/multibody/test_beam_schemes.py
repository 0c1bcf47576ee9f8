"""Every registered scheme on a small beam against its equations of motion solved by another program."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import schemes
from nsjax.multibody import assemble, beam, fixed, section
from nsjax.stability import warn_of_step
from tests.multibody.beam_cases import COLUMN

DT, STEPS = 1e-3, 20
SOFT = {"EA": 2e3, "GA": 2e3, "EI": 5.0, "GJ": 5.0, "line_mass": 1.0, "line_inertia": 1e-2}
"""Highest frequency below 1 / DT: explicit schemes are stable."""

QUICK = ("moreau_theta",)
NAMES = [pytest.param(x, marks=() if x in QUICK else pytest.mark.slow) for x in schemes.REGISTRY]


@functools.cache
def swinging(stiff: bool = False):
    """A clamped beam of two elements that is thrown to the side and twisted."""
    problem = assemble(
        beam("arm", (0, 0, 0), (1, 0, 0), elements=2, section=section(**(COLUMN if stiff else SOFT)),
             first_axis=(0, 0, 1)),
        fixed("clamp", "ground", "arm.start"), gravity=9.81,
    )  # fmt: skip
    v = np.array([[0.0] * 6, [0, 0.5, 0.2, 1.0, -0.8, 2.0], [0, 2.0, 0.8, 2.0, -1.6, 4.0]])
    return problem.replace(initial_v=v.reshape(-1))


@functools.cache
def exact() -> np.ndarray:
    """Position of the free nodes after as many steps of DT: Newton-Euler equations with the first node left
    out, by Dormand and Prince's eighth order.
    """
    problem = swinging()
    s, p = problem.system, problem.system.prepare(problem.params)
    first, zero = jnp.asarray(problem.state.q[:7]), jnp.zeros(6)

    @jax.jit
    def rates(t, y):
        q, v = y[:14], y[14:]
        push = s.force(t, jnp.concatenate([first, q]), jnp.concatenate([zero, v]), p)[6:]
        mass = jax.vmap(lambda x: s.inertia(jnp.concatenate([first, q]), x, p))(jnp.eye(18)[6:])[:, 6:]
        moved = []
        for k in range(2):
            w, p0, p1 = v[6 * k + 3 : 6 * k + 6], q[7 * k + 3], q[7 * k + 4 : 7 * k + 7]
            moved += [v[6 * k : 6 * k + 3], -0.5 * jnp.dot(p1, w)[None], 0.5 * (p0 * w + jnp.cross(p1, w))]
        return jnp.concatenate([*moved, jnp.linalg.solve(mass, push)])

    start = np.concatenate([problem.state.q[7:], problem.state.v[6:]])
    found = solve_ivp(rates, (0.0, STEPS * DT), start, method="DOP853", rtol=1e-11, atol=1e-12)
    return found.y[:14, -1]


@pytest.mark.parametrize("name", NAMES)
def test_order(name: str) -> None:
    """Errors at one instant from steps of DT and of half of it, the latter in two runs of one program."""
    problem, entry, found = swinging(), schemes.REGISTRY[name], []
    scheme = entry.factory()
    for halves in (1, 2):
        carry = None
        for _ in range(halves):
            traj = nsjax.simulate(*problem, scheme, dt=DT / halves, steps=STEPS, carry=carry)
            traj.raise_for_status()
            carry = traj.carry
        found.append(np.abs(np.asarray(traj.q)[-1, 7:] - exact()).max())
    assert found[0] < 1e-4  # of a motion by 0.04
    assert found[0] > 0.75 * 2.0 ** entry.order[0] * found[1], found


@pytest.mark.parametrize("name", [x for x, entry in schemes.REGISTRY.items() if entry.stability_limit])
def test_explicit_schemes_are_warned_of_stiff_beams(name: str) -> None:
    """The largest stable step is told before the run."""
    system, params, state = swinging(stiff=True)
    scheme = schemes.REGISTRY[name].factory()
    with pytest.warns(UserWarning, match=f"above the largest stable step of {name} for this model, about"):
        assert warn_of_step(system, params, state, scheme, DT)
