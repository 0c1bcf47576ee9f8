"""Topology of a mechanism: tree of joints, loops, entries of coordinates, and angles over many turns."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core import InputError, nearest
from nsjax.core.errors import check_known
from nsjax.math import rotations, taken
from nsjax.multibody.couplings import KINDS as COUPLINGS
from nsjax.multibody.elements import kind_of as element_kind
from nsjax.multibody.joints import FREE, JointKind, kind_of
from nsjax.multibody.joints import KINDS as JOINTS
from nsjax.multibody.loads import KINDS as LOADS
from nsjax.multibody.loads import has_line
from nsjax.multibody.parts import GROUND, Part
from nsjax.types import Array, is_traced

# Angles of spatial hinges over many turns in absolute coordinates.
#
# The poses of two bodies give the angle between them up to full turns. A hinge whose angle is read
# therefore has three entries of ``q`` after all others: the accumulated rotation vector of the second
# body relative to the first since the start, in the axes of the first. Every increment of the position
# adds the rotation vector of its own rotation, which is below half a turn; this needs no params of the
# mechanism. The angle is that of the poses, plus the full turns that bring it nearest to the accumulated
# angle about the axis. It is exact to rounding as long as the error of the accumulated angle stays below
# half a turn, and it has the derivatives of the poses.
#
# Source: [GN (102)-(109)], ``theta = theta_i + theta_Delta``, committed every step.


ENTRIES = 3
"""Entries of ``q`` for a hinge whose turns are counted."""


def read_angles(parts: Sequence[Part], beyond: bool = False) -> tuple[str, ...]:
    """Names of the hinges whose angle is read: by springs, limits, laws (of a force or torque, that see
    all), or because ``turns`` is given. ``beyond``: without hinges whose two limits keep the angle within
    half a turn to either side, where the poses alone give it.
    """
    loads = [(LOADS[x.kind], x) for x in parts if x.kind in LOADS]
    sees_all = any(kind.sees_scene(x) for kind, x in loads)
    driven = {x.option("joint") for kind, x in loads if kind.reads_angle(x)}
    driven |= {name for x in parts for name in x.option("joints") or ()}
    found = []
    for part in parts:
        kind = JOINTS.get(part.kind)
        if kind is None or not kind.winds or (part.option("motion") is not None and not kind.reads_angle):
            continue
        limits = [x for x in (part.numbers.lower, part.numbers.upper) if x is not None]
        if beyond and len(limits) == 2 and not is_traced(limits) and max(map(abs, limits)) < np.pi:
            continue
        if sees_all or limits or part.name in driven or part.option("turns") or kind.reads_angle:
            found.append(part.name)
    return tuple(found)


def labels(hinges: Sequence[str]) -> list[str]:
    """Names of the entries of ``q`` of counted hinges."""
    return [f"{name}.turned{k} [rad]" for name in hinges for k in (1, 2, 3)]


def _relative(turns: Array, first: np.ndarray, second: np.ndarray) -> Array:
    """Quaternions (k, 4) of second bodies relative to first bodies; the ground is body 0."""
    padded = jnp.concatenate([jnp.asarray([[1.0, 0.0, 0.0, 0.0]]), turns])
    pairs = taken(padded, first), taken(padded, second)
    return jax.vmap(lambda a, b: rotations.bilinear(rotations.RELATIVE, a, b))(*pairs)


def counted(sums: Array, before: Array, after: Array, first: np.ndarray, second: np.ndarray) -> Array:
    """Accumulated rotation vectors (k, 3) of hinges after an increment of the position.

    Args:
        sums: accumulated rotation vectors (k, 3) before the increment [rad].
        before, after: quaternions (n, 4) of all bodies before and after the increment.
        first, second: numbers of the bodies of each hinge; the ground is 0.

    Example:
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> from nsjax.math import rotations
        >>> from nsjax.multibody.topology import counted
        >>> rest = jnp.array([1.0, 0, 0, 0])
        >>> there = rotations.rotate(rest, jnp.array([0.0, 0.0, 2.0]))
        >>> gone = jnp.array([[0.0, 0.0, 5.0]])
        >>> counted(gone, rest[None], there[None], np.array([0]), np.array([1])).round(12).tolist()
        [[0.0, 0.0, 7.0]]
    """
    # only full turns are read from the sums, which therefore need no derivatives
    sums, before, after = (lax.stop_gradient(x) for x in (sums, before, after))
    old, new = (rotations.conjugate(_relative(x, first, second)) for x in (before, after))
    return sums + jax.vmap(rotations.rotation_between)(new, old)


def whole(angle: Any, near: Any) -> Array:
    """An angle plus the full turns that bring it nearest to another angle ``near``."""
    gone = lax.stop_gradient(near - angle) / (2.0 * np.pi)
    return angle + 2.0 * np.pi * jnp.round(gone)


# Topology of a mechanism: tree of joints, loops, and entries of coordinates in ``q`` and ``v``.


BODIES = ("body", "node")
"""Kinds of parts that have a pose: rigid bodies, and nodes of beams."""

WHOLES = ("beam", "contact", "contact_group", "selection")
"""Kinds of parts, besides bodies, without an entry in a registry."""


@dataclasses.dataclass(frozen=True)
class Link:
    """Connection of a body to its parent in the tree.

    Args:
        body, parent: names of the bodies.
        kind: of the joint; `nsjax.multibody.joints.FREE` without a joint.
        joint: name of the joint; None for a free body.
        reversed: whether the joint was given from the body to its parent.
        q, v: first entries of the coordinates in ``q`` and of the velocities in ``v``.
        dimension: 2 or 3.
    """

    body: str
    parent: str
    kind: JointKind
    joint: str | None
    reversed: bool
    q: int
    v: int
    dimension: int

    @property
    def size(self) -> tuple[int, int]:
        """Numbers of coordinates and of velocities."""
        return self.kind.sizes[self.dimension]

    @property
    def entries(self) -> slice:
        """Slice of the coordinates in ``q``."""
        return slice(self.q, self.q + self.size[0])

    @property
    def rates(self) -> slice:
        """Slice of the velocities in ``v``."""
        return slice(self.v, self.v + self.size[1])

    @property
    def turn_at(self) -> int | None:
        """First entry of the quaternion among the coordinates of the link; None: no quaternion."""
        return self.kind.turn_at if self.dimension == 3 else None

    @property
    def free(self) -> bool:
        """Whether the body hangs on no joint."""
        return self.joint is None


def free_link(body: str, dimension: int = 3, place: int = 0) -> Link:
    """Link of a body without a joint, number ``place`` among such bodies."""
    nq, nv = FREE.sizes[dimension]
    return Link(body, GROUND, FREE, None, False, nq * place, nv * place, dimension)


def is_measured(part: Part) -> bool:
    """Whether a part has a coordinate: joints that are measured, and tendons."""
    return has_line(part) or (part.kind in JOINTS and JOINTS[part.kind].measure is not None)


@dataclasses.dataclass(frozen=True)
class Topology:
    """A mechanism without its numbers, hashable.

    Args:
        dimension: 2 or 3.
        coordinates: ``"joint"`` or ``"absolute"``.
        parts: without their numbers, in the order given.
        links: of the bodies, parents first.
        closures: names of the joints that are constraints.
        counted: names of the hinges whose turns are entries of ``q``: `coordinates.turn_counts`.
        kinds: kinds of the joints, loads and couplings, each once, so that a changed kind makes a new
            program.
    """

    dimension: int
    coordinates: str
    parts: tuple[Part, ...]
    links: tuple[Link, ...]
    closures: tuple[str, ...]
    counted: tuple[str, ...] = ()
    kinds: tuple[Any, ...] = ()

    @functools.cached_property
    def of(self) -> dict[str, Part]:
        """Parts by name."""
        return {part.name: part for part in self.parts}

    @functools.cached_property
    def link_of(self) -> dict[str, Link]:
        """Links by body."""
        return {link.body: link for link in self.links}

    @functools.cached_property
    def link_of_joint(self) -> dict[str, Link]:
        """Links by joint."""
        return {link.joint: link for link in self.links if link.joint is not None}

    @functools.cached_property
    def other_names(self) -> dict[str, str]:
        """Names of nodes of beams by the names of ends and stations."""
        return {x: node for part in self.all_of("beam") for x, node in places_along(part).items()}

    def measured(self, name: str) -> Part:
        """The joint or tendon, with a coordinate, of this name.

        Raises:
            InputError: without such a joint or tendon.
        """
        part = self.of.get(name)
        if part is None or not is_measured(part):
            known = [x.name for x in self.parts if is_measured(x)]
            raise InputError(f"scene: no joint {name!r} with a coordinate; {nearest(name, known)}")
        return part

    def all_of(self, *kinds: str) -> tuple[Part, ...]:
        """Parts of these kinds, in the order given."""
        return tuple(part for part in self.parts if part.kind in kinds)

    @functools.cached_property
    def loads(self) -> tuple[Part, ...]:
        """Springs, motors, forces and moments, without loads along beams."""
        return tuple(x for x in self.parts if x.kind in LOADS and LOADS[x.kind].along is None)

    @functools.cached_property
    def lines(self) -> tuple[Part, ...]:
        """Tendons."""
        return tuple(filter(has_line, self.loads))

    @functools.cached_property
    def line_loads(self) -> tuple[Part, ...]:
        """Loads along beams."""
        return tuple(x for x in self.parts if x.kind in LOADS and LOADS[x.kind].along is not None)

    @functools.cached_property
    def joints(self) -> tuple[Part, ...]:
        """All joints, in the order given."""
        return self.all_of(*JOINTS)

    @functools.cached_property
    def translations(self) -> tuple[tuple[int, ...], ...]:
        """Groups of velocities, each of which moves bodies that nothing holds without turning them or
        bending a joint: along each axis for bodies that hang freely, and along the slides on which a tree
        hangs. None for flexible bodies.
        """
        if self.all_of("beam"):
            return ()
        tree = {link.body: link.body for link in self.links}
        joined = [(x.body, x.parent) for x in self.links] + [self.of[x].bodies for x in self.closures]
        for first, second in joined:
            if GROUND not in (first, second):
                tree = {x: tree[second] if y == tree[first] else y for x, y in tree.items()}
        held = {tree[x] for name in self.closures for x in self.of[name].bodies if x != GROUND
                and GROUND in self.of[name].bodies}  # fmt: skip
        found: list[tuple[int, ...]] = []
        for root in dict.fromkeys(tree.values()):
            own = [x for x in self.links if x.parent == GROUND and tree[x.body] == root]
            if root in held:
                continue
            if all(x.kind is FREE for x in own):
                found += [tuple(x.v + k for x in own) for k in range(self.dimension)]
            while len(own) == 1 and own[0].size[1] == own[0].kind.slides == 1:
                found.append((own[0].v,))
                own = [x for x in self.links if x.parent == own[0].body]
        return tuple(found)

    @property
    def sizes(self) -> tuple[int, int]:
        """``nq, nv``; entries of bodies come first, then Gauss points of beams, then turn counts."""
        more = sum(element_kind(x).entries(x) for x in self.all_of("beam")) + ENTRIES * len(self.counted)
        return sum(x.size[0] for x in self.links) + more, sum(x.size[1] for x in self.links)


def places_along(beam: Part) -> dict[str, str]:
    """Nodes of a beam by the names of its ends and stations: ``{"arm.start": "arm.0"}`` and so on."""
    name, last = beam.name, beam.option("nodes") - 1
    found = {f"{name}.start": f"{name}.0", f"{name}.end": f"{name}.{last}"}
    return found | {f"{name}.{x}": f"{name}.{k}" for x, k in beam.option("stations") or ()}


def _kinds(parts: tuple[Part, ...]) -> tuple[Any, ...]:
    found = (table.get(x.kind) for x in parts for table in (JOINTS, LOADS, COUPLINGS))
    return tuple(dict.fromkeys(x for x in found if x is not None))


def check_names(parts: Sequence[Part]) -> None:
    """Refuse objects that are no parts, names used twice, and names of missing bodies and joints."""
    seen: dict[str, Part] = {}
    known = (*BODIES, *WHOLES, *JOINTS, *LOADS, *COUPLINGS)
    for part in parts:
        if not isinstance(part, Part):
            hint = "; write assemble(*parts) for a list of parts" if isinstance(part, list | tuple) else ""
            raise InputError(f"assemble: {part!r} is no part{hint}")
        if part.name in seen or part.name == "gravity":
            other = "the gravity" if part.name == "gravity" else f"a {seen[part.name].kind}"
            raise InputError(f"assemble: {part.kind} {part.name!r}: {other} has that name; choose another")
        seen[part.name] = part
        if part.kind not in known:
            raise InputError(
                f"assemble: part {part.name!r} is of the kind {part.kind!r}, which no registry holds; "
                f"add its record to KINDS of joints, loads or couplings first; {nearest(part.kind, known)}"
            )
    bodies = [GROUND, *(x.name for x in parts if x.kind in BODIES)]
    joints = [x.name for x in parts if x.kind in JOINTS]
    lines = [x.name for x in parts if has_line(x)]
    for part in parts:
        whole = part.option("nodes") is not None  # the first shape, or the loaded body, is a whole beam
        surface = part.option("closed") is not None  # the second shape is the surface of a beam
        for name in part.bodies[1 if whole else 0 : 1 if surface else None]:
            check_known(f"{part.kind} {part.name!r}: unknown body", name, bodies)
        joint = part.option("joint")
        if joint in lines:
            _check_in_line(part, seen[joint])
            continue
        for name in part.option("joints") or (joint,) * (joint is not None):
            if part.kind in COUPLINGS and name in lines:
                continue
            check_known(f"{part.kind} {part.name!r}: unknown joint", name, joints)
            if part.kind in LOADS:
                LOADS[part.kind].fits(part, seen[name])
        if part.kind in COUPLINGS:
            COUPLINGS[part.kind].check(part, seen)
    if len(bodies) == 1:
        raise InputError("assemble: no body; add body(name, mass=...)")


def _check_in_line(part: Part, tendon: Part) -> None:
    """Refuse loads of joints that cannot act on a tendon."""
    if not LOADS[part.kind].in_line:
        raise InputError(
            f"{part.kind} {part.name!r}: it cannot act on the tendon {tendon.name!r}; give the tendon "
            "stiffness and damping of its own"
        )
    if tendon.numbers.capstan_friction is not None:
        raise InputError(
            f"{part.kind} {part.name!r}: it cannot act on the tendon {tendon.name!r}, whose tension "
            "differs before and behind its drum; let it act on the body or joint at an end of the rope"
        )


def dimension_of(parts: Iterable[Part], gravity: Any) -> int:
    """Dimension of a mechanism: 2 unless a part or the gravity is spatial."""
    if np.ndim(gravity) == 1:
        return int(np.shape(gravity)[0])
    return 2 if spatial_part(parts) is None else 3


def spatial_part(parts: Iterable[Part]) -> Part | None:
    """The first part with a vector of three entries, or a joint that exists in space alone."""
    for part in parts:
        if part.kind in COUPLINGS:  # three coefficients of a polynomial are no vector of space
            continue
        table: Any = getattr(getattr(part.numbers, "motion", None), "values", None)
        path = table is not None and np.shape(table)[1:] == (6,)
        wide = path or any(np.shape(leaf)[-1:] == (3,) for leaf in _numbers(part.numbers))
        if wide or (part.kind in JOINTS and 2 not in kind_of(part).rows):
            return part
    return None


def _numbers(record: Any) -> list[Any]:
    """Arrays of the fields of a part that tell the dimension: not those of a user's law and tables."""
    if isinstance(record, tuple):
        return [x for value in record for x in _numbers(value)]
    if not dataclasses.is_dataclass(record):
        return [record] if hasattr(record, "shape") else []
    inner = [getattr(record, f.name) for f in dataclasses.fields(record) if f.name not in ("own", "motion")]
    return [x for value in inner for x in _numbers(value)]


