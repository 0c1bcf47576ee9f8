"""Identification of the slider-crank and of the measured cube."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import common
from experiments.identification import fig_cube_tosses, fig_slider_crank, tosses


def missed(module, name, numbers):
    expected = common.load_expected(module.__file__, name)
    rows = common.compare(numbers, {k: x for k, x in expected.items() if k in numbers})
    return rows, [row for row in rows if not row.passed]


def test_slider_crank(tmp_path, capsys):
    numbers = fig_slider_crank.main(quick=True, folder=tmp_path)
    exact = {k: x for k, x in numbers.items() if not k.startswith("saltation")}
    rows, bad = missed(fig_slider_crank, "fig_slider_crank", exact)
    assert len(rows) == 7  # the Fisher matrix, and the bias of the model
    assert bad == []
    assert numbers["saltation: successful fits of 2"] == 2
    for name in fig_slider_crank.NAMES:
        # two estimates that scatter as they should: their mean lies within three deviations
        assert abs(numbers[f"saltation, {name}: median bias / deviation"]) < 3.0
    assert (tmp_path / "fig_slider_crank.png").stat().st_size > 2_000
    assert (tmp_path / "fig_slider_crank.npz").stat().st_size > 1_000
    assert "Fisher" in capsys.readouterr().out


@pytest.mark.slow
def test_slider_crank_fifty_seeds(tmp_path):
    numbers = fig_slider_crank.main(folder=tmp_path)
    rows, bad = missed(fig_slider_crank, "fig_slider_crank", numbers)
    assert len(rows) == 16
    assert bad == []


@pytest.fixture
def folder(reference_data, monkeypatch):
    if not (reference_data / "cube_toss" / "cube_tosses.npz").is_file():
        pytest.skip(f"no cube_toss in {reference_data}; set NSJAX_DATA to the folder that holds it")
    monkeypatch.setenv("NSJAX_DATA", str(reference_data))
    return reference_data / "cube_toss"


def test_tosses_are_what_their_description_says(folder):
    measured = tosses.read(folder)
    assert len(measured) == 114
    assert tosses.nominal(folder).friction == 0.18
    falls = []
    for toss in measured:
        n = toss.flight
        assert n >= 3
        parabola = np.polyfit(toss.times[:n], toss.position[:n, 2], 2)
        falls.append(-2 * parabola[0])
        np.testing.assert_allclose(parabola[1], toss.start.v[2], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(toss.attitude, axis=1), 1.0, atol=1e-12)
        assert np.all(np.sum(toss.attitude[1:] * toss.attitude[:-1], axis=1) > 0.0)
    # free fall of 9.61 m/s^2 and rest at 0.978 half sides, printed with three digits
    assert np.median(falls) == pytest.approx(9.61, abs=0.02)
    rest = np.median([toss.position[-1, 2] for toss in measured]) / tosses.HALF
    assert rest == pytest.approx(0.978, abs=0.002)


def test_flights_give_the_start(folder):
    # angular velocities of the file are differences of attitudes, 0.04 rad/s from those (median)
    with np.load(folder / "cube_tosses.npz") as file:
        data, offsets = file["data"].astype(float), file["offsets"]
    off = []
    for k, toss in enumerate(tosses.read(folder)):
        rows = data[offsets[k] : offsets[k] + toss.flight]
        off.append(np.linalg.norm(toss.start.v[3:] - np.median(rows[:, 10:13], axis=0)))
        np.testing.assert_allclose(toss.start.q[:3], toss.position[0], atol=1e-3)
    assert np.median(off) < 0.15


def test_recordings_hold_poses(folder):
    toss = tosses.read(folder)[3]
    found = tosses.recording(toss, 0.1, 2, (1e-3, 0.1))
    assert found.times[0] == pytest.approx(2 / 148)
    assert list(found.values) == ["x", "y", "z", "qw", "qx", "qy", "qz"]
    np.testing.assert_array_equal(found.values["z"], toss.position[2 : 2 + 2 * len(found.times) : 2, 2])


def test_without_data_it_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("NSJAX_DATA", str(tmp_path))
    assert fig_cube_tosses.main(folder=tmp_path) == {}
    assert "NSJAX_DATA" in capsys.readouterr().out


@pytest.mark.slow
def test_cube_tosses(folder, tmp_path):
    numbers = fig_cube_tosses.main(folder=tmp_path)
    rows, bad = missed(fig_cube_tosses, "fig_cube_tosses", numbers)
    assert len(rows) >= 4
    assert bad == []
