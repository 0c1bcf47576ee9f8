"""Semismooth Newton on the prox equations of the contact problem.

On the branch (open, stick, slip) of the current iterate every prox row is linear; Newton solves
that system and decides the branches anew (an active-set method). The update is written for the
increment, so that the small regularisation of the active rows, which picks one of many answers
when contacts depend on each other, does not move the fixed point.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.certificate import impulse_scale, relative_residual
from nsjax.contact.problem import ContactProblem
from nsjax.linalg import solve as linear_solve
from nsjax.math import direction, norm
from nsjax.nonlinear import implicit_solution
from nsjax.types import Array, record

# Relative weight of the minimum-norm term on active rows (row-scaled to unit diagonal). Its limit
# zero is the pseudoinverse step; 1e-9 keeps pivots of dependent contacts a million times above
# rounding and is corrected by one further increment. Source: `notation.md` section 7.
REGULARISATION = 1e-9


@record()
class ContactSolution:
    """Impulses, iterations and certificate of a contact problem.

    Args:
        x: (m,) impulses, rows as in `ContactProblem` [N s].
        iterations: Newton steps taken.
        residual: relative natural-map residual of ``x``.
    """

    x: Array
    iterations: Array
    residual: Array


@record()
class Branches:
    """Branch of every row: ``use`` (m,) rows with ``u = 0``, and slip data per contact."""

    use: Array
    slip: Array
    slope: Array
    size: Array


def _branches(problem: ContactProblem, x: Array, u: Array, r: Array) -> Branches:
    """Open, stick or slip, decided at ``x - r u`` with the friction radius ``mu (x_N - r u_N)``."""
    z = problem.contacts(x - r * u)
    on = problem.mask & (z[:, 0] > 0.0)
    size = norm(z[:, 1:])
    radius = problem.friction * z[:, 0]
    # A disk of radius zero has no interior: friction zero always slips.
    stick = on & (size <= radius) & (radius > 0.0)
    use = jnp.concatenate([on[:, None]] + [stick[:, None]] * problem.nt, axis=1)
    slip = on & ~stick
    slope = jnp.where(slip[:, None], problem.friction[:, None] * direction(z[:, 1:]), 0.0)
    rows = problem.stack(use, jnp.ones(problem.nb, bool))
    return Branches(use=rows, slip=slip, slope=slope, size=size)


def _normal_columns(problem: ContactProblem) -> np.ndarray:
    """Constant (m, m) pattern: one where a tangent row meets the normal column of its contact."""
    nc, d, m = problem.nc, 1 + problem.nt, problem.free.shape[0]
    pattern = np.zeros((m, m))
    for k in range(nc):
        pattern[k * d + 1 : (k + 1) * d, k * d] = 1.0
    return pattern


def _per_row(problem: ContactProblem, slope: Array) -> Array:
    """``slope`` (nc, nt) as a row vector (m,), zero on normal and bilateral rows."""
    wide = jnp.concatenate([jnp.zeros((problem.nc, 1)), slope], axis=1)
    return problem.stack(wide, jnp.zeros(problem.nb))


def _tangent(problem: ContactProblem, x: Array, r: Array, b: Branches) -> Array:
    """Exact generalised derivative of the prox rows on the branches ``b`` (m, m)."""
    m = problem.free.shape[0]
    scaled = r[:, None] * problem.delassus
    idle = np.eye(m) - _per_row(problem, b.slope)[:, None] * _normal_columns(problem)
    a = jnp.where(b.use[:, None], scaled + REGULARISATION * np.eye(m), idle)
    if problem.nt == 2 and problem.nc:
        a = a + _curvature(problem, x, scaled, b)
    return a


def _curvature(problem: ContactProblem, x: Array, scaled: Array, b: Branches) -> Array:
    """Turning of the slip direction: ``A (r G_T - E_T)``, ``A = R/|z| (I - n n')``, spatial only."""
    nc, d, m = problem.nc, 1 + problem.nt, problem.free.shape[0]
    mu = problem.friction[:, None]
    n = jnp.where(mu > 0.0, b.slope / jnp.where(mu > 0.0, mu, 1.0), 0.0)
    radius = problem.friction * problem.contacts(x)[:, 0]
    bent = b.slip & (radius > 0.0)
    ratio = jnp.where(bent, jnp.minimum(radius / jnp.where(bent, b.size, 1.0), 1.0), 0.0)
    block = ratio[:, None, None] * (np.eye(2) - n[:, :, None] * n[:, None, :])
    rows = (scaled - np.eye(m))[: nc * d].reshape(nc, d, m)[:, 1:]
    turned = jnp.sum(block[:, :, :, None] * rows[:, None, :, :], axis=2)
    full = jnp.concatenate([jnp.zeros((nc, 1, m)), turned], axis=1).reshape(nc * d, m)
    return jnp.concatenate([full, jnp.zeros((problem.nb, m))]) if problem.nb else full


def _branch_residual(problem: ContactProblem, x: Array, u: Array, r: Array, b: Branches) -> Array:
    """Prox rows on given branches: ``r u`` where active, ``x_T - mu n x_N`` on slip, ``x`` if open."""
    normal = jnp.repeat(problem.contacts(x)[:, 0], 1 + problem.nt)
    friction = _per_row(problem, b.slope) * problem.stack(normal, jnp.zeros(problem.nb))
    return jnp.where(b.use, r * u, x - friction)


def _iterate(problem: ContactProblem, tolerance: Array, max_iterations: Array) -> ContactSolution:
    r = problem.scaling()
    scale = impulse_scale(problem, r)

    def newton(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        x, u, _, k = carry
        b = _branches(problem, x, u, r)
        f = _branch_residual(problem, x, u, r, b)
        x = x - linear_solve(_tangent(problem, x, r, b), f[:, None])[:, 0]
        u = problem.velocity(x)
        return x, u, relative_residual(problem, x, u, r, scale), k + 1

    def unsolved(carry: tuple[Array, Array, Array, Array]) -> Array:
        return (carry[2] > tolerance) & (carry[3] < max_iterations)

    start = (jnp.zeros_like(problem.free), problem.free, jnp.asarray(jnp.inf), jnp.asarray(0))
    x, _, residual, iterations = lax.while_loop(unsolved, newton, start)
    return ContactSolution(x=x, iterations=iterations, residual=residual)


def _solver(data: tuple[ContactProblem, Array, Array]) -> tuple[Array, tuple[Array, Array]]:
    answer = _iterate(*data)
    return answer.x, (answer.iterations, answer.residual)


def _frozen(problem: ContactProblem, x: Array) -> tuple[Array, Branches]:
    """Scaling and branches at the answer, without derivatives."""
    problem, x = lax.stop_gradient((problem, x))
    r = problem.scaling()
    return r, _branches(problem, x, problem.velocity(x), r)


def _residual_at(
    x: Array, data: tuple[ContactProblem, Array, Array]
) -> Callable[[tuple[ContactProblem, Array, Array]], Array]:
    r, frozen = _frozen(data[0], x)
    x = lax.stop_gradient(x)

    def residual(live: tuple[ContactProblem, Array, Array]) -> Array:
        problem = live[0]
        u = problem.velocity(x)
        z = problem.contacts(x - r * u)
        slope = jnp.where(frozen.slip[:, None], problem.friction[:, None] * direction(z[:, 1:]), 0.0)
        b = Branches(use=frozen.use, slip=frozen.slip, slope=slope, size=frozen.size)
        return _branch_residual(problem, x, u, r, b)

    return residual


def _tangent_solve(x: Array, data: tuple[ContactProblem, Array, Array]) -> Callable[[Array], Array]:
    r, frozen = _frozen(data[0], x)
    problem, x = lax.stop_gradient((data[0], x))
    a = _tangent(problem, x, r, frozen)
    return lambda b: linear_solve(a, b[:, None])[:, 0]


_solution = implicit_solution(_solver, _residual_at, _tangent_solve)


def solve(
    problem: ContactProblem, *, tolerance: Array | float = 1e-11, max_iterations: Array | int = 50
) -> ContactSolution:
    """Solves the contact problem by semismooth Newton from ``x = 0``.

    The derivative with respect to ``delassus``, ``free`` and ``friction`` is that of the branches
    (open, stick, slip) of the answer, by the implicit function theorem; first order, both modes.

    Args:
        problem: the data.
        tolerance: bound on the relative natural-map residual.
        max_iterations: Newton steps before giving up; generic problems need one to five.

    Returns:
        The answer with its certificate. ``residual > tolerance`` means not solved: Newton's method
        can cycle for strong coupling between friction and normal impulses.

    Where contacts depend on each other (``G`` singular) individual impulses are not unique, but
    velocities are; the answer is the one nearest to zero on the branches found.

    Source: `notation.md` sections 4 to 8; [R&S (43)-(54)] with the exact derivative.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.contact import ContactProblem, solve
        >>> c = 0.15  # sliding contact of `notation.md` section 8: x_N = 1 / (1 - c mu)
        >>> answer = solve(ContactProblem(
        ...     nc=1, nt=1, nb=0, delassus=jnp.array([[1.0, c], [c, 1 + 4 * c * c]]),
        ...     free=jnp.array([-1.0, 3.0]), friction=jnp.array([0.5]), mask=jnp.array([True]),
        ... ))
        >>> answer.x.round(9).tolist()
        [1.081081081, -0.540540541]
    """
    x, (iterations, residual) = _solution((problem, jnp.asarray(tolerance), jnp.asarray(max_iterations)))
    return ContactSolution(x=x, iterations=iterations, residual=residual)
