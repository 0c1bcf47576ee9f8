"""Every registered scheme on a small beam against its equations of motion solved by another program; some
on beams of incremental elements, whose history every scheme brings up to date in its own way.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

import nsjax
from nsjax import schemes
from nsjax.math import rotations
from nsjax.multibody import assemble, beam, fixed, section
from tests.design import each_family
from tests.multibody.flexible.beam_cases import COLUMN

DT, STEPS = 1e-3, 20
SOFT = {"EA": 2e3, "GA": 2e3, "EI": 5.0, "GJ": 5.0, "line_mass": 1.0, "line_inertia": 1e-2}
"""Highest frequency below 1 / DT: explicit schemes are stable."""

QUICK = ("moreau_theta",)


@functools.cache
def swinging(stiff: bool = False, per: int | None = None):
    """A clamped beam of three nodes that is thrown to the side and twisted; ``per`` of them an incremental
    element.
    """
    given = {} if per is None else {"element": "incremental", "element_nodes": per}
    problem = assemble(
        beam("arm", (0, 0, 0), (1, 0, 0), elements=1 if per == 3 else 2,
             section=section(**(COLUMN if stiff else SOFT)), first_axis=(0, 0, 1), **given),
        fixed("clamp", "ground", "arm.start"), gravity=9.81,
    )  # fmt: skip
    v = np.array([[0.0] * 6, [0, 0.5, 0.2, 1.0, -0.8, 2.0], [0, 2.0, 0.8, 2.0, -1.6, 4.0]])
    return problem.replace(initial_v=v.reshape(-1))


def _history_rates(q, v, per: int) -> list:
    """Of the Gauss points: they turn with the interpolated angular velocity of the nodes (in the axes of
    the ground), whose slope is the rate of curvature.
    """
    nodes, points = q[:21].reshape(3, 7), q[21:].reshape(-1, 7)
    spins = jax.vmap(lambda x, w: rotations.matrix(x[3:]) @ w)(nodes, v.reshape(3, 6)[:, 3:])
    if per == 2:
        pairs = [(0.5 * (spins[k] + spins[k + 1]), 0.5 * (spins[k + 1] - spins[k])) for k in (0, 1)]
    else:

        def quadratic(x):
            return spins[0] * x * (x - 1) / 2 + spins[1] * (1 - x * x) + spins[2] * x * (x + 1) / 2

        pairs = [jax.jvp(quadratic, (x,), (1.0,)) for x in (-1.0 / 3.0**0.5, 1.0 / 3.0**0.5)]
    found = []
    for (w, slope), point in zip(pairs, points, strict=True):
        p0, p1 = point[0], point[1:4]
        found += [-0.5 * jnp.dot(p1, w)[None], 0.5 * (p0 * w + jnp.cross(w, p1))]
        found.append(rotations.matrix(point[:4]).T @ slope)
    return found


@functools.cache
def exact(per: int | None = None) -> np.ndarray:
    """Position of the free nodes after as many steps of DT: Newton-Euler equations with the first node left
    out, by Dormand and Prince's eighth order.
    """
    problem = swinging(per=per)
    s, p = problem.system, problem.system.prepare(problem.params)
    first, zero, n = jnp.asarray(problem.state.q[:7]), jnp.zeros(6), s.nq - 7

    @jax.jit
    def rates(t, y):
        q, v = y[:n], y[n:]
        push = s.force(t, jnp.concatenate([first, q]), jnp.concatenate([zero, v]), p)[6:]
        mass = jax.vmap(lambda x: s.inertia(jnp.concatenate([first, q]), x, p))(jnp.eye(18)[6:])[:, 6:]
        moved = []
        for k in range(2):
            w, p0, p1 = v[6 * k + 3 : 6 * k + 6], q[7 * k + 3], q[7 * k + 4 : 7 * k + 7]
            moved += [v[6 * k : 6 * k + 3], -0.5 * jnp.dot(p1, w)[None], 0.5 * (p0 * w + jnp.cross(p1, w))]
        if per is not None:
            moved += _history_rates(jnp.concatenate([first, q]), jnp.concatenate([zero, v]), per)
        return jnp.concatenate([*moved, jnp.linalg.solve(mass, push)])

    start = np.concatenate([problem.state.q[7:], problem.state.v[6:]])
    found = solve_ivp(rates, (0.0, STEPS * DT), start, method="DOP853", rtol=1e-11, atol=1e-12)
    return found.y[:14, -1]


def _errors(name: str, per: int | None = None) -> list[float]:
    """At one instant from steps of DT and of half of it, the latter in two runs of one program."""
    problem, scheme, found = swinging(per=per), schemes.REGISTRY[name].factory(), []
    for halves in (1, 2):
        carry = None
        for _ in range(halves):
            traj = nsjax.simulate(*problem, scheme, dt=DT / halves, steps=STEPS, carry=carry)
            traj.raise_for_status()
            carry = traj.carry
        found.append(np.abs(np.asarray(traj.q)[-1, 7:21] - exact(per)).max())
    return found


@each_family("name")
def test_order(name: str) -> None:
    """A half of the step has a half or a quarter of the error."""
    found = _errors(name)
    assert found[0] < 1e-4  # of a motion by 0.04
    assert found[0] > 0.75 * 2.0 ** schemes.REGISTRY[name].order[0] * found[1], found
