"""Model files opened and compiled, with masses and moments that the package `mujoco` refuses."""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
import re
from collections.abc import Callable, Collection, Iterator
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import numpy as np

from nsjax.core import InputError
from nsjax.core.arguments import numbers
from nsjax.core.errors import listed, optional
from nsjax.multibody.files.source import (
    MINVAL,
    TEXT,
    find_packages,
    weighs,
    without_absent_shapes,
    without_pictures,
)
from nsjax.multibody.files.texts import (
    MASSLESS,
    Element,
    check_included,
    check_numbers,
    checked_joints,
    readable,
    robot,
    sentence,
    visible,
    with_free_links,
    without_volume,
)

# Moments of inertia of a URDF that the package `mujoco` refuses, and that other programs accept.
#
# CAD exports contain rounded moments, and files written by hand contain zeros. A link whose largest
# moment exceeds the sum of the two others gets the nearest moments that a body can have; a link on a
# joint may be a point mass.


IMPOSSIBLE = r"A \+ B >= C"
"""Pattern of the package's message about moments that violate the triangle inequality."""

EMPTY = rf"{MASSLESS}|positive eigenvalues"
"""Pattern of the package's messages about links without moments."""

CORRECTED = (
    "moments of inertia of no body (one exceeds the sum of the others) are read as the nearest possible "
    "ones [kg m^2]"
)

ZERO_SHARE = 1e-12
"""Part of the largest moment of a link up to which another one is rounding of zero."""

NAMED = r"Element name '([^']+)'"


@dataclasses.dataclass(frozen=True)
class OwnMoments:
    """Moments (3,) of a link, quaternion (4,) of their axes, principal values of the file (3,)."""

    moments: np.ndarray
    turn: np.ndarray
    given: np.ndarray


def compiled_as_given(
    mujoco: ModuleType, spec: Any, error: Exception, links: bool, thin: Callable[[str], list[str] | None]
) -> tuple[Any, list[str]] | Exception:
    """The model with corrected moments of its links (if ``links``), and sentences; or the ``error`` of its
    first compilation that remains. ``spec`` is changed; ``thin`` corrects a mesh without volume, from a
    message: sentences, or None for another error.
    """
    own, notices, balanced = dict[str, OwnMoments](), list[str](), False
    while True:
        said = str(error)
        named = re.search(NAMED, said)
        flat = thin(said)
        if flat is not None:
            notices += flat
        elif not links:
            return error
        elif re.search(IMPOSSIBLE, said) and not balanced:
            spec.compiler.balanceinertia, balanced = True, True
        elif re.search(EMPTY, said) and named and named.group(1) not in own:
            if not _filled(mujoco, spec.body(named.group(1)), own):
                return error
        else:
            return error
        try:
            model = spec.compile()
        except (ValueError, RuntimeError) as next_error:
            error = next_error
            continue
        corrected = [*_emptied(model, own), *(_nearest(spec, model, own) if balanced else [])]
        points = [repr(name) for name, x in own.items() if not np.any(x.moments)]
        if points:
            notices.append(
                f"links without moments of inertia are read as point masses: {', '.join(points)}"
            )
        return model, [*notices, *([f"{CORRECTED}: {', '.join(corrected)}"] if corrected else [])]


def _filled(mujoco: ModuleType, body: Any, own: dict[str, OwnMoments]) -> bool:
    """Give a link whose moments are not positive other ones for the compilation, and keep its own: those of
    a point mass, of a thin rod, or the nearest possible ones; False for a link without mass.
    """
    if not body.explicitinertial or not body.mass > 0.0:
        return False
    full = np.array(body.fullinertia, float)
    given = tensor(full) if np.all(np.isfinite(full)) else np.diag(np.array(body.inertia, float))
    values, axes = np.linalg.eigh(given)
    least = max(ZERO_SHARE * np.max(np.abs(values)), MINVAL)
    moments = nearest_moments(np.where(np.abs(values) > least, values, 0.0))
    axes, relative, turn = axes * np.linalg.det(axes), np.zeros(4), np.zeros(4)
    mujoco.mju_mat2Quat(relative, axes.reshape(-1))
    mujoco.mju_mulQuat(turn, np.array(body.iquat, float), relative)
    own[body.name] = OwnMoments(moments=moments, turn=turn, given=values)
    body.fullinertia = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    return True


def _emptied(model: Any, own: dict[str, OwnMoments]) -> list[str]:
    """Gives links in the model their own moments; words about those that are not the given ones."""
    said = []
    for name, x in own.items():
        k = int(model.body(name).id)
        model.body_inertia[k], model.body_iquat[k] = x.moments, x.turn
        model.body_sameframe[k] = model.body_simple[k] = 0  # short cuts for the axes of the compilation
        if not np.allclose(
            x.moments, x.given, rtol=ZERO_SHARE, atol=max(ZERO_SHARE * np.max(np.abs(x.given)), MINVAL)
        ):
            said.append(_change(name, x.given[::-1], x.moments[::-1]))
    return said


