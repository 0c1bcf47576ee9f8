"""Sliders call a function again, or drive a mechanism; without ipywidgets there is one picture."""

from __future__ import annotations

import asyncio
import io
import itertools
import sys
import types
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import nsjax
from nsjax import multibody as mb
from nsjax import schemes
from nsjax.plot import Live, explore, live


def draw(**numbers: float) -> dict[str, float]:
    return numbers


def test_without_widgets_there_is_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert explore(draw, speed=(1.0, 3.0, 2.0), mass=(0, 4, 1)) == {"speed": 2.0, "mass": 1.0}


class Widget:
    """As much of a widget as is used."""

    def __init__(self, **given: Any) -> None:
        self.value, self.given = given.get("value"), given

    def observe(self, call: Any, names: str) -> None:
        assert names == "value"
        self.call = call

    def move(self, value: float) -> None:
        self.value = value
        self.call(None)

    def on_click(self, call: Any) -> None:
        self.press = call


class Output:
    """As much of an Output as is used."""

    def __enter__(self) -> None: ...
    def __exit__(self, *given: Any) -> None: ...
    def clear_output(self, wait: bool) -> None:
        assert wait


def notebook(monkeypatch: pytest.MonkeyPatch, screen: Any) -> None:
    """A screen in place of that of IPython."""
    ipython: Any = types.ModuleType("IPython")
    ipython.version_info = (8, 24)  # which matplotlib reads
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", screen)


def test_sliders_draw_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    widgets = types.SimpleNamespace(FloatSlider=Widget, Output=Output, VBox=list)
    monkeypatch.setitem(sys.modules, "ipywidgets", widgets)
    screen = types.SimpleNamespace(display=seen.append)
    notebook(monkeypatch, screen)
    speed, mass, _ = explore(draw, speed=(1.0, 3.0, 2.0), mass=(0.0, 4.0, 1.0))
    assert (speed.given["min"], speed.given["max"], mass.given["description"]) == (1.0, 3.0, "mass")
    speed.move(3.0)
    assert seen == [{"speed": 2.0, "mass": 1.0}, {"speed": 3.0, "mass": 1.0}]


def cart(limit: float = 4.0) -> nsjax.Problem:
    """A cart between two stops that a force pushes."""
    return mb.assemble(
        mb.body("cart", mass=2.0), mb.slide("rail", "ground", "cart", limits=(-limit, limit)),
        mb.actuator("push", "rail", 0.0),
    )  # fmt: skip


def pushed(control: Any = None, **ranges: Any) -> Live:
    step = nsjax.stepper(cart(), schemes.moreau(), 1e-2, inputs=["push"])
    return live(step, ranges or {"push": (-10.0, 10.0, 4.0)}, control)


def test_a_live_picture_shows_the_steps() -> None:
    """Five steps a picture: the force of the slider, then another one; ``v = sum F t / m``."""
    shown = pushed()
    times, frames = [], [shown.pixels.copy()]
    for force in (4.0, 4.0, -8.0):
        shown.values["push"] = force
        times.append(float(shown.advance().state.t))
        frames.append(shown.pixels.copy())
    np.testing.assert_allclose(times, [0.05, 0.1, 0.15], atol=1e-12)
    carry = shown.step.reset()
    for u in [4.0] * 10 + [-8.0] * 5:
        carry, _ = shown.step.step(carry, u)
    assert float(shown.carry.state.q[0]) == float(carry.state.q[0])
    np.testing.assert_allclose(carry.state.v, 2.0 * 0.1 - 4.0 * 0.05, atol=1e-12)
    assert all(np.any(x != y) for x, y in itertools.pairwise(frames))
    shown.reset()
    np.testing.assert_array_equal(shown.pixels, frames[0])
    assert Image.open(io.BytesIO(shown._repr_png_())).size == frames[0].shape[1::-1]


def test_the_view_holds_where_bodies_have_been() -> None:
    """The window grows with the way to 1.3 m, and stays where the cart comes back."""
    shown = pushed()
    shown.values["push"] = 10.0
    for _ in range(10):
        shown.advance()
    assert shown.bounds is not None
    assert shown.bounds[2] > 0.6
    far, ends = shown.axes, shown.bounds.copy()
    shown.values["push"] = -1.0
    shown.carry = shown.step.reset(state=nsjax.State(t=0.0, q=np.array([0.5]), v=np.zeros(1)))
    shown.advance()
    assert shown.axes is far
    np.testing.assert_array_equal(shown.bounds, ends)


@pytest.mark.slow
def test_sliders_of_a_controller() -> None:
    """A law of two numbers in place of the input: the cart comes to rest at the goal."""

    def law(carry: Any, goal: Any, gain: Any) -> Any:
        return gain * (goal - carry.state.q[0]) - 2.0 * jnp.sqrt(2.0 * gain) * carry.state.v[0]

    shown = pushed(law, goal=(-1.0, 1.0, 0.5), gain=(1.0, 100.0, 80.0))
    for _ in range(40):
        shown.advance()
    np.testing.assert_allclose(shown.carry.state.q, 0.5, atol=1e-3)


def test_the_notebook_gets_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a browser: what is sent to the picture while *play* is on, and after a slider has moved."""
    made: dict[str, Widget] = {}

    def named(kind: str) -> Any:
        def make(children: Any = None, **given: Any) -> Widget:
            made[given.get("description", kind)] = Widget(**given)
            return made[given.get("description", kind)]

        return make

    kinds = ("FloatSlider", "Image", "ToggleButton", "Button", "VBox", "HBox")
    monkeypatch.setitem(sys.modules, "ipywidgets", types.SimpleNamespace(**{x: named(x) for x in kinds}))
    screen = types.SimpleNamespace(display=lambda *x, **more: None)
    notebook(monkeypatch, screen)
    shown = pushed()
    shown._ipython_display_()
    first = made["Image"].value

    async def watch() -> None:
        made["play"].move(True)
        while float(shown.carry.state.t) < 0.099:
            await asyncio.sleep(0.01)
        made["push"].move(-10.0)
        await asyncio.sleep(0.15)
        made["play"].move(False)
        await shown.task

    asyncio.run(watch())
    assert shown.values == {"push": -10.0}
    assert made["Image"].value == shown._repr_png_() != first
    stopped = float(shown.carry.state.t)
    assert stopped > 0.1
    assert float(shown.carry.state.v[0]) < 2.0 * stopped
    made["back to the start"].press(None)
    assert made["Image"].value == first


def test_without_widgets_the_state_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    screen = types.SimpleNamespace(display=lambda data, raw: seen.append(data))
    notebook(monkeypatch, screen)
    pushed()._ipython_display_()
    assert seen[0]["image/png"][1:4] == b"PNG"
    assert "t = 0 s" in seen[0]["text/plain"]
