"""How cost grows: with lanes, cores, steps of a gradient, unknowns, contacts, bodies; programs that travel.

Times are CPU time in turn, medians; the speed-up of two cores is one of wall time, and of the busiest
thread, which other programs disturb less.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import nsjax
from nsjax import models, multibody, schemes
from nsjax.analysis import observed_order

from ..common import Numbers
from . import bar, child, gradients, steps
from .side_by_side import Row, interleaved, per_step, plain_run

LANES = (1, 16, 256, 4_096, 65_536)
LANE_STEPS = 100
OVER_SINGLE, CORES, ROD_RATE = 1.0, 1.9, 1e5
"""Required: a step-lane of 65,536 lanes over a step of a single run; speed-up of two cores; step-lanes per
second."""

REVERSE = {"moreau": 4.0, "generalized_alpha": 4.0}
"""Required: ratio of the reverse gradient of a long run to the run."""

SLOPE, CONTACT_SLOPE = 1.1, 3.0
"""Required: exponents of the bar's step over unknowns, and over dense contacts (cubic elimination)."""

EXPORTED = 0.5
"""Required time from import to the first result of an exported gradient [s]."""

BARS, CONTACTS, BODIES = (100, 1_000, 10_000), (2, 4, 8, 16, 32), (2, 4, 8, 16, 32)


