"""Generalized-alpha, HHT and Newmark as base schemes of the mixed framework."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from nsjax.core.scheme import Scheme
from nsjax.core.system import State
from nsjax.schemes.mixed import Memory, Tolerances, mixed_scheme, single
from nsjax.types import Array, record


@record()
class RhoInfinity:
    """Numbers of `generalized_alpha`."""

    rho_inf: Array | float
    tolerances: Tolerances

    def parameters(self) -> tuple[Any, Any, Any, Any]:
        """``alpha_m, alpha_f, beta, gamma``, [R&S (26)]."""
        rho = self.rho_inf
        alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
        return alpha_m, alpha_f, 1 / (1 + rho) ** 2, (3 - rho) / (2 * (1 + rho))


def base(
    coef: Any, state: State, memory: Memory, dt: Array, run: Any
) -> tuple[Array, Array, Array, Array, Array]:
    """One stage at the end of the step, [R&S (20)-(24)], in increments from a predictor."""
    alpha_m, alpha_f, beta, gamma = coef.parameters()
    v, a, old = state.v, memory.a, memory.algorithmic
    s = (1 - alpha_f) / (1 - alpha_m)
    offset = (alpha_f * a - alpha_m * old) / (1 - alpha_m)
    guess = s * a + offset
    maps = single(
        anchor=state.q,
        xi=dt * v + dt * dt * ((0.5 - beta) * old + beta * guess),
        v=v + dt * ((1 - gamma) * old + gamma * guess),
        a=a,
        cq=dt * beta / gamma,
        ca=1 / (dt * gamma * s),
        t=jnp.asarray(state.t) + dt,
        dt=dt,
    )
    ((_, q, v, a),), (impulses,) = run(maps)
    return q, v, a, s * a + offset, impulses / dt


def generalized_alpha(
    rho_inf: Array | float = 0.8,
    *,
    stage_tolerance: float = 1e-12,
    tolerance: float = 1e-11,
    gap_tolerance: float = 0.0,
    **options: Any,
) -> Scheme:
    """Generalized-alpha."""
    tolerances = Tolerances(stage=stage_tolerance, contact=tolerance, gap=gap_tolerance)
    return mixed_scheme("generalized_alpha", base, RhoInfinity(rho_inf=rho_inf, tolerances=tolerances), **options)
