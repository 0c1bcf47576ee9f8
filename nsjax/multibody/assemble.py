"""Assembly of parts into the problem of a mechanism."""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError, Problem, State
from nsjax.core.errors import check_choice
from nsjax.multibody.beam_start import beam_start, dependent_beam_rows
from nsjax.multibody.beams import with_nodes
from nsjax.multibody.contacts import turning_friction
from nsjax.multibody.contacts.all_shapes import KINDS as SHAPES
from nsjax.multibody.contacts.groups import (
    LISTED,
    MANY_CONTACTS,
    UNASKED,
    stand_ins,
    with_candidates,
    with_groups,
)
from nsjax.multibody.contacts.named_contacts import NamedContacts
from nsjax.multibody.coordinates.absolute import Bodies
from nsjax.multibody.joints import KINDS as JOINTS
from nsjax.multibody.kept_start import KeptStart, kept_beams, kept_start, nearest_start
from nsjax.multibody.loads import kind_of as load_kind
from nsjax.multibody.mechanism import Mechanism
from nsjax.multibody.parts import Part, number
from nsjax.multibody.presence import presence_of
from nsjax.multibody.start import (
    StartArguments,
    as_joint,
    at_rest,
    close,
    dependent_rows,
    journals_of,
    poses,
    with_journals,
)
from nsjax.multibody.topology import (
    Topology,
    absolute_topology,
    check_names,
    dimension_of,
    joint_topology,
    read_angles,
    spatial_part,
)
from nsjax.types import is_traced, without_values

COORDINATES = ("joint", "absolute")
EQUILIBRIUM = "equilibrium"


def assemble(
    *parts: Part, gravity: Any = None, coordinates: str = "joint",
    start: Mapping[str, Any] | str | None = None, guess: Mapping[str, Any] | None = None,
    near: Mapping[str, Any] | None = None,
) -> Problem:  # fmt: skip
    """A mechanism of parts, ready for `nsjax.simulate`.

    Args:
        parts: bodies, joints, springs, loads and contacts, in any order.
        gravity: a number for the downward direction (-y in the plane, -z in space), or a vector (2,) or
            (3,) [m/s^2]; None: no gravity, which then is no parameter that can be varied.
        coordinates: ``"joint"``: a tree of joints, loops closed by constraints, few unknowns.
            Of bodies that hang together, but not on the ground, the first one given is the free one.
            ``"absolute"``: a pose for every body, joints as constraints, for long chains and all mechanisms
            with beams.
        start: ``{name: (position, velocity)}`` of bodies, or of the joints that they hang on; a single
            value is a position. In the plane, a body on a hinge has its angle from the ground's x axis and
            its rate, a slide its displacement, a free body ``((x, y, angle), (vx, vy, omega))``. In space a
            hinge has its own angle, a ball a rotation vector (3,) or a quaternion (4,) and the angular
            velocity in body axes, a free body ``(x, y, z)`` with or without one of these rotations. A pair
            of vectors is position and velocity: a turned free body is ``(((x, y, z), turn), velocity)``,
            with None for a velocity that is not given. Coordinates that are not given are zero, or follow
            from the closure of loops. A beam, and each body of a mechanism with beams, is given like a free
            body in space, a beam by its displacement from the drawn shape; nodes may have a start of their
            own. Rigid bodies follow from their joints to beams, and so do velocities, for which beams move
            like rigid bodies. A contact of a `sphere` in a round `hole`, a bearing with clearance, has the
            eccentricity of the sphere, from the centre of the hole in its axes [m], zero for a centred
            one: the start is that of the ideal linkage with a joint there, and then the clearance opens.
            ``"equilibrium"``: rest in a stable equilibrium of all forces without contacts and limits, to
            which a damped motion from ``guess`` leads.
        guess: in the same form, the position from which the closure of loops is searched. It decides which
            of several closed positions is found. Velocities, and positions of beams, are ignored.
        near: in the same form, in place of both: the start is the nearest position in which loops are
            closed, couplings hold and limits are not passed, and the velocity nearest to the given one that
            keeps loops and couplings. Distance is the sum of the squares of all coordinates [m, rad].
            Contacts are ignored, see `nsjax.consistent`.

    Returns:
        A `Problem`: ``problem.params["rod"].mass`` and so on by the names of the parts,
        ``problem.params["gravity"]``.

    Raises:
        InputError: naming the part, for names that are unknown or used twice, joints that contradict each
            other, loops that do not close, springs without direction, and mechanisms whose equilibrium is
            not found, or violates a contact or limit.

    Limits: an equilibrium uses dense matrices, and needs numbers that are not traced. If contacts support
    the mechanism, name them to `nsjax.analysis.equilibrium`, which also finds unstable equilibria.

    Example:
        >>> import nsjax
        >>> from nsjax import schemes
        >>> from nsjax.multibody import assemble, body, hinge
        >>> problem = assemble(
        ...     body("rod", mass=1.0, inertia=0.1, com=0.5), hinge("pin", "ground", "rod"), gravity=9.81
        ... )
        >>> traj = nsjax.simulate(problem, schemes.moreau(), dt=1e-3, steps=100)
        >>> round(float(traj["rod.angle"][-1]), 3)
        -0.07
    """
    if isinstance(start, str):
        if start != EQUILIBRIUM:
            raise InputError(
                f"assemble: start = {start!r}; give positions by names of bodies and joints, or "
                f"{EQUILIBRIUM!r}"
            )
        return at_rest(assemble(*parts, gravity=gravity, coordinates=coordinates, guess=guess, near=near))
    if near is not None and (start or guess):
        raise InputError("assemble: near is given together with start or guess; give one of them")
    return assembled(
        parts, gravity, coordinates, StartArguments(dict(start or {}), dict(guess or {}), near)
    )


