"""What a mechanism looks like: shapes of its contacts, lines between its joints, springs, beams.

A body without shapes of its own is drawn as lines from its mass centre to what acts on it and, where that
says little, as the homogeneous disc or box that has its inertia.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.fem import section_axes
from nsjax.multibody.contacts import profiles
from nsjax.multibody.contacts.all_shapes import KINDS as SHAPES
from nsjax.multibody.contacts.named_contacts import Named
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.coordinates.spatial_vectors import rotation_of
from nsjax.multibody.flexible.beams import nodes_of
from nsjax.multibody.joints import kind_of
from nsjax.multibody.loads import kind_of as load_kind
from nsjax.multibody.parts import GROUND, Part
from nsjax.multibody.topology import Topology
from nsjax.shapes import Shape
from nsjax.types import Array, PyTree

THIN = 0.05
"""Least edge of a box that is drawn for an inertia, in its largest one."""

KNOT = 4
"""Points of a profile that are drawn between two of its control points."""


def _turn(scene: Scene, body: str) -> Any:
    """Turn of a body for `nsjax.shapes.placed`."""
    frame = scene.frame(body)
    if scene.dimension == 3 or frame.turn is None:
        return frame.turn
    return jnp.arctan2(plane.value(frame.turn[0]), plane.value(frame.turn[1]))


def _at(scene: Scene, body: str, at: Any, local: Any, own: Any = None) -> Array:
    """Points of a shape around ``at`` of a body, turned by ``own`` against it."""
    if own is not None:
        local = shapes.placed(local, jnp.zeros(scene.dimension), own)
    return shapes.placed(local, scene.position(body, at), _turn(scene, body))


def _angle(axis: Any) -> Any:
    """Angle of an axis of the plane."""
    return None if axis is None else jnp.arctan2(jnp.asarray(axis[1]), jnp.asarray(axis[0]))


def _round(scene: Scene, body: str, kind: str, x: Any) -> Array:
    """A sphere, capsule, cylinder or hole, as an outline of the plane or a mesh."""
    axis = getattr(x, "axis", None)
    half = getattr(x, "half_length", None)
    long = axis is not None if kind == "hole" else kind in ("capsule", "cylinder")
    if scene.dimension == 2:
        if not long or half is None:
            return _at(scene, body, x.at, shapes.disc(x.radius, kind == "sphere"))
        return _at(scene, body, x.at, shapes.stadium(half, x.radius), _angle(axis))
    if not long or half is None:
        heights, radii = shapes.ball_rings(x.radius)
    elif kind == "capsule":
        heights, radii = shapes.capsule_rings(x.radius, half)
    else:
        heights, radii = shapes.cylinder_rings(x.radius, half)
    return _at(scene, body, x.at, shapes.lathe(heights, radii, axis))


def _solid(scene: Scene, name: str, body: str, kind: str, x: Any) -> Shape | None:
    """What a shape of a contact looks like; None: nothing of its own."""
    flat, role = scene.dimension == 2, "ground" if body == GROUND else "body"
    if kind == "points":
        points = _at(scene, body, None, jnp.asarray(x.at, float))
        return Shape(points=points, name=name, kind="dots", role=role)
    if kind == "sphere" and x.radius is None:
        points = scene.position(body, x.at)[None]
        return Shape(points=points, name=name, kind="dots", role=role)
    if kind in ("corners", "box"):
        if flat:
            own, local = x.turned, shapes.rectangle(x.half_length, x.half_height)
            return Shape(points=_at(scene, body, x.at, local, own), name=name, kind="area", role=role)
        half = jnp.stack([jnp.asarray(k, float) for k in (x.half_length, x.half_height, x.half_depth)])
        points = _at(scene, body, x.at, shapes.box(half), rotation_of(x.turned))
        return Shape(points=points, name=name, kind="mesh", role=role, faces=shapes.BOX_FACES)
    if kind == "hull":
        points = _at(scene, body, None, jnp.asarray(x.vertices, float))
        return Shape(points=points, name=name, kind="mesh", role=role, faces=x.faces)
    if kind == "profile":
        control = jnp.asarray(x.control, float)
        knots = np.arange(KNOT * control.shape[0] + 1) / KNOT
        points = jax.vmap(lambda s: profiles.evaluated(control, s)[0])(knots)
        return Shape(points=_at(scene, body, None, points), name=name, kind="area", role=role)
    points = _round(scene, body, kind, x)
    if flat:
        return Shape(points=points, name=name, kind="line" if kind == "hole" else "area", role=role)
    rings = points.shape[0] // (shapes.AROUND)
    faces = shapes.lathe_faces(rings)
    return Shape(
        points=points, name=name, kind="mesh", role="ground" if kind == "hole" else role, faces=faces
    )


def _bounds(scene: Scene, name: str, body: str, kind: str, x: Any) -> tuple[Shape, ...]:
    """A plane, or the two walls of a guide."""
    a = scene.algebra
    if kind == "plane":
        up = np.eye(scene.dimension)[-1] if x.normal is None else x.normal
        normal = a.array(a.turned(scene.frame(body).turn, a.vector(jnp.asarray(up, float))))
        return (shapes.level(scene.position(body, x.at), normal, name),)
    normal = a.array(a.turned(scene.frame(body).turn, (None, 1.0)))
    heights = ((x.lower, normal, "lower"), (x.upper, -normal, "upper"))
    zero = jnp.zeros(())
    return tuple(
        shapes.level(scene.position(body, jnp.stack([zero, jnp.asarray(y, float)])), n, f"{name} {which}")
        for y, n, which in heights
    )


def _contact_shapes(scene: Scene, topology: Topology, p: PyTree) -> list[Shape]:
    found: list[Shape] = []
    for part in topology.all_of("contact"):
        if part.option("nodes") is not None:  # of all nodes of a beam, which is drawn itself
            pairs = [(part.bodies[1], part.option("shapes")[1], p[part.name].second)]
        else:
            numbers = (p[part.name].first, p[part.name].second)
            pairs = list(zip(part.bodies, part.option("shapes"), numbers, strict=True))
        for body, kind, x in pairs:
            label = part.name if body == GROUND else body
            if kind != "tube":  # a beam is drawn itself
                found += _drawn(scene, label, body, kind, x)
    for part in topology.all_of("contact_group"):
        for body, kind, x in _members(part, p[part.name]):
            found += _drawn(scene, part.name if body == GROUND else body, body, kind, x)
    return found


def _drawn(scene: Scene, label: str, body: str, kind: str, x: Any) -> list[Shape]:
    if kind in SHAPES:
        return list(SHAPES[kind].drawn(scene, label, body, x))
    if kind in ("plane", "walls"):
        return list(_bounds(scene, label, body, kind, x))
    solid = _solid(scene, label, body, kind, x)
    return [] if solid is None else [solid]


def _members(part: Part, x: Any) -> Iterator[tuple[str, str, Any]]:
    """Body, kind and numbers of every shape of a group with a capacity."""
    seen: dict[str, int] = {}
    for kind, body in part.option("members"):
        k = seen[kind] = seen.get(kind, -1) + 1
        yield body, kind, jax.tree.map(lambda y, k=k: y[k], x.shapes[kind])


def _held(topology: Topology, p: PyTree) -> dict[str, list[Any]]:
    """Points of every body at which joints, springs and loads act, and spheres on such a body, in its own
    axes.
    """
    found: dict[str, list[Any]] = {}
    acting = (*topology.joints, *(x for x in topology.loads if load_kind(x).held))
    for part in sorted(acting, key=lambda x: (len(x.bodies) == 1, topology.parts.index(x))):
        x = p[part.name]
        for body, at in zip(part.bodies, (x.at, getattr(x, "on", None)), strict=False):
            found.setdefault(body, []).append(at)
    for part in topology.all_of("contact"):  # a foot at the end of a leg
        if part.option("shapes")[0] == "sphere" and part.bodies[0] in found:
            found[part.bodies[0]].append(p[part.name].first.at)
    return found


def _inertia_box(x: Any) -> tuple[Array, Any]:
    """Half edges of the homogeneous box of an inertia, and how its axes are turned."""
    inertia, turn = jnp.asarray(x.inertia, float), None
    if inertia.ndim == 2:
        inertia, turn = jnp.linalg.eigh(inertia)
        turn = turn * jnp.where(jnp.linalg.det(turn) < 0.0, -1.0, 1.0)
    square = 1.5 * (jnp.sum(inertia) - 2.0 * inertia) / jnp.where(jnp.asarray(x.mass) > 0.0, x.mass, 1.0)
    half = jnp.sqrt(jnp.where(square > 0.0, square, 0.0))
    return jnp.maximum(half, THIN * jnp.max(half)), turn


def _body(scene: Scene, name: str, x: Any, held: list[Any], solid: bool) -> list[Shape]:
    """Lines of a body from its mass centre to what acts on it, and its inertia where they say little."""
    centre, found = scene.position(name, x.com), []
    known = sum(at is not None for at in held) + any(at is None for at in held)
    if held and (known > 1 or x.com is not None):
        rows = [row for at in held for row in (scene.position(name, at), centre)]
        found.append(Shape(points=jnp.stack(rows), name=name))
    if solid:
        return found
    if scene.dimension == 3 and x.inertia is not None:
        half, turn = _inertia_box(x)
        points = _at(scene, name, x.com, shapes.box(half), turn)
        found.append(Shape(points=points, name=name, kind="mesh", faces=shapes.BOX_FACES))
    elif scene.dimension == 2 and x.inertia is not None and not found:
        mass = jnp.where(jnp.asarray(x.mass) > 0.0, x.mass, 1.0)
        radius = jnp.sqrt(jnp.asarray(x.inertia) / mass)
        found.append(Shape(points=_at(scene, name, x.com, shapes.disc(radius)), name=name, kind="area"))
    else:
        found.append(Shape(points=centre[None], name=name, kind="dots"))
    return found


def _beam(scene: Scene, part: Part, x: Any) -> list[Shape]:
    """A tube of elliptic section that has the radii of gyration of the beam's, and its axis."""
    nodes = nodes_of(part)
    axis = jnp.stack([scene.position(name) for name in nodes])
    _, axes = section_axes(jnp.asarray(x.points, float), jnp.asarray(x.first_axis, float))
    around = shapes.AROUND
    angles = 2.0 * np.pi * np.arange(around) / around
    bending = jnp.broadcast_to(jnp.asarray(x.section.EI, float), (2,))
    radii = jnp.sqrt(4.0 * bending / x.section.EA)  # about d1 the section reaches along d2
    rings = []
    for k, name in enumerate(nodes):
        d = axes[min(k, len(nodes) - 2)]
        ring = radii[1] * np.cos(angles)[:, None] * d[:, 0] + radii[0] * np.sin(angles)[:, None] * d[:, 1]
        rings.append(_at(scene, name, None, ring))
    faces = shapes.lathe_faces(len(nodes), around)
    tube = Shape(points=jnp.concatenate(rings), name=part.name, kind="mesh", faces=faces)
    return [tube, Shape(points=axis, name=part.name)]


