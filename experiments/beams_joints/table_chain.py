"""Cost of a step of a beam of n elements, clamped and swinging: in proportion to their number; and of the
four-bar of `fig_four_bar` with twenty elements in each of its moving links.

CPU time of the process, the smallest of several repetitions. The joints of the four-bar, and the clamp, are
a border of the chains: their rows are found from a dense problem of their own number.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from nsjax import schemes
from nsjax.analysis import observed_order
from nsjax.core import Problem
from nsjax.multibody import assemble, beam, circular, fixed

from .. import common
from . import fig_four_bar, shared

ELEMENTS, QUICK = (166, 1666), (25, 100)
"""Numbers of elements, for one and ten thousand unknowns."""
STEPS, REPEATED, LINK = 100, 5, 20


def mechanism(elements: int) -> Problem:
    """A steel cantilever under gravity."""
    steel = circular(0.005, E=2.1e11, rho=7850.0)
    return assemble(
        beam("arm", (0, 0, 0), (2, 0, 0), elements=elements, section=steel, first_axis=(0, 1, 0)),
        fixed("clamp", "ground", "arm.start"), gravity=9.81,
    )  # fmt: skip


def cost(problem: Problem, scheme: Any, dt: float) -> tuple[float, float]:
    """CPU time of a step [s], without compilation, and Newton iterations."""
    found = []
    for _ in range(REPEATED + 1):
        begun = time.process_time()
        traj = shared.run(problem, scheme, dt, STEPS * dt, every=STEPS)
        np.asarray(traj.q)
        found.append((time.process_time() - begun) / STEPS)
    return min(found[1:]), float(np.asarray(traj.iterations).sum()) / STEPS


def _paint(figure: Any, counts: np.ndarray, seconds: np.ndarray) -> None:
    axis = figure.subplots()
    axis.loglog(6 * (counts + 1), 1e6 * seconds, "o-")
    axis.set_xlabel("unknowns")
    axis.set_ylabel(r"CPU time of a step [$\mu$s]")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Measures, saves, draws and compares; ``quick`` takes short beams."""
    counts = np.array(QUICK if quick else ELEMENTS)
    found = [cost(mechanism(int(n)), schemes.generalized_alpha(0.8), 1e-4) for n in counts]
    seconds = np.array([s for s, _ in found])
    numbers = {}
    for n, (s, iterations) in zip(counts, found, strict=True):
        numbers[f"{n} elements: CPU time of a step [us]"] = 1e6 * s
        numbers[f"{n} elements: iterations a step"] = iterations
    if not quick:
        links = fig_four_bar.mechanism(1.0, LINK)
        numbers["four-bar: CPU time of a step [us]"] = 1e6 * cost(links, fig_four_bar.SCHEME, 1e-3)[0]
    numbers["slope"] = observed_order(counts, seconds)
    return common.finish(
        __file__, folder, numbers, {"elements": counts, "seconds": seconds}, (17.0, 7.0),
        lambda f: _paint(f, counts, seconds), quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
