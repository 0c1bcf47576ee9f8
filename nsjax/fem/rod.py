"""A uniform rod in a floating frame, and its vibration modes.

The displacement relative to the frame is ``(u, w)(x) = S(x / L) X q_f`` with the shape functions of the
unit rod and a basis ``X`` (N, n). All integrals of the floating frame formulation are those of the unit rod
times powers of the data, projected onto the basis. Source: [R&S App. C, D].
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.core.errors import check_choice, check_known
from nsjax.fem.beam import DOFS, UnitRod, unit_rod
from nsjax.linalg import INLINE_LIMIT, Arrow, BlockTridiagonal, Dense, Structure, matmul, matvec
from nsjax.types import Array, record

# Vibration modes of a uniform rod under four boundary conditions, and modal bases.


@dataclasses.dataclass(frozen=True)
class _Condition:
    """Fixed coordinates ``(node, dof)`` of a rod (node 0 or -1), and the rigid motions that remain free:
    powers of ``x`` among the deflections ``1`` and ``x``, and whether the rod can move along its axis.
    """

    held: tuple[tuple[int, int], ...]
    rigid_deflections: tuple[int, ...] = ()
    rigid_shift: bool = False


CONDITIONS = {
    "clamped_free": _Condition(held=((0, 0), (0, 1), (0, 2))),
    "pinned_pinned": _Condition(held=((0, 0), (0, 1), (-1, 1))),
    "free_free": _Condition(held=(), rigid_deflections=(0, 1), rigid_shift=True),
    "articulated_free": _Condition(held=((0, 0), (0, 1)), rigid_deflections=(1,)),
}
"""Boundary conditions of `Modes` by name."""


@dataclasses.dataclass(frozen=True)
class Modes:
    """A modal basis of a flexible rod: its ``count`` lowest vibrations under boundary conditions.

    ``(K - omega_k^2 m) phi_k = 0`` with the consistent mass of the bare rod, ``phi_k' m phi_k = 1``. Rigid
    motions (three of the free rod, the rotation of the articulated one) are left out. The displacement of
    the end ``x = 0`` is subtracted from every mode, so that the joint there stays exact.

    Args:
        conditions: ``"clamped_free"``, ``"pinned_pinned"``, ``"free_free"`` or ``"articulated_free"``
            (pinned at ``x = 0`` and free at the other end).
        count: number of modes.

    Raises:
        InputError: for an unknown condition or a count that is not a whole number above zero.

    Source: [R&S (186)-(191)].

    Example:
        >>> from nsjax.fem import Modes
        >>> Modes("free_free", 10).count
        10
    """

    conditions: str
    count: int

    def __post_init__(self) -> None:
        check_known("Modes: unknown conditions", self.conditions, CONDITIONS)
        if not isinstance(self.count, int) or self.count < 1:
            raise InputError(f"Modes: count = {self.count!r}; give at least one mode, a whole number")


@dataclasses.dataclass(frozen=True, eq=False)
class UnitModes:
    """All vibrations of the unit rod (`nsjax.fem.beam.UnitRod`): mass, length and stiffnesses 1.

    Args:
        axial, bending: squares of the angular frequencies, increasing (n_a,), (n_b,).
        shapes: nodal coordinates of the axial, then of the bending modes (N, n_a + n_b), modal mass 1.
    """

    axial: np.ndarray
    bending: np.ndarray
    shapes: np.ndarray

    @property
    def pinned(self) -> np.ndarray:
        """Shapes minus the displacement of the end ``x = 0``."""
        found = self.shapes.copy()
        for dof in (0, 1):
            found[dof::DOFS] -= self.shapes[dof]
        return found


def vibrations(stiffness: np.ndarray, mass: np.ndarray, rigid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of ``(K - lambda m) phi = 0`` without the rigid motions. Returns
    Eigenvalues, increasing (n - r,), and mode shapes (n, n - r) with ``phi' m phi = 1``.

    The problem is projected on the complement of the rigid motions before it is solved. The modes are then
    orthogonal to rigid motions up to rounding, however large the largest eigenvalue is. ``stiffness``,
    ``mass``: (n, n) symmetric, the mass positive definite; ``rigid``: (n, r) all motions without strain.
    """
    lower = np.linalg.cholesky(mass)
    free = np.linalg.qr(lower.T @ rigid, mode="complete")[0][:, rigid.shape[1] :]
    basis = np.linalg.solve(lower.T, free)
    values, vectors = np.linalg.eigh(basis.T @ stiffness @ basis)
    return values, basis @ vectors


