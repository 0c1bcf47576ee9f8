"""Batches on every kind of device of the machine: compiled sweeps and their reverse gradients, wall time.

Lanes start along a run, so that each meets contacts at another time. On a CPU they run one after the
other on one core (``nsjax.configure(host_devices=...)`` would use more), on a GPU side by side. Each turn
is a process of its own, since the devices of a process are chosen at its start.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from ..common import Numbers
from . import child
from .lanes import states_of as of_robots
from .side_by_side import Row

LANES = (64, 4_096, 65_536)
GRADIENT_LANES = 4_096
CRANK = "slider_crank"
MECHANISMS = {CRANK: 100, "hopper": 20, "go1_feet": 20}
"""Mechanisms, with the number of steps of a lane."""

SCHEMES = {CRANK: ("moreau", "generalized_alpha", "ggl_unified")}
"""Schemes of a mechanism, ``moreau`` unless it stands here."""

LIMIT, ENOUGH = 150.0, 5.0
"""Wall time [s] after which a turn is ended; and after which no further call is timed."""


def platforms() -> tuple[str, ...]:
    """Kinds of devices: the CPU, and what a plugin of JAX adds."""
    others = {
        x.name.removeprefix("xla_").rstrip("0123456789") for x in metadata.entry_points(group="jax_plugins")
    }
    return ("cpu", *sorted(others))


def _problem(name: str) -> tuple[Any, float]:
    """The mechanism and the step size of its lanes [s]."""
    from nsjax import models

    from . import robots

    return (models.slider_crank(), child.STEP) if name == CRANK else (robots.robot(name), robots.STEP)


def states_of(name: str, lanes: int, file: str) -> Numbers:
    """Saves ``q, v`` of all lanes to a file."""
    if name != CRANK:
        return of_robots(name, lanes, file)
    import nsjax

    from . import steps

    nsjax.configure()
    q, v = child.lane_states(lanes, steps.simulate(100_000, 20))
    np.savez(file, q=q, v=v)
    return {}


def _timed(call: Callable[[], Any]) -> tuple[float, float]:
    """Wall time of the first call and the median of at most three further ones [s]."""
    seconds: list[float] = []
    while len(seconds) < 2 or (len(seconds) < 4 and sum(seconds[1:]) < ENOUGH):
        before = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - before)
    return seconds[0], float(np.median(seconds[1:]))


def end_of(run: Any) -> Any:
    """Positions at the end of a run, all that a lane returns."""
    return run.q[-1]


def lanes_of(name: str, scheme: str, file: str, end: str, steps: int, reverse: bool) -> Numbers:
    """First call, rate, and the end of all lanes in a file; or the reverse gradient of their sum."""
    import jax
    import jax.numpy as jnp

    import nsjax
    from nsjax import schemes

    nsjax.configure()
    (problem, dt), data = _problem(name), np.load(file)
    made = schemes.REGISTRY[scheme].factory()

    def ends(v: Any) -> Any:
        over = {"state.q": data["q"], "state.v": v}
        return nsjax.sweep(problem, made, over, reduce=end_of, dt=dt, steps=steps, every=steps).values

    program = jax.jit(jax.grad(lambda v: jnp.sum(ends(v)))) if reverse else jax.jit(ends)
    v = jnp.asarray(data["v"])
    first, seconds = _timed(lambda: jax.block_until_ready(program(v)))
    np.save(end, np.asarray(program(v)))
    return {"first": first, "rate": len(v) * steps / seconds, "devices": float(jax.device_count())}


def devices(quick: bool) -> Iterator[Row]:
    """Step-lanes of a second on each kind of device, and how far apart their numbers are."""
    from . import robots

    for name in list(MECHANISMS)[: 1 if quick else None]:
        if name != CRANK and (reason := robots.why_not(name)):
            yield Row(f"{name}, batches", note=reason)
            continue
        for scheme in SCHEMES.get(name, ("moreau",))[: 1 if quick else None]:
            asked = [(lanes, False) for lanes in (LANES[:1] if quick else LANES)]
            for lanes, reverse in [*asked, *([] if quick else [(GRADIENT_LANES, True)])]:
                yield from _beside(name, scheme, lanes, reverse)


def _beside(name: str, scheme: str, lanes: int, reverse: bool) -> Iterator[Row]:
    """The same lanes on every kind of device."""
    ends: dict[str, np.ndarray] = {}
    with tempfile.TemporaryDirectory() as made:
        file = str(Path(made) / "states.npz")
        child.ask("devices.states_of", name, lanes, file, extra={"JAX_PLATFORMS": "cpu"})
        for platform in platforms():
            what = (
                f"{name}, {scheme}, {lanes:,} lanes{', reverse' if reverse else ''}, {platform} [steps/s]"
            )
            end = str(Path(made) / f"{platform}.npy")
            given = (name, scheme, file, end, MECHANISMS[name], reverse)
            try:
                n = child.ask("devices.lanes_of", *given, limit=LIMIT, extra={"JAX_PLATFORMS": platform})
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                yield Row(what, note=f"not done: {child.last_words(error)}")
                continue
            ends[platform] = np.load(end)
            note = f"first call {n['first']:.1f} s, {n['devices']:.0f} device(s)"
            if platform != "cpu" and "cpu" in ends:
                apart = np.abs(ends[platform] - ends["cpu"]) / np.maximum(1.0, np.abs(ends["cpu"]))
                note += f"; apart from the CPU: median {np.median(apart):.1e}, most {np.max(apart):.1e}"
            yield Row(what, n["rate"], note=note)
