"""Planar slider-crank mechanism with a flexible rod, in a floating frame of reference."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.core import InputError, Labels, Problem, State, System
from nsjax.fem import FRAMES, FloatingRod, Modes, RodBasis, RodData, unit_rod
from nsjax.forms import quantity
from nsjax.linalg import bordered, matvec
from nsjax.math import sin_cos
from nsjax.models.common import constructor, contact_law, vector
from nsjax.models.slider_crank import (
    CORNERS,
    SliderCrank,
    corner_gaps,
    corner_places,
    corner_slips,
    drawn_crank,
    drawn_guide,
)
from nsjax.types import Array, is_traced, record


@record()
class SliderCrankFlexible(SliderCrank):
    """Parameters of `slider_crank_flexible`; the field names are its keyword names."""

    young: Array | float = quantity(default=2e11, least=0.0)
    density: Array | float = quantity(default=7800.0, least=0.0)


@record()
class _Prepared(SliderCrankFlexible):
    """Parameters with the shape integrals of the rod."""

    rod: FloatingRod


def rod_data(p: SliderCrankFlexible) -> RodData:
    """Data of the uniform rod of rectangular section with the given mass and moment of inertia.

    Its height ``D`` along the deflection follows from ``J_2 = m_2 (l_2^2 + D^2) / 12``, its area from the
    density, [R&S section 3].
    """
    area = p.rod_mass / (p.density * p.rod_length)
    square = p.rod_inertia / p.rod_mass - p.rod_length**2 / 12  # D^2 / 12
    axial = jnp.asarray(p.young * area)
    return RodData(
        length=jnp.asarray(p.rod_length), mass=jnp.asarray(p.rod_mass), axial=axial, bending=axial * square
    )


def _section_inertia(p: SliderCrankFlexible) -> Array:
    """Part ``rho I l_2`` of the moment of inertia that the height of the section adds to a thin rod's."""
    return jnp.asarray(p.rod_inertia - p.rod_mass * p.rod_length**2 / 12)


@functools.partial(jax.jit, static_argnames=("basis",))
def _integrals(basis: RodBasis, p: SliderCrankFlexible) -> FloatingRod:
    """Shape integrals of rod and slider; compiled, for calls outside a compiled run too."""
    return basis.prepare(rod_data(p), jnp.asarray(p.slider_mass), _section_inertia(p))


