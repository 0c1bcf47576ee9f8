"""Texts, links and meshes of model files before the package `mujoco` reads them, and its errors."""

from __future__ import annotations

import os
import pathlib
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from nsjax.core import InputError
from nsjax.core.arguments import file_path
from nsjax.core.errors import check_known

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation


# Errors of the package `mujoco` about a file, as one sentence with a remedy.


MASSLESS, CROWDED = r"mass and inertia of moving", r"more than 6 dofs"
SHAPES = ", or give density=..., with which a link has the inertia of its collision shapes"
FILES = (
    (r"\.(stl|obj|msh|dae|ply)$", "put the mesh beside the file, or give the body that it weighs for an "
     "inertial: a mesh that gives no inertia may be missing"),
    (r"\.(xml|mjcf|urdf)$", "put that file beside this one"),
    (r"", "put it beside the file, or take away what names it"),
)  # fmt: skip
"""Remedies for a file that cannot be opened, by patterns of its name; the first that matches is used."""

REMEDIES = (
    (MASSLESS, "give it an inertial with mass and inertia, or take away the joint on which it moves"),
    (r"A \+ B|positive eigenvalues|fullinertia", "the moments of inertia are of no body: all three are "
     "positive, and none larger than the sum of the two others; correct them"),
    (r"unrecognized attribute", "correct its name, or take it away"),
    (r"unrecognized element|repeated element|already included", "take it away"),
    (r"too much data|not enough data|does not have enough|bad format|invalid keyword|zero quaternion|"
     r"invalid joint type|size\S* .*must be|size\(\d\) must be|axis too small|range\[0\]",
     "correct that value"),
    (r"missing|specification not found", "add it"),
    (r"repeated name", "give one of both another name"),
    (r"not found|unknown", "correct the name, or add what it names"),
    (r"no decoder|unknown mesh|file extension", "write the mesh as STL or OBJ"),
    (r"keyframe.*size", "a key frame gives all coordinates of the model; correct or take it away"),
    (r"mesh|vertices|faces", "give its body an inertial and take the mesh away, or write a box, sphere or "
     "capsule in its place"),
    (r"free joint|freejoint", "only a body of the world may be free; hang it on a ball and slides"),
    (CROWDED, "a body has at most the joints that it can move in; take one away"),
    (r"global coordinates", "load and save it in an old version of MuJoCo, as it says"),
    (r"XML parse error|XML_ERROR|empty file", "the file is broken there: mend it, or export it again"),
)  # fmt: skip
"""Remedies by patterns of a message; the first that matches is used."""


def sentence(who: str, title: str, error: Exception, free: Collection[str] = ()) -> InputError:
    """An ``error`` of the library in one sentence; ``free``: bodies that the user lets move freely."""
    said = str(error)
    first = next((x.strip() for x in said.splitlines() if x.strip()), "nothing said")
    words = re.sub(r"^((XML )?Error: |ParseXML: )+", "", first).rstrip(":.")
    shapes = SHAPES if who == "read_urdf" and re.search(rf"{MASSLESS}|'(mass|inertia)'", said) else ""
    return InputError(f"{who}: {title}{_place(said)}: {words}; {_remedy(said, free)}{shapes}")


def _place(said: str) -> str:
    """Element and line of the file, where the message names them."""
    named = re.search(r"Element name '([^']+)'", said)
    tag = re.search(r"Element '([^']+)'", said)
    line = re.search(r"[Ll]ine(?: number=| )(\d+)", said)
    parts = [f"element {named.group(1)!r}"] if named else [f"element <{tag.group(1)}>"] if tag else []
    return "".join(f", {x}" for x in [*parts, *([f"line {line.group(1)}"] if line else [])])


