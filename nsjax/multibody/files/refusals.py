"""Errors of the package `mujoco` about a file, as one sentence with a remedy."""

from __future__ import annotations

import re
from collections.abc import Collection

from nsjax.core import InputError

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
    """An error of the library as an error with one sentence.

    Args:
        who: name of the reader.
        title: of the file.
        error: error of the library.
        free: names of the bodies that the user lets move freely.
    """
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
