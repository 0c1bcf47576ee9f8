"""Planar elements in a row: Euler-Bernoulli beam, shear-deformable beam and bar.

All integrals are those of a rod of length 1, mass 1, axial stiffness 1 and bending stiffness 1; numpy
computes them once per number of elements. A uniform rod of other data follows by scaling, so that its
length, mass and stiffness may be traced while nothing is assembled in a trace; see `nsjax.fem.rod`.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core.errors import check_whole
from nsjax.types import Array, record


def gauss(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights on [0, 1], exact for polynomials of degree ``2 points - 1``. ``points``: number of
    points, at least 1. Returns points (points,) in increasing order, weights (points,) of sum 1.

    Example:
        >>> from nsjax.fem import gauss
        >>> x, w = gauss(2)
        >>> float(round(sum(w * x**3), 15))
        0.25
    """
    x, w = np.polynomial.legendre.leggauss(points)
    return 0.5 * (x + 1.0), 0.5 * w


def integrate(values: Any, weights: np.ndarray) -> np.ndarray:
    """Integral ``sum_k w_k values_k`` over the first axis."""
    return np.tensordot(weights, values, axes=(0, 0))


# Planar Euler-Bernoulli beam: the element, its integrals, and a straight rod assembled from it.


DOFS = 3
"""Coordinates per node: axial displacement u, deflection w, slope w'."""


def shape_functions(xi: np.ndarray, length: float = 1.0) -> np.ndarray:
    """Shape functions ``S(xi)`` of a two-node element: ``(u, w) = S (u1, w1, w1', u2, w2, w2')``. ``xi``:
    positions in the element, 0 to 1, any shape (...); ``length``: length of the element. Returns matrix
    ``S`` (..., 2, 6).

    Source: [R&S (110)].

    Example:
        >>> import numpy as np
        >>> from nsjax.fem import shape_functions
        >>> shape_functions(np.array(0.5), 2.0)[1].tolist()
        [0.0, 0.5, 0.25, 0.0, 0.5, -0.25]
    """
    x, o = np.asarray(xi, float), np.zeros(np.shape(xi))
    u = [1 - x, o, o, x, o, o]
    w = [o, 1 - 3 * x**2 + 2 * x**3, length * (x - 2 * x**2 + x**3)]
    w += [o, 3 * x**2 - 2 * x**3, length * (x**3 - x**2)]
    return np.stack([np.stack(u, axis=-1), np.stack(w, axis=-1)], axis=-2)


def strains(xi: np.ndarray, length: float = 1.0) -> np.ndarray:
    """Stretch and curvature ``(u', w'') = B(xi) (u1, w1, w1', u2, w2, w2')`` of an element. ``xi``:
    positions in the element, 0 to 1, any shape (...); ``length``: length of the element. Returns matrix
    ``B`` (..., 2, 6).

    Source: [R&S (162), (163)].
    """
    x, o, one = np.asarray(xi, float), np.zeros(np.shape(xi)), np.ones(np.shape(xi))
    u = [-one / length, o, o, one / length, o, o]
    w = [o, (12 * x - 6) / length**2, (6 * x - 4) / length]
    w += [o, (6 - 12 * x) / length**2, (6 * x - 2) / length]
    return np.stack([np.stack(u, axis=-1), np.stack(w, axis=-1)], axis=-2)


@dataclasses.dataclass(frozen=True, eq=False)
class UnitRod:
    """Integrals of the unit rod's shape functions, in its N = 3 (elements + 1) nodal coordinates.

    With shape functions ``S = (S_u, S_w)`` and the position ``x`` along the rod:

    Args:
        elements: number of elements of equal length.
        mean: ``int S dx`` (2, N).
        first: ``int x S dx`` (2, N).
        mass: ``int S' S dx`` (N, N), the consistent mass matrix.
        spin: ``int S_u' S_w - S_w' S_u dx`` (N, N), skew.
        axial, bending: stiffness matrices (N, N), integrals of products of stretches and of curvatures.
        tip: ``S(1)`` (2, N).
        root: curvature ``S_w''(0)`` (N,).
        points, weights, values: Gauss points along the rod (P,), weights (P,), ``S`` there (P, 2, N).
    """

    elements: int
    mean: np.ndarray
    first: np.ndarray
    mass: np.ndarray
    spin: np.ndarray
    axial: np.ndarray
    bending: np.ndarray
    tip: np.ndarray
    root: np.ndarray

    points: np.ndarray
    weights: np.ndarray
    values: np.ndarray

    @property
    def size(self) -> int:
        """Number N of nodal coordinates."""
        return DOFS * (self.elements + 1)


