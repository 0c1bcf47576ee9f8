"""Vibration modes of a uniform rod under four boundary conditions, and modal bases."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from nsjax.core import InputError, nearest
from nsjax.fem.beam import DOFS, UnitRod, unit_rod


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
        if self.conditions not in CONDITIONS:
            hint = nearest(str(self.conditions), CONDITIONS)
            raise InputError(f"Modes: unknown conditions {self.conditions!r}; {hint}")
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
    """Eigenvalues and eigenvectors of ``(K - lambda m) phi = 0`` without the rigid motions.

    The problem is projected on the complement of the rigid motions before it is solved. The modes are then
    orthogonal to rigid motions up to rounding, however large the largest eigenvalue is.

    Args:
        stiffness, mass: (n, n) symmetric, the mass positive definite.
        rigid: (n, r) all motions without strain.

    Returns:
        Eigenvalues, increasing (n - r,), and mode shapes (n, n - r) with ``phi' m phi = 1``.
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
    return values, shapes * _signs(shapes, condition, axial)


def _signs(shapes: np.ndarray, condition: _Condition, axial: bool) -> np.ndarray:
    """Signs that make the end ``x = 1`` move in positive direction, or turn if it is fixed."""
    end_held = (-1, 1) in condition.held
    last = shapes[-DOFS + (0 if axial else 2 if end_held else 1)]
    return np.where(last < 0.0, -1.0, 1.0)


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
