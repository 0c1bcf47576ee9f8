"""Mechanics that all solids of hexahedra share, whatever their mesh."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError, Labels, System
from nsjax.core.errors import check_choice
from nsjax.fem.hexahedron import (
    MATERIALS,
    determinant,
    energy_density,
    equivalent,
    green_strain,
    inner,
    lame,
    von_mises,
)
from nsjax.fem.solid_mesh import ElementTables, assumed_fields, element_energies, element_forces
from nsjax.linalg import Structure
from nsjax.math import real_root
from nsjax.models.common import contact_law
from nsjax.shapes import Picture
from nsjax.types import Array, is_traced, record

SOLVERS = ("direct", "iterative")
"""Solvers of the equations of motion."""

ELEMENTS = ("assumed_stress", "displacement")
"""Kinds of hexahedra."""

LARGEST = {"assumed_stress": 0.4999, "displacement": 0.49}
"""Largest Poisson's ratios. The bulk modulus is 50 shear moduli at 0.49; a displacement element then keeps
the volume at its eight Gauss points, which blocks most of its 18 deformation modes. An assumed-stress
element keeps one volume; 5000 shear moduli at 0.4999 cost the pressure four digits of the nodal positions.
"""

DRAWN = "equivalent stress [N/m^2]"
"""Quantity that colours solids in pictures."""

OBSERVED = (
    "centre_x [m]", "centre_z [m]", "centre_dx [m/s]", "centre_dz [m/s]", "stress [N/m^2]", "strain [-]",
    "volume_ratio [-]",
)  # fmt: skip


@record()
class Fields:
    """Positions, stress and strain of a solid in a state, see `Solid.fields`.

    Args:
        places: positions of all nodes (nodes, 3) [m].
        stress, strain, volume_ratio: of the elements (elements,): means over the Gauss points of the
            equivalent (von Mises) true stress [N/m^2] and of the norm of Green's strain; least ``det F``.
        nodal_stress, nodal_strain: of the nodes (nodes,), means over the corners of the elements around
            them.
    """

    places: Array
    stress: Array
    strain: Array
    volume_ratio: Array
    nodal_stress: Array
    nodal_strain: Array


class Solid:
    """A body of hexahedra; some nodes are fixed to a base, some may touch planes. Its methods are the
    functions of the system; a frozen subclass for a kind of mesh defines the methods that raise here.

    ``q`` are the positions ``(x, y, z)`` of the free nodes; with fixed nodes ``x`` is relative to the base.
    Parameters ``p`` have the names of `nsjax.models.flexible_cube.FlexibleCube`.
    """

    element: str
    material: str
    rough: bool
    held: bool

    def nodes(self, q: Array, p: Any) -> Array:
        """Positions of all nodes (..., 3)."""
        raise NotImplementedError

    def corners(self, x: Array) -> Array:
        """Values (..., c) of all nodes at the corners of the elements (8, c, elements)."""
        raise NotImplementedError

    def gathered_forces(self, x: Array, p: Any) -> Array:
        """Sums (nv,) at the free nodes of vectors (8, 3, elements) at the corners around them."""
        raise NotImplementedError

    def tables(self, p: Any) -> ElementTables:
        """Tables of the elements of assumed stress."""
        raise NotImplementedError

    def in_order(self, x: Array) -> Array:
        """Values (nodes, ...) of all nodes in the order of the user's mesh."""
        return x

    def deformation(self, q: Array, p: Any) -> Array:
        """Deformation gradients at the Gauss points (3, 3, 8, elements)."""
        raise NotImplementedError

    def integral(self, x: Array, p: Any) -> Array:
        """Integral over the unloaded volume of a quantity given at the Gauss points (8, elements)."""
        raise NotImplementedError

    def inertia(self, q: Array, w: Array, p: Any) -> Array:
        """Consistent mass times ``w``."""
        raise NotImplementedError

    def weights(self, p: Any) -> Array:
        """Masses of the free nodes (..., ) under a uniform acceleration [kg]."""
        raise NotImplementedError

    def heights(self, x: Array) -> Array:
        """Normal components (nc,) of the vectors of the contact nodes, from nodal vectors (nv,)."""
        raise NotImplementedError

    def sideways(self, x: Array) -> Array:
        """Tangential components (nc, 2) of the vectors of the contact nodes."""
        raise NotImplementedError

    def density(self, f: Array, p: Any) -> Array:
        """Strain energy density [J/m^3] of deformation gradients (3, 3, ...)."""
        return energy_density(MATERIALS[self.material], f, *self._lame(p))

    def _lame(self, p: Any) -> tuple[Array, Array]:
        first, shear = lame(p.young, p.poisson)
        return jnp.asarray(first, float), jnp.asarray(shear, float)

    def pull(self, t: Array, p: Any) -> Array:
        """Acceleration of gravity minus that of the base (3,) [m/s^2]."""
        shaken = p.base_amplitude * p.base_frequency**2 * jnp.sin(p.base_frequency * t)
        along = p.gravity * jnp.sin(p.slope) + (shaken if self.held else 0.0)
        return jnp.stack([along, 0.0 * along, -p.gravity * jnp.cos(p.slope)])

    def lifted(self, t: Array, q: Array, p: Any) -> Array:
        """Potential energy of the weight and of the acceleration of the base [J]."""
        return -jnp.sum(self.weights(p).reshape(-1, 1) * q.reshape(-1, 3) * self.pull(t, p))

    @property
    def assumed(self) -> bool:
        """Whether elements are of assumed stress."""
        return self.element == "assumed_stress"

    def _of_elements(self, function: Any, q: Array, p: Any) -> Any:
        """Value of a function of `nsjax.fem.solid_mesh` at the positions ``q``."""
        places = self.corners(self.nodes(q, p))
        return function(places, self.tables(p), MATERIALS[self.material], *self._lame(p))

    def _upright(self, q: Array, p: Any) -> Array:
        """Factor (elements,): 1, or not a number where an element is inverted at a Gauss point."""
        return jnp.where(jnp.all(determinant(self.deformation(q, p)) > 0.0, axis=0), 1.0, jnp.nan)

    def strain_energy(self, q: Array, p: Any) -> Array:
        """Strain energy of all elements [J]."""
        if self.assumed:
            return jnp.sum(self._of_elements(element_energies, q, p) * self._upright(q, p))
        return self.integral(self.density(self.deformation(q, p), p), p)

    def potential(self, t: Array, q: Array, p: Any) -> Array:
        """Strain energy plus potential energy of the weight and of the acceleration of the base [J]."""
        return self.strain_energy(q, p) + self.lifted(t, q, p)

    def force(self, t: Array, q: Array, v: Array, p: Any) -> Array:
        """Force of the potential energy, the only one; written out for assumed-stress elements."""
        if not self.assumed:
            return -jax.grad(self.potential, argnums=1)(t, q, p)
        inner = self._of_elements(element_forces, q, p) * self._upright(q, p)
        return (self.weights(p).reshape(-1, 1) * self.pull(t, p)).reshape(-1) - self.gathered_forces(
            inner, p
        )

    def gap(self, t: Array, q: Array, p: Any) -> Array:
        """Gaps (nc,): heights of the contact nodes above their planes."""
        table = p.ground + p.table_amplitude * jnp.sin(p.table_frequency * t)
        return self.heights(q) - table

    def slip(self, t: Array, q: Array, v: Array, p: Any) -> Array:
        """Slip velocities (nc, 2): of the contact nodes along their planes, relative to the belts."""
        base = p.base_amplitude * p.base_frequency * jnp.cos(p.base_frequency * t)
        drawn = (base if self.held else 0.0) - p.belt
        return self.sideways(v) + jnp.stack([drawn, 0.0 * drawn])

    def stress(self, q: Array, p: Any) -> Array:
        """Equivalent (von Mises) true stress at the Gauss points (8, elements) [N/m^2]."""
        if self.assumed:
            return equivalent(self._of_elements(assumed_fields, q, p)[0])
        return von_mises(MATERIALS[self.material], self.deformation(q, p), *self._lame(p))

    def squared_strain(self, q: Array, p: Any) -> Array:
        """``E : E`` of Green's strain at the Gauss points (8, elements)."""
        if self.assumed:
            e = self._of_elements(assumed_fields, q, p)[1]
        else:
            e = green_strain(self.deformation(q, p))
        return inner(e, e)

    def fields(self, q: Any, p: Any) -> Fields:
        """Positions, stress and strain of elements and nodes in a state; see `solid_of`."""
        q = jnp.asarray(q)
        f, x = self.deformation(q, p), self.nodes(q, p)
        strain = real_root(self.squared_strain(q, p))
        each = jnp.mean(self.stress(q, p), axis=0), jnp.mean(strain, axis=0)
        at = self.at_nodes(jnp.stack(each), x)
        return Fields(
            places=self.in_order(x.reshape(-1, 3)), stress=each[0], strain=each[1],
            volume_ratio=jnp.min(determinant(f), axis=0),
            nodal_stress=self.in_order(at[0]), nodal_strain=self.in_order(at[1]),
        )  # fmt: skip

    def at_nodes(self, values: Array, x: Array) -> Array:
        """Means (k, nodes), over the elements around each node, of values (k, elements)."""
        full = jnp.concatenate([values, jnp.ones_like(values[:1])])
        one = jax.ShapeDtypeStruct((*x.shape[:-1], len(full)), x.dtype)
        sums = jax.linear_transpose(self.corners, one)(jnp.broadcast_to(full, (8, *full.shape)))[0]
        sums = jnp.moveaxis(sums.reshape(-1, len(full)), 1, 0)
        return sums[:-1] / sums[-1]

    def drawn_stress(self, q: Array, p: Any) -> Array:
        """Equivalent stress at the nodes (nodes,) [N/m^2], for the colours of a picture."""
        return self.at_nodes(jnp.mean(self.stress(q, p), axis=0)[None], self.nodes(q, p))[0]

    def picture(self, t: Array, q: Array, p: Any) -> Picture:
        """Picture of the solid."""
        raise NotImplementedError

    def observe(self, t: Array, q: Array, v: Array, output: Any, p: Any) -> dict[str, Array]:
        """Centre of mass of the free nodes, its velocity, and the largest stress and strain."""
        f, weights = self.deformation(q, p), self.weights(p).reshape(-1, 1)
        mean = lambda x: jnp.sum(weights * x.reshape(-1, 3), axis=0) / jnp.sum(weights)  # noqa: E731
        return {
            "centre_x": mean(q)[0], "centre_z": mean(q)[2], "centre_dx": mean(v)[0],
            "centre_dz": mean(v)[2], "stress": jnp.max(self.stress(q, p)),
            "strain": jnp.sqrt(jnp.max(self.squared_strain(q, p))), "volume_ratio": jnp.min(determinant(f)),
        }  # fmt: skip

    def _system(self, name: str, choices: Any, named: Any, contacts: Any, structure: Structure) -> System:
        """The system of this mesh; ``named``: numbers of its free nodes; ``contacts``: names."""
        labelled = 1000  # number of nodes up to which nodes get names: longer lists of names are of no use
        shown = named if len(named) <= labelled else ()
        labels = Labels(
            q=tuple(f"{axis}{k} [m]" for k in shown for axis in "xyz"),
            v=tuple(f"d{axis}{k} [m/s]" for k in shown for axis in "xyz"), contacts=tuple(contacts),
            observables=OBSERVED, path=("centre_x", "centre_z"),
        )  # fmt: skip
        n, nc = 3 * len(named), len(contacts)
        rough = self.rough and nc > 0
        return System(
            name=name, choices=choices, stiff=True, nq=n, nv=n, nc=nc, nt=2 if rough else 0,
            inertia=self.inertia, force=self.force, potential=self.potential,
            gap=self.gap if nc else None, slip=self.slip if rough else None,
            law=contact_law if nc else None, structure=structure, observe=self.observe, labels=labels,
            shapes=self.picture,
        )  # fmt: skip


