"""Bodies of model files as their files show them: triangles for pictures, which meet nothing."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from types import ModuleType

import numpy as np

from nsjax import shapes
from nsjax.multibody.files.source import Source, find_packages, path_of
from nsjax.multibody.files.texts import FORMATS, Element, origin_of, read_as_text
from nsjax.multibody.meshes import Mesh, mesh

Triangles = tuple[np.ndarray, np.ndarray]
"""Points (n, 3) [m] and triples (m, 3) of their indices."""


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
        m = int(model.geom_dataid[g])
        start, many = int(model.mesh_vertadr[m]), int(model.mesh_vertnum[m])
        first, faces = int(model.mesh_faceadr[m]), int(model.mesh_facenum[m])
        points = np.array(model.mesh_vert[start : start + many], float)
        return points, np.array(model.mesh_face[first : first + faces])
    named = kind.name.removeprefix("mjGEOM_").lower()
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