def joint_topology(parts: Sequence[Part], dimension: int) -> Topology:
    """Breadth-first tree from the ground, joints in the order given; the remaining joints close loops.

    In space, a hinge of the tree has an angle with full turns, but a hinge that closes a loop has not. If
    possible, a joint whose angle is not read therefore closes a loop.
    """
    read = frozenset(read_angles(parts, beyond=True)) if dimension == 3 else frozenset()
    driven = frozenset(x.name for x in parts if x.kind in JOINTS and x.numbers.armature is not None)
    aside: frozenset[str] = frozenset()
    while True:
        made = _tree(parts, dimension, aside)
        open_to = [x for x in made.closures if x in read and not made.of[x].option("loop")]
        loops = [_loop(made, made.of[name].bodies) - read - driven for name in open_to]
        others = [x.name for loop in loops for x in made.parts if x.name in loop]
        if not others:
            return made
        aside |= {others[-1]}


def _loop(made: Topology, ends: tuple[str, ...]) -> set[str]:
    """Joints on the path in the tree between two bodies."""
    ways = []
    for body in ends:
        way = set()
        while body != GROUND:
            link = made.link_of[body]
            way |= {link.joint} if link.joint is not None else set()
            body = link.parent
        ways.append(way)
    return ways[0] ^ ways[1]


