"""Gears, which keep two coordinates in a constant ratio."""

from __future__ import annotations

from typing import Any

from nsjax.multibody.couplings.coupling_kind import CouplingKind, coupled
from nsjax.multibody.numbers import Coupling
from nsjax.multibody.parts import Part


def gear(name: str, joint: str, of: str, *, ratio: Any, offset: Any = 0.0) -> Part:
    """A pair of gears or a belt: the coordinate of ``joint`` is ``offset + ratio * (coordinate of of)``.

    The row ``x - offset - ratio y = 0`` is a constraint. Its multiplier ``L`` (in `Trajectory`, under the
    name of the coupling) is the effort on ``joint`` [N m], or [N] for a slide; the effort on ``of`` is
    ``-ratio L``.

    Args:
        name: of the gear; its numbers are ``params[name].ratio`` and ``params[name].offset``.
        joint, of: names of two hinges, slides or tendons, of the tree or of loops.
        ratio: of the coordinates, which is the radius of ``of`` divided by that of ``joint``, negative for
            wheels that turn in opposite directions.
        offset: coordinate of ``joint`` at coordinate zero of ``of``.

    Raises:
        InputError: for a joint that is coupled to itself; by `assemble`, for joints that are unknown or
            have no coordinate, and for couplings that contradict each other or a loop.

    Limits: the gear is rigid, without play and losses. Angles include full turns, except for spatial hinges
    that close loops in joint coordinates, see `hinge`.

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


GEAR = CouplingKind(name="gear", value=_value, drawn="gears")
