"""Pictures of mechanisms: shapes of contacts, lines between joints, springs, beams.

A body without shapes is drawn as lines from its mass centre to the points at which joints and loads act;
where these lines show little, also as the homogeneous disc or box with its inertia.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import shapes
from nsjax.fem import section_axes
from nsjax.multibody.contacts.all_shapes import KINDS as SHAPES
from nsjax.multibody.contacts.named_contacts import NamedContacts
from nsjax.multibody.contacts.shape_pictures import on_body
from nsjax.multibody.coordinates import planar_vectors as plane
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.flexible.beams import nodes_of
from nsjax.multibody.joints import kind_of
from nsjax.multibody.loads import kind_of as load_kind
from nsjax.multibody.parts import GROUND, Part
from nsjax.multibody.topology import Topology
from nsjax.shapes import Shape
from nsjax.types import Array, PyTree

THIN = 0.05
"""Smallest edge of a box that is drawn for an inertia, relative to its largest edge."""


def _contact_shapes(scene: Scene, topology: Topology, p: PyTree) -> list[Shape]:
    found: list[Shape] = []
    for part in topology.all_of("contact"):
        if part.option("nodes") is not None:  # a contact of all nodes of a beam, which has its own picture
            pairs = [(part.bodies[1], part.option("shapes")[1], p[part.name].second)]
        else:
            numbers = (p[part.name].first, p[part.name].second)
            pairs = list(zip(part.bodies, part.option("shapes"), numbers, strict=True))
        for body, kind, x in pairs:
            label = part.name if body == GROUND else body
            found += SHAPES[kind].drawn(scene, label, body, x)
    for part in topology.all_of("contact_group"):
        for body, kind, x in _members(part, p[part.name]):
            found += SHAPES[kind].drawn(scene, part.name if body == GROUND else body, body, x)
    return found


def _members(part: Part, x: Any) -> Iterator[tuple[str, str, Any]]:
    """Body, kind and numbers of every shape of a group with a capacity."""
    seen: dict[str, int] = {}
    for kind, body in part.option("members"):
        k = seen[kind] = seen.get(kind, -1) + 1
        yield body, kind, jax.tree.map(lambda y, k=k: y[k], x.shapes[kind])


def _points_of_action(topology: Topology, p: PyTree) -> dict[str, list[Any]]:
    """Points, in body axes, of every body at which joints, springs and loads act, and centres of spheres on
    such bodies.
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
    """Half edges of the homogeneous box with an inertia, and the rotation of its axes; None: none."""
    inertia, turn = jnp.asarray(x.inertia, float), None
    if inertia.ndim == 2:
        inertia, turn = jnp.linalg.eigh(inertia)
        turn = turn * jnp.where(jnp.linalg.det(turn) < 0.0, -1.0, 1.0)
    square = 1.5 * (jnp.sum(inertia) - 2.0 * inertia) / jnp.where(jnp.asarray(x.mass) > 0.0, x.mass, 1.0)
    half = jnp.sqrt(jnp.where(square > 0.0, square, 0.0))
    return jnp.maximum(half, THIN * jnp.max(half)), turn


def _body(scene: Scene, name: str, x: Any, held: list[Any], solid: bool) -> list[Shape]:
    """Lines of a body from its mass centre to the points where joints and loads act; unless other shapes
    show the body (``solid``), also a box, disc or dot for its inertia.
    """
    centre, found = scene.position(name, x.com), []
    known = sum(at is not None for at in held) + any(at is None for at in held)
    if held and (known > 1 or x.com is not None):
        rows = [row for at in held for row in (scene.position(name, at), centre)]
        found.append(Shape(points=jnp.stack(rows), name=name))
    if solid:
        return found
    if scene.dimension == 3 and x.inertia is not None:
        half, turn = _inertia_box(x)
        points = on_body(scene, name, x.com, shapes.box(half), turn)
        found.append(Shape(points=points, name=name, kind="mesh", faces=shapes.BOX_FACES))
    elif scene.dimension == 2 and x.inertia is not None and not found:
        mass = jnp.where(jnp.asarray(x.mass) > 0.0, x.mass, 1.0)
        radius = jnp.sqrt(jnp.asarray(x.inertia) / mass)
        found.append(Shape(points=on_body(scene, name, x.com, shapes.disc(radius)), name=name, kind="area"))
    else:
        found.append(Shape(points=centre[None], name=name, kind="dots"))
    return found


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
        rings.append(on_body(scene, name, None, ring))
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
    """Points of all joints as one shape."""
    parts = [x for x in topology.joints if kind_of(x).drawn == "dot"]
    if not parts:
        return []
    rows = [scene.position(part.bodies[0], p[part.name].at) for part in parts]
    return [Shape(points=jnp.stack(rows), name="joints", kind="dots", role="joint")]


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
        scene: the bodies.
        topology, p: parts and their numbers.
        named: named contacts.
        meetings: contact points and normals, piece by piece.
        limits: number of contacts that are limits of joints.
        tangents: number of tangents of a contact.
    """
    contacts = topology.all_of("contact")
    solid = {name for part in contacts for name in _solids(part, p[part.name])}
    groups = topology.all_of("contact_group")
    solid |= {
        body for part in groups for body, kind, x in _members(part, p[part.name]) if SHAPES[kind].filled(x)
    }
    held, found = _points_of_action(topology, p), _contact_shapes(scene, topology, p)
    for part in topology.all_of("beam"):
        found += _beam(scene, part, p[part.name])
    for part in topology.all_of("body"):
        found += _body(scene, part.name, p[part.name], held.get(part.name, []), part.name in solid)
    found += _links(scene, topology, p) + _joints(scene, topology, p)
    places = _places(scene, named, meetings, limits, tangents) if contacts or limits else None
    if groups:  # candidate pairs change, so that contacts have no fixed places
        places = None
    return shapes.Picture(shapes=tuple(found), contacts=places)


def _solids(part: Part, x: Any) -> set[str]:
    """Bodies of a contact whose shapes show the form of the body."""
    found = set()
    for name, kind, numbers in zip(part.bodies, part.option("shapes"), (x.first, x.second), strict=True):
        if SHAPES[kind].filled(numbers):
            found.add(name)
    return found