def _tree(parts: Sequence[Part], dimension: int, aside: frozenset[str]) -> Topology:
    """The tree, in which the joints ``aside`` close loops."""
    bare = tuple(dataclasses.replace(part, numbers=None) for part in parts)
    joints = [x for x in bare if x.kind in JOINTS and not x.option("switched")]
    hanging = [
        x for x in joints
        if x.name not in aside and not x.option("loop") and dimension in kind_of(x).sizes
    ]  # fmt: skip
    hung: dict[str, tuple[str, Part | None, bool]] = {}
    order, used, front = [], set(), [GROUND]
    bodies = [x.name for x in bare if x.kind == "body"]
    while True:
        while front:
            parent = front.pop(0)
            for joint in hanging:
                if joint.name in used:
                    continue
                if parent in joint.bodies:
                    child = joint.bodies[1] if joint.bodies[0] == parent else joint.bodies[0]
                    if child in hung or child == GROUND:
                        continue
                    used.add(joint.name)
                    hung[child] = parent, joint, joint.bodies[0] == child
                    order.append(child)
                    front.append(child)
        free = next((name for name in bodies if name not in hung), None)
        if free is None:
            break
        hung[free] = GROUND, None, False
        order.append(free)
        front.append(free)
    nq, nv, places = 0, 0, {}
    for name in bodies:  # coordinates are in the order of the bodies, whatever the tree
        above = hung[name][1]
        places[name] = nq, nv
        size = (FREE if above is None else kind_of(above)).sizes[dimension]
        nq, nv = nq + size[0], nv + size[1]
    links = []
    for name in order:
        parent, above, backwards = hung[name]
        kind, title = (FREE, None) if above is None else (kind_of(above), above.name)
        links.append(Link(name, parent, kind, title, backwards, *places[name], dimension))
    closures = tuple(x.name for x in joints if x.name not in used)
    return Topology(dimension, "joint", bare, tuple(links), closures, kinds=_kinds(bare))


def absolute_topology(parts: Sequence[Part], dimension: int) -> Topology:
    """A pose for every body, all joints as constraints."""
    bare = tuple(dataclasses.replace(part, numbers=None) for part in parts)
    bodies = [x.name for x in bare if x.kind in BODIES]
    links = tuple(free_link(x, dimension, k) for k, x in enumerate(bodies))
    closures = tuple(x.name for x in bare if x.kind in JOINTS and not x.option("switched"))
    counted = read_angles(parts) if dimension == 3 else ()
    return Topology(dimension, "absolute", bare, links, closures, counted, _kinds(bare))
