"""Table of models for the common tests, the command line and saved runs."""

from __future__ import annotations

import dataclasses
from typing import Any

from nsjax.models.block import block
from nsjax.models.bouncing_ball import bouncing_ball
from nsjax.models.elastic_bar import elastic_bar
from nsjax.models.flexible_cube import flexible_cube
from nsjax.models.flexible_pendulum import flexible_pendulum
from nsjax.models.mass_spring_chain import mass_spring_chain
from nsjax.models.rubbing_rotor import rubbing_rotor
from nsjax.models.slider_crank import slider_crank, slider_crank_bilateral
from nsjax.models.slider_crank_flexible import slider_crank_flexible
from nsjax.types import Fn


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelEntry:
    """A registered model.

    Args:
        factory: constructor; without arguments it gives the default problem.
        dt: step size at which the default problem is well resolved [s].
        time: duration that shows what the model does [s].
        scheme: name of the scheme with which the command line runs the default problem at this step size.
        shown: keyword arguments of an initial state that shows something, for the command line.
        small: keyword arguments of a variant that the common tests run.
        stiff: whether explicit schemes need a step size far below ``dt``.
        reference: where the equations come from.
        summary: description in one line.

    Example:
        >>> from nsjax import models
        >>> models.REGISTRY["slider_crank"].dt
        1e-05
    """

    factory: Fn
    dt: float
    time: float
    scheme: str = "moreau"
    shown: tuple[tuple[str, Any], ...] = ()
    small: tuple[tuple[str, Any], ...] = ()
    stiff: bool = False
    reference: str
    summary: str


REGISTRY: dict[str, ModelEntry] = {
    "block": ModelEntry(
        factory=block,
        dt=1e-4,
        time=1.0,
        shown=(("height", 0.05), ("slope", 0.2), ("friction", 0.3), ("restitution", 0.3)),
        small=(("height", 0.02), ("slope", 0.2), ("friction", 0.3), ("restitution", 0.3)),
        reference="[C section 4.1]; free rotation of an unsymmetric top",
        summary="rigid box on a rough inclined plane, in space (quaternion) or in the plane",
    ),
    "bouncing_ball": ModelEntry(
        factory=bouncing_ball,
        dt=1e-3,
        time=3.0,
        small=(("balls", 2), ("dimension", 2), ("friction", 0.3), ("height", 0.1)),
        reference="closed form",
        summary="balls on a table at rest or moving, on a slope, on each other; 1D and 2D",
    ),
    "elastic_bar": ModelEntry(
        factory=elastic_bar,
        dt=2.5e-4,
        time=1.5,
        scheme="bathe",
        small=(("elements", 6), ("distance", 0.3), ("restitution", 0.5)),
        reference="[C section 4.2]; exact: waves",
        summary="linear elastic bar that flies lengthwise against a wall, with an exact solution",
    ),
    "flexible_cube": ModelEntry(
        factory=flexible_cube,
        dt=1e-3,
        time=0.3,
        scheme="nsga_decoupled",
        # one large element, so that the common tests do not invert it
        small=(
            ("elements", 1),
            ("size", 4.0),
            ("young", 1e4),
            ("height", 0.05),
            ("velocity", (1.0, 0.0, -0.5)),
            ("rough", True),
            ("friction", 0.3),
            ("restitution", 0.5),
        ),
        reference="[C section 4.4]",
        summary="soft solid brick of hexahedra that falls on a plane, with friction or without",
    ),
    "flexible_pendulum": ModelEntry(
        factory=flexible_pendulum,
        dt=1e-4,
        time=0.35,
        scheme="nsga_decoupled",
        # thick and soft, so that explicit schemes run; it hits after 17 ms
        small=(
            ("elements", 2),
            ("area", 1e-2),
            ("second_moment", 8.33e-6),
            ("young", 1e6),
            ("density", 1e3),
            ("restitution", 0.5),
            ("angle", -0.7),
            ("speed", -5.0),
        ),
        stiff=True,
        reference="[C section 4.3]",
        summary="geometrically exact beam that swings around a pin against a wall",
    ),
    "mass_spring_chain": ModelEntry(
        factory=mass_spring_chain,
        dt=1e-4,
        time=10.0,
        stiff=True,
        reference="[R&S section 2.8]",
        summary="a chain of masses and springs, the last held by a very stiff spring or a constraint",
    ),
    "rubbing_rotor": ModelEntry(
        factory=rubbing_rotor,
        dt=1e-5,
        time=1.0,
        # large, so that the curvature of the ring does not spoil finite differences; conservative
        small=(
            ("clearance", 0.5),
            ("radius", 0.5),
            ("eccentricity", 0.05),
            ("stiffness", 10.0),
            ("damping", 0.0),
            ("drive", 0.0),
            ("speed", 10.0),
            ("initial_q", (0.45, 0.1, 0.0)),
            ("initial_v", (1.0, 0.5, 10.0)),
        ),
        reference="our own data; by name only: [SRKA], [R&S section 2.8]",
        summary="Jeffcott rotor whose unbalanced disc rubs against a rigid ring",
    ),
    "slider_crank": ModelEntry(
        factory=slider_crank,
        dt=1e-5,
        time=0.2,
        reference="Flores, Leine, Glocker 2010; [S&U&S (14)-(20)]",
        summary="planar slider-crank with clearance: four frictional corner contacts",
    ),
    "slider_crank_bilateral": ModelEntry(
        factory=slider_crank_bilateral,
        dt=1e-5,
        time=0.05,
        reference="[S&U&S (21)-(24)]",
        summary="planar slider-crank in an ideal guide: one bilateral constraint",
    ),
    "slider_crank_flexible": ModelEntry(
        factory=slider_crank_flexible,
        dt=1e-5,
        time=0.05,
        scheme="moreau_theta",
        small=(("elements", 2), ("modes", 2)),
        stiff=True,
        reference="[R&S section 3, Appendices C, D]",
        summary="planar slider-crank with clearance and a flexible rod: beam elements or modes",
    ),
}
"""Registered models by name."""
