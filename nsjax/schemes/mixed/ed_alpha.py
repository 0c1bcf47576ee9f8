"""ED-alpha, the energy-dissipating two-stage scheme, as a base scheme of the mixed framework."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from nsjax.core.errors import InputError
from nsjax.core.scheme import Scheme
from nsjax.core.system import State
from nsjax.renamed import renamed_options
from nsjax.schemes.common import known_options, within
from nsjax.schemes.mixed.framework import BaseEnd, Memory, Tolerances, mixed_scheme
from nsjax.schemes.mixed.stages import Maps
from nsjax.types import Array, record


@record()
class EdAlphaCoefficients:
    """Numbers of `ed_alpha`."""

    rho_inf: Array | float
    alpha_ar: Array | float
    tolerances: Tolerances


def base(coef: Any, state: State, memory: Memory, dt: Array, run: Any) -> BaseEnd:
    """Two simultaneous stages: j at the start of the step, and its end, [R&S (77)-(90)]."""
    t, v, a = jnp.asarray(state.t), state.v, memory.a
    alpha, ar = (1 - coef.rho_inf) / (1 + coef.rho_inf), coef.alpha_ar
    e = dt * ar * (1 + alpha)
    ahead = v + dt * a
    # Stage j comes first: its own pivot never vanishes, but that of the end does for rho_inf = 1.
    cq = dt * jnp.stack([jnp.stack([ar * alpha, -ar]), jnp.asarray([0.5, 0.5])])
    ca = jnp.stack([jnp.stack([1.0, 2 * ar]), jnp.stack([-1.0, 2 * ar * alpha])]) / e
    maps = Maps(
        anchor=state.q, xi=jnp.stack([dt * ar * (v - ahead), 0.5 * dt * (v + ahead)]),
        v=jnp.stack([v, ahead]), a=jnp.stack([a, a]), cq=cq, ca=ca, t=jnp.stack([t, t + dt]), dt=dt,
    )  # fmt: skip
    (_, (_, q, v1, a1)), (begin, end) = run(maps)
    return BaseEnd(q=q, v=v1, a=a1, algorithmic=a1, force=end / dt, impulse=0.5 * (begin + end))


@renamed_options(tolerance="contact_tolerance")
def ed_alpha(
    rho_inf: Array | float = 0.0, alpha_ar: Array | float = 1 / 6, *, stage_tolerance: float = 1e-12,
    contact_tolerance: float = 1e-11, gap_tolerance: float = 1e-12, **options: Any,
) -> Scheme:  # fmt: skip
    """ED-alpha with impulsive correction: two stages solved together, accurate and damped in linear motion.

    With ``alpha = (1 - rho_inf)/(1 + rho_inf)``::

        v_j = v_i + dt alpha_ar (alpha (a_j - a_i) - a_{i+1} + a_i),  v_{i+1} = v_i + dt/2 (a_j + a_{i+1})
        q_j = q_i + dt alpha_ar (alpha (v_j - v_i) - v_{i+1} + v_i),  q_{i+1} = q_i + dt/2 (v_j + v_{i+1})

    and ``M a = h + W lambda`` with the contact laws on velocity level at both.

    Args:
        rho_inf: spectral radius at infinite frequency, in [0, 1]; traced, sweepable.
        alpha_ar: at least 1e-6; traced, sweepable. 1/6 gives the highest order on linear problems, for
            every ``rho_inf``. Towards 0 the rule tends to the trapezoidal one, which is `newmark`.
        stage_tolerance, contact_tolerance, gap_tolerance [m]: see `generalized_alpha`.
        options: as there, but for ``constraint_form="index_3"``.

    Raises:
        InputError: for a spectral radius outside [0, 1], ``alpha_ar`` below 1e-6, or constraints on
            position level alone: stage j
            is at the start of the step, so that ``g(q_j) = 0`` requires ``alpha (v_j - v_i) =
            v_{i+1} - v_i`` along the constraint and determines no force; positions and velocities would be
            of order 1, the force of order 0.

    Order: 2 in position and velocity, 1 in the force. With ``alpha_ar = 1/6`` it is 3 on linear problems
    with a constant load, for every ``rho_inf``: a step multiplies a mode of ``exp(lambda t)`` by
    ``exp(z) - alpha z^4/72 + ...``, ``z = lambda dt``. For ``rho_inf = 1`` this term vanishes and the order
    is 4. A load that depends on time enters by the trapezoidal rule, with order 2.

    Limits: stable at any step for linear motion only. In stiff nonlinear motion it gains energy at smaller
    steps than generalized-alpha (a bob on a spring of frequency omega: from ``omega dt = 0.5`` on).
    The contact problem of a step has twice the rows and an unsymmetric operator that degenerates
    for ``rho_inf = 1``; above 1/2 only Newton's method is safe on it. Prefer ``rho_inf = 0``.

    Source: [R&S (77)-(90)], misprints of (86) and (90) corrected.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> nsjax.simulate(models.bouncing_ball(), schemes.ed_alpha(), dt=1e-2, time=1.0).q.shape
        (101, 1)
    """
    tolerances = Tolerances(stage=stage_tolerance, contact=contact_tolerance, gap=gap_tolerance)
    if options.get("constraint_form") == "index_3":
        raise InputError(
            "ed_alpha: constraint_form = 'index_3': with both stages on the constraint the force of this "
            "scheme does not converge; choose 'ggl', which keeps positions on it too, or 'index_2'"
        )
    rho_inf = within("ed_alpha", "rho_inf", rho_inf, 0.0, 1.0)
    remedy = "at 0 no force moves the stage at the start, and the rule is the trapezoidal one: newmark()"
    # least ``alpha_ar``. Accelerations are velocity increments over ``dt alpha_ar``, whose relative
    # rounding error is ``2e-16 / alpha_ar``: the slider-crank follows the trapezoidal rule to 7e-12 rad;
    # 1e-8 gives 2e-8
    alpha_ar = within("ed_alpha", "alpha_ar", alpha_ar, 1e-6, remedy=remedy)
    coef = EdAlphaCoefficients(rho_inf=rho_inf, alpha_ar=alpha_ar, tolerances=tolerances)
    options = known_options("ed_alpha", options, "rho_inf", "alpha_ar")
    return mixed_scheme("ed_alpha", base, coef, laws_at_start=True, carries="true", **options)