@dataclasses.dataclass(frozen=True)
class FlexibleCrank:
    """The mechanism with a given basis of its rod; its methods are the functions of the system.

    ``q = (theta1, theta2, theta3, q_f)``; the equations are the closed form of [R&S App. C] with the shape
    integrals of `nsjax.fem.FloatingRod`. Functions take parameters with or without the integrals.
    """

    basis: RodBasis

    def prepare(self, p: SliderCrankFlexible) -> _Prepared:
        """Parameters with the shape integrals of rod and slider, computed once per run."""
        data = {f.name: getattr(p, f.name) for f in dataclasses.fields(SliderCrankFlexible)}
        return _Prepared(**data, rod=_integrals(self.basis, p))

    def rod(self, p: SliderCrankFlexible) -> FloatingRod:
        """Shape integrals of rod and slider, prepared or computed here."""
        return p.rod if isinstance(p, _Prepared) else self.prepare(p).rod

    def _times(self, matrix: Any, x: Array) -> Array:
        """Product of a matrix of the deformation coordinates with ``x`` (n,)."""
        return self.basis.structure.times(matrix, x)

    def _coupling(self, q: Array, p: SliderCrankFlexible) -> tuple[Array, Array, Array]:
        """Blocks of the mass matrix: angles (3, 3), and crank and rod angle with the deformation (n,)."""
        rod, f = self.rod(p), q[3:]
        l1, c, s = p.crank_length, jnp.cos(q[0] - q[1]), jnp.sin(q[0] - q[1])
        mean = matvec(rod.mean, f)
        m11 = p.crank_inertia + l1 * l1 * (p.crank_mass / 4 + p.rod_mass + p.slider_mass)
        m12 = l1 * (c * (rod.i1 + mean[0]) + s * mean[1])
        m22 = rod.i2 + jnp.sum(f * (2.0 * rod.i3 + self._times(rod.mass, f)))
        zero = jnp.zeros_like(m12)
        angles = jnp.stack([m11 + zero, m12, zero, m12, m22, zero, zero, zero, zero + p.slider_inertia])
        m1f = l1 * (c * rod.mean[1] - s * rod.mean[0])
        return angles.reshape(3, 3), m1f, rod.i4 - self._times(rod.spin, f)

    def mass(self, q: Array, p: SliderCrankFlexible) -> Array:
        """Mass matrix (3 + n, 3 + n)."""
        angles, m1f, m2f = self._coupling(q, p)
        coupling = jnp.stack([m1f, m2f, jnp.zeros_like(m2f)])
        rod = self.rod(p).mass
        if not self.basis.structure.dense:  # not on the hot path: the loop uses `inertia`
            rod = jax.jacfwd(lambda w, m=rod: self._times(m, w))(0.0 * q[3:])
        top = jnp.concatenate([angles, coupling], axis=1)
        return jnp.concatenate([top, jnp.concatenate([coupling.T, rod], axis=1)])

    def inertia(self, q: Array, w: Array, p: SliderCrankFlexible) -> Array:
        """Mass matrix times ``w``; its deformation block is constant, which saves work in tangents."""
        angles, m1f, m2f = self._coupling(q, p)
        along = jnp.stack([jnp.sum(m1f * w[3:]), jnp.sum(m2f * w[3:]), jnp.zeros_like(w[0])])
        deformation = m1f * w[0] + m2f * w[1] + self._times(self.rod(p).mass, w[3:])
        return jnp.concatenate([matvec(angles, w[:3]) + along, deformation])

    def force(self, t: Array, q: Array, v: Array, p: SliderCrankFlexible) -> Array:
        """Generalised forces (3 + n,): centrifugal and Coriolis terms, gravity, torque, elasticity."""
        rod, f, df = self.rod(p), q[3:], v[3:]
        l1, g, w1, w2 = p.crank_length, p.gravity, v[0], v[1]
        c, s = jnp.cos(q[0] - q[1]), jnp.sin(q[0] - q[1])
        mean, rate = matvec(rod.mean, f), matvec(rod.mean, df)
        px, py = rod.i1 + mean[0], mean[1]
        stretch = rod.i3 + self._times(rod.mass, f)
        weight = p.crank_mass / 2 + p.rod_mass + p.slider_mass
        h1 = l1 * ((c * py - s * px) * w2 - 2.0 * (c * rate[0] + s * rate[1])) * w2
        h1 = h1 - g * l1 * jnp.cos(q[0]) * weight + p.torque
        h2 = -l1 * (c * py - s * px) * w1 * w1 - 2.0 * w2 * jnp.sum(stretch * df)
        h2 = h2 - g * (jnp.cos(q[1]) * px - jnp.sin(q[1]) * py)
        hf = l1 * (c * rod.mean[0] + s * rod.mean[1]) * w1 * w1 + stretch * w2 * w2
        hf = hf + 2.0 * w2 * self._times(rod.spin, df) - self._times(rod.stiffness, f)
        hf = hf - g * (jnp.sin(q[1]) * rod.mean[0] + jnp.cos(q[1]) * rod.mean[1])
        return jnp.concatenate([jnp.stack([h1, h2, jnp.zeros_like(h1)]), hf])

    def potential(self, t: Array, q: Array, p: SliderCrankFlexible) -> Array:
        """Elastic energy and potential energy of gravity [J]."""
        rod, f = self.rod(p), q[3:]
        mean = matvec(rod.mean, f)
        crank = p.crank_length * jnp.sin(q[0]) * (p.crank_mass / 2 + p.rod_mass + p.slider_mass)
        height = crank + jnp.sin(q[1]) * (rod.i1 + mean[0]) + jnp.cos(q[1]) * mean[1]
        return self.elastic(q, p) + p.gravity * height

    def elastic(self, q: Array, p: SliderCrankFlexible) -> Array:
        """Elastic energy of the rod [J]."""
        return 0.5 * jnp.sum(q[3:] * self._times(self.rod(p).stiffness, q[3:]))

    def kinetic(self, q: Array, v: Array, p: SliderCrankFlexible) -> Array:
        """Kinetic energy [J], by quadrature over the velocities of the rod's points."""
        unit, rod = unit_rod(self.basis.elements), self.rod(p)
        shapes = jnp.einsum("pij,jk->pik", unit.values, rod.basis)
        end = jnp.concatenate([shapes, rod.tip[None]])
        x = jnp.asarray(p.rod_length) * np.append(unit.points, 1.0)
        ux, uy = x + end[:, 0] @ q[3:], end[:, 1] @ q[3:]
        # velocities in the frame's axes: of the joint, of the frame's rotation, of the deformation
        c, s = jnp.cos(q[0] - q[1]), jnp.sin(q[0] - q[1])
        joint = p.crank_length * v[0]
        vx = -joint * s - v[1] * uy + end[:, 0] @ v[3:]
        vy = joint * c + v[1] * ux + end[:, 1] @ v[3:]
        square = vx**2 + vy**2
        rod_part = p.rod_mass * jnp.sum(unit.weights * square[:-1]) + p.slider_mass * square[-1]
        section = _section_inertia(p)
        crank = (p.crank_inertia + p.crank_mass * p.crank_length**2 / 4) * v[0] ** 2
        return 0.5 * (rod_part + section * v[1] ** 2 + crank + p.slider_inertia * v[2] ** 2)

    def drive(self, t: Array, q: Array, v: Array, p: SliderCrankFlexible) -> Array:
        """Generalised force of the torque on the crank (3 + n,)."""
        return jnp.where(np.arange(3 + self.basis.size) == 0, 1.0, 0.0) * p.torque

    def _slider(self, q: Array, v: Array, p: SliderCrankFlexible) -> tuple[Array, Array, Array]:
        """Position (x, y) of the slider's centre [m] and its velocity along the guide [m/s]."""
        rod, l1 = self.rod(p), p.crank_length
        u, du = matvec(rod.tip, q[3:]), matvec(rod.tip, v[3:])
        ux, uy = p.rod_length + u[0], u[1]
        c, s = jnp.cos(q[1]), jnp.sin(q[1])
        x = l1 * jnp.cos(q[0]) + c * ux - s * uy
        y = l1 * jnp.sin(q[0]) + s * ux + c * uy
        along = -l1 * jnp.sin(q[0]) * v[0] - (s * ux + c * uy) * v[1] + c * du[0] - s * du[1]
        return x, y, along

    def gap(self, t: Array, q: Array, p: SliderCrankFlexible) -> Array:
        """Distances of the four corners from their walls (4,), [R&S (171)-(174)]."""
        return corner_gaps(self._slider(q, 0.0 * q, p)[1], sin_cos(q[2]), p)

    def slip(self, t: Array, q: Array, v: Array, p: SliderCrankFlexible) -> Array:
        """Velocities of the four corners along the guide (4, 1), rates of [R&S (175)-(178)]."""
        return corner_slips(self._slider(q, v, p)[2], sin_cos(q[2]), v[2], p)

    def observe(
        self, t: Array, q: Array, v: Array, output: Any, p: SliderCrankFlexible
    ) -> dict[str, Array]:
        """Slider position, root moment, elastic energy, wall forces (nan if not saved), mode amplitudes."""
        rod = self.rod(p)
        x, y, _ = self._slider(q, v, p)
        bound = p.clearance + 0.0 * y
        force = jnp.full(4, jnp.nan) if output is None else output.force_normal
        found = {
            "x": x, "y": y, "y_lower": -bound, "y_upper": bound,
            "root_moment": jnp.sum(rod.root * q[3:]), "elastic_energy": self.elastic(q, p),
            "force_upper": force[0] + force[1], "force_lower": force[2] + force[3],
        }  # fmt: skip
        if self.basis.modes is None:
            amplitudes = matvec(rod.modes, q[3:])
            found |= {f"mode{k + 1}": amplitudes[k] for k in range(self.basis.observed)}
        return found

    def picture(self, t: Array, q: Array, p: SliderCrankFlexible) -> shapes.Picture:
        """Picture with the rod from node to node, deformations at true scale."""
        l1, rod = p.crank_length, self.rod(p)
        x, y, _ = self._slider(q, 0.0 * q, p)
        bent = matvec(rod.basis, q[3:]).reshape(-1, 3)
        along = p.rod_length * np.linspace(0.0, 1.0, self.basis.elements + 1)
        pin = l1 * jnp.cos(q[0]), l1 * jnp.sin(q[0])
        local = jnp.stack([along + bent[:, 0], bent[:, 1]], axis=1)
        line = shapes.placed(local, jnp.stack(pin), q[1])
        slider = shapes.placed(shapes.rectangle(p.half_length, p.half_height), jnp.stack([x, y]), q[2])
        moving = drawn_crank(pin, (x, y), line, slider)
        return shapes.Picture(
            shapes=(*drawn_guide(p), *moving), contacts=corner_places((x, y), q[2], p)
        )  # fmt: skip

    def labels(self) -> Labels:
        """Names and units."""
        q = ["theta1 [rad]", "theta2 [rad]", "theta3 [rad]"]
        v = ["omega1 [rad/s]", "omega2 [rad/s]", "omega3 [rad/s]"]
        seen = ["x [m]", "y [m]", "y_lower [m]", "y_upper [m]", "root_moment [N m]", "elastic_energy [J]"]
        seen += ["force_upper [N]", "force_lower [N]"]
        modes = [f"mode{k + 1}" for k in range(self.basis.observed)]
        if self.basis.modes is None:
            seen += [f"{name} [kg^0.5 m]" for name in modes]
            for k in self.basis.free:
                name, unit = (("u", "m"), ("w", "m"), ("slope", "rad"))[k % 3]
                q.append(f"{name}{k // 3} [{unit}]")
                v.append(f"{name}{k // 3}_rate [{unit}/s]")
        else:
            q += [f"{name} [kg^0.5 m]" for name in modes]
            v += [f"{name}_rate [kg^0.5 m/s]" for name in modes]
        return Labels(
            q=tuple(q), v=tuple(v), contacts=CORNERS, observables=tuple(seen), path=("x", "y"),
            path_limits=("y_lower", "y_upper"),
        )  # fmt: skip

    def system(self) -> System:
        """The system of this topology."""
        b, n = self.basis, 3 + self.basis.size
        return System(
            name="slider_crank_flexible", stiff=True,
            choices=(("elements", b.elements), ("frame", b.frame), ("modes", b.modes)), nq=n, nv=n, nc=4,
            nt=1, mass=self.mass, inertia=self.inertia, force=self.force, potential=self.potential,
            gap=self.gap, slip=self.slip, law=contact_law, prepare=self.prepare, observe=self.observe,
            shapes=self.picture, labels=self.labels(), structure=bordered(b.structure, 3),
            tangent_hint="kept",
        )  # fmt: skip


