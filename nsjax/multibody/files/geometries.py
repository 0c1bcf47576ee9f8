"""Geometries of a model file as shapes, and pairs of geometries that may meet as contacts."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
from collections.abc import Iterator

import numpy as np

from nsjax.core import InputError
from nsjax.core.errors import listed
from nsjax.multibody.contacts import gap_functions, shape_parts
from nsjax.multibody.contacts.groups import MANY_CONTACTS, ordered, unused, with_selection
from nsjax.multibody.contacts.heightfields import heightfield
from nsjax.multibody.convex_pieces import convex_pieces, volume
from nsjax.multibody.files.source import Source
from nsjax.multibody.parts import GROUND, Part

Friction = float | tuple[float, float, float] | tuple[float, float] | None
"""Coefficient of friction, or sliding, torsional and rolling coefficients, or two sliding ones, along and
across a direction; None: frictionless.
"""

GEOMETRIES = {0: "plane", 2: "sphere", 3: "capsule", 5: "cylinder", 6: "box"}
"""Kinds of shapes by the numbers of `mujoco.mjtGeom`."""


def kind_of(source: Source, g: int) -> str:
    """Kind of a geometry, as sentences name it."""
    named = source.mujoco.mjtGeom(int(source.model.geom_type[g])).name.removeprefix("mjGEOM_").lower()
    return GEOMETRIES.get(int(source.model.geom_type[g]), named)


def _shapes(source: Source, g: int) -> list[shape_parts.Shape]:
    """The shape of a geometry, or the convex pieces of a mesh; none without an equivalent."""
    if kind_of(source, g) != "mesh" or source.concavity is None or not _hollow(source, g):
        shape = _shape(source, g)
        return [] if shape is None else [shape]
    place = source.place(int(source.model.geom_bodyid[g]))
    turn, (points, faces) = place.turn @ source.turn(source.model.geom_quat[g]), _surface(source, g)
    at = place.point(source.model.geom_pos[g])
    return convex_pieces(place.body, at + points @ turn.T, faces, concavity=source.concavity)


def _surface(source: Source, g: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of the mesh of a geometry, in its axes."""
    model, mesh = source.model, int(source.model.geom_dataid[g])
    start, many = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
    return _vertices(source, g), np.asarray(model.mesh_face[start : start + many], int)


def _hollow(source: Source, g: int) -> bool:
    """Whether a mesh encloses less than its hull, by more than the roundness of a coarse surface."""
    points, faces = _surface(source, g)
    hull = _hull("", points)
    if hull is None:
        return False
    share = 0.97  # of the volume of the hull, above which a mesh counts as convex
    return 0.0 < volume(points, faces) < share * volume(hull.numbers.vertices, hull.numbers.faces)


def _shape(source: Source, g: int) -> shape_parts.Shape | None:
    """The shape of a geometry; None without an equivalent."""
    model, kind = source.model, kind_of(source, g)
    place = source.place(int(model.geom_bodyid[g]))
    at, turn = place.point(model.geom_pos[g]), place.turn @ source.turn(model.geom_quat[g])
    size, axis = [float(x) for x in model.geom_size[g]], turn[:, 2] / np.linalg.norm(turn[:, 2])
    if kind == "plane":
        return shape_parts.plane(place.body, at=at, normal=axis)
    if kind == "sphere":
        return shape_parts.sphere(place.body, size[0], at=at)
    if kind == "box":
        return shape_parts.box(place.body, *size, at=at, turned=source.rotation_vector(turn))
    if kind == "mesh":
        return _hull(place.body, at + _vertices(source, g) @ turn.T)
    if kind == "hfield":
        heights, (half_length, half_width) = _heights(source, g)
        turned = source.rotation_vector(turn)
        return heightfield(place.body, heights, half_length, half_width, at=at, turned=turned)
    if kind in ("capsule", "cylinder"):
        make = shape_parts.capsule if kind == "capsule" else shape_parts.cylinder
        return make(place.body, size[0], size[1], at=at, axis=axis)
    return None


def _heights(source: Source, g: int) -> tuple[np.ndarray, np.ndarray]:
    """Heights (nx, ny) of the terrain of a geometry, and its half edges (2,)."""
    model, field = source.model, int(source.model.geom_dataid[g])
    start, rows, columns = (int(x[field]) for x in (model.hfield_adr, model.hfield_nrow, model.hfield_ncol))
    size = np.asarray(model.hfield_size[field], float)
    heights = np.asarray(model.hfield_data[start : start + rows * columns], float)
    return np.ascontiguousarray(size[2] * heights.reshape(rows, columns).T), size[:2]


