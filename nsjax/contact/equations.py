"""Equations of a step, and their linearisation: eliminated dynamics with the rows as a border."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.bordered import StageTangent, bordered, linearised
from nsjax.contact.inside import inside_of
from nsjax.contact.problem import GivenNormals
from nsjax.contact.row_choice import RowChoice, row_choice
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
        """Structure of the tangent of the dynamics; contacts and constraints are a border of it."""

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

    def given(self, data: PyTree) -> GivenNormals | None:
        """Normal impulses that are given instead of found, if any."""

    def smooth(self, data: PyTree) -> np.ndarray:
        """Contacts (nc,) bool that have no friction whatever the parameters are."""


class Freezing(Equations, Protocol):
    """Equations that can be iterated with a tangent frozen in position and velocity."""

    @property
    def tangent(self) -> str:
        """Tangent of the iteration: ``"full"``, as that of equations without this property, ``"mass"``, or
        ``"kept"`` where `solve_stage` is given one.
        """

    def frozen(self, data: PyTree, z: Array) -> tuple[Callable[[Array], Array], bool]:
        """Linear map from changes of ``z`` (n,) to changes of the residual by the inertia at ``z``; and
        whether the rates at fixed ``W`` are ``W' z`` plus a constant.
        """


class Following(Equations, Protocol):
    """Equations that choose the laws which derivatives of a step follow."""

    def followed(self, active: Array, impulses: Array) -> Array:
        """Those of the ``active`` contacts (nc,) bool; the others keep their impulses (rows,)."""


@record()
class CarriedTangent:
    """A tangent that is carried to the next steps; ``known`` () bool: whether one has been formed."""

    tangent: StageTangent
    known: Array


def _speed(equations: Equations, data: PyTree, z: Array, rows: int) -> Any:
    """``du/dz`` (rows, n)."""
    islands = getattr(equations, "islands", 0)
    if islands:
        return block_jacobian(lambda z: equations.rates(data, z), z, islands)
    return jacobian(lambda z: equations.rates(data, z), z, rows)


def freezes(equations: Equations) -> bool:
    """Whether the equations are `Freezing` and ask for the iteration with a frozen tangent."""
    return getattr(equations, "tangent", "full") == "mass"


def row_count(equations: Equations) -> int:
    """Rows of contacts and constraints."""
    return equations.nc * (1 + equations.nt) + equations.nb


def needed_rows(equations: Equations, data: PyTree) -> RowChoice:
    """Rows that the contacts of the equations need, and that tangents have; all if islands keep them in
    blocks.
    """
    smooth = None if getattr(equations, "islands", 0) else equations.smooth(data)
    return row_choice(equations.nc, equations.nt, smooth, equations.given(data))


def tangent_at(equations: Equations, data: PyTree, z: Array, impulses: Array) -> StageTangent:
    """The full tangent at an iterate."""
    rows, structure = impulses.shape[0], equations.structure

    def dynamics(z: Array) -> Array:
        f = equations.residual(data, z)
        return f - equations.forces(data, z, impulses) if rows else f

    if not rows:
        return linearised(structure, dynamics, z, *_no_rows(z))
    own, speed = needed_rows(equations, data), _speed(equations, data, z, rows)
    return linearised(structure, dynamics, z, own.columns(equations.directions(data, z)), own.rows(speed))


def mass_tangent(equations: Any, data: PyTree, z: Array) -> StageTangent:
    """The tangent frozen in position and velocity: inertia and directions, no derivative of forces."""
    structure, rest = equations.structure, jnp.zeros_like(z)
    inertia, _ = equations.frozen(data, z)
    if not row_count(equations):
        return linearised(structure, inertia, rest, *_no_rows(z))
    own, directions = needed_rows(equations, data), equations.directions(data, z)
    speed = _frozen_speed(equations, data, z, directions)
    return linearised(structure, inertia, rest, own.columns(directions), own.rows(speed))


def _frozen_speed(equations: Any, data: PyTree, z: Array, directions: Array) -> Array:
    """``du/dz`` (rows, n) at fixed directions."""
    if equations.frozen(data, z)[1]:
        return directions.T
    speed: Array = _speed(equations, data, z, directions.shape[1])
    return speed


def frozen_or_by(
    equations: Any, data: PyTree, z: Array, frozen: Array, full: Callable[[], tuple[Array, Array]]
) -> StageTangent:
    """`mass_tangent` if ``frozen`` () bool, else the tangent of ``full()``, which returns its matrix (n, n)
    and ``du/dz`` (rows, n); for dense structures.
    """
    structure, rows = equations.structure, row_count(equations)
    directions, none = equations.directions(data, z) if rows else _no_rows(z)[0], _no_rows(z)[1]

    def still(_: None) -> tuple[Array, Array]:
        mass = structure.tangent(equations.frozen(data, z)[0], jnp.zeros_like(z))
        return mass, _frozen_speed(equations, data, z, directions) if rows else none

    matrix, speed = lax.cond(frozen, still, lambda _: full(), None)
    if rows:
        own = needed_rows(equations, data)
        directions, speed = own.columns(directions), own.rows(speed)
    return bordered(structure, matrix, speed, directions)


def _no_rows(z: Array) -> tuple[Array, Array]:
    """Directions (n, 0) and ``du/dz`` (0, n) of equations without rows."""
    return jnp.zeros((z.shape[0], 0)), jnp.zeros((0, z.shape[0]))


def kept_tangent(equations: Equations, data: PyTree, unknowns: int) -> StageTangent:
    """The tangent of a model whose structure is constant, for all steps of a run.

    Args:
        equations, data: of any step.
        unknowns: number of unknowns.
    """
    return tangent_at(equations, data, jnp.zeros(unknowns), jnp.zeros(row_count(equations)))


def blank(shapes: Any) -> Any:
    """Pytree of zeros with the given shapes and types."""
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)


def no_tangent(equations: Equations, data: PyTree, unknowns: int) -> CarriedTangent:
    """`StageStart.carried` of the first step: a tangent of zeros that is not known yet.

    Args:
        equations, data: of any step.
        unknowns: number of unknowns.
    """
    joints, size = inside_of(equations, unknowns), unknowns
    if joints is not None:
        size += joints.inside * joints.copies
    shapes = jax.eval_shape(lambda: kept_tangent(joints or equations, data, size))
    return CarriedTangent(tangent=blank(shapes), known=jnp.asarray(False))
