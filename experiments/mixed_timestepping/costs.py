"""What Tables 3 and 5 of [R&S] share: CPU time per step of five schemes relative to Moreau's rule.

Process CPU time, interleaved A-B-A-B after one call that compiles, medians, dt = 1e-5 s. The paper
measured other programs on other machines: its ratios stand beside ours, and only their order is expected
to carry over.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from nsjax import schemes

from .. import common
from ..performance.side_by_side import interleaved

STEP = 1e-5
SCHEMES = {
    "Moreau": schemes.moreau(),
    "HETS": schemes.half_explicit(),
    "gen-alpha": schemes.generalized_alpha(0.8),
    "Bathe": schemes.bathe(),
    "ED-alpha": schemes.ed_alpha(0.0),
}


def measure(problem: Any, save: list[str], steps: int, rounds: int) -> common.Numbers:
    """Microseconds of CPU time per step."""
    calls = {
        name: (functools.partial(common.run, problem, scheme, STEP, steps, every=100, save=save), steps)
        for name, scheme in SCHEMES.items()
    }
    return interleaved(calls, rounds)


def remark(ratios: dict[str, float]) -> str:
    """Comparison of the rows with the paper's ratios, and the requirement: part of the printed table.

    Args:
        ratios: our ratios over the paper's, by scheme.
    """
    words = ", ".join(
        f"{name} {'cheaper' if x < 1.0 else 'dearer'} ({x:.2f})" for name, x in ratios.items()
    )
    return f"""\
Beside Moreau's rule and the paper's ratios: {words}.
Asked is the order of the rows alone, each at least as dear as the one above: the paper's ratios are those
of loops in which every scheme repeats its iteration to a tolerance with newly built matrices; here a stage
takes about two passes with one tangent, and both stages of ED-alpha are one problem of twice the size."""


def reproduce(
    beside: str, problem: Any, save: list[str], quick: bool, folder: str | Path | None
) -> common.Numbers:
    """Measures, prints the paper's ratios beside ours, and checks their order.

    Args:
        beside: path of the table's module.
        problem: the mechanism.
        save: saved row quantities of a run.
        quick: half of the steps and of the rounds.
        folder: folder of the results.
    """
    # shorter runs measure the call: at 5,000 steps it takes three quarters of the time of Moreau's rule
    found = measure(problem, save, 50_000 if quick else 100_000, 5 if quick else 9)
    expected = common.load_expected(beside)
    numbers: common.Numbers = {f"{name}: us per step": value for name, value in found.items()}
    lines = [f"{'scheme':12}{'us/step':>10}{'ratio':>8}{'paper':>8}{'ours / paper':>14}"]
    names, ratios = list(SCHEMES), {}
    for k, name in enumerate(names):
        ratio = found[name] / found["Moreau"]
        numbers[f"{name}: relative CPU time"] = ratio
        if k:
            numbers[f"{name} / {names[k - 1]}"] = found[name] / found[names[k - 1]]
        paper = expected[f"{name} / {names[k - 1]}"]["print"] if k else 1.0
        if k:
            ratios[name] = numbers[f"{name}: ratio / print"] = ratio / paper
        lines.append(f"{name:12}{found[name]:>10.3f}{ratio:>8.2f}{paper:>8.2f}{ratio / paper:>14.2f}")
    table = "\n".join([*lines, remark(ratios)])
    return common.finish(beside, folder, numbers, table=table)
