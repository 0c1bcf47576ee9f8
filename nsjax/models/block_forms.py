"""The spatial block in other coordinates: directors, and corner nodes without mass.

Two of the three formulations of [C section 4.1]; the third is `nsjax.models.box.BoxDynamics`. They describe
the same motion with other equations: six nonlinear constraints and no gyroscopic forces, or 24
constraints, gyroscopic forces and a singular mass matrix.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.core import Labels, add, subtract
from nsjax.core.checks import is_traced
from nsjax.math import rotations
from nsjax.models.box import Block, BoxDynamics, cross
from nsjax.types import Array


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