def assembled(parts: tuple[Part, ...], gravity: Any, coordinates: str, begin: StartArguments) -> Problem:
    """The problem of `assemble` from a start that is no equilibrium."""
    check_choice("assemble: coordinates", coordinates, COORDINATES)
    gravity = number("assemble", "gravity", "gravity", gravity)
    if gravity is not None and not np.ndim(gravity) and not is_traced(gravity) and gravity < 0.0:
        raise InputError(f"assemble: gravity = {gravity}; it points down: give {-gravity}, or a vector")
    known = [x for x in parts if isinstance(x, Part)]  # others are refused below
    parts = with_nodes(with_groups(parts, coordinates, dimension_of(known, gravity)))
    check_names(parts)
    dimension = dimension_of(parts, gravity)
    _check_dimension((*parts, *stand_ins(parts)), dimension)
    parts = with_candidates(parts, dimension, coordinates)
    own, journals = journals_of(parts, begin.start, dimension)
    begin = dataclasses.replace(begin, start=own)
    if any(part.kind == "beam" for part in parts):
        if begin.near is not None:
            raise InputError("assemble: near does not work in a mechanism with beams; give start and guess")
        return _with_beams(parts, gravity, dict(begin.start), begin.guess)
    tree = _mechanism(parts, joint_topology(parts, dimension))
    if not tree.topology.sizes[1]:
        names = ", ".join(repr(x.joint) for x in tree.topology.links)
        raise InputError(f"assemble: nothing can move: all bodies hang on fixed joints ({names}); free one")
    params = {part.name: part.numbers for part in parts} | {"gravity": gravity}
    _check_leaves(parts, tree)
    _check_turning(parts, tree)
    ideal = tree
    if journals:
        centred = tuple(as_joint(x, dimension) if x.name in dict(journals) else x for x in parts)
        ideal = _mechanism(centred, joint_topology(centred, dimension))
    if begin.near is None:
        q, v = close(ideal, with_journals(params, journals, dimension), begin.start, begin.guess)
    else:
        q, v = nearest_start(tree, params, begin.near)
    _check_springs(tree, params, q)
    dropped = dependent_rows(tree, params, q)
    if coordinates == "joint":
        _check_armatures(parts, tree)
        _tell_turns(parts, tree)
        kept = kept_start(ideal, begin, dropped, False, journals)
        return _problem(tree, dropped, params, q, v, kept)
    made = _mechanism(parts, absolute_topology(parts, dimension))
    _check_masses(parts)
    _check_armatures(parts, made)
    q, v = poses(tree, params, q, v, made.tree.names, made.topology.counted)
    return _problem(made, dropped, params, q, v, kept_start(ideal, begin, dropped, True, journals))


