"""Imports point down only, and packages on one floor do not see each other."""

from __future__ import annotations

import ast
import functools
import pathlib
import re

import nsjax

FLOORS = [
    {"forms", "renamed"}, {"lazy"}, {"gradient_notes", "status", "types", "version"}, {"jaxtools"},
    {"configure"}, {"math"}, {"linalg"}, {"core"}, {"shapes"}, {"report"},
    {"contact", "fem", "figures", "part_rows", "statics"}, {"sensors"}, {"views"},
    {"consistent", "multibody", "schemes", "trajectory"}, {"recording"}, {"loop"}, {"stability"},
    {"simulate", "stepper"}, {"analysis", "environment", "models", "motion"}, {"io"},
    {"check_gradient", "sweep"}, {"identify"}, {"plot"}, {"cli"},
]  # fmt: skip
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


STORAGE = {"wt", "joints", "closures", "single"}
"""Fields of `nsjax.core.operators.Rows`: how rows of contacts and constraints are stored."""

OWNERS = {"core", "contact"}
"""Packages that know it; others ask rows (`rate`, `force`, `response`, `delassus`, ...)."""

ROWS = {"Rows", "Joints", "is_local"}
"""Names by which rows are made, or their storage is told."""

MECHANISM = {"joints", "closures"}
"""Those that are parts of a mechanism in `nsjax.multibody`."""


def test_only_their_owners_know_how_rows_are_stored() -> None:
    faults = []
    for file in sorted(ROOT.rglob("*.py")):
        name = file.relative_to(ROOT)
        if name.parts[0] in OWNERS:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            read = node.attr if isinstance(node, ast.Attribute) else ""
            if read in STORAGE - (MECHANISM if name.parts[0] == "multibody" else set()):
                faults.append(f"{name}:{node.lineno} reads .{read}")
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ROWS:
                faults.append(f"{name}:{node.lineno} calls {node.func.id}")
    assert not faults, faults


MANY = 7
"""A function with so many parameters is handed the parts of something that has no name."""

MOST = {
    "": 5, "analysis": 2, "fem": 2, "identify": 1, "io": 1, "multibody": 3, "multibody/contacts": 1,
    "multibody/files": 1, "schemes/mixed": 1, "sweep": 5,
}  # fmt: skip
"""Functions with so many parameters, by folder; none in those that are not named (`core`, `contact`, the
families of schemes). `schemes/mixed` has `single`, which users call."""


def parameters(node: ast.FunctionDef) -> list[str]:
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [x.arg for x in given if x.arg not in ("self", "cls")]


def is_constructor(node: ast.FunctionDef) -> bool:
    """Public functions with options by keyword: of parts, models, schemes, and of a run."""
    return bool(node.args.kwonlyargs) and not node.name.startswith("_")


def test_functions_are_handed_things_not_their_parts() -> None:
    found: dict[str, list[str]] = {}
    for file in sorted(ROOT.rglob("*.py")):
        folder = file.relative_to(ROOT).parent.as_posix().removeprefix(".")
        for node in ast.walk(ast.parse(file.read_text())):
            many = isinstance(node, ast.FunctionDef) and len(parameters(node)) >= MANY
            if many and (folder in ("core", "contact") or not is_constructor(node)):
                found.setdefault(folder, []).append(f"{file.name}: {node.name}")
    more = {folder: names for folder, names in found.items() if len(names) > MOST.get(folder, 0)}
    assert not more, more


NUMBERS = 126
"""Numbers with names. One that is used once stands where it is used, one of several places has a name;
four of these had lost theirs when the bound was 123."""


def test_numbers_of_modules_are_few_and_have_names_of_their_own() -> None:
    number = r"^(_?[A-Z][A-Z0-9_]*) = (?=.*\d)[-\d(][-+*/<\d._e() ]*(?:  #.*)?$"
    names = [x for file in ROOT.rglob("*.py") for x in re.findall(number, file.read_text(), re.M)]
    assert len(names) <= NUMBERS
    assert len(set(names)) == len(names)


LONGEST_FILE = 520
"""Lines of a file, which holds what belongs together."""

LONGEST_CHAIN = 20
"""Files on the longest way from an import to the next one."""


def at_once() -> dict[str, set[str]]:
    """Modules that each module of the package imports as soon as it is loaded."""
    files = {".".join(("nsjax", *f.relative_to(ROOT).with_suffix("").parts)): f for f in ROOT.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): f for name, f in files.items()}
    found: dict[str, set[str]] = {}
    for name, file in modules.items():
        named = set()
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                whole = {x.name: f"{node.module}.{x.name}" for x in node.names}
                named |= {x if x in modules else node.module for x in whole.values()}
            elif isinstance(node, ast.Import):
                named |= {x.name for x in node.names}
        found[name] = named & set(modules) - {name}
    return found


def test_files_hold_what_belongs_together() -> None:
    lengths = {f.relative_to(ROOT).as_posix(): len(f.read_text().splitlines()) for f in ROOT.rglob("*.py")}
    assert not {name: length for name, length in lengths.items() if length > LONGEST_FILE}


def test_chains_of_imports_are_short() -> None:
    imports = at_once()

    @functools.cache
    def longest(name: str) -> tuple[str, ...]:
        return (name, *max(map(longest, imports[name]), key=len, default=()))

    chain = max(map(longest, imports), key=len)
    assert len(chain) <= LONGEST_CHAIN, chain