def _incidence(elements: int) -> np.ndarray:
    """Matrix of ones and zeros (elements, 6, N) that selects the coordinates of every element."""
    rows = DOFS * np.arange(elements)[:, None] + np.arange(2 * DOFS)[None, :]
    return np.eye(DOFS * (elements + 1))[rows]


def rod_shapes(elements: int, x: np.ndarray) -> np.ndarray:
    """Shape functions (..., 2, N) of the unit rod at positions ``x`` from 0 to 1 (...)."""
    at = np.asarray(x, float) * elements
    element = np.clip(at.astype(int), 0, elements - 1)
    local = shape_functions(at - element, 1.0 / elements)
    return np.einsum("...ij,...jn->...in", local, _incidence(elements)[element])


def assemble(element: np.ndarray, elements: int) -> np.ndarray:
    """Matrix (N, N) of a chain of equal elements, assembled from their element matrix (6, 6)."""
    ends = _incidence(elements)
    return np.einsum("eia,ij,ejb->ab", ends, element, ends)


@functools.cache
def unit_rod(elements: int) -> UnitRod:
    """The rod of length 1 with the given number of elements of equal length. Raises `InputError` for a
    number of elements that is not a whole number above zero.

    Example:
        >>> from nsjax.fem import unit_rod
        >>> unit_rod(20).size
        63
    """
    check_whole("rod: elements", elements, 1)
    length = 1.0 / elements
    mass_points = 4  # Gauss points per element for integrals of products of shape functions, of degree 6
    xi, w = gauss(mass_points)
    s = shape_functions(xi, length)
    u, v = s[:, 0], s[:, 1]
    mass = length * integrate(np.einsum("pia,pib->pab", s, s), w)
    spin = length * integrate(u[:, :, None] * v[:, None, :] - v[:, :, None] * u[:, None, :], w)
    x = ((np.arange(elements)[:, None] + xi[None, :]) * length).reshape(-1)
    weights = np.tile(length * w, elements)
    values = rod_shapes(elements, x)
    stiffness_points = 2  # Gauss points per element for integrals of products of strains, of degree 2
    xi, w = gauss(stiffness_points)
    b = strains(xi, length)
    parts = length * integrate(np.einsum("pia,pib->piab", b, b), w)
    return UnitRod(
        elements=elements, mean=integrate(values, weights),
        first=integrate(x[:, None, None] * values, weights), mass=assemble(mass, elements),
        spin=assemble(spin, elements), axial=assemble(parts[0], elements),
        bending=assemble(parts[1], elements), tip=rod_shapes(elements, np.array(1.0)),
        root=strains(np.array(0.0), length)[1] @ _incidence(elements)[0], points=x, weights=weights,
        values=values,
    )  # fmt: skip


# Two-node bars in a row: linear displacements, consistent mass, one unknown per node.
#
# Nodal vectors have ``n + 1`` entries for ``n`` elements in the order of the nodes. All operations here
# are differences or sums of neighbours, without index tables, and the matrices are tridiagonal.
#
# Source: linear finite elements, as for the bar of [C section 4.2].


def assembled(left: Array, right: Array) -> Array:
    """Nodal vector (n + 1, ...) from the elements' contributions (n, ...) to their left and right nodes."""
    rest = [(0, 0)] * (left.ndim - 1)
    return jnp.pad(left, [(0, 1), *rest]) + jnp.pad(right, [(1, 0), *rest])


