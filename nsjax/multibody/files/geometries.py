"""Geometries of a model file: as shapes, with the contacts of pairs that may meet, and in pictures."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import pathlib
from collections.abc import Iterator, Mapping
from types import ModuleType

import numpy as np

from nsjax import shapes
from nsjax.core import InputError
from nsjax.core.errors import listed
from nsjax.multibody.contacts import gap_functions, shape_parts
from nsjax.multibody.contacts.groups import MANY_CONTACTS, ordered, unused, with_selection
from nsjax.multibody.contacts.heightfields import heightfield
from nsjax.multibody.files.source import Source, find_packages, path_of
from nsjax.multibody.files.texts import FORMATS, Element, origin_of, read_as_text
from nsjax.multibody.meshes import Mesh, mesh
from nsjax.multibody.parts import GROUND, Part

Friction = float | tuple[float, float, float] | tuple[float, float] | None
"""Coefficient of friction, or sliding, torsional and rolling coefficients, or two sliding ones, along and
across a direction; None: frictionless.
"""

Triangles = tuple[np.ndarray, np.ndarray]
"""Points (n, 3) [m] and triples (m, 3) of their indices."""

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
    return shape_parts.convex_pieces(place.body, at + points @ turn.T, faces, concavity=source.concavity)


def _surface(source: Source, g: int) -> Triangles:
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
    filled = shape_parts.volume(hull.numbers.vertices, hull.numbers.faces)
    return 0.0 < shape_parts.volume(points, faces) < share * filled


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
    carriers = [_carrier(source, g) for g in range(model.ngeom)]
    for pair in itertools.combinations(range(model.ngeom), 2):
        if carriers[pair[0]] == carriers[pair[1]]:  # also of a pair that the file asks for
            continue
        if pair in given:
            k = given[pair]
            friction = _law(source, int(model.pair_dim[k]), model.pair_friction[k])
            first, second = (float(x) for x in _coefficients(source, model.pair_friction[k])[:2])
            if isinstance(friction, float) and first != second and min(first, second) > 0.0:
                friction = friction if _grain(source, *pair) is None else (first, second)
            yield *pair, friction
        elif _may_meet(source, *pair):
            yield *pair, _friction(source, *pair)


def _carrier(source: Source, g: int) -> int:
    """Number of the body to which a geometry is welded; bodies moved by mocap stand still."""
    welded = int(source.model.body_weldid[int(source.model.geom_bodyid[g])])
    return 0 if int(source.model.body_mocapid[welded]) >= 0 else welded


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
    """Whether two geometries may meet, by types, affinities and exclusions. Bodies that are parent and
    child do not meet, nor do bodies of one tree where these contacts are left out.
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
    above = [int(model.body_weldid[int(model.body_parentid[w])]) for w in welds]
    parents = 0 not in welds or (source.held_roots and roots[0] == roots[1])
    relatives = parents and (welds[0] == above[1] or welds[1] == above[0])
    return not relatives or source.off("filterparent")


# What pictures show of bodies: triangles, which meet nothing.


def rounded(kind: str, size: np.ndarray) -> Triangles:
    """A sphere, ellipsoid, capsule or cylinder about the z axis. ``kind``: which one; ``size``: its radius,
    or three half axes, then half its length [m].
    """
    angles = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 2 * shapes.RINGS + 1)
    heights, radii, scale = np.sin(angles), np.cos(angles), np.full(3, size[0])
    if kind == "cylinder":
        heights, radii = np.array([-1.0, -1.0, 1.0, 1.0]), np.array([0.0, 1.0, 1.0, 0.0])
        scale = size[[0, 0, 1]]
    if kind == "ellipsoid":
        scale = size
    around = 2.0 * np.pi * np.arange(shapes.AROUND) / shapes.AROUND
    ring = np.stack([np.cos(around), np.sin(around), np.ones_like(around)], axis=1)
    points = scale * ring * np.stack([radii, radii, heights], axis=1)[:, None]
    if kind == "capsule":
        points += np.sign(np.round(heights, 12))[:, None, None] * np.array([0.0, 0.0, size[1]])
    return points.reshape(-1, 3), np.array(shapes.lathe_faces(len(heights)))


def _pins(source: Source) -> dict[str, list[np.ndarray]]:
    """Points of joints in the axes of the bodies that they join, by the names of these."""
    model, found = source.model, dict[str, list[np.ndarray]]()
    for b in range(1, model.nbody):
        joints = range(int(model.body_jntadr[b]), int(model.body_jntadr[b]) + int(model.body_jntnum[b]))
        free = any(model.jnt_type[k] == source.mujoco.mjtJoint.mjJNT_FREE for k in joints)
        if source.merged(b) or free:
            continue
        above = source.place(int(model.body_parentid[b]))
        turn = above.turn @ source.turn(model.body_quat[b])
        for point in [np.array(model.jnt_pos[k], float) for k in joints] or [np.zeros(3)]:
            found.setdefault(source.names["body", b], []).append(point)
            found.setdefault(above.body, []).append(above.point(model.body_pos[b]) + turn @ point)
    return found


