"""Slider-crank with clearance and rigid or flexible rod in NumPy, for `literal`: [R&S App. C].

Mass matrix, forces, gaps and their gradients are written out here; of the package it takes the data and
the shape integrals of the rod. tests/experiments/test_mixed_timestepping.py compares them with the
package's model.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import numpy as np

from nsjax import fem, models

Vector = np.ndarray
Matrix = np.ndarray

FIRST_IMPACT = (0.35503, -0.171386)
"""Angles of crank and rod where the slider of Table 1 first meets its guide, 2.69 ms [rad]."""


@dataclasses.dataclass(frozen=True)
class Mechanism:
    """Slider-crank with clearance, rod with ``n`` elastic coordinates (none: rigid), [R&S App. C].

    ``i1``, ``i2``, ``i3`` (n,), ``i4`` (n,), ``mean`` (2, n), ``mass``, ``spin``, ``stiff`` (n, n) are the
    shape integrals of rod and slider, ``tip`` (2, n) the shapes at the slider; ``p`` the data.
    ``centrifugal`` = -1 is the sign that (149) has in print, ``crank`` = 1/2 the factor of m_1 l_1^2 that
    (144) has; the correct ones are the defaults.
    """

    p: Any
    i1: float
    i2: float
    i3: Vector
    i4: Vector
    mean: Matrix
    mass: Matrix
    spin: Matrix
    stiff: Matrix
    tip: Matrix
    centrifugal: float = 1.0
    crank: float = 0.25

    @functools.cached_property
    def size(self) -> int:
        """Coordinates: three angles and the elastic ones."""
        return 3 + len(self.i3)

    @functools.cached_property
    def stiffness(self) -> Matrix:
        """K (size, size)."""
        found = np.zeros((self.size, self.size))
        found[3:, 3:] = self.stiff
        return found

    @functools.cached_property
    def _constant(self) -> Matrix:
        found = np.zeros((self.size, self.size))
        p = self.p
        found[0, 0] = p.crank_inertia + p.crank_length**2 * (
            self.crank * p.crank_mass + p.rod_mass + p.slider_mass
        )
        found[2, 2] = p.slider_inertia
        found[3:, 3:] = self.mass
        return found

    def masses(self, q: Vector) -> Matrix:
        """M (size, size)."""
        f, l1 = q[3:], self.p.crank_length
        c, s = np.cos(q[0] - q[1]), np.sin(q[0] - q[1])
        mean = self.mean @ f
        found = self._constant.copy()
        found[0, 1] = found[1, 0] = l1 * (c * (self.i1 + mean[0]) + s * mean[1])
        found[1, 1] = self.i2 + f @ (2.0 * self.i3 + self.mass @ f)
        found[0, 3:] = found[3:, 0] = l1 * (c * self.mean[1] - s * self.mean[0])
        found[1, 3:] = found[3:, 1] = self.i4 - self.spin @ f
        return found

    def forces(self, q: Vector, v: Vector) -> Vector:
        """h (size,), without K q."""
        p, f, df, l1, g = self.p, q[3:], v[3:], self.p.crank_length, self.p.gravity
        c, s = np.cos(q[0] - q[1]), np.sin(q[0] - q[1])
        mean, rate = self.mean @ f, self.mean @ df
        px, py = self.i1 + mean[0], mean[1]
        stretch = self.i3 + self.mass @ f
        weight = p.crank_mass / 2 + p.rod_mass + p.slider_mass
        lever, outward = c * py - s * px, self.centrifugal * v[0] ** 2
        found = np.zeros(self.size)
        found[0] = l1 * (lever * v[1] - 2.0 * (c * rate[0] + s * rate[1])) * v[1]
        found[0] += p.torque - g * l1 * np.cos(q[0]) * weight
        found[1] = -l1 * lever * outward - 2.0 * v[1] * (stretch @ df)
        found[1] -= g * (np.cos(q[1]) * px - np.sin(q[1]) * py)
        found[3:] = l1 * (c * self.mean[0] + s * self.mean[1]) * outward + stretch * v[1] ** 2
        found[3:] += 2.0 * v[1] * (self.spin @ df)
        found[3:] -= g * (np.sin(q[1]) * self.mean[0] + np.cos(q[1]) * self.mean[1])
        return found

    def height(self, q: Vector) -> float:
        """The height of the slider's centre, y [m]."""
        u = self.tip @ q[3:]
        end = np.sin(q[1]) * (self.p.rod_length + u[0]) + np.cos(q[1]) * u[1]
        return float(self.p.crank_length * np.sin(q[0]) + end)

    def gaps(self, q: Vector) -> Vector:
        """Gaps of the four corners (4,), [R&S (171)-(174)]."""
        p, y, s, c = self.p, self.height(q), np.sin(q[2]), np.cos(q[2])
        tilt = p.half_length * np.array([s, -s, -s, s])
        side = np.array([-y, -y, y, y])
        return np.asarray(p.half_height * (1.0 - c) + p.clearance + side + tilt)

    def directions(self, q: Vector) -> tuple[Matrix, Matrix]:
        """W_N and W_T (size, 4), gradients of [R&S (171)-(178)]."""
        p, u = self.p, self.tip @ q[3:]
        ux, uy = p.rod_length + u[0], u[1]
        c, s, c3, s3 = np.cos(q[1]), np.sin(q[1]), np.cos(q[2]), np.sin(q[2])
        up, along = np.zeros(self.size), np.zeros(self.size)
        up[0], along[0] = p.crank_length * np.cos(q[0]), -p.crank_length * np.sin(q[0])
        up[1], along[1] = c * ux - s * uy, -(s * ux + c * uy)
        up[3:], along[3:] = s * self.tip[0] + c * self.tip[1], c * self.tip[0] - s * self.tip[1]
        normal = np.stack([-up, -up, up, up], axis=1)
        tangent = np.stack([along] * 4, axis=1)
        a, b = p.half_length, p.half_height
        normal[2] = [a * c3 + b * s3, -a * c3 + b * s3, -a * c3 + b * s3, a * c3 + b * s3]
        tangent[2] = [a * s3 - b * c3, -a * s3 - b * c3, a * s3 + b * c3, -a * s3 + b * c3]
        return normal, tangent

    def elastic(self, q: Vector) -> float:
        """Elastic energy [J]."""
        return float(0.5 * q[3:] @ self.stiff @ q[3:])

    def energy(self, q: Vector, v: Vector) -> float:
        """Kinetic, elastic and potential energy [J]."""
        p, f = self.p, q[3:]
        mean = self.mean @ f
        lift = p.crank_length * np.sin(q[0]) * (p.crank_mass / 2 + p.rod_mass + p.slider_mass)
        lift += np.sin(q[1]) * (self.i1 + mean[0]) + np.cos(q[1]) * mean[1]
        return float(0.5 * v @ self.masses(q) @ v + self.elastic(q) + p.gravity * lift)


