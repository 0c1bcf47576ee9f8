"""Shared functions of all experiments: expected numbers, comparison, results on disk, command line.

An ``expected.json`` lies beside the experiments of a paper, one line a number. An entry holds

* ``print``: the number that the paper prints, with ``factor``: ours lies between a ``factor``-th and
  ``factor`` times it (papers print one or two digits of error norms); without a factor it is shown only;
* ``value`` with ``tolerance`` (relative; absolute for a value of zero), or ``range``: bounds [low, high],
  null for none, where the source only says "below", "above";
* ``kind``, one of ``KINDS``: origin of the number; ``source``: its place in the origin.

None of these numbers was computed by the package, so that every comparison can fail.
"""

from __future__ import annotations

import argparse
import contextlib
import contextvars
import dataclasses
import functools
import json
import os
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from nsjax import Trajectory

Numbers = dict[str, float]

KINDS = {
    "print": "printed by a paper, whose place its source names first",
    "words": "a paper's statement in words or in a drawing, whose place its source names first; the bounds "
    "are our reading",
    "theory": "closed form, order of a scheme, or a property that holds exactly: the source says which",
    "independent": "event-driven integration or another computation of its own kind",
    "prototype": "a program written for the specification, before the package: [P] of the guide's sources",
    "own": "a bound of our own: quality asked for, cost, or a behaviour that was observed",
}
"""Origins of expected numbers, from the strongest to the weakest. A number with ``print`` and ``factor`` is
compared with the print as well, for every kind of its value.
"""


class Main(Protocol):
    """Signature of the ``main`` of an experiment."""

    def __call__(self, quick: bool = False, folder: str | Path | None = None) -> Numbers: ...


@dataclass(frozen=True)
class Row:
    """One compared number; ``difference`` is relative, absolute for a value of zero or a range.

    One that was not ``computed`` is missed like one that is not finite, but a quick form may leave it out.
    """

    name: str
    asked: str
    ours: float
    difference: float
    passed: bool
    source: str
    computed: bool = True


def load_expected(
    beside: str | Path, experiment: str = "", *, file: str = "expected*.json", without: str | None = None
) -> dict[str, dict[str, Any]]:
    """Expected numbers of one experiment; those that a paper prints have ``print``.

    Args:
        beside: path of the experiment's module, or of one in its folder.
        experiment: name of the experiment's module; that of ``beside`` if not given.
        file: name or pattern of the files in the folder.
        without: text; numbers whose names contain it are left out.
    """
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(Path(beside).parent.glob(file)):
        found |= json.loads(path.read_text(encoding="utf-8")).get(experiment or Path(beside).stem, {})
    return {name: entry for name, entry in found.items() if without is None or without not in name}


def _compare_print(name: str, ours: float, entry: Mapping[str, Any]) -> Row:
    """The row of a printed number; ``difference`` is relative."""
    value, factor = float(entry["print"]), float(entry["factor"])
    asked, passed = f"{value:.2g} to a factor {factor:g}", value / factor <= ours <= value * factor
    return Row(f"{name} (print)", asked, ours, abs(ours / value - 1.0), passed, str(entry["source"]))


def _compare_one(name: str, ours: float, entry: Mapping[str, Any]) -> Row:
    """The row of a value or range."""
    if "range" in entry:
        low, high = entry["range"]
        faults = [0.0 * ours, 0.0 if low is None else low - ours, 0.0 if high is None else ours - high]
        difference = float(np.max(faults))
        ends = ("-inf" if low is None else f"{low:.5g}", "inf" if high is None else f"{high:.5g}")
        asked, passed = f"in [{ends[0]}, {ends[1]}]", difference == 0.0
    else:
        value, tolerance = float(entry["value"]), float(entry["tolerance"])
        difference = abs(ours - value) / (abs(value) or 1.0)
        asked = f"{value:.6g} +- {tolerance:.2g}{'' if value == 0.0 else ' rel.'}"
        passed = difference <= tolerance
    return Row(name, asked, ours, difference, passed, str(entry["source"]))


