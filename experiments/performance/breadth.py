"""A step of every scheme on every model: its time, the first call, and which pairs do not fit; sizes of
programs of runs over schemes and structures.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import nsjax
from nsjax import models, schemes

from . import program_size
from .side_by_side import Row, per_step, plain_run

STEPS = 2_000
STIFF = 2e-5
"""Step [s] of mechanisms with stiff parts or fast motion; other models take that of their registry."""

SIZED = (
    ("moreau", "belt"), ("moreau", "four bar"), ("moreau", "absolute pole"), ("moreau", "wheel"),
    ("ggl_decoupled", "heap"), ("generalized_alpha", "arm"), ("ggl_unified", "rod"),
    ("half_explicit", "absolute bob"), ("nsga_decoupled", "roll"), ("bathe", "swing"),
)  # fmt: skip
"""Schemes and structures, of `tests.goldens.structures`, whose programs are counted."""


def setting(model: str) -> tuple[nsjax.Problem, float]:
    """A model in the size of the common tests, and a step at which its explicit schemes are stable."""
    entry = models.REGISTRY[model]
    dt = min(entry.dt, STIFF) if model.startswith("slider_crank") else entry.dt
    return entry.factory(**dict(entry.small)), dt


def pairs(quick: bool) -> Iterator[Row]:
    """One row per pair of scheme and model."""
    nsjax.configure()
    for model in list(models.REGISTRY)[: 1 if quick else None]:
        problem, dt = setting(model)
        for name in list(schemes.REGISTRY)[: 1 if quick else None]:
            yield _pair(model, name, problem, dt, 200 if quick else STEPS)


def _pair(model: str, name: str, problem: nsjax.Problem, dt: float, count: int) -> Row:
    what, scheme = f"{model}, {name} [us/step]", schemes.REGISTRY[name].factory()
    last: list[Any] = []

    def run(steps: int) -> None:
        last[:] = [plain_run(problem, scheme, dt, steps)]

    before = time.process_time()
    try:
        run(10)
    except nsjax.InputError as refused:
        return Row(what, note=f"does not fit: {str(refused).partition(';')[0]}")
    first = time.process_time() - before
    found = per_step({"run": run}, count, 3)["run"]
    status = int(last[0].status)
    return Row(what, found, note=f"first call {first:.1f} CPU s" + (f", status {status}" if status else ""))


def counted(quick: bool) -> Iterator[Row]:
    """Operations of the programs of runs whose numbers tests keep; from a checkout alone."""
    nsjax.configure()
    try:
        from tests.goldens.structures import STRUCTURES
    except ImportError:
        yield Row("operations", note="skipped: the tests are not installed")
        return
    for scheme, name in SIZED[: 1 if quick else None]:
        made = STRUCTURES[name]
        found = program_size.count(scheme, "plain", made.make(), made.dt)
        yield Row(f"{scheme}, {name}, operations", float(found))
