"""All methods of the contact solver on the 28 problems of the FCLIB selection, met by other programs.

Each method stops at a relative natural-map residual of 1e-8. Where the residual of the FCLIB README
(step 1, Euclidean norm) is then still above 1e-8, the run is repeated with a tolerance tightened in
proportion, and the time of that run counts for the second comparison. ``W`` is used as published,
asymmetric digits included, as the baseline of the README does: its symmetric part would be another
problem. Times are CPU time of compiled programs, all threads together; the caps on iterations follow
from a budget of CPU time, so a method "not solved" here is one not solved in that time.

    python -m experiments.contact.fclib [--quick] [--folder F]
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.contact import ContactProblem, RowGroups, natural_residual, solve

from .. import common
from . import reference_solvers

TOLERANCE = 1e-8
HARD = ("BoxesStack1-i100000-32", "RockPile_tob1", "spheres-in-a-box-98-i10000-256-10")
"""Not solved by the baseline of the README in 20 s or 200 000 sweeps."""

# Iterations of the first probe, which is also the step by which the iterations grow, and their cap.
# "auto" has caps of its own; its number is the Newton steps before the fallback begins.
PROBE = {
    "newton": 2, "newton_simplified": 2, "gauss_seidel": reference_solvers.SWEEP_BLOCK,
    "admm": reference_solvers.ADMM_BLOCK,
}  # fmt: skip
MOST = {"newton": 100, "newton_simplified": 100, "gauss_seidel": 200_000, "admm": 200_000}
AUTO_STEPS = 20
METHODS = ("auto", *PROBE)
BUDGET = 5.0
"""CPU seconds from which the cap on iterations of a method follows; "auto" stops by its own caps."""
QUICK_CONTACTS = 25
# A short solve is repeated until this much CPU time is spent, a tightened one at most this often.
REPEAT_FOR = 0.02
TIGHTEN = 2

LABELS = {
    "auto": "auto (default)",
    "newton": "Newton, exact",
    "newton_simplified": "Newton, simplified",
    "gauss_seidel": "Gauss-Seidel",
    "admm": "ADMM",
}
COLOURS = {
    "auto": "#000000",
    "newton": "#0072b2",
    "newton_simplified": "#56b4e9",
    "gauss_seidel": "#d55e00",
    "admm": "#009e73",
}
DASHES = {"auto": "-", "newton": "--", "newton_simplified": ":", "gauss_seidel": "-.", "admm": (0, (5, 1))}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One method on one problem.

    Args:
        problem, contacts, method: what was solved and how.
        seconds, iterations, rounds: CPU time and work of the run that stops at the natural map.
        residual: natural-map residual by the certificate, computed from the answer.
        fclib: residual of the README for the same answer.
        seconds_fclib: CPU time of the run that brings the latter below 1e-8; infinite if none did.
        cap: cap on the iterations.
    """

    problem: str
    contacts: int
    method: str
    seconds: float
    iterations: int
    rounds: int
    residual: float
    fclib: float
    seconds_fclib: float
    cap: int

    @property
    def solved(self) -> bool:
        return self.residual <= TOLERANCE

    @property
    def solved_fclib(self) -> bool:
        return bool(np.isfinite(self.seconds_fclib))


def data_folder() -> Path:
    """Folder ``fclib`` of the reference data, see `common.reference_data`.

    Raises:
        FileNotFoundError: if it is absent.
    """
    folder = common.reference_data("fclib")
    if not folder.is_dir():
        raise FileNotFoundError(f"no contact problems in {folder}; set NSJAX_DATA to the folder above it")
    return folder


def index(folder: Path, contacts: int | None = None) -> list[str]:
    """Names of the problems with at most ``contacts`` contacts, smallest first."""
    with open(folder / "index.csv", encoding="utf-8") as file:
        rows = [(int(row["contacts"]), row["name"]) for row in csv.DictReader(file)]
    return [name for size, name in sorted(rows) if contacts is None or size <= contacts]


