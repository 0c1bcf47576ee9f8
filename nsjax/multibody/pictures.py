"""Pictures of mechanisms: links between joints, shapes of contacts, springs, beams.

A body is drawn as a link through all points at which joints, loads and contacts act, with the shapes of its
contacts; a body that no joint holds beside its mass centre is the homogeneous disc or box with its inertia.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Set
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.core import InputError
from nsjax.fem import section_axes
from nsjax.multibody import joint_pictures, symbols
from nsjax.multibody.beams import nodes_of
from nsjax.multibody.contacts.all_shapes import KINDS as SHAPES
from nsjax.multibody.contacts.named_contacts import NamedContacts
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.joints import KINDS as JOINTS
from nsjax.multibody.joints import kind_of
from nsjax.multibody.loads import kind_of as load_kind
from nsjax.multibody.parts import FUNCTIONS, GROUND, Part
from nsjax.multibody.symbols import on_body
from nsjax.multibody.topology import Topology
from nsjax.shapes import Shape
from nsjax.types import Array, PyTree


def _shapes_of(part: Part, x: Any) -> Iterator[tuple[str, str, Any]]:
    """Body, kind and numbers of every shape of a contact, or of a group with a capacity."""
    if part.kind == "contact":
        yield from zip(part.bodies, part.option("shapes"), (x.first, x.second), strict=True)
        return
    seen: dict[str, int] = {}
    for kind, body in part.option("members"):
        k = seen[kind] = seen.get(kind, -1) + 1
        yield body, kind, jax.tree.map(lambda y, k=k: y[k], x.shapes[kind])


@dataclasses.dataclass(frozen=True)
class _Drawing:
    """One call that draws something on bodies.

    Args:
        draw: ``(scene, key, name, bodies, numbers) -> shapes``.
        key: hashable, all on which the drawing depends besides numbers.
        name, bodies: names of the part and of its bodies.
        numbers: a tree of arrays.
    """

    draw: Callable[..., Any]
    key: Any
    name: str
    bodies: tuple[str, ...]
    numbers: Any


Bodies = tuple[frozenset[str], ...]
"""Bodies in which others slide, those that have shapes, and those without mass."""

PLACEHOLDERS = ("\0", "\1", "\2")
"""Stand for the name and the two bodies of drawings that are alike."""


def _drawn(scene: Scene, drawings: list[_Drawing], size: float = 1.0) -> list[Shape]:
    """Shapes of all drawings; those that are alike are one call, and compile as one."""
    groups: dict[Any, list[tuple[_Drawing, Any]]] = {}
    for x in drawings:
        frames = [scene.frame(body) for body in x.bodies]
        leaves, tree = jax.tree.flatten((frames, x.numbers))
        fixed = x.draw, x.key, _stand_ins(x.bodies)
        groups.setdefault((fixed, tree, tuple(map(jnp.shape, leaves))), []).append((x, leaves))
    found: list[Shape] = []
    for ((draw, key, bodies), tree, _), members in groups.items():

        def drawn(
            leaves: list[Any], draw: Any = draw, key: Any = key, bodies: Any = bodies, tree: Any = tree
        ) -> Any:
            frames, numbers = jax.tree.unflatten(tree, leaves)
            own = dataclasses.replace(scene, frames=dict(zip(bodies, frames, strict=True)))
            return tuple(draw(own, key, PLACEHOLDERS[0], bodies, numbers))

        columns = zip(*(leaves for _, leaves in members), strict=True)
        several = jax.vmap(drawn, axis_size=len(members))(
            [jnp.stack([jnp.asarray(y, float) for y in x]) for x in columns]
        )
        for shape in several:
            names = tuple(_named(shape.name, x) for x, _ in members)
            marks = None if shape.marks is None else size * shape.marks
            found.append(dataclasses.replace(shape, name=names, marks=marks))
    return found


def _named(name: str, x: _Drawing) -> str:
    """A name with the names of a drawing in place of `PLACEHOLDERS`."""
    for mark, own in zip(PLACEHOLDERS, (x.name, *x.bodies), strict=False):
        name = name.replace(mark, own)
    return name


def _mesh(scene: Scene, faces: Any, name: str, bodies: tuple[str, ...], points: Array) -> list[Shape]:
    """Triangles of a body."""
    if scene.dimension == 2:
        raise InputError(
            "shape = mesh(...) of a body of the plane; a mesh is spatial: give a box, capsule or sphere"
        )
    return [on_body(scene, name, bodies[0], None, points, kind="mesh", faces=faces)]


def _stand_ins(bodies: tuple[str, ...]) -> tuple[str, ...]:
    """Placeholders for the names of bodies other than the ground."""
    return tuple(x if x == GROUND else PLACEHOLDERS[1 + k] for k, x in enumerate(bodies))


def _alike(part: Part) -> Part:
    """A part on two bodies without its names and numbers, and without the functions of a user."""
    given = ((k, True if k in FUNCTIONS and x is not None else x) for k, x in part.options)
    kept = tuple((k, x) for k, x in given if k != "joint")
    return Part(part.kind, PLACEHOLDERS[0], _stand_ins(part.bodies), None, kept)


def _shape(scene: Scene, kind: str, name: str, bodies: tuple[str, ...], x: Any) -> tuple[Shape, ...]:
    """A shape of a contact, or one that a body has for pictures."""
    return SHAPES[kind].drawn(scene, name, bodies[0], x)


def _contact_shapes(topology: Topology, p: PyTree) -> Iterator[_Drawing]:
    """Shapes of all contacts."""
    for part in topology.all_of("contact", "contact_group"):
        pairs = list(_shapes_of(part, p[part.name]))
        if part.option("nodes") is not None:  # a contact of all nodes of a beam, which has its own picture
            pairs = pairs[1:]
        for body, kind, x in pairs:
            name = part.name if body == GROUND else body
            yield _Drawing(_shape, kind, name, (body,), x)


def _points_of_action(topology: Topology, p: PyTree) -> dict[str, list[Any]]:
    """Points, in body axes, of every body at which joints, springs, tendons and loads act."""
    found: dict[str, list[Any]] = {}
    acting = (*topology.joints, *(x for x in topology.loads if load_kind(x).held))
    for part in sorted(acting, key=lambda x: (len(x.bodies) == 1, topology.parts.index(x))):
        x = p[part.name]
        points = x.at if isinstance(x.at, tuple) else (x.at, getattr(x, "on", None))
        for body, at in zip(part.bodies, points, strict=False):
            found.setdefault(body, []).append(at)
    return found


def _points_of_contact(topology: Topology, p: PyTree) -> dict[str, list[tuple[Any, Any]]]:
    """Points, in body axes, of every body around which it has shapes of contacts, and radii of hollows."""
    found: dict[str, list[tuple[Any, Any]]] = {}
    for part in topology.all_of("contact", "contact_group"):
        for body, kind, x in _shapes_of(part, p[part.name]):
            found.setdefault(body, []).extend(_middles(kind, x))
    return found


def _middles(kind: str, x: Any) -> list[tuple[Any, Any]]:
    """Points within a shape of a contact, and the radius of a hollow around each."""
    if kind in ("plane", "walls", "tube", "hull", "profile", "heightfield", "distance_field"):
        return []
    if kind == "points":
        return [(x.at[k], 0.0) for k in range(x.at.shape[0])]
    if kind in ("capsule", "cylinder") and x.half_length is not None:
        along = x.half_length * jnp.asarray(1.0 if x.axis is None else x.axis, float)
        middle = 0.0 if x.at is None else jnp.asarray(x.at, float)
        if jnp.ndim(along) != jnp.ndim(middle) and x.axis is None and x.at is not None and jnp.ndim(middle):
            along = jnp.zeros_like(middle).at[0].set(along)
        elif jnp.ndim(along) != jnp.ndim(middle):
            middle = jnp.zeros_like(along).at[0].set(middle)
        return [(middle + along, 0.0), (middle - along, 0.0)]
    return [(x.at, x.radius if kind == "hole" and x.axis is None else 0.0)]


def _inertia_box(x: Any) -> tuple[Array, Any]:
    """Half edges of the homogeneous box with an inertia, and the rotation of its axes; None: none."""
    inertia, turn = jnp.asarray(x.inertia, float), None
    if inertia.ndim == 2:
        inertia, turn = jnp.linalg.eigh(inertia)
        turn = turn * jnp.where(jnp.linalg.det(turn) < 0.0, -1.0, 1.0)
    square = 1.5 * (jnp.sum(inertia) - 2.0 * inertia) / jnp.where(jnp.asarray(x.mass) > 0.0, x.mass, 1.0)
    half = jnp.sqrt(jnp.where(square > 0.0, square, 0.0))
    thin = 0.05  # smallest edge of a box that is drawn for an inertia, relative to its largest edge
    return jnp.maximum(half, thin * jnp.max(half)), turn


def _link(
    scene: Scene, name: str, x: Any, held: list[Any], touched: list[tuple[Any, Any]], whole: bool
) -> Shape:
    """A body through all its points of action and contact; unless other shapes show it (``whole``), with
    the end of a homogeneous rod from a single point through the mass centre.
    """
    a = scene.algebra
    points = [a.array(a.vector(at)) for at in [*held, *(at for at, _ in touched)]]
    radii = [jnp.zeros(())] * len(held) + [jnp.asarray(r, float) for _, r in touched]
    if not whole:
        centre = a.array(a.vector(x.com))
        arm, spread = centre - points[0], jnp.stack(points) - points[0]
        reach = jnp.sqrt(jnp.sum(arm * arm))
        lonely = jnp.max(jnp.sum(spread * spread, axis=1)) < (0.5 * reach) ** 2
        largest = 0.0 if x.inertia is None else jnp.max(jnp.asarray(x.inertia, float))
        half = jnp.sqrt(3.0 * largest / jnp.where(jnp.asarray(x.mass) > 0.0, x.mass, 1.0))
        beyond = jnp.where(half < reach, half, reach) / jnp.where(reach > 0.0, reach, 1.0)
        points += [jnp.where(lonely, y, points[0]) for y in (centre, centre + beyond * arm)]
        radii += [jnp.zeros(())] * 2
    return symbols.hull(jnp.stack(points), jnp.stack(radii), name, pose=symbols.pose_of(scene, name))


def _body(
    scene: Scene, key: tuple[bool, bool], name: str, bodies: tuple[str, ...], numbers: Any
) -> list[Shape]:
    """A body as a link through its points; unless other shapes show it (``whole``), also a dot at its mass
    centre, or a box or disc for its inertia where no link shows it. One without mass is a part of a joint.
    """
    (x, held, touched), found = numbers, []
    (whole, empty), name = key, bodies[0]
    centred = all(at is None for at in (x.com, *held, *(at for at, _ in touched)))
    if held and not (whole and centred):
        found.append(_link(scene, name, x, held, touched, whole))
    if whole:
        return _as_hardware(found, {name} if empty else set())
    if scene.dimension == 3 and x.inertia is not None and (centred or not held):
        half, turn = _inertia_box(x)
        drawn = {"kind": "mesh", "faces": shapes.BOX_FACES}
        found.append(on_body(scene, name, name, x.com, shapes.box(half), turn, **drawn))
    elif scene.dimension == 2 and x.inertia is not None and (centred or not held):
        mass = jnp.where(jnp.asarray(x.mass) > 0.0, x.mass, 1.0)
        radius = jnp.sqrt(jnp.asarray(x.inertia) / mass)
        found.append(on_body(scene, name, name, x.com, shapes.disc(radius), kind="area"))
    else:
        found.append(on_body(scene, name, name, x.com, np.zeros((1, scene.dimension)), kind="dots"))
    return found


def _as_hardware(found: list[Shape], empty: Set[str]) -> list[Shape]:
    """Shapes of bodies without mass as parts of joints, and smaller."""
    small = 0.6  # size of such a block or link beside that of a body
    return [
        dataclasses.replace(x, role="joint", marks=None if x.marks is None else small * x.marks)
        if x.name in empty
        else x
        for x in found
    ]


def _beam(scene: Scene, part: Part, x: Any) -> list[Shape]:
    """A tube with the elliptic section of the beam's radii of gyration, and the axis of the beam."""
    nodes = nodes_of(part)
    axis = jnp.stack([scene.position(name) for name in nodes])
    _, axes = section_axes(jnp.asarray(x.points, float), jnp.asarray(x.first_axis, float))
    around = shapes.AROUND
    angles = 2.0 * np.pi * np.arange(around) / around
    bending = jnp.broadcast_to(jnp.asarray(x.section.EI, float), (2,))
    radii = jnp.sqrt(4.0 * bending / x.section.EA)  # bending about d1 depends on the extent along d2
    rings = []
    for k, name in enumerate(nodes):
        d = axes[min(k, len(nodes) - 2)]
        ring = radii[1] * np.cos(angles)[:, None] * d[:, 0] + radii[0] * np.sin(angles)[:, None] * d[:, 1]
        rings.append(shapes.placed(ring, scene.position(name), scene.rotation(name)))
    faces = shapes.lathe_faces(len(nodes), around)
    tube = Shape(points=jnp.concatenate(rings), name=part.name, kind="mesh", faces=faces)
    return [tube, Shape(points=axis, name=part.name)]


