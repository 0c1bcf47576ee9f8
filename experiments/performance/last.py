"""Last results of the benchmark: a file of them, and their comparison with new results."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import platform
import resource
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import nsjax

FILE = "last.json"


@dataclasses.dataclass(frozen=True)
class Machine:
    """Machine, load and releases of measured figures.

    Args:
        name: name of the machine's processor and system.
        cpus: number of its processors.
        load: one-minute load average at the start of the section.
        releases: of nsjax, JAX and jaxlib.
    """

    name: str
    cpus: int
    load: float
    releases: Mapping[str, str]

    def loaded(self) -> bool:
        """Whether more programs ran than there are processors: times are then invalid."""
        return self.load > self.cpus


def machine() -> Machine:
    """This machine with its present load."""
    named = {"nsjax": nsjax.__version__} | {x: metadata.version(x) for x in ("jax", "jaxlib")}
    cpus = os.cpu_count() or 1
    return Machine(f"{platform.machine()} {platform.system()}", cpus, os.getloadavg()[0], named)


def peak_mib() -> float:
    """Peak memory [MiB] of this process, or of a process that it started, so far."""
    most = max(resource.getrusage(x).ru_maxrss for x in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return most / (2**20 if sys.platform == "darwin" else 2**10)


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """Figures by name: ``found`` and fields of `Machine`; empty for a file that is missing or damaged."""
    try:
        kept: dict[str, dict[str, Any]] = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return kept


def write(folder: Path, figures: Mapping[str, float], on: Machine) -> None:
    """Replaces the measured figures; the others stay in the file with their machine."""
    new = {name: {"found": x, **dataclasses.asdict(on)} for name, x in figures.items() if math.isfinite(x)}
    text = json.dumps(read(folder) | new, indent=1, sort_keys=True)
    part = folder / f"{FILE}.part"
    part.write_text(text + "\n", encoding="utf-8")
    part.replace(folder / FILE)


def change(found: float, before: Mapping[str, Any] | None, on: Machine) -> str:
    """Change of a figure in per cent, with the changes of machine and releases.

    Example:
        >>> from experiments.performance.last import Machine, change
        >>> on = Machine("a", 2, 0.5, {"jax": "1"})
        >>> change(1.1, {"found": 1.0, "name": "a", "cpus": 2, "releases": {"jax": "0"}}, on)
        '+10.0 %, other jax'
    """
    if before is None or not math.isfinite(found) or not before["found"]:
        return ""
    said = [f"{100.0 * (found / before['found'] - 1.0):+.1f} %"]
    if (before["name"], before["cpus"]) != (on.name, on.cpus):
        said.append("other machine")
    said += [f"other {x}" for x, y in on.releases.items() if before["releases"].get(x) != y]
    return ", ".join(said)
