"""A new base scheme in one file: Bathe's two-part scheme with controllable spectral radius.

G. Noh, K.-J. Bathe, Computers & Structures 212 (2019) 299-310: the trapezoidal rule to the time
``gamma dt``, then ``v_{n+1} = v_n + dt (q0 a_n + q1 a_g + q2 a_{n+1})``, positions likewise. Everything
else (contact and constraint forces, impulses, derivatives, status) comes from the mixed framework.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from nsjax.core import Scheme, State
from nsjax.schemes.mixed import BaseEnd, Memory, Tolerances, mixed_scheme
from nsjax.schemes.stages import single
from nsjax.types import Array, record


@record()
class Numbers:
    """Spectral radius at infinite frequency in [0, 1), and tolerances."""

    rho_inf: Array | float
    tolerances: Tolerances


def base(coef: Any, state: State, memory: Memory, dt: Array, run: Any) -> BaseEnd:
    """Two implicit stages, one after the other; each is solved for its velocity increment."""
    t, q, v, a = jnp.asarray(state.t), state.q, state.v, memory.a
    rho = coef.rho_inf
    gamma = (2 - jnp.sqrt(2 + 2 * rho)) / (1 - rho)
    q1 = (rho + 1) / (2 * gamma * (rho - 1) + 4)
    q0, q2 = (gamma - 1) * q1 + 0.5, 0.5 - gamma * q1

    h = gamma * dt  # first part: trapezoidal rule, predicted with the acceleration at the start
    guess = v + h * a
    first = single(anchor=q, xi=0.5 * h * (v + guess), v=guess, a=a, cq=h / 2, ca=2 / h, t=t + h, dt=dt)
    ((_, _, vg, ag),), (middle,) = run(first)

    # second part, predicted with the acceleration of the first
    guess = v + dt * (q0 * a + (q1 + q2) * ag)
    xi = dt * (q0 * v + q1 * vg + q2 * guess)
    second = single(anchor=q, xi=xi, v=guess, a=ag, cq=dt * q2, ca=1 / (dt * q2), t=t + dt, dt=dt)
    ((_, q_end, v_end, a_end),), (impulses,) = run(second)
    impulse = q0 * dt * memory.force + q1 * middle + q2 * impulses  # the formula of v
    return BaseEnd(q=q_end, v=v_end, a=a_end, algorithmic=a_end, force=impulses / dt, impulse=impulse)


def rho_infinity_bathe(rho_inf: Array | float = 0.5) -> Scheme:
    """The scheme; order 2, damping chosen by ``rho_inf``."""
    tolerances = Tolerances(stage=1e-12, contact=1e-11, gap=0.0)
    return mixed_scheme("rho_infinity_bathe", base, Numbers(rho_inf=rho_inf, tolerances=tolerances))