def load(folder: Path, name: str) -> ContactProblem:
    """One problem: normal first, ``W`` as published."""
    data = np.load(folder / f"{name}.npz")
    w = np.zeros(tuple(data["W_shape"]))
    columns = np.repeat(np.arange(w.shape[1]), np.diff(data["W_indptr"]))
    np.add.at(w, (data["W_indices"], columns), data["W_data"])
    nc = len(data["mu"])
    return ContactProblem(
        rows=RowGroups.of(nc, int(data["dim"]) - 1),
        delassus=jnp.asarray(w),
        free=jnp.asarray(data["q"]),
        friction=jnp.asarray(data["mu"]),
        mask=jnp.ones(nc, bool),
    )


def readme_residual(problem: ContactProblem, x: Any) -> float:
    """``|r - proj_K(r - u_hat)| / |q|``, step 1, De Saxce's form, as the FCLIB README defines it."""
    d, q, mu = 1 + problem.nt, np.asarray(problem.free), np.asarray(problem.friction)
    r = np.asarray(x).reshape(-1, d)
    u = (q + np.asarray(problem.matrix) @ r.ravel()).reshape(-1, d)
    z = r - u
    z[:, 0] -= mu * np.linalg.norm(u[:, 1:], axis=1)
    normal, size = z[:, 0], np.linalg.norm(z[:, 1:], axis=1)
    length = (normal + mu * size) / (1.0 + mu**2)
    sides = (mu * length / np.where(size > 0.0, size, 1.0))[:, None] * z[:, 1:]
    surface = np.column_stack([length, sides])
    polar = np.where((mu * size <= -normal)[:, None], 0.0, surface)
    projected = np.where((size <= mu * normal)[:, None], z, polar)
    return float(np.linalg.norm(r - projected) / np.linalg.norm(q))


@functools.cache
def _program(nc: int, nt: int, method: str) -> Callable[..., Any]:
    """The compiled solver for problems of one shape; tolerance and cap are arguments."""
    m = nc * (1 + nt)
    shape = ContactProblem(
        rows=RowGroups.of(nc, nt),
        delassus=jnp.zeros((m, m)),
        free=jnp.zeros(m),
        friction=jnp.zeros(nc),
        mask=jnp.ones(nc, bool),
    )
    solver = solve if method in ("auto", "newton") else reference_solvers.solve
    lowered = jax.jit(functools.partial(solver, method=method)).lower(
        shape, tolerance=jnp.asarray(0.0), max_iterations=jnp.asarray(0)
    )
    compiled = lowered.compile()

    def call(problem: ContactProblem, tolerance: float, cap: int) -> Any:
        return jax.block_until_ready(
            compiled(problem, tolerance=jnp.asarray(tolerance), max_iterations=jnp.asarray(cap))
        )

    return call


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of a call (mean over repetitions of a short one) and its answer."""
    before, count = time.process_time(), 0
    while True:
        answer, count = call(), count + 1
        spent = time.process_time() - before
        if spent >= REPEAT_FOR:
            return spent / count, answer


def _cap(problem: ContactProblem, method: str, budget: float) -> int:
    """Iterations of a method that fit into ``budget`` CPU seconds, from a probe of a few."""
    if method == "auto":
        return AUTO_STEPS
    program, block = _program(problem.nc, problem.nt, method), PROBE[method]
    program(problem, 0.0, 0)  # the first call pays for more than the iterations
    seconds, _ = _timed(lambda: program(problem, 0.0, block))
    return int(np.clip(block * int(budget / seconds), 2 * block, MOST[method]))


def run_one(name: str, problem: ContactProblem, method: str, budget: float) -> Outcome:
    """One method on one problem, to 1e-8 of the natural map, and of the README's residual."""
    program = _program(problem.nc, problem.nt, method)
    cap = _cap(problem, method, budget)
    seconds, answer = _timed(lambda: program(problem, TOLERANCE, cap))
    first = answer
    residual = float(natural_residual(problem, answer.x))
    fclib = size = readme_residual(problem, answer.x)
    spent, tolerance = seconds, TOLERANCE
    for _ in range(TIGHTEN if residual <= TOLERANCE else 0):
        if size <= TOLERANCE:
            break
        tolerance = max(0.5 * tolerance * TOLERANCE / size, 1e-15)
        spent, answer = _timed(functools.partial(program, problem, tolerance, cap))
        size = readme_residual(problem, answer.x)
    return Outcome(
        problem=name,
        contacts=problem.nc,
        method=method,
        seconds=seconds,
        iterations=int(first.iterations),
        rounds=int(first.rounds),
        residual=residual,
        fclib=fclib,
        seconds_fclib=spent if size <= TOLERANCE else float("inf"),
        cap=cap,
    )