def _joint(
    scene: Scene, key: tuple[Part, Bodies], name: str, bodies: tuple[str, ...], numbers: Any
) -> list[Shape]:
    """A joint; its coordinate is among its numbers where it has stops."""
    part, (framed, solid, empty) = key
    x, now = numbers
    own = dataclasses.replace(scene, measure=lambda *_: (now, None))
    return _as_hardware(joint_pictures.joint(own, part, x, framed, solid), empty)


def _joints(scene: Scene, topology: Topology, p: PyTree, which: Bodies) -> list[Shape]:
    """Supports, guides, stops and wheels of all joints."""
    found = []
    for part in topology.joints:
        x, stand = p[part.name], dict(zip(part.bodies, _stand_ins(part.bodies), strict=True))
        limited = kind_of(part).winds and not (x.lower is None and x.upper is None)
        now = scene.coordinate(part.name) if limited else None
        sets = tuple(frozenset(stand[y] for y in part.bodies if y in z) for z in which)
        found.append(_Drawing(_joint, (_alike(part), sets), part.name, part.bodies, (x, now)))
    return _drawn(scene, found, _size(topology))


def _size(topology: Topology) -> float:
    """Size of the symbols of joints: smaller where there are many, as on the limbs of a robot."""
    few = 4  # number of joints up to which symbols have their usual size
    return float(min(1.0, np.sqrt(few / max(1, len(topology.joints)))))