def _vertices(source: Source, g: int) -> np.ndarray:
    """Vertices (k, 3) of the mesh of a geometry, in its axes."""
    model, mesh = source.model, int(source.model.geom_dataid[g])
    start, many = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    return np.asarray(model.mesh_vert[start : start + many], float)


def _hull(body: str, points: np.ndarray) -> shape_parts.Shape | None:
    """The hull of a mesh; None for a flat mesh."""
    try:
        return shape_parts.hull(body, points)
    except InputError:
        return None


def contacts(source: Source) -> tuple[list[Part], list[str]]:
    """Contacts of all pairs of geometries that may meet, and sentences about unknown pairs."""
    parts: list[Part] = []
    taken, unknown = set(source.names.values()), collections.defaultdict(list)
    shapes_of = functools.cache(functools.partial(_shapes, source))  # hulls take long
    for one, other, friction in pairs(source):
        kinds = kind_of(source, one), kind_of(source, other)
        names = source.names["geom", one], source.names["geom", other]
        found = [ordered(*x) for x in itertools.product(shapes_of(one), shapes_of(other))]
        known = [x for x in found if x is not None]
        if not known or len(known) < len(found):
            unknown[" and ".join(sorted(kinds))].append(" - ".join(names))
            continue
        grain = None
        if source.friction is not None or not source.own_friction:
            friction = source.friction
        elif isinstance(friction, tuple) and len(friction) == 2:
            grain = GROUND, _grain(source, one, other)
        law = {"restitution": source.restitution, "friction": friction, "grain": grain}
        for met in known:
            parts.append(shape_parts.contact(unused("_".join(names), taken), *met, **law))
    filled = [] if source.concavity is not None else _filled(source)
    said = [
        "meshes that are not convex touch as their hulls, without their hollows; concavity=0.05 of the "
        f"reader divides them into convex pieces: {listed(filled)}"
    ] * bool(filled)
    said += [
        f"contact of {kinds} is not known: {listed(those)} pass through each other"
        + "; add contacts with a distance_field" * ("sdf" in kinds)
        for kinds, those in unknown.items()
    ]
    if source.self_contact is None:
        every = dataclasses.replace(source, self_contact=True)
        lost = sum(1 for _ in pairs(every)) - sum(1 for _ in pairs(source))
        said += [f"contacts of links with each other ({lost} pairs): self_contact=True makes them"] * (
            lost > 0
        )
    many = sum(gap_functions.count(x, x.numbers, 3) for x in parts)
    # number of contacts of a file beyond which it is refused: the first program of a run compares all
    # pairs, in time and memory that grow faster than the number (12,800 take 1.1 GB)
    largest = 30_000
    if many > largest:
        raise InputError(
            f"{source.title}: {len(parts)} pairs of geometries with {many} contacts may meet, beyond "
            f"{largest}; exclude pairs by contype, conaffinity, <exclude> or self_contact=False, or give "
            "bodies fewer geometries"
        )
    if many > MANY_CONTACTS or (parts and source.capacity is not None):
        parts = with_selection(unused("contacts", taken), source.capacity, None, parts)
    return parts, said


def _filled(source: Source) -> list[str]:
    """Names of the meshes in contacts whose hollows are filled."""
    meeting = {g for one, other, _ in pairs(source) for g in (one, other)}
    meshes = sorted(g for g in meeting if kind_of(source, g) == "mesh")
    first = {int(source.model.geom_dataid[g]): g for g in reversed(meshes)}  # equal meshes are seen once
    hollow = {mesh for mesh, g in first.items() if _hollow(source, g)}
    return [repr(source.names["geom", g]) for g in meshes if int(source.model.geom_dataid[g]) in hollow]


def pairs(source: Source) -> Iterator[tuple[int, int, Friction]]:
    """Pairs of geometries that may meet, with their friction."""
    if source.off("contact"):
        return
    model = source.model
    given = {
        tuple(sorted((int(model.pair_geom1[k]), int(model.pair_geom2[k])))): k for k in range(model.npair)
    }
    for pair in itertools.combinations(range(model.ngeom), 2):
        if pair in given:
            k = given[pair]
            friction = _law(source, int(model.pair_dim[k]), model.pair_friction[k])
            first, second = (float(x) for x in _coefficients(source, model.pair_friction[k])[:2])
            if isinstance(friction, float) and first != second and min(first, second) > 0.0:
                friction = friction if _grain(source, *pair) is None else (first, second)
            yield *pair, friction
        elif _may_meet(source, *pair):
            yield *pair, _friction(source, *pair)


