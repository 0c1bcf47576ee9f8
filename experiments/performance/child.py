"""Measurements that need a process of their own: the first compilation, and two host devices."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import State, models, schemes

STEP = 1e-5


def compile_seconds() -> dict[str, float]:
    """CPU seconds of the first `nsjax.simulate` of a process: trace, lower, compile, and 100 steps."""
    nsjax.configure()
    system, params, state = models.slider_crank()
    before = time.process_time()
    nsjax.simulate(system, params, state, schemes.moreau(), dt=STEP, steps=100, every=100)
    return {"first_call": time.process_time() - before, "process": time.process_time()}


def lane_states(lanes: int, run: Any) -> tuple[np.ndarray, np.ndarray]:
    """``q, v`` of so many lanes, evenly from the saved states of a run: the same share of contact."""
    rows = np.linspace(0, np.shape(run.q)[0] - 1, lanes).astype(int)
    return np.asarray(run.q)[rows], np.asarray(run.v)[rows]


def lane_program(steps: int, every: int) -> Callable[[Any, Any, Any], Any]:
    """``(params, q, v) -> Trajectory`` of all lanes one after the other, one `simulate` per lane."""
    import jax
    import jax.numpy as jnp

    system, scheme = models.slider_crank().system, schemes.moreau()

    def program(params: Any, q: Any, v: Any) -> Any:
        def lane(start: Any) -> Any:
            state = State(t=jnp.zeros(()), q=start[0], v=start[1])
            return nsjax.simulate(system, params, state, scheme, dt=STEP, steps=steps, every=every)

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


def device_seconds(lanes: int, steps: int, rounds: int) -> dict[str, float]:
    """Time of the same lanes on one and on two host devices, interleaved.

    Wall time is what a user sees, but means something on idle cores only. The CPU time of the
    busiest thread tells how evenly the work is spread whatever else the machine does.
    """
    import jax

    nsjax.configure(host_devices=2)
    system, params, state = models.slider_crank()
    run = nsjax.simulate(system, params, state, schemes.moreau(), dt=STEP, steps=100_000, every=20)
    q, v = lane_states(lanes, run)
    # Neighbours in time go to different devices, so that both get the same share of contact.
    order = np.concatenate([np.arange(0, lanes, 2), np.arange(1, lanes, 2)])
    q, v = q[order], v[order]
    program = lane_program(steps, min(steps, 100))
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


def ask(*arguments: str) -> dict[str, float]:
    """Runs this module in a fresh process without a compilation cache and returns its numbers."""
    environment = {k: x for k, x in os.environ.items() if not k.startswith(("JAX_COMPILATION", "XLA_"))}
    command = [sys.executable, "-m", __spec__.name, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)} failed: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    name, *given = sys.argv[1:]
    answer = compile_seconds() if name == "compile" else device_seconds(*map(int, given))
    print(json.dumps(answer))