def _load(scene: Scene, key: Any, name: str, bodies: tuple[str, ...], numbers: Any) -> Any:
    """A spring, damper or motor on two bodies, or in a joint."""
    part, joint = key
    if joint is None:
        return load_kind(part).shapes(scene, part, numbers)  # type: ignore[misc]
    x, y = numbers
    if load_kind(part).energy is not None:
        return joint_pictures.spring_in(scene, part, x, joint, y)
    return [joint_pictures.drive(scene, joint, y, name)]


def _loads(scene: Scene, topology: Topology, p: PyTree) -> list[Shape]:
    """Springs, dampers, tendons and motors."""
    found, drawings, around = list[Shape](), list[_Drawing](), list[_Drawing]()
    for part in topology.loads:
        joint, name, kind = topology.of.get(part.option("joint") or ""), part.name, load_kind(part)
        if kind.shapes is not None and len(part.bodies) > 2:
            found += kind.shapes(scene, part, p[name])
        elif kind.shapes is not None:
            drawings.append(_Drawing(_load, (_alike(part), None), name, part.bodies, p[name]))
        elif joint is not None and joint.kind in JOINTS and kind.effort is not None:
            both = _alike(part), _alike(joint)
            own = drawings if joint_pictures.slides(joint) else around
            own.append(_Drawing(_load, both, name, joint.bodies, (p[name], p[joint.name])))
    return [*found, *_drawn(scene, drawings), *_drawn(scene, around, _size(topology))]