def run(folder: Path, names: Sequence[str], methods: Sequence[str], budget: float) -> list[Outcome]:
    """Every method on every named problem; prints one line per problem."""
    outcomes: list[Outcome] = []
    for name in names:
        problem = load(folder, name)
        found = [run_one(name, problem, method, budget) for method in methods]
        reached = "  ".join(f"{o.method} {o.residual:.0e} {o.seconds:.2g} s" for o in found)
        print(f"{name} ({problem.nc} contacts): {reached}", flush=True)
        outcomes += found
    return outcomes


def profile(outcomes: Sequence[Outcome], fclib: bool = False) -> dict[str, np.ndarray]:
    """Dolan and More: per method the sorted ratios of its times to the best method's, unsolved left out.

    ``fclib``: judged by the residual of the README instead of the natural map.
    """

    def cost(o: Outcome) -> float:
        if fclib:
            return o.seconds_fclib
        return o.seconds if o.solved else float("inf")

    best: dict[str, float] = {}
    for o in outcomes:
        best[o.problem] = min(best.get(o.problem, float("inf")), cost(o))
    ratios: dict[str, list[float]] = {o.method: [] for o in outcomes}
    for o in outcomes:
        if np.isfinite(cost(o)):
            ratios[o.method].append(cost(o) / best[o.problem])
    return {method: np.sort(values) for method, values in ratios.items()}


def summary(outcomes: Sequence[Outcome]) -> common.Numbers:
    """Problems solved and median time per method, and what the default reaches on hard problems."""
    numbers: common.Numbers = {"problems": float(len({o.problem for o in outcomes}))}
    for method in dict.fromkeys(o.method for o in outcomes):
        own = [o for o in outcomes if o.method == method]
        solved = [o.seconds for o in own if o.solved]
        numbers[f"solved_{method}"] = float(len(solved))
        numbers[f"solved_fclib_{method}"] = float(sum(o.solved_fclib for o in own))
        numbers[f"median_s_{method}"] = float(np.median(solved)) if solved else float("nan")
        numbers[f"total_s_{method}"] = float(sum(o.seconds for o in own))
    for o in outcomes:
        if o.problem in HARD:
            numbers[f"residual_{o.method}_{o.problem}"] = o.residual
    return numbers


