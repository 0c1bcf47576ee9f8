"""Gears: two coordinates in a constant ratio."""

from __future__ import annotations

from typing import Any

from nsjax.multibody.couplings.coupling_kind import CouplingKind, coupled
from nsjax.multibody.numbers import Coupling
from nsjax.multibody.parts import Part


def gear(name: str, joint: str, of: str, *, ratio: Any, offset: Any = 0.0) -> Part:
    """A pair of gears or a belt: the coordinate of ``joint`` is ``offset + ratio * (coordinate of of)``.

    The row ``x - offset - ratio y = 0`` holds as a constraint. Its force ``L`` (`Trajectory` has it under
    the coupling's name) is the effort on ``joint`` [N m], or [N] of a slide, and ``-ratio L`` that on
    ``of``.

    Args:
        name: of the gear; its numbers are ``params[name].ratio`` and ``params[name].offset``.
        joint, of: names of two hinges, slides or tendons, of the tree or of loops.
        ratio: of the coordinates: radius of ``of`` by that of ``joint``, negative where the wheels turn
            against each other.
        offset: coordinate of ``joint`` where that of ``of`` is zero.

    Raises:
        InputError: for a joint that is coupled to itself; by `assemble`, for joints that are unknown or
            have no coordinate, and for couplings that contradict each other or a loop.

    Limits: rigid, without play and losses. Angles count their turns but for hinges of space that close
    loops in joint coordinates, see `hinge`.

    Example:
        >>> import nsjax
        >>> from nsjax import schemes
        >>> from nsjax.multibody import actuator, assemble, body, gear, hinge
        >>> problem = assemble(
        ...     body("a", mass=1.0, inertia=0.1), hinge("A", "ground", "a"), actuator("m", "A", 1.0),
        ...     body("b", mass=1.0, inertia=0.4), hinge("B", "ground", "b", at=0.3),
        ...     gear("mesh", "B", "A", ratio=-0.5),
        ... )
        >>> traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=100)
        >>> round(float(traj["a.omega"][-1]), 6), round(float(traj["b.omega"][-1]), 6)
        (0.5, -0.25)
    """
    return coupled("gear", name, joint, of, ratio=ratio, offset=offset)


def _value(numbers: Coupling, x: Any) -> Any:
    return numbers.offset + numbers.ratio * x


GEAR = CouplingKind(name="gear", value=_value)
