"""Equations of a step, and their linearisation: eliminated dynamics with the rows as a border."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core.operators import jacobian
from nsjax.core.row_groups import GivenForces, RowGroups
from nsjax.linalg import Elimination, Structure, block_jacobian, interleaving, matmul
from nsjax.types import Array, PyTree, record

# Linearised dynamics with a border of rows, as all solvers of a step use them.


@record()
class StageTangent:
    """Linearised dynamics: eliminated ``J = df/dz``, ``du/dz``, ``J^-1 W``, and ``G = du/dz J^-1 W``."""

    dynamics: Elimination
    speed: Any
    response: Any
    delassus: Any


def linearised(
    structure: Structure, dynamics: Callable[[Array], Array], z: Array, directions: Any, speed: Any,
    stiffer: Array | float = 0.0,
) -> StageTangent:  # fmt: skip
    """`StageTangent` at ``z`` (n,).

    Args:
        structure: of the tangent of the dynamics.
        dynamics: residual (n,) as a function of ``z``.
        directions: ``W`` (n, rows).
        speed: ``du/dz`` (rows, n).
        stiffer: (n, n), added to the tangent of a dense structure.
    """
    matrix: Any = structure.tangent(dynamics, z)
    if structure.dense and np.ndim(stiffer):
        matrix = matrix + stiffer
    return bordered(structure, matrix, speed, directions)


def bordered(structure: Structure, matrix: Any, speed: Any, directions: Any) -> StageTangent:
    """`StageTangent` of a matrix of the structure."""
    done, response = structure.eliminate(matrix, directions)
    delassus = matmul(speed, response) if speed.shape[0] else jnp.zeros((0, 0))
    return StageTangent(dynamics=done, speed=speed, response=response, delassus=delassus)


# Equations of a step whose joints are eliminated with the velocities, for the stage solver.


def followed(equations: Any, active: Array, impulses: Array) -> Array:
    """The ``active`` contacts (nc,) bool whose laws derivatives of a step follow, see `Following`."""
    choice: Callable[[Array, Array], Array] | None = getattr(equations, "followed", None)
    return active if choice is None else choice(active, impulses)


@dataclasses.dataclass(frozen=True)
class InteriorEquations:
    """Equations over ``y = (z, x)``: unknowns, then the impulses of the joints inside the structure::

        residual(z) - W_J x - W P = 0,      rates_J(z) = 0

    so that contacts and closures are the only rows of the stage solver.

    Args:
        equations: of the step, see `nsjax.contact.stage.Equations`; its bilateral rows are ``copies`` times
            those of the system, ``inside`` joints first each.
        unknowns: number of unknowns ``z``.
        inside, copies: joint rows of a copy, and number of copies.
    """

    equations: Any
    unknowns: int
    inside: int
    copies: int

    @property
    def structure(self) -> Structure:
        """Structure of velocities and multipliers."""
        return interleaving(self.equations.structure).saddle

    @property
    def rows(self) -> RowGroups:
        """Rows of the contacts, and bilateral rows of the border."""
        every: RowGroups = self.equations.rows
        return every.with_constraints(every.nb - self.inside * self.copies)

    @property
    def tangent(self) -> str:
        """Tangent of the iteration."""
        return getattr(self.equations, "tangent", "full")

    def followed(self, active: Array, impulses: Array) -> Array:
        """Contacts whose laws a derivative follows."""
        return followed(self.equations, active, impulses)

    def split(self, y: Array) -> tuple[Array, Array]:
        """``z`` and ``x``."""
        return y[: self.unknowns], y[self.unknowns :]

    def whole(self, border: Array, x: Array) -> Array:
        """Values of all rows: contacts, then joints and closures of every copy."""
        count, k = self.rows.ends[2], self.copies
        # copies come one after the other, each with its joints before its closures
        bilateral = jnp.concatenate([x.reshape(k, -1), border[count:].reshape(k, -1)], axis=1)
        return jnp.concatenate([border[:count], bilateral.reshape(-1)])

    def border_and_joints(self, rows: Array) -> tuple[Array, Array]:
        """Inverse of `whole`."""
        count = self.rows.ends[2]
        bilateral = rows[count:].reshape(self.copies, -1)
        closures = bilateral[:, self.inside :].reshape(-1)
        return jnp.concatenate([rows[:count], closures]), bilateral[:, : self.inside].reshape(-1)

    def _none(self) -> Array:
        return jnp.zeros(self.rows.count)

    def residual(self, data: PyTree, y: Array) -> Array:
        """Dynamics with the joints."""
        z, x = self.split(y)
        force = self.equations.forces(data, z, self.whole(self._none(), x))
        dynamics = self.equations.residual(data, z) - force
        return jnp.concatenate([dynamics, self.border_and_joints(self.equations.rates(data, z))[1]])

    def frozen(self, data: PyTree, y: Array) -> tuple[Callable[[Array], Array], bool]:
        """Inertia and joints; rates of the border depend on all unknowns."""
        z, _ = self.split(y)
        heavy, _ = self.equations.frozen(data, z)
        # linear once: the map is applied to every direction of the tangent
        rates = jax.linearize(lambda z: self.equations.rates(data, z), z)[1]

        def along(w: Array) -> Array:
            dz, dx = self.split(w)
            force = self.equations.forces(data, z, self.whole(self._none(), dx))
            return jnp.concatenate([heavy(dz) - force, self.border_and_joints(rates(dz))[1]])

        return along, False

    def forces(self, data: PyTree, y: Array, impulses: Array) -> Array:
        """``W P`` of the border."""
        z, x = self.split(y)
        force = self.equations.forces(data, z, self.whole(impulses, jnp.zeros_like(x)))
        return jnp.concatenate([force, jnp.zeros_like(x)])

    def directions(self, data: PyTree, y: Array) -> Array:
        """``W`` of the border."""
        z, x = self.split(y)
        w = self.equations.directions(data, z)
        return jnp.concatenate([w, jnp.zeros((x.shape[0], w.shape[1]))])

    def rates(self, data: PyTree, y: Array) -> Array:
        """Rates of the rows of the border."""
        return self.border_and_joints(self.equations.rates(data, self.split(y)[0]))[0]

    def friction(self, data: PyTree) -> Array:
        """Coefficients (nc,)."""
        return self.equations.friction(data)

    def given(self, data: PyTree) -> Any:
        """Normal impulses that are given, if any."""
        return self.equations.given(data)


def inside_of(equations: Any, unknowns: int) -> InteriorEquations | None:
    """`InteriorEquations` of equations whose structure interleaves joints; None for others."""
    structure = interleaving(equations.structure)
    if not equations.rows.nb or structure is None:
        return None
    return InteriorEquations(
        equations, unknowns, structure.inside(unknowns // structure.copies), structure.copies
    )


class Equations(Protocol):
    """Dynamics and rows of a step as functions of the unknown ``z`` (n,); static and hashable.

    ``residual(data, z) - W(z) P = 0`` with row velocities ``rates(data, z)``.
    """

    @property
    def structure(self) -> Structure:
        """Structure of the tangent of the dynamics; contacts and constraints are a border of it."""

    @property
    def rows(self) -> RowGroups:
        """Rows of contacts and constraints by their laws."""

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

    def given(self, data: PyTree) -> GivenForces | None:
        """Numbers of the bounded forces; None: there are none."""


class Freezing(Equations, Protocol):
    """Equations that can be iterated with a tangent frozen in position and velocity."""

    @property
    def tangent(self) -> str:
        """Tangent of the iteration: ``"full"``, ``"mass"``, or ``"kept"`` where `solve_stage` has one."""

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
    inertia, _ = equations.frozen(data, z)
    if not equations.rows.count:
        return linearised(structure, inertia, rest, *_no_rows(z))
    directions = equations.directions(data, z)
    speed = _frozen_speed(equations, data, z, directions)
    return linearised(structure, inertia, rest, directions, speed)


def _frozen_speed(equations: Any, data: PyTree, z: Array, directions: Array) -> Array:
    """``du/dz`` (rows, n) at fixed directions."""
    if equations.frozen(data, z)[1]:
        return directions.T
    return _speed(equations, data, z, directions.shape[1])


def frozen_or_by(
    equations: Any, data: PyTree, z: Array, frozen: Array, full: Callable[[], tuple[Array, Array]]
) -> StageTangent:
    """`mass_tangent` if ``frozen`` () bool, else by ``full() -> matrix (n, n), du/dz (rows, n)``."""
    structure, rows = equations.structure, equations.rows.count
    directions, none = equations.directions(data, z) if rows else _no_rows(z)[0], _no_rows(z)[1]

    def still(_: None) -> tuple[Array, Array]:
        mass = structure.tangent(equations.frozen(data, z)[0], jnp.zeros_like(z))
        return mass, _frozen_speed(equations, data, z, directions) if rows else none

    matrix, speed = lax.cond(frozen, still, lambda _: full(), None)
    return bordered(structure, matrix, speed, directions)


def _no_rows(z: Array) -> tuple[Array, Array]:
    """Directions (n, 0) and ``du/dz`` (0, n) of equations without rows."""
    return jnp.zeros((z.shape[0], 0)), jnp.zeros((0, z.shape[0]))


def kept_tangent(equations: Equations, data: PyTree, unknowns: int) -> StageTangent:
    """The tangent of a model whose structure is constant, for all steps, by data of any step."""
    return tangent_at(equations, data, jnp.zeros(unknowns), jnp.zeros(equations.rows.count))


def blank(shapes: Any) -> Any:
    """Pytree of zeros with the given shapes and types."""
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)


def no_tangent(equations: Equations, data: PyTree, unknowns: int) -> CarriedTangent:
    """`StageStart.carried` of the first step: a tangent of zeros that is not known yet."""
    joints, size = inside_of(equations, unknowns), unknowns
    if joints is not None:
        size += joints.inside * joints.copies
    shapes = jax.eval_shape(lambda: kept_tangent(joints or equations, data, size))
    return CarriedTangent(tangent=blank(shapes), known=jnp.asarray(False))
