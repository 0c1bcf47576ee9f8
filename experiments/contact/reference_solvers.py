"""Solvers of contact problems by other methods, to compare `nsjax.contact.solve` with.

``gauss_seidel`` solves each contact exactly, one after the other: linear and hard to break, since it never
leaves the feasible set and needs no inverse of the whole operator. ``admm`` alternates directions: one
factorisation, then projections on the friction cones, with the normal velocity shifted by ``mu |u_T|``
(De Saxce) as a fixed point; for many contacts with an ill-conditioned operator. ``newton_simplified`` is
Newton's method with the derivative of [R&S (43)-(45)], which lags the friction force by an iteration:
linear with the rate ``mu |G_NT| / G_NN`` for one contact. All need the dense operator, and every row of
every contact.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact import ContactProblem, ContactSolution, natural_residual
from nsjax.contact.branches import REGULARISATION, branch_residual, branches
from nsjax.linalg import matvec
from nsjax.linalg import solve as solve_linear
from nsjax.math import direction, norm
from nsjax.types import Array

# Iterations between two certificates, and the relaxation of sweeps that stall.
SWEEP_BLOCK = 10
ADMM_BLOCK = 400
UNDER_RELAXATION = 0.7

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
        change = solve_linear(block + REGULARISATION * size * jnp.eye(problem.nb), u[:, None])[:, 0]
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


# Over-relaxation factor of the iteration.
RELAXATION = 1.5
# The penalty follows the ratio of the two residuals, once per block of iterations, by at most this factor.
BLOCK = 50
LARGEST_CHANGE = 5.0


def admm(problem: ContactProblem, x: Array, iterations: Array | int) -> Array:
    """Impulses (m,) after about ``iterations`` steps from ``x``; each block of `BLOCK` has one penalty.

    Impulses are scaled contact by contact, so that the diagonal of the operator is about one.
    """
    scale = jnp.sqrt(_per_contact(problem, problem.scaling()))
    g = scale[:, None] * problem.matrix * scale[None, :]
    f = scale * problem.free
    identity = np.eye(f.shape[0])

    def block(_: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        z, y, penalty = carry
        inverse = solve_linear(g + penalty * identity, jnp.asarray(identity))

        def step(_: Array, c: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            z, y, _, _ = c
            x = matvec(inverse, penalty * z + y - f - _shift(problem, y))
            relaxed = RELAXATION * x + (1.0 - RELAXATION) * z
            new = project_cone(problem, relaxed - y / penalty)
            y = y + penalty * (new - relaxed)
            return new, y, jnp.max(jnp.abs(x - new)), penalty * jnp.max(jnp.abs(new - z))

        zero = jnp.zeros(())
        z, y, primal, dual = lax.fori_loop(0, BLOCK, step, (z, y, zero, zero))
        ratio = jnp.sqrt(primal / jnp.where(dual > 0.0, dual, 1.0))
        change = jnp.clip(ratio, 1.0 / LARGEST_CHANGE, LARGEST_CHANGE)
        return z, y, penalty * jnp.where((dual > 0.0) & jnp.isfinite(ratio), change, 1.0)

    z = x / jnp.where(scale > 0.0, scale, 1.0)
    u = f + matvec(g, z)
    blocks = (jnp.asarray(iterations) + BLOCK - 1) // BLOCK
    z, _, _ = lax.fori_loop(0, blocks, block, (z, u + _shift(problem, u), jnp.ones(())))
    return scale * z


def _per_contact(problem: ContactProblem, r: Array) -> Array:
    """Least scaling of each contact in all of its rows (m,), so that the friction cone keeps its shape."""
    block = problem.contacts(r)
    least = jnp.broadcast_to(jnp.min(block, axis=1, keepdims=True), block.shape)
    return problem.stack(least, problem.bilateral(r))


def _shift(problem: ContactProblem, u: Array) -> Array:
    """De Saxce's shift ``mu |u_T|`` on the normal rows."""
    block = problem.contacts(u)
    normal = (problem.friction * norm(block[:, 1:]))[:, None]
    wide = jnp.concatenate([normal, jnp.zeros_like(block[:, 1:])], axis=1)
    return problem.stack(wide, jnp.zeros(problem.nb))


def project_cone(problem: ContactProblem, z: Array) -> Array:
    """Nearest impulses inside the friction cones ``|x_T| <= mu x_N``; zero where masked out."""
    block = problem.contacts(z)
    normal, tangent = block[:, 0], block[:, 1:]
    size, mu = norm(tangent), problem.friction
    inside = ((size <= mu * normal) & (normal >= 0.0))[:, None]  # mu = 0: the first holds for all
    polar = (mu * size <= -normal)[:, None]
    length = (normal + mu * size) / (1.0 + mu * mu)
    surface = jnp.concatenate([length[:, None], (mu * length)[:, None] * direction(tangent)], axis=1)
    projected = jnp.where(inside, block, jnp.where(polar, 0.0, surface))
    return problem.stack(jnp.where(problem.mask[:, None], projected, 0.0), problem.bilateral(z))


def newton_simplified(problem: ContactProblem, x: Array) -> Array:
    """Impulses (m,) after one Newton step from ``x`` with the simplified derivative."""
    r, u, one = problem.scaling(), problem.velocity(x), np.eye(x.shape[0])
    b = branches(problem, x, u, r)
    rows = jnp.where(b.use[:, None], r[:, None] * problem.matrix + REGULARISATION * one, one)
    return x - solve_linear(rows, branch_residual(problem, x, u, r, b)[:, None])[:, 0]


Advance = Callable[[ContactProblem, Array, Array], Array]

METHODS: dict[str, tuple[int, Advance]] = {
    "newton_simplified": (1, lambda problem, x, stalled: newton_simplified(problem, x)),
    "gauss_seidel": (
        SWEEP_BLOCK,
        lambda problem, x, stalled: gauss_seidel(
            problem, x, SWEEP_BLOCK, jnp.where(stalled, UNDER_RELAXATION, 1.0)
        ),
    ),
    "admm": (ADMM_BLOCK, lambda problem, x, stalled: admm(problem, x, ADMM_BLOCK)),
}
"""Iterations of a block, and the block: ``(problem, x, stalled) -> x``; it is ``stalled`` if the last one
reduced the residual by less than a tenth."""


def solve(
    problem: ContactProblem, method: str, tolerance: Array | float = 1e-11, max_iterations: Array | int = 20
) -> ContactSolution:
    """The answer by one of `METHODS`: blocks until the certificate meets the tolerance, or the cap."""
    if problem.rows.frictionless or problem.rows.bounded:
        raise ValueError(f"reference method {method!r}: it needs all rows of every contact")
    (block, advance), problem = METHODS[method], problem.dense()

    def step(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        x, residual, stalled, steps = carry
        x = advance(problem, x, stalled)
        new = natural_residual(problem, x)
        return x, new, new > 0.9 * residual, steps + block

    def unsolved(carry: tuple[Array, Array, Array, Array]) -> Array:
        return ~(carry[1] <= tolerance) & (carry[3] < max_iterations)

    none = jnp.asarray(0, int)
    start = (jnp.zeros_like(problem.free), jnp.asarray(jnp.inf), jnp.asarray(False), none)
    x, residual, _, steps = lax.while_loop(unsolved, step, start)
    return ContactSolution(x=x, iterations=steps, rounds=none, residual=residual)