def _links(scene: Scene, topology: Topology, p: PyTree) -> list[Shape]:
    found: list[Shape] = []
    for part in topology.parts:
        if part in topology.loads and (drawn := load_kind(part).shapes) is not None:
            found += drawn(scene, part, p[part.name])
        elif part in topology.joints and kind_of(part).drawn == "line":
            x = p[part.name]
            ends = scene.position(part.bodies[0], x.at), scene.position(part.bodies[1], x.on)
            found.append(Shape(points=jnp.stack(ends), name=part.name))
    return found


def _joints(scene: Scene, topology: Topology, p: PyTree) -> list[Shape]:
    """Points of all joints together."""
    parts = [x for x in topology.joints if kind_of(x).drawn == "dot"]
    if not parts:
        return []
    rows = [scene.position(part.bodies[0], p[part.name].at) for part in parts]
    return [Shape(points=jnp.stack(rows), name="joints", kind="dots", role="joint")]


def _several(a: Any, n: int, dimension: int) -> Array:
    """Vectors of the algebra, one or n of them, as rows (n, d)."""
    if dimension == 2:
        return jnp.stack([jnp.broadcast_to(plane.value(x), (n,)) for x in a], axis=1)
    wide = jnp.zeros(3) if a is None else a
    return jnp.broadcast_to(wide.T if wide.ndim == 2 else wide, (n, 3))


