"""Model files opened and compiled with the package `mujoco`, whose errors become one sentence."""

from __future__ import annotations

import collections
import functools
import os
import pathlib
import re
from collections.abc import Collection, Iterator
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import numpy as np

from nsjax.core import InputError
from nsjax.core.arguments import numbers
from nsjax.multibody.files.absent import (
    TEXT,
    find_packages,
    weighs,
    without_absent_shapes,
    without_pictures,
)
from nsjax.multibody.files.meshes import without_volume
from nsjax.multibody.files.moments import compiled_as_given
from nsjax.multibody.files.refusals import sentence

URDF_TAGS = {
    "robot", "link", "inertial", "origin", "mass", "inertia", "visual", "collision", "geometry", "box",
    "cylinder", "sphere", "capsule", "mesh", "material", "color", "texture", "joint", "parent", "child",
    "axis", "limit", "dynamics", "mujoco", "compiler", "mimic",
}  # fmt: skip
"""Elements of a URDF that are read, or concern only pictures."""


def library() -> ModuleType:
    """The package `mujoco`.

    Raises:
        ImportError: naming the extra that installs it.
    """
    try:
        import mujoco
    except ImportError:
        raise ImportError(
            "reading model files needs the package mujoco: pip install 'nsjax[files]'"
        ) from None
    made: ModuleType = mujoco
    return made


def is_text(given: Any) -> bool:
    """Whether the argument is the text of a file, not its path."""
    return isinstance(given, str) and given.lstrip().startswith("<")


def opened(given: Any, who: str) -> tuple[Any, str, str]:
    """A `mujoco.MjSpec`, its title for sentences, and its text.

    Args:
        given: path or text.
        who: name of the reader, for errors.

    Raises:
        InputError: for a missing or broken file.
    """
    mujoco = library()
    title, text = TEXT, given
    if not is_text(given):
        path = pathlib.Path(os.fspath(given))
        if not path.is_file():
            raise InputError(f"{who}: {path} does not exist; give a path, or the text of a model")
        title, text = str(path), path.read_text(encoding="utf-8", errors="replace")
    root = re.search(r"<\s*([A-Za-z_][\w:.-]*)", re.sub(r"<!--.*?-->|<\?.*?\?>", "", text, flags=re.DOTALL))
    wanted = {"read_urdf": "robot", "read_mjcf": "mujoco"}[who]
    if root is not None and root.group(1) != wanted and root.group(1) in ("robot", "mujoco"):
        other = {"robot": "read_urdf", "mujoco": "read_mjcf"}[root.group(1)]
        raise InputError(f"{who}: {title} has the root <{root.group(1)}>; use {other}")
    try:
        make = mujoco.MjSpec.from_string if is_text(given) else mujoco.MjSpec.from_file
        spec = make(given if is_text(given) else title)
    except (ValueError, RuntimeError) as error:
        raise sentence(who, title, error) from None
    spec.compiler.fusestatic = False
    without_pictures(spec)
    find_packages(spec, title)
    return spec, title, text


def compiled(spec: Any, title: str, who: str, free: Collection[str] = ()) -> tuple[Any, list[str]]:
    """The compiled `mujoco.MjModel`, and sentences about elements left out.

    Args:
        spec: the opened `mujoco.MjSpec`.
        title: of the file.
        who: name of the reader, for errors.
        free: names of the bodies that the user lets move freely.

    Raises:
        InputError: for a file that does not compile.
    """
    said = without_absent_shapes(library(), spec, title)
    try:
        return spec.compile(), said
    except (ValueError, RuntimeError) as error:
        mujoco = library()
        thin = functools.partial(
            without_volume, mujoco, spec, weighs=functools.partial(weighs, mujoco, spec)
        )
        found = compiled_as_given(mujoco, spec, error, who == "read_urdf", thin)
        if isinstance(found, Exception):
            raise sentence(who, title, found, free) from None
        return found[0], [*said, *found[1]]


def add_floor(spec: Any, height: Any) -> None:
    """Adds a level plane of the ground, named ``floor``, at a height [m].

    Raises:
        InputError: for what is no finite number.
    """
    height = numbers("read_urdf", "floor", height)
    if np.shape(height) != () or not np.isfinite(height):
        raise InputError(
            f"read_urdf: floor = {height.tolist()}; give its height in metres, a finite number"
        )
    plane = library().mjtGeom.mjGEOM_PLANE
    spec.worldbody.add_geom(name="floor", type=plane, size=[1.0, 1.0, 1.0], pos=[0.0, 0.0, float(height)])


def _outermost(text: str) -> Iterator[str]:
    """Names of the elements of a URDF that are not read, without those inside of such."""
    try:
        open_ones = [ElementTree.fromstring(text.strip())]
    except ElementTree.ParseError:  # the other parser was more patient
        yield from (name for name in re.findall(r"<\s*([A-Za-z_][\w:.-]*)", text) if name not in URDF_TAGS)
        return
    while open_ones:
        for x in open_ones.pop():
            if x.tag in URDF_TAGS:
                open_ones.append(x)
            else:
                yield x.tag


def strange_elements(text: str, followers: int) -> list[str]:
    """Sentences about elements of a URDF that are not read.

    Args:
        text: of the file.
        followers: number of <mimic> elements that are read as couplings.
    """
    bare = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    said = [
        f"<{name}> ({n} of them) is not read: it is no element of URDF that has an equal here"
        for name, n in collections.Counter(_outermost(bare)).items()
    ]
    lost = len(re.findall(r"<\s*mimic\b", bare)) - followers
    if lost > 0:
        said.append(
            f"<mimic> ({lost} of them) is not read: only hinges and slides of the file follow one another"
        )
    speeds = len(re.findall(r"<\s*limit[^>]*\bvelocity\s*=", bare))
    if speeds:
        said.append(f"velocity of <limit> ({speeds} of them) is not read: it is a property of a motor")
    return said
