"""What the common tests, the command line and the documentation know about each scheme."""

from __future__ import annotations

import dataclasses

from nsjax.schemes.moreau import moreau
from nsjax.types import Fn


@dataclasses.dataclass(frozen=True, kw_only=True)
class SchemeEntry:
    """A registered scheme.

    Args:
        factory: makes the scheme with its defaults.
        order: orders in (q, v, force) on smooth motion.
        friction: solves Coulomb friction.
        position_level: fulfils contacts and constraints on position level.
        time_dependence: takes moving walls and prescribed motion.
        singular_mass: accepts a singular mass matrix.
        stability_limit: largest stable ``omega dt`` of an undamped oscillator, None if unbounded.
        summary: one line.
    """

    factory: Fn
    order: tuple[int, int, int]
    friction: bool
    position_level: bool
    time_dependence: bool
    singular_mass: bool
    stability_limit: float | None
    summary: str


REGISTRY: dict[str, SchemeEntry] = {
    "moreau": SchemeEntry(
        factory=moreau,
        order=(1, 1, 1),
        friction=True,
        position_level=False,
        time_dependence=True,
        singular_mass=False,
        stability_limit=2.0,
        summary="Moreau's midpoint rule: explicit forces, impacts and friction on velocity level",
    ),
}
