"""The slider-crank of Table 1 of [R&S]: a step over the numba loop, sizes of programs, compile time, and
the first step of a second process.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax

import nsjax
from nsjax import models, schemes

from ..common import Numbers
from . import child, program_size
from .side_by_side import Row, interleaved
from .steps import STEP, numba_loop, run_numba

OVER_NUMBA = {
    "moreau": 2.5, "half_explicit": 4.0, "generalized_alpha": 4.5, "moreau_theta": 5.0, "bathe": 7.0,
    "ggl_decoupled": 4.0, "ggl_unified": 9.0, "nsga_decoupled": 9.0, "ed_alpha": 12.0, "nsga_coupled": 40.0,
}  # fmt: skip
OPERATIONS = {
    "moreau": {"plain": 2_000, "forward": 7_000, "reverse": 9_000},
    "generalized_alpha": {"plain": 4_500, "forward": 13_000, "reverse": 16_000},
    "bathe": {"plain": 7_000, "forward": 18_000, "reverse": 20_000},
}
COMPILE_SECONDS = {"plain": 2.5, "forward": 10.0, "reverse": 15.0}
SECOND_PROCESS = 1.0


def steps(quick: bool) -> Iterator[Row]:
    """Microseconds of a step over that of the numba loop of Moreau's rule, all of them in turn."""
    nsjax.configure()
    try:
        numba_loop()
    except ImportError as missing:
        yield Row("us/step over the numba loop", note=f"skipped: {missing}")
        return
    count, rounds = (20_000, 3) if quick else (200_000, 7)
    calls: dict[str, tuple[Callable[[], Any], int]] = {
        "numba": (lambda: run_numba(count, count, True), count)
    }
    for name in list(OVER_NUMBA)[: 1 if quick else None]:
        scheme = schemes.REGISTRY[name].factory()
        calls[name] = (
            lambda scheme=scheme: nsjax.simulate(  # type: ignore[misc]
                models.slider_crank(), scheme, dt=STEP, steps=count, every=count
            ),
            count,
        )
    found = interleaved(calls, rounds)
    peer = found.pop("numba")
    for name, us in found.items():
        note = f"{us:.3f} over {peer:.3f} us"
        yield Row(f"{name}, us/step over the numba loop", us / peer, OVER_NUMBA[name], note=note)


def operations(quick: bool) -> Iterator[Row]:
    """Operations of lowered programs."""
    nsjax.configure()
    for scheme in list(OPERATIONS)[: 1 if quick else None]:
        for mode, asked in list(OPERATIONS[scheme].items())[: 1 if quick else None]:
            yield Row(f"{scheme}, {mode}, operations", float(program_size.count(scheme, mode)), asked)


def compile_of(scheme: str, mode: str) -> Numbers:
    """CPU seconds to trace, lower and compile a program."""
    nsjax.configure()
    problem = program_size.crank()
    before = time.process_time()
    jax.jit(program_size.program(problem, scheme, mode)).lower(problem.params).compile()
    return {"seconds": time.process_time() - before}


def compiling(quick: bool) -> Iterator[Row]:
    """Compile and trace of generalized-alpha, each program in a process of its own."""
    for mode, asked in list(COMPILE_SECONDS.items())[: 1 if quick else None]:
        found = child.ask("crank.compile_of", "generalized_alpha", mode)
        yield Row(f"generalized_alpha, {mode}, compile + trace [CPU s]", found["seconds"], asked)


def second_of(scheme: str) -> Numbers:
    """CPU seconds from import to the end of the first step, and how much of it JAX spent on what [s]."""
    spent = dict.fromkeys(("trace", "lower", "compile"), 0.0)
    names = {
        "/jax/core/compile/jaxpr_trace_duration": "trace",
        "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
        "/jax/core/compile/backend_compile_duration": "compile",
    }

    def listen(event: str, duration_secs: float, **_: Any) -> None:
        if event in names:
            spent[names[event]] += duration_secs

    jax.monitoring.register_event_duration_secs_listener(listen)
    nsjax.configure()
    system, params, state = models.slider_crank()
    before = time.process_time()
    nsjax.simulate(system, params, state, schemes.REGISTRY[scheme].factory(), dt=STEP, steps=1)
    return {"seconds": time.process_time() - before, **spent}


def second_process(quick: bool) -> Iterator[Row]:
    """First step after import where an earlier process has left its programs."""
    names = [name for name, entry in schemes.REGISTRY.items() if entry.friction]
    with tempfile.TemporaryDirectory() as folder:
        for name in names[: 1 if quick else None]:
            first = child.ask("crank.second_of", name, folder=Path(folder))
            found = child.ask("crank.second_of", name, folder=Path(folder))
            note = f"first process {first['seconds']:.1f}; wall s of " + ", ".join(
                f"{what} {found[what]:.2f}" for what in ("trace", "lower", "compile")
            )
            yield Row(f"{name}, second process [CPU s]", found["seconds"], SECOND_PROCESS, note=note)
