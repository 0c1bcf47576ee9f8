"""A linear elastic bar that flies lengthwise against a rigid wall."""

from __future__ import annotations

import dataclasses
from types import MappingProxyType
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.contact import ContactLaw
from nsjax.core import Labels, Problem, State, System
from nsjax.core.errors import check_choice, check_whole
from nsjax.fem.beam import assembled, bar_inertia, bar_weight
from nsjax.forms import quantity
from nsjax.linalg import BlockTridiagonal
from nsjax.models.common import constructor, vector
from nsjax.types import Array, record

STEEL_BAR = MappingProxyType(
    {
        "elements": 100, "length": 1.0, "young": 2.1e11, "density": 7800.0, "area": 3.14e-4,
        "distance": 5e-5, "speed": 0.1,
    }
)  # fmt: skip
"""Data of a public example by authors of [SRKA] for `elastic_bar`: a metre of steel at 0.1 m/s."""


@record()
class ElasticBar:
    """Parameters of `elastic_bar`; the field names are its keyword names."""

    length: Array | float = quantity(default=10.0, least=0.0)
    young: Array | float = quantity(default=900.0, least=0.0)
    density: Array | float = quantity(default=1.0, least=0.0)
    area: Array | float = quantity(default=1.0, least=0.0)
    sizes: Array | float = quantity(default=1.0, least=0.0)
    distance: Array | float = 5.005
    restitution: Array | float = 0.0
    damping: Array | float = quantity(default=0.0, least=0.0)
    gravity: Array | float = 0.0


@dataclasses.dataclass(frozen=True)
class Bar:
    """Topology: number of elements, consistent or lumped mass. Its methods are the functions of the system.

    ``q`` are the displacements of the nodes towards the wall; the last node is the tip, which hits the
    wall.
    """

    elements: int
    mass: str = "consistent"

    def _lengths(self, p: ElasticBar) -> Array:
        """Lengths of the elements (n,) [m]."""
        sizes = jnp.broadcast_to(jnp.asarray(p.sizes, float), (self.elements,))
        return p.length * sizes / jnp.sum(sizes)

    def _masses(self, p: ElasticBar) -> Array:
        """Masses of the elements (n,) [kg]."""
        return p.density * p.area * self._lengths(p)

    def _stiffness(self, p: ElasticBar) -> Array:
        """Stiffnesses of the elements (n,) [N/m]."""
        return p.young * p.area / self._lengths(p)

    def inertia(self, q: Array, w: Array, p: ElasticBar) -> Array:
        """Mass matrix times ``w``: consistent, or lumped with half of each element at each of its nodes."""
        if self.mass == "lumped":
            return bar_weight(1.0, self._masses(p)) * w
        return bar_inertia(w, self._masses(p))

    def force(self, t: Array, q: Array, v: Array, p: ElasticBar) -> Array:
        """Nodal forces of the elastic and viscous tensions of the elements, and of the weight."""
        tension = self._stiffness(p) * (jnp.diff(q) + p.damping * jnp.diff(v))
        return assembled(tension, -tension) + bar_weight(p.gravity, self._masses(p))

    def potential(self, t: Array, q: Array, p: ElasticBar) -> Array:
        """Strain energy plus potential energy of the weight."""
        weight = jnp.sum(bar_weight(p.gravity, self._masses(p)) * q)
        return 0.5 * jnp.sum(self._stiffness(p) * jnp.diff(q) ** 2) - weight

    def gap(self, t: Array, q: Array, p: ElasticBar) -> Array:
        """Distance of the tip to the wall (1,)."""
        return p.distance - q[-1:]

    def law(self, p: ElasticBar) -> ContactLaw:
        """Impact law of the tip."""
        return ContactLaw(restitution=p.restitution)

    def observe(self, t: Array, q: Array, v: Array, output: Any, p: ElasticBar) -> dict[str, Array]:
        """Momentum of the bar and displacement of its centre of mass."""
        weights = bar_weight(1.0, self._masses(p))
        return {"momentum": jnp.sum(weights * v), "centre": jnp.sum(weights * q) / jnp.sum(weights)}

    def picture(self, t: Array, q: Array, p: ElasticBar) -> shapes.Picture:
        """Picture of the bar with some of its sections; the drawn height is not that of the data."""
        drawn = 40  # number of sections of the bar drawn in pictures
        some = np.unique(np.linspace(0, self.elements, min(self.elements, drawn) + 1).round().astype(int))
        ends = jnp.concatenate([jnp.zeros(1), jnp.cumsum(self._lengths(p))]) - p.length
        x, half = (ends + q)[some], 0.03 * p.length + 0.0 * q[0]
        upper, lower = (jnp.stack([x, y + 0.0 * x], axis=1) for y in (half, -half))
        outline = jnp.concatenate([upper, lower[::-1], upper[:1]])
        sections = jnp.stack([upper, lower, jnp.full(upper.shape, jnp.nan)], axis=1).reshape(-1, 2)
        tip = jnp.stack([q[-1], jnp.zeros(())])
        return shapes.Picture(
            shapes=(
                shapes.level((p.distance, 0.0), (-1.0, 0.0), "wall"),
                shapes.Shape(points=outline, name="bar", kind="area"),
                shapes.Shape(points=sections, name="sections", role="spring"),
            ),
            contacts=shapes.Places(
                points=tip[None], normals=jnp.asarray([[-1.0, 0.0]]), tangents=jnp.zeros((1, 0, 2))
            ),
        )  # fmt: skip

    def system(self) -> System:
        """The system of this mesh."""
        n = self.elements + 1
        labelled = 2001  # longer lists of names are of no use
        nodes = range(1, n + 1) if n <= labelled else ()
        return System(
            name="elastic_bar", stiff=True,
            choices=(("elements", self.elements), ("mass", self.mass)),
            nq=n, nv=n, nc=1, inertia=self.inertia, force=self.force, potential=self.potential,
            gap=self.gap, law=self.law,
            structure=BlockTridiagonal(1, constant=True),
            observe=self.observe, shapes=self.picture,
            labels=Labels(
                q=tuple(f"u{k} [m]" for k in nodes), v=tuple(f"du{k} [m/s]" for k in nodes),
                contacts=("wall",), observables=("momentum [N s]", "centre [m]"),
            ),
        )  # fmt: skip


