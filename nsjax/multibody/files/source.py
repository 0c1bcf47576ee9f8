"""A compiled model with identifiers for its elements, and files that it names and that are missing."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from nsjax.core.errors import listed
from nsjax.multibody.contacts.groups import unused
from nsjax.multibody.files.texts import FORMATS, read_as_text
from nsjax.multibody.parts import GROUND

KINDS = (("body", "nbody"), ("joint", "njnt"), ("geom", "ngeom"), ("equality", "neq"), ("actuator", "nu"),
         ("tendon", "ntendon"))  # fmt: skip
"""Kinds of elements with names, in the order in which identifiers are assigned: bodies keep their names."""

MINVAL = 1e-15
"""Smallest number of MuJoCo, which stands in place of zero in its denominators; it takes smaller moments
[kg m^2] for zero."""

SWITCHES = {
    "equality": ("EQUALITY", "CONSTRAINT"), "frictionloss": ("FRICTIONLOSS", "CONSTRAINT"),
    "limit": ("LIMIT", "CONSTRAINT"), "contact": ("CONTACT", "CONSTRAINT"), "spring": ("SPRING", "PASSIVE"),
    "damper": ("DAMPER", "PASSIVE"), "gravity": ("GRAVITY",), "clampctrl": ("CLAMPCTRL",),
    "actuation": ("ACTUATION",), "filterparent": ("FILTERPARENT",),
}  # fmt: skip
"""Mechanics that a file can switch off, with the flags that do so in all versions of the library."""


@dataclasses.dataclass(frozen=True, eq=False)
class Place:
    """Axes of a body of the file in the axes of a part: its name, a rotation (3, 3) and a point (3,)."""

    body: str
    turn: np.ndarray
    origin: np.ndarray

    def point(self, at: Any) -> np.ndarray:
        """A point of the body in the axes of the part."""
        return self.origin + self.turn @ np.asarray(at, float)


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """A compiled model file, and options of its reader.

    Args:
        mujoco: the package.
        model: `mujoco.MjModel`.
        title: of the file.
        restitution, friction: of all contacts and limits, given by the user.
        own_friction: whether contacts have the friction of the file where the user gives none.
        capacity: candidate pairs of a step, see `nsjax.multibody.contact_group`.
        self_contact: whether bodies of one tree, the links of a robot, may touch each other; None: they may
            not, and a sentence says so.
        held_roots: whether a root that is fixed to the ground counts as parent of the bodies that hang on
            it, which then do not touch it; it does not in MJCF.
        concavity: depth of hollows up to which meshes are divided into convex pieces, see
            `nsjax.multibody.convex_pieces`; None: each is its hull.
        visuals: triangles that pictures show in place of the geometries of a body, by its name in the file.
    """

    mujoco: ModuleType
    model: Any
    title: str
    restitution: Any = 0.0
    friction: Any = None
    own_friction: bool = True
    capacity: int | None = None
    self_contact: bool | None = True
    held_roots: bool = False
    concavity: float | None = None
    visuals: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def off(self, what: str) -> bool:
        """Whether the file switches off the mechanics ``what``, a key of `SWITCHES`."""
        flags = int(self.model.opt.disableflags)
        return any(
            flags & int(getattr(self.mujoco.mjtDisableBit, f"mjDSBL_{x}", 0)) for x in SWITCHES[what]
        )

    @property
    def actuators(self) -> int:
        """Number of actuators; in new versions of the library one may have several controls."""
        return int(getattr(self.model, "nactuator", self.model.nu))

    def control(self, k: int) -> int:
        """Index of the control of an actuator."""
        places = getattr(self.model, "actuator_ctrladr", None)
        return k if places is None else int(places[k])

    def gear(self, k: int) -> float:
        """Gear of an actuator in a joint or tendon."""
        return float(self.gears(k)[0])

    def gears(self, k: int) -> np.ndarray:
        """All gears (6,) of an actuator."""
        places = getattr(self.model, "actuator_outadr", None)
        return np.array(self.model.actuator_gear[k if places is None else int(places[k])], float)

    def own_name(self, kind: str, k: int) -> str:
        """Name of an element in the file; empty without a name."""
        return str(getattr(self.model, {"joint": "jnt", "equality": "eq"}.get(kind, kind))(k).name)

    def called(self, kind: str, k: int) -> str:
        """Name of an element in sentences."""
        own = self.own_name(kind, k)
        return repr(own) if own else f"number {k}"

    @functools.cached_property
    def names(self) -> dict[tuple[str, int], str]:
        """Identifiers of all elements: the names of the file, changed where they are taken or no words."""
        found: dict[tuple[str, int], str] = {("body", 0): GROUND}
        taken = {GROUND, "gravity"}
        for kind, size in KINDS:
            for k in range(self.actuators if size == "nu" else getattr(self.model, size)):
                if (kind, k) in found:
                    continue
                name = identifier(self.own_name(kind, k) or self._made_up(kind, k, found))
                if name in taken:
                    name = f"{name}_{kind}"
                found[kind, k] = unused(name, taken)
        return found

    def _made_up(self, kind: str, k: int, found: dict[tuple[str, int], str]) -> str:
        """Name of an element that has none in the file."""
        if kind == "joint":
            return f"{found['body', int(self.model.jnt_bodyid[k])]}_joint"
        if kind == "geom":
            shape = self.mujoco.mjtGeom(int(self.model.geom_type[k])).name.removeprefix("mjGEOM_").lower()
            return f"{found['body', int(self.model.geom_bodyid[k])]}_{shape}"
        return f"{kind}{k}"

    def turn(self, quaternion: Any) -> np.ndarray:
        """Rotation matrix (3, 3) of a quaternion."""
        found = np.zeros(9)
        self.mujoco.mju_quat2Mat(found, np.asarray(quaternion, float))
        return found.reshape(3, 3)

    def rotation_vector(self, matrix: np.ndarray) -> np.ndarray | None:
        """The rotation vector of a matrix; None for no rotation."""
        if np.array_equal(matrix, np.eye(3)):
            return None
        quaternion, vector = np.zeros(4), np.zeros(3)
        self.mujoco.mju_mat2Quat(quaternion, matrix.reshape(-1))
        self.mujoco.mju_quat2Vel(vector, quaternion, 1.0)
        return vector

    def merged(self, b: int) -> bool:
        """Whether a body, without mass and joint, is merged into the body that carries it."""
        model = self.model
        return b > 0 and not model.body_jntnum[b] and not model.body_mass[b] > 0.0

    def place(self, b: int) -> Place:
        """Axes of a body of the file in the part that it is, or is fixed to."""
        if b == 0 or not self.merged(b):
            return Place(self.names["body", b], np.eye(3), np.zeros(3))
        above = self.place(int(self.model.body_parentid[b]))
        turn = self.turn(self.model.body_quat[b])
        return Place(above.body, above.turn @ turn, above.point(self.model.body_pos[b]))


def gathered(said: Iterable[tuple[str, str]]) -> list[str]:
    """One sentence for each ``what`` of the findings ``(what, who)``, with the names of all its ``who``.

    Example:
        >>> from nsjax.multibody.files.source import gathered
        >>> gathered([("wheels that are left out", "'a'"), ("wheels that are left out", "'b'")])
        ["wheels that are left out: 'a', 'b'"]
    """
    found: dict[str, list[str]] = {}
    for what, who in said:
        found.setdefault(what, []).append(who)
    return [f"{what}: {listed(names)}" for what, names in found.items()]


def identifier(name: str) -> str:
    """A word of letters, digits and _ made of any name.

    Example:
        >>> from nsjax.multibody.files.source import identifier
        >>> identifier("left arm/1"), identifier("2nd")
        ('left_arm_1', '_2nd')
    """
    word = re.sub(r"\W", "_", name)
    return word if word.isidentifier() else f"_{word}"


# Missing files that a model names, and meshes of other formats: the elements that use them are left out
# if the mechanism permits.


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
            path = path_of(spec, title, asset.file)
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


def path_of(spec: Any, title: str, file: str) -> pathlib.Path | None:
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
