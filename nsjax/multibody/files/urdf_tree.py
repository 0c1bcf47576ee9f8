"""Links and joints of a URDF as a tree, before the package `mujoco` reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np

from nsjax.core import InputError, nearest
from nsjax.multibody.files.texts import Element

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation

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
    """The joint above each link by the name of the link.

    Raises:
        InputError: for a joint of an unknown link, a link below two joints, and joints in a circle.
    """
    links, above = [str(x.get("name")) for x in root.findall("link")], JointsByChild()
    known = set(links)
    for joint in root.findall("joint"):
        where = f"{who}: {title}, joint {joint.get('name', '')!r}"
        for which in ("parent", "child"):
            end = _link(joint, which)
            if end and end not in known:
                raise InputError(f"{where}: there is no {which} link {end!r}; {nearest(end, links)}")
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


def _own_pose(joint: Element) -> tuple[Rotation, np.ndarray]:
    """Rotation and place of the child of a joint on its parent, at zero or the nearest limit."""
    from scipy.spatial.transform import Rotation

    origin, limit = joint.find("origin"), joint.find("limit")
    turn = Rotation.from_euler("xyz", _vector(origin, "rpy", "0 0 0"))
    place = _vector(origin, "xyz", "0 0 0")
    kind, bounds = joint.get("type"), dict[str, str]() if limit is None else limit.attrib
    lower, upper = (float(bounds.get(x, "0")) for x in ("lower", "upper"))
    if kind in ("revolute", "prismatic") and lower < upper:
        axis = _vector(joint.find("axis"), "xyz", "1 0 0")
        step = min(max(0.0, lower), upper) * axis / np.linalg.norm(axis)
        if kind == "revolute":
            return turn * Rotation.from_rotvec(step), place
        return turn, place + turn.apply(step)
    return turn, place
