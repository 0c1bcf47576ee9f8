"""Cost of derivatives of a run of the frictional slider-crank beside the run itself.

Table 1 of [R&S], dt = 1e-5 s, 1e4 steps: flight, some twenty impacts, closed phases, slip reversals. The
derivative is that of the sum of both angles at the end with respect to `PARAMETERS`, through impacts
(``gradient="saltation"``), in forward mode for one and four directions and in reverse mode; beside it
the same run without derivative. Times are CPU time, interleaved A-B-A-B, medians of the ratios of each
round; compile times are CPU seconds of tracing, lowering and compiling, without a cache. A loaded
machine makes CPU seconds longer, by a factor of up to two where two threads share a core; ratios suffer
less.

    python -m experiments.performance.gradients [--quick]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import nsjax
from nsjax import models, schemes

from ..common import Numbers

STEP = 1e-5
STEPS = 10_000
PARAMETERS = {
    "friction": 0.01,
    "restitution": 0.4,
    "rod_length": 0.306,
    "slider_mass": 0.076,
    "clearance": 0.001,
    "crank_speed": 150.0,
}
AT = np.array(list(PARAMETERS.values()))
ASKED = {"forward1": 2.5, "forward4": 4.5, "reverse": 5.0, "other": 7.0, "moreau_s": 20.0, "other_s": 60.0}
"""Ratios to the run without derivative, for Moreau and in reverse mode for the others; compile times."""
OTHER_MODES = ("forward1", "forward6", "reverse")


def schemes_with_friction() -> list[str]:
    """Registered schemes that take the model."""
    return [name for name, entry in schemes.REGISTRY.items() if entry.friction]


def run(name: str, gradient: str, steps: int) -> Callable[[Any], Any]:
    """``values -> theta1 + theta2`` after so many steps; ``values`` in the order of `PARAMETERS`."""
    scheme = schemes.REGISTRY[name].factory()

    def end(values: Any) -> Any:
        *numbers, speed = values
        system, params, state = models.slider_crank(
            **dict(zip(PARAMETERS, numbers, strict=False)), initial_v=[speed, -75.0, 0.0]
        )
        traj = nsjax.simulate(
            system, params, state, scheme, dt=STEP, steps=steps, every=steps, save=[], gradient=gradient
        )
        return traj.q[-1, 0] + traj.q[-1, 1]

    return end


def program(name: str, mode: str, steps: int) -> Callable[[Any], Any]:
    """The run (``"plain"``), its derivative in ``k`` directions (``"forward<k>"``), its gradient."""
    if mode == "plain":
        return run(name, "discrete", steps)
    live = run(name, "saltation", steps)
    if mode == "reverse":
        return jax.grad(live)
    directions = np.eye(len(AT))[: int(mode.removeprefix("forward"))]
    return lambda x: jax.vmap(lambda d: jax.jvp(live, (x,), (d,))[1])(directions)


def compiled(name: str, mode: str, steps: int) -> tuple[Any, float]:
    """A program ready to be called, and the CPU seconds this took."""
    before = time.process_time()
    ready = jax.jit(program(name, mode, steps)).lower(AT).compile()
    return ready, time.process_time() - before


def is_one_kernel(ready: Any) -> bool:
    """Whether XLA has made the whole time loop one function; see `nsjax.configure`."""
    text = ready.as_text()
    return 'xla_cpu_small_call="true"' in text and " while(" not in text[text.index("ENTRY") :]


def ratios(programs: dict[str, Any], rounds: int) -> tuple[float, Numbers]:
    """Median CPU time of the first program [s], median ratios of the others to it in the same round."""
    for call in programs.values():
        jax.block_until_ready(call(AT))
    seconds: dict[str, list[float]] = {mode: [] for mode in programs}
    for _ in range(rounds):
        for mode, call in programs.items():
            before = time.process_time()
            jax.block_until_ready(call(AT))
            seconds[mode].append(time.process_time() - before)
    first, *others = seconds
    base = np.array(seconds[first])
    return float(np.median(base)), {m: float(np.median(np.array(seconds[m]) / base)) for m in others}


def measure(name: str, modes: tuple[str, ...], steps: int, rounds: int) -> Numbers:
    """Everything about one scheme, printed as it comes."""
    found: Numbers = {}
    ready = {}
    for mode in ("plain", *modes):
        ready[mode], found[f"{name}_{mode}_compile_s"] = compiled(name, mode, steps)
        found[f"{name}_{mode}_one_kernel"] = float(is_one_kernel(ready[mode]))
    if "reverse" in ready:
        found[f"{name}_reverse_bytes"] = ready["reverse"].memory_analysis().temp_size_in_bytes
    if {"forward6", "reverse"} <= set(ready):
        forward, reverse = (np.asarray(ready[mode](AT)) for mode in ("forward6", "reverse"))
        found[f"{name}_difference"] = float(np.max(np.abs(forward - reverse)) / np.max(np.abs(reverse)))
    timed = {mode: call for mode, call in ready.items() if mode != "forward6"}
    base, times = ratios(timed, rounds)
    found[f"{name}_plain_us"] = 1e6 * base / steps
    found |= {f"{name}_{mode}_ratio": x for mode, x in times.items()}
    _report(name, modes, found)
    return found


def _report(name: str, modes: tuple[str, ...], n: Numbers) -> None:
    print(f"{name}: {n[f'{name}_plain_us']:.3f} us/step, load {os.getloadavg()[0]:.1f}")
    limit = ASKED["moreau_s" if name == "moreau" else "other_s"]
    for mode in modes:
        ratio = n.get(f"{name}_{mode}_ratio")
        asked = ASKED.get(mode) if name == "moreau" else ASKED["other"] if mode == "reverse" else None
        cost = "" if ratio is None else f"{ratio:5.2f} times the run" + (f" (<= {asked})" if asked else "")
        seconds = f"{n[f'{name}_{mode}_compile_s']:.1f} CPU s to compile (<= {limit:.0f})"
        form = "one kernel" if n[f"{name}_{mode}_one_kernel"] else "many kernels"
        print(f"  {mode:9} {cost:32} {seconds}, {form}", flush=True)
    if f"{name}_reverse_bytes" in n:
        bound = " (< 1)" if name == "moreau" else ""
        print(f"  reverse memory {n[f'{name}_reverse_bytes'] / 1e6:.2f} MB{bound}")
    if f"{name}_difference" in n:
        print(f"  forward and reverse differ by {n[f'{name}_difference']:.1e} (<= 1e-9)", flush=True)


def main(quick: bool = False, only: str | None = None) -> Numbers:
    """Measures all schemes or one, prints asked and found, and returns the numbers; ``quick``: less work.

    Switches JAX's persistent cache off for the rest of the process: compilations are to be real ones.
    """
    nsjax.configure()
    jax.config.update("jax_enable_compilation_cache", False)
    steps, rounds = (1000, 3) if quick else (STEPS, 9)
    print(f"load average before: {os.getloadavg()}, {os.cpu_count()} CPUs; {steps} steps")
    found: Numbers = {"load_before": os.getloadavg()[0]}
    others = [name for name in schemes_with_friction() if name != "moreau"]
    for name in [only] if only else ["moreau", *(others[:1] if quick else others)]:
        modes = ("forward1", "forward4", "forward6", "reverse") if name == "moreau" else OTHER_MODES
        found |= measure(name, modes, steps, rounds)
    found["load_after"] = os.getloadavg()[0]
    print(f"load average after: {os.getloadavg()}")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="cost of derivatives through impacts")
    parser.add_argument("--quick", action="store_true", help="less work, rougher numbers")
    parser.add_argument("--scheme", help="only this one")
    given = parser.parse_args()
    main(quick=given.quick, only=given.scheme)
