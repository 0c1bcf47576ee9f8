"""Texts of model files, before the package `mujoco` compiles them: what it would read without a word, or
refuse without naming the culprit.
"""

from __future__ import annotations

import os
import pathlib
import re
from xml.etree import ElementTree

from nsjax.core import InputError
from nsjax.core.arguments import file_path

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
    """Path of a file that can be read.

    Raises:
        InputError: for a path that is no file, or that may not be read.
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

    Args:
        bare: the text without comments.

    Raises:
        InputError: names the file, the line, the attribute and its value.
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
    """Checks the files that a model includes, and those that they include, as files of their own.

    Raises:
        InputError: names the included file and what is wrong with it.
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
