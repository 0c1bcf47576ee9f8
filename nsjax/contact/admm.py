"""Alternating directions: one factorisation, then projections on the friction cones.

For many contacts with an ill-conditioned operator, where Gauss-Seidel creeps. Coulomb's law is
the cone problem with the normal velocity shifted by ``mu |u_T|`` (De Saxce); the shift is carried
along as a fixed point.
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.problem import ContactProblem, project_disk
from nsjax.linalg import matvec, solve
from nsjax.math import direction, norm
from nsjax.types import Array

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
    scaled = problem
    if problem.given is not None:
        normal = problem.given.normal / problem.contacts(scale)[:, 0]
        scaled = dataclasses.replace(problem, given=dataclasses.replace(problem.given, normal=normal))

    def block(_: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        z, y, penalty = carry
        inverse = solve(g + penalty * identity, jnp.asarray(identity))

        def step(_: Array, c: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            z, y, _, _ = c
            x = matvec(inverse, penalty * z + y - f - _shift(problem, y))
            relaxed = RELAXATION * x + (1.0 - RELAXATION) * z
            new = project_cone(scaled, relaxed - y / penalty)
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
    if problem.given is not None:
        bounded = project_disk(tangent, mu * problem.given.normal)
        disk = jnp.concatenate([problem.given.normal[:, None], bounded], axis=1)
        projected = jnp.where(jnp.asarray(problem.given.on)[:, None], disk, projected)
    return problem.stack(jnp.where(problem.mask[:, None], projected, 0.0), problem.bilateral(z))