def start(mechanism: Mechanism) -> tuple[float, float, float]:
    """Initial rates of the angles [rad/s]: Table 1 runs freely, Table 2 starts at rest."""
    return (0.0, 0.0, 0.0) if float(mechanism.p.torque) else (150.0, -75.0, 0.0)


def rigid(**data: Any) -> Mechanism:
    """With a rigid rod; data as for `nsjax.models.slider_crank`."""
    p = models.slider_crank(**data).params
    none, square = np.zeros(0), np.zeros((0, 0))
    i1 = p.rod_length * (p.rod_mass / 2 + p.slider_mass)
    i2 = p.rod_inertia + p.rod_length**2 * (p.rod_mass / 4 + p.slider_mass)
    flat = np.zeros((2, 0))
    return Mechanism(p, i1, i2, none, none, flat, square, square, square, flat)


def bent(elements: int, **data: Any) -> Mechanism:
    """With a rod of beam elements in the tangential frame."""
    system, p, _ = models.slider_crank_flexible(elements=elements, **data)
    rod, structure = system.prepare(p).rod, fem.RodBasis(elements, "tangential", None).structure
    units = np.eye(system.nv - 3)

    def dense(matrix: Any) -> Matrix:
        return np.asarray(jax.vmap(lambda e: structure.times(matrix, e))(units)).T

    i3, i4, mean, tip = (np.asarray(x, float) for x in (rod.i3, rod.i4, rod.mean, rod.tip))
    mass, spin, stiff = (dense(x) for x in (rod.mass, rod.spin, rod.stiffness))
    return Mechanism(p, float(rod.i1), float(rod.i2), i3, i4, mean, mass, spin, stiff, tip)


def met_mass(mechanism: Mechanism) -> float:
    """``1 / (w' M^-1 w)`` with w the gradient of the slider's height [kg]: the inertia that an impulse on
    both upper corners meets, at the first impact of Table 1 and with the rod undeformed.
    """
    q = np.zeros(mechanism.size)
    q[:2] = FIRST_IMPACT
    normal, _ = mechanism.directions(q)
    rise = -0.5 * (normal[:, 0] + normal[:, 1])
    return float(1.0 / (rise @ np.linalg.solve(mechanism.masses(q), rise)))
