"""Bathe's two-stage scheme as a base scheme of the mixed framework."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from nsjax.core.scheme import Scheme
from nsjax.core.system import State
from nsjax.renamed import renamed_options
from nsjax.schemes.common import known_options
from nsjax.schemes.mixed.framework import BaseEnd, Memory, Tolerances, mixed_scheme
from nsjax.schemes.mixed.stages import single
from nsjax.types import Array, record


@record()
class BatheCoefficients:
    """Numbers of `bathe`: tolerances only."""

    tolerances: Tolerances


def base(coef: Any, state: State, memory: Memory, dt: Array, run: Any) -> BaseEnd:
    """Trapezoidal rule over half a step, then three-point backward differences, [R&S (56)-(76)]."""
    t, q, v, a = jnp.asarray(state.t), state.q, state.v, memory.a
    guess = v + 0.5 * dt * a
    first = 0.25 * dt * (v + guess)
    ((_, qh, vh, ah),), (middle,) = run(
        single(anchor=q, xi=first, v=guess, a=a, cq=dt / 4, ca=4 / dt, t=t + 0.5 * dt, dt=dt)
    )
    # second part, seen from the middle: q_i is exactly q_h moved by -xi_h
    xih = 0.25 * dt * (v + vh)
    ahead = 2.0 * ah - a
    guess = vh + (dt * ahead + (vh - v)) / 3.0
    ((_, q, v1, a1),), (impulses,) = run(
        single(
            anchor=qh, xi=(dt * guess + xih) / 3.0, v=guess, a=ahead, cq=dt / 3, ca=3 / dt, t=t + dt, dt=dt
        )
    )
    # together both parts are v_{i+1} = v_i + dt/3 (a_i + a_h + a_{i+1})
    impulse = (dt * memory.force + middle + impulses) / 3.0
    return BaseEnd(q=q, v=v1, a=a1, algorithmic=a1, force=impulses / dt, impulse=impulse)


@renamed_options(tolerance="contact_tolerance")
def bathe(
    *, stage_tolerance: float = 1e-12, contact_tolerance: float = 1e-11, gap_tolerance: float = 1e-12,
    **options: Any,
) -> Scheme:  # fmt: skip
    """Bathe's scheme with impulsive correction: strong damping of high frequencies, no parameter.

    Half a step of the trapezoidal rule, then three-point backward differences over the whole step::

        v_h = v_i + dt/4 (a_i + a_h),           q_h = q_i + dt/4 (v_i + v_h)
        v_{i+1} = (q_i - 4 q_h + 3 q_{i+1})/dt, a_{i+1} = (v_i - 4 v_h + 3 v_{i+1})/dt

    with ``M a = h + W lambda`` and the contact laws on velocity level in both; see `mixed_scheme` for
    the impulse at the end of the step.

    Args:
        stage_tolerance, contact_tolerance, gap_tolerance [m], options: see `generalized_alpha`.

    Order: 2 in position, velocity and force on smooth motion; first order at each impact.

    Limits: two nonlinear solves per step. Contacts closed at the start of the step act in both parts.

    Source: [R&S (56)-(76)].

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> nsjax.simulate(models.bouncing_ball(), schemes.bathe(), dt=1e-2, time=1.0).q.shape
        (101, 1)
    """
    tolerances = Tolerances(stage=stage_tolerance, contact=contact_tolerance, gap=gap_tolerance)
    coef = BatheCoefficients(tolerances=tolerances)
    return mixed_scheme("bathe", base, coef, carries="true", **known_options("bathe", options))
