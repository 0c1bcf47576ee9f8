"""Imports point down only, and packages on one floor do not see each other."""

from __future__ import annotations

import ast
import pathlib
import re

import nsjax

FLOORS = [
    {"short"},
    {"types", "status", "notes", "startup", "version"},
    {"configure"},
    {"math"},
    {"linalg"},
    {"nonlinear"},
    {"core"},
    {"report", "shapes"},
    {"contact", "fem", "figures", "tidy", "views", "by_name"},
    {"sensors"},
    {"schemes", "multibody", "trajectory", "consistent"},
    {"impacts"},
    {"loop"},
    {"stability"},
    {"simulate", "stepper"},
    {"models", "analysis", "motion"},
    {"sweep", "check_gradient", "io"},
    {"identify"},
    {"plot"},
    {"documentation"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(FLOORS) for name in names}
ROOT = pathlib.Path(nsjax.__file__).parent


def imported_parts(file: pathlib.Path) -> set[str]:
    """Second components of all `nsjax.x` imports of a file, wherever they stand."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            raise AssertionError(f"{file}: relative import; write absolute ones")
        found |= {name.split(".")[1] for name in names if name.startswith("nsjax.")}
    return found


def test_every_part_has_a_floor() -> None:
    parts = {p.stem for p in ROOT.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert parts - {"__init__", "__main__"} <= set(LEVEL)


def test_imports_point_down() -> None:
    faults = []
    for file in sorted(ROOT.rglob("*.py")):
        part = file.relative_to(ROOT).parts[0].removesuffix(".py")
        if part in ("__init__", "__main__", "experiments"):
            continue
        for other in imported_parts(file) & set(LEVEL):
            if other != part and LEVEL[other] >= LEVEL[part]:
                faults.append(f"{file.relative_to(ROOT)} (floor {LEVEL[part]}) imports {other}")
    assert not faults, faults


def test_families_of_schemes_do_not_see_each_other() -> None:
    """What two families share stands beside their folders. `locating` works around any scheme."""
    families = {"mixed", "impulses", "nsga", "locating"}
    schemes = ROOT / "schemes"
    assert {p.name for p in schemes.iterdir() if p.is_dir() and p.name != "__pycache__"} == families
    faults = []
    for family in families:
        for file in sorted((schemes / family).glob("*.py")):
            seen = set(re.findall(r"^from nsjax\.schemes\.(\w+)", file.read_text(), re.M))
            faults += [f"{family}/{file.name} imports {other}" for other in seen & families - {family}]
    assert not faults, faults
