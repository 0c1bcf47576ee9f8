"""Iterations of Newton's method with the exact and with the simplified derivative, one contact.

One contact of a Delassus matrix with coupling c, sliding fast: ``G_NN = 1``, ``G_NT = G_TN = c``,
``G_TT = 1 + 4 c^2``, ``F = (-1, +-large)``. The simplified derivative [R&S (43)-(45)] lags the friction
force by one iteration, ``x_N <- 1 +- mu c x_N``: linear with the rate ``rho = mu |G_NT| / G_NN``. Sliding
in one direction presses the contact (``+``; the answer ``1 / (1 - rho)`` ceases at ``rho = 1``, beyond
which the contact jams and sticks), in the other it relieves it (``-``; ``1 / (1 + rho)`` is the one answer
for every rho, and beyond ``rho = 1`` the simplified iteration cycles between closed and open). The exact
derivative needs one step, and one more for the regularisation; jammed contacts it leaves to the fallback.

    python -m experiments.contact.iterations [--quick] [--folder F]
"""

from __future__ import annotations

import csv
import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.contact import ContactProblem, ContactSolution, RowGroups, solve

from .. import common
from . import reference_solvers

FRICTION = 0.5
FAST = 1e5
"""Free sliding velocity, so large that the slip branch holds until ``rho = 0.99``."""
TOLERANCE = 1e-11
CAP = 3000
# Iterates between which the rate is measured: the first is beyond the decision on the branch.
EARLY, LATE = 3, 8
ORANGE, BLUE = "#d55e00", "#0072b2"

_exact = jax.jit(functools.partial(solve, method="newton", tolerance=TOLERANCE))
_auto = jax.jit(functools.partial(solve, tolerance=TOLERANCE))
_simplified = jax.jit(
    functools.partial(reference_solvers.solve, method="newton_simplified", tolerance=TOLERANCE)
)


@dataclasses.dataclass(frozen=True)
class Row:
    """Iterations at one ratio, zero if unsolved; ``direction`` +1 presses, -1 relieves.

    ``predicted`` iterations and the rate are those of the simplified derivative, not-a-number where
    there is none; ``x_normal`` is the answer of the method "auto", and ``sticks`` its branch.
    """

    ratio: float
    direction: int
    exact: int
    simplified: int
    predicted: float
    auto: int
    measured_rate: float
    x_normal: float
    sticks: bool


def problem(ratio: float, direction: int) -> ContactProblem:
    """The contact with ``mu |G_NT| / G_NN = ratio``."""
    c = ratio / FRICTION
    return ContactProblem(
        rows=RowGroups.of(nc=1, nt=1),
        delassus=jnp.array([[1.0, c], [c, 1.0 + 4.0 * c * c]]),
        free=jnp.array([-1.0, direction * FAST]),
        friction=jnp.array([FRICTION]),
        mask=jnp.array([True]),
    )


def _count(answer: ContactSolution) -> int:
    return int(answer.iterations) if float(answer.residual) <= TOLERANCE else 0


def _measured_rate(p: ContactProblem) -> float:
    """Mean factor between the increments of successive iterates, which exists beyond ``rho = 1``."""
    normal = [float(_simplified(p, max_iterations=k).x[0]) for k in (EARLY, EARLY + 1, LATE, LATE + 1)]
    first, last = abs(normal[1] - normal[0]), abs(normal[3] - normal[2])
    return float((last / first) ** (1.0 / (LATE - EARLY))) if first > 0.0 else 0.0


def predicted(ratio: float, direction: int) -> float:
    """Iterations until the friction row ``mu rho^(k - 1)`` is below the tolerance.

    The residual is relative to the larger of the answer and the impulse 1 of the contact alone.
    """
    if ratio >= 1.0:
        return float("nan")
    if ratio == 0.0:
        return 2.0
    size = max(1.0 / (1.0 - direction * ratio), 1.0)
    return 1.0 + float(np.ceil(np.log(TOLERANCE * size / FRICTION) / np.log(ratio)))