def _bar(start: np.ndarray, end: np.ndarray, radius: float) -> Triangles:
    """A bar that is round at both ends."""
    gone = end - start
    length = float(np.linalg.norm(gone))
    points, faces = rounded("capsule", np.array([radius, 0.5 * length]))
    along = gone / length if length > 0.0 else np.eye(3)[2]
    other = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
    other /= np.linalg.norm(other)
    return 0.5 * (start + end) + points @ np.stack([other, np.cross(along, other), along]), faces


def _of_geometry(source: Source, g: int) -> Triangles | None:
    """A geometry in its own axes; None for one without an end, and terrain."""
    model, kinds = source.model, source.mujoco.mjtGeom
    kind, size = kinds(int(model.geom_type[g])), np.array(model.geom_size[g], float)
    if kind == kinds.mjGEOM_BOX:
        return shapes.BOX * size, np.array(shapes.BOX_FACES)
    if kind == kinds.mjGEOM_MESH:
        return _surface(source, g)
    named = kind_of(source, g)
    return rounded(named, size) if named in ("sphere", "capsule", "cylinder", "ellipsoid") else None


def _of_bodies(source: Source) -> Iterator[tuple[str, Triangles]]:
    """Geometries that a viewer shows, in the axes of the parts that they belong to."""
    # groups that MuJoCo's viewer shows unasked; files put shapes of contacts into others
    model, shown = source.model, (0, 1, 2)
    for g in range(model.ngeom):
        b, m = int(model.geom_bodyid[g]), int(model.geom_matid[g])
        clear = model.geom_rgba[g][3] == 0.0 or (m >= 0 and model.mat_rgba[m][3] == 0.0)
        place = source.place(b)
        given = source.visuals.get(source.own_name("body", b))
        if given is not None or clear or int(model.geom_group[g]) not in shown:
            continue
        found = _of_geometry(source, g)
        if found is not None:
            turn = place.turn @ source.turn(model.geom_quat[g])
            yield place.body, (place.point(model.geom_pos[g]) + found[0] @ turn.T, found[1])
    for b in range(model.nbody):
        place = source.place(b)
        for points, faces in source.visuals.get(source.own_name("body", b), ()):
            yield place.body, (place.origin + points @ place.turn.T, faces)


def meshes(source: Source) -> dict[str, Mesh]:
    """What pictures show of each body, by its name."""
    found: dict[str, list[Triangles]] = {}
    for body, shown in _of_bodies(source):
        found.setdefault(body, []).append(shown)
    # triangles of a whole file, which pages and films draw in a twentieth of a second, and least of a body
    whole, least = 12_000, 200
    most = max(least, whole // max(1, len(found)))
    # radius of a bar from a joint to a geometry that does not reach it
    radius = 0.01 * float(source.model.stat.extent)
    made = {}
    pins = _pins(source)
    for body, several in found.items():
        own = np.concatenate([points for points, _ in several])
        low, high = own.min(axis=0), own.max(axis=0)
        beside = [x for x in pins.get(body, ()) if np.any(x < low) or np.any(x > high)]
        several += [_bar(x, 0.5 * (low + high), radius) for x in beside]
        starts = np.cumsum([0, *(len(points) for points, _ in several[:-1])])
        points = np.concatenate([points for points, _ in several])
        faces = np.concatenate([faces + k for (_, faces), k in zip(several, starts, strict=True)])
        made[body] = mesh(body, points, faces, most=most)
    return made


def of_urdf(mujoco: ModuleType, root: Element | None, title: str) -> Mapping[str, list[Triangles]]:
    """Visual geometries of the links of a URDF, but for meshes that are not found, or not read."""
    made: dict[str, list[Triangles]] = {}
    for link in () if root is None else root.findall("link"):
        for visual in link.findall("visual"):
            shape = next(iter(visual.findall("geometry/*")), None)
            try:
                found = None if shape is None else _of_element(mujoco, shape, title)
                turn, place = origin_of(visual)
            except (ValueError, RuntimeError, KeyError):  # a broken mesh, or words in place of numbers
                continue
            if found is not None:
                made.setdefault(str(link.get("name")), []).append((turn.apply(found[0]) + place, found[1]))
    return made


def _of_element(mujoco: ModuleType, shape: Element, title: str) -> Triangles | None:
    """Triangles of an element of <geometry>."""

    def of(name: str, default: str = "") -> np.ndarray:
        return np.array(shape.get(name, default).split(), float)

    if shape.tag == "box":
        return shapes.BOX * (0.5 * of("size")), np.array(shapes.BOX_FACES)
    if shape.tag == "sphere":
        return rounded("sphere", of("radius"))
    if shape.tag in ("cylinder", "capsule"):
        return rounded(shape.tag, np.append(of("radius"), 0.5 * of("length")))
    if shape.tag != "mesh":
        return None
    spec = mujoco.MjSpec()
    asset = spec.add_mesh(name="visual", file=shape.get("filename", ""), scale=of("scale", "1 1 1"))
    asset.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    find_packages(spec, title)
    path = path_of(spec, title, asset.file)
    if path is None or pathlib.Path(path).suffix.lower() not in FORMATS:
        return None
    asset.file = str(path)
    read_as_text(asset, path)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="visual")
    model = spec.compile()
    turn, place = np.zeros(9), np.array(model.geom_pos[0], float)
    mujoco.mju_quat2Mat(turn, np.array(model.geom_quat[0], float))
    return np.array(model.mesh_vert, float) @ turn.reshape(3, 3).T + place, np.array(model.mesh_face)
