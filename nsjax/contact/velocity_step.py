"""One proximal step of many contacts: the least value of a convex function of the velocities of bodies.

With ``v = v_free + S y`` and ``M^-1 = S S'`` body by body, ``y`` stands for the velocities, and the
function is

    |y|^2 / 2 + potential(u),      u = F + L y,      L = W' S,      gradient y - L' x(u)

and the matrix of Newton's method ``1 + L' D L``, with the blocks ``D = -dx/du`` of contacts.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.problem import ContactProblem
from nsjax.linalg import solve
from nsjax.linalg.krylov import conjugate_gradients
from nsjax.math import direction, norm
from nsjax.types import Array, record

INEXACT, PRODUCTS = 0.03, 400
"""Part of the gradient that conjugate gradients leave, and their most products. A hundred spheres that
creep, with 0.1 in the place of `cone_newton.INNER`: 420 ms a step at 0.1 and 0.3, 330 at 0.03, 360 at 0.01.
"""

STAGE = 30
"""Most steps of Newton's method."""

FLAT, TRIES = 0.1, 12
"""The line search ends where the slope is this part of the first one, or after so many evaluations."""


@record()
class ConeDescent:
    """Velocities ``y`` (bodies + 1, block), rates ``u`` of the contacts (n, 1 + nt), impulses ``x`` there,
    and Newton steps taken so far.
    """

    y: Array
    u: Array
    x: Array
    steps: Array


