"""Every package that nsjax imports stands in pyproject.toml."""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
OWN = ("nsjax", "experiments", "tests")  # goldens, whose sizes experiments measure, are tests


def declared() -> tuple[set[str], set[str]]:
    """Names of the packages that are always installed, and of those of extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [x for some in project["optional-dependencies"].values() for x in some]

    def names(lines: list[str]) -> set[str]:
        return {re.split(r"[^\w.-]", x)[0].lower().replace("_", "-") for x in lines} - {"nsjax"}

    return names(project["dependencies"]), names(extras)


def imports(file: pathlib.Path) -> dict[str, bool]:
    """Packages that a file imports, and whether it does so as soon as it is loaded."""
    found: dict[str, bool] = {}
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        given = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            given = [node.module]
        for name in {x.split(".")[0] for x in given} - {*sys.stdlib_module_names, *OWN}:
            found[name] = found.get(name, False) or node in tree.body
    return found


@functools.cache
def homes() -> dict[str, list[str]]:
    """Distributions by the names of what they install; reading them takes seconds."""
    return dict(importlib.metadata.packages_distributions())


def undeclared(files: list[pathlib.Path], extras_at_once: bool = False) -> list[str]:
    """Imports of packages that are not declared; at the top of a file also of those of extras, unless
    ``extras_at_once``.
    """
    home, (always, extra) = homes(), declared()
    faults = []
    for file in files:
        for name, at_once in imports(file).items():
            known = {x.lower().replace("_", "-") for x in home.get(name, [name])}
            if not known & (always | extra if extras_at_once or not at_once else always):
                faults.append(f"{file.name}: {name}")
    return faults


def test_every_import_is_declared() -> None:
    package = sorted((ROOT / "nsjax").rglob("*.py"))
    assert len(package) > 150
    assert undeclared(package) == []
    assert undeclared(sorted((ROOT / "experiments").rglob("*.py")), extras_at_once=True) == []


def test_an_import_that_is_not_declared_is_found(tmp_path: pathlib.Path) -> None:
    text = "import numpy\nimport pandas\n\n\ndef f():\n    import pandas, nowhere\n"
    (tmp_path / "a.py").write_text(text)
    assert sorted(undeclared([tmp_path / "a.py"])) == ["a.py: nowhere", "a.py: pandas"]
