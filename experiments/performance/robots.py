"""Robots as users bring them: program of a step over mechanics, first call, a step beside `mj_step`, and
the reverse gradient of a landing.

Model files in MuJoCo's format, read from the folder ``robots`` of the reference data (``NSJAX_DATA``). The
functions that end in ``_of`` are measured in a process of their own (`child`).
"""

from __future__ import annotations

import functools
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

import nsjax
from nsjax import Problem, schemes

from .. import common
from ..common import Numbers
from . import child, program_size
from .side_by_side import Row, interleaved

ROBOTS = ("hopper", "ant", "go1_feet", "brax_humanoid", "mujoco_humanoid")
STEP = 1e-3
LANDING = 500
"""Number of steps of a run, from the start in the file until the robot has landed."""

LIMIT = 900.0
"""Wall time [s] after which a measurement in a separate process is ended."""

OVER_MECHANICS = {
    ("moreau", "plain"): 3.0,
    ("moreau", "jitted"): 3.0,
    ("moreau", "reverse"): 9.0,
    ("generalized_alpha", "plain"): 6.0,
    ("generalized_alpha", "jitted"): 6.0,
    ("generalized_alpha", "reverse"): 16.0,
}
FIRST_CALL = {"hopper": 6.0, "ant": 10.0, "go1_feet": 14.0, "brax_humanoid": 20.0}
OVER_MUJOCO = {"hopper": 1.5, "ant": 2.0, "go1_feet": 2.0}
REVERSE_SECONDS = {"hopper": 25.0, "ant": 40.0}
REVERSE_RATIO, REVERSE_BYTES = 5.0, 3e9


def file_of(name: str) -> Path:
    """Path of the file of a robot; a name that ends with ``.xml`` is itself the path."""
    if name.endswith(".xml"):
        return Path(name)
    return common.reference_data("robots") / f"{name}.xml"


def why_not(name: str) -> str:
    """Reason why a robot cannot be measured; empty if it can."""
    if not file_of(name).is_file():
        return f"skipped: no file {file_of(name)}; set NSJAX_DATA to the folder above robots"
    try:
        import mujoco  # noqa: F401
    except ImportError:
        return "skipped: needs mujoco: pip install 'nsjax[bench]'"
    return ""


@functools.cache
def robot(name: str) -> Problem:
    """The mechanism of its file."""
    return program_size.robot(file_of(name))


def measured(function: str, *arguments: Any) -> tuple[Numbers, str]:
    """Numbers of a function run in a separate process, and the reason if there are none."""
    try:
        return child.ask(f"robots.{function}", *arguments, limit=LIMIT), ""
    except subprocess.TimeoutExpired:
        return {}, f"not done in {LIMIT:.0f} s"
    except RuntimeError as error:
        return {}, child.last_words(error)


def sizes_of(name: str, scheme: str, mode: str) -> Numbers:
    """Operations of a program, and of the mechanics."""
    nsjax.configure()
    problem = robot(name)
    own = program_size.mechanics(problem)
    return {"step": float(program_size.count(scheme, mode, problem, STEP)), "mechanics": float(own)}


def sizes(names: Sequence[str], quick: bool) -> Iterator[Row]:
    """Operations of programs over those of their mechanics; ``quick``: one program, in this process."""
    for name in names:
        if reason := why_not(name):
            yield Row(name, note=reason)
            continue
        for (scheme, mode), asked in list(OVER_MECHANICS.items())[: 1 if quick else None]:
            ask = ("sizes_of", name, scheme, mode)
            found, reason = (sizes_of(*ask[1:]), "") if quick else measured(*ask)
            what = f"{name}: {scheme}, {mode} / mechanics"
            if found:
                reason = f"{found['step']:,.0f} of {found['mechanics']:,.0f}"
                yield Row(what, found["step"] / found["mechanics"], asked, note=reason)
            else:
                yield Row(what, asked=asked, note=reason)


def first_call_of(name: str) -> Numbers:
    """CPU seconds of the first run of a process: trace, lower, compile and ten steps."""
    nsjax.configure()
    system, params, state = robot(name)
    before = time.process_time()
    nsjax.simulate(system, params, state, schemes.moreau(), dt=STEP, steps=10)
    return {"seconds": time.process_time() - before}


def first_calls(names: Sequence[str], quick: bool) -> Iterator[Row]:
    """Without kept programs, the median of three processes, of one in the quick form."""
    for name in names:
        what, asked = f"{name}: moreau, first call [CPU s]", FIRST_CALL.get(name)
        if reason := why_not(name):
            yield Row(what, note=reason)
            continue
        found = [measured("first_call_of", name) for _ in range(1 if quick else 3)]
        seconds = [numbers["seconds"] for numbers, _ in found if numbers]
        if seconds:
            yield Row(what, float(np.median(seconds)), asked)
        else:
            yield Row(what, asked=asked, note=found[0][1])


