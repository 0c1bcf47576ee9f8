"""Rigid boxes on a plane that do not meet one another, as a user would write them."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import Problem, State, System
from nsjax.linalg import BlockDiagonal, Dense
from nsjax.math import rotations
from nsjax.models.block import SIZE, cross


@dataclasses.dataclass(frozen=True)
class Boxes:
    """``n`` boxes one after the other, each in the coordinates of `nsjax.models.block`: in the plane
    ``(x, z, phi)``, in space ``(x, y, z, quaternion)`` with angular velocities in body axes.
    """

    n: int
    dimension: int

    @property
    def corners(self) -> np.ndarray:
        """Of a box in its axes, in the order of `nsjax.models.block`."""
        grid = np.meshgrid(*[[1.0, -1.0]] * self.dimension, indexing="ij")
        return 0.5 * SIZE[self.dimension] * np.stack([axis.reshape(-1) for axis in grid], axis=1)

    def _weights(self, p):
        """Diagonal of the mass matrix of a box."""
        square = SIZE[self.dimension] ** 2
        about = np.sum(square) - square if self.dimension == 3 else np.sum(square)[None]
        return p["mass"] * np.concatenate([np.ones(self.dimension), about / 12.0])

    def _axes(self, q):
        """Rows of the rotation matrices, entry by entry (n, 1): arrays of arrays are slow to compile."""
        if self.dimension == 2:
            c, s = jnp.cos(q[:, 2:]), jnp.sin(q[:, 2:])
            return (c, -s), (s, c)
        w, x, y, z = (q[:, k : k + 1] for k in range(3, 7))
        return (
            (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
            (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
            (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
        )

    def mass(self, q, p):
        """Mass matrix."""
        return jnp.diag(jnp.tile(self._weights(p), self.n))

    def inertia(self, q, w, p):
        """Its product."""
        return (w.reshape(self.n, -1) * self._weights(p)).reshape(-1)

    def force(self, t, q, v, p):
        """Weight and gyroscopic torques."""
        u, weights = v.reshape(self.n, -1), self._weights(p)
        fall = -p["gravity"] * weights * (np.arange(weights.shape[0]) == self.dimension - 1)
        if self.dimension == 2:
            return jnp.tile(fall, self.n)
        spin = u[:, 3:]
        torque = -cross(spin, weights[3:] * spin)
        return (fall + jnp.concatenate([jnp.zeros((self.n, 3)), torque], axis=1)).reshape(-1)

    def potential(self, t, q, p):
        """Of the weight."""
        return p["mass"] * p["gravity"] * jnp.sum(q.reshape(self.n, -1)[:, self.dimension - 1])

    def gap(self, t, q, p):
        """Heights of the corners."""
        at = q.reshape(self.n, -1)
        up = sum(a * x for a, x in zip(self._axes(at)[-1], self.corners.T, strict=True))
        return (at[:, self.dimension - 1 : self.dimension] + up).reshape(-1)

    def slip(self, t, q, v, p):
        """Velocities of the corners along the plane."""
        at, u = q.reshape(self.n, -1), v.reshape(self.n, -1)
        if self.dimension == 2:
            y, x = self.corners.T[::-1]
            spin = (-u[:, 2:] * y, u[:, 2:] * x)
        else:
            (a, b, c), (x, y, z) = (u[:, k : k + 1] for k in (3, 4, 5)), self.corners.T
            spin = (b * z - c * y, c * x - a * z, a * y - b * x)
        turned = [sum(a * s for a, s in zip(row, spin, strict=True)) for row in self._axes(at)[:-1]]
        return jnp.stack([u[:, k : k + 1] + x for k, x in enumerate(turned)], axis=2).reshape(
            -1, self.dimension - 1
        )

    def law(self, p):
        """Of the plane."""
        return nsjax.ContactLaw(restitution=p["restitution"], friction=p["friction"])

    def retract(self, q, xi):
        """Motion of the poses."""
        return jax.vmap(rotations.move_pose)(q.reshape(self.n, 7), xi.reshape(self.n, 6)).reshape(-1)

    def difference(self, q0, q1):
        """Its inverse."""
        between = jax.vmap(rotations.pose_between)
        return between(q0.reshape(self.n, 7), q1.reshape(self.n, 7)).reshape(-1)


def starts(n: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Poses and velocities (n, .) of boxes that slide on the plane; every third falls on an edge first."""
    k, zero = np.arange(n), np.zeros(n)
    tilt = np.where(k % 3 == 1, 0.2 + 0.01 * k, 0.0)
    edges = 0.5 * SIZE[dimension]
    height = edges[-2] * np.abs(np.sin(tilt)) + edges[-1] * np.cos(tilt) + np.where(tilt > 0, 0.002, 0.0)
    along = 0.5 + 0.1 * np.cos(k)
    if dimension == 2:
        return np.stack([0.5 * k, height, tilt], axis=1), np.stack([along, zero, zero], axis=1)
    q = [0.5 * k, zero, height, np.cos(tilt / 2), np.sin(tilt / 2), zero, zero]
    return np.stack(q, axis=1), np.stack([along, 0.2 * np.sin(k), zero, zero, zero, zero], axis=1)


def boxes(n: int, dimension: int = 2, *, islands: bool = True, **numbers) -> Problem:
    """``n`` boxes; ``numbers`` of `nsjax.models.block` other than those below."""
    b = Boxes(n, dimension)
    motion = {} if dimension == 2 else {"retract": b.retract, "difference": b.difference}
    nq, nv = (3, 3) if dimension == 2 else (7, 6)
    system = System(
        nq=n * nq, nv=n * nv, nc=n * len(b.corners), nt=dimension - 1, force=b.force, gap=b.gap,
        slip=b.slip, law=b.law, inertia=b.inertia, mass=None if islands else b.mass,
        potential=b.potential, structure=BlockDiagonal(nv) if islands else Dense(),
        islands=n if islands else 0, **motion,
    )  # fmt: skip
    q, v = starts(n, dimension)
    p = {"mass": 46.8, "gravity": 9.81, "restitution": 0.2, "friction": 0.4, **numbers}
    return Problem(system=system, params=p, state=State(t=0.0, q=q.reshape(-1), v=v.reshape(-1)))