def _problem(
    made: Mechanism, dropped: tuple[str, ...], params: Any, q: Any, v: Any, kept: KeptStart | None
) -> Problem:
    """The problem of a mechanism without the constraint rows ``dropped``, which follow from others."""
    made = dataclasses.replace(made, kept=kept)
    if dropped:
        made = dataclasses.replace(made, presence=dataclasses.replace(made.presence, dropped=dropped))
    problem = Problem(system=made.system(), params=params, state=State(t=0.0, q=q, v=v))
    if not problem.system.changing_contacts and not problem.system.islands:
        _tell_rows(made.named, made.topology.coordinates == "joint" and Bodies(made.topology).free)
    return problem


def _with_beams(parts: tuple[Part, ...], gravity: Any, start: dict[str, Any], guess: Any) -> Problem:
    """The problem of a mechanism with beams, in absolute coordinates."""
    params = {part.name: part.numbers for part in parts if part.kind != "node"} | {"gravity": gravity}
    made = _mechanism(parts, absolute_topology(parts, 3))
    _check_masses(parts)
    _check_armatures(parts, made)
    q, v = beam_start(made, params, start, dict(guess or {}))
    _check_springs(made, params, q)
    return _problem(made, dependent_beam_rows(made, params, q), params, q, v, kept_beams(made, start))


def _mechanism(parts: tuple[Part, ...], topology: Topology) -> Mechanism:
    return Mechanism(topology, presence_of(parts, topology))


class RowsWarning(UserWarning):
    """A mechanism has many contacts, so that its steps are slow."""


def _tell_rows(contacts: NamedContacts, alone: bool) -> None:
    """Warn of many contacts of rigid bodies before compilation; ``alone``: contacts alone join them."""
    many = contacts.between_bodies
    if many <= MANY_CONTACTS:
        return
    own = [x for x in contacts.chosen if not x.part.option("asked")]
    if own:
        few, most = contacts.of_step.between_bodies, max(len(x.names) for x in own)
        said = (
            f"a step solves for the {few} whose bodies are nearest at its start: {UNASKED} pairs of each "
            "two kinds of shapes. Change this number by capacity= of contact_group or of the reader of the "
            f"file; {most} is all. Without self_contact, links of a robot have no contacts with each other"
        )
    elif any(x.part.option("asked") for x in contacts.many):
        if not alone or many <= LISTED:
            return
        said = (
            f"each has a name, and a step solves for {contacts.of_step.between_bodies}; free bodies step "
            'many times faster with coordinates="absolute", where contacts have slots in place of names'
        )
    else:
        said = (
            "every step solves for all of them, and the first call takes longer. "
            "Leave out pairs that never touch, by exclude= of contact_group, self_contact=False of "
            "the reader or in the model's file, or take contact_group, which solves for near pairs alone"
        )
    warnings.warn(
        f"assemble: {many} contacts between bodies, beyond {MANY_CONTACTS}: {said}",
        RowsWarning,
        stacklevel=5,
    )


class TurnsWarning(UserWarning):
    """An angle that a spring, limit or law reads lies between -pi and pi, and jumps at half a turn."""