def ours(name: str, steps: int) -> nsjax.Trajectory:
    """The measured run, as a user calls it."""
    system, params, state = robot(name)
    return nsjax.simulate(system, params, state, schemes.moreau(), dt=STEP, steps=steps, every=steps)


def theirs(name: str) -> tuple[Callable[[int], None], Any]:
    """The same number of steps of MuJoCo from the same start with the same step, and its data."""
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(file_of(name)))
    model.opt.timestep = STEP
    data = mujoco.MjData(model)

    def run(steps: int) -> None:
        mujoco.mj_resetData(model, data)
        data.qpos[:] = np.asarray(robot(name).state.q)
        mujoco.mj_step(model, data, nstep=steps)

    return run, data


def steps(names: Sequence[str], quick: bool) -> Iterator[Row]:
    """Microseconds of a step beside `mj_step`, in turn, from the start of the file on.

    The time of a step is the difference of two runs, which removes the fixed cost of a call.
    """
    nsjax.configure()
    count, rounds = (100, 3) if quick else (1000, 9)
    for name in names:
        if reason := why_not(name):
            yield Row(name, note=reason)
            continue
        mujoco_run, data = theirs(name)
        calls: dict[str, tuple[Callable[[], Any], int]] = {
            "nsjax": (lambda name=name: ours(name, count + 1), count),  # type: ignore[misc]
            "call": (lambda name=name: ours(name, 1), count),  # type: ignore[misc]
            "mj_step": (lambda run=mujoco_run: run(count), count),  # type: ignore[misc]
        }
        found = interleaved(calls, rounds)
        traj = ours(name, count)
        step = found["nsjax"] - found["call"]
        note = (
            f"{step:.1f} over {found['mj_step']:.1f} us, a call {found['call'] * count / 1e3:.1f} ms; "
            f"status {int(traj.status)}, {int(np.sum(np.asarray(traj.impacts)))} impacts; mujoco ends with "
            f"{data.ncon} contacts"
        )
        yield Row(
            f"{name}: moreau, us/step over mj_step",
            step / found["mj_step"],
            OVER_MUJOCO.get(name),
            note=note,
        )


def landing_of(name: str, scheme: str, count: int) -> Numbers:
    """A run and its gradient with respect to all parameters, in reverse mode."""
    nsjax.configure()
    problem = robot(name)
    ready: dict[str, Any] = {}
    found: Numbers = {}
    for mode in ("plain", "reverse"):
        call = program_size.program(problem, scheme, mode, STEP, count)
        before = time.process_time()
        ready[mode] = jax.jit(call).lower(problem.params).compile()
        found[f"{mode}_seconds"] = time.process_time() - before
    calls = {
        mode: (lambda call=call: jax.block_until_ready(call(problem.params)), count)
        for mode, call in ready.items()
    }
    found |= {f"{mode}_us": x for mode, x in interleaved(calls, 5).items()}
    gradient = jax.tree.leaves(ready["reverse"](problem.params))
    found["finite"] = float(all(np.all(np.isfinite(x)) for x in gradient))
    found["bytes"] = float(ready["reverse"].memory_analysis().temp_size_in_bytes)
    system, params, state = problem
    made = schemes.REGISTRY[scheme].factory()
    traj = nsjax.simulate(system, params, state, made, dt=STEP, steps=count, every=count)
    return {**found, "impacts": float(np.sum(np.asarray(traj.impacts)))}


def landings(names: Sequence[str], quick: bool, scheme: str = "moreau") -> Iterator[Row]:
    """Reverse gradient through the landing."""
    for name in names:
        what = f"{name}: {scheme}, reverse gradient"
        if reason := why_not(name):
            yield Row(what, note=reason)
            continue
        found, reason = measured("landing_of", name, scheme, 10 if quick else LANDING)
        if not found:
            yield Row(what, note=reason)
            continue
        said = f"plain {found['plain_seconds']:.1f}; {found['impacts']:.0f} impacts"
        said += "" if found["finite"] else "; not finite"
        yield Row(
            f"{what}, compile [CPU s]", found["reverse_seconds"], REVERSE_SECONDS.get(name), note=said
        )
        said = f"{found['reverse_us']:.1f} over {found['plain_us']:.1f} us/step"
        yield Row(f"{what}, run / plain", found["reverse_us"] / found["plain_us"], REVERSE_RATIO, note=said)
        yield Row(f"{what}, memory [GB]", found["bytes"] / 1e9, REVERSE_BYTES / 1e9)
