"""Equations of a step, and their linearisation: eliminated dynamics with the rows as a border."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from nsjax.contact.bordered import StageTangent, linearised
from nsjax.contact.inside import inside_of
from nsjax.contact.problem import Given
from nsjax.core.operators import jacobian
from nsjax.linalg import Structure, block_jacobian
from nsjax.types import Array, PyTree, record


class Equations(Protocol):
    """Dynamics and rows of a step as functions of the unknown ``z`` (n,); static and hashable.

    ``residual(data, z) - W(z) P = 0`` with row velocities ``rates(data, z)``. Rows are stacked as in
    `ContactProblem`: all contacts, then all bilateral rows.
    """

    @property
    def structure(self) -> Structure:
        """Of the tangent of the dynamics; contacts and constraints are a border of it."""

    @property
    def nc(self) -> int:
        """Contacts in the problem."""

    @property
    def nt(self) -> int:
        """Tangents per contact."""

    @property
    def nb(self) -> int:
        """Bilateral rows."""

    def __hash__(self) -> int:
        """Equal equations share one compiled solver."""

    def residual(self, data: PyTree, z: Array) -> Array:
        """Dynamics without row forces (n,)."""

    def forces(self, data: PyTree, z: Array, impulses: Array) -> Array:
        """``W(z) P`` (n,)."""

    def directions(self, data: PyTree, z: Array) -> Any:
        """``W(z)`` (n, rows); `Blocks` of equations with a number of ``islands``."""

    def rates(self, data: PyTree, z: Array) -> Array:
        """Velocities of the rows that the laws refer to, restitution included (rows,)."""

    def friction(self, data: PyTree) -> Array:
        """Coefficients (nc,)."""

    def given(self, data: PyTree) -> Given | None:
        """Normal impulses that are given instead of found, if any."""


class Freezing(Equations, Protocol):
    """Equations that can be iterated with a tangent frozen in position and velocity."""

    @property
    def tangent(self) -> str:
        """Of the iteration: ``"full"``, as that of equations without this property, ``"mass"``, or
        ``"kept"`` where `solve_stage` is given one.
        """

    def frozen(self, data: PyTree, z: Array) -> tuple[Callable[[Array], Array], bool]:
        """What the inertia at ``z`` makes of changes of ``z`` (n,) in the residual, linear; and whether the
        rates are ``W' z`` and what does not depend on ``z`` at fixed ``W``.
        """


@record()
class Carried:
    """A tangent for the next steps, and whether it is one: () bool."""

    tangent: StageTangent
    known: Array


def _speed(equations: Equations, data: PyTree, z: Array, rows: int) -> Any:
    """``du/dz`` (rows, n)."""
    islands = getattr(equations, "islands", 0)
    if islands:
        return block_jacobian(lambda z: equations.rates(data, z), z, islands)
    return jacobian(lambda z: equations.rates(data, z), z, rows)


def freezes(equations: Equations) -> bool:
    """Whether they are `Freezing`, and to be iterated so."""
    return getattr(equations, "tangent", "full") == "mass"


def row_count(equations: Equations) -> int:
    """Rows of contacts and constraints."""
    return equations.nc * (1 + equations.nt) + equations.nb


def tangent_at(equations: Equations, data: PyTree, z: Array, impulses: Array) -> StageTangent:
    """The full tangent at an iterate."""
    rows, structure = impulses.shape[0], equations.structure

    def dynamics(z: Array) -> Array:
        f = equations.residual(data, z)
        return f - equations.forces(data, z, impulses) if rows else f

    if not rows:
        return linearised(structure, dynamics, z, *_no_rows(z))
    speed = _speed(equations, data, z, rows)
    return linearised(structure, dynamics, z, equations.directions(data, z), speed)


def mass_tangent(equations: Any, data: PyTree, z: Array) -> StageTangent:
    """The tangent frozen in position and velocity: inertia and directions, no derivative of forces."""
    structure, rest = equations.structure, jnp.zeros_like(z)
    inertia, velocity_rows = equations.frozen(data, z)
    if not row_count(equations):
        return linearised(structure, inertia, rest, *_no_rows(z))
    directions = equations.directions(data, z)
    speed = directions.T if velocity_rows else _speed(equations, data, z, directions.shape[1])
    return linearised(structure, inertia, rest, directions, speed)


def _no_rows(z: Array) -> tuple[Array, Array]:
    """Their directions and their speed."""
    return jnp.zeros((z.shape[0], 0)), jnp.zeros((0, z.shape[0]))


def kept_tangent(equations: Equations, data: PyTree, unknowns: int) -> StageTangent:
    """The tangent of a model whose structure is constant, for all steps of a run.

    Args:
        equations, data: of any step.
        unknowns: number of them.
    """
    return tangent_at(equations, data, jnp.zeros(unknowns), jnp.zeros(row_count(equations)))


def blank(shapes: Any) -> Any:
    """Zeros of these shapes."""
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)


def no_tangent(equations: Equations, data: PyTree, unknowns: int) -> Carried:
    """What `solve_stage` is given where no earlier step has a tangent to carry.

    Args:
        equations, data: of any step.
        unknowns: number of them.
    """
    joints, size = inside_of(equations, unknowns), unknowns
    if joints is not None:
        size += joints.inside * joints.copies
    shapes = jax.eval_shape(lambda: kept_tangent(joints or equations, data, size))
    return Carried(tangent=blank(shapes), known=jnp.asarray(False))