def _remedy(said: str, free: Collection[str]) -> str:
    named = re.search(r"Element name '([^']+)'", said)
    if named and named.group(1) in free and re.search(MASSLESS, said):
        return "leave free=False, which holds a root without mass, or give it an inertial with its inertia"
    if named and named.group(1) in free and re.search(CROWDED, said):
        return "leave free=False: it has a joint of its own to the ground"
    opened = re.search(r"[Ee]rror opening file '([^']*)'", said)
    if opened:
        return next(x for pattern, x in FILES if re.search(pattern, opened.group(1).lower()))
    return next((x for pattern, x in REMEDIES if re.search(pattern, said)), "correct it there")


# Texts of model files, before the package `mujoco` compiles them: what it would read without a word, or
# refuse without naming the culprit.


HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)", re.DOTALL)
"""Comments and instructions; one without an end hides the rest, so that no text is searched twice."""

ATTRIBUTE = re.compile(r"""(?<![\w:.-])([A-Za-z_][\w:.-]*)\s*=\s*("[^"<]*"|'[^'<]*')""")
NO_NUMBER = re.compile(r"[-+]?(?:nan|inf|infinity)", re.IGNORECASE)
ENDLESS = re.compile(r"effort|velocity|(ctrl|force|act|actfrc|length)range")
"""Attributes that are bounds of efforts, of which infinite ones bind nothing."""

NAMES = re.compile(
    r"\w*name|\w*class|link|material|texture|mesh|hfield|\w*file|target|\w*dir|(joint|body|geom|\w*site|tendon)[12]?"
)
"""Attributes that hold names, which may be words like these."""

GIVEN = re.compile(
    r"lower|upper|multiplier|offset|xyz|rpy|value|i[xyz]{2}|radius|length|size|damping|friction|pos|quat|axis|"
    r"mass|gear|range|stiffness|armature|frictionloss|ref|diaginertia|fullinertia|density"
)
"""Attributes with numbers that the package takes for not given where they are empty."""

Element = ElementTree.Element


def readable(who: str, given: object) -> pathlib.Path:
    """Path of a file that can be read. Raises `InputError` for a path that is no file, or that may not be
    read.
    """
    path = file_path(given)
    if path.is_dir():
        raise InputError(f"{who}: {path} is a folder; give the path of a file in it")
    if not path.exists():
        raise InputError(f"{who}: {path} does not exist; give a path, or the text of a model")
    if not path.is_file():
        raise InputError(f"{who}: {path} is no regular file; give the path of a model, or its text")
    if not os.access(path, os.R_OK):
        raise InputError(f"{who}: {path} may not be read; change its permissions")
    return path


def visible(text: str) -> str:
    """The text without comments and instructions, with all of its lines.

    Example:
        >>> from nsjax.multibody.files.texts import visible
        >>> visible("<a/><!-- b --><c/>"), visible("<a/><!-- b " * 3)
        ('<a/><c/>', '<a/>')
    """
    return HIDDEN.sub(lambda found: "\n" * found.group().count("\n"), text)


def check_numbers(who: str, title: str, bare: str) -> None:
    """Refuses numbers that are not finite, and empty ones: the package reads some of them as not given.
    ``bare``: the text without comments.
    """
    for found in ATTRIBUTE.finditer(bare):
        name, value = found.group(1), found.group(2)[1:-1]
        strange = any(map(NO_NUMBER.fullmatch, value.split())) and not NAMES.fullmatch(name)
        endless = ENDLESS.fullmatch(name) and "nan" not in value.lower()
        if (not strange or endless) and (value.strip() or not GIVEN.fullmatch(name)):
            continue
        line = bare.count("\n", 0, found.start()) + 1
        raise InputError(f"{who}: {title}, line {line}: {name} = {value!r}; write numbers that are finite")