def nearest_moments(moments: np.ndarray) -> np.ndarray:
    """The three numbers nearest to ``moments`` (3,) of which none exceeds the sum of the two others: the
    moments of a plate or, far from what is possible, of a thin rod.

    Example:
        >>> import numpy as np
        >>> from nsjax.multibody.files.model_source import nearest_moments
        >>> nearest_moments(np.array([1.0, 0.0, 0.5])).round(3).tolist()
        [0.833, 0.167, 0.667]
    """
    largest = int(np.argmax(moments))
    excess = 2.0 * moments[largest] - np.sum(moments)
    found = moments + np.where(np.arange(3) == largest, -1.0, 1.0) * max(excess, 0.0) / 3.0
    if np.min(np.sum(found) - 2.0 * found) >= -ZERO_SHARE * np.max(np.abs(found)):
        return found
    along = np.arange(3) != np.argmin(moments)
    return np.where(along, max(float(np.mean(moments[along])), 0.0), 0.0)


def tensor(full: Any) -> np.ndarray:
    """The matrix (3, 3) of the six moments of a body in the order of the library."""
    a, b, c, ab, ac, bc = np.array(full, float)
    return np.array([[a, ab, ac], [ab, b, bc], [ac, bc, c]])


def _nearest(spec: Any, model: Any, own: dict[str, OwnMoments]) -> list[str]:
    """Words about impossible moments, which are replaced in the model by the nearest possible ones."""
    said = []
    for body in spec.bodies:
        full = np.array(body.fullinertia, float)
        if body.name in own or not body.explicitinertial or not np.all(np.isfinite(full)):
            continue
        values = np.linalg.eigvalsh(tensor(full))[::-1]
        nearest, k = nearest_moments(values), int(model.body(body.name).id)
        if np.array_equal(nearest, values) or not model.body_mass[k]:
            continue
        model.body_inertia[k] = nearest  # the principal axes of the model are ordered by falling moments
        said.append(_change(body.name, values, nearest))
    return said


def _change(name: str, values: np.ndarray, nearest: np.ndarray) -> str:
    return f"{name!r} ({_printed(values)} to {_printed(nearest)})"


def _printed(values: np.ndarray) -> str:
    return " ".join(f"{x:.4g}" for x in values)


# Masses and moments of links of a URDF from their collision shapes and a density.


HEAVY = 1e12
"""Density with which shapes are compiled [kg/m^3]: the package refuses moments below `MINVAL`."""

Masses = dict[str, float | None]


def checked_density(density: Any) -> float | None:
    """The density of an argument. Raises `InputError` for what is no positive number."""
    if density is None:
        return None
    found = numbers("read_urdf", "density", density)
    if np.shape(found) != () or not 0.0 < found < math.inf:
        raise InputError(f"read_urdf: density = {density!r}; give a positive number [kg/m^3]")
    return float(found)


def without_inertials(root: Element) -> Masses:
    """Takes incomplete inertials, and those without mass, out of the links with collision shapes; returns
    the masses of these links that the file gives, by their names, None where it gives none.
    """
    found = Masses()
    for link in root.findall("link"):
        inertial = link.find("inertial")
        mass = None if inertial is None else inertial.find("mass")
        try:
            given = 0.0 if mass is None else float(mass.get("value", "0"))
        except ValueError:  # a word, which the package names
            continue
        whole = inertial is not None and inertial.find("inertia") is not None and given > 0.0
        if whole or link.find("collision") is None:
            continue
        if inertial is not None:
            link.remove(inertial)
        found[str(link.get("name"))] = given or None
    return found


def made_heavy(spec: Any, masses: Masses) -> None:
    """Gives the shapes of links the density `HEAVY`."""
    for body in spec.bodies:
        for geom in body.geoms if body.name in masses else ():
            geom.density = HEAVY


def made_as_given(model: Any, masses: Masses, density: float | None) -> list[str]:
    """Gives the links in the model their masses, or those of the density, with moments of their shapes;
    sentences about them. Without a density they are as they are, with that of the package.
    """
    assumed, said = 1000.0, []  # density that the package takes for shapes [kg/m^3]
    for name, mass in masses.items():
        k = int(model.body(name).id) if name != "world" else 0
        if not k or not model.body_mass[k]:
            continue
        known = assumed if density is None else HEAVY
        factor = (density or assumed) / known if mass is None else mass / float(model.body_mass[k])
        model.body_mass[k] *= factor
        model.body_inertia[k] *= factor
        said.append(f"{name!r} ({model.body_mass[k]:.3g} kg)")
    if not said:
        return []
    return [
        "links without whole inertials have the moments of their collision shapes, of "
        f"{density or assumed:g} kg/m^3 where no mass is given: {listed(said)}"
    ]


# Model files opened and compiled with the package `mujoco`, whose errors become one sentence.


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
    return optional("reading model files needs", "files", "mujoco")


def is_text(given: Any) -> bool:
    """Whether the argument is the text of a file, not its path."""
    return isinstance(given, str) and given.lstrip().startswith("<")


def opened(given: Any, who: str, masses: Masses | None = None) -> tuple[Any, str, str]:
    """A `mujoco.MjSpec`, its title for sentences, and its text without comments.

    Args:
        given: path or text.
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
    """The compiled `mujoco.MjModel`, and sentences about elements left out. ``spec``: the opened
    `mujoco.MjSpec`; ``free``: names of the bodies that the user lets move freely. Raises `InputError` for a
    file that does not compile.
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
    """Adds a level plane of the ground, named ``floor``, at a height [m]. Raises `InputError` for what is
    no finite number.
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
    """Sentences about elements of a URDF that are not read. ``bare``: text of the file without comments;
    ``followers``: number of <mimic> elements that are read as couplings.
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
