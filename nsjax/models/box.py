"""Mechanics of a rigid box on a plane: eight corners in space, four in the plane."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.core import Labels, System
from nsjax.forms import quantity
from nsjax.math import rotations
from nsjax.models.common import contact_law
from nsjax.types import Array, record


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
        return {
            "nq": 7,
            "nv": 6,
            "retract": rotations.move_pose,
            "difference": rotations.pose_between,
        }

    def start(self, q: Any, v: Any, p: Block) -> tuple[Any, Any]:
        """Initial coordinates and velocities from a pose and its velocity."""
        return q, v

    def system(self) -> System:
        """The system of this topology."""
        return System(
            name="block",
            choices=(
                ("dimension", self.dimension),
                ("formulation", self.formulation),
                ("rough", self.rough),
            ),
            nc=len(self.signs),
            nt=self.dimension - 1 if self.rough else 0,
            mass=self.mass,
            force=self.force,
            potential=self.potential,
            gap=self.gap,
            slip=self.slip if self.rough else None,
            law=contact_law,
            observe=self.observe,
            shapes=self.picture,
            labels=self.labels(),
            **self.sizes(),
        )