def _tell_turns(parts: tuple[Part, ...], tree: Mechanism) -> None:
    """Warn of angles that are read and whose full turns are not counted, in joint coordinates."""
    read = read_angles(parts, beyond=True) if tree.dimension == 3 else ()
    jumping = [name for name in tree.topology.closures if name in read]
    if jumping:
        warnings.warn(
            f"hinge {', '.join(map(repr, jumping))}: closes a loop, so that its angle lies between -pi and "
            "pi and jumps at half a turn, and a spring, limit or law reads it; name a joint of the loop "
            'whose angle nothing reads with loop=True, or assemble with coordinates="absolute", which '
            "counts turns",
            TurnsWarning,
            stacklevel=4,
        )


def _check_leaves(parts: tuple[Part, ...], mechanism: Mechanism) -> None:
    """Refuse bodies without mass on which no body with mass hangs."""
    masses = {x.name: x.numbers.mass for x in parts if x.kind == "body"}
    for link in reversed(mechanism.topology.links):
        if is_traced(masses[link.body]):
            return
        if not np.asarray(masses[link.body]) > 0.0:
            hangs = "" if link.joint is None else f" on {link.kind.name} {link.joint!r}"
            raise InputError(
                f"body {link.body!r}: mass = {masses[link.body]} and nothing with mass hangs on it, so "
                f"that its motion{hangs} moves no inertia; ropes, springs and loops add none. Give it "
                "mass, such as a thousandth of what it moves, or leave it out"
            )
        masses[link.parent] = 1.0


def _check_masses(parts: tuple[Part, ...]) -> None:
    """Refuse bodies without mass in absolute coordinates, where their acceleration is undefined."""
    for x in parts:
        if x.kind == "body" and not is_traced(x.numbers.mass) and not np.asarray(x.numbers.mass) > 0.0:
            raise InputError(
                f"body {x.name!r}: mass = {x.numbers.mass}, and in absolute coordinates (always with "
                'beams) every body needs a mass; give it one, or take coordinates="joint"'
            )


def _check_armatures(parts: tuple[Part, ...], made: Mechanism) -> None:
    """Refuse armatures of joints that are constraints, which have no coordinate to drive an inertia, and of
    bodies that are not free or whose coordinates are those of their centres of mass.
    """
    for x in parts:
        if x.kind == "body" and x.numbers.armature is not None:
            free = made.topology.coordinates == "joint" and made.topology.link_of[x.name].joint is None
            if not free:
                raise InputError(
                    f"body {x.name!r}: armature = {x.numbers.armature}, and only a free body in joint "
                    "coordinates has one; give it to the joint on which the body hangs, or take "
                    'coordinates="joint"'
                )
        if x.name in made.topology.closures and x.numbers.armature is not None:
            raise InputError(
                f"{x.kind} {x.name!r}: armature = {x.numbers.armature}, but the joint is a constraint and "
                "has no coordinate (all joints in absolute coordinates, one joint of every loop in joint "
                "coordinates); let another joint close the loop (loop=True), or give the inertia to the "
                "body behind the joint"
            )


def _check_turning(parts: tuple[Part, ...], mechanism: Mechanism) -> None:
    """Refuse bodies without inertia that turn about their centre of mass at the end of a tree."""
    known = {x.name: x.numbers for x in parts}
    topology = mechanism.topology
    held = {link.parent for link in topology.links}
    held |= {x for name in topology.closures for x in topology.of[name].bodies}
    for link in mechanism.topology.links:
        x, joint = known[link.body], None if link.joint is None else known[link.joint]
        if link.body in held or not (link.kind.turns or link.kind.swivels) or is_traced((x, joint)):
            continue
        if (x.inertia is not None and np.any(x.inertia)) or (joint and joint.armature is not None):
            continue
        centre, own = x.com, None if joint is None else (joint.at if link.reversed else joint.on)
        if joint is not None and np.any(_point(centre) != _point(own)):
            continue
        raise InputError(
            f"body {link.body!r}: inertia = {x.inertia}, but it turns about its centre of mass; give a "
            "value"
        )


