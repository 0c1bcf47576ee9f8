"""Figures as they are tidied, and the faults that are looked for."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.tidy import has_data, tidy
from nsjax.figures import new_figure
from tests.plot.faults import faults

pytest.importorskip("matplotlib")
X = np.linspace(0.0, 1.0, 50)


def figure(rows: int = 1, columns: int = 1, **options):
    made = new_figure(figsize=(5.0, 3.0), layout="constrained")
    return made, np.ravel(made.subplots(rows, columns, **options))


def empty(made, axes):
    axes[0].plot(X, X)
    axes[1].axhline(0.0)  # marks a value, and is no data
    axes[1].plot(X, np.nan * X)


def under_the_legend(made, axes):
    for k in range(4):
        axes[0].plot(X, 10.0 * X * (k + 1), label=f"curve {k}")
    axes[0].twinx().plot(X, np.sin(60.0 * X))
    axes[0].legend(loc="upper left")
    axes[1].plot(X, X)


def short_logarithm(made, axes):
    for k, ends in enumerate(((3.1e-4, 9.9e-4), (2e-3, 2.2e-3))):
        axes[k].loglog(np.geomspace(*ends, 5), np.geomspace(1e-3, 2e-2, 5))
        axes[k].set_box_aspect(3.0)  # narrow


@pytest.mark.parametrize(
    ("paint", "fault"),
    [
        (empty, "panel 1 is empty"),
        (under_the_legend, "panel 0: curves under the legend"),
        (short_logarithm, "over"),
    ],
)
def test_faults_are_found_and_mended(paint, fault: str) -> None:
    made, axes = figure(1, 2)
    paint(made, axes)
    assert any(fault in x for x in faults(made))
    tidy(made)
    assert list(faults(made)) == []


def test_minus_zero_is_a_fault() -> None:
    made, axes = figure()
    axes[0].plot(X, X)
    axes[0].set_title("-0 m")
    assert list(faults(made)) == ["panel 0: -0 m"]
    axes[0].set_title("-0.5 m")
    assert list(faults(made)) == []


def test_rows_without_data_go_and_axes_keep_their_labels() -> None:
    made, axes = figure(2, 2, sharex=True)
    for k in (0, 1):
        axes[k].plot(X, X)
    axes[2].set_xlabel("time (s)")
    tidy(made)
    assert made.axes == [axes[0], axes[1]]
    assert axes[0].get_subplotspec().get_gridspec().get_geometry() == (1, 2)
    assert axes[0].get_xlabel() == "time (s)"
    made.draw_without_rendering()
    assert all(x.label1.get_visible() for x in axes[0].xaxis.get_major_ticks())
    assert not has_data(axes[2])


def test_curves_that_cover_each_other_are_told_apart() -> None:
    made, axes = figure()
    first, second, third = (axes[0].plot(X, y, "o-", markersize=3.0)[0] for y in (X, X + 1e-6, X + 0.3))
    tidy(made)
    assert [x.get_linestyle() for x in (first, second, third)] == ["-", "--", "-"]
    assert second.get_markerfacecolor() == "none"
    assert second.get_markersize() > first.get_markersize() == third.get_markersize()


def test_a_panel_grows_where_no_place_is_free() -> None:
    made, axes = figure()
    x = np.linspace(0.0, 1.0, 3000)
    axes[0].plot(x, np.sin(300.0 * x), label="everywhere")
    axes[0].legend()
    tidy(made)
    assert axes[0].get_ylim()[1] > 1.2
    assert list(faults(made)) == []
