"""A soft solid brick that falls on a plane."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.core import InputError, Problem, State, System
from nsjax.core.errors import check_choice
from nsjax.fem.hexahedron import box_inertia, brick_gradients, corners_of, deformation
from nsjax.fem.solid_mesh import ElementTables, brick_tables
from nsjax.forms import quantity
from nsjax.linalg import ConjugateGradients, Lattice, Separable, Structure
from nsjax.models.common import constructor, vector
from nsjax.models.solid import DRAWN, Solid, check_solid
from nsjax.types import Array, is_traced, record

HELD = ("none", "upper")
"""Choices of the face whose nodes are prescribed."""


@record()
class FlexibleCube:
    """Parameters of `flexible_cube`; the field names are its keyword names."""

    size: Array | float = quantity(default=0.1, least=0.0)
    young: Array | float = quantity(default=90.0, least=0.0)
    poisson: Array | float = 0.3
    density: Array | float = quantity(default=1.0, least=0.0)
    gravity: Array | float = 9.81
    slope: Array | float = 0.0
    ground: Array | float = 0.0
    table_amplitude: Array | float = 0.0
    table_frequency: Array | float = 0.0
    belt: Array | float = 0.0
    level: Array | float = 0.0
    base_amplitude: Array | float = 0.0
    base_frequency: Array | float = 0.0
    restitution: Array | float = 0.0
    restitution_tangential: Array | float = 0.0
    friction: Array | float = 0.0


@dataclasses.dataclass(frozen=True)
class Brick(Solid):
    """Topology: numbers of elements along the edges, material, whether contacts have tangents and the upper
    face is held. Its methods are the functions of the system.

    ``q`` are the positions ``(x, y, z)`` of the free nodes, z running fastest; the ``x`` of a held brick is
    relative to its base.
    """

    elements: tuple[int, int, int]
    element: str = "assumed_stress"
    material: str = "st_venant_kirchhoff"
    rough: bool = False
    held: bool = False
    solver: str = "direct"

    @property
    def grid(self) -> tuple[int, int, int]:
        """Free nodes along the edges."""
        m, n, o = self.elements
        return m + 1, n + 1, o + (not self.held)

    def edges(self, p: FlexibleCube) -> Array:
        """Lengths of the edges (3,) [m]."""
        return jnp.broadcast_to(jnp.asarray(p.size, float), (3,))

    def reference(self, p: FlexibleCube) -> Array:
        """Positions of all nodes without load, (m + 1, n + 1, o + 1, 3); the lower face at ``p.level``."""
        edges, (m, n, o) = self.edges(p), self.elements
        x, y, z = (np.linspace(-0.5, 0.5, k + 1) for k in (m, n, o))
        unit = np.stack(np.meshgrid(x, y, z + 0.5, indexing="ij"), axis=-1)
        return edges * unit + jnp.stack([0.0, 0.0, 1.0 * p.level])

    def nodes(self, q: Array, p: FlexibleCube) -> Array:
        """Positions of all nodes (m + 1, n + 1, o + 1, 3)."""
        free = q.reshape(*self.grid, 3)
        return jnp.concatenate([free, self.reference(p)[:, :, -1:]], axis=2) if self.held else free

    def _element(self, p: FlexibleCube) -> tuple[Array, Array]:
        """Lengths of the edges (3,) [m] and volume [m^3] of an element."""
        edges = self.edges(p) / np.array(self.elements)
        return edges, edges[0] * edges[1] * edges[2]

    def deformation(self, q: Array, p: FlexibleCube) -> Array:
        """Deformation gradients at the Gauss points (3, 3, 8, elements)."""
        edges, _ = self._element(p)
        return deformation(corners_of(self.nodes(q, p)), brick_gradients(edges))

    def corners(self, x: Array) -> Array:
        """Nodal values at the corners of the elements (8, c, elements)."""
        return corners_of(x)

    def gathered_forces(self, x: Array, p: FlexibleCube) -> Array:
        """Sums (nv,) at the free nodes of vectors at the corners around them."""
        m, n, o = (k + 1 for k in self.elements)
        nodes = jax.ShapeDtypeStruct((m, n, o, 3), x.dtype)
        return jax.linear_transpose(corners_of, nodes)(x)[0][:, :, : self.grid[2]].reshape(-1)

    def tables(self, p: FlexibleCube) -> ElementTables:
        """Tables of the elements of assumed stress."""
        return brick_tables(self._element(p)[0])

    def integral(self, x: Array, p: FlexibleCube) -> Array:
        """Integral over the volume of a quantity given at the Gauss points."""
        return jnp.sum(x) * self._element(p)[1] / 8.0

    def _times_mass(self, w: Array, p: FlexibleCube) -> Array:
        """``M w`` for vectors ``w`` of all nodes."""
        return box_inertia(w, p.density * self._element(p)[1])

    def inertia(self, q: Array, w: Array, p: FlexibleCube) -> Array:
        """Consistent mass times ``w``."""
        w = w.reshape(*self.grid, 3)
        if not self.held:
            return self._times_mass(w, p).reshape(-1)
        return self._times_mass(jnp.pad(w, ((0, 0), (0, 0), (0, 1), (0, 0))), p)[:, :, :-1].reshape(-1)

    def weights(self, p: FlexibleCube) -> Array:
        """Masses of the free nodes under a uniform acceleration (m + 1, n + 1, o + 1 or o) [kg]."""
        full = jnp.ones((*(k + 1 for k in self.elements), 1))
        return self._times_mass(full, p)[:, :, : self.grid[2], 0]

    def lower(self, x: Array) -> Array:
        """Vectors (nc, 3) of the nodes of the lower face, from the vectors ``x`` of the free nodes."""
        return x.reshape(*self.grid, 3)[:, :, 0].reshape(-1, 3)

    def heights(self, x: Array) -> Array:
        """Normal components (nc,) of the vectors of the nodes of the lower face."""
        return self.lower(x)[:, 2]

    def sideways(self, x: Array) -> Array:
        """Tangential components (nc, 2) of the vectors of the nodes of the lower face."""
        return self.lower(x)[:, :2]

    def picture(self, t: Array, q: Array, p: FlexibleCube) -> shapes.Picture:
        """Picture: the surface, coloured by stress, and the edges of the brick."""
        base = p.base_amplitude * jnp.sin(p.base_frequency * t) if self.held else 0.0
        nodes = self.nodes(q, p) + jnp.stack([base + 0.0 * t, 0.0 * t, 0.0 * t])
        places = nodes.reshape(-1, 3)
        surface, faces, lines = _surface(self.elements)
        edges = jnp.where(lines[:, None] >= 0, places[np.maximum(lines, 0)], jnp.nan)
        table = p.ground + p.table_amplitude * jnp.sin(p.table_frequency * t)
        lower = nodes[:, :, 0].reshape(-1, 3)
        across = np.eye(3)[: 2 * self.rough]
        return shapes.Picture(
            shapes=(
                shapes.level(jnp.stack([0.0 * t, 0.0 * t, table]), (0.0, 0.0, 1.0), "plane"),
                shapes.Shape(
                    points=places[surface], name="brick", kind="mesh", faces=faces,
                    values=self.drawn_stress(q, p)[surface], quantity=DRAWN,
                ),
                shapes.Shape(points=edges, name="edges", role="spring"),
            ),
            contacts=shapes.Places(
                points=lower, normals=jnp.broadcast_to(jnp.asarray([0.0, 0.0, 1.0]), lower.shape),
                tangents=jnp.broadcast_to(across, (lower.shape[0], *across.shape)),
            ),
        )  # fmt: skip

    def _structure(self) -> Structure:
        """Structure of the matrices: elimination, or conjugate gradients with contacts at their nodes."""
        if self.solver == "direct":
            return Lattice(self.grid, 3)
        m, n, o = self.grid
        touched = tuple(int(k) * o for k in range(m * n))
        return ConjugateGradients(Separable(self.grid, 3, (False, False, self.held)), touched)

    def system(self) -> System:
        """The system of this mesh."""
        m, n, o = self.grid
        choices = (
            ("elements", self.elements), ("element", self.element), ("material", self.material),
            ("rough", self.rough), ("held", HELD[self.held]), ("solver", self.solver),
        )  # fmt: skip
        contacts = [f"node {i * o * n + j * o}" for i in range(m) for j in range(n)]
        return self._system("flexible_cube", choices, range(m * n * o), contacts, self._structure())


@constructor(FlexibleCube)
def flexible_cube(
    params: FlexibleCube, *, elements: Any = 5, element: str = "assumed_stress",
    material: str = "st_venant_kirchhoff", rough: bool = False, held: str = "none", solver: str = "direct",
    height: Any = 0.3, velocity: Any = 0.0, initial_q: Any = None, initial_v: Any = None,
    initial_time: Any = 0.0,
) -> Problem:  # fmt: skip
    """A soft solid brick falls on a plane; every node of its lower face may hit, stick and slide.

    Eight-node hexahedra for large displacements. The defaults are the cube of [C section 4.4]: it touches
    after 0.247 s with 2.43 m/s, rests for 0.03 s and leaves again; the paper has ``"displacement"``.

    Args:
        elements: numbers of elements along the edges, three or one for all.
        element: ``"assumed_stress"`` (`nsjax.fem.solid_mesh`): does not lock in bending nor for nearly
            incompressible materials, and costs less in large meshes. ``"displacement"``
            (`nsjax.fem.hexahedron`), the paper's, locks in both.
        material: ``"st_venant_kirchhoff"`` or ``"neo_hooke"``.
        rough: True gives the contacts tangents, which ``friction`` needs; without tangents the contact
            problem has a third of the size.
        held: ``"upper"``: the nodes of the upper face are prescribed, the brick hangs from a base.
        solver: ``"direct"``: `nsjax.linalg.Lattice`, up to some thousand unknowns. ``"iterative"``:
            `nsjax.linalg.ConjugateGradients`, for more; its contacts suit `nsjax.schemes.nsga_decoupled`,
            with ``gradient="discrete"`` where it is differentiated.
        height: of the lower face over the plane at the start [m].
        velocity: of all nodes at the start [m/s], (3,) or one for all three directions.
        initial_q, initial_v, initial_time: full initial state: positions and velocities of the free nodes,
            z running fastest.
        size: lengths of the edges [m], (3,) or one for all.
        young, poisson, density: of the material [N/m^2], [-], [kg/m^3].
        gravity: [m/s^2].
        slope: inclination of the plane [rad], downhill is +x; axes stay along and normal to it.
        ground: position of the plane along its normal [m].
        table_amplitude, table_frequency: the plane moves as ``A sin(w t)`` along its normal [m], [rad/s].
        belt: velocity of the plane along x [m/s].
        level: height of the lower face of a held brick without load [m]; set from ``height``.
        base_amplitude, base_frequency: a held face moves along x as ``A sin(w t)`` [m], [rad/s]; positions
            and velocities are relative to it.
        restitution, restitution_tangential, friction: of the nodes, scalars or one per contact. Only the
            node takes part in an impact, so that their effect vanishes as the mesh is refined.

    Returns:
        A `Problem` with one contact per node of the lower face.

    Raises:
        InputError: for an unknown parameter, element, material or face, invalid numbers of elements, and
            friction without ``rough``.

    Limits: a clamped bar (``L / h = 10``) with one assumed-stress element through its thickness sinks by
    0.98 to 1.00 of the deflection of Timoshenko's beam for Poisson's ratios from 0 to 0.45; with one
    displacement element by 0.67 to 0.51, and by thousandths if the bar is thin. Trapezoids stiffen both
    (guide, Limits). Poisson's ratio is at most 0.4999, with displacement elements 0.49. An inverted element
    (``det F <= 0``) has a force that is not a number and ends the run. St. Venant-Kirchhoff loses its
    stability below a stretch of 0.577: with the default impact, meshes of 10 displacement elements along an
    edge invert within 0.012 s of contact, of assumed-stress elements within 0.023 s; with neo-Hooke both
    rebound with the same speed. Contacts are nodes against a plane.

    Source: [C section 4.4].

    Example:
        >>> from nsjax import models
        >>> system = models.flexible_cube(elements=(2, 1, 1)).system
        >>> system.nv, system.nc
        (36, 6)
    """
    # numbers of elements along the edges
    try:
        m, n, o = np.broadcast_to(np.asarray(elements), (3,)).tolist()
    except ValueError:
        m = n = o = 0
    if not all(isinstance(k, int) and k >= 1 for k in (m, n, o)):
        raise InputError(
            f"flexible_cube: elements = {elements!r}; give one whole number above zero, or one per edge"
        )
    counts = m, n, o
    check_solid("flexible_cube", params, element, material, rough, solver)
    check_choice("flexible_cube: held", held, HELD)
    brick = Brick(counts, element, material, bool(rough), held == "upper", solver)
    if brick.held:
        params = dataclasses.replace(params, level=params.ground + height)
    q, v = _start(brick, params, height, velocity)
    q = q if initial_q is None else vector(initial_q)
    v = v if initial_v is None else vector(initial_v)
    return Problem(system=brick.system(), params=params, state=State(t=initial_time, q=q, v=v))


@functools.cache
def _surface(elements: tuple[int, int, int]) -> tuple[np.ndarray, Any, np.ndarray]:
    """Nodes of the surface, its triangles, and the nodes along the twelve edges with -1 after each edge."""
    sizes = tuple(k + 1 for k in elements)
    number = np.arange(np.prod(sizes)).reshape(sizes)
    sides = [np.take(number, end, axis) for axis in range(3) for end in (0, -1)]
    squares = [(x[:-1, :-1], x[1:, :-1], x[1:, 1:], x[:-1, 1:]) for x in sides]
    corners = np.concatenate([np.stack(x, axis=-1).reshape(-1, 4) for x in squares])
    kept, place = np.unique(corners, return_inverse=True)
    place = place.reshape(-1, 4)
    triangles = np.concatenate([place[:, [0, 1, 2]], place[:, [0, 2, 3]]])
    lines = [line for x in sides[:4] for line in (x[0], x[-1], x[:, 0], x[:, -1])]
    broken = np.concatenate([part for line in lines for part in (line, [-1])])
    return kept, tuple(map(tuple, triangles.tolist())), broken


def _start(brick: Brick, p: FlexibleCube, height: Any, velocity: Any) -> tuple[Any, Any]:
    """Initial state: the undeformed brick over the plane, all nodes with the same velocity."""
    m, n, o = brick.elements
    x, y, z = (np.linspace(-0.5, 0.5, k + 1) for k in (m, n, o))
    unit = np.stack(np.meshgrid(x, y, z + 0.5, indexing="ij"), axis=-1)[:, :, : brick.grid[2]]
    if np.shape(p.size) not in ((), (3,)):
        raise InputError(f"flexible_cube: size has shape {np.shape(p.size)}; give one number or (3,)")
    traced = is_traced((p.size, p.ground, height))
    xp: Any = jnp if traced else np
    lift = p.ground + height
    q = xp.broadcast_to(xp.asarray(p.size, float), (3,)) * unit + xp.stack([0.0 * lift, 0.0 * lift, lift])
    whole = vector(velocity, 3)
    v = (jnp if is_traced(whole) else np).broadcast_to(whole, unit.shape)
    return q.reshape(-1), v.reshape(-1)
