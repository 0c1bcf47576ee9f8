"""What figures say beside their curves: that a form is reduced, and which runs failed."""

from __future__ import annotations

import importlib
import pathlib
from typing import Any

import numpy as np

from experiments import common
from experiments.nsga import published
from nsjax.cli.commands import available
from nsjax.figures import new_figure
from tests.plot.faults import faults


def test_every_experiment_names_its_quick_form() -> None:
    for name in available():
        main = importlib.import_module(f"experiments.{name.replace('/', '.')}").main
        assert hasattr(main, "__wrapped__"), f"{name}: main is not decorated with common.experiment"
        assert "``quick``" in main.__doc__, name
        said = common.reduced_form(main)
        assert said == "" or 20 < len(said) < 160, (name, said)


def seen(quick: bool, tmp_path: pathlib.Path, capsys: Any) -> tuple[list[str], str]:
    """Texts of the figure that an experiment draws, and its table."""
    texts: list[str] = []

    @common.experiment
    def main(quick: bool = False, folder: Any = None) -> common.Numbers:
        """Draws; ``quick``: one line of 1.5 million. Nothing else."""

        def paint(figure: Any) -> None:
            figure.subplots().plot([0, 1], [0, 1], label="a")
            figure.legend(loc="outside lower center")
            figures.append(figure)

        common.draw(tmp_path / "a", 8.0, 6.0, paint)
        common.report([])
        return {}

    figures: list[Any] = []
    main(quick=quick)
    texts += [x.get_text().replace("\n", " ") for x in figures[0].texts]
    assert list(faults(figures[0])) == []
    return texts, capsys.readouterr().out


def test_a_reduced_form_says_so_on_the_picture_and_above_the_table(tmp_path: Any, capsys: Any) -> None:
    texts, table = seen(True, tmp_path, capsys)
    assert texts == ["quick form: one line of 1.5 million"]
    assert table.startswith("quick form: one line of 1.5 million\n")
    texts, table = seen(False, tmp_path, capsys)
    assert texts == []
    assert "quick" not in table


def test_failed_runs_are_marked() -> None:
    figure = new_figure()
    axis = figure.subplots()
    rng = np.random.default_rng(38)
    steps = sorted(rng.uniform(1e-4, 1e-2, 6))
    axis.loglog(steps, rng.uniform(1e-3, 1.0, 6), "o-", label="DS")
    top = axis.get_ylim()[1]
    published.mark_failures(axis, {"DS": [], "CS": steps[3:], "DSn": steps[5:]})
    crosses = {line.get_label(): line for line in axis.lines if line.get_marker() == "x"}
    assert sorted(crosses) == ["CS fails", "DSn fails"]
    np.testing.assert_array_equal(crosses["CS fails"].get_xdata(), steps[3:])
    # above all curves, one row a variant
    assert axis.transData.inverted().transform(axis.transAxes.transform((0.5, 0.9)))[1] > top
    heights = [line.get_ydata()[0] for line in crosses.values()]
    assert len(set(heights)) == 2
    assert min(heights) > 0.9
