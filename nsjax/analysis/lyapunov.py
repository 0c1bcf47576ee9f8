"""The largest finite-time Lyapunov exponent of a motion, with tangents that are right through impacts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from nsjax.core.checks import check_lengths
from nsjax.core.scheme import Scheme
from nsjax.core.system import State, System
from nsjax.simulate import simulate
from nsjax.types import Array, PyTree


def lyapunov_exponent(
    system: System, params: PyTree, state: State, scheme: Scheme, *, dt: Array | float,
    steps: int | None = None, time: float | None = None, unit_time: Array | float | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Largest finite-time Lyapunov exponent of a motion and the status of its run.

    With the flow's tangent ``D`` from the start ``(q, v)`` to the end of the duration ``T``,

        exponent = ln(largest singular value of D) / T,

    the mean rate at which the fastest pair of neighbouring motions diverges; positive for sensitive
    motions, and for ``T`` to infinity the largest Lyapunov exponent. Finite times over-estimate it, since
    motions also converge again. ``D`` comes from automatic differentiation and contains the saltation
    matrix of every impact. Differences of time-stepping runs with small perturbations miss this matrix,
    because the step of an impact does not change.

    Args:
        system, params, state: the problem; ``lyapunov_exponent(*problem, ...)`` unpacks one.
        scheme: with ``gradient="saltation"``, the default of every scheme that can.
        dt: step size [s].
        steps: number of steps; give either steps or time.
        time: duration [s].
        unit_time: positions (local increments) ``xi`` and velocities are compared in the norm of
            ``(xi, unit_time * v)`` [s]; None: the duration. Its influence fades as ``1 / T``, fastest for
            the time in which the motion changes, the inverse frequency of an oscillation.

    Returns:
        The exponent [1/s] (minus infinity if neighbours meet), and the bits of `nsjax.status`: the
        exponent of a run whose status is not 0 means nothing.

    Raises:
        InputError: as `simulate`.

    Source: G. Benettin et al., Meccanica 15 (1980) 9-20; P.C. Mueller, Chaos, Solitons & Fractals 5
    (1995) 1671-1681 (impacts); S.C. Shadden et al., Physica D 212 (2005) 271-304 (finite times).

    Limits: a grazing impact has no tangent; sticking removes directions, and the exponent may be minus
    infinity. Works inside `jax.jit` and `jax.lax.map`; `nsjax.sweep_lyapunov` maps it over parameters.

    Example:
        A ball in free flight does not part exponentially: ``D = [[1, T], [0, 1]]``.

        >>> import math
        >>> from nsjax import analysis, models, schemes
        >>> ball = models.bouncing_ball(height=9.0)
        >>> found, status = analysis.lyapunov_exponent(*ball, schemes.moreau(), dt=1e-2, steps=100)
        >>> bool(abs(found - math.log((1 + math.sqrt(5)) / 2)) < 1e-12), int(status)
        (True, 0)
    """
    count = check_lengths(dt, steps, time, 1, 0)
    duration = count * jnp.asarray(dt)
    weight = duration if unit_time is None else jnp.asarray(unit_time)
    nv = system.nv

    def end(small: Array) -> tuple[Array, Array]:
        start = State(
            t=jnp.asarray(state.t),
            q=system.retract(jnp.asarray(state.q), small[:nv]),
            v=jnp.asarray(state.v) + small[nv:] / weight,
        )
        run = simulate(system, params, start, scheme, dt=dt, steps=count, every=count, save=())
        q, v = run.q[-1], run.v[-1]
        moved: Any = system.difference(jax.lax.stop_gradient(q), q)
        return jnp.concatenate([moved, weight * v]), run.status

    tangent, status = jax.jacfwd(end, has_aux=True)(jnp.zeros(2 * nv))
    size = jnp.max(jnp.abs(tangent))  # scaled: squares of tiny entries underflow
    # a library call is cheap once per motion, after its time loop
    factor = jnp.linalg.svd(tangent / jnp.where(size > 0.0, size, 1.0), compute_uv=False)[0]
    growth = jnp.log(size) + jnp.log(jnp.where(size > 0.0, factor, 1.0))
    return growth / duration, status
