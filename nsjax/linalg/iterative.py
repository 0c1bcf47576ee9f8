"""Iterative solutions of large solids: Krylov methods, preconditioners, and their structure."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.linalg.dense import solve
from nsjax.types import Array, PyTree, record

# Iterative solutions of linear systems by products with a matrix that is never formed.


Apply = Callable[[Array], Array]
"""A linear map of vectors (n,)."""


@record()
class KrylovSolution:
    """Answer (n,), number of products with the matrix, and whether the residual has reached its bound."""

    x: Array
    iterations: Array
    solved: Array


def _dot(a: Array, b: Array) -> Array:
    return jnp.sum(a * b)


def _ratio(a: Array, b: Array) -> Array:
    """``a / b``, zero where the iteration has broken down."""
    return jnp.where(b != 0.0, a / jnp.where(b != 0.0, b, 1.0), 0.0)


def conjugate_gradients(
    product: Apply, precondition: Apply, b: Array, tolerance: Array | float, max_iterations: int
) -> KrylovSolution:
    """Solution of ``A x = b`` for a symmetric matrix that is positive definite on the range of ``P^-1``.

    Stops with ``|b - A x| <= tolerance |b|`` of the recursive residual, or if this is nan. ``product``:
    ``A x``; ``precondition``: ``P^-1 r``, symmetric; a projection in it keeps the search in its range.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.linalg.iterative import conjugate_gradients
        >>> found = conjugate_gradients(lambda x: 2.0 * x, lambda r: r, jnp.ones(3), 1e-12, 10)
        >>> found.x.tolist(), int(found.iterations)
        ([0.5, 0.5, 0.5], 1)
    """
    bound = (tolerance * tolerance) * _dot(b, b)

    def going(carry: Any) -> Array:
        *_, square, count = carry
        return (square > bound) & (count < max_iterations)

    def body(carry: Any) -> Any:
        x, r, p, rho, _, count = carry
        ap = product(p)
        alpha = _ratio(rho, _dot(p, ap))
        x, r = x + alpha * p, r - alpha * ap
        z = precondition(r)
        new = _dot(r, z)
        return x, r, z + _ratio(new, rho) * p, new, _dot(r, r), count + 1

    z = precondition(b)
    start = jnp.zeros_like(b), b, z, _dot(b, z), _dot(b, b), jnp.asarray(0)
    x, *_, square, count = lax.while_loop(going, body, start)
    return KrylovSolution(x=x, iterations=count, solved=square <= bound)


def stabilised(
    product: Apply, precondition: Apply, b: Array, tolerance: Array | float, max_iterations: int
) -> KrylovSolution:
    """Solution of ``A x = b`` for an unsymmetric matrix by BiCGStab, with two products in each iteration.

    Source: van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631-644.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.linalg.iterative import stabilised
        >>> a = jnp.array([[2.0, 1.0], [-1.0, 2.0]])
        >>> found = stabilised(lambda x: a @ x, lambda r: r, jnp.array([3.0, 1.0]), 1e-12, 10)
        >>> found.x.round(12).tolist()
        [1.0, 1.0]
    """
    bound = (tolerance * tolerance) * _dot(b, b)

    def going(carry: Any) -> Array:
        *_, square, count = carry
        return (square > bound) & (count < max_iterations)

    def body(carry: Any) -> Any:
        x, r, p, v, (rho, alpha, omega), _, count = carry
        new = _dot(b, r)
        beta = _ratio(new, rho) * _ratio(alpha, omega)
        p = r + beta * (p - omega * v)
        along = precondition(p)
        v = product(along)
        alpha = _ratio(new, _dot(b, v))
        s = r - alpha * v
        across = precondition(s)
        t = product(across)
        omega = _ratio(_dot(t, s), _dot(t, t))
        x = x + alpha * along + omega * across
        r = s - omega * t
        return x, r, p, v, (new, alpha, omega), _dot(r, r), count + 2

    zero, one = jnp.zeros_like(b), jnp.ones(())
    start = zero, b, zero, zero, (one, one, one), _dot(b, b), jnp.asarray(0)
    x, *_, square, count = lax.while_loop(going, body, start)
    return KrylovSolution(x=x, iterations=count, solved=square <= bound)


# Preconditioners (cheap inverses) of matrices of meshes that are known only by their products.


class Preconditioner(Protocol):
    """Interface of a preconditioner, a cheap inverse. Frozen, hashable, without numbers."""

    def misfit(self, size: int) -> str | None:
        """Why it cannot be that of a matrix of ``size`` unknowns; None if it can."""

    def made(self, product: Callable[[Array], Array], size: int) -> PyTree:
        """Numbers that `apply` needs, computed from products with the matrix."""

    def apply(self, made: PyTree, x: Array) -> Array:
        """``P^-1 x`` (size,), symmetric and positive definite."""

    def diagonal(self, made: PyTree) -> Array:
        """Diagonal of ``P^-1`` (size,)."""


def coloured(size: int, elements: Iterable[Iterable[int]]) -> tuple[int, ...]:
    """Colours of nodes such that no element has two nodes of the same colour.

    Example:
        >>> from nsjax.linalg.iterative import coloured
        >>> coloured(4, [(0, 1), (1, 2), (2, 3)])
        (0, 1, 0, 1)
    """
    near: list[set[int]] = [set() for _ in range(size)]
    for element in elements:
        for node in element:
            near[node].update(element)
    found = [-1] * size
    for node in range(size):
        taken = {found[k] for k in near[node]}
        found[node] = next(c for c in range(size + 1) if c not in taken)
    return tuple(found)


@dataclasses.dataclass(frozen=True)
class NodeBlocks:
    """Block Jacobi preconditioner: blocks of single nodes, from one product per colour and unknown of a
    node.

    Args:
        colours: colour of each node, see `coloured`: 8 colours for a box of hexahedra.
        block: unknowns of a node.
    """

    colours: tuple[int, ...]
    block: int

    def misfit(self, size: int) -> str | None:
        """Why it cannot be that of a matrix of ``size`` unknowns; None if it can."""
        if len(self.colours) * self.block == size:
            return None
        return f"nv = {size}, but its mesh has {len(self.colours)} nodes of {self.block} unknowns"

    def made(self, product: Callable[[Array], Array], size: int) -> Array:
        """Inverses of the blocks (nodes, block, block)."""
        b, colours = self.block, np.array(self.colours)
        colour, unknown = (x.ravel() for x in np.indices((colours.max() + 1, b)))

        def add(total: Array, one: tuple[Array, Array]) -> tuple[Array, None]:
            mine = (one[0] == colours)[:, None]
            here = (np.arange(b) == one[1])[None, :]
            column = product((mine & here).astype(float).reshape(-1)).reshape(-1, b)
            return total + jnp.where(mine, column, 0.0)[:, :, None] * here[:, None, :], None

        start = jnp.zeros((len(colours), b, b))
        blocks, _ = lax.scan(add, start, (jnp.asarray(colour), jnp.asarray(unknown)))
        return jax.vmap(lambda a: solve(a, jnp.eye(b)))(blocks)

    def apply(self, made: Array, x: Array) -> Array:
        """``P^-1 x``."""
        return jnp.sum(made * x.reshape(-1, 1, self.block), axis=2).reshape(-1)

    def diagonal(self, made: Array) -> Array:
        """Diagonal of ``P^-1`` (size,)."""
        return jnp.sum(made * np.eye(self.block), axis=2).reshape(-1)


@functools.cache
def _modes(nodes: int, held: bool) -> tuple[np.ndarray, np.ndarray]:
    """Squared frequencies and modes (nodes, nodes), of unit modal mass, of a bar of equal elements with
    mass 1 and stiffness 1; with ``held`` its end beyond the last node is fixed.
    """
    from scipy.linalg import eigh

    n = nodes + held
    ends = np.r_[1.0, np.full(n - 2, 2.0), 1.0]
    beside = np.eye(n, k=1) + np.eye(n, k=-1)
    stiffness, mass = np.diag(ends) - beside, (2.0 * np.diag(ends) + beside) / 6.0
    squares, modes = eigh(stiffness[:nodes, :nodes], mass[:nodes, :nodes])
    return squares, modes


@dataclasses.dataclass(frozen=True)
class Separable:
    """Preconditioner of boxes of equal hexahedra: ``a M + sum b_d K_d`` with masses and stiffnesses of
    three crossed bars, inverted exactly by their modes (fast diagonalisation). Four products give the
    numbers ``a``, ``b_d`` of every unknown. It is spectrally equivalent to the tangents of elastic bodies
    under moderate strain, however fine the mesh and whatever the step.

    Args:
        nodes: number of nodes along the three axes, two or more with a held node; the last axis runs
            fastest.
        block: unknowns of a node.
        held: for each of the three axes, whether a held node follows the last one.

    Source: Lynch, Rice, Thomas, Numer. Math. 6 (1964) 185-199.
    """

    nodes: tuple[int, int, int]
    block: int
    held: tuple[bool, bool, bool] = (False, False, False)

    def misfit(self, size: int) -> str | None:
        """Why it cannot be that of a matrix of ``size`` unknowns; None if it can."""
        if int(np.prod(self.nodes)) * self.block == size and min(self.nodes) >= 1:
            return None
        return f"nv = {size}, but its box has {self.nodes} nodes of {self.block} unknowns"

    @property
    def _bars(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [_modes(n, h) for n, h in zip(self.nodes, self.held, strict=True)]

    def made(self, product: Callable[[Array], Array], size: int) -> Array:
        """Inverse modal values (*nodes, block)."""
        bars = self._bars

        def probe(axis: int) -> np.ndarray:
            """Product of the lowest modes, with a middle mode along ``axis`` instead; none for -1."""
            x, y, z = (m[:, len(m) // 2 if k == axis else 0] for k, (_, m) in enumerate(bars))
            return np.repeat((x[:, None, None] * y[:, None] * z)[..., None], self.block, axis=3)

        def quotient(one: Array) -> Array:
            """Rayleigh quotient of the vector ``one`` for every unknown of the nodes (block,)."""
            return jnp.sum(one * product(one.reshape(-1)).reshape(one.shape), axis=(0, 1, 2))

        # one after the other: if they were written out, the compiler would form the matrix anew for each
        base, *bent = lax.map(quotient, jnp.asarray(np.stack([probe(k) for k in (-1, 0, 1, 2)])))
        whole, first = jnp.zeros((*self.nodes, self.block)), base
        for axis, (squares, _) in enumerate(bars):
            middle = len(squares) // 2
            gain = (bent[axis] - base) / (squares[middle] - squares[0])
            slope = jnp.where(gain > 0.0, gain, 0.0)
            first = first - slope * squares[0]
            shape = [-1 if k == axis else 1 for k in range(3)]
            whole = whole + slope * squares.reshape(*shape, 1)
        least = 1e-3 * jnp.abs(base)  # for an indefinite tangent
        return 1.0 / (whole + jnp.where(first > least, first, least))

    def _crossed(self, matrices: list[np.ndarray], x: Array) -> Array:
        """``(A x B x C) x`` of nodal vectors (*nodes, block)."""
        for axis, a in enumerate(matrices):
            x = jnp.moveaxis(jnp.tensordot(jnp.asarray(a), x, axes=(1, axis)), 0, axis)
        return x

    def apply(self, made: Array, x: Array) -> Array:
        """``P^-1 x``."""
        bars = self._bars
        modal = made * self._crossed([m.T for _, m in bars], x.reshape(made.shape))
        return self._crossed([m for _, m in bars], modal).reshape(-1)

    def diagonal(self, made: Array) -> Array:
        """Diagonal of ``P^-1`` (size,)."""
        return self._crossed([m * m for _, m in self._bars], made).reshape(-1)


def box_colours(nodes: Any) -> tuple[int, ...]:
    """Eight colours of a box of nodes, see `NodeBlocks`."""
    i, j, k = (x.ravel() % 2 for x in np.indices(tuple(nodes)))
    return tuple((4 * i + 2 * j + k).tolist())


# Structure of large solids: tangents known by products, solved by preconditioned conjugate gradients.


@record(static=("structure",))
class Iterative:
    """A matrix whose linear systems are solved by iteration.

    Args:
        structure: the structure of the matrix.
        product: ``x -> A x``.
        made: numbers of its preconditioner.
    """

    structure: ConjugateGradients
    product: Any
    made: PyTree

    def precondition(self, x: Array) -> Array:
        """``P^-1 x`` (n,)."""
        return self.structure.preconditioner.apply(self.made, x)

    def _solve(self, b: Array) -> Array:
        s = self.structure

        def iterate(product: Callable[[Array], Array], b: Array) -> Array:
            found = conjugate_gradients(product, self.precondition, b, s.tolerance, s.max_iterations)
            return jnp.where(found.solved, found.x, jnp.nan)

        return lax.custom_linear_solve(self.product, b, iterate, iterate, symmetric=True)

    def solve(self, b: Array) -> Array:
        """``A^-1 b`` (n,) or (n, k); nan where the iteration has not converged."""
        if b.ndim == 1:
            return self._solve(b)
        return lax.map(self._solve, b.T).T if b.shape[1] else b


@dataclasses.dataclass(frozen=True)
class ConjugateGradients:
    """Structure of large meshes of solids: only products with the tangent are formed, element by element.

    Time and memory of a solution are those of a few dozen forces. `nsjax.schemes.nsga_decoupled` takes
    contacts of single nodes (``touched``) into the iteration; elsewhere every row of the border costs a
    solution, which suits few contacts and constraints.

    Args:
        preconditioner: `nsjax.linalg.NodeBlocks` (any mesh) or `nsjax.linalg.Separable` (boxes of equal
            elements).
        touched: promise that contact ``k`` depends on the velocities of node ``touched[k]`` alone; all
            nodes are different.
        tolerance: relative residual at which an iteration ends.
        max_iterations: number of iterations after which a solution fails: its values are then nan.
        local: whether rows of contacts are formed at their nodes alone; set for schemes that can take it.

    Limits: symmetric, positive definite tangents of vector spaces, for one vector of unknowns
    (`stacked`), so that schemes with several stages or stabilised positions are refused.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax.linalg import ConjugateGradients, NodeBlocks
        >>> chain = ConjugateGradients(NodeBlocks((0, 1, 0, 1), 1))
        >>> f = lambda x: 3.0 * x - jnp.pad(x[1:], (0, 1)) - jnp.pad(x[:-1], (1, 0))
        >>> done, _ = chain.eliminate(chain.tangent(f, jnp.zeros(4)), jnp.zeros((4, 0)))
        >>> f(done.solve(jnp.arange(4.0))).round(8).tolist()
        [0.0, 1.0, 2.0, 3.0]
    """

    preconditioner: Preconditioner
    touched: tuple[int, ...] = ()
    tolerance: float = 1e-10
    max_iterations: int = 1000
    local: bool = False

    constant = False
    dense = False

    def misfit(self, size: int) -> str | None:
        """Why the structure cannot be that of a model with ``size`` unknowns; None if it can."""
        if len(set(self.touched)) < len(self.touched):
            return "structure: touched names a node twice; give every contact a node of its own"
        return self.preconditioner.misfit(size)

    def stacked(self, copies: int) -> ConjugateGradients:
        """Itself for one vector of unknowns; several are refused."""
        if copies == 1:
            return self
        raise ValueError(
            f"structure: ConjugateGradients does not solve for {copies} vectors of unknowns at once, as "
            "this scheme asks; take nsga_decoupled, moreau or bathe, or a structure that eliminates "
            "(Lattice, Sparse)"
        )

    def tangent(self, f: Callable[[Array], Array], x: Array) -> Any:
        """``df/dx`` as a product."""
        return jax.linearize(f, x)[1]

    def times(self, matrix: Any, x: Array) -> Array:
        """``A x`` (n,)."""
        return matrix(x)

    def eliminate(self, matrix: Any, columns: Array) -> tuple[Iterative, Array]:
        """The matrix with its preconditioner, and its inverse times ``columns`` (n, k)."""
        made = lax.stop_gradient(self.preconditioner.made(matrix, columns.shape[0]))
        done = Iterative(structure=self, product=matrix, made=made)
        return done, done.solve(columns)
