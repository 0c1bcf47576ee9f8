"""``nsjax identify``, and the figure of an estimate."""

from __future__ import annotations

import json

import numpy as np
import pytest

import nsjax
from nsjax import plot
from nsjax.cli import main
from tests.identify.balls import DT, PROBLEM, SCHEME, TIMES, recording
from tests.identify.test_ball import TRAIN

CONFIG = """
model = "cart.py"
scheme = "moreau_theta"
dt = 2e-3
[set]
stiffness = 18.0
[train]
stiffness = "positive"
mass = {transform = "interval", low = 0.0, high = 1.0}
[[data]]
file = "measured.csv"
noise = 0.01
start = {q = [0.0], v = [0.4]}
"""

CART = """
from tests.identify.test_linear import SYSTEM, PARAMS, problem as build


def problem(stiffness=20.0):
    return build(stiffness=stiffness)
"""


@pytest.fixture
def folder(tmp_path):
    from tests.identify.test_linear import TIMES as TIMES_OF_CART
    from tests.identify.test_linear import exact

    (tmp_path / "cart.py").write_text(CART)
    (tmp_path / "config.toml").write_text(CONFIG)
    rows = [f"{t},{100 * y}" for t, y in zip(TIMES_OF_CART, exact(0.0, 0.4), strict=True)]
    rows[3] = rows[3].split(",")[0] + ","  # a missing value
    (tmp_path / "measured.csv").write_text("t,stretch\n" + "\n".join(rows) + "\n")
    return tmp_path


def test_command(folder, capsys):
    out, picture = folder / "found.json", folder / "found.png"
    code = main(["identify", str(folder / "config.toml"), "--output", str(out), "--plot", str(picture)])
    assert code == 0
    text = capsys.readouterr().out
    assert "converged" in text
    assert "95 % interval" in text
    found = json.loads(out.read_text())
    assert found["success"]
    # 1e-4: error of the scheme's phase, as in the tests of the cart
    np.testing.assert_allclose(found["values"], [20.0, 0.3], rtol=1e-4)
    assert len(found["history"]) >= 3
    assert picture.read_bytes().startswith(b"\x89PNG")


BROKEN = [
    ("dt = 2e-3", "dt = 2e-3\nsteps = 3", "unknown entry 'steps'"),
    ('"positive"', '"positiv"', "did you mean 'positive'"), ("high = 1.0", "hgh = 1.0", "hgh"),
    ('"positive"', "3", "transform = 3"), ("measured.csv", "nothing.csv", "No such file"),
    ("noise = 0.01", "noise = 0.01\ncolumns = {stretch = 'strech'}", "did you mean 'stretch'"),
    ("[[data]]", "[data]", r"write each recording as [[data]]"), ("dt = 2e-3", "", "dt is missing"),
    ("[set]", "[set", "config.toml"), ("[train]", "[options]\nstart = 3\n[train]", "did you mean 'starts'"),
    ("[train]", "[options]\nlearning_rate = 0.1\n[train]", "learning_rate = 0.1; only method = 'adam'"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "sentence"), BROKEN)
def test_a_broken_file_is_refused(folder, capsys, old, new, sentence):
    config = folder / "config.toml"
    config.write_text(CONFIG.replace(old, new))
    assert main(["identify", str(config)]) == 2
    assert sentence in capsys.readouterr().err


def test_the_file_that_is_read_is_not_written(folder, capsys):
    config = folder / "config.toml"
    assert main(["identify", str(config), "--output", str(config)]) == 2
    assert "must be different files" in capsys.readouterr().err
    assert config.read_text() == CONFIG


def test_what_cannot_be_identified_is_no_success(folder, capsys):
    config = folder / "config.toml"
    config.write_text(CONFIG.replace('stiffness = "positive"', 'gravity = "positive"'))
    assert main(["identify", str(config)]) == 1
    told = capsys.readouterr()
    assert "not identifiable: gravity and mass together" in told.err
    assert "not identifiable" in told.out


@pytest.mark.slow
def test_figure(tmp_path):
    found = nsjax.identify(PROBLEM, SCHEME, recording(seed=3), TRAIN, dt=DT)
    figure = plot.identification(found, tmp_path / "fit.pdf")
    assert (tmp_path / "fit.pdf").stat().st_size > 5_000
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0].startswith("(a)")
    assert {"(b) measured minus model", "(c) intervals", "(d) correlation"} <= set(titles)
    drawn = figure.axes[0].lines[2]
    np.testing.assert_allclose(drawn.get_ydata(), found.fits[0].measured["y"])
    np.testing.assert_allclose(drawn.get_xdata(), TIMES)
    with pytest.raises(nsjax.InputError, match="recording = 3; give a number from 0 to 0"):
        plot.identification(found, recording=3)
    with pytest.raises(nsjax.InputError, match="figure format"):
        plot.identification(found, tmp_path / "fit.xyz")