def check_included(who: str, path: pathlib.Path, bare: str) -> None:
    """Checks the files that a model includes, and those that they include, as files of their own. Raises an
    `InputError` that names the included file and what is wrong with it.
    """
    waiting, seen = [(path, bare)], {path.resolve()}
    while waiting:
        outer, text = waiting.pop()
        for name in re.findall(r"""<\s*include\b[^<>]*?\bfile\s*=\s*["']([^"'<>]*)["']""", text):
            inner = path.parent / name
            if not inner.exists() or inner.resolve() in seen:  # the package names these
                continue
            seen.add(inner.resolve())
            inside = visible(readable(f"{who}: {outer}, <include>", inner).read_text(errors="replace"))
            title = f"{inner}, included by {outer}"
            try:
                ElementTree.fromstring(inside.strip())
            except ElementTree.ParseError as error:
                raise InputError(
                    f"{who}: {title}, is no XML ({error}); mend it, or export it again"
                ) from None
            check_numbers(who, title, inside)
            waiting.append((inner, inside))


# Links and joints of a URDF as a tree, before the package `mujoco` reads it.


WORLD = "world"
"""Name of a root link that is the ground."""

TREE = "a URDF is a tree: take one away, and close the loop with a joint of your own"

JointsByChild = dict[str, Element]


def robot(bare: str) -> Element | None:
    """The element <robot> of a text; None where only the other parser may understand it."""
    try:
        root = ElementTree.fromstring(bare.strip())
    except ElementTree.ParseError:
        return None
    return root if root.tag == "robot" else None


def _link(joint: Element, which: str) -> str:
    found = joint.find(which)
    return "" if found is None else found.get("link", "")


def checked_joints(who: str, title: str, root: Element) -> JointsByChild:
    """The joint above each link by the name of the link. Raises `InputError` for a joint of an unknown
    link, a link below two joints, and joints in a circle.
    """
    links, above = [str(x.get("name")) for x in root.findall("link")], JointsByChild()
    for joint in root.findall("joint"):
        where = f"{who}: {title}, joint {joint.get('name', '')!r}"
        for which in ("parent", "child"):
            end = _link(joint, which)
            if end:
                check_known(f"{where}: there is no {which} link", end, links)
        child = _link(joint, "child")
        if child in above:
            raise InputError(
                f"{where}: link {child!r} hangs on joint {above[child].get('name')!r}, too; {TREE}"
            )
        above |= {child: joint} if child else {}
    fine = set[str]()
    for link in above:
        way = {}  # keeps the order
        while link in above and link not in fine and link not in way:
            way[link] = above[link].get("name", "")
            link = _link(above[link], "parent")
        if link in way:
            names = list(way.values())[list(way).index(link) :][::-1]
            raise InputError(
                f"{who}: {title}: the joints {', '.join(map(repr, names))} go round in a circle; {TREE}"
            )
        fine.update(way)
    return above


def with_free_links(root: Element, above: JointsByChild) -> bool:
    """Puts every floating joint below the ground, at the pose of its link when all coordinates are at their
    start; returns whether something changes.

    A floating joint transmits no force, so that its link moves freely, whatever carries it.
    """
    floating = [x for x in above.values() if x.get("type") == "floating" and _link(x, "parent") != WORLD]
    links = [str(x.get("name")) for x in root.findall("link")]
    if not floating or (WORLD in links and WORLD in above):
        return False
    try:
        poses = [_pose(joint, above) for joint in floating]
    except ValueError:  # words in place of numbers, which the package names
        return False
    if WORLD not in links:
        held = [x for x in links if x not in above]
        ElementTree.SubElement(root, "link", name=WORLD)
        for link in held:
            joint = ElementTree.SubElement(root, "joint", name=f"{link}_held", type="fixed")
            ElementTree.SubElement(joint, "parent", link=WORLD)
            ElementTree.SubElement(joint, "child", link=link)
    for joint, (turn, place) in zip(floating, poses, strict=True):
        for old in joint.findall("origin"):
            joint.remove(old)
        angles = turn.as_euler("xyz")
        ElementTree.SubElement(joint, "origin", xyz=_words(place), rpy=_words(angles))
        joint.find("parent").set("link", WORLD)  # type: ignore[union-attr]
    return True


def _words(vector: np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in vector)


def _vector(element: Element | None, name: str, default: str) -> np.ndarray:
    given = (default if element is None else element.get(name, default)).split()
    return np.array(given, float)


