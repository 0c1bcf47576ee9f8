"""Public names, and the page of the reference that shows each of them under its shortest name.

The pages and their directives are files of the folder ``reference``.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import inspect
import itertools
import pathlib
import re
from typing import Any

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "nsjax" / "documentation"
"""Folder of guide and reference."""

DIRECTIVE = re.compile(r"^\.\. (currentmodule|autofunction|autoclass|autodata):: ([\w.]+)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Entry:
    """A name that a page of the reference shows.

    Args:
        page: name of the page's file, without its suffix.
        module, name: module and name on the page.
        thing: the function, class or value.
    """

    page: str
    module: str
    name: str
    thing: Any

    @property
    def path(self) -> str:
        """Full name for a user after ``import nsjax``."""
        return f"{self.module}.{self.name}"


def reached(path: str) -> Any:
    """Object of a full name after ``import nsjax`` alone.

    Args:
        path: ``nsjax`` and names, separated by dots.

    Raises:
        AttributeError: for a name that does not exist.

    Example:
        >>> from docs.pages import reached
        >>> reached("nsjax.transforms.positive").__name__
        'positive'
    """
    package, *names = path.split(".")
    return functools.reduce(getattr, names, importlib.import_module(package))


def module_names(module: str) -> list[str]:
    """Public names of a module: its ``__all__``, or its own names without a leading underscore.

    Args:
        module: full name of the module.

    Example:
        >>> from docs import module_names
        >>> module_names("nsjax.gradient_notes")
        ['describe']
    """
    found = reached(module)
    listed = getattr(found, "__all__", None)
    if listed is not None:
        return [name for name in listed if not inspect.ismodule(getattr(found, name))]
    own = [k for k, x in vars(found).items() if getattr(x, "__module__", None) == found.__name__]
    return [name for name in own if not name.startswith("_")]


@functools.cache
def entries() -> tuple[Entry, ...]:
    """All names on the pages of the reference, page by page.

    Example:
        >>> from docs import entries
        >>> [entry.page for entry in entries() if entry.path == "nsjax.animate"]
        ['pictures']
    """
    found = []
    for page in sorted((FOLDER / "reference").glob("*.rst")):
        module = ""
        for directive, name in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            if directive == "currentmodule":
                module = name
            else:
                found.append(Entry(page.stem, module, name, reached(f"{module}.{name}")))
    return tuple(found)


def is_documented(thing: Any) -> bool:
    """Whether an object is a function or class of the package, which has a docstring, and not a value.

    Example:
        >>> import nsjax
        >>> is_documented(nsjax.simulate), is_documented(nsjax.io.PERIOD)
        (True, False)
    """
    plain = inspect.unwrap(thing) if callable(thing) else thing
    ours = getattr(plain, "__module__", "").partition(".")[0] == "nsjax"
    return ours and (inspect.isfunction(plain) or inspect.isclass(plain))


def constant_text(module: str, name: str) -> str:
    """The sentence below the assignment of a value, in the module that assigns it; "" for none.

    Args:
        module: full name of a module that exports the value.
        name: name of the value.

    Example:
        >>> constant_text("nsjax.io", "PERIOD")[:7]
        'Seconds'
    """
    for home in _homes(reached(module).__name__, name):
        body = ast.parse(inspect.getsource(importlib.import_module(home))).body
        for line, after in itertools.pairwise(body):
            targets = getattr(line, "targets", None) or [getattr(line, "target", None)]
            if not any(isinstance(x, ast.Name) and x.id == name for x in targets):
                continue
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                return inspect.cleandoc(str(after.value.value))
    return ""


def _homes(module: str, name: str) -> list[str]:
    """The module, and the modules from which it imports the name."""
    found = [module]
    for line in ast.walk(ast.parse(inspect.getsource(importlib.import_module(module)))):
        if isinstance(line, ast.ImportFrom) and line.module and name in [x.name for x in line.names]:
            found += _homes(line.module, name) if line.module.startswith("nsjax") else []
    return found


@functools.cache
def public_of(wanted: str) -> Entry | None:
    """The entry for a name in a docstring, given with the defining module or without a module.

    A name without a module counts if only one object can have it: `force` may be any argument,
    `mixed_scheme` and `Scheme` may not.

    Args:
        wanted: the name in the docstring.

    Example:
        >>> public_of("nsjax.schemes.mixed.framework.mixed_scheme").path
        'nsjax.schemes.building.mixed_scheme'
        >>> public_of("force") is None
        True
    """
    alone = wanted.isidentifier() and (wanted[:1].isupper() or "_" in wanted)
    found = [e for e in entries() if _defined(e) == wanted or (alone and e.name == wanted)]
    return found[0] if len(found) == 1 else None


def _defined(entry: Entry) -> str:
    """Full name of an object in the module that defines it."""
    module = getattr(entry.thing, "__module__", "")
    return f"{module}.{getattr(entry.thing, '__qualname__', entry.name)}"