def _dot(scene: Scene, key: None, name: str, bodies: tuple[str, ...], at: Any) -> list[Shape]:
    """The point of a joint."""
    return [Shape(points=scene.position(bodies[0], at)[None], name=name, kind="dots", role="joint")]


def _dots(scene: Scene, topology: Topology, p: PyTree) -> list[Shape]:
    """Points of all joints, and points where tendons are led."""
    parts = [x for x in topology.joints if kind_of(x).drawn == "dot"]
    found = [_Drawing(_dot, None, x.name, x.bodies[:1], p[x.name].at) for x in parts]
    for part in topology.lines:
        ends = list(zip(part.bodies, p[part.name].at, strict=False))  # none over drums
        found += [_Drawing(_dot, None, part.name, (body,), at) for body, at in ends[1:-1]]
    return _drawn(scene, found)


def _supports(scene: Scene, topology: Topology, p: PyTree) -> list[Shape]:
    """Supports of hollows in the ground, in which shafts have their clearance."""
    axes, found = symbols.upright(scene.dimension), []
    for part in topology.all_of("contact", "contact_group"):
        for body, kind, x in _shapes_of(part, p[part.name]):
            if body == GROUND and kind == "hole" and x.axis is None:
                below = scene.position(GROUND, x.at) - x.radius * axes[1]
                found.append(symbols.drawn_at(below, axes, symbols.SUPPORT, part.name, "ground"))
    return found


