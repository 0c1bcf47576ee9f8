"""Packages whose public names are imported when somebody first asks for them."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

HOMES = "_homes"
"""Attribute of a lazy package: module of every public name; None for names that are modules themselves."""


class LazyPackage(ModuleType):
    """A package that imports a public name at the first access; `lazily` makes it."""

    def __getattr__(self, name: str) -> Any:
        home = vars(self)[HOMES].get(name)
        if home is None:
            from nsjax.renamed import new_name  # an import of the package loads names alone

            new = new_name(self.__name__, name)
            return self._module(name) if new is None else getattr(self, new)
        found = getattr(importlib.import_module(home), name)
        super().__setattr__(name, found)
        return found

    def _module(self, name: str) -> ModuleType:
        """A module of the package, as ``nsjax.fem``, which is imported when it is named."""
        whole = f"{self.__name__}.{name}"
        try:
            if not name.startswith("_"):
                return importlib.import_module(whole)
        except ModuleNotFoundError as error:
            if error.name != whole:
                raise
        from nsjax.renamed import OTHER_WORDS

        here = OTHER_WORDS.get(self.__name__, {}).get(name)
        hint = "" if here is None else f"; did you mean {here!r}?"
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}{hint}")

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets an attribute, but for modules of the package under the name of a function or class: Python
        would put the module `nsjax.simulate` in place of the function as soon as it is imported.
        """
        shadows = isinstance(value, ModuleType) and vars(self)[HOMES].get(name) is not None
        if not shadows:
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self)[HOMES], *(name for name in vars(self) if name.startswith("__"))})


def lazily(package: str) -> None:
    """Makes a package import its public names when they are asked for: those that its file imports under
    ``if TYPE_CHECKING:``, which type checkers see as imported. ``package``: its full name.

    Example:
        >>> import nsjax
        >>> "moreau" in dir(nsjax.schemes), nsjax.schemes.moreau().name
        (True, 'moreau')
    """
    module = sys.modules[package]
    source = module.__spec__.loader.get_source(package)  # type: ignore[union-attr]
    vars(module)[HOMES] = dict(_imported(package, ast.parse(source)))
    module.__class__ = LazyPackage


def _imported(package: str, file: ast.Module) -> Iterator[tuple[str, str | None]]:
    """Names that a package imports for type checkers, and the module of each."""
    for block in file.body:
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING":
            for line in block.body:
                if isinstance(line, ast.ImportFrom):
                    yield from (
                        (x.name, None if line.module == package else line.module) for x in line.names
                    )
