"""Missing files that a model names, and meshes of other formats: the elements that use them are left out if
the mechanism permits.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from nsjax.multibody.files.meshes import FORMATS, read_as_text
from nsjax.multibody.files.source import listed

TEXT = "text"
"""Stands for the path of a model that is given by its text."""


def without_pictures(spec: Any) -> None:
    """Remove textures and skins, which are not drawn here and whose files may be missing."""
    for material in spec.materials:
        material.textures = [""] * len(material.textures)
    for light in spec.lights:
        if getattr(light, "texture", ""):
            light.texture = ""
    for found in [*spec.textures, *spec.skins]:
        _delete(spec, found)


def without_absent_shapes(mujoco: ModuleType, spec: Any, title: str) -> list[str]:
    """Remove meshes and height fields whose file is missing or of another format, and that give no inertia,
    with the geometries that use them; return sentences about them.
    """
    lost: dict[str, list[str]] = {}
    for kind, assets in (("meshname", list(spec.meshes)), ("hfieldname", list(spec.hfields))):
        for asset in assets:
            path = _path(spec, title, asset.file)
            users = [g for g in spec.geoms if getattr(g, kind) == asset.name]
            if path is not None and kind == "meshname":
                read_as_text(asset, path)
            strange = kind == "meshname" and pathlib.Path(asset.file).suffix.lower() not in FORMATS
            why = MISSING if path is None else UNREAD if strange and not asset.content_type else ""
            if not asset.file or not why or any(weighs(mujoco, spec, g) for g in users):
                continue
            for thing in [*users, asset]:
                _delete(spec, thing)
            lost.setdefault(why, []).append(asset.file)
    return [
        f"{why} are left out, with the shapes that use them: {listed(files)}" for why, files in lost.items()
    ]


MISSING, UNREAD = "files that do not exist", "meshes that are neither STL, OBJ nor MSH"

SCHEMES = ("package://", "file://", "model://")
"""Beginnings of the names of files in a URDF: the folder of a package of ROS, a path, a model of Gazebo."""


def find_packages(spec: Any, title: str) -> None:
    """Replaces names of meshes like ``package://robot/meshes/arm.stl`` by the path of the file, where there
    is one: below the folder of the model file or a folder around it, with or without that of the package.
    """
    for asset in spec.meshes:
        scheme = next((x for x in SCHEMES if asset.file.startswith(x)), None)
        if scheme is None:
            continue
        name = pathlib.PurePosixPath(asset.file.removeprefix(scheme))
        bare = pathlib.PurePosixPath(*name.parts[1:])
        around = [] if title == TEXT else pathlib.Path(title).resolve().parents
        paths = [folder / x for folder in around for x in (name, bare)]
        there = next((x for x in paths if x.is_file()), None)
        if there is not None:
            asset.file = os.fspath(there)


def _path(spec: Any, title: str, file: str) -> pathlib.Path | None:
    """Path of a file that a model names; None where there is none."""
    folder, beside = pathlib.Path(spec.compiler.meshdir), pathlib.Path(title).parent
    roots = (folder, beside, beside / folder, pathlib.Path(spec.modelfiledir) / folder)
    paths = [root / name for root in roots for name in (file, pathlib.Path(file).name)]
    return next((path for path in paths if path.is_file()), None)


def weighs(mujoco: ModuleType, spec: Any, geom: Any) -> bool:
    """Whether a body takes inertia from a geometry."""
    if geom.parent.name == "world" or geom.mass == 0.0:
        return False
    always = int(spec.compiler.inertiafromgeom) == int(mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE)
    return always or not geom.parent.explicitinertial


def _delete(spec: Any, thing: Any) -> None:
    if hasattr(spec, "delete"):
        spec.delete(thing)
    else:
        thing.delete()  # before version 3.3.3


@contextlib.contextmanager
def listening(mujoco: ModuleType) -> Iterator[list[str]]:
    """List of the warnings of the library, which it else prints; its handler is restored on exit."""
    said: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: said.append(" ".join(str(text).split())))
    try:
        yield said
    finally:
        mujoco.set_mju_user_warning(before)
