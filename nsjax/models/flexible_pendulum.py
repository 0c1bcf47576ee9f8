"""A flexible beam that swings around a pin and hits a wall with its tip."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.contact import ContactLaw
from nsjax.core import Labels, Problem, State, System
from nsjax.core.errors import check_choice, check_whole
from nsjax.fem.beam import (
    BeamStiffness,
    bar_weight,
    beam_energy,
    beam_inertia,
    beam_resultants,
    beam_strains,
)
from nsjax.forms import quantity
from nsjax.linalg import BlockTridiagonal
from nsjax.models.common import constructor, vector
from nsjax.types import Array, is_traced, record

PINS = ("eliminated", "constraint")
"""Choices of how the pin is kept in its place."""

PLACE = 2
"""Number of coordinates ``x, y`` of a node before its angle."""


@record()
class FlexiblePendulum:
    """Parameters of `flexible_pendulum`; the field names are its keyword names."""

    length: Array | float = quantity(default=1.0, least=0.0)
    area: Array | float = quantity(default=1e-4, least=0.0)
    second_moment: Array | float = quantity(default=8.33e-10, least=0.0)
    shear_factor: Array | float = quantity(default=5.0 / 6.0, least=0.0)
    young: Array | float = quantity(default=2.1e11, least=0.0)
    poisson: Array | float = 0.3
    density: Array | float = quantity(default=7800.0, least=0.0)
    gravity: Array | float = 9.81
    wall: Array | float = math.sqrt(0.5)
    restitution: Array | float = 0.0
    base_amplitude: Array | float = 0.0
    base_frequency: Array | float = 0.0


@dataclasses.dataclass(frozen=True)
class SwingingBeam:
    """Topology: number of elements, and whether the position of the pin is eliminated. Its methods are the
    functions of the system.

    ``q`` are ``(x, y, theta)`` of the nodes from the pin to the tip, ``x, y`` relative to the pin; with an
    eliminated pin the first node has its angle only.
    """

    elements: int
    eliminated: bool = True

    def nodes(self, q: Array) -> Array:
        """Coordinates ``(x, y, theta)`` of all nodes (elements + 1, 3), or their rates."""
        if self.eliminated:  # `q` lacks the place of the first node
            q = jnp.pad(q, (PLACE, 0))
        return q.reshape(-1, 3)

    def _lengths(self, p: FlexiblePendulum) -> Array:
        return jnp.full(self.elements, p.length / self.elements)

    def _masses(self, p: FlexiblePendulum) -> Array:
        """Masses of the elements [kg]."""
        return p.density * p.area * self._lengths(p)

    def _section(self, p: FlexiblePendulum) -> BeamStiffness:
        shear = 0.5 * p.young / (1.0 + p.poisson)
        return BeamStiffness(
            axial=jnp.asarray(p.young * p.area),
            shear=jnp.asarray(shear * p.shear_factor * p.area),
            bending=jnp.asarray(p.young * p.second_moment),
        )

    def inertia(self, q: Array, w: Array, p: FlexiblePendulum) -> Array:
        """Consistent mass times ``w``."""
        rotary = p.density * p.second_moment * self._lengths(p)
        push = beam_inertia(self.nodes(w), self._masses(p), rotary).reshape(-1)
        return push[PLACE:] if self.eliminated else push

    def potential(self, t: Array, q: Array, p: FlexiblePendulum) -> Array:
        """Strain energy plus potential energy of the weight and of the acceleration of the base."""
        nodes = self.nodes(q)
        weights = bar_weight(1.0, self._masses(p))
        shaken = -p.base_amplitude * p.base_frequency**2 * jnp.sin(p.base_frequency * t)
        lifted = jnp.sum(weights * (p.gravity * nodes[:, 1] + shaken * nodes[:, 0]))
        return beam_energy(nodes, self._lengths(p), self._section(p)) + lifted

    def force(self, t: Array, q: Array, v: Array, p: FlexiblePendulum) -> Array:
        """Force of the potential energy; there is no other force."""
        return -jax.grad(self.potential, argnums=1)(t, q, p)

    def constraint(self, t: Array, q: Array, p: FlexiblePendulum) -> Array:
        """Constraint (2,): position of the first node, for a pin that is not eliminated."""
        return q[:PLACE]

    def gap(self, t: Array, q: Array, p: FlexiblePendulum) -> Array:
        """Distance of the tip to the wall at its left (1,)."""
        return p.base_amplitude * jnp.sin(p.base_frequency * t) + q[-3:-2] - p.wall

    def law(self, p: FlexiblePendulum) -> ContactLaw:
        """Impact law of the tip."""
        return ContactLaw(restitution=p.restitution)

    def observe(self, t: Array, q: Array, v: Array, output: Any, p: FlexiblePendulum) -> dict[str, Array]:
        """Position of the tip, strain energy and largest stress resultants."""
        nodes = self.nodes(q)
        lengths, section = self._lengths(p), self._section(p)
        forces = beam_resultants(beam_strains(nodes, lengths), section)
        largest = [jnp.max(jnp.abs(x)) for x in forces]
        return {
            "tip_x": nodes[-1, 0], "tip_y": nodes[-1, 1],
            "strain_energy": beam_energy(nodes, lengths, section), "axial_force": largest[0],
            "shear_force": largest[1], "bending_moment": largest[2],
        }  # fmt: skip

    def picture(self, t: Array, q: Array, p: FlexiblePendulum) -> shapes.Picture:
        """Picture of the beam and the wall."""
        base = jnp.stack([p.base_amplitude * jnp.sin(p.base_frequency * t), jnp.zeros(())])
        places = self.nodes(q)[:, :PLACE] + base
        return shapes.Picture(
            shapes=(
                shapes.level((p.wall, 0.0), (1.0, 0.0), "wall"),
                shapes.Shape(points=places, name="beam"),
                shapes.Shape(points=places[:1], name="pin", kind="dots", role="joint"),
            ),
            contacts=shapes.Places(
                points=places[-1:], normals=jnp.asarray([[1.0, 0.0]]), tangents=jnp.zeros((1, 0, 2))
            ),
        )  # fmt: skip

    def _labels(self) -> Labels:
        labelled = 500  # longer lists of names are of no use
        named = range(self.elements + 1) if self.elements <= labelled else ()
        every = [(f"{what}{k}", unit) for k in named for what, unit in NAMES]
        every = every[PLACE:] if self.eliminated else every
        return Labels(
            q=tuple(f"{name} [{unit}]" for name, unit in every),
            v=tuple(f"d{name} [{unit}/s]" for name, unit in every),
            contacts=("wall",),
            constraints=() if self.eliminated else ("pin x", "pin y"),
            observables=(
                "tip_x [m]", "tip_y [m]", "strain_energy [J]", "axial_force [N]", "shear_force [N]",
                "bending_moment [N m]",
            ),
            path=("tip_x", "tip_y"),
        )  # fmt: skip

    def system(self) -> System:
        """The system of this mesh."""
        n = 3 * (self.elements + 1) - (PLACE if self.eliminated else 0)
        return System(
            name="flexible_pendulum", stiff=True,
            choices=(("elements", self.elements), ("pin", PINS[not self.eliminated])), nq=n, nv=n, nc=1,
            nb=0 if self.eliminated else PLACE, inertia=self.inertia, force=self.force,
            potential=self.potential, constraint=None if self.eliminated else self.constraint, gap=self.gap,
            law=self.law, structure=BlockTridiagonal(3, lacking=PLACE if self.eliminated else 0),
            observe=self.observe, shapes=self.picture, labels=self._labels(),
        )  # fmt: skip


NAMES = (("x", "m"), ("y", "m"), ("theta", "rad"))


@constructor(FlexiblePendulum)
def flexible_pendulum(
    params: FlexiblePendulum, *, elements: int = 8, pin: str = "eliminated", angle: Any = 0.0,
    speed: Any = 0.0, initial_q: Any = None, initial_v: Any = None, initial_time: Any = 0.0,
) -> Problem:  # fmt: skip
    """A slender beam pinned at one end swings down in a vertical plane and hits a wall with its tip.

    Shear-deformable, geometrically exact elements (`nsjax.fem.beam`). The defaults are the pendulum
    of [C section 4.3]: steel, released along ``+x``; its tip meets the wall from the right after 0.33 s at
    about 45 degrees, and again and again while the beam vibrates.

    Args:
        elements: number of elements of equal length.
        pin: ``"eliminated"``: the first node has its angle only; ``"constraint"``: it has ``x, y`` too, and
            two bilateral constraints hold it.
        angle, speed: of the straight beam at the start, from ``+x`` [rad], [rad/s].
        initial_q, initial_v, initial_time: full initial state: ``(x, y, theta)`` of the nodes relative to
            the pin, the first without ``x, y`` unless constraints hold it.
        length, area, second_moment: of the beam [m] and its section [m^2], [m^4].
        shear_factor: shear area over the area of the section.
        young, poisson, density: of the material [N/m^2], [-], [kg/m^3].
        gravity: along ``-y`` [m/s^2].
        wall: position of the wall [m]; the tip stays at ``x >= wall``.
        restitution: of the tip; only the mass of its node takes part in the impact.
        base_amplitude, base_frequency: the pin moves along ``x`` as ``A sin(w t)`` [m], [rad/s].

    Returns:
        A `Problem` with one contact.

    Raises:
        InputError: for an unknown parameter, pin or number of elements.

    Limits: plane motion. Velocities and energies are relative to the pin. The fastest vibration
    (shear, 1e6 rad/s with the defaults) bounds the step of explicit schemes.

    Source: [C section 4.3].

    Example:
        >>> from nsjax import models
        >>> models.flexible_pendulum().system.nv
        25
    """
    check_whole("flexible_pendulum: elements", elements, 1)
    check_choice("flexible_pendulum: pin", pin, PINS)
    beam = SwingingBeam(int(elements), pin == "eliminated")
    # initial state of the straight beam that turns around its pin
    xp: Any = jnp if is_traced(params.length) or is_traced(angle) or is_traced(speed) else np
    along = params.length * np.linspace(0.0, 1.0, beam.elements + 1)
    x, y, one = along * xp.cos(angle), along * xp.sin(angle), np.ones(beam.elements + 1)
    q = xp.stack([x, y, angle * one], axis=1).reshape(-1)
    v = xp.stack([-speed * y, speed * x, speed * one], axis=1).reshape(-1)
    first = PLACE if beam.eliminated else 0
    q, v = q[first:], v[first:]
    if initial_q is not None:
        q = vector(initial_q)
    if initial_v is not None:
        v = vector(initial_v)
    return Problem(system=beam.system(), params=params, state=State(t=initial_time, q=q, v=v))
