"""A rigid box on a rough plane: eight corners in space, four in the plane."""

from __future__ import annotations

import dataclasses
from types import MappingProxyType
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.core import InputError, Labels, Problem, State, System, add, subtract
from nsjax.forms import quantity
from nsjax.math import rotations
from nsjax.models.common import constructor, contact_law, vector
from nsjax.types import Array, is_traced, record


@record()
class Block:
    """Parameters of `block`; the field names are its keyword names."""

    size: Array | None = quantity(default=None, least=0.0)
    mass: Array | float = quantity(default=46.8, least=0.0)
    inertia: Array | None = quantity(default=None, least=0.0)
    gravity: Array | float = 9.81
    slope: Array | float = 0.0
    ground: Array | float = 0.0
    restitution: Array | float = 0.0
    restitution_tangential: Array | float = 0.0
    friction: Array | float = 0.5


SIZE = {2: np.array([0.2, 0.1]), 3: np.array([0.1, 0.2, 0.3])}


def cross(a: Array, b: Array) -> Array:
    """Cross product along the last axis; `jnp.cross` transposes axes, which costs compile time."""
    x = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    y = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    z = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return jnp.stack([x, y, z], axis=-1)


@dataclasses.dataclass(frozen=True)
class BoxDynamics:
    """Topology: dimension, coordinates, friction. Its methods are the functions of the system.

    Space: ``q = (x, y, z, quaternion wxyz)``, ``v = (velocity in the plane's axes, angular velocity
    in body axes)``. Plane: ``q = (x, z, phi)``. The plane's axes: x downhill, z along its normal.
    """

    dimension: int
    formulation: str = "rotation"
    rough: bool = True

    @property
    def signs(self) -> np.ndarray:
        """Corners (nc, dimension) in units of half edges."""
        grid = np.meshgrid(*[[1.0, -1.0]] * self.dimension, indexing="ij")
        return np.stack([axis.reshape(-1) for axis in grid], axis=1)

    def _size(self, p: Block) -> Array:
        return jnp.asarray(SIZE[self.dimension] if p.size is None else p.size)

    def _inertia(self, p: Block) -> Array:
        """Moments of inertia about the body axes: the given ones, or those of a homogeneous box."""
        square = self._size(p) ** 2
        if p.inertia is not None:
            return jnp.broadcast_to(p.inertia, (3,) if self.dimension == 3 else (1,))
        total = jnp.sum(square)
        return p.mass / 12.0 * (total - square if self.dimension == 3 else total[None])

    def corners(self, q: Array, p: Block) -> Array:
        """Corners relative to the centre in the plane's axes (nc, dimension)."""
        x = jnp.asarray(0.5 * self.signs * self._size(p))
        if self.dimension == 2:
            c, s = jnp.cos(q[2]), jnp.sin(q[2])
            return jnp.stack([c * x[:, 0] - s * x[:, 1], s * x[:, 0] + c * x[:, 1]], axis=1)
        turn = rotations.matrix(q[3:])
        return jnp.sum(turn[None, :, :] * x[:, None, :], axis=2)

    def mass(self, q: Array, p: Block) -> Array:
        """Constant diagonal mass matrix."""
        diagonal = jnp.concatenate([jnp.full(self.dimension, 1.0) * p.mass, self._inertia(p)])
        return diagonal[:, None] * np.eye(diagonal.shape[0])

    def weight(self, p: Block) -> Array:
        """Weight along the axes of the plane (dimension,) [N]."""
        along = p.mass * p.gravity * jnp.sin(p.slope)
        down = -p.mass * p.gravity * jnp.cos(p.slope)
        return jnp.stack([along, down] if self.dimension == 2 else [along, jnp.zeros_like(down), down])

    def force(self, t: Array, q: Array, v: Array, p: Block) -> Array:
        """Weight and, in space, the gyroscopic torque ``-Omega x J Omega``."""
        if self.dimension == 2:
            return jnp.concatenate([self.weight(p), jnp.zeros(1)])
        spin = v[3:]
        return jnp.concatenate([self.weight(p), -cross(spin, self._inertia(p) * spin)])

    def potential(self, t: Array, q: Array, p: Block) -> Array:
        """Potential energy of the weight, zero where the centre lies in the plane."""
        height = q[self.dimension - 1] - p.ground
        return p.mass * p.gravity * (jnp.cos(p.slope) * height - jnp.sin(p.slope) * q[0])

    def gap(self, t: Array, q: Array, p: Block) -> Array:
        """Heights of the corners above the plane (nc,)."""
        return q[self.dimension - 1] + self.corners(q, p)[:, -1] - p.ground

    def slip(self, t: Array, q: Array, v: Array, p: Block) -> Array:
        """Velocities of the corners along the plane (nc, dimension - 1)."""
        if self.dimension == 2:
            return (v[0] - v[2] * self.corners(q, p)[:, 1])[:, None]
        x = jnp.asarray(0.5 * self.signs * self._size(p))
        local = cross(jnp.broadcast_to(v[3:], x.shape), x)
        turn = rotations.matrix(q[3:])[:2]
        return v[:2] + jnp.sum(turn[None, :, :] * local[:, None, :], axis=2)

    def observe(self, t: Array, q: Array, v: Array, output: Any, p: Block) -> dict[str, Array]:
        """Height of the lowest corner."""
        return {"lowest": jnp.min(self.gap(t, q, p))}

    def picture(self, t: Array, q: Array, p: Block) -> shapes.Picture:
        """Picture in the axes of the plane."""
        d = self.dimension
        corners, up = q[:d] + self.corners(q, p), np.eye(d)[-1]
        flat = d == 2
        block = shapes.Shape(
            points=corners[np.array([0, 1, 3, 2, 0])] if flat else corners, name="block",
            kind="area" if flat else "mesh", faces=() if flat else shapes.BOX_FACES,
        )  # fmt: skip
        tangents = np.broadcast_to(
            np.eye(d)[: d - 1 if self.rough else 0], (len(corners), (d - 1) * self.rough, d)
        )
        return shapes.Picture(
            shapes=(shapes.level(p.ground * up, up, "plane"), block),
            contacts=shapes.Places(
                points=corners, normals=jnp.broadcast_to(up, corners.shape), tangents=jnp.asarray(tangents)
            ),
            axes=("x", "z") if flat else ("x", "y", "z"),
        )  # fmt: skip

    def labels(self) -> Labels:
        """Names and units."""
        names = ["".join("+" if s > 0 else "-" for s in row) for row in self.signs]
        if self.dimension == 2:
            q: tuple[str, ...] = ("x [m]", "z [m]", "phi [rad]")
            v: tuple[str, ...] = ("vx [m/s]", "vz [m/s]", "omega [rad/s]")
        else:
            q = ("x [m]", "y [m]", "z [m]", "qw", "qx", "qy", "qz")
            v = ("vx [m/s]", "vy [m/s]", "vz [m/s]")
            v += ("omega1 [rad/s]", "omega2 [rad/s]", "omega3 [rad/s]")
        contacts = tuple(f"corner {name}" for name in names)
        return Labels(q=q, v=v, contacts=contacts, observables=("lowest [m]",))

    def sizes(self) -> dict[str, Any]:
        """Sizes, ``retract`` and ``difference`` of the coordinates."""
        if self.dimension == 2:
            return {"nq": 3, "nv": 3}
        return {"nq": 7, "nv": 6, "retract": rotations.move_pose, "difference": rotations.pose_between}

    def start(self, q: Any, v: Any, p: Block) -> tuple[Any, Any]:
        """Initial coordinates and velocities from a pose and its velocity."""
        return q, v

    def system(self) -> System:
        """The system of this topology."""
        return System(
            name="block",
            choices=(
                ("dimension", self.dimension), ("formulation", self.formulation), ("rough", self.rough),
            ),
            nc=len(self.signs),
            nt=self.dimension - 1 if self.rough else 0,
            mass=self.mass, force=self.force, potential=self.potential, gap=self.gap,
            slip=self.slip if self.rough else None,
            law=contact_law, observe=self.observe, shapes=self.picture,
            labels=self.labels(),
            **self.sizes(),
        )  # fmt: skip