def _pose(joint: Element, above: JointsByChild) -> tuple[Rotation, np.ndarray]:
    """Rotation and place of the child of a joint on the ground."""
    from scipy.spatial.transform import Rotation

    turn, place = Rotation.identity(), np.zeros(3)
    below: Element | None = joint
    while below is not None:
        own, at = _own_pose(below)
        turn, place = own * turn, at + own.apply(place)
        below = above.get(_link(below, "parent"))
    return turn, place


def origin_of(element: Element) -> tuple[Rotation, np.ndarray]:
    """Rotation and place of the <origin> of an element."""
    from scipy.spatial.transform import Rotation

    origin = element.find("origin")
    turn = Rotation.from_euler("xyz", _vector(origin, "rpy", "0 0 0"))
    return turn, _vector(origin, "xyz", "0 0 0")


def _own_pose(joint: Element) -> tuple[Rotation, np.ndarray]:
    """Rotation and place of the child of a joint on its parent, at zero or the nearest limit."""
    from scipy.spatial.transform import Rotation

    limit, (turn, place) = joint.find("limit"), origin_of(joint)
    kind, bounds = joint.get("type"), dict[str, str]() if limit is None else limit.attrib
    lower, upper = (float(bounds.get(x, "0")) for x in ("lower", "upper"))
    if kind in ("revolute", "prismatic") and lower < upper:
        axis = _vector(joint.find("axis"), "xyz", "1 0 0")
        step = min(max(0.0, lower), upper) * axis / np.linalg.norm(axis)
        if kind == "revolute":
            return turn * Rotation.from_rotvec(step), place
        return turn, place + turn.apply(step)
    return turn, place


# Meshes that the package `mujoco` refuses, and that other programs read: STL files in ASCII, and meshes
# without volume, which may give shapes but no inertia.


FORMATS = (".stl", ".obj", ".msh")
"""Endings of the names of files that are read as meshes."""

THIN = r"mesh volume is too small|mesh volume is negative|coplanar vertices"
"""Pattern of the package's messages about meshes without volume."""

NAMED = r"Element name '([^']+)'"

NUMBER = rb"[-+]?[\d.]+(?:[eE][-+]?\d+)?"
VERTEX = re.compile(rb"\bvertex\s+(" + rb")\s+(".join([NUMBER] * 3) + rb")")
"""A vertex of an STL file in ASCII."""


def read_as_text(asset: Any, path: pathlib.Path) -> None:
    """Replaces the file of a mesh by its vertices and faces, if it is an STL file in ASCII."""
    if path.suffix.lower() != ".stl":
        return
    with path.open("rb") as file:
        if file.read(5).lower() != b"solid":
            return
        content = file.read()
    if b"facet" not in content[:1000]:  # a binary file may begin with the word, too
        return
    corners = np.array(VERTEX.findall(content), float).reshape(-1, 3)
    if not len(corners) or len(corners) % 3:
        return
    points, faces = np.unique(corners, axis=0, return_inverse=True)
    asset.uservert, asset.userface, asset.file = points.reshape(-1), faces.reshape(-1).astype(int), ""


def without_volume(mujoco: Any, spec: Any, said: str, weighs: Any) -> list[str] | None:
    """Sentences about a mesh without volume, which then is read as a shell, or left out if it is flat; None
    for another error. ``spec`` is changed; ``said``: message of the error; ``weighs``: whether a body takes
    inertia from a geometry.
    """
    named = re.search(NAMED, said)
    mesh = spec.mesh(named.group(1)) if named and re.search(THIN, said) else None
    users = [] if mesh is None else [g for g in spec.geoms if g.meshname == mesh.name]
    if mesh is None or any(weighs(g) for g in users):
        return None
    shell = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    if "coplanar" not in said and mesh.inertia != shell:
        mesh.inertia = shell
        return []
    for thing in [*users, mesh]:
        spec.delete(thing)
    return [f"mesh {mesh.name!r} is flat and is left out, with the shapes that use it"]
