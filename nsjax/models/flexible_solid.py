"""A solid of any mesh of hexahedra, fixed at some nodes, in contact with planes at others."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.core import InputError, Problem, State, System
from nsjax.fem.hexahedron import MATERIALS, deformation, piola
from nsjax.fem.solid_mesh import ElementTables, SolidMesh, mesh_tables
from nsjax.forms import quantity
from nsjax.linalg import ConjugateGradients, Dense, NodeBlocks, Pattern, Sparse, Structure, coloured
from nsjax.models.common import constructor, vector
from nsjax.models.solid import DRAWN, Solid, check_solid
from nsjax.types import Array, is_traced, record


@record()
class FlexibleSolid:
    """Parameters of `flexible_solid`; the field names are its keyword names."""

    young: Array | float = quantity(default=1e6, least=0.0)
    poisson: Array | float = 0.3
    density: Array | float = quantity(default=1e3, least=0.0)
    gravity: Array | float = 9.81
    slope: Array | float = 0.0
    place: Array | float = 0.0
    ground: Array | float = 0.0
    table_amplitude: Array | float = 0.0
    table_frequency: Array | float = 0.0
    belt: Array | float = 0.0
    base_amplitude: Array | float = 0.0
    base_frequency: Array | float = 0.0
    restitution: Array | float = 0.0
    restitution_tangential: Array | float = 0.0
    friction: Array | float = 0.0


def _axes(normal: Any) -> np.ndarray:
    """Unit normal and two tangents of a plane, rows (3, 3)."""
    n = np.asarray(normal, float)
    if n.shape != (3,) or not np.isfinite(n).all() or not n.any():
        raise InputError(
            f"flexible_solid: contact with normal {normal!r}; give three numbers, not all zero"
        )
    n = n / np.sqrt(n @ n)
    # component of a normal along ``x`` above which the first direction of its plane is made from ``y``
    steep = 0.9
    along = np.eye(3)[1 if abs(n[0]) > steep else 0]
    first = along - n * (n @ along)
    first = first / np.sqrt(first @ first)
    return np.stack([n, first, np.cross(n, first)])


@dataclasses.dataclass(frozen=True)
class MeshedSolid(Solid):
    """Topology: mesh (compared by identity), fixed sets, sets in contact with the normals of their planes.
    Its methods are the functions of the system.

    The internal order of the nodes: free nodes first, fixed ones last. Sums at nodes are gathers, as are
    corner values, since a scatter would split the kernel of the time loop; reverse mode has scatters.
    """

    mesh: SolidMesh
    fixed: tuple[str, ...]
    planes: tuple[tuple[str, tuple[float, ...]], ...]
    element: str
    material: str
    rough: bool
    solver: str

    @functools.cached_property
    def fixed_nodes(self) -> np.ndarray:
        """Fixed nodes, by their numbers in the mesh."""
        found = [self.mesh.nodes(name) for name in self.fixed]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, int)

    @functools.cached_property
    def free_nodes(self) -> np.ndarray:
        """Free nodes, by their numbers in the mesh."""
        return np.setdiff1d(np.arange(len(self.mesh.places)), self.fixed_nodes)

    @property
    def held(self) -> bool:  # type: ignore[override]
        """Whether nodes are fixed to the base."""
        return bool(len(self.fixed_nodes))

    @functools.cached_property
    def order(self) -> np.ndarray:
        """Internal number of each node of the mesh."""
        found = np.zeros(len(self.mesh.places), int)
        found[np.concatenate([self.free_nodes, self.fixed_nodes])] = np.arange(len(found))
        return found

    @functools.cached_property
    def connected(self) -> np.ndarray:
        """Nodes of the elements (8, elements), internal numbers."""
        return np.asarray(self.order[self.mesh.corners].T)

    @functools.cached_property
    def around(self) -> np.ndarray:
        """Element corners at every free node (most, free nodes); unused: ``8 elements``."""
        nodes = self.connected.reshape(-1)
        at = [np.flatnonzero(nodes == k) for k in range(len(self.free_nodes))]
        most = max(len(x) for x in at)
        return np.stack([np.pad(x, (0, most - len(x)), constant_values=nodes.size) for x in at], axis=1)

    @functools.cached_property
    def touching(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Free node, plane, and axes of the plane (nc, 3, 3) of every contact."""
        nodes = [np.setdiff1d(self.mesh.nodes(name), self.fixed_nodes) for name, _ in self.planes]
        which = np.repeat(np.arange(len(nodes)), [len(x) for x in nodes])
        axes = np.array([_axes(normal) for _, normal in self.planes]).reshape(-1, 3, 3)
        return self.order[np.concatenate([np.zeros(0, int), *nodes])], which, axes[which]

    def nodes(self, q: Array, p: FlexibleSolid) -> Array:
        """Positions of all nodes (nodes, 3), free ones first."""
        free = q.reshape(-1, 3)
        if not self.held:
            return free
        return jnp.concatenate([free, self.mesh.places[self.fixed_nodes] + jnp.broadcast_to(p.place, (3,))])

    def corners(self, x: Array) -> Array:
        """Values (nodes, c) at the corners of the elements (8, c, elements)."""
        return jnp.moveaxis(x[self.connected], 2, 1)

    def gathered(self, x: Array) -> Array:
        """Sums (free nodes, c) of values (8, c, elements) at the corners around the free nodes."""
        flat = jnp.moveaxis(x, 1, 2).reshape(-1, x.shape[1])
        flat = jnp.concatenate([flat, jnp.zeros((1, x.shape[1]))])
        return jnp.sum(flat[self.around], axis=0)

    def gathered_forces(self, x: Array, p: FlexibleSolid) -> Array:
        """Sums (nv,) at the free nodes of vectors at the corners around them."""
        return self.gathered(x).reshape(-1)

    @functools.cached_property
    def _tables(self) -> ElementTables:
        places = np.moveaxis(self.mesh.places[self.mesh.corners], 0, 2)
        return mesh_tables(places, self.mesh.gradients, self.mesh.volumes)

    def tables(self, p: FlexibleSolid) -> ElementTables:
        """Tables of the elements of assumed stress."""
        return self._tables

    def in_order(self, x: Array) -> Array:
        """Values of all nodes in the order of the mesh."""
        return x[self.order]

    def deformation(self, q: Array, p: FlexibleSolid) -> Array:
        """Deformation gradients at the Gauss points (3, 3, 8, elements)."""
        return deformation(self.corners(self.nodes(q, p)), jnp.asarray(self.mesh.gradients))

    def integral(self, x: Array, p: FlexibleSolid) -> Array:
        """Integral over the volume of a quantity given at the Gauss points."""
        return jnp.sum(x * self.mesh.volumes)

    def inertia(self, q: Array, w: Array, p: FlexibleSolid) -> Array:
        """Consistent mass times ``w``."""
        full = jnp.concatenate([w.reshape(-1, 3), jnp.zeros((len(self.fixed_nodes), 3))])
        pushed = jnp.sum(self.mesh.masses[:, :, None] * self.corners(full), axis=1)
        return p.density * self.gathered(pushed).reshape(-1)

    def weights(self, p: FlexibleSolid) -> Array:
        """Masses of the free nodes under a uniform acceleration (free nodes,) [kg]."""
        each = np.append(self.mesh.masses.sum(axis=1).reshape(-1), 0.0)
        return p.density * jnp.asarray(each[self.around].sum(axis=0))

    def force(self, t: Array, q: Array, v: Array, p: FlexibleSolid) -> Array:
        """Force of the potential energy: ``-sum P dN/dX dV``, written out and assembled."""
        if self.assumed:
            return super().force(t, q, v, p)
        stress = piola(MATERIALS[self.material], self.deformation(q, p), *self._lame(p)) * self.mesh.volumes
        # (corners, 1, axes, points, elements): the second axis is that of the force's components
        each = np.transpose(self.mesh.gradients, (1, 2, 0, 3))[:, None]
        inner = jnp.sum(stress * each, axis=(2, 3))
        return (self.weights(p)[:, None] * self.pull(t, p) - self.gathered(inner)).reshape(-1)

    def gap(self, t: Array, q: Array, p: FlexibleSolid) -> Array:
        """Gaps (nc,): heights of the contact nodes above their planes."""
        ground = jnp.broadcast_to(jnp.asarray(p.ground, float), (len(self.planes),))[self.touching[1]]
        return self.heights(q) - ground - p.table_amplitude * jnp.sin(p.table_frequency * t)

    def slip(self, t: Array, q: Array, v: Array, p: FlexibleSolid) -> Array:
        """Slip velocities (nc, 2): of the contact nodes along their planes, relative to the belts."""
        axes = self.touching[2]
        base = p.base_amplitude * p.base_frequency * jnp.cos(p.base_frequency * t) if self.held else 0.0
        drawn = base * axes[:, 1:, 0] - p.belt * np.array([1.0, 0.0])
        return self.sideways(v) + drawn

    def heights(self, x: Array) -> Array:
        """Normal components (nc,) of the vectors of the contact nodes."""
        nodes, _, axes = self.touching
        return jnp.sum(x.reshape(-1, 3)[nodes] * axes[:, 0], axis=1)

    def sideways(self, x: Array) -> Array:
        """Tangential components (nc, 2) of the vectors of the contact nodes."""
        nodes, _, axes = self.touching
        return jnp.sum(x.reshape(-1, 3)[nodes][:, None] * axes[:, 1:], axis=2)

    def picture(self, t: Array, q: Array, p: FlexibleSolid) -> shapes.Picture:
        """Picture: the surface, coloured by stress, the edges of its elements, and the planes."""
        base = p.base_amplitude * jnp.sin(p.base_frequency * t) if self.held else 0.0 * t
        places = self.nodes(q, p) + jnp.stack([base, 0.0 * t, 0.0 * t])
        kept, quads = np.unique(self.order[self.mesh.surface], return_inverse=True)
        quads = quads.reshape(-1, 4)
        triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
        faces = tuple(map(tuple, triangles.tolist()))
        around = np.pad(kept[quads[:, [0, 1, 2, 3, 0]]], ((0, 0), (0, 1)), constant_values=-1).reshape(-1)
        edges = jnp.where(around[:, None] >= 0, places[np.maximum(around, 0)], jnp.nan)
        nodes, _, axes = self.touching
        return shapes.Picture(
            shapes=(
                *self._drawn_planes(t, p),
                shapes.Shape(
                    points=places[kept], name="solid", kind="mesh", faces=faces,
                    values=self.drawn_stress(q, p)[kept], quantity=DRAWN,
                ),
                shapes.Shape(points=edges, name="edges", role="spring"),
            ),
            contacts=shapes.Places(
                points=places[nodes], normals=jnp.asarray(axes[:, 0]),
                tangents=jnp.asarray(axes[:, 1 : 1 + 2 * self.rough]),
            ) if len(nodes) else None,
        )  # fmt: skip

    def _drawn_planes(self, t: Array, p: FlexibleSolid) -> list[shapes.Shape]:
        level = jnp.broadcast_to(jnp.asarray(p.ground, float), (len(self.planes),))
        level = level + p.table_amplitude * jnp.sin(p.table_frequency * t)
        normals = [_axes(normal)[0] for _, normal in self.planes]
        return [
            shapes.level(level[k] * n, n, f"plane of {self.planes[k][0]}") for k, n in enumerate(normals)
        ]

    def _structure(self) -> Structure:
        """Structure of the matrices: dense, a band, or conjugate gradients with contacts at their nodes."""
        n = len(self.free_nodes)
        inside = [[int(k) for k in element if k < n] for element in self.connected.T]
        if self.solver == "iterative":
            return ConjugateGradients(NodeBlocks(coloured(n, inside), 3), tuple(self.touching[0].tolist()))
        # number of unknowns up to which the matrix is dense: the band of such a mesh, a few elements
        # across, is as wide
        small = 150
        if 3 * n <= small:
            return Dense()
        return Sparse(
            Pattern.of_elements(3 * n, [[3 * k + i for k in e for i in range(3)] for e in inside])
        )

    def system(self) -> System:
        """The system of this mesh."""
        nodes, which, _ = self.touching
        numbers = self.free_nodes[nodes]
        several = len(self.planes) > 1
        contacts = [
            f"{self.planes[k][0]} node {j}" if several else f"node {j}"
            for k, j in zip(which, numbers, strict=True)
        ]
        choices = (
            ("nodes", len(self.mesh.places)), ("elements", len(self.mesh.elements)),
            ("element", self.element), ("material", self.material), ("rough", self.rough),
            ("fixed", self.fixed), ("contact", tuple(name for name, _ in self.planes)),
            ("solver", self.solver),
        )  # fmt: skip
        return self._system("flexible_solid", choices, self.free_nodes, contacts, self._structure())