def write_csv(path: Path, outcomes: Sequence[Outcome]) -> None:
    """All outcomes, one row each."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([field.name for field in dataclasses.fields(Outcome)])
        writer.writerows(dataclasses.astuple(o) for o in outcomes)


def _cell(o: Outcome) -> str:
    work = f"{o.iterations} it" + (f", {o.rounds} rounds" if o.rounds else "")
    text = f"{o.residual:.0e} / {o.fclib:.0e}, {o.seconds:.2g} s, {work}"
    return text if o.solved else f"*{text}*"


def markdown(outcomes: Sequence[Outcome], numbers: Mapping[str, float]) -> str:
    """The table of all outcomes and what is reached on the problems named hard."""
    methods = list(dict.fromkeys(o.method for o in outcomes))
    head = ["| problem | contacts | " + " | ".join(methods) + " |", "|---" * (2 + len(methods)) + "|"]
    rows: dict[tuple[str, int], list[str]] = {}
    for o in outcomes:
        rows.setdefault((o.problem, o.contacts), []).append(_cell(o))
    body = [f"| {name} | {nc} | " + " | ".join(cells) + " |" for (name, nc), cells in rows.items()]
    count = int(numbers["problems"])
    feet = [
        f"| **{label}** | | " + " | ".join(f"{numbers[f'{key}_{m}']:{form}}" for m in methods) + " |"
        for label, key, form in (
            (f"natural map <= 1e-8, of {count}", "solved", ".0f"),
            (f"README residual <= 1e-8, of {count}", "solved_fclib", ".0f"),
            ("median CPU time of the solved [s]", "median_s", ".2g"),
            ("CPU time of all [s]", "total_s", ".3g"),
        )
    ]
    note = (
        "Natural-map residual / residual of the FCLIB README, CPU time, iterations; in italics where "
        "1e-8 is not reached within the cap. W as published (not symmetrised)."
    )
    return "\n".join([note, "", *head, *body, *feet, "", *_hard_lines(outcomes), ""])


def _hard_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """One sentence per problem named hard: the best that was reached."""
    lines = []
    for name in HARD:
        found = [o for o in outcomes if o.problem == name]
        if not found:
            continue
        least = min(found, key=lambda o: (o.residual > TOLERANCE, o.seconds if o.solved else o.residual))
        verdict = "solved" if least.solved else "not solved; best"
        lines.append(
            f"* `{name}`: {verdict} by {least.method} at {least.residual:.1e} (README: {least.fclib:.1e}) "
            f"in {least.seconds:.2g} s; auto {found[0].residual:.1e} in {found[0].seconds:.2g} s."
        )
    return lines


def _paint(figure: Any, outcomes: Sequence[Outcome]) -> None:
    """Two profiles side by side, one legend."""
    axes = figure.subplots(1, 2, sharey=True)
    count = len({o.problem for o in outcomes})
    panels = [profile(outcomes), profile(outcomes, fclib=True)]
    end = 2.0 * max([float(x[-1]) for panel in panels for x in panel.values() if len(x)] or [10.0])
    titles = ("(a) natural map", "(b) residual of FCLIB (step 1)")
    for ax, panel, title in zip(axes, panels, titles, strict=True):
        for method, ratios in panel.items():
            x = np.concatenate([[1.0], ratios, [end]])
            y = np.concatenate([[0.0], np.arange(1, len(ratios) + 1), [len(ratios)]]) / count
            style = {"color": COLOURS[method], "linestyle": DASHES[method], "label": LABELS[method]}
            ax.step(x, y, where="post", linewidth=1.6 if method == "auto" else 1.0, **style)
        ax.set(xscale="log", xlim=(0.8, end), ylim=(0.0, 1.04), xlabel="CPU time / best CPU time")
        ax.set_title(rf"{title} $\leq 10^{{-8}}$")
    axes[0].set_ylabel(f"fraction of the {count} problems")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)


def write(place: Path, outcomes: Sequence[Outcome]) -> common.Numbers:
    """CSV, table and figure; returns the numbers."""
    numbers = summary(outcomes)
    write_csv(place / "fclib.csv", outcomes)
    (place / "fclib").with_suffix(".md").write_text(markdown(outcomes, numbers), encoding="utf-8")
    common.draw(place / "fclib_profile", 16.0, 8.0, lambda figure: _paint(figure, outcomes))
    return numbers


def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """All methods on all problems; ``quick``: those of at most 25 contacts, with smaller caps."""
    data = data_folder()
    names = index(data, QUICK_CONTACTS if quick else None)
    outcomes = run(data, names, METHODS, 0.5 if quick else BUDGET)
    numbers = write(common.results(__file__, folder).parent, outcomes)
    for method in METHODS:
        print(
            f"{method}: {numbers[f'solved_{method}']:.0f} of {len(names)} to 1e-8 of the natural map, "
            f"{numbers[f'solved_fclib_{method}']:.0f} of the README's residual, median "
            f"{numbers[f'median_s_{method}']:.2g} s"
        )
    print("\n".join(_hard_lines(outcomes)))
    return numbers


if __name__ == "__main__":
    common.command(main)