def compare(numbers: Mapping[str, float], expected: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """One row per expected number, and one per printed number. A missing number counts as not-a-number and
    fails.
    """
    rows = []
    for name, entry in expected.items():
        ours = numbers.get(name, np.nan)
        found = [_compare_print(name, ours, entry)] if "factor" in entry else []
        found.append(_compare_one(name, ours, entry))
        rows += [dataclasses.replace(row, computed=name in numbers) for row in found]
    return rows


_WATCHED: contextvars.ContextVar[tuple[list[Row], bool] | None] = contextvars.ContextVar(
    "watched", default=None
)


@contextlib.contextmanager
def watched(quick: bool = False) -> Iterator[list[Row]]:
    """Context that collects all rows that `report` prints in it.

    Args:
        quick: whether the experiment runs in its quick form, which may leave out numbers: these are listed
            as not computed and left out of the rows.
    """
    rows: list[Row] = []
    token = _WATCHED.set((rows, quick))
    try:
        yield rows
    finally:
        _WATCHED.reset(token)


def missed(rows: list[Row]) -> str:
    """``"2 of 7 numbers missed: a, b"``; empty if none is."""
    names = [row.name for row in rows if not row.passed]
    return f"{len(names)} of {len(rows)} numbers missed: {', '.join(names)}" if names else ""


def report(rows: list[Row]) -> str:
    """Prints the rows as a table (asked, ours, difference) and returns it."""
    seen, quick = _WATCHED.get() or ([], False)
    absent = [row for row in rows if quick and not row.computed]
    rows = [row for row in rows if row not in absent]
    seen += rows
    width = max((len(row.name) for row in rows), default=4)
    lines = [f"{'number':{width}}  {'asked':>26}  {'ours':>13}  {'difference':>10}"]
    for row in rows:
        verdict = "" if row.passed else "  MISSED"
        lines.append(
            f"{row.name:{width}}  {row.asked:>26}  {row.ours:13.6g}  {row.difference:10.2g}{verdict}"
        )
    if _REDUCED.get():
        lines.insert(0, _REDUCED.get())
    if absent:
        lines.append(f"not computed by the quick form: {', '.join(row.name for row in absent)}")
    table = "\n".join(lines)
    print(table)
    return table


def finish(
    beside: str, folder: str | Path | None, numbers: Numbers, arrays: Mapping[str, Any] | None = None,
    size: tuple[float, float] = (16.0, 7.0), paint: Callable[[Any], None] | None = None, *, table: str = "",
    expected: Mapping[str, Mapping[str, Any]] | None = None, quick: bool = False,
) -> Numbers:  # fmt: skip
    """Saves, draws, prints and compares the results of an experiment; returns its numbers.

    Args:
        beside: path of the experiment's module, which names the results.
        folder: folder for the results; None for ``results/<paper>``.
        numbers, arrays: computed numbers and arrays.
        size: width and height of the figure [cm].
        paint: function that draws on an empty figure; None for none.
        table: text that is printed and saved.
        expected: expected numbers; those of `load_expected` if not given.
        quick: whether the quick form may have left out numbers: only the computed ones are compared.
    """
    path = results(beside, folder)
    if arrays is not None:
        save_data(path, arrays)
    if paint is not None:
        draw(path, *size, paint)
    if table:
        print(table)
        path.with_suffix(".txt").write_text(table + "\n", encoding="utf-8")
    asked = load_expected(beside) if expected is None else expected
    if expected is None and not asked:
        raise KeyError(f"{path.name}: no expected numbers beside {beside}")
    asked = {name: entry for name, entry in asked.items() if not quick or name in numbers}
    if asked:
        report(compare(numbers, asked))
    return numbers


_REDUCED: contextvars.ContextVar[str] = contextvars.ContextVar("reduced", default="")


def reduced_form(main: Main) -> str:
    """Sentence about the quick form of an experiment, from the docstring of its ``main``; empty if the
    quick form changes nothing.
    """
    text = " ".join((main.__doc__ or "").split())
    said = re.search(r"``quick``:? (.+?)\.(?: |$)", text)
    words = "a shorter run of the same kind" if said is None else said[1]
    return "" if words.startswith("changes nothing") else f"quick form: {words}"


def experiment(main: Main) -> Main:
    """Decorator of every ``main`` that marks pictures and table of the quick form as such."""

    @functools.wraps(main)
    def run(quick: bool = False, folder: str | Path | None = None) -> Numbers:
        token = _REDUCED.set(reduced_form(main) if quick else "")
        try:
            return main(quick=quick, folder=folder)
        finally:
            _REDUCED.reset(token)

    return run


def run(problem: Any, scheme: Any, dt: float, steps: int, every: int = 1, **options: Any) -> Trajectory:
    """A run in which all steps went well; ``options`` are further ones of `nsjax.simulate`.

    Raises:
        RunError: if a step failed.
    """
    from nsjax import simulate

    system, params, state = problem
    traj = simulate(system, params, state, scheme, dt=dt, steps=steps, every=every, **options)
    traj.raise_for_status()
    return traj


def results(beside: str, folder: str | Path | None) -> Path:
    """Path of the results of an experiment, without suffix: the name of its module, in the given folder or
    in ``results/<paper>`` below the current one, which is made if missing.
    """
    module = Path(beside)
    path = Path("results") / module.parent.name if folder is None else Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    return path / module.stem


def reference_data(name: str) -> Path:
    """Place of data of others: in ``NSJAX_DATA``, or in ``shared/data`` beside the checkout."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("NSJAX_DATA", beside)) / name


def save_data(path: Path, arrays: Mapping[str, Any]) -> None:
    """Saves named arrays as ``.npz``."""
    plain: dict[str, Any] = {name: np.asarray(values) for name, values in arrays.items()}
    np.savez_compressed(path.with_suffix(".npz"), **plain)


def new_figure(width: float, height: float) -> Any:
    """An empty matplotlib figure [cm] without a window, in the style of all figures.

    Raises:
        ImportError: without matplotlib; names the extra.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'nsjax[plot]'") from error
    return Figure(figsize=(width / 2.54, height / 2.54), layout="constrained")


STYLE: Any = {
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.linewidth": 0.6,
    "lines.linewidth": 0.8,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "xtick.top": True,
    "ytick.right": True,
    "legend.frameon": False,
    "mathtext.fontset": "cm",
}


def draw(path: Path, width: float, height: float, paint: Callable[[Any], None]) -> None:
    """Saves the figure that ``paint`` draws, of the given size [cm], as ``.png``. Panels without data, of
    quick forms, are left out, and a line above the others describes the quick form.
    """
    figure = new_figure(width, height)
    from matplotlib import rc_context

    from .tidy import tidy

    with rc_context(STYLE):
        paint(figure)
        if _REDUCED.get():
            mark = textwrap.fill(_REDUCED.get(), int(6.5 * width))
            figure.suptitle(mark, fontsize=7, color="#c8501e")
        tidy(figure)
        figure.savefig(path.with_suffix(".png"), dpi=200)


def mark_failures(axis: Any, failed: Mapping[str, tuple[str, Any]]) -> None:
    """Draws crosses for failed runs at the upper edge of logarithmic axes, one row per scheme.

    Args:
        axis: axes with their curves.
        failed: colour and abscissas (step sizes, for instance) by the name of the scheme.
    """
    rows = [(name, colour, x) for name, (colour, x) in failed.items() if len(x)]
    for k, (name, colour, x) in enumerate(rows):
        axis.plot(
            x, [0.97 - 0.04 * k] * len(x), "x", transform=axis.get_xaxis_transform(),
            color=colour, markersize=5, markeredgewidth=1.2, label=f"{name} fails",
        )  # fmt: skip
    if rows:
        low, high = axis.get_ylim()
        axis.set_ylim(low, high * (high / low) ** (0.06 * (1 + len(rows))))


def command(main: Main) -> None:
    """The command line of an experiment: ``--quick`` and ``--folder``."""
    import nsjax

    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a shorter run of the same kind")
    parser.add_argument("--folder", help="where results go (default: results/<paper>)")
    given = parser.parse_args()
    nsjax.configure()
    with watched(given.quick) as rows:
        main(quick=given.quick, folder=given.folder)
    raise SystemExit(missed(rows) or 0)