def _named(given: Any) -> tuple[str, ...]:
    """Names of sets."""
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)


@constructor(FlexibleSolid)
def flexible_solid(
    params: FlexibleSolid, mesh: SolidMesh, *, contact: Any = None, fixed: Any = (),
    element: str = "assumed_stress", material: str = "st_venant_kirchhoff", rough: bool = False,
    solver: str = "direct", velocity: Any = 0.0, initial_q: Any = None, initial_v: Any = None,
    initial_time: Any = 0.0,
) -> Problem:  # fmt: skip
    """A body of your own mesh of eight-node hexahedra falls, slides and bends against planes.

    Elements, materials and parameters are those of `nsjax.models.flexible_cube`.

    Args:
        mesh: of `nsjax.fem.read_mesh`, or a `nsjax.fem.SolidMesh` made by hand.
        contact: set of the nodes that may touch the floor ``z = ground``, several sets, or a mapping of
            sets to the normals of their planes ``n . x = ground``, pointing to the side of the body. Nodes
            that are fixed as well have no contact.
        fixed: sets of nodes whose positions are prescribed; their base may move.
        element: ``"assumed_stress"``, which does not lock, or ``"displacement"``.
        material: ``"st_venant_kirchhoff"`` or ``"neo_hooke"``.
        rough: True gives the contacts tangents, which ``friction`` needs.
        solver: ``"direct"``: a dense matrix up to 150 unknowns, a band up to some thousand.
            ``"iterative"``: `nsjax.linalg.ConjugateGradients` with blocks of nodes, for larger meshes; its
            contacts suit `nsjax.schemes.nsga_decoupled`.
        velocity: of all nodes at the start [m/s], (3,) or one for all three directions.
        initial_q, initial_v, initial_time: full initial state: positions and velocities of the free nodes,
            in the order of the mesh.
        young, poisson, density: of the material [N/m^2], [-], [kg/m^3].
        gravity, slope: [m/s^2], along ``-z``, turned by ``slope`` [rad] towards ``+x``.
        place: displacement of the whole mesh before the start [m], (3,) or one for all three directions.
        ground: positions of the planes along their normals [m], one or one per plane.
        table_amplitude, table_frequency: all planes move as ``A sin(w t)`` along their normals [m],
            [rad/s].
        belt: velocity of the planes along their first direction, ``x`` of a floor [m/s].
        base_amplitude, base_frequency: fixed nodes move along ``x`` as ``A sin(w t)`` [m], [rad/s];
            positions and velocities are relative to them.
        restitution, restitution_tangential, friction: of the nodes, scalars or one per contact.

    Returns:
        A `Problem` with one contact per node of a set and plane; `nsjax.models.solid_of` shows stress and
        strain.

    Raises:
        InputError: for an unknown parameter, element, material or set, a ``mesh`` of another type, and
            friction without ``rough``.

    Limits: there are no derivatives with respect to the reference positions of the nodes. See
    `nsjax.models.flexible_cube` for the limits of its elements.

    Example:
        >>> import numpy as np
        >>> from nsjax import models
        >>> from nsjax.fem import SolidMesh
        >>> x = 0.1 * np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], float)
        >>> wedge = np.concatenate([x, 0.7 * x + [0, 0, 0.1]])
        >>> mesh = SolidMesh(wedge, np.arange(8)[None])
        >>> problem = models.flexible_solid(mesh, contact="z_min", place=0.2)
        >>> problem.system.nv, problem.system.nc
        (24, 4)
    """
    if not isinstance(mesh, SolidMesh):
        raise InputError(
            f"flexible_solid: the mesh is of type {type(mesh).__name__}; read one with "
            "nsjax.fem.read_mesh(path)"
        )
    check_solid("flexible_solid", params, element, material, rough, solver)
    floor = (0.0, 0.0, 1.0)  # its normal
    planes = dict(contact) if isinstance(contact, Mapping) else dict.fromkeys(_named(contact), floor)
    solid = MeshedSolid(
        mesh, _named(fixed), tuple((name, tuple(map(float, n))) for name, n in planes.items()), element,
        material, bool(rough), solver,
    )  # fmt: skip
    if not len(solid.free_nodes):
        raise InputError(
            f"flexible_solid: fixed = {', '.join(solid.fixed)} leaves no node free; name fewer sets"
        )
    traced = is_traced((params.place, velocity))
    xp: Any = jnp if traced else np
    places = mesh.places[solid.free_nodes] + xp.broadcast_to(params.place, (3,))
    moving = xp.broadcast_to(vector(velocity, 3), places.shape)
    q = places.reshape(-1) if initial_q is None else vector(initial_q)
    v = moving.reshape(-1) if initial_v is None else vector(initial_v)
    return Problem(system=solid.system(), params=params, state=State(t=initial_time, q=q, v=v))