def _several(a: Any, n: int, dimension: int) -> Array:
    """One or n vectors of the algebra as rows (n, d)."""
    if dimension == 2:
        return jnp.stack([jnp.broadcast_to(plane.value(x), (n,)) for x in a], axis=1)
    wide = jnp.zeros(3) if a is None else a
    return jnp.broadcast_to(wide.T if wide.ndim == 2 else wide, (n, 3))


def _places(scene: Scene, named: NamedContacts, meetings: list[Any], limits: int, tangents: int) -> Any:
    """Points, normals and tangents of all contacts; NaN for limits of joints, which have no place."""
    d, counts = scene.dimension, named.rows
    points = [_several(x.here, n, d) for x, n in zip(meetings, counts, strict=True)]
    normals = [_several(x.normal, n, d) for x, n in zip(meetings, counts, strict=True)]
    across = [
        jnp.stack([_several(a, n, d) for a in x.tangents[:tangents]], axis=1)
        if tangents
        else jnp.zeros((n, 0, d))
        for x, n in zip(meetings, counts, strict=True)
    ]
    none, still = jnp.full((limits, d), jnp.nan), jnp.full((limits, tangents, d), jnp.nan)
    own = [named.in_order(x) for x in (points, normals, across)] if counts else []
    every = [[x] for x in own] or [[], [], []]
    found = (jnp.concatenate([*x, y]) for x, y in zip(every, (none, none, still), strict=True))
    return shapes.Places(**dict(zip(("points", "normals", "tangents"), found, strict=True)))


def picture(
    scene: Scene,
    topology: Topology,
    p: PyTree,
    named: NamedContacts,
    meetings: list[Any],
    limits: int,
    tangents: int,
) -> shapes.Picture:
    """Picture of a mechanism at an instant.

    Args:
        topology, p: parts and their numbers.
        named: named contacts.
        meetings: contact points and normals, piece by piece.
        limits: number of contacts that are limits of joints.
        tangents: number of tangents of a contact.
    """
    solid = {
        body
        for part in topology.all_of("contact", "contact_group")
        for body, kind, x in _shapes_of(part, p[part.name])
        if SHAPES[kind].filled(x)
    }
    solid |= {x.bodies[1] for x in topology.joints if joint_pictures.rolls(x)}
    meshed = {x.name for x in topology.all_of("body") if x.option("meshes")}
    solid |= meshed | {x.name for x in topology.all_of("body") if x.option("shapes")}
    framed = joint_pictures.frames(topology)
    empty = {x.name for x in topology.all_of("body") if x.option("empty")} - solid
    blocks = framed | {x.bodies[1] for x in topology.joints if joint_pictures.slides(x)}
    held, touched = _points_of_action(topology, p), _points_of_contact(topology, p)
    # a robot's limb in many pairs, which its own shapes show
    few = 6  # most points of contact through which a body is drawn that has shapes besides
    touched = {name: x for name, x in touched.items() if name not in solid or len(x) <= few}
    drawings = [x for x in _contact_shapes(topology, p) if x.bodies[0] not in meshed]
    for part in topology.all_of("body"):
        name = part.name
        for kind, x in zip(part.option("shapes") or (), p[name].shape or (), strict=True):
            drawings.append(_Drawing(_shape, kind, name, (name,), x))
        for x in part.option("meshes") or ():
            drawings.append(_Drawing(_mesh, tuple(map(tuple, x.faces.tolist())), name, (name,), x.points))
        if not part.option("shapes") and name not in meshed:
            own = p[name], held.get(name, []), touched.get(name, [])
            key = name in solid | blocks | empty, name in empty
            drawings.append(_Drawing(_body, key, name, (name,), own))
    found = [*_drawn(scene, drawings), *_supports(scene, topology, p)]
    for part in topology.all_of("beam"):
        found += _beam(scene, part, p[part.name])
    found += _joints(scene, topology, p, tuple(map(frozenset, (framed, solid, empty))))
    found += joint_pictures.wheels(scene, topology, p) + _loads(scene, topology, p)
    found += _dots(scene, topology, p)
    contacts = topology.all_of("contact")
    places = _places(scene, named, meetings, limits, tangents) if contacts or limits else None
    if topology.all_of("contact_group"):  # candidate pairs change, so that contacts have no fixed places
        places = None
    return shapes.Picture(shapes=tuple(found), contacts=places)
