"""A rigid box on a rough plane: eight corners in space, four in the plane."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.contact import ContactLaw
from nsjax.core import InputError, Labels, Problem, State, System, add, subtract
from nsjax.core.checks import is_traced
from nsjax.math import rotations
from nsjax.models.common import constructor, vector
from nsjax.types import Array, record


@record()
class Block:
    """Parameters of `block`; the field names are its keyword names."""

    size: Array | None = None
    mass: Array | float = 46.8
    inertia: Array | None = None
    gravity: Array | float = 9.81
    slope: Array | float = 0.0
    ground: Array | float = 0.0
    restitution: Array | float = 0.0
    restitution_tangential: Array | float = 0.0
    friction: Array | float = 0.5


SIZE = {2: np.array([0.2, 0.1]), 3: np.array([0.1, 0.2, 0.3])}


def _cross(a: Array, b: Array) -> Array:
    """Cross product along the last axis; `jnp.cross` moves axes, which costs compile time."""
    x = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    y = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    z = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return jnp.stack([x, y, z], axis=-1)


@dataclasses.dataclass(frozen=True)
class Box:
    """Topology: the dimension. Its methods are the functions of the system.

    Space: ``q = (x, y, z, quaternion wxyz)``, ``v = (velocity in the plane's axes, angular velocity
    in body axes)``. Plane: ``q = (x, z, phi)``. The plane's axes: x downhill, z along its normal.
    """

    dimension: int

    @property
    def signs(self) -> np.ndarray:
        """Corners (nc, dimension) in units of half edges."""
        grid = np.meshgrid(*[[1.0, -1.0]] * self.dimension, indexing="ij")
        return np.stack([axis.reshape(-1) for axis in grid], axis=1)

    def _size(self, p: Block) -> Array:
        return jnp.asarray(SIZE[self.dimension] if p.size is None else p.size)

    def _inertia(self, p: Block) -> Array:
        """Moments of inertia about the body axes; of a homogeneous box unless given."""
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

    def force(self, t: Array, q: Array, v: Array, p: Block) -> Array:
        """Weight and, in space, the gyroscopic torque ``-Omega x J Omega``."""
        along = p.mass * p.gravity * jnp.sin(p.slope)
        down = -p.mass * p.gravity * jnp.cos(p.slope)
        zero = jnp.zeros_like(down)
        if self.dimension == 2:
            return jnp.stack([along, down, zero])
        spin = v[3:]
        return jnp.concatenate([jnp.stack([along, zero, down]), -_cross(spin, self._inertia(p) * spin)])

    def potential(self, t: Array, q: Array, p: Block) -> Array:
        """Potential energy of the weight, zero for a centre in the plane."""
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
        local = _cross(jnp.broadcast_to(v[3:], x.shape), x)
        turn = rotations.matrix(q[3:])[:2]
        return v[:2] + jnp.sum(turn[None, :, :] * local[:, None, :], axis=2)

    def law(self, p: Block) -> ContactLaw:
        """Impact and friction law of the corners."""
        return ContactLaw(
            restitution=p.restitution,
            restitution_tangential=p.restitution_tangential,
            friction=p.friction,
        )

    def observe(self, t: Array, q: Array, v: Array, output: Any, p: Block) -> dict[str, Array]:
        """Height of the lowest corner."""
        return {"lowest": jnp.min(self.gap(t, q, p))}

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

    def system(self) -> System:
        """The system of this topology."""
        space = self.dimension == 3
        return System(
            name="block",
            choices=(("dimension", self.dimension),),
            nq=7 if space else 3,
            nv=6 if space else 3,
            nc=len(self.signs),
            nt=self.dimension - 1,
            mass=self.mass,
            force=self.force,
            potential=self.potential,
            gap=self.gap,
            slip=self.slip,
            law=self.law,
            observe=self.observe,
            retract=rotations.move_pose if space else add,
            difference=rotations.pose_between if space else subtract,
            labels=self.labels(),
        )


@constructor(Block)
def block(
    params: Block,
    *,
    dimension: int = 3,
    height: Any = 0.0,
    initial_q: Any = None,
    initial_v: Any = None,
    initial_time: Any = 0.0,
) -> Problem:
    """A rigid box on a rough, possibly inclined plane; every corner may hit, stick and slide.

    In space the attitude is a unit quaternion moved by `retract`; it never drifts. The defaults are
    the parallelepiped of `examples_nsga.md` section 1, at rest on the plane.

    Args:
        dimension: 3, or 2 for a rectangle in the vertical plane.
        height: of the lowest face above the plane at the start [m].
        initial_q, initial_v, initial_time: full start. Space: position and quaternion (7,), velocity
            and body angular velocity (6,). Plane: ``(x, z, phi)``.
        size: edges [m], (3,) or, in the plane, (2,); None: (0.1, 0.2, 0.3) or (0.2, 0.1).
        mass: [kg].
        inertia: about the body axes [kg m^2], (3,) or scalar; None: of a homogeneous box.
        gravity: [m/s^2].
        slope: inclination of the plane [rad], downhill is +x; axes stay along and normal to it.
        ground: position of the plane along its normal [m].
        restitution, restitution_tangential, friction: of the corners, scalars or one per corner.

    Returns:
        A `Problem`.

    Raises:
        InputError: for a dimension other than 2 and 3, or a quaternion that is zero.

    Limits: a face on the plane is held by its corners, whose single forces are not unique; motion and
    resultants are.

    Example:
        >>> from nsjax import models
        >>> models.block(slope=0.3).system.nc
        8
    """
    if dimension not in (2, 3):
        raise InputError(f"block: dimension = {dimension}; choose 2 or 3")
    if initial_q is None:
        edges = SIZE[dimension] if params.size is None else params.size
        centre = params.ground + height + 0.5 * edges[dimension - 1]
        initial_q = _upright(centre, dimension)
    initial_q = vector(initial_q)
    if dimension == 3:
        initial_q = _normalised(initial_q)
    if initial_v is None:
        initial_v = np.zeros(3 * (dimension - 1))
    state = State(t=initial_time, q=initial_q, v=vector(initial_v))
    return Problem(system=Box(dimension).system(), params=params, state=state)


def _upright(centre: Any, dimension: int) -> Any:
    """Start with edges along the axes."""
    xp = jnp if is_traced(centre) else np
    rest = [1.0, 0.0, 0.0, 0.0] if dimension == 3 else [0.0]
    first = [0.0] * (dimension - 1)
    return xp.asarray([*first, centre, *rest])


def _normalised(q: Any) -> Any:
    """The start with its quaternion brought to unit length, once."""
    if q.shape != (7,):
        return q  # the shape check of `simulate` says what is wrong
    xp = jnp if is_traced(q) else np
    size = xp.sqrt(xp.sum(q[3:] ** 2))
    if not is_traced(q) and not size > 0:
        raise InputError(f"block: initial_q has the quaternion {q[3:].tolist()}; it must not be zero")
    return xp.concatenate([q[:3], q[3:] / size])
