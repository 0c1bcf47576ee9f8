"""Small motions about an equilibrium: modes, decay and growth.

With the mass ``M``, damping ``C`` and stiffness ``K`` in the directions that constraints leave free, loads
that follow and multipliers included, motions ``x exp(lambda t)`` hold ``(lambda^2 M + lambda C + K) x =
0``.
Outside of any program, on dense matrices.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.analysis.statics import null_space, ramp_of, residual
from nsjax.core import InputError, Problem, System
from nsjax.core.inertia import mass_matrix
from nsjax.core.operators import prepared
from nsjax.types import Array, PyTree

ROUNDING = 10.0 * float(np.finfo(float).eps)
"""Rounding of an eigenvalue, of the largest one, for every row of the matrix."""


@dataclasses.dataclass(frozen=True)
class Modes:
    """Small motions about an equilibrium, ``exp(lambda t)``, slowest first.

    Args:
        values: ``lambda`` (k,) complex [1/s]; of a pair of conjugates the one of positive imaginary part,
            real ones each for itself: a saddle has one that grows and one that decays. A direction without
            stiffness (a body that moves freely) has the value zero once.
        shapes: increments along which the position moves (k, nv), complex, largest entry 1.
        growth: largest real part [1/s] of all motions, of those beyond the first k, too: above zero the
            equilibrium is unstable.
    """

    values: np.ndarray
    shapes: np.ndarray
    growth: float

    @property
    def frequencies(self) -> np.ndarray:
        """[Hz] of the imaginary parts."""
        return self.values.imag / (2.0 * np.pi)


@functools.partial(jax.jit, static_argnames="system")
def _linearised(system: System, t: Array, q: Array, p: PyTree) -> tuple[Array, ...]:
    zero, ready = jnp.zeros(system.nv), prepared(system, p)

    def rows(xi: Array) -> Array:
        made: Array = system.constraint(t, system.retract(q, xi), ready)
        return made

    held = jax.jacfwd(rows)(zero) if system.nb else jnp.zeros((0, system.nv))
    push = system.force(t, q, zero, ready)
    x = -jnp.linalg.lstsq(held.T, push)[0] if system.nb else jnp.zeros(0)
    stiffness = -jax.jacfwd(lambda xi: residual(system, t, q, xi, x, ready)[: system.nv])(zero)
    damping = -jax.jacfwd(lambda v: system.force(t, q, v, ready))(zero)
    return mass_matrix(system, q, ready), damping, stiffness, held, push + held.T @ x


AT_REST = 1e-6
"""Forces that are left over, of the largest multiplier or load, above which it is no equilibrium."""


def _vibrations(K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and shapes of a symmetric stiffness, the mass being 1: ``-lambda^2`` are its eigenvalues, of
    which those that are rounding are zero. Each below zero is a pair that grows and decays.
    """
    squares, shapes = np.linalg.eigh(K)
    squares = np.where(np.abs(squares) <= len(K) * ROUNDING * np.max(np.abs(squares)), 0.0, squares)
    rates, saddle = np.sqrt(np.abs(squares)), squares < 0.0
    values = np.concatenate([np.where(saddle, rates, 1j * rates), -rates[saddle]])
    return values, np.concatenate([shapes, shapes[:, saddle]], axis=1)


def _eigenpairs(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and vectors; of each direction that ``A`` takes to zero one, and none of the chains that
    begin there, which rounding would make values of the size of its root.
    """
    _, sizes, rows = np.linalg.svd(A)
    rank = int(np.sum(sizes > len(A) * ROUNDING * sizes[0])) if len(A) else 0
    if rank == len(A):
        values, vectors = np.linalg.eig(A)
        return values.astype(complex), vectors.astype(complex)
    rest, none = rows[:rank].T, rows[rank:].T
    values, vectors = _eigenpairs(rest.T @ A @ rest)
    lively = values != 0.0
    values, vectors = values[lively], vectors[:, lively]
    along = (none.T @ A @ rest) @ vectors / values
    found = np.concatenate([none, rest @ vectors + none @ along], axis=1)
    return np.concatenate([np.zeros(none.shape[1], complex), values]), found


def _motions(C: np.ndarray, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and shapes of any damping and stiffness, the mass being 1, from those of the equations of
    first order. Real and imaginary parts that are rounding are zero.
    """
    n = len(K)
    fastest = max(float(np.sqrt(np.linalg.norm(K, 2))), float(np.linalg.norm(C, 2)), 1e-300)
    values, vectors = _eigenpairs(np.block([[np.zeros((n, n)), fastest * np.eye(n)], [-K / fastest, -C]]))
    size = np.where(values == 0.0, 1.0, np.abs(values))
    left = np.minimum(n * ROUNDING * fastest**2 / size, size)  # as of a square, which is known to rounding
    real, imaginary = (np.where(np.abs(x) <= left, 0.0, x) for x in (values.real, values.imag))
    pick = imaginary >= 0.0
    return (real + 1j * imaginary)[pick], vectors[:n, pick]


def modes(problem: Problem, count: int = 6) -> Modes:
    """Modes and eigenvalues of small motions about an equilibrium, loads that follow and damping included.

    Args:
        problem: at an equilibrium, of `equilibrium` for instance; an unloaded beam is one.
        count: how many.

    Raises:
        InputError: away from equilibrium.

    Limits: dense matrices; about rest only. Contacts are left out. Parts of eigenvalues whose square is
    below about ``1e-15 n`` of that of the fastest mode are rounding, and given as zero.

    Example:
        >>> import numpy as np
        >>> from nsjax import models
        >>> from nsjax.analysis import modes
        >>> chain = models.mass_spring_chain(gravity=0.0, support="constraint", stiffness=10.0)
        >>> (modes(chain).frequencies * 2.0 * np.pi).round(4).tolist()  # sqrt(10), sqrt(30)
        [3.1623, 5.4772]
    """
    ramp, q = ramp_of(problem, None)
    found = _linearised(ramp.system, ramp.t, jnp.asarray(q), ramp.start)
    mass, damping, stiffness, held, left = (np.asarray(x) for x in found)
    free = null_space(held)
    scale = float(np.max(np.abs(stiffness))) * 1e-9 + 1e-300
    if not float(np.max(np.abs(free.T @ left), initial=0.0)) <= AT_REST + scale:
        raise InputError(
            f"modes: forces up to {float(np.max(np.abs(left))):.3g} are left over at the start; bring it "
            "to rest with nsjax.analysis.equilibrium"
        )
    M, C, K = (free.T @ x @ free for x in (mass, damping, stiffness))
    back = np.linalg.inv(np.linalg.cholesky(0.5 * (M + M.T)))
    C, K = (back @ x @ back.T for x in (C, K))
    skew = float(np.max(np.abs(K - K.T), initial=0.0))
    if not np.any(C) and skew <= len(K) * ROUNDING * float(np.max(np.abs(K), initial=0.0)):
        values, shapes = _vibrations(0.5 * (K + K.T))
    else:
        values, shapes = _motions(C, K)
    order = np.argsort(np.abs(values), kind="stable")[:count]
    shapes = (free @ (back.T @ shapes[:, order])).T
    largest = np.take_along_axis(shapes, np.argmax(np.abs(shapes), axis=1)[:, None], axis=1)
    growth = float(np.max(values.real, initial=-np.inf))
    return Modes(
        values=values[order].astype(complex), shapes=(shapes / largest).astype(complex), growth=growth
    )
