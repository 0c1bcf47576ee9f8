"""Model files opened with the package `mujoco`; what it has against them as sentences."""

from __future__ import annotations

import collections
import os
import pathlib
import re
from types import ModuleType
from typing import Any

from nsjax.core import InputError

URDF_TAGS = {
    "robot", "link", "inertial", "origin", "mass", "inertia", "visual", "collision", "geometry", "box",
    "cylinder", "sphere", "capsule", "mesh", "material", "color", "texture", "joint", "parent", "child",
    "axis", "limit", "dynamics", "mujoco", "compiler",
}  # fmt: skip
"""Elements of a URDF that are read, or concern pictures alone."""

REMEDIES = (
    (r"mass and inertia of moving", "give it an inertial with mass and inertia, or a fixed joint"),
    (r"Error opening file|resource|decoder|mesh", "put the mesh beside the file, or write a box, sphere or "
     "capsule in its place"),
    (r"XML parse error|XML_ERROR", "the file is broken there: mend it, or export it again"),
    (r"free joint|freejoint", "only a body of the world may be free; hang it on a ball and slides"),
    (r"A \+ B", "the moments of inertia are of no body; correct them"),
)  # fmt: skip
"""What to do, by what a message says."""


def library() -> ModuleType:
    """The package `mujoco`.

    Raises:
        ImportError: naming the extra that brings it.
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
    """Whether it is a file's text, not its path."""
    return isinstance(given, str) and given.lstrip().startswith("<")


def opened(given: Any, who: str) -> tuple[Any, str, str]:
    """A `mujoco.MjSpec`, what to call it, and its text.

    Args:
        given: path or text.
        who: function that was asked.

    Raises:
        InputError: for a file that is not there, or broken.
    """
    mujoco = library()
    title, text = "text", given
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
    return spec, title, text


def compiled(spec: Any, title: str, who: str) -> Any:
    """Its `mujoco.MjModel`.

    Raises:
        InputError: for what no model can be made of.
    """
    try:
        return spec.compile()
    except (ValueError, RuntimeError) as error:
        raise sentence(who, title, error) from None


def sentence(who: str, title: str, error: Exception) -> InputError:
    """A message of the library as one sentence with a remedy."""
    lines = [x.strip() for x in str(error).splitlines() if x.strip()]
    words = lines[0].removeprefix("Error: ").removeprefix("ParseXML: ").rstrip(":")
    place = [x.removeprefix("Element name ") for x in lines[1:] if x.startswith("Element name")]
    line = re.search(r"Line number=(\d+)", str(error))
    where = f", element {place[0]}" if place else f", line {line.group(1)}" if line else ""
    remedy = next((x for pattern, x in REMEDIES if re.search(pattern, str(error))), "correct it there")
    return InputError(f"{who}: {title}{where}: {words}; {remedy}")


def strange_elements(text: str) -> list[str]:
    """Sentences about elements of a URDF that nobody reads."""
    bare = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    found = collections.Counter(re.findall(r"<\s*([A-Za-z_][\w:.-]*)", bare))
    said = [
        f"<{name}> ({n} of them) is not read: it is no element of URDF that has an equal here"
        for name, n in found.items()
        if name not in URDF_TAGS
    ]
    speeds = len(re.findall(r"<\s*limit[^>]*\bvelocity\s*=", bare))
    if speeds:
        said.append(f"velocity of <limit> ({speeds} of them) is not read: it is a property of a motor")
    return said
