"""Equations of a step whose joints are eliminated with the velocities, for the stage solver."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.linalg import Structure, interleaving
from nsjax.types import Array, PyTree


def followed(equations: Any, active: Array, impulses: Array) -> Array:
    """The ``active`` contacts (nc,) bool whose laws derivatives of a step follow: all of them, unless the
    equations choose, see `nsjax.contact.equations.Following`.
    """
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
    def nc(self) -> int:
        """Contacts."""
        count: int = self.equations.nc
        return count

    @property
    def nt(self) -> int:
        """Tangents per contact."""
        count: int = self.equations.nt
        return count

    @property
    def nb(self) -> int:
        """Bilateral rows of the border."""
        count: int = self.equations.nb
        return count - self.inside * self.copies

    @property
    def tangent(self) -> str:
        """Tangent of the iteration."""
        choice: str = getattr(self.equations, "tangent", "full")
        return choice

    def followed(self, active: Array, impulses: Array) -> Array:
        """Contacts whose laws a derivative follows."""
        return followed(self.equations, active, impulses)

    def split(self, y: Array) -> tuple[Array, Array]:
        """``z`` and ``x``."""
        return y[: self.unknowns], y[self.unknowns :]

    def whole(self, border: Array, x: Array) -> Array:
        """Values of all rows: contacts, then joints and closures of every copy."""
        count, k = self.nc * (1 + self.nt), self.copies
        bilateral = jnp.concatenate([x.reshape(k, -1), border[count:].reshape(k, -1)], axis=1)
        return jnp.concatenate([border[:count], bilateral.reshape(-1)])

    def apart(self, rows: Array) -> tuple[Array, Array]:
        """Inverse of `whole`."""
        count = self.nc * (1 + self.nt)
        bilateral = rows[count:].reshape(self.copies, -1)
        closures = bilateral[:, self.inside :].reshape(-1)
        return jnp.concatenate([rows[:count], closures]), bilateral[:, : self.inside].reshape(-1)

    def _none(self) -> Array:
        return jnp.zeros(self.nc * (1 + self.nt) + self.nb)

    def residual(self, data: PyTree, y: Array) -> Array:
        """Dynamics with the joints."""
        z, x = self.split(y)
        force = self.equations.forces(data, z, self.whole(self._none(), x))
        dynamics = self.equations.residual(data, z) - force
        return jnp.concatenate([dynamics, self.apart(self.equations.rates(data, z))[1]])

    def frozen(self, data: PyTree, y: Array) -> tuple[Callable[[Array], Array], bool]:
        """Inertia and joints; rates of the border depend on all unknowns."""
        z, _ = self.split(y)
        heavy, _ = self.equations.frozen(data, z)
        rates = jax.linearize(lambda z: self.equations.rates(data, z), z)[1]

        def along(w: Array) -> Array:
            dz, dx = self.split(w)
            force = self.equations.forces(data, z, self.whole(self._none(), dx))
            return jnp.concatenate([heavy(dz) - force, self.apart(rates(dz))[1]])

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
        return self.apart(self.equations.rates(data, self.split(y)[0]))[0]

    def friction(self, data: PyTree) -> Array:
        """Coefficients (nc,)."""
        mu: Array = self.equations.friction(data)
        return mu

    def given(self, data: PyTree) -> Any:
        """Normal impulses that are given, if any."""
        return self.equations.given(data)

    def smooth(self, data: PyTree) -> Any:
        """Contacts (nc,) bool without friction."""
        return self.equations.smooth(data)


def inside_of(equations: Any, unknowns: int) -> InteriorEquations | None:
    """`InteriorEquations` of equations whose structure interleaves joints; None for others."""
    structure = interleaving(equations.structure)
    if not equations.nb or structure is None:
        return None
    return InteriorEquations(
        equations, unknowns, structure.inside(unknowns // structure.copies), structure.copies
    )
