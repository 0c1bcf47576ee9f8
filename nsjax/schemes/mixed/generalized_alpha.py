"""Generalized-alpha, HHT and Newmark: one formula, three choices of its parameters."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core.errors import InputError
from nsjax.core.scheme import Scheme
from nsjax.core.system import State
from nsjax.renamed import renamed_options
from nsjax.schemes.common import chung_hulbert, known_options, within
from nsjax.schemes.mixed.framework import BaseEnd, Memory, Tolerances, mixed_scheme
from nsjax.schemes.mixed.stages import single
from nsjax.types import Array, record


@record()
class GeneralizedAlpha:
    """Numbers of `generalized_alpha`."""

    rho_inf: Array | float
    tolerances: Tolerances

    def parameters(self) -> tuple[Any, Any, Any, Any]:
        """``alpha_m, alpha_f, beta, gamma``."""
        return chung_hulbert(self.rho_inf)

    def undamped(self) -> GeneralizedAlpha:
        """The same without dissipation: the trapezoidal rule."""
        return dataclasses.replace(self, rho_inf=1.0)


@record()
class Hht:
    """Numbers of `hht`."""

    alpha_f: Array | float
    tolerances: Tolerances

    def parameters(self) -> tuple[Any, Any, Any, Any]:
        """``alpha_m = 0``; beta and gamma for second order, [R&S (98)]."""
        alpha = self.alpha_f
        return 0.0, alpha, 0.25 * (1 + alpha) ** 2, 0.5 + alpha

    def undamped(self) -> Hht:
        """The same without dissipation: the trapezoidal rule."""
        return dataclasses.replace(self, alpha_f=0.0)


@record()
class Newmark:
    """Numbers of `newmark`."""

    beta: Array | float
    gamma: Array | float
    tolerances: Tolerances

    def parameters(self) -> tuple[Any, Any, Any, Any]:
        """``alpha_m = alpha_f = 0``."""
        return 0.0, 0.0, self.beta, self.gamma


@record()
class AlphaParameters:
    """Numbers of `generalized_alpha` with ``alpha_m`` and ``alpha_f``: the points of [R&S Fig. 6]."""

    alpha_m: Array | float
    alpha_f: Array | float
    tolerances: Tolerances

    def parameters(self) -> tuple[Any, Any, Any, Any]:
        """Beta and gamma for second order, [R&S (98)] and the largest damping."""
        difference = self.alpha_f - self.alpha_m
        return self.alpha_m, self.alpha_f, 0.25 * (1 + difference) ** 2, 0.5 + difference

    def undamped(self) -> AlphaParameters:
        """The same without dissipation: the trapezoidal rule."""
        return dataclasses.replace(self, alpha_m=0.0, alpha_f=0.0)


def trapezoidal(coef: Any, memory: Memory) -> tuple[Any, Memory]:
    """Numbers and memory of the trapezoidal rule, ``alpha_m = alpha_f`` and ``A_i = a_i``, for a step of
    another length ``s dt`` than the last: else the velocity at its end is ``O(dt^2)`` off, and its
    derivative by the instant of an impact ``O(dt)``.
    """
    return coef.undamped(), dataclasses.replace(
        memory, algorithmic=memory.a, algorithmic_force=memory.force
    )


def base(coef: Any, state: State, memory: Memory, dt: Array, run: Any) -> BaseEnd:
    """One stage at the end of the step, [R&S (20)-(24)], in increments from a predictor."""
    alpha_m, alpha_f, beta, gamma = coef.parameters()
    v, a, old = state.v, memory.a, memory.algorithmic
    s = (1 - alpha_f) / (1 - alpha_m)
    offset = (alpha_f * a - alpha_m * old) / (1 - alpha_m)
    guess = s * a + offset
    maps = single(
        anchor=state.q, xi=dt * v + dt * dt * ((0.5 - beta) * old + beta * guess),
        v=v + dt * ((1 - gamma) * old + gamma * guess), a=a, cq=dt * beta / gamma, ca=1 / (dt * gamma * s),
        t=jnp.asarray(state.t) + dt, dt=dt,
    )  # fmt: skip
    ((_, q, v1, a1),), (impulses,) = run(maps)
    force, before = impulses / dt, memory.algorithmic_force
    algorithmic = s * force + (alpha_f * memory.force - alpha_m * before) / (1 - alpha_m)
    return BaseEnd(
        q=q, v=v1, a=a1, algorithmic=s * a1 + offset, force=force, algorithmic_force=algorithmic,
        impulse=dt * ((1 - gamma) * before + gamma * algorithmic),
    )  # fmt: skip


@renamed_options(tolerance="contact_tolerance")
def generalized_alpha(
    rho_inf: Array | float = 0.8, *, alpha_m: Array | float | None = None,
    alpha_f: Array | float | None = None, stage_tolerance: float = 1e-12, contact_tolerance: float = 1e-11,
    gap_tolerance: float = 1e-12, **options: Any,
) -> Scheme:  # fmt: skip
    """Generalized-alpha with impulsive correction: second order, damping chosen by one number.

    With the true acceleration ``a`` and the algorithmic one ``A``::

        M a_{i+1} = h(t_{i+1}, q_{i+1}, v_{i+1}) + W lambda
        (1 - alpha_m) A_{i+1} + alpha_m A_i = (1 - alpha_f) a_{i+1} + alpha_f a_i
        q_{i+1} = q_i + dt v_i + dt^2 ((1/2 - beta) A_i + beta A_{i+1})
        v_{i+1} = v_i + dt ((1 - gamma) A_i + gamma A_{i+1})

    Args:
        rho_inf: spectral radius at infinite frequency in [0, 1]: 1 no damping, 0 annihilation; traced,
            so that a sweep over it compiles once.
        alpha_m, alpha_f: given together they replace ``rho_inf`` (beta and gamma keep second order);
            stable for ``alpha_m <= alpha_f <= 1/2``.
        stage_tolerance: bound on the estimated next update of the stage solver, relative to ``1 + |v|``.
        contact_tolerance: bound on the relative natural-map residual of each contact problem.
        gap_tolerance: contacts with a gap up to this value are closed [m]; above zero, because a
            contact at rest keeps its gap to rounding only.
        options: ``consistent_initial_acceleration``, ``acceleration_after_change``,
            ``constraint_form``, ``tangent``, ``force_at_release``, ``max_passes``,
            ``max_iterations``, ``criteria``; see `mixed_scheme`.

    Raises:
        InputError: for a spectral radius outside [0, 1], one of ``alpha_m, alpha_f`` alone or above 1/2.

    Order: 2 in position, velocity and force on smooth motion; first order at each impact.

    Limits: with ``rho_inf`` near 1 contacts of flexible bodies chatter. Models that are stiff and do not
    say so (`System.stiff`) gain energy at impacts and releases in steps above their periods.

    Source: [R&S (20)-(45)].

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> scheme = schemes.generalized_alpha(rho_inf=0.5)
        >>> nsjax.simulate(models.bouncing_ball(), scheme, dt=1e-2, time=1.0).q.shape
        (101, 1)
    """
    tolerances = Tolerances(stage=stage_tolerance, contact=contact_tolerance, gap=gap_tolerance)
    rho_inf = within("generalized_alpha", "rho_inf", rho_inf, 0.0, 1.0)
    coef: Any = GeneralizedAlpha(rho_inf=rho_inf, tolerances=tolerances)
    if (alpha_m is None) != (alpha_f is None):
        raise InputError(
            f"generalized_alpha: alpha_m = {alpha_m}, alpha_f = {alpha_f}; give both, or rho_inf"
        )
    if alpha_m is not None and alpha_f is not None:
        alpha_m = within("generalized_alpha", "alpha_m", alpha_m, -np.inf, 0.5)
        alpha_f = within("generalized_alpha", "alpha_f", alpha_f, -np.inf, 0.5)
        coef = AlphaParameters(alpha_m=alpha_m, alpha_f=alpha_f, tolerances=tolerances)
    return mixed_scheme(
        "generalized_alpha", base, coef, carries="algorithmic", one_step=trapezoidal,
        **known_options("generalized_alpha", options, "rho_inf", "alpha_m", "alpha_f"),
    )  # fmt: skip


@renamed_options(tolerance="contact_tolerance")
def hht(
    alpha_f: Array | float = 0.1, *, stage_tolerance: float = 1e-12, contact_tolerance: float = 1e-11,
    gap_tolerance: float = 1e-12, **options: Any,
) -> Scheme:  # fmt: skip
    """The scheme of Hilber, Hughes and Taylor: generalized-alpha with ``alpha_m = 0``.

    Args:
        alpha_f: in [0, 1/2]; up to 1/3 the spectral radius falls monotonically to
            ``(1 - alpha_f)/(1 + alpha_f)``.
        stage_tolerance, contact_tolerance, gap_tolerance, options: see `generalized_alpha`.

    Order: 2 in position, velocity and force on smooth motion; first order at each impact.

    Source: [R&S section 2.4].

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> nsjax.simulate(models.bouncing_ball(), schemes.hht(), dt=1e-2, time=1.0).q.shape
        (101, 1)
    """
    tolerances = Tolerances(stage=stage_tolerance, contact=contact_tolerance, gap=gap_tolerance)
    alpha_f = within("hht", "alpha_f", alpha_f, 0.0, 0.5)
    coef = Hht(alpha_f=alpha_f, tolerances=tolerances)
    options = known_options("hht", options, "alpha_f")
    return mixed_scheme("hht", base, coef, carries="algorithmic", one_step=trapezoidal, **options)


@renamed_options(tolerance="contact_tolerance")
def newmark(
    beta: Array | float = 0.25, gamma: Array | float = 0.5, *, stage_tolerance: float = 1e-12,
    contact_tolerance: float = 1e-11, gap_tolerance: float = 1e-12, **options: Any,
) -> Scheme:  # fmt: skip
    """Newmark's scheme with impulsive correction; by default the trapezoidal rule.

    Args:
        beta, gamma: second order only for ``gamma = 1/2``; unconditionally stable for
            ``2 beta >= gamma >= 1/2``.
        stage_tolerance, contact_tolerance, gap_tolerance, options: see `generalized_alpha`.

    Order: 2 in position, velocity and force on smooth motion with ``gamma = 1/2``, else 1.

    Limits: the default damps nothing: oscillations faster than the step stay.

    Source: [R&S section 2.4].

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> nsjax.simulate(models.bouncing_ball(), schemes.newmark(), dt=1e-2, time=1.0).q.shape
        (101, 1)
    """
    tolerances = Tolerances(stage=stage_tolerance, contact=contact_tolerance, gap=gap_tolerance)
    beta, gamma = (within("newmark", name, x, 0.0) for name, x in (("beta", beta), ("gamma", gamma)))
    coef = Newmark(beta=beta, gamma=gamma, tolerances=tolerances)
    options = known_options("newmark", options, "beta", "gamma")
    return mixed_scheme("newmark", base, coef, carries="algorithmic", **options)