@record()
class Law:
    """Impulses ``x(u)`` of contacts one by one: ``known`` impulses less the push of the shift, steps
    ``rho`` (n, 1 + nt), and the friction coefficients of the scaled cones.
    """

    base: Array
    rho: Array
    friction: Array
    mask: Array
    known: Array
    resistance: Array

    def _scaled(self, u: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Points before the projection, whether they are inside the cones or project to zero; normal parts
        and directions of their projections on the surface.
        """
        z = (self.base - self.rho * u) / jnp.sqrt(self.rho)
        size, mu = norm(z[:, 1:]), self.friction
        inside = self.mask & (size <= mu * z[:, 0]) & (z[:, 0] >= 0.0)
        off = ~self.mask | (mu * size <= -z[:, 0])
        return z, inside, off, (z[:, 0] + mu * size) / (1.0 + mu * mu), direction(z[:, 1:])

    def impulses(self, u: Array) -> Array:
        """``x`` (n, 1 + nt)."""
        z, inside, off, normal, way = self._scaled(u)
        surface = normal[:, None] * jnp.concatenate(
            [jnp.ones_like(z[:, :1]), self.friction[:, None] * way], 1
        )
        x = jnp.where(inside[:, None], z, jnp.where(off[:, None], 0.0, surface))
        return jnp.sqrt(self.rho) * x

    def stiffness(self, u: Array) -> Array:
        """``-dx/du`` (n, 1 + nt, 1 + nt), symmetric."""
        z, inside, off, normal, way = self._scaled(u)
        mu, one = self.friction[:, None], np.eye(z.shape[1])
        along = jnp.concatenate([jnp.ones_like(z[:, :1]), mu * way], axis=1) / jnp.sqrt(1.0 + mu * mu)
        size = norm(z[:, 1:])
        turn = self.friction * normal / jnp.where(size > 0.0, size, 1.0)
        turned = jnp.concatenate([jnp.zeros_like(z[:, :1]), way], axis=1)
        across = (one - np.eye(z.shape[1])[:, :1] * one[:1]) - turned[:, :, None] * turned[:, None, :]
        surface = along[:, :, None] * along[:, None, :] + turn[:, None, None] * across
        d = jnp.where(inside[:, None, None], one, jnp.where(off[:, None, None], 0.0, surface))
        root = jnp.sqrt(self.rho)
        return root[:, :, None] * d * root[:, None, :]


class Cones:
    """Rows of a problem over the velocities ``y``, and its friction cones."""

    def __init__(self, problem: ContactProblem, r: Array) -> None:
        g = problem.delassus
        self.pairs = g.wt
        roots = _roots(g.response.inverse)
        held = jnp.concatenate([roots, jnp.zeros_like(roots[:1])])[g.wt.of]
        rows = jnp.sum(g.wt.values[..., None] * held[:, :, None], axis=3)
        self.rows = jnp.where(problem.mask[:, None, None, None], rows, 0.0)
        self.free, self.mask = problem.contacts(problem.free), problem.mask
        self.r, self.friction = problem.contacts(r), problem.friction
        tangent = self.r[:, 1] if problem.nt else self.r[:, 0]
        self.scaled = self.friction * jnp.sqrt(self.r[:, 0] / tangent)

    def rates(self, y: Array) -> Array:
        """``L y`` (n, 1 + nt)."""
        return jnp.sum(self.rows * y[self.pairs.of][:, :, None, :], axis=(1, 3))

    def pushed(self, x: Array) -> Array:
        """``L' x`` (bodies + 1, block)."""
        return self.pairs.gathered(jnp.sum(self.rows * x[:, None, :, None], axis=2))

    def begin(self, x: Array) -> ConeDescent:
        """The `ConeDescent` with the velocities that the impulses ``x`` cause."""
        y = self.pushed(x)
        return ConeDescent(y=y, u=self.free + self.rates(y), x=x, steps=jnp.asarray(0, int))

    def shift(self, u: Array) -> Array:
        """``mu |u_T|`` (n,) of contacts that take part."""
        return jnp.where(self.mask, self.friction * norm(u[:, 1:]), 0.0)

    def weights(self, c: Array) -> Array:
        """Factors (n, 2 + nt) that make changes of known impulses and shifts comparable impulses."""
        return jnp.concatenate([jnp.broadcast_to(c, self.r.shape), self.r[:, :1]], axis=1)

    def law(self, known: Array, c: Array) -> Law:
        """The `Law` with known impulses and shifts (n, 2 + nt), and the resistance ``c``."""
        rho = self.r / c
        push = rho[:, 0] * known[:, -1]
        base = jnp.concatenate([(known[:, 0] - push)[:, None], known[:, 1:-1]], axis=1)
        return Law(base=base, rho=rho, friction=self.scaled, mask=self.mask, known=known, resistance=c)


@record()
class _Step:
    """A `ConeDescent` with its gradient, the size and bound of this as impulses, and its step count."""

    at: ConeDescent
    gradient: Array
    left: Array
    bound: Array
    count: Array


def descend(
    cones: Cones, at: ConeDescent, law: Law, accuracy: tuple[Array, Array], cap: Array
) -> ConeDescent:
    """Newton's method from ``at``, until the gradient is below the first of ``accuracy`` in parts of the
    change by the proximal step, or below the second.
    """
    inner, least = accuracy

    def look(y: Array, u: Array, steps: Array, count: Array) -> _Step:
        x = law.impulses(u)
        gradient = y - cones.pushed(x)
        left = jnp.max(jnp.abs(cones.r * cones.rates(gradient)))
        end = jnp.concatenate([x, cones.shift(u)[:, None]], axis=1)
        moved = jnp.max(jnp.abs(cones.weights(law.resistance) * (end - law.known)))
        bound = jnp.where(inner * moved > least, inner * moved, least)
        return _Step(
            at=ConeDescent(y=y, u=u, x=x, steps=steps),
            gradient=gradient,
            left=left,
            bound=bound,
            count=count,
        )

    def more(s: _Step) -> Array:
        return (s.left > s.bound) & (s.count < STAGE) & (s.at.steps < cap)

    def step(s: _Step) -> _Step:
        y = _solved(cones, law.stiffness(s.at.u), -s.gradient)
        u = cones.rates(y)
        t = _length(law, s, y, u)
        return look(s.at.y + t * y, s.at.u + t * u, s.at.steps + 1, s.count + 1)

    return lax.while_loop(more, step, look(at.y, at.u, at.steps, jnp.asarray(0, int))).at


def _length(law: Law, s: _Step, y: Array, u: Array) -> Array:
    """Line search: part of a step at whose end the slope of the function is small, between a place where it
    falls and one where it rises, by interpolation of slopes and bisection in turn.
    """
    first, more = jnp.sum(s.at.y * y), jnp.sum(y * y)

    def slope(t: Array) -> Array:
        return first + t * more - jnp.sum(law.impulses(s.at.u + t * u) * u)

    def unsure(c: Any) -> Array:
        return (jnp.abs(c[1]) > FLAT * jnp.abs(begin)) & ((c[0] < 1.0) | (c[1] > 0.0)) & (c[6] < TRIES)

    def look(c: Any) -> Any:
        t, here, low, falls, high, rises, k = c
        low, falls = (jnp.where(here < 0.0, a, b) for a, b in ((t, low), (here, falls)))
        high, rises = (jnp.where(here < 0.0, b, a) for a, b in ((t, high), (here, rises)))
        part = jnp.where(k % 2 == 0, falls / (falls - rises), 0.5)
        t = low + part * (high - low)
        return t, slope(t), low, falls, high, rises, k + 1

    one, zero = jnp.ones(()), jnp.zeros(())
    begin, last = slope(zero), slope(one)
    return lax.while_loop(unsure, look, (one, last, zero, begin, one, last, jnp.asarray(0, int)))[0]


def _solved(cones: Cones, d: Array, b: Array) -> Array:
    """``(1 + L' D L)^-1 b`` by conjugate gradients, to `INEXACT`; preconditioned by blocks of bodies."""
    soft = jnp.sum(d[:, None, :, :, None] * cones.rows[:, :, None], axis=3)
    own = jnp.sum(cones.rows[:, :, :, :, None] * soft[:, :, :, None, :], axis=2)
    one = jnp.eye(b.shape[1])
    inverse = jax.vmap(lambda a: solve(a, one))(cones.pairs.gathered(own) + one)

    def product(y: Array) -> Array:
        return y + cones.pushed(jnp.sum(d * cones.rates(y)[:, None, :], axis=2))

    def conditioned(r: Array) -> Array:
        return jnp.sum(inverse * r[:, None, :], axis=2)

    return conjugate_gradients(product, conditioned, b, INEXACT, PRODUCTS).x


def _roots(a: Array) -> Array:
    """Triangular ``S`` (n, k, k) with ``S S' = a`` of symmetric positive blocks."""
    columns = []
    for k in range(a.shape[1]):
        column = a[:, :, k] / jnp.sqrt(a[:, k, k])[:, None] * (np.arange(a.shape[1]) >= k)
        a = a - column[:, :, None] * column[:, None, :]
        columns.append(column)
    return jnp.stack(columns, axis=2)
