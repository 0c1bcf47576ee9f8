"""Eight-node displacement hexahedra: trilinear shapes, 2 x 2 x 2 Gauss points, hyperelastic, large
displacements. They lock: a clamped bar of ten elements, one through its thickness (``L / h = 10``), has
0.67 of the right deflection for a Poisson's ratio of 0, 0.51 for 0.45, and 2e-2 and 2e-4 for ``L / h`` of
100 and 1000. Those of `nsjax.fem.solid_mesh` share all of this but the energy, and do not lock.

Arrays have components first and elements last, so that all arithmetic runs over whole rows of elements.
Corners ``a = 4 i + 2 j + k`` have the reference coordinates ``(-1 or 1)^3``, the third running fastest; the
Gauss points have the same order.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero

from nsjax.fem.beam import bar_inertia
from nsjax.linalg import matmul
from nsjax.math import real_root
from nsjax.types import Array, Fn

CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
"""Reference coordinates (8, 3) of the corners."""

POINTS = CORNERS / np.sqrt(3.0)
"""Gauss points (8, 3), all of weight 1 in a cube of edges 2."""


def shape_gradients(xi: np.ndarray) -> np.ndarray:
    """Gradients ``dN_a / dxi`` (p, 8, 3) of the trilinear shapes at reference coordinates ``xi`` (p, 3)."""
    one = 1.0 + CORNERS[None] * xi[:, None]
    others = np.stack([one[..., 1] * one[..., 2], one[..., 0] * one[..., 2], one[..., 0] * one[..., 1]], -1)
    return np.asarray(CORNERS[None] * others / 8.0)


def brick_gradients(edges: Array) -> Array:
    """Gradients ``dN_a / dX`` of a brick with edges (3,) [m] at its Gauss points, (points, corners, axes).

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.fem.hexahedron import brick_gradients
        >>> bool(abs(brick_gradients(jnp.ones(3)).sum()) < 1e-14)
        True
    """
    return jnp.asarray(shape_gradients(POINTS)) * (2.0 / edges)


def corners_of(nodes: Array) -> Array:
    """Vectors at the corners of the elements of a box of bricks, by slices of the box: neither the function
    nor its transpose, which adds at the nodes, needs index tables. ``nodes``: vectors of the nodes
    (m + 1, n + 1, o + 1, c). Returns vectors of the corners (8, c, m n o).
    """
    x = jnp.moveaxis(nodes, -1, 0)
    ends = (slice(None, -1), slice(1, None))
    parts = [x[:, a, b, c] for a, b, c in itertools.product(ends, repeat=3)]
    return jnp.stack(parts).reshape(8, nodes.shape[-1], -1)


def deformation(places: Array, gradients: Array) -> Array:
    """Deformation gradients ``F = sum x_a dN_a/dX`` at the Gauss points. Returns ``F[i, J]``
    (3, 3, points, elements).

    Args:
        places: positions of the corners (8, 3, elements) [m].
        gradients: (8, 8, 3), see `brick_gradients`, the same for all elements; or (8, 8, 3, elements), one
            for each element.
    """
    if gradients.ndim == 4:
        each = jnp.transpose(gradients, (1, 2, 0, 3))  # (corners, axes, points, elements)
        return jnp.sum(places[:, :, None, None] * each[:, None], axis=0)
    by_axis = jnp.transpose(gradients, (2, 0, 1)).reshape(24, 8)
    found = matmul(by_axis, places.reshape(8, -1))
    return jnp.moveaxis(found.reshape(3, 8, 3, -1), 2, 0)


def determinant(f: Array) -> Array:
    """Determinants (...) of matrices ``f[i, j]`` (3, 3, ...)."""
    first = f[1, 1] * f[2, 2] - f[1, 2] * f[2, 1]
    second = f[1, 2] * f[2, 0] - f[1, 0] * f[2, 2]
    third = f[1, 0] * f[2, 1] - f[1, 1] * f[2, 0]
    return f[0, 0] * first + f[0, 1] * second + f[0, 2] * third


def _three(x: Array) -> Array:
    """Sum over a first axis of length three, written out: a loop of three is not vectorised."""
    return x[0] + x[1] + x[2]


def green_strain(f: Array) -> Array:
    """``E = (F'F - 1) / 2`` of deformation gradients (3, 3, ...)."""
    square = _three(f[:, :, None] * f[:, None, :])
    return 0.5 * (square - np.eye(3).reshape(3, 3, *[1] * (f.ndim - 2)))


def inner(a: Array, b: Array) -> Array:
    """``A : B`` of matrices (3, 3, ...)."""
    return _three(_three(a * b))


def trace(a: Array) -> Array:
    """Traces (...) of matrices (3, 3, ...)."""
    return a[0, 0] + a[1, 1] + a[2, 2]


def product(a: Array, b: Array) -> Array:
    """``A B`` of small matrices (n, k, ...) and (k, m, ...); the sum is written out."""
    return functools.reduce(jnp.add, [a[:, j, None] * b[None, j] for j in range(len(b))])


def st_venant_kirchhoff(f: Array, first: Array, shear: Array) -> Array:
    """``W = lambda/2 tr(E)^2 + mu E:E`` [J/m^3] of deformation gradients (3, 3, ...); not a number where an
    element is inverted, ``det F <= 0``.

    Limits: loses its stability in uniaxial compression below a stretch of ``1 / sqrt(3)``.
    """
    e = green_strain(f)
    energy = 0.5 * first * trace(e) ** 2 + shear * inner(e, e)
    return energy * jnp.where(determinant(f) > 0.0, 1.0, jnp.nan)


def neo_hooke(f: Array, first: Array, shear: Array) -> Array:
    """``W = mu/2 (tr(F'F) - 3) - mu ln J + lambda/2 (ln J)^2`` [J/m^3] with ``J = det F``, of deformation
    gradients (3, 3, ...); not a number where an element is inverted, ``J <= 0``.
    """
    j = determinant(f)
    log = jnp.log(jnp.where(j > 0.0, j, jnp.nan))
    return 0.5 * shear * (inner(f, f) - 3.0) - shear * log + 0.5 * first * log**2


def cofactors(f: Array) -> Array:
    """``det(F) F^-T`` of matrices (3, 3, ...)."""
    rows = [[f[(i + 1) % 3, (j + 1) % 3] * f[(i + 2) % 3, (j + 2) % 3]
             - f[(i + 1) % 3, (j + 2) % 3] * f[(i + 2) % 3, (j + 1) % 3] for j in range(3)]
            for i in range(3)]  # fmt: skip
    return jnp.stack([jnp.stack(row) for row in rows])


def _unit(f: Array) -> np.ndarray:
    """Unit matrix (3, 3, 1, ...) with as many axes as the matrices (3, 3, ...)."""
    return np.eye(3).reshape(3, 3, *[1] * (f.ndim - 2))


def _svk_stress(f: Array, first: Array, shear: Array) -> tuple[Array, Array]:
    """First and second Piola-Kirchhoff stress ``F S`` and ``S`` of `st_venant_kirchhoff`."""
    e = green_strain(f)
    s = (first * trace(e)) * _unit(f) + 2.0 * shear * e
    s = s * jnp.where(determinant(f) > 0.0, 1.0, jnp.nan)
    return _three(jnp.moveaxis(f[:, :, None] * s[None], 1, 0)), s


def _svk_moduli(f: Array, first: Array, shear: Array) -> Array:
    """``dP/dF`` (i, J, k, L, ...) of `st_venant_kirchhoff`::

    d_ik S_JL + lambda F_iJ F_kL + mu (F_iL F_kJ + (F F')_ik d_JL)
    """
    _, s = _svk_stress(f, first, shear)
    square = _three(jnp.moveaxis(f[:, None] * f[None], 2, 0))
    one = _unit(f)
    across = f[:, None, None, :] * jnp.swapaxes(f, 0, 1)[None, :, :, None]
    found = first * f[:, :, None, None] * f[None, None] + shear * across
    return (
        found
        + one[:, None, :, None] * s[None, :, None, :]
        + (shear * square[:, None, :, None] * one[None, :, None, :])
    )


def _hooke_parts(f: Array, first: Array, shear: Array) -> tuple[Array, Array]:
    """``F^-T`` and ``lambda ln J - mu`` of `neo_hooke`."""
    j = determinant(f)
    j = jnp.where(j > 0.0, j, jnp.nan)
    return cofactors(f) / j, first * jnp.log(j) - shear


def _hooke_stress(f: Array, first: Array, shear: Array) -> tuple[Array, Array]:
    """First Piola-Kirchhoff stress ``mu F + (lambda ln J - mu) F^-T`` of `neo_hooke`, and ``F^-T``."""
    inverse, factor = _hooke_parts(f, first, shear)
    return shear * f + factor * inverse, inverse


def _hooke_moduli(f: Array, first: Array, shear: Array) -> Array:
    """``dP/dF`` (i, J, k, L, ...) of `neo_hooke`, with ``H = F^-T``::

    mu d_ik d_JL + lambda H_iJ H_kL - (lambda ln J - mu) H_iL H_kJ
    """
    h, factor = _hooke_parts(f, first, shear)
    one = _unit(f)
    across = h[:, None, None, :] * jnp.swapaxes(h, 0, 1)[None, :, :, None]
    found = first * h[:, :, None, None] * h[None, None] - factor * across
    return found + shear * one[:, None, :, None] * one[None, :, None, :]


INLINE_POINTS = 9 * 8 * 8
"""Number of entries of deformation gradients (of eight elements) up to which a program stays one kernel."""

MATERIALS: dict[str, Fn] = {"st_venant_kirchhoff": st_venant_kirchhoff, "neo_hooke": neo_hooke}
"""Energy densities ``W(F, lambda, mu)`` [J/m^3] by name; all are linear elastic for small strains."""

_WRITTEN: dict[Fn, tuple[Fn, Fn]] = {
    st_venant_kirchhoff: (_svk_stress, _svk_moduli),
    neo_hooke: (_hooke_stress, _hooke_moduli),
}
"""Stresses and moduli written out: automatic differentiation of the energies costs ten times as much."""


def _stress(material: Fn, f: Array, *constants: Array) -> Array:
    """Stress ``dW/dF`` (3, 3, ...)."""
    if material in _WRITTEN:
        return _WRITTEN[material][0](f, *constants)[0]
    return jax.grad(lambda f: jnp.sum(material(f, *constants)))(f)


def _moduli(material: Fn, f: Array, *constants: Array) -> Array:
    """Moduli ``d^2W/dF^2`` (3, 3, 3, 3, ...)."""
    if material in _WRITTEN and f.size > INLINE_POINTS:
        return _WRITTEN[material][1](f, *constants)
    unit = np.eye(9).reshape(9, 3, 3, *[1] * (f.ndim - 2))
    along = lambda d: jax.jvp(lambda f: _stress(material, f, *constants), (f,), (d + 0.0 * f,))[1]  # noqa: E731
    return jax.vmap(along)(jnp.asarray(unit)).reshape(3, 3, *f.shape)


def lame(young: Array | float, poisson: Array | float) -> tuple[Array, Array]:
    """Lame's constants ``(lambda, mu)`` [N/m^2] from Young's modulus [N/m^2] and Poisson's ratio.

    Example:
        >>> from nsjax.fem.hexahedron import lame
        >>> [round(x, 3) for x in lame(90.0, 0.3)]
        [51.923, 34.615]
    """
    first: Array = young * poisson / ((1.0 + poisson) * (1.0 - 2.0 * poisson))  # type: ignore[assignment]
    shear: Array = 0.5 * young / (1.0 + poisson)  # type: ignore[assignment]
    return first, shear


def box_inertia(w: Array, mass: Array) -> Array:
    """Consistent ``mass`` of elements of a box times ``w`` (m + 1, n + 1, o + 1, 3), by three bars."""
    for axis in range(3):
        x = jnp.moveaxis(w, axis, 0)
        w = jnp.moveaxis(bar_inertia(x, jnp.ones((x.shape[0] - 1, 1, 1, 1))), 0, axis)
    return mass * w


def _contracted(moduli: Array, df: Array) -> Array:
    """``A : dF``: written out, which keeps a time loop one kernel, but a matrix product for many directions
    of meshes whose tangents are eliminated. A barrier keeps the compiler from computing the moduli again.
    """
    if df.size <= INLINE_POINTS:
        return _three(_three(moduli * df[:, :, None, None]))
    # number of entries (of 1000 elements) up to which tangent matrices are formed and eliminated
    eliminated_points = 9 * 8 * 1000
    if df.size <= eliminated_points:
        return jnp.einsum("klij...,kl...->ij...", moduli, df)
    moduli = lax.optimization_barrier(moduli)
    return functools.reduce(jnp.add, [moduli[k, j] * df[k, j] for k in range(3) for j in range(3)])


def _along(function: Fn, constants: Any, change: Any) -> Array | float:
    """Derivative of ``function(constants)`` along ``change``, without the entries known to be zero."""
    live = [k for k, x in enumerate(change) if not isinstance(x, SymbolicZero)]
    if not live:
        return 0.0

    def of(values: Any) -> Array:
        full = list(constants)
        for k, x in zip(live, values, strict=True):
            full[k] = x
        return function(*full)

    return jax.jvp(of, ([constants[k] for k in live],), ([change[k] for k in live],))[1]


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def energy_density(material: Fn, f: Array, *constants: Array) -> Array:
    """Energy density ``W(F)`` (...) [J/m^3] of a material of `MATERIALS` at deformation gradients (3, 3,
    ...); its derivative is `piola`.
    """
    return material(f, *constants)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def piola(material: Fn, f: Array, *constants: Array) -> Array:
    """First Piola-Kirchhoff stress ``P = dW/dF`` (3, 3, ...) [N/m^2], whose derivative uses tangent moduli
    (3, 3, 3, 3, ...) that are computed once for all directions.
    """
    return _stress(material, f, *constants)


@functools.partial(energy_density.defjvp, symbolic_zeros=True)
def _energy_rule(material: Fn, primals: Any, tangents: Any) -> Any:
    (f, *constants), (df, *dc) = primals, tangents
    change = _along(lambda *c: material(f, *c), constants, dc)
    if not isinstance(df, SymbolicZero):
        change = change + inner(piola(material, f, *constants), df)
    value = energy_density(material, f, *constants)
    return value, change * jnp.ones_like(value)


@functools.partial(piola.defjvp, symbolic_zeros=True)
def _piola_rule(material: Fn, primals: Any, tangents: Any) -> Any:
    (f, *constants), (df, *dc) = primals, tangents
    change = _along(lambda *c: _stress(material, f, *c), constants, dc)
    if not isinstance(df, SymbolicZero):
        change = change + _contracted(_moduli(material, f, *constants), df)
    value = piola(material, f, *constants)
    return value, change * jnp.ones_like(value)


def von_mises(material: Fn, f: Array, *constants: Array) -> Array:
    """Von Mises stress (...) [N/m^2] of deformation gradients (3, 3, ...), from ``P F' / det F``."""
    return equivalent(jnp.sum(piola(material, f, *constants)[:, None] * f[None], axis=2) / determinant(f))


def equivalent(stress: Array) -> Array:
    """Equivalent stress ``sqrt(3/2 s:s)`` [N/m^2] (...), ``s``: deviators of true stresses (3, 3, ...)."""
    eye = np.eye(3).reshape(3, 3, *[1] * (stress.ndim - 2))
    deviator = stress - trace(stress) / 3.0 * eye
    return real_root(1.5 * inner(deviator, deviator))