def over_single(name: str, lanes: int, rounds: int) -> tuple[float, float]:
    """Time of a step-lane [us] of a batch whose lanes start along a run, and of a step of this run.

    Both are measured in turn; the difference of a long and a short run removes the fixed cost of a call.
    """
    problem, scheme = models.slider_crank(), schemes.REGISTRY[name].factory()
    short, long = 20_000, 100_000
    each = max(LANE_STEPS, short // lanes)

    def single(count: int) -> Callable[[], Any]:
        return lambda: plain_run(problem, scheme, steps.STEP, count, each)

    q, v = child.lane_states(lanes, steps.simulate(long, 20))
    batch = jax.jit(child.lane_program(problem, steps.STEP, each, each, scheme=scheme))
    calls: dict[str, tuple[Callable[[], Any], int]] = {
        "short": (single(short), 1),
        "long": (single(long), 1),
        "lanes": (lambda: jax.block_until_ready(batch(problem.params, q, v)), lanes * each),
    }
    found = interleaved(calls, rounds)
    return found["lanes"], (found["long"] - found["short"]) / (long - short)


def throughput(quick: bool) -> Iterator[Row]:
    """Step-lanes of many slider-cranks, started along one run, beside a run over the same motion."""
    nsjax.configure()
    others = [x for x in gradients.schemes_with_friction() if x != "moreau"]
    asked_for = [("moreau", lanes) for lanes in (LANES[:2] if quick else LANES)]
    for name, lanes in [*asked_for, *((x, LANES[-1]) for x in (() if quick else others))]:
        lane, single = over_single(name, lanes, 3 if name == "moreau" else 1)
        note = f"{lane:.3f} over {single:.3f} us: {1.0 / lane:.2f} million step-lanes/s on one core"
        asked = OVER_SINGLE if lanes == LANES[-1] else None
        yield Row(f"{name}, {lanes:,} lanes over a single run", lane / single, asked, note=note)


def cores(quick: bool) -> Iterator[Row]:
    """The same lanes on one and on two host devices, bits compared."""
    two = child.ask("child.device_seconds", *((64, 200, 3) if quick else (4_096, steps.LANE_STEPS, 15)))
    note = f"answers identical: {bool(two['identical'])}"
    yield Row("two cores over one, wall time", two["speedup"], CORES, least=True, note=note)
    yield Row("two cores over one, busiest thread", two["speedup_thread"], CORES, least=True)


def long_gradients(quick: bool) -> Iterator[Row]:
    """Reverse gradients of 1e5 steps of the slider-crank, and compile time against the number of steps."""
    nsjax.configure()
    jax.config.update("jax_enable_compilation_cache", False)
    count = 1_000 if quick else 100_000
    for name in list(REVERSE)[: 1 if quick else None]:
        plain, _ = gradients.compiled(name, "plain", count)
        reverse, seconds = gradients.compiled(name, "reverse", count)
        _, short = gradients.compiled(name, "reverse", count // 10)
        base, found = gradients.ratios({"plain": plain, "reverse": reverse}, 3 if quick else 5)
        size = reverse.memory_analysis().temp_size_in_bytes / 2**20
        note = f"run {base:.3f} s; {size:.1f} MiB beside arguments"
        yield Row(
            f"{name}, gradient of {count:,} steps over the run", found["reverse"], REVERSE[name], note=note
        )
        what = f"{name}, compile: {count:,} steps over {count // 10:,}"
        yield Row(what, seconds / short, note=f"{seconds:.1f} and {short:.1f} CPU s")


def rod_problem() -> nsjax.Problem:
    """The slider-crank whose rod has ten modes."""
    return models.slider_crank_flexible(**models.TABLE_2, modes=10)


def unknowns(quick: bool) -> Iterator[Row]:
    """The elastic bar under generalized-alpha, and the flexible rod of ten modes under Bathe."""
    nsjax.configure()
    cost = []
    for elements in BARS[: 1 if quick else None]:
        some, long = bar.problem(elements), max(40, min(20_000, bar.WORK // elements))
        call = {"bar": lambda n, some=some: bar.simulate(bar.SCHEMES["generalized-alpha"], some, n)}
        cost.append(per_step(call, long // 10 if quick else long, 3)["bar"])
        yield Row(f"bar of {elements:,} elements [us/step]", cost[-1])
    if not quick:
        yield Row("bar: exponent of the cost", observed_order(BARS, cost), SLOPE)
        problem = rod_problem()

        def run(count: int) -> Any:
            return plain_run(problem, schemes.bathe(), 1e-5, count)

        us = per_step({"rod": run}, 20_000, 5)["rod"]
        what = "rod of ten modes, bathe, steps/s on one core"
        yield Row(what, 1e6 / us, ROD_RATE, least=True, note=f"{us:.2f} us")


def contacts(quick: bool) -> Iterator[Row]:
    """Balls that bounce on a rough table, each a frictional contact of one dense problem."""
    nsjax.configure()
    cost = []
    for balls in CONTACTS[: 1 if quick else None]:
        problem = models.bouncing_ball(balls=balls, dimension=2, friction=0.3, height=0.1, restitution=0.0)

        def run(count: int, problem: nsjax.Problem = problem) -> Any:
            return plain_run(problem, schemes.moreau(), 1e-3, count)

        cost.append(per_step({"balls": run}, 500 if quick else 20_000 // balls, 3)["balls"])
        yield Row(f"moreau, {balls} balls at rest on each other [us/step]", cost[-1])
    if not quick:
        yield Row("exponent of the cost", observed_order(CONTACTS, cost), CONTACT_SLOPE)


LENGTH, INERTIA = 0.5, (0.001, 0.02, 0.02)
"""Length of a rod of the chain [m], and its moments of inertia about the mass centre [kg m^2]."""


def chain(links: int, coordinates: str = "joint") -> nsjax.Problem:
    """Spatial pendulum of ``links`` rods with hinges about alternating axes, released level.

    Args:
        links: number of rods, 0.5 m and 1 kg each.
        coordinates: of `multibody.assemble`.
    """
    parts: list[Any] = []
    for i in range(links):
        before, at = ("ground", 0.0) if i == 0 else (f"rod{i - 1}", LENGTH)
        axis = (0.0, 1.0, 0.0) if i % 2 == 0 else (0.0, 0.0, 1.0)
        parts += [
            multibody.body(f"rod{i}", mass=1.0, inertia=INERTIA, com=(LENGTH / 2, 0.0, 0.0)),
            multibody.hinge(f"hinge{i}", before, f"rod{i}", at=(at, 0.0, 0.0), axis=axis),
        ]
    return multibody.assemble(*parts, gravity=(0.0, 0.0, -9.81), coordinates=coordinates)


def bodies(quick: bool) -> Iterator[Row]:
    """Chains of rods in joint coordinates under Moreau's rule."""
    nsjax.configure()
    cost = []
    for links in BODIES[: 1 if quick else None]:
        problem = chain(links)

        def run(count: int, problem: nsjax.Problem = problem) -> Any:
            return plain_run(problem, schemes.moreau(), 1e-3, count)

        before = time.process_time()
        run(10)
        first = time.process_time() - before
        cost.append(per_step({"chain": run}, 500 if quick else 2_000, 3)["chain"])
        yield Row(
            f"moreau, chain of {links} rods [us/step]", cost[-1], note=f"first call {first:.1f} CPU s"
        )
    if not quick:
        yield Row("exponent of the cost", observed_order(BODIES, cost))


def export(path: str) -> Numbers:
    """Exports value and gradient of 2,000 steps of the slider-crank; its size in bytes."""
    nsjax.configure()
    system, params, state = models.slider_crank()

    def angle(p: Any) -> Any:
        run = nsjax.simulate(system, p, state, schemes.moreau(), dt=steps.STEP, steps=2_000, every=2_000)
        return run.q[-1, 0] + run.q[-1, 1]

    nsjax.export_program(path, jax.value_and_grad(angle), params)
    return {"bytes": float(Path(path).stat().st_size)}


def first_answer(path: str) -> Numbers:
    """Seconds from import to the first answer of an exported program."""
    nsjax.configure()
    jnp.zeros(1).block_until_ready()
    before, wall = time.process_time(), time.perf_counter()
    program = nsjax.load_program(path)
    jax.block_until_ready(program(*program.arguments))
    return {"seconds": time.process_time() - before, "wall": time.perf_counter() - wall}


def exported(quick: bool) -> Iterator[Row]:
    """An exported gradient in a new process, with the compiled program kept and without."""
    with tempfile.TemporaryDirectory() as folder:
        path, kept = f"{folder}/gradient.nsjax", Path(folder) / "programs"
        size = child.ask("scaling.export", path)["bytes"]
        cold = child.ask("scaling.first_answer", path, folder=kept)
        warm = child.ask("scaling.first_answer", path, folder=kept)
        note = f"wall {warm['wall']:.2f} s; {size / 1e3:.0f} kB; nothing kept {cold['seconds']:.1f}"
        yield Row("gradient, first answer of a new process [CPU s]", warm["seconds"], EXPORTED, note=note)