def _grain(source: Source, one: int, other: int) -> tuple[float, float, float] | None:
    """Direction, in the axes of the ground, in which the first coefficient of a pair acts: the first
    tangent of MuJoCo's contacts with a plane of the ground; None where it changes with the contact.
    """
    model, kinds = source.model, source.mujoco.mjtGeom
    planes = [g for g in (one, other) if int(model.geom_type[g]) == int(kinds.mjGEOM_PLANE)]
    others = [int(model.geom_type[g]) for g in (one, other) if g not in planes]
    if len(planes) != 1 or int(model.geom_bodyid[planes[0]]) or int(kinds.mjGEOM_CAPSULE) in others:
        return None  # a capsule has its own axis as tangent
    normal = source.turn(model.geom_quat[planes[0]])[:, 2]
    return (0.0, 1.0, 0.0) if abs(normal[1]) < 0.5 else (0.0, 0.0, 1.0)


def _friction(source: Source, one: int, other: int) -> Friction:
    """Friction of a pair: of the geometry with the higher priority, else the larger coefficients."""
    model, chosen = source.model, [one, other]
    first, second = (int(model.geom_priority[g]) for g in chosen)
    if first != second:
        chosen = [one if first > second else other]
    dimension = max(int(model.geom_condim[g]) for g in chosen)
    own = np.max([model.geom_friction[g] for g in chosen], axis=0)
    return _law(source, dimension, own[[0, 0, 1, 2, 2]])


def _law(source: Source, dimension: int, own: np.ndarray) -> Friction:
    """Friction of a contact of dimension 1, 3, 4 or 6.

    Args:
        source: the model file; if it overrides the coefficients of all contacts, these are used.
        dimension: 1: frictionless; 3: sliding; 4: also torsional; 6: also rolling friction.
        own: coefficients (5,) of the pair: two sliding ones, a torsional and two rolling ones. The second
            ones, for the second direction, are left out: see `uneven`.
    """
    if dimension == 1:
        return None
    sliding, _, torsional, rolling, _ = (float(x) for x in _coefficients(source, own))
    if dimension == 3:
        return sliding
    return sliding, torsional, rolling if dimension == 6 else 0.0


def _coefficients(source: Source, own: np.ndarray) -> np.ndarray:
    """Coefficients (5,) of a pair: its own, or those with which the file overrides all."""
    override, option = int(source.mujoco.mjtEnableBit.mjENBL_OVERRIDE), source.model.opt
    return np.asarray(option.o_friction if int(option.enableflags) & override else own)


def uneven(source: Source) -> Iterator[tuple[str, str]]:
    """Pairs whose friction depends on the direction, which is left out, as ``(what, who)``."""
    model = source.model
    if source.friction is not None or not source.own_friction:
        return
    for k in range(model.npair):
        first, second, _, roll, other = (float(x) for x in _coefficients(source, model.pair_friction[k]))
        ends, sizes = (int(model.pair_geom1[k]), int(model.pair_geom2[k])), int(model.pair_dim[k])
        if sizes == 3 and min(first, second) > 0.0 and _grain(source, *ends) is not None:
            continue
        who = " - ".join(source.names["geom", g] for g in ends)
        for kind, least, one, two in (("", 3, first, second), (" of rolling", 6, roll, other)):
            if sizes >= least and one != two:
                every = f"{one:g} in one direction, {two:g} in the other, is {one:g} in all"
                yield f"friction{kind} of {every}", who


def _may_meet(source: Source, one: int, other: int) -> bool:
    """Whether two geometries may meet, by types, affinities and exclusions. Bodies that are welded, or are
    parent and child, do not meet, nor do bodies of one tree where these contacts are left out.
    """
    model = source.model
    meet = model.geom_contype[one] & model.geom_conaffinity[other]
    if not meet | (model.geom_contype[other] & model.geom_conaffinity[one]):
        return False
    bodies = [int(model.geom_bodyid[g]) for g in (one, other)]
    signature = (min(bodies) << 16) + max(bodies)
    roots = [int(model.body_rootid[b]) for b in bodies]
    if roots[0] == roots[1] and not source.self_contact:
        return False
    if signature in model.exclude_signature or (max(bodies) << 16) + min(bodies) in model.exclude_signature:
        return False
    welds = [int(model.body_weldid[b]) for b in bodies]
    if welds[0] == welds[1]:
        return False
    above = [int(model.body_weldid[int(model.body_parentid[w])]) for w in welds]
    parents = 0 not in welds or (source.held_roots and roots[0] == roots[1])
    relatives = parents and (welds[0] == above[1] or welds[1] == above[0])
    return not relatives or source.off("filterparent")