MASSES = ("consistent", "lumped")


@constructor(ElasticBar)
def elastic_bar(
    params: ElasticBar, *, elements: int = 200, mass: str = "consistent", speed: Any = 10.0,
    initial_q: Any = None, initial_v: Any = None, initial_time: Any = 0.0,
) -> Problem:  # fmt: skip
    """A straight elastic bar that flies lengthwise against a rigid wall: linear finite elements.

    The standard test of flexible impact, with an exact solution. After ``distance / speed`` the tip
    touches; it rests while a wave runs to the free end and back with ``c = sqrt(young / density)``, for
    ``2 length / c``, under the constant force ``density c area speed``; then the whole bar leaves with
    the velocity reversed. The default is the soft bar of [C section 4.2]; ``**models.STEEL_BAR`` are the
    data of the half-explicit scheme's example.

    Args:
        elements: number of two-node elements; ``elements + 1`` unknowns.
        mass: ``"consistent"``, or ``"lumped"`` at the nodes: the matrix is diagonal, short waves run slower
            than the exact ones instead of faster, and explicit schemes take steps longer by ``sqrt(3)``.
        speed: of the whole bar towards the wall at the start [m/s].
        initial_q, initial_v, initial_time: full initial state: displacements (elements + 1,) towards the
            wall [m] and velocities [m/s]; the last entry is the tip.
        length: of the bar [m].
        young: Young's modulus [N/m^2], scalar or (elements,).
        density: [kg/m^3], scalar or (elements,).
        area: of the section [m^2], scalar or (elements,).
        sizes: ratios of the lengths of the elements, (elements,), from the free end to the tip; a scalar
            for equal lengths.
        distance: from the undeformed tip to the wall [m].
        restitution: of the tip. Only the mass of its node takes part in the impact, so that the effect
            vanishes as the mesh is refined.
        damping: proportional to the stiffness, ``C = damping K`` [s].
        gravity: acceleration towards the wall [m/s^2].

    Returns:
        A `Problem` with one contact.

    Raises:
        InputError: for an unknown parameter, number of elements or mass.

    Limits: the mesh disperses waves of a few elements' length, so that velocities and forces oscillate
    behind the front. Explicit schemes need ``dt < l / (sqrt(3) c)`` for the smallest element ``l``,
    with lumped mass ``dt < l / c``.

    Source: [C section 4.2].

    Example:
        >>> from nsjax import models
        >>> models.elastic_bar(elements=10).system.nv
        11
        >>> models.elastic_bar(**models.STEEL_BAR).params.young
        210000000000.0
    """
    check_whole("elastic_bar: elements", elements, 1)
    check_choice("elastic_bar: mass", mass, MASSES)
    n = int(elements) + 1
    q = vector(0.0 if initial_q is None else initial_q, n)
    v = vector(speed if initial_v is None else initial_v, n)
    return Problem(system=Bar(n - 1, mass).system(), params=params, state=State(t=initial_time, q=q, v=v))
