"""Model files opened and compiled with the package `mujoco`, whose errors become one sentence."""

from __future__ import annotations

import collections
import functools
import re
from collections.abc import Collection, Iterator
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import numpy as np

from nsjax.core import InputError
from nsjax.core.arguments import numbers
from nsjax.core.errors import optional
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
from nsjax.multibody.files.shape_inertias import Masses, made_heavy, without_inertials
from nsjax.multibody.files.texts import check_included, check_numbers, readable, visible
from nsjax.multibody.files.urdf_tree import checked_joints, robot, with_free_links

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
    made: ModuleType = optional("reading model files needs", "files", "mujoco")
    return made


def is_text(given: Any) -> bool:
    """Whether the argument is the text of a file, not its path."""
    return isinstance(given, str) and given.lstrip().startswith("<")


def opened(given: Any, who: str, masses: Masses | None = None) -> tuple[Any, str, str]:
    """A `mujoco.MjSpec`, its title for sentences, and its text without comments.

    Args:
        given: path or text.
        who: name of the reader, for errors.
        masses: receives the links whose inertia comes from their shapes; None: incomplete inertials are
            refused.

    Raises:
        InputError: for a missing or broken file, and for numbers that are not finite.
    """
    mujoco = library()
    title, text, path = TEXT, given, None
    if not is_text(given):
        path = readable(who, given)
        title, text = str(path), path.read_text(encoding="utf-8", errors="replace")
    bare = visible(text)
    root = re.search(r"<\s*([A-Za-z_][\w:.-]*)", bare)
    wanted = {"read_urdf": "robot", "read_mjcf": "mujoco"}[who]
    if root is not None and root.group(1) != wanted and root.group(1) in ("robot", "mujoco"):
        other = {"robot": "read_urdf", "mujoco": "read_mjcf"}[root.group(1)]
        raise InputError(f"{who}: {title} has the root <{root.group(1)}>; use {other}")
    check_numbers(who, title, bare)
    if path is not None and who == "read_mjcf":
        check_included(who, path, bare)
    tree = robot(bare) if who == "read_urdf" else None
    changed = False
    if tree is not None:
        changed = with_free_links(tree, checked_joints(who, title, tree))
        if masses is not None:
            masses |= without_inertials(tree)
            changed = changed or bool(masses)
    try:
        if path is None or changed:
            text = text if tree is None or not changed else ElementTree.tostring(tree, encoding="unicode")
            spec = mujoco.MjSpec.from_string(text)
            spec.modelfiledir = "" if path is None else str(path.parent)
        else:
            spec = mujoco.MjSpec.from_file(title)
    except (ValueError, RuntimeError) as error:
        raise sentence(who, title, error) from None
    spec.compiler.fusestatic = False
    made_heavy(spec, masses or {})
    without_pictures(spec)
    find_packages(spec, title)
    return spec, title, bare


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


def _outermost(bare: str) -> Iterator[str]:
    """Names of the elements of a URDF that are not read, without those inside of such."""
    try:
        open_ones = [ElementTree.fromstring(bare.strip())]
    except ElementTree.ParseError:  # the other parser was more patient
        yield from (name for name in re.findall(r"<\s*([A-Za-z_][\w:.-]*)", bare) if name not in URDF_TAGS)
        return
    while open_ones:
        for x in open_ones.pop():
            if x.tag in URDF_TAGS:
                open_ones.append(x)
            else:
                yield x.tag


def strange_elements(bare: str, followers: int) -> list[str]:
    """Sentences about elements of a URDF that are not read.

    Args:
        bare: text of the file without comments.
        followers: number of <mimic> elements that are read as couplings.
    """
    said = [
        f"<{name}> ({n} of them) is not read: it is no element of URDF that has an equal here"
        for name, n in collections.Counter(_outermost(bare)).items()
    ]
    lost = len(re.findall(r"<\s*mimic\b", bare)) - followers
    if lost > 0:
        said.append(
            f"<mimic> ({lost} of them) is not read: only hinges and slides of the file follow one another"
        )
    speeds = len(re.findall(r"<\s*limit\b[^<>]*\bvelocity\s*=", bare))
    if speeds:
        said.append(f"velocity of <limit> ({speeds} of them) is not read: it is a property of a motor")
    return said
