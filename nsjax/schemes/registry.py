"""Table of schemes for the common tests, the command line and the documentation."""

from __future__ import annotations

import dataclasses

from nsjax.schemes.impulses.ggl_unified import ggl_unified
from nsjax.schemes.impulses.moreau import ggl_decoupled, moreau
from nsjax.schemes.impulses.moreau_theta import moreau_theta
from nsjax.schemes.mixed.bathe import bathe
from nsjax.schemes.mixed.ed_alpha import ed_alpha
from nsjax.schemes.mixed.generalized_alpha import generalized_alpha, hht, newmark
from nsjax.schemes.mixed.half_explicit import half_explicit
from nsjax.schemes.nsga.variants import nsga_coupled, nsga_decoupled, nsga_neglected
from nsjax.types import Fn


@dataclasses.dataclass(frozen=True, kw_only=True)
class SchemeEntry:
    """A registered scheme.

    Args:
        factory: function that makes the scheme; its arguments have defaults.
        order: orders of convergence of (q, v, force) on smooth motion.
        summary: description in one line.
        friction: whether it solves Coulomb friction.
        position_level: whether it fulfils contact and constraint laws on position level.
        singular_mass: whether it accepts a singular mass matrix.
        stability_limit: largest stable ``omega dt`` of an undamped oscillator; None: unconditionally
            stable.

    Example:
        >>> from nsjax import schemes
        >>> schemes.REGISTRY["moreau"].order, schemes.REGISTRY["moreau"].stability_limit
        ((1, 1, 1), 2.0)
    """

    factory: Fn
    order: tuple[int, int, int]
    summary: str
    friction: bool = True
    position_level: bool = False
    singular_mass: bool = False
    stability_limit: float | None = None


REGISTRY: dict[str, SchemeEntry] = {
    "moreau": SchemeEntry(
        factory=moreau, order=(1, 1, 1), stability_limit=2.0,
        summary="Moreau's midpoint rule: explicit forces, impacts and friction on velocity level",
    ),
    "moreau_theta": SchemeEntry(
        factory=moreau_theta,
        order=(2, 2, 1),
        summary="theta-method of Moreau and Jean: implicit forces, impulses in the step",
    ),
    "half_explicit": SchemeEntry(
        factory=half_explicit,
        order=(2, 2, 1),
        stability_limit=2.0,
        summary="half-explicit, second order without Newton iterations on the forces",
    ),
    "generalized_alpha": SchemeEntry(
        factory=generalized_alpha,
        order=(2, 2, 2),
        summary="generalized-alpha with impulsive correction, damping by rho_inf",
    ),
    "hht": SchemeEntry(
        factory=hht,
        order=(2, 2, 2),
        summary="Hilber, Hughes, Taylor with impulsive correction",
    ),
    "newmark": SchemeEntry(
        factory=newmark,
        order=(2, 2, 2),
        summary="Newmark with impulsive correction; by default the trapezoidal rule",
    ),
    "bathe": SchemeEntry(
        factory=bathe,
        order=(2, 2, 2),
        summary="Bathe's two-part scheme with impulsive correction: strong damping",
    ),
    "ed_alpha": SchemeEntry(
        factory=ed_alpha,
        order=(2, 2, 1),
        summary="ED-alpha with impulsive correction: two simultaneous stages, accurate and damped",
    ),
    "ggl_decoupled": SchemeEntry(
        factory=ggl_decoupled,
        order=(1, 1, 1),
        position_level=True,
        stability_limit=2.0,
        summary="Moreau's midpoint rule, then a projection of the position: no penetration, no drift",
    ),
    "ggl_unified": SchemeEntry(
        factory=ggl_unified,
        order=(2, 2, 1),
        position_level=True,
        summary="Gear, Gupta, Leimkuhler: implicit midpoint rule with contacts on both levels",
    ),
    "nsga_decoupled": SchemeEntry(
        factory=nsga_decoupled,
        order=(2, 2, 2),
        position_level=True,
        singular_mass=True,
        summary="nonsmooth generalized-alpha: smooth motion, then position, then velocity",
    ),
    "nsga_neglected": SchemeEntry(
        factory=nsga_neglected,
        order=(2, 2, 2),
        position_level=True,
        singular_mass=True,
        summary="nsga_decoupled without the forces of the corrections: not for stiff bodies",
    ),
    "nsga_coupled": SchemeEntry(
        factory=nsga_coupled,
        order=(2, 2, 2),
        position_level=True,
        singular_mass=True,
        summary="the original nonsmooth generalized-alpha: the same three problems, coupled",
    ),
}  # fmt: skip
"""Registered schemes by name."""