# The spatial block in other coordinates: directors, and corner nodes without mass.
#
# Two of the three formulations of [C section 4.1]; the third is `nsjax.models.block.BoxDynamics`. They
# describe the same motion with other equations: six nonlinear constraints and no gyroscopic forces, or 24
# constraints, gyroscopic forces and a singular mass matrix.


def _skew(w: Any, xp: Any) -> Any:
    """Matrix (3, 3) of the cross product with ``w`` (3,), by numpy for plain numbers."""
    x, y, z = w
    o = 0.0 * x
    return xp.stack([o, -z, y, z, o, -x, -y, x, o]).reshape(3, 3)


def _turn(p: Any, xp: Any) -> Any:
    """Rotation matrix (3, 3) of a unit quaternion."""
    skew = _skew(p[1:], xp)
    return np.eye(3) + 2.0 * p[0] * skew + 2.0 * skew @ skew


def _spun(turn: Any, spin: Any, xp: Any) -> Any:
    """Rate of a rotation matrix with the angular velocity ``spin`` (3,) in body axes."""
    return turn @ _skew(spin, xp)


@dataclasses.dataclass(frozen=True)
class NaturalBox(BoxDynamics):
    """Natural coordinates: ``q = (centre, d1, d2, d3)`` with directors of unit length at right angles."""

    formulation: str = "natural"

    def sizes(self) -> dict[str, Any]:
        """Sizes, constraint, ``retract`` and ``difference`` of the coordinates."""
        return {
            "nq": 12, "nv": 12, "nb": 6, "constraint": self.constraint, "retract": add,
            "difference": subtract,
        }  # fmt: skip

    def corners(self, q: Array, p: Block) -> Array:
        """Corners relative to the centre (nc, 3)."""
        x = jnp.asarray(0.5 * self.signs * self._size(p))
        return jnp.sum(x[:, :, None] * q[3:].reshape(1, 3, 3), axis=1)

    def mass(self, q: Array, p: Block) -> Array:
        """Mass matrix, constant and diagonal: ``m``, and ``int x_i^2 dm`` for every director."""
        j = self._inertia(p)
        second = 0.5 * (jnp.sum(j) - 2.0 * j)
        diagonal = jnp.concatenate([jnp.full(3, 1.0) * p.mass, jnp.repeat(second, 3)])
        return diagonal[:, None] * np.eye(12)

    def force(self, t: Array, q: Array, v: Array, p: Block) -> Array:
        """Weight; there are no gyroscopic forces."""
        return jnp.concatenate([self.weight(p), jnp.zeros(9)])

    def constraint(self, t: Array, q: Array, p: Block) -> Array:
        """Constraint ``(d_i . d_i - 1) / 2`` and ``d_i . d_j`` (6,)."""
        d = q[3:].reshape(3, 3)
        length = 0.5 * (jnp.sum(d * d, axis=1) - 1.0)
        angle = jnp.stack([jnp.sum(d[0] * d[1]), jnp.sum(d[0] * d[2]), jnp.sum(d[1] * d[2])])
        return jnp.concatenate([length, angle])

    def slip(self, t: Array, q: Array, v: Array, p: Block) -> Array:
        """Velocities of the corners along the plane (nc, 2)."""
        return v[:2] + self.corners(v, p)[:, :2]

    def start(self, q: Any, v: Any, p: Block) -> tuple[Any, Any]:
        """Coordinates of a pose (7,) and its velocity (6,); vectors of other sizes stay unchanged."""
        if q.shape != (7,) or v.shape != (6,):
            return q, v
        xp = jnp if is_traced((q, v)) else np
        turn = _turn(q[3:], xp)
        rate = _spun(turn, v[3:], xp)
        return xp.concatenate([q[:3], turn.T.reshape(-1)]), xp.concatenate([v[:3], rate.T.reshape(-1)])

    def labels(self) -> Labels:
        """Names and units."""
        axes = "xyz"
        q = [f"{a} [m]" for a in axes] + [f"d{i}{a}" for i in (1, 2, 3) for a in axes]
        v = [f"v{a} [m/s]" for a in axes] + [f"vd{i}{a} [1/s]" for i in (1, 2, 3) for a in axes]
        names = [f"|d{i}|" for i in (1, 2, 3)] + ["d1 d2", "d1 d3", "d2 d3"]
        return dataclasses.replace(super().labels(), q=tuple(q), v=tuple(v), constraints=tuple(names))


