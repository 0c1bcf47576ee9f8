"""Beams with which several tests work."""

from __future__ import annotations

import numpy as np

from nsjax.core import Problem
from nsjax.multibody import assemble, beam, fixed, force, hinge, section, torque

COLUMN = {"EA": 1e6, "GA": 1e6, "EI": (1.0, 10.0), "GJ": 1.0, "line_mass": 1.0, "line_inertia": 1e-8}
LENGTH, ELEMENTS = 1.0, 4


def cantilever(elements: int = ELEMENTS, **given) -> Problem:
    """Along x, clamped at the origin, soft in the plane x-y, with a force at its end."""
    return assemble(
        beam("arm", (0, 0, 0), (LENGTH, 0, 0), elements=elements, section=section(**COLUMN),
             first_axis=(0, 0, 1), **given),
        fixed("clamp", "ground", "arm.start"),
        force("tip", "arm.end", (0.0, 0.0, 0.0)), force("push", "arm.end", (0.0, 0.0, 0.0), follower=True),
        torque("bend", "arm.end", (0.0, 0.0, 0.0)),
    )  # fmt: skip


def lees_frame(elements: int, shear: float = 1.0, **given) -> tuple[Problem, int]:
    """Two legs of so many pairs of neighbours, pinned feet, a force downwards at a fifth of the horizontal
    leg; and the node where it acts. Shear factor 5/6, Poisson's ratio 0.3, ``shear`` times as stiff.
    """
    leg, E = 120.0, 7.2e6
    s = np.linspace(0.0, leg, elements + 1)
    up = np.stack([0 * s, s, 0 * s], axis=1)
    across = np.stack([s[1:], leg + 0 * s[1:], 0 * s[1:]], axis=1)
    stiff = section(EA=6 * E, GA=shear * 6 * E / 2.6 * 5 / 6, EI=2 * E, GJ=2 * E)
    node = elements + elements // 5
    problem = assemble(
        beam("frame", np.concatenate([up, across]), section=stiff, first_axis=(0, 0, 1), **given),
        hinge("foot", "ground", "frame.start", axis=(0, 0, 1)),
        hinge("far", "ground", "frame.end", at=(leg, leg, 0.0), axis=(0, 0, 1)),
        force("P", f"frame.{node}", (0.0, 0.0, 0.0)),
    )
    return problem, node
