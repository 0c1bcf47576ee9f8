"""Pages of the reference: every public name stands on one of them, under the shortest name of it."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from typing import Any


@dataclasses.dataclass(frozen=True)
class Page:
    """A page of the reference.

    Args:
        name: of its file.
        title: what it is about.
        contents: modules in order, each with the names taken from it; None: all of its public names.
    """

    name: str
    title: str
    contents: tuple[tuple[str, tuple[str, ...] | None], ...]


PAGES = (
    Page("problems", "Problems and systems", (
        ("nsjax", (
            "configure", "System", "Problem", "State", "Labels", "ContactLaw", "from_lagrangian",
            "Consistent", "consistent", "InputError", "__version__",
        )),
    )),
    Page("runs", "Runs", (
        ("nsjax", ("simulate", "Trajectory", "RunError", "Event", "Output", "Carry", "Criteria")),
        ("nsjax.core.quantities", ("RowQuantities",)),
        ("nsjax.status", None),
    )),
    Page("files", "Files, and runs that take long", (
        ("nsjax", ("save", "load", "run", "resume", "Stopped", "to_paraview")),
        ("nsjax.io", None),
    )),
    Page("mechanisms", "Mechanisms from parts", (
        ("nsjax.multibody", (
            "assemble", "body", "hinge", "pin", "slide", "ball", "universal", "cylindrical", "fixed",
            "distance", "revolute_spherical", "spring", "joint_spring", "actuator", "force", "torque",
            "beam", "circular", "rectangular", "section", "line_load", "read_urdf", "read_mjcf",
            "ModelFile", "LeftOutWarning", "Part",
        )),
    )),
    Page("contacts", "Contacts of mechanisms", (
        ("nsjax.multibody", (
            "contact", "contact_group", "point", "points", "corners", "sphere", "box", "capsule",
            "cylinder", "plane", "walls", "hole", "profile", "tube", "Shape", "spheres", "pairs_of",
        )),
    )),
    Page("models", "Ready-made models", (("nsjax.models", None),)),
    Page("schemes", "Schemes", (("nsjax.schemes", None),)),
    Page("own_schemes", "Schemes of your own", (
        ("nsjax", ("Scheme",)),
        ("nsjax.schemes.building", None),
    )),
    Page("gradients", "Gradients", (
        ("nsjax", ("check_gradient", "GradientCheck")),
        ("nsjax.notes", None),
    )),
    Page("sweeps", "Sweeps", (
        ("nsjax", ("sweep", "SweepResult", "sweep_time_step", "WorkPrecision", "sweep_lyapunov")),
        ("nsjax.sweep.reductions", None),
    )),
    Page("identification", "Identification", (
        ("nsjax", ("identify", "Recording", "Estimate")),
        ("nsjax.identify.transforms", None),
        ("nsjax.identify.losses", None),
    )),
    Page("pictures", "Figures and animations", (
        ("nsjax", ("animate",)),
        ("nsjax.plot", None),
        ("nsjax.shapes", None),
    )),
    Page("analysis", "Analysis", (("nsjax.analysis", None),)),
    Page("structures", "Large models: structures, meshes, cheap functions", (
        ("nsjax.linalg", (
            "Structure", "Dense", "BlockDiagonal", "BlockTridiagonal", "Interleaved", "Sparse", "Pattern",
            "Lattice", "Arrow", "ConjugateGradients",
        )),
        ("nsjax.fem", ("read_mesh", "SolidMesh")),
        ("nsjax.math", ("sin_cos",)),
    )),
)  # fmt: skip
"""In the order of the site."""


def module_names(module: str) -> list[str]:
    """Public names of a module: its ``__all__``, or what it defines without an underscore in front.

    Example:
        >>> from nsjax.documentation import module_names
        >>> module_names("nsjax.notes")
        ['describe']
    """
    found = importlib.import_module(module)
    listed = getattr(found, "__all__", None)
    if listed is not None:
        return [name for name in listed if not inspect.ismodule(getattr(found, name))]
    own = [k for k, x in vars(found).items() if getattr(x, "__module__", None) == module]
    return [name for name in own if not name.startswith("_")]


@dataclasses.dataclass(frozen=True)
class Entry:
    """A name on a page.

    Args:
        page, module, name: where it stands.
        thing: what it is.
        first: the entry of the same thing further up, or None: this one shows its docstring.
    """

    page: str
    module: str
    name: str
    thing: Any
    first: Entry | None = None

    @property
    def path(self) -> str:
        """How it is imported."""
        return f"{self.module}.{self.name}"


def entries() -> list[Entry]:
    """All names of all pages in their order; a thing that two modules export is shown at the first.

    Example:
        >>> from nsjax.documentation import entries
        >>> [(e.page, e.first.path) for e in entries() if e.path == "nsjax.plot.animate"]
        [('pictures', 'nsjax.animate')]
    """
    found: list[Entry] = []
    shown: dict[int, Entry] = {}
    for page in PAGES:
        for module, chosen in page.contents:
            for name in module_names(module) if chosen is None else chosen:
                thing = getattr(importlib.import_module(module), name)
                entry = Entry(page.name, module, name, thing, shown.get(id(thing)))
                # numbers and words that are equal may be one object: they are told apart by their names
                if callable(thing):
                    shown.setdefault(id(thing), entry)
                found.append(entry)
    return found