@dataclasses.dataclass(frozen=True)
class NodalBox(BoxDynamics):
    """Pose and eight corner nodes without mass, tied to the body: ``q = (centre, quaternion, nodes)``."""

    formulation: str = "nodes"

    def picture(self, t: Array, q: Array, p: Block) -> shapes.Picture:
        """Picture of the body."""
        return super().picture(t, q[:7], p)

    def sizes(self) -> dict[str, Any]:
        """Sizes, constraint, ``retract`` and ``difference`` of the coordinates."""
        return {
            "nq": 31, "nv": 30, "nb": 24, "constraint": self.constraint, "retract": _move,
            "difference": _between,
        }  # fmt: skip

    def mass(self, q: Array, p: Block) -> Array:
        """Mass matrix, constant, diagonal and singular: the nodes have no mass."""
        diagonal = jnp.concatenate([jnp.full(3, 1.0) * p.mass, self._inertia(p), jnp.zeros(24)])
        return diagonal[:, None] * np.eye(30)

    def force(self, t: Array, q: Array, v: Array, p: Block) -> Array:
        """Weight and gyroscopic torque."""
        torque = -cross(v[3:6], self._inertia(p) * v[3:6])
        return jnp.concatenate([self.weight(p), torque, jnp.zeros(24)])

    def constraint(self, t: Array, q: Array, p: Block) -> Array:
        """Constraint (24,): positions of the nodes minus those of their corners."""
        return (q[7:].reshape(8, 3) - q[:3] - self.corners(q[:7], p)).reshape(-1)

    def gap(self, t: Array, q: Array, p: Block) -> Array:
        """Heights of the nodes above the plane (8,)."""
        return q[7:].reshape(8, 3)[:, 2] - p.ground

    def slip(self, t: Array, q: Array, v: Array, p: Block) -> Array:
        """Velocities of the nodes along the plane (8, 2)."""
        return v[6:].reshape(8, 3)[:, :2]

    def start(self, q: Any, v: Any, p: Block) -> tuple[Any, Any]:
        """Coordinates of a pose (7,) and its velocity (6,); vectors of other sizes stay unchanged."""
        if q.shape != (7,) or v.shape != (6,):
            return q, v
        size = self._size(p) if p.size is None or not is_traced(p.size) else p.size
        xp = jnp if is_traced((q, v, size)) else np
        turn = _turn(q[3:], xp)
        local = 0.5 * self.signs * xp.asarray(size)
        nodes = q[:3] + local @ turn.T
        rates = v[:3] + local @ _spun(turn, v[3:], xp).T
        return xp.concatenate([q, nodes.reshape(-1)]), xp.concatenate([v, rates.reshape(-1)])

    def labels(self) -> Labels:
        """Names and units."""
        base, axes = super().labels(), "xyz"
        nodes = ["".join("+" if s > 0 else "-" for s in row) for row in self.signs]
        q = [*base.q, *(f"{a} {n} [m]" for n in nodes for a in axes)]
        v = [*base.v, *(f"v{a} {n} [m/s]" for n in nodes for a in axes)]
        names = tuple(f"{a} {n}" for n in nodes for a in axes)
        return dataclasses.replace(base, q=tuple(q), v=tuple(v), constraints=names)