@constructor(SliderCrankFlexible)
def slider_crank_flexible(
    params: SliderCrankFlexible, *, elements: int = 20, frame: str = "tangential",
    modes: Modes | int | None = None, initial_q: Any = (0.0, 0.0, 0.0),
    initial_v: Any = (150.0, -75.0, 0.0), initial_time: Any = 0.0,
) -> Problem:  # fmt: skip
    """Slider-crank mechanism with a flexible rod; the slider has clearance in its guide.

    ``q = (theta1, theta2, theta3, q_f)``: absolute angles of crank, frame of the rod and slider, and the
    deformation ``q_f`` of the rod relative to its frame: nodal coordinates ``(u, w, w')`` of beam elements,
    or amplitudes of modes. The section is the rectangle that reproduces mass and moment of inertia of the
    rod, so for stiff rods the motion is that of `slider_crank`. Rotary inertia of the bending is neglected.

    Args:
        elements: number of beam elements of equal length.
        frame: ``"tangential"``: ``theta2`` is the direction of the rod at the crank; ``"pinned"``: the
            direction of the line between its ends.
        modes: None for nodal coordinates; ``nsjax.fem.Modes(conditions, count)``, whose conditions then
            define ``theta2``; or a number of modes under the conditions of the frame (clamped-free,
            pinned-pinned).
        young: modulus [N/m^2].
        density: [kg/m^3]; together with the rod's mass and length it gives the area of the section.
        crank_length, rod_length, half_length, half_height, clearance, crank_mass, rod_mass,
            slider_mass, crank_inertia, rod_inertia, slider_inertia, gravity, torque, restitution,
            restitution_tangential, friction: see `slider_crank`.
        initial_q, initial_v: initial angles (3,) and rates (3,) with an undeformed rod, or all entries.
        initial_time: initial time [s].

    Returns:
        A `Problem`. Observables: position of the slider, bending moment of the rod at the crank,
        elastic energy, normal forces of the walls, amplitudes of the first modes.

    Raises:
        InputError: for an unknown choice, or a rod whose moment of inertia is below that of a thin one.

    Limits: the frequencies of twenty elements reach 1.6e7 Hz, so explicit schemes need steps of some
    1e-8 s; implicit ones with damping (`bathe`, `ed_alpha`) need 1e-5 s for impacts. The root moment is
    that of the section at the crank; only in the tangential frame does it contain ``rho I theta2''``.

    Source: [R&S section 3, Appendices C, D], where the printed (144) has I_1 = J_1 + m_1 l_1^2 / 2 instead
        of m_1 l_1^2 / 4, (149) and (169) have lost signs, and (151), (152) transposes.

    Example:
        >>> from nsjax import models
        >>> from nsjax.fem import Modes
        >>> models.slider_crank_flexible(elements=20).system.nv
        63
        >>> models.slider_crank_flexible(modes=Modes("articulated_free", 5)).system.nv
        8
    """
    if isinstance(modes, int):
        modes = Modes(FRAMES[frame], modes) if frame in FRAMES else None
    thin = (params.rod_length, params.rod_mass, params.rod_inertia)
    if not is_traced(thin) and not np.all(
        12 * np.asarray(thin[2]) > np.multiply(thin[1], thin[0]) * thin[0]
    ):
        raise InputError(
            f"slider_crank_flexible: rod_inertia = {thin[2]}; it must exceed rod_mass rod_length^2 / 12, "
            "the moment of inertia of a thin rod"
        )
    topology = FlexibleCrank(RodBasis(elements, frame, modes))
    start = [vector(initial_q), vector(initial_v)]
    for k, x in enumerate(start):
        if x.shape == (3,):  # `simulate` refuses other shapes than this and the whole one
            start[k] = (jnp if is_traced(x) else np).concatenate([x, np.zeros(topology.basis.size)])
    state = State(t=initial_time, q=start[0], v=start[1])
    return Problem(system=topology.system(), params=params, state=state)