def solid_of(system: System) -> Solid:
    """The `Solid` of a system of `nsjax.models.flexible_cube` or `nsjax.models.flexible_solid`; its
    `Solid.fields` are stress and strain of all elements and nodes.

    Raises:
        InputError: for any other system.

    Example:
        >>> import jax
        >>> from nsjax import models
        >>> system, params, state = models.flexible_cube(elements=(2, 1, 1))
        >>> fields = jax.jit(models.solid_of(system).fields)(state.q, params)
        >>> fields.places.shape, fields.stress.shape, fields.nodal_stress.shape
        ((12, 3), (2,), (12,))
    """
    found = getattr(getattr(system, "observe", None), "__self__", None)
    if isinstance(found, Solid):
        return found
    raise InputError(
        f"{getattr(system, 'name', system)} is no solid of elements; give the system of flexible_cube or "
        "flexible_solid"
    )


def check_solid(name: str, p: Any, element: str, material: str, rough: bool, solver: str) -> None:
    """Refuses unknown choices, friction without tangents, and Poisson's ratios out of range."""
    check_choice(f"{name}: element", element, ELEMENTS)
    check_choice(f"{name}: material", material, MATERIALS)
    check_choice(f"{name}: solver", solver, SOLVERS)
    if not rough and not is_traced(p.friction) and np.any(np.asarray(p.friction) != 0.0):
        raise InputError(f"{name}: friction = {p.friction} without tangents; give rough=True, too")
    most, given = LARGEST[element], p.poisson
    if not is_traced(given) and not np.all((np.asarray(given) > -1) & (np.asarray(given) <= most)):
        why = (
            "nearer to 0.5 the pressure is lost in the rounding of places"
            if element == "assumed_stress"
            else "beyond, elements of displacement lock; those of element='assumed_stress' do not"
        )
        raise InputError(f"{name}: poisson = {given}; it must lie above -1 and at most at {most:g}: {why}")
