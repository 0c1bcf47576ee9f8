"""Measurements that need a separate process: the first compilation, and two host devices."""

from __future__ import annotations

import functools
import importlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import State, models, schemes

from ..common import Numbers

STEP = 1e-5


def compile_seconds() -> Numbers:
    """CPU seconds of the first `nsjax.simulate` of a process: trace, lower, compile, and 100 steps."""
    nsjax.configure()
    system, params, state = models.slider_crank()
    before = time.process_time()
    nsjax.simulate(system, params, state, schemes.moreau(), dt=STEP, steps=100, every=100)
    return {"first_call": time.process_time() - before, "process": time.process_time()}


def lane_states(lanes: int, run: Any) -> tuple[np.ndarray, np.ndarray]:
    """``q, v`` of ``lanes`` lanes, evenly from the saved states of a run: the same share of contact."""
    rows = np.linspace(0, np.shape(run.q)[0] - 1, lanes).astype(int)
    return np.asarray(run.q)[rows], np.asarray(run.v)[rows]


def lane_program(
    problem: nsjax.Problem, dt: float, steps: int, every: int, scheme: Any = None, **options: Any
) -> Callable[[Any, Any, Any], Any]:
    """``(params, q, v) -> Trajectory`` of all lanes one after the other, one `simulate` per lane.

    Args:
        problem: problem with the system and parameters of all lanes.
        dt: step size [s].
        steps: number of steps of each lane.
        every: steps between saved rows.
        scheme: None: `moreau`.
        options: of `nsjax.simulate`.
    """
    import jax
    import jax.numpy as jnp

    system, scheme = problem.system, schemes.moreau() if scheme is None else scheme

    def program(params: Any, q: Any, v: Any) -> Any:
        def lane(start: Any) -> Any:
            state = State(t=jnp.zeros(()), q=start[0], v=start[1])
            return nsjax.simulate(system, params, state, scheme, dt=dt, steps=steps, every=every, **options)

        return jax.lax.map(lane, (q, v))

    return program


def thread_seconds() -> dict[str, float]:
    """CPU seconds of every thread of this process so far; empty where Linux's /proc is missing."""
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():
        return {}
    return {task.name: 1e-9 * int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()}


def busiest(call: Callable[[], Any]) -> float:
    """CPU seconds of the busiest thread during a call: its duration on idle cores."""
    before = thread_seconds()
    call()
    return max((x - before.get(name, 0.0) for name, x in thread_seconds().items()), default=np.nan)


def device_seconds(lanes: int, steps: int, rounds: int) -> Numbers:
    """Time of the same lanes on one and on two host devices, interleaved.

    Wall time is what a user sees, but is valid on idle cores only. The CPU time of the busiest thread
    shows how evenly the work is spread, independently of other work on the machine.
    """
    import jax

    nsjax.configure(host_devices=2)
    system, params, state = models.slider_crank()
    run = nsjax.simulate(system, params, state, schemes.moreau(), dt=STEP, steps=100_000, every=20)
    q, v = lane_states(lanes, run)
    # Neighbours in time go to different devices, so that both get the same share of contact.
    order = np.concatenate([np.arange(0, lanes, 2), np.arange(1, lanes, 2)])
    q, v = q[order], v[order]
    program = lane_program(models.slider_crank(), STEP, steps, min(steps, 100))
    mesh = jax.make_mesh((2,), ("lanes",), axis_types=(jax.sharding.AxisType.Auto,))
    spread = jax.shard_map(
        program, mesh=mesh, in_specs=(jax.P(), jax.P("lanes"), jax.P("lanes")),
        out_specs=jax.P("lanes"), check_vma=False,
    )  # fmt: skip
    programs = {"one": jax.jit(program), "two": jax.jit(spread)}
    calls = {name: functools.partial(call, params, q, v) for name, call in programs.items()}
    answers = {name: jax.block_until_ready(call()) for name, call in calls.items()}
    wall: dict[str, list[float]] = {name: [] for name in calls}
    thread: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            before = time.perf_counter()
            thread[name].append(busiest(functools.partial(_finish, call)))
            wall[name].append(time.perf_counter() - before)
    same = np.array_equal(np.asarray(answers["one"].q), np.asarray(answers["two"].q))
    return {
        "wall_one": float(np.median(wall["one"])),
        "wall_two": float(np.median(wall["two"])),
        "speedup": float(np.median(np.array(wall["one"]) / np.array(wall["two"]))),
        "speedup_best": min(wall["one"]) / min(wall["two"]),
        "speedup_thread": float(np.median(thread["one"]) / np.median(thread["two"])),
        "identical": float(same),
        "load": os.getloadavg()[0],
    }


def _finish(call: Callable[[], Any]) -> None:
    import jax

    jax.block_until_ready(call())


def ask(
    function: str, *arguments: Any, folder: Path | None = None, limit: float | None = None,
    extra: Mapping[str, str] | None = None,
) -> Numbers:  # fmt: skip
    """Runs a function of this folder in a fresh process and returns its numbers.

    Args:
        function: ``"module.name"``.
        arguments: numbers, strings, lists of them.
        folder: cache folder of programs; None: every program is compiled.
        limit: wall time [s] after which the process is ended.
        extra: further variables of its environment.

    Raises:
        RuntimeError: if the process fails, with its last output.
        subprocess.TimeoutExpired: if it takes longer than ``limit``.
    """
    environment = {k: x for k, x in os.environ.items() if not k.startswith(("JAX_COMPILATION", "XLA_"))}
    environment["JAX_ENABLE_COMPILATION_CACHE"] = str(folder is not None).lower()
    if folder is not None:
        environment |= {
            "JAX_COMPILATION_CACHE_DIR": str(folder), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }  # fmt: skip
    environment |= extra or {}
    command = [sys.executable, "-m", __spec__.name, function, json.dumps(arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
    if done.returncode != 0:
        raise RuntimeError(f"{function}{arguments} failed: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def last_words(error: Exception) -> str:
    """The line with the reason of a failed `ask`."""
    lines = [x.strip() for x in str(error).splitlines() if x.strip()]
    named = [x for x in lines if re.match(r"[\w.]*(Error|Exception|Refused)\b.*:", x)]
    return (named or lines or [type(error).__name__])[-1]


if __name__ == "__main__":
    module, name = sys.argv[1].split(".")
    measure = getattr(importlib.import_module(f"{__spec__.name.rpartition('.')[0]}.{module}"), name)
    print(json.dumps(measure(*json.loads(sys.argv[2]))))