def _places(scene: Scene, named: Named, met: list[Any], limits: int, tangents: int) -> Any:
    """Where contacts act; limits of joints have no place."""
    d, counts = scene.dimension, named.rows
    points = [_several(x.here, n, d) for x, n in zip(met, counts, strict=True)]
    normals = [_several(x.normal, n, d) for x, n in zip(met, counts, strict=True)]
    across = [
        jnp.stack([_several(a, n, d) for a in x.tangents[:tangents]], axis=1)
        if tangents
        else jnp.zeros((n, 0, d))
        for x, n in zip(met, counts, strict=True)
    ]
    none, still = jnp.full((limits, d), jnp.nan), jnp.full((limits, tangents, d), jnp.nan)
    own = [named.in_order(x) for x in (points, normals, across)] if counts else []
    every = [[x] for x in own] or [[], [], []]
    found = (jnp.concatenate([*x, y]) for x, y in zip(every, (none, none, still), strict=True))
    return shapes.Places(**dict(zip(("points", "normals", "tangents"), found, strict=True)))


def picture(
    scene: Scene, topology: Topology, p: PyTree, named: Named, met: list[Any], limits: int, tangents: int
) -> shapes.Picture:
    """Everything that is drawn of a mechanism at an instant.

    Args:
        scene: its bodies.
        topology, p: its parts and their numbers.
        named: contacts by name.
        met: where they meet, piece by piece.
        limits: contacts that are limits of joints.
        tangents: per contact.
    """
    contacts = topology.all_of("contact")
    solid = {name for part in contacts for name in _solids(part, p[part.name])}
    groups = topology.all_of("contact_group")
    solid |= {body for part in groups for kind, body in part.option("members") if kind != "plane"}
    held, found = _held(topology, p), _contact_shapes(scene, topology, p)
    for part in topology.all_of("beam"):
        found += _beam(scene, part, p[part.name])
    for part in topology.all_of("body"):
        found += _body(scene, part.name, p[part.name], held.get(part.name, []), part.name in solid)
    found += _links(scene, topology, p) + _joints(scene, topology, p)
    places = _places(scene, named, met, limits, tangents) if contacts or limits else None
    if groups:  # pairs that come and go have no places of their own
        places = None
    return shapes.Picture(shapes=tuple(found), contacts=places)


def _solids(part: Part, x: Any) -> set[str]:
    """Bodies of a contact whose shapes show what they are."""
    found = set()
    for name, kind, numbers in zip(part.bodies, part.option("shapes"), (x.first, x.second), strict=True):
        point = kind == "sphere" and numbers.radius is None
        if not point and kind not in ("points", "plane", "walls"):
            found.add(name)
    return found
