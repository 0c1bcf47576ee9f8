"""`sweep_lyapunov`: maps of Lyapunov exponents, which show for which parameters a motion is chaotic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from nsjax.analysis.lyapunov import lyapunov_exponent
from nsjax.core.errors import InputError
from nsjax.core.memory import meter
from nsjax.core.scheme import Scheme
from nsjax.core.system import Problem
from nsjax.jaxtools.owned import compiled_for
from nsjax.sweep import program, reductions
from nsjax.sweep.lanes import gather, share
from nsjax.sweep.program import lay_out, make_plan, refusals
from nsjax.sweep.run import CALL_STEPS, CHUNK_LANES
from nsjax.types import Array


@compiled_for("one", "devices", "steps")
def _call(
    one: program.LaneProgram,
    devices: tuple[Any, ...],
    steps: int,
    common: program.SharedData,
    unit_time: Array,
    lanes: program.Lane,
    counts: Array,
) -> tuple[Array, Array]:
    """Exponents and status of the first ``counts[d]`` lanes of each device."""

    def lane(both: Any, own: program.Lane) -> tuple[Array, Array]:
        params, state, scheme = program.numbers(one, both[0], own.values)
        return lyapunov_exponent(
            one.system, params, state, scheme, dt=own.dt, steps=steps, unit_time=both[1]
        )

    return program.spread(lane, devices, (common, unit_time), lanes, counts)


def sweep_lyapunov(
    problem: Problem,
    scheme: Scheme,
    over: Mapping[str, Any],
    *,
    mode: str = "zip",
    progress: bool | Callable[[int, int], None] = False,
    dt: Array | float | None = None,
    steps: int | None = None,
    time: float | None = None,
    unit_time: float | None = None,
) -> np.ndarray:
    """The largest finite-time Lyapunov exponent of every lane of a sweep: a map of chaos.

    Lanes are those of `nsjax.sweep` with the same arguments, on all devices and processes. Each costs
    about five times as much as in `nsjax.sweep`, because it carries the tangent of the whole state.

    Args:
        problem, scheme, over, mode, progress, dt: as in `nsjax.sweep`; step sizes may vary with
            steps given.
        steps: number of steps in every lane; give either steps or time.
        time: duration [s].
        unit_time: factor that makes velocities comparable with positions [s], see
            `nsjax.analysis.lyapunov_exponent`; None: the duration (of the first lane, if step sizes
            vary).

    Returns:
        Exponents [1/s], (lanes,) or one axis per key; see `nsjax.analysis.lyapunov_exponent`. Not a
        number where a lane could not start or failed (`nsjax.sweep` tells why).

    Raises:
        InputError: for input that no lane can run.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> ball = models.bouncing_ball(height=9.0)
        >>> nsjax.sweep_lyapunov(
        ...     ball, schemes.moreau(), {"params.gravity": [1.0, 2.0]}, dt=1e-2, time=1.0
        ... ).round(6).tolist()
        [0.481212, 0.481212]
    """
    plan = make_plan(problem, scheme, over, mode, reductions.last, dt, steps, time, None, 1, 0)
    count = int(plan.lengths.every[0])
    if np.any(plan.lengths.every != count):
        raise InputError("sweep_lyapunov: the step sizes need different numbers of steps; give steps")
    lanes = np.setdiff1d(np.arange(plan.axes.count), list(refusals(plan)))
    devices = tuple(jax.local_devices())
    unit = np.asarray(count * plan.lengths.dt[0] if unit_time is None else unit_time, float)
    found = {"exponent": np.full(plan.axes.count, np.nan), "status": np.zeros(plan.axes.count, int)}
    mine = share(lanes)
    tangent_cost = 5  # cost of a step with the tangent of the whole state over that of a step without
    per_call = len(devices) * max(1, min(CHUNK_LANES, CALL_STEPS // (tangent_cost * count)))
    with meter(progress, len(mine)) as tell:
        for start in range(0, len(mine), per_call):
            some = mine[start : start + per_call]
            table, counts, order = lay_out(some, len(devices), CHUNK_LANES)
            part = _call(plan.one, devices, count, plan.common, unit, plan.lanes(table), counts)
            for name, new in zip(found, part, strict=True):
                found[name][some] = np.asarray(new)[order]
            tell(start + len(some))
    found = gather(found, lanes)
    return np.where(found["status"] == 0, found["exponent"], np.nan).reshape(plan.axes.shape)