def _move(q: Array, xi: Array) -> Array:
    """``retract`` of pose and nodes."""
    return jnp.concatenate([rotations.move_pose(q[:7], xi[:6]), q[7:] + xi[6:]])


def _between(q0: Array, q1: Array) -> Array:
    """``difference`` of pose and nodes."""
    return jnp.concatenate([rotations.pose_between(q0[:7], q1[:7]), q1[7:] - q0[7:]])


FORMULATIONS: MappingProxyType[str, type[BoxDynamics]] = MappingProxyType(
    {"rotation": BoxDynamics, "natural": NaturalBox, "nodes": NodalBox}
)
"""Coordinates of the spatial block."""

SPINNING_BLOCK = MappingProxyType(
    {
        "initial_q": (0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0), "initial_v": (3.0, 0.0, 0.0, 60.0, 60.0, 0.0),
        "restitution": 0.8, "rough": False,
    }
)  # fmt: skip
"""The parallelepiped of [C section 4.1] for `block`: one metre above the plane, spinning fast."""


@constructor(Block)
def block(
    params: Block, *, dimension: int = 3, formulation: str = "rotation", rough: bool = True,
    height: Any = 0.0, initial_q: Any = None, initial_v: Any = None, initial_time: Any = 0.0,
) -> Problem:  # fmt: skip
    """A rigid box on a rough, possibly inclined plane; every corner may hit, stick and slide.

    In space the attitude is a unit quaternion moved by `retract`; it never drifts. The defaults are
    the parallelepiped of [C section 4.1], at rest on the plane; ``**models.SPINNING_BLOCK`` is its start.

    Args:
        dimension: 3, or 2 for a rectangle in the vertical plane.
        formulation: in space. ``"rotation"``: pose, no constraint. ``"natural"``: centre and three
            directors, six constraints, no gyroscopic forces. ``"nodes"``: pose and eight corner nodes
            without mass, 24 constraints; only schemes for a singular mass take it.
        rough: False gives contacts without tangents: a smaller contact problem than ``friction=0`` has.
        height: of the lowest face above the plane at the start [m].
        initial_q, initial_v, initial_time: full initial state. Space: position and quaternion (7,),
            velocity and body angular velocity (6,), or the coordinates of the formulation. Plane:
            ``(x, z, phi)``.
        size: edges [m], (3,) or, in the plane, (2,); None: (0.1, 0.2, 0.3) or (0.2, 0.1).
        mass: [kg].
        inertia: about the body axes [kg m^2], (3,) or scalar; None: of a homogeneous box.
        gravity: [m/s^2].
        slope: inclination of the plane [rad], downhill is +x; axes stay along and normal to it.
        ground: position of the plane along its normal [m].
        restitution, restitution_tangential, friction: of the corners, scalars or one per corner.

    Raises:
        InputError: for a dimension other than 2 and 3, an unknown formulation, or a quaternion that is
            zero.

    Limits: the contact forces at the single corners of a face on the plane are not unique; the motion and
    the resultant force and torque are, except for the friction torque of a face that slides and turns at
    the same time.

    Source: [C section 4.1].

    Example:
        >>> from nsjax import models
        >>> models.block(slope=0.3).system.nc
        8
    """
    if dimension not in (2, 3):
        raise InputError(f"block: dimension = {dimension}; choose 2 or 3")
    if formulation not in FORMULATIONS or (dimension == 2 and formulation != "rotation"):
        known = ", ".join(FORMULATIONS) if dimension == 3 else "rotation"
        raise InputError(
            f"block: formulation = {formulation!r} with dimension = {dimension}; choose one of {known}"
        )
    if params.size is not None and np.shape(params.size) != (dimension,):
        raise InputError(f"block: size has shape {np.shape(params.size)}; give ({dimension},)")
    if initial_q is None:
        edges = SIZE[dimension] if params.size is None else params.size
        centre = params.ground + height + 0.5 * edges[dimension - 1]
        # initial position of the centre, the edges along the axes
        xp = jnp if is_traced(centre) else np
        rest = [1.0, 0.0, 0.0, 0.0] if dimension == 3 else [0.0]
        first = [0.0] * (dimension - 1)
        initial_q = xp.asarray([*first, centre, *rest])
    initial_q = vector(initial_q)
    if dimension == 3:
        initial_q = _normalised(initial_q)
    if initial_v is None:
        initial_v = np.zeros(3 * (dimension - 1))
    form = FORMULATIONS[formulation](dimension, rough=bool(rough))
    q, v = form.start(initial_q, vector(initial_v), params)
    return Problem(system=form.system(), params=params, state=State(t=initial_time, q=q, v=v))


def _normalised(q: Any) -> Any:
    """Initial position with its quaternion scaled to unit length."""
    if q.shape != (7,):
        return q  # `simulate` refuses the shape
    xp = jnp if is_traced(q) else np
    size = xp.sqrt(xp.sum(q[3:] ** 2))
    if not is_traced(q) and not size > 0:
        raise InputError(f"block: initial_q has the quaternion {q[3:].tolist()}; it must not be zero")
    return xp.concatenate([q[:3], q[3:] / size])
