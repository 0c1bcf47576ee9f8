"""Gauss-Seidel over contacts, each local contact solved exactly.

Slow but hard to break: it never leaves the feasible set, needs no inverse of the whole operator and
works where that is singular. It brings a start from which Newton's method converges.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from nsjax.contact.branches import REGULARISATION
from nsjax.contact.problem import ContactProblem
from nsjax.linalg import matvec, solve
from nsjax.math import norm
from nsjax.types import Array

# Root finding of the local slip problem: quadratic once bracketed, a few steps are typical.
LOCAL_STEPS = 60
LOCAL_TOLERANCE = 1e-15


def gauss_seidel(
    problem: ContactProblem, x: Array, sweeps: Array | int, relaxation: Array | float = 1.0
) -> Array:
    """Impulses (m,) after ``sweeps`` sweeps from ``x``: over all contacts, then all bilateral rows at once.

    ``relaxation < 1`` moves each contact only part of the way, which ends cycles.
    """
    d = 1 + problem.nt

    def visit(i: Array, x: Array) -> Array:
        rows = lax.dynamic_slice_in_dim(problem.matrix, i * d, d)
        local = lax.dynamic_slice_in_dim(rows, i * d, d, axis=1)
        old = lax.dynamic_slice_in_dim(x, i * d, d)
        others = lax.dynamic_slice_in_dim(problem.free, i * d, d) + matvec(rows, x)
        others = others - matvec(local, old)
        new = local_contact(local, others, problem.friction[i])
        if problem.given is not None:
            bounded = _given_contact(local, others, problem.given.normal[i], problem.friction[i])
            new = jnp.where(jnp.asarray(problem.given.on)[i], bounded, new)
        new = jnp.where(jnp.all(jnp.isfinite(new)), new, old)
        new = jnp.where(problem.mask[i], old + relaxation * (new - old), 0.0)
        return lax.dynamic_update_slice_in_dim(x, new, i * d, 0)

    def sweep(_: Array, x: Array) -> Array:
        x = lax.fori_loop(0, problem.nc, visit, x)
        if not problem.nb:
            return x
        block = problem.matrix[problem.nc * d :, problem.nc * d :]
        size = jnp.max(jnp.abs(block))
        u = problem.bilateral(problem.velocity(x))
        change = solve(block + REGULARISATION * size * jnp.eye(problem.nb), u[:, None])[:, 0]
        return problem.stack(problem.contacts(x), problem.bilateral(x) - change)

    return lax.fori_loop(0, sweeps, sweep, x)


def local_contact(w: Array, q: Array, mu: Array) -> Array:
    """Exact answer of one contact: ``u = q + w x`` with Signorini's and Coulomb's laws (1 + nt,).

    Open if ``q_N >= 0``; else the sticking impulse if it lies in the cone; else slip: ``u_N = 0`` and
    ``u_T = -a x_T`` for the multiplier ``a > 0`` with ``|x_T| = mu x_N``.
    """
    positive = w[0, 0] > 0.0
    wnn = jnp.where(positive, w[0, 0], 1.0)
    if w.shape[0] == 1:
        x = (-q / wnn)[:1]
    else:
        # tangential problem with the normal row eliminated: s x_T + b = u_T
        s = w[1:, 1:] - w[1:, :1] * w[:1, 1:] / wnn
        b = q[1:] - w[1:, 0] * q[0] / wnn
        slip = _slip_line if w.shape[0] == 2 else _slip_plane
        xt = slip(s, b, w[0, 1:] / wnn, -q[0] / wnn, mu)
        x = jnp.concatenate([(-q[0] / wnn - jnp.sum(w[0, 1:] * xt) / wnn)[None], xt])
    return jnp.where(positive & (q[0] < 0.0), x, 0.0)


def _given_contact(w: Array, q: Array, normal: Array, mu: Array) -> Array:
    """Exact answer (1 + nt,) of one contact whose normal impulse is given and moves nothing, and of whose
    tangents the first alone is not empty.
    """
    movable = w[1, 1] > 0.0
    stick = jnp.where(movable, -q[1] / jnp.where(movable, w[1, 1], 1.0), 0.0)
    tangent = jnp.clip(stick, -mu * normal, mu * normal)
    return jnp.concatenate([jnp.stack([normal, tangent]), jnp.zeros(w.shape[0] - 2)])


def _slip_line(s: Array, b: Array, coupling: Array, push: Array, mu: Array) -> Array:
    """Tangential impulse of a planar contact; ``x_N = push - coupling x_T``."""
    stiffness = jnp.where(s[0] > 0.0, s[0], 1.0)
    stick = jnp.where(s[0] > 0.0, -b / stiffness, 0.0)
    inside = jnp.abs(stick) <= mu * (push - coupling * stick)
    # sliding against b: x_T = -sign(b) mu x_N; without a solution of this kind, the uncoupled one
    denominator = 1.0 - mu * coupling * jnp.sign(b)
    size = mu * push / jnp.where(denominator > 0.0, denominator, 1.0)
    return jnp.where(inside, stick, -jnp.sign(b) * size)


def _slip_plane(s: Array, b: Array, coupling: Array, push: Array, mu: Array) -> Array:
    """Tangential impulse of a spatial contact by a safeguarded Newton iteration for ``a``."""
    trace = s[0, 0] + s[1, 1]
    s = s + 1e-14 * trace * jnp.eye(2)

    def tangential(a: Array, rhs: Array) -> Array:
        p, q = s[0, 0] + a, s[1, 1] + a
        determinant = p * q - s[0, 1] * s[1, 0]
        return jnp.stack([q * rhs[0] - s[0, 1] * rhs[1], p * rhs[1] - s[1, 0] * rhs[0]]) / determinant

    def excess(a: Array) -> tuple[Array, Array, Array]:
        """``|x_T| - mu x_N`` (positive: outside the cone), its derivative, and ``x_T``."""
        x = -tangential(a, b)
        slope = -tangential(a, x)
        size = norm(x)
        safe = jnp.where(size > 0.0, size, 1.0)
        value = size - mu * (push - jnp.sum(coupling * x))
        return value, jnp.sum(x * slope) / safe + mu * jnp.sum(coupling * slope), x

    def step(carry: tuple[Array, Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array, Array]:
        a, low, high, _, k = carry
        value, slope, x = excess(a)
        low, high = jnp.where(value > 0.0, a, low), jnp.where(value > 0.0, high, a)
        newton = a - value / jnp.where(slope < 0.0, slope, -1.0)
        bounded = jnp.isfinite(high)
        fallback = jnp.where(bounded, 0.5 * (low + jnp.where(bounded, high, 0.0)), 2.0 * a + trace)
        good = (slope < 0.0) & (newton > low) & (newton < high)
        done = jnp.abs(value) <= LOCAL_TOLERANCE * (norm(x) + mu * push)
        return jnp.where(done, a, jnp.where(good, newton, fallback)), low, high, done, k + 1

    value, _, _ = excess(jnp.zeros(()))
    start = (jnp.zeros(()), jnp.zeros(()), jnp.asarray(jnp.inf), value <= 0.0, jnp.asarray(0))
    a = lax.while_loop(lambda c: ~c[3] & (c[4] < LOCAL_STEPS), step, start)[0]
    return -tangential(a, b)
