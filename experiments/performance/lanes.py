"""Many robots at once on one core: `nsjax` lane after lane (`jax.lax.map`), MJX by `jax.vmap`.

Both start from the same states, evenly from a run from the start of the file to the ground, with the same
step. MJX keeps the solver settings of the file and its own flags of XLA; `nsjax` solves every contact
problem to its tolerance, in float64. Each turn is a process of its own on one core.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..common import Numbers
from . import child
from .side_by_side import Row

LANES, STEPS, ROUNDS = 1024, 50, 2
TIMES = 3.0
"""Required ratio of steps per second to those of MJX."""


def one_core() -> None:
    """Binds this process to the first of its cores, where the system supports it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def states_of(name: str, lanes: int, file: str) -> Numbers:
    """Saves ``q, v`` of all lanes to a file; returns the mean number of closed contacts per lane."""
    import nsjax
    from nsjax import schemes

    from . import robots

    nsjax.configure()
    system, params, state = robots.robot(name)
    run = nsjax.simulate(system, params, state, schemes.moreau(), dt=robots.STEP, steps=robots.LANDING)
    q, v = child.lane_states(lanes, run)
    np.savez(file, q=q, v=v)
    return {"closed": float(np.mean(np.sum(np.asarray(run.gap_min) <= 0.0, axis=1)))}


def _timed(call: Callable[[], Any], units: int) -> float:
    """Units per second of CPU time, median of three calls."""
    import jax

    jax.block_until_ready(call())
    seconds = []
    for _ in range(3):
        before = time.process_time()
        jax.block_until_ready(call())
        seconds.append(time.process_time() - before)
    return units / float(np.median(seconds))


def ours_of(name: str, file: str, steps: int) -> Numbers:
    """Steps per second of all lanes."""
    one_core()
    import jax

    import nsjax

    from . import robots

    nsjax.configure()
    problem, data = robots.robot(name), np.load(file)
    q, v = data["q"], data["v"]
    program = jax.jit(child.lane_program(problem, robots.STEP, steps, steps, save=[], gradient="discrete"))
    traj = program(problem.params, q, v)
    failed = int(np.sum(np.asarray(traj.status) != 0))
    rate = _timed(lambda: program(problem.params, q, v).q, len(q) * steps)
    return {"rate": rate, "failed": float(failed)}


def mjx_of(name: str, file: str, steps: int, folder: str, double: bool) -> Numbers:
    """Steps per second of all lanes with MJX."""
    one_core()
    sys.path.append(folder)
    import jax

    jax.config.update("jax_enable_x64", double)
    import mujoco
    from mujoco import mjx

    from . import robots

    model = mujoco.MjModel.from_xml_path(str(robots.file_of(name)))
    model.opt.timestep = robots.STEP
    there, start, data = mjx.put_model(model), mjx.put_data(model, mujoco.MjData(model)), np.load(file)

    def lane(q: Any, v: Any) -> Any:
        def step(state: Any, _: None) -> tuple[Any, None]:
            # MJX forms integers of another size in 64 bits
            return jax.tree.map(lambda x, y: y.astype(x.dtype), state, mjx.step(there, state)), None

        return jax.lax.scan(step, start.replace(qpos=q, qvel=v), None, length=steps)[0].qpos

    program, q, v = jax.jit(jax.vmap(lane)), jax.numpy.asarray(data["q"]), jax.numpy.asarray(data["v"])
    return {
        "rate": _timed(lambda: program(q, v), len(q) * steps),
        "iterations": float(model.opt.iterations),
        "tolerance": float(model.opt.tolerance),
    }


def lanes(mjx: str | None, quick: bool, name: str = "ant") -> Iterator[Row]:
    """Steps of a second; ``mjx``: a folder in which mujoco-mjx and what it needs are installed."""
    from . import robots

    lane_count, steps = (16, 5) if quick else (LANES, STEPS)
    what = f"{name}, {lane_count:,} lanes on one core, steps/s"
    if reason := robots.why_not(name):
        yield Row(what, note=reason)
        return
    found: dict[str, list[Numbers]] = {"nsjax": [], "float32": [], "float64": []}
    with tempfile.TemporaryDirectory() as made:
        kept, file = Path(made) / "programs", str(Path(made) / "states.npz")
        closed = child.ask("lanes.states_of", name, lane_count, file, folder=kept)["closed"]
        reason = "" if mjx else "skipped: name a folder with mujoco-mjx, --mjx FOLDER"
        for _ in range(ROUNDS):
            found["nsjax"].append(child.ask("lanes.ours_of", name, file, steps, folder=kept))
            for kind in ("float32", "float64") if not reason else ():
                ask = ("lanes.mjx_of", name, file, steps, mjx, kind == "float64")
                try:
                    found[kind].append(child.ask(*ask, folder=kept, limit=robots.LIMIT))
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    reason = f"skipped: {child.last_words(error)}"
    own = float(np.median([x["rate"] for x in found["nsjax"]]))
    note = f"{found['nsjax'][0]['failed']:.0f} lanes with a status; {closed:.2f} contacts closed"
    yield Row(f"nsjax: {what}", own, note=note)
    for kind in ("float32", "float64"):
        if not found[kind]:
            yield Row(f"nsjax over MJX {kind}", asked=TIMES, least=True, note=reason)
            continue
        theirs, by = float(np.median([x["rate"] for x in found[kind]])), found[kind][0]
        note = f"MJX {theirs:,.0f} steps/s; file's {by['iterations']:.0f} iterations, {by['tolerance']:.0e}"
        yield Row(f"nsjax over MJX {kind}", own / theirs, TIMES, least=True, note=note)
