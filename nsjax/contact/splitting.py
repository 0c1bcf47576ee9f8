"""Contacts of many bodies by products alone: projected steps on all contacts at once, accelerated.

Each body is split among its contacts, as if each held its part of the mass: then every contact has a local
operator ``D_k``, and the block diagonal of them bounds the Delassus operator from above,

    D_k = c_a W_a' M_a^-1 W_a + c_b W_b' M_b^-1 W_b      (c: contacts of each of its two bodies)

so that steps of its size never overshoot where friction does not couple to the normal impulse. Anderson's
mixing of the last steps makes them as fast as a Krylov method once it is settled which contacts stick and
slide. No contact waits for another: cost and memory are in proportion to the contacts.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.certificate import impulse_scale, relative_residual
from nsjax.contact.problem import ContactProblem, Factored, project_disk
from nsjax.core.pairs import REFUSED_GRADIENT
from nsjax.linalg import Paired, solve
from nsjax.types import Array, record

REMEMBERED = 10
"""Steps that are mixed. Measured on heaps of spheres, see `experiments/contact/table_spheres.py`."""

WORSE = 2.0
"""A mixed step whose own plain step would be longer than this many of the last one's is not taken."""

DEPENDENT = 1e-12
"""Weight of the least change in the mixing, relative to that of the steps: beside rounding of their
products, which are squares.
"""


@record()
class _Mixed:
    """State of the iteration: impulses and rates there, the plain step ``f``, certificate, the last changes
    of impulses and plain steps (REMEMBERED, m), how many of them count, and steps taken.
    """

    x: Array
    u: Array
    f: Array
    residual: Array
    moves: Array
    changes: Array
    known: Array
    steps: Array


class _Steps:
    """The projected step of a problem."""

    def __init__(self, problem: ContactProblem) -> None:
        self.problem, self.r = problem, problem.scaling()
        self.scale = impulse_scale(problem, self.r)
        self.length = _lengths(problem)

    def plain(self, x: Array, u: Array) -> Array:
        """``T(x) - x``: normal impulses first, then friction in the disks of the new ones."""
        problem = self.problem
        xc = problem.contacts(x)
        z = xc - self.length * problem.contacts(u)
        normal = jnp.where(problem.mask & (z[:, 0] > 0.0), z[:, 0], 0.0)
        rows = [normal[:, None]]
        if problem.nt:
            rows.append(project_disk(z[:, 1:], problem.friction * normal))
        return (jnp.concatenate(rows, axis=1) - xc).reshape(-1)

    def at(self, x: Array) -> tuple[Array, Array, Array]:
        """Rates, plain step and certificate at impulses."""
        u = self.problem.velocity(x)
        return u, self.plain(x, u), relative_residual(self.problem, x, u, self.r, self.scale)


def _lengths(problem: ContactProblem) -> Array:
    """Steps (nc, 1 + nt) by the local operators: the normal's own, one for the tangents, zero where no
    impulse moves anything. Rows of a contact that couple share the largest row sum.
    """
    g: Factored = problem.delassus
    wt: Paired = g.wt
    count = wt.gathered(jnp.broadcast_to(problem.mask[:, None], wt.of.shape).astype(float))
    d = jnp.einsum("nsic,nsjc,ns->nij", wt.values, g.response.values, count[wt.of])
    sums = jnp.sum(jnp.abs(d), axis=2)
    normal, tangent = sums[:, :1], jnp.max(sums[:, 1:], axis=1, keepdims=True, initial=0.0)
    size = jnp.concatenate([normal] + [tangent] * problem.nt, axis=1)
    return jnp.where(size > 0.0, 1.0 / jnp.where(size > 0.0, size, 1.0), 0.0)


def split_steps(problem: ContactProblem, tolerance: Array, cap: Array) -> tuple[Array, Array, Array]:
    """Impulses (m,), steps taken and certificate of a problem between pairs of bodies.

    Args:
        problem: whose operator is `Factored` into `Paired` rows.
        tolerance: of the relative natural-map residual.
        cap: most steps.

    Limits: linear convergence; for friction far above one, or bodies whose masses differ by orders of
    magnitude in one heap, the cap may come first: the certificate says so.
    """
    rows = _Steps(problem)

    def step(s: _Mixed) -> _Mixed:
        weights = _weights(s)
        x = s.x + s.f - jnp.sum(weights[:, None] * (s.moves + s.changes), axis=0)
        u, f, residual = rows.at(x)
        bad = ~(_size(f) <= WORSE * _size(s.f)) & (s.known > 0)
        x, (u, f, residual) = lax.cond(
            bad, lambda: (s.x + s.f, rows.at(s.x + s.f)), lambda: (x, (u, f, residual))
        )
        known = jnp.where(bad, 0, jnp.minimum(s.known + 1, REMEMBERED))
        place = (np.arange(REMEMBERED) == s.steps % REMEMBERED)[:, None]
        return _Mixed(
            x=x, u=u, f=f, residual=residual, moves=jnp.where(place, x - s.x, s.moves),
            changes=jnp.where(place, f - s.f, s.changes), known=known, steps=s.steps + 1,
        )  # fmt: skip

    def unsolved(s: _Mixed) -> Array:
        return ~(s.residual <= tolerance) & (s.steps < cap)

    x = jnp.zeros_like(problem.free)
    u, f, residual = rows.at(x)
    none, zero = jnp.zeros((REMEMBERED, x.shape[0])), jnp.asarray(0, int)
    start = _Mixed(x=x, u=u, f=f, residual=residual, moves=none, changes=none, known=zero, steps=zero)
    end = lax.while_loop(unsolved, step, start)
    return end.x, end.steps, end.residual


def _size(f: Array) -> Array:
    return jnp.sum(f * f)


def _weights(s: _Mixed) -> Array:
    """Of the last changes, with which they cancel the plain step best (REMEMBERED,)."""
    age = (s.steps - 1 - np.arange(REMEMBERED)) % REMEMBERED
    changes = jnp.where((age < s.known)[:, None], s.changes, 0.0)
    square = jnp.sum(changes[:, None] * changes[None], axis=2)
    diagonal = jnp.sum(square * np.eye(REMEMBERED), axis=1)
    on = diagonal > 0.0
    scale = jnp.where(on, 1.0 / jnp.sqrt(jnp.where(on, diagonal, 1.0)), 0.0)
    unit = scale[:, None] * square * scale + jnp.where(on, DEPENDENT, 1.0)[:, None] * np.eye(REMEMBERED)
    return scale * solve(unit, (scale * jnp.sum(changes * s.f, axis=1))[:, None])[:, 0]


@jax.custom_jvp
def without_derivative(x: Any) -> Any:
    """``x``, of which a derivative is refused."""
    return x


@without_derivative.defjvp
def _refused(primals: Any, tangents: Any) -> Any:
    raise NotImplementedError(REFUSED_GRADIENT)