def _point(x: Any) -> np.ndarray:
    """A point, given as None, a number or a vector, as an array (3,)."""
    found, flat = np.zeros(3), np.zeros(1) if x is None else np.asarray(x, float).reshape(-1)
    found[: len(flat)] = flat
    return found


def _check_springs(mechanism: Mechanism, params: Any, q: Any) -> None:
    """Refuse springs that have no direction at the start."""
    if without_values((params, q)):
        return
    checked = [(x, check) for x in mechanism.topology.loads if (check := load_kind(x).check) is not None]
    if not checked:
        return
    scene = mechanism.scene(jnp.zeros(()), jnp.asarray(q), None, params)
    for part, check in checked:
        check(scene, part, params[part.name])


def _check_dimension(parts: tuple[Part, ...], dimension: int) -> None:
    """Refuse parts that do not fit the dimension of the mechanism, or lack numbers in it."""
    if dimension not in (2, 3):
        raise InputError(f"assemble: gravity has {dimension} components; give a number, 2 or 3")
    for part in parts:
        x = part.numbers
        joint = JOINTS.get(part.kind)
        if joint is not None and dimension not in joint.rows:
            raise InputError(
                f"{part.kind} {part.name!r}: is a joint of space, but gravity has 2 components; give 3"
            )
        _check_points(part, dimension)
        if joint is not None and joint.check is not None:
            joint.check(part, dimension)
        scalar = part.kind == "body" and x.inertia is not None and np.ndim(x.inertia) == 0
        if dimension == 3 and scalar:
            raise InputError(
                f"body {part.name!r}: inertia = {x.inertia} in a spatial mechanism ({_spatial_by(parts)}); "
                "give three moments about body axes, or a matrix; for a plane mechanism give all vectors "
                "two entries"
            )
        if part.kind in ("body", "contact"):
            _check_shapes(part, dimension)
        if part.kind == "contact":
            turning_friction.check(part, dimension)


def _spatial_by(parts: tuple[Part, ...]) -> str:
    """What makes a mechanism one in space."""
    part = spatial_part(parts)
    if part is None:
        return "gravity has three entries"
    joint = part.kind in JOINTS and 2 not in JOINTS[part.kind].rows
    return f"{part.kind} {part.name!r} " + ("is a joint of space" if joint else "has a vector of three")


def _check_shapes(part: Part, dimension: int) -> None:
    """Refuse shapes that do not exist in the dimension of the mechanism, or lack numbers in it."""
    x = part.numbers
    both = (x.first, x.second) if part.kind == "contact" else x.shape or ()
    bodies = part.bodies or [part.name] * len(both)
    for kind, body, x in zip(part.option("shapes") or (), bodies, both, strict=True):
        known = SHAPES[kind]
        instead = dict(known.instead).get(dimension)
        lack = known.lacks(body, x, dimension) if instead is None and known.lacks is not None else instead
        if lack is not None:
            raise InputError(f"{part.kind} {part.name!r}: {lack}")


POINTS = ("com", "at", "on", "axis", "second_axis", "normal", "sides")
"""Names of the numbers that may be one number, along the x axis, or a vector."""


def _check_points(part: Part, dimension: int) -> None:
    """Refuse vectors whose number of components is not the dimension of the mechanism."""
    shapes = (part.numbers.first, part.numbers.second) if part.kind == "contact" else (part.numbers,)
    more = (getattr(part.numbers, name, None) or () for name in ("shape", "around"))
    for x in itertools.chain(shapes, *more):
        for name in POINTS:
            value: Any = getattr(x, name, None)
            for shape in map(np.shape, value if isinstance(value, tuple) else (value,)):
                if len(shape) == 1 and shape != (dimension,):
                    raise InputError(
                        f"{part.kind} {part.name!r}: {name} has {shape[0]} components in a mechanism of "
                        f"{dimension} dimensions; give {dimension}"
                    )
