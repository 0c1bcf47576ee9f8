"""Couplings between the coordinates of joints: the record of a kind, and the kinds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.multibody.joints import KINDS as JOINTS
from nsjax.multibody.loads import has_line
from nsjax.multibody.numbers import Coupling
from nsjax.multibody.parts import Part, made, number, on_or_off, record_of


@dataclasses.dataclass(frozen=True, eq=False)
class CouplingKind:
    """A kind of couplings: an entry of `nsjax.multibody.couplings.KINDS` with all that defines it.

    A coupling is one constraint row: the coordinate of a joint, or the length of a tendon, is a function of
    the coordinate or length of another one. It acts like motors in both, whose efforts together do no work.

    Args:
        name: name of the function that makes such a coupling.
        value: ``(numbers, x)``, the coordinate of the joint at the coordinate ``x`` of the other one (zero
            without another joint).
        fits: ``(part, joint, of)``, raises for joints that it cannot couple; None: it couples all joints
            with a coordinate.
        drawn: what pictures show in its hinges: ``"gears"``, wheels in both; ``"pinion"``, one in the
            second; empty: nothing.

    Example:
        >>> from nsjax.multibody.couplings import KINDS
        >>> sorted(KINDS)
        ['coupling', 'gear', 'rack_pinion']
    """

    name: str
    value: Callable[[Coupling, Any], Any]
    fits: Callable[[Part, Part, Part], None] | None = None
    drawn: str = ""

    def residual(self, numbers: Coupling, x: list[Any]) -> Any:
        """Residual of the row [rad or m] at the coordinates of its joints."""
        return x[0] - self.value(numbers, x[1] if len(x) > 1 else 0.0)

    def check(self, part: Part, known: dict[str, Part]) -> None:
        """Refuse joints without a single coordinate, and joints that the kind does not fit."""
        joints = [known[name] for name in part.option("joints")]
        for joint in joints:
            if has_line(joint):
                continue
            if JOINTS[joint.kind].measure is None:
                raise InputError(
                    f"{part.kind} {part.name!r}: {joint.name!r} is a {joint.kind} joint, which does not "
                    "have a single coordinate; name a hinge or slide"
                )
            if joint.option("motion") is not None and len(joints) == 1:
                raise InputError(
                    f"{part.kind} {part.name!r}: {joint.name!r} has a prescribed motion; leave one out"
                )
        if self.fits is not None:
            self.fits(part, joints[0], joints[-1])


def coupled(kind: str, name: str, joint: str, of: str | None, **given: Any) -> Part:
    """A coupling as a part, after checks of its numbers."""
    if joint == of:
        raise InputError(f"{kind} {name!r}: couples {joint!r} to itself; name two joints")
    kept = record_of(Coupling, kind, name, **on_or_off(given))
    joints = (joint,) if of is None else (joint, of)
    return made(kind, name, (), kept, joints=joints, switched=kept.active is not None)


# Gears, which keep two coordinates in a constant ratio.


def gear(name: str, joint: str, of: str, *, ratio: Any, offset: Any = 0.0, active: Any = None) -> Part:
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
        active: whether the wheels mesh, True or False: a gear that is engaged within a run, which then
            keeps the ratio of the rates, see `hinge`; None: they always do.

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
        >>> traj = nsjax.simulate(problem, schemes.moreau(), dt=1e-3, steps=100)
        >>> round(float(traj["a.omega"][-1]), 6), round(float(traj["b.omega"][-1]), 6)
        (0.5, -0.25)
    """
    return coupled("gear", name, joint, of, ratio=ratio, offset=offset, active=active)


def _in_ratio(numbers: Coupling, x: Any) -> Any:
    return numbers.offset + numbers.ratio * x


GEAR = CouplingKind(name="gear", value=_in_ratio, drawn="gears")


# Couplings of two coordinates, or of lengths of tendons, by a polynomial.


def coupling(
    name: str, joint: str, of: str | None = None, *, polynomial: Any, active: Any = None
) -> Part:  # fmt: skip
    """The coordinate of ``joint`` is a polynomial ``c0 + c1 y + c2 y^2 + ...`` of the coordinate of ``of``.

    Examples are a finger that follows another, a cam with a given law, and a joint fixed at ``c0``. A
    tendon may take the place of a joint, with its length as the coordinate: for a rope of fixed length, or
    two tendons with a constant sum of lengths.

    Args:
        name: of the coupling; its numbers are ``params[name].polynomial``.
        joint, of: names of two hinges, slides or tendons; ``of`` None: ``joint`` is fixed at ``c0``.
        polynomial: (n,) coefficients, at least one, constant term first.
        active: see `gear`.

    Raises:
        InputError: for coefficients that are no row of numbers, and as for `gear`.

    Limits: those of `gear`. A tendon of fixed length also pushes; for a rope that may be slack, give the
    tendon ``limits``, see `tendon`. At the shortest possible length of a tendon, the row vanishes.

    Example:
        >>> from nsjax.multibody import coupling
        >>> coupling("tip", "distal", "proximal", polynomial=(0.0, 0.7, 0.1)).option("joints")
        ('distal', 'proximal')
    """
    polynomial = number("coupling", name, "polynomial", polynomial)
    if np.ndim(polynomial) != 1 or not np.shape(polynomial)[0]:
        raise InputError(
            f"coupling {name!r}: polynomial has shape {np.shape(polynomial)}; give coefficients (n,), "
            "constant first"
        )
    return coupled("coupling", name, joint, of, polynomial=polynomial, active=active)


def _polynomial(numbers: Coupling, x: Any) -> Any:
    total: Any = 0.0
    factors = jnp.asarray(numbers.polynomial, float)
    for k in reversed(range(factors.shape[0])):  # Horner's scheme
        total = factors[k] + x * total
    return total


COUPLING = CouplingKind(name="coupling", value=_polynomial)


# Racks and pinions, which keep a displacement proportional to an angle.


def rack_pinion(name: str, rack: str, pinion: str, *, radius: Any, offset: Any = 0.0) -> Part:
    """A pinion that drives a rack: the displacement of the slide ``rack`` is
    ``offset + radius * (angle of pinion)``.

    Args:
        name: of the coupling; its numbers are ``params[name].ratio`` (the radius) and ``offset``.
        rack, pinion: names of a slide and of a hinge.
        radius: of the pitch circle [m]; negative if the rack moves the other way.
        offset: displacement of the rack at the angle zero [m].

    Raises:
        InputError: for joints that are no slide and hinge, and as for `gear`.

    Limits: those of `gear`.

    Example:
        >>> from nsjax.multibody import rack_pinion
        >>> rack_pinion("steering", "rod", "wheel", radius=0.02).numbers.ratio
        0.02
    """
    return coupled("rack_pinion", name, rack, pinion, ratio=radius, offset=offset)


def _fits(part: Part, rack: Part, pinion: Part) -> None:
    tendons = has_line(rack) or has_line(pinion)
    if tendons or JOINTS[rack.kind].turns or not JOINTS[pinion.kind].turns:
        raise InputError(
            f"rack_pinion {part.name!r}: {rack.name!r} is a {rack.kind} and {pinion.name!r} a "
            f"{pinion.kind}; name a slide and a hinge, in this order"
        )


RACK_PINION = CouplingKind(name="rack_pinion", value=_in_ratio, fits=_fits, drawn="pinion")