def run_one(ratio: float, direction: int) -> Row:
    """Both derivatives on one contact."""
    p = problem(ratio, direction)
    exact, simplified = _exact(p, max_iterations=CAP), _simplified(p, max_iterations=CAP)
    auto = _auto(p)
    x = np.asarray(auto.x)
    cycles = direction < 0 and ratio >= 1.0
    return Row(
        ratio=ratio,
        direction=direction,
        exact=_count(exact),
        simplified=_count(simplified),
        predicted=predicted(ratio, direction),
        auto=_count(auto),
        measured_rate=float("nan") if cycles else _measured_rate(p),
        x_normal=float(x[0]),
        sticks=bool(abs(x[1]) < (1.0 - 1e-9) * FRICTION * x[0]),
    )


def _paint(figure: Any, rows: Sequence[Row]) -> None:
    """Iterations on the left, rates on the right; filled: pressing, hollow: relieving."""
    counts, rates = figure.subplots(1, 2)
    inside = np.linspace(0.01, 0.99, 400)
    counts.plot(inside, [predicted(x, 1) for x in inside], color="0.6", label="simplified, predicted")
    rates.plot([0.0, 1.2], [0.0, 1.2], color="0.6", label="predicted")
    for direction, name, marker in ((1, "pressing", "o"), (-1, "relieving", "s")):
        own = [row for row in rows if row.direction == direction]
        size = 3.0 if direction > 0 else 4.5
        style: dict[str, Any] = {"marker": marker, "markersize": size, "linestyle": "none"}
        for key, colour in (("simplified", ORANGE), ("exact", BLUE)):
            shown = [(row.ratio, getattr(row, key)) for row in own if getattr(row, key)]
            face = colour if direction > 0 else "none"
            style |= {"color": colour, "markerfacecolor": face, "markeredgewidth": 0.7}
            counts.plot(*np.array(shown).T, label=f"{key}, {name}", **style)
        style |= {"color": ORANGE, "markerfacecolor": ORANGE if direction > 0 else "none"}
        x, y = [row.ratio for row in own], [row.measured_rate for row in own]
        rates.plot(x, y, label=f"measured, {name}", **style)
    ratio = r"$\mu\,|G_{NT}|/G_{NN}$"
    counts.set(yscale="log", xlim=(-0.03, 1.23), ylim=(1.0, 5000.0), xlabel=ratio, ylabel="iterations")
    rates.set(xlim=(-0.03, 1.23), ylim=(-0.03, 1.3), xlabel=ratio, ylabel="rate, simplified derivative")
    for ax in (counts, rates):
        ax.axvline(1.0, color="0.6", linewidth=0.6, linestyle=":")
        ax.legend(loc="upper left")


def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """The table for ratios 0 to 1.2; ``quick`` looks at fewer of them."""
    ratios = [round(float(x), 10) for x in np.linspace(0.0, 1.2, 7 if quick else 25)]
    rows = [run_one(ratio, direction) for direction in (1, -1) for ratio in ratios]
    path = common.results(__file__, folder)
    with open(path.with_suffix(".csv"), "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([field.name for field in dataclasses.fields(Row)])
        writer.writerows(dataclasses.astuple(row) for row in rows)
    common.draw(path, 16.0, 7.0, lambda figure: _paint(figure, rows))
    print(
        f"{'ratio':>6} {'slip':>4} {'exact':>6} {'simplified':>10} {'predicted':>9} {'auto':>5} {'rate':>8}"
    )
    for row in rows:
        branch = "  sticks" if row.sticks else ""
        print(
            f"{row.ratio:6.2f} {row.direction:+4d} {row.exact or '-':>6} {row.simplified or '-':>10} "
            f"{row.predicted:9.0f} {row.auto or '-':>5} {row.measured_rate:8.4f}{branch}"
        )
    sliding = [row for row in rows if row.ratio < 1.0]
    return {
        "exact_most": float(max(row.exact for row in rows)),
        "exact_solved": float(sum(row.exact > 0 for row in rows)),
        "simplified_most_below_1": float(max(row.simplified for row in sliding)),
        "simplified_solved_below_1": float(sum(row.simplified > 0 for row in sliding)),
        "simplified_solved_from_1": float(sum(row.simplified > 0 for row in rows if row.ratio >= 1.0)),
        "auto_solved": float(sum(row.auto > 0 for row in rows)),
        # without coupling the regularisation of the first step costs an iteration more
        "count_error": max(abs(row.simplified - row.predicted) for row in sliding if row.ratio > 0.0),
        "rate_error": max(abs(row.measured_rate - row.ratio) for row in sliding),
        "rows": float(len(rows)),
    }


if __name__ == "__main__":
    common.command(main)