def _family(rod: UnitRod, condition: _Condition, axial: bool) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and shapes (N, n) of the axial or of the bending modes."""
    node, dof = np.divmod(np.arange(rod.size), DOFS)
    held = [(rod.elements if at < 0 else at, d) for at, d in condition.held]
    kind = dof == 0 if axial else dof > 0
    free = np.array([k for k in np.flatnonzero(kind) if (node[k], dof[k]) not in held])
    x = node / rod.elements
    if axial:
        rigid = [np.ones(rod.size)] if condition.rigid_shift else []
    else:
        both = [np.where(dof == 1, 1.0, 0.0), np.where(dof == 1, x, 1.0)]
        rigid = [both[k] for k in condition.rigid_deflections]
    motions = np.stack(rigid, axis=1)[free] if rigid else np.zeros((len(free), 0))
    stiffness = rod.axial if axial else rod.bending
    pick = np.ix_(free, free)
    values, vectors = vibrations(stiffness[pick], rod.mass[pick], motions)
    shapes = np.zeros((rod.size, len(values)))
    shapes[free] = vectors
    # the end ``x = 1`` moves in positive direction, or turns if it is fixed
    last = shapes[-DOFS + (0 if axial else 2 if (-1, 1) in condition.held else 1)]
    return values, shapes * np.where(last < 0.0, -1.0, 1.0)


@functools.cache
def unit_modes(elements: int, conditions: str) -> UnitModes:
    """All vibrations of a unit rod with the given number of elements, axial and bending modes separately.

    Stretching and bending of a straight rod are independent. Solved separately, all eigenvalues are simple
    and the shapes do not depend on the data of the rod; only the order of the frequencies does.

    Example:
        >>> from nsjax.fem import unit_modes
        >>> modes = unit_modes(20, "clamped_free")
        >>> float(round(modes.bending[0] ** 0.25, 5))  # root of cos x cosh x = -1
        1.8751
    """
    rod, condition = unit_rod(elements), CONDITIONS[conditions]
    axial, along = _family(rod, condition, True)
    bending, across = _family(rod, condition, False)
    return UnitModes(axial=axial, bending=bending, shapes=np.concatenate([along, across], axis=1))


# A uniform rod in a floating frame: basis and shape integrals from data that may be traced.


FRAMES = {"tangential": "clamped_free", "pinned": "pinned_pinned"}
"""Reference conditions of the unreduced rod, and the matching boundary conditions of modes."""


@record()
class RodData:
    """Data of a uniform rod: length [m], mass [kg], ``EA`` [N], ``EI`` [N m^2]."""

    length: Array
    mass: Array
    axial: Array
    bending: Array


@record()
class FloatingRod:
    """Shape integrals of the rod and a point mass at its end, in the coordinates ``q_f`` (n,).

    With ``u_0 = (x, 0)`` and ``S`` the shape functions in these coordinates. ``int`` is the integral over
    the mass of the rod plus the value at its end times the point mass. Matrices (n, n) are stored as
    `RodBasis.structure` says.

    Args:
        i1: ``int x`` [kg m]; ``I_1 = (i1, 0)``.
        i2: ``int x^2`` and the rotary inertia of the section [kg m^2].
        i3: ``int u_0' S`` (n,).
        i4: ``int u_0' I~ S`` (n,) with ``I~ = ((0, 1), (-1, 0))``.
        mean: ``int S`` (2, n).
        mass: ``int S' S``.
        spin: ``int S' I~ S``, skew.
        stiffness: stiffness matrix of the elastic forces.
        tip: ``S(L)`` (2, n).
        root: curvature ``w''(0)`` (n,) times ``EI``, the bending moment at the root.
        basis: ``X`` (N, n).
        modes: matrix (k, n) from ``q_f`` to the amplitudes of the first few modes.
    """

    i1: Array
    i2: Array
    i3: Array
    i4: Array
    mean: Array
    mass: Any
    spin: Any
    stiffness: Any
    tip: Array
    root: Array
    basis: Array
    modes: Array


@dataclasses.dataclass(frozen=True)
class RodBasis:
    """Static data of a flexible rod: elements, reference conditions or modes.

    Args:
        elements: number of elements of equal length.
        frame: for the unreduced rod: ``"tangential"``, the first node does not move relative to the frame,
            or ``"pinned"``, both ends stay on the axis of the frame.
        modes: modal basis, whose boundary conditions then define the frame; None: nodal coordinates.
        amplitudes: number of mode amplitudes observed with nodal coordinates.

    Raises:
        InputError: for an unknown frame, or more modes than the rod has.
    """

    elements: int
    frame: str = "tangential"
    modes: Modes | None = None
    amplitudes: int = 6

    def __post_init__(self) -> None:
        unit_rod(self.elements)
        check_choice("frame", self.frame, FRAMES)
        if self.modes is not None and not isinstance(self.modes, Modes):
            raise InputError(f"modes = {self.modes!r}; give fem.Modes(conditions, count), or None")
        if self.modes is not None:
            most = unit_modes(self.elements, self.modes.conditions).shapes.shape[1]
            if self.modes.count > most:
                raise InputError(
                    f"modes: count = {self.modes.count}; {self.elements} elements have {most} "
                    f"{self.modes.conditions} modes"
                )

    @property
    def size(self) -> int:
        """Number n of coordinates."""
        return unit_rod(self.elements).size - 3 if self.modes is None else self.modes.count

    @property
    def free(self) -> np.ndarray:
        """Nodal coordinates left free by the reference conditions (n,), for the unreduced rod."""
        held = CONDITIONS[FRAMES[self.frame]].held
        fixed = [(self.elements * DOFS if node < 0 else 0) + dof for node, dof in held]
        return np.setdiff1d(np.arange(unit_rod(self.elements).size), fixed)

    @property
    def structure(self) -> Structure:
        """Structure of matrices over ``q_f``: a chain of nodes. Nodes at pinned ends have fewer unknowns
        and are coupled separately. Up to `INLINE_LIMIT` unknowns it is dense, which is faster.
        """
        if self.modes is not None or self.size <= INLINE_LIMIT:
            return Dense()
        if self.frame == "tangential":
            return BlockTridiagonal(DOFS)
        return Arrow((0, self.size - 2, self.size - 1), BlockTridiagonal(DOFS))

    @property
    def observed(self) -> int:
        """Number of observed mode amplitudes."""
        return self.size if self.modes is not None else min(self.amplitudes, self.size)

    def squares(self, rod: RodData, conditions: str) -> Array:
        """Squares of all angular frequencies [rad^2/s^2], axial modes first, then bending modes."""
        unit = unit_modes(self.elements, conditions)
        axial = unit.axial * (rod.axial / (rod.mass * rod.length))
        bending = unit.bending * (rod.bending / (rod.mass * rod.length**3))
        return jnp.concatenate([axial, bending])

    def frequencies(self, rod: RodData) -> Array:
        """Frequencies of the modes of the basis, or of its frame [Hz], increasing."""
        conditions = FRAMES[self.frame] if self.modes is None else self.modes.conditions
        found = jnp.sort(jnp.sqrt(self.squares(rod, conditions))) / (2.0 * np.pi)
        return found if self.modes is None else found[: self.modes.count]

    def _lowest(self, rod: RodData, conditions: str, count: int) -> Array:
        """Shapes of the lowest modes of the unit rod (N, count), selected by rank: no sort in a run."""
        squares = self.squares(rod, conditions)
        before = np.arange(squares.shape[0])
        lower = (squares[None, :] < squares[:, None]) | (
            (squares[None, :] == squares[:, None]) & (before[None, :] < before[:, None])
        )
        rank = jnp.sum(lower, axis=1)
        chosen = jnp.where(rank[:, None] == np.arange(count)[None, :], 1.0, 0.0)
        return matmul(jnp.asarray(unit_modes(self.elements, conditions).pinned), chosen)

    def basis(self, rod: RodData) -> Array:
        """Basis ``X`` (N, n): nodal coordinates of the unit rod, in metres, for each entry of ``q_f``."""
        if self.modes is not None:
            return self._lowest(rod, self.modes.conditions, self.modes.count) / jnp.sqrt(rod.mass)
        n = unit_rod(self.elements).size
        slope = np.arange(n) % DOFS == 2
        scale = jnp.where(slope, rod.length, 1.0)
        return scale[:, None] * np.eye(n)[:, self.free]

    def prepare(self, rod: RodData, end_mass: Array, section_inertia: Array) -> FloatingRod:
        """Shape integrals of the rod.

        Args:
            rod: data of the rod.
            end_mass: point mass at ``x = L`` [kg].
            section_inertia: ``int rho I dx``, rotary inertia of the cross sections turning with the frame
                [kg m^2].
        """
        unit, x, length, m = unit_rod(self.elements), self.basis(rod), rod.length, rod.mass
        tip = matmul(jnp.asarray(unit.tip), x)
        mean, first = matmul(jnp.asarray(unit.mean), x), matmul(jnp.asarray(unit.first), x)

        def project(matrix: Array | np.ndarray) -> Array:
            return matmul(x.T, matmul(jnp.asarray(matrix), x))

        # integrals over a unit rod, projected once: a step multiplies them with the motion of the frame
        bare = m * project(unit.mass)
        outer = tip[:, :, None] * tip[:, None, :]
        turn = tip[0][:, None] * tip[1][None, :]

        def stored(matrix: Array) -> Any:
            return self.structure.tangent(lambda f: matvec(matrix, f), jnp.zeros(self.size))

        stiff = project(rod.axial / length * unit.axial + rod.bending / length**3 * unit.bending)
        return FloatingRod(
            i1=length * (0.5 * m + end_mass), i2=length**2 * (m / 3.0 + end_mass) + section_inertia,
            i3=length * (m * first[0] + end_mass * tip[0]), i4=length * (m * first[1] + end_mass * tip[1]),
            mean=m * mean + end_mass * tip, mass=stored(bare + end_mass * jnp.sum(outer, axis=0)),
            spin=stored(m * project(unit.spin) + end_mass * (turn - turn.T)), stiffness=stored(stiff),
            tip=tip, root=rod.bending / length**2 * matvec(x.T, jnp.asarray(unit.root)), basis=x,
            modes=self._amplitudes(rod, x),
        )  # fmt: skip

    def _amplitudes(self, rod: RodData, x: Array) -> Array:
        """Matrix (k, n) from ``q_f`` to the amplitudes of modes."""
        if self.modes is not None:
            return jnp.eye(self.size)
        shapes = self._lowest(rod, FRAMES[self.frame], self.observed) * jnp.sqrt(rod.mass)
        return matmul(shapes.T, matmul(jnp.asarray(unit_rod(self.elements).mass), x))