def bar_inertia(w: Array, mass: Array) -> Array:
    """``M w`` (n + 1, ...) with the consistent mass ``m / 6 [[2, 1], [1, 2]]`` of elements ``mass`` (n,
    ...) [kg].

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.fem.beam import bar_inertia
        >>> bar_inertia(jnp.ones(3), jnp.full(2, 6.0)).tolist()
        [3.0, 6.0, 3.0]
    """
    left, right = w[:-1], w[1:]
    return assembled(mass / 6.0 * (2.0 * left + right), mass / 6.0 * (left + 2.0 * right))


def bar_weight(acceleration: Array | float, mass: Array) -> Array:
    """Nodal forces (n + 1,) of a uniform acceleration [m/s^2]: half of each element to each node."""
    half = 0.5 * acceleration * mass
    return assembled(half, half)


# Planar shear-deformable beam, geometrically exact: two nodes, linear shapes, one quadrature point.
#
# A node has a position ``(x, y)`` and an angle ``theta`` of its section; a beam without strain at ``theta
# = 0`` lies along ``+x``. All operations are differences or means of neighbours in a row of nodes, so
# that forces (gradients of the energy) are assembled without index tables.
#
# Source: Simo and Reissner's beam in the plane; one quadrature point avoids locking: a cantilever of
# ``n`` elements has ``1 - 1 / (4 n^2)`` of the exact deflection, however slender.


@record()
class BeamStiffness:
    """Stiffness of elements, scalars or (n,): ``axial = E A`` [N], ``shear = G A_s`` [N], ``bending = E I``
    [N m^2].
    """

    axial: Array
    shear: Array
    bending: Array


@record()
class BeamStrains:
    """Stretch ``epsilon``, shear ``gamma`` [-] and curvature ``kappa`` [1/m] of elements (n,)."""

    epsilon: Array
    gamma: Array
    kappa: Array


def beam_strains(nodes: Array, lengths: Array) -> BeamStrains:
    """Strains in the middle of the elements, unchanged by rigid motions::

        epsilon = (cos(t) dx + sin(t) dy) / l - 1,   gamma = (cos(t) dy - sin(t) dx) / l,
        kappa = dtheta / l

    with the mean angle ``t`` of both nodes.

    Args:
        nodes: ``(x, y, theta)`` (n + 1, 3) [m, m, rad].
        lengths: lengths of the elements without strain (n,) [m].

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.fem.beam import beam_strains
        >>> nodes = jnp.array([[0.0, 0.0, 0.0], [1.1, 0.0, 0.0]])
        >>> [round(float(x), 12) for x in beam_strains(nodes, jnp.ones(1)).epsilon]
        [0.1]
    """
    change = nodes[1:] - nodes[:-1]
    mean = 0.5 * (nodes[1:, 2] + nodes[:-1, 2])
    c, s = jnp.cos(mean), jnp.sin(mean)
    return BeamStrains(
        epsilon=(c * change[:, 0] + s * change[:, 1]) / lengths - 1.0,
        gamma=(c * change[:, 1] - s * change[:, 0]) / lengths,
        kappa=change[:, 2] / lengths,
    )


def beam_resultants(strains: BeamStrains, section: BeamStiffness) -> tuple[Array, Array, Array]:
    """Axial force [N], shear force [N] and bending moment [N m] of elements (n,)."""
    return (section.axial * strains.epsilon, section.shear * strains.gamma, section.bending * strains.kappa)


def beam_energy(nodes: Array, lengths: Array, section: BeamStiffness) -> Array:
    """Strain energy of all elements: ``sum l/2 (E A epsilon^2 + G A_s gamma^2 + E I kappa^2)`` [J]."""
    s = beam_strains(nodes, lengths)
    n, q, m = beam_resultants(s, section)
    return 0.5 * jnp.sum(lengths * (n * s.epsilon + q * s.gamma + m * s.kappa))


def beam_inertia(w: Array, mass: Array, rotary: Array) -> Array:
    """Consistent mass times ``w`` (n + 1, 3): masses [kg] and rotary inertia [kg m^2] of elements (n,)."""
    return jnp.stack(
        [bar_inertia(w[:, 0], mass), bar_inertia(w[:, 1], mass), bar_inertia(w[:, 2], rotary)], axis=1
    )
