"""Sliders: with ipywidgets they call the function again, without it there is one picture."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from nsjax.plot import explore


def draw(**numbers: float) -> dict[str, float]:
    return numbers


def test_without_widgets_there_is_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert explore(draw, speed=(1.0, 3.0, 2.0), mass=(0, 4, 1)) == {"speed": 2.0, "mass": 1.0}


class Slider:
    """As much of a FloatSlider as is used."""

    def __init__(self, **given: Any) -> None:
        self.value, self.given = given["value"], given

    def observe(self, call: Any, names: str) -> None:
        assert names == "value"
        self.call = call

    def move(self, value: float) -> None:
        self.value = value
        self.call(None)


class Output:
    """As much of an Output as is used."""

    def __enter__(self) -> None: ...
    def __exit__(self, *given: Any) -> None: ...
    def clear_output(self, wait: bool) -> None:
        assert wait


def test_sliders_draw_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    widgets = types.SimpleNamespace(FloatSlider=Slider, Output=Output, VBox=list)
    monkeypatch.setitem(sys.modules, "ipywidgets", widgets)
    screen = types.SimpleNamespace(display=seen.append)
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", screen)
    speed, mass, _ = explore(draw, speed=(1.0, 3.0, 2.0), mass=(0.0, 4.0, 1.0))
    assert (speed.given["min"], speed.given["max"], mass.given["description"]) == (1.0, 3.0, "mass")
    speed.move(3.0)
    assert seen == [{"speed": 2.0, "mass": 1.0}, {"speed": 3.0, "mass": 1.0}]
