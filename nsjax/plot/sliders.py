"""Sliders in a notebook, by ipywidgets: for the numbers of a picture, and for a mechanism that moves."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jax import lax

from nsjax import status
from nsjax.core import InputError
from nsjax.core.arguments import check_is
from nsjax.figures import require_matplotlib
from nsjax.jaxtools.owned import compiled_for
from nsjax.motion import Motion, moved
from nsjax.plot.film import FilmAxes
from nsjax.plot.scene import scene
from nsjax.plot.style import RC
from nsjax.stepper import Stepper, StepperCarry


def _check(who: str, ranges: Mapping[str, Any]) -> None:
    for name, given in ranges.items():
        if np.shape(given) != (3,) or not given[0] <= given[2] <= given[1] or not given[0] < given[1]:
            raise InputError(f"{who}: {name} = {given!r}; give (low, high, start), the start between them")


def _sliders(ipywidgets: Any, ranges: Mapping[str, Any], continuous: bool) -> dict[str, Any]:
    steps = 50  # number of intervals of a slider
    return {
        name: ipywidgets.FloatSlider(
            value=start, min=low, max=high, step=(high - low) / steps, description=name,
            continuous_update=continuous, readout_format=".3g",
        )
        for name, (low, high, start) in ranges.items()
    }  # fmt: skip


def explore(draw: Callable[..., Any], **ranges: Any) -> Any:
    """Sliders for the numbers of a function that draws, in a notebook with ``ipywidgets``.

    Releasing a slider calls the function and shows its result. New numbers of a problem do not compile
    again (`Problem.replace`), so that pictures of short runs appear at once.

    Args:
        draw: function that returns the object to show, a figure for instance; its keywords are the names
            of ``ranges``.
        ranges: ``name=(low, high, start)``, one slider each, in the unit of the number.

    Returns:
        The sliders with the picture below them; without ipywidgets (extra ``notebook``) the picture of the
        starting values alone, so that a notebook still runs.

    Raises:
        InputError: for an invalid range.

    Example:
        >>> from nsjax.plot import explore
        >>> def draw(restitution):
        ...     return f"a picture for {restitution}"
        >>> shown = explore(draw, restitution=(0.0, 1.0, 0.4))
    """
    if not callable(draw):
        raise InputError(f"explore: draw = {draw!r}; give a function of the numbers that returns a figure")
    _check("explore", ranges)
    try:
        import ipywidgets
        from IPython.display import display
    except ImportError:
        return draw(**{name: float(start) for name, (_, _, start) in ranges.items()})
    sliders = _sliders(ipywidgets, ranges, continuous=False)
    shown = ipywidgets.Output()

    def show(change: Any = None) -> None:
        with shown:
            shown.clear_output(wait=True)
            display(draw(**{name: x.value for name, x in sliders.items()}))

    for x in sliders.values():
        x.observe(show, names="value")
    show()
    return ipywidgets.VBox([*sliders.values(), shown])


class Live:
    """A mechanism that moves while it is watched.

    Args:
        step, ranges, control, rate: as `live` takes them.
    """

    def __init__(
        self, step: Stepper, ranges: Mapping[str, Any], control: Callable[..., Any] | None, rate: float
    ) -> None:
        self.step, self.ranges, self.control, self.rate = step, dict(ranges), control, rate
        self.steps = max(1, round(1.0 / (rate * step.substeps * float(step.dt))))
        self.values = {name: float(start) for name, (_, _, start) in ranges.items()}
        self.task: asyncio.Task[None] | None = None
        self.reset()

    def __repr__(self) -> str:
        return f"Live({self.step!r}, t = {float(self.carry.state.t):.4g} s)"

    def reset(self) -> None:
        """Goes back to the start of the problem."""
        self.carry = self.step.reset()
        self.bounds: np.ndarray | None = None
        self.axes: FilmAxes | None = None
        self._see()

    def advance(self) -> StepperCarry:
        """The steps to the next frame, with the inputs or arguments ``values``; returns the new carry."""
        self.carry = _advanced(self.step, self.control, self.steps, self.carry, self.values)
        self._see()
        return self.carry

    def _see(self) -> None:
        """Draws the state, with those that have reached farthest unseen, so that the view holds all."""
        problem, state = self.step.problem, self.carry.state
        now = np.asarray(state.q)
        if self.bounds is None:
            self.farthest = np.broadcast_to(now, (2 * len(self._look(now[None]).low), len(now))).copy()
        seen = self._look(np.concatenate([now[None], self.farthest]))
        ends = _ends(seen)
        grown = ends > (-np.inf if self.bounds is None else self.bounds)
        if np.any(grown):
            self.bounds = ends if self.bounds is None else np.maximum(self.bounds, ends)
            self.farthest[grown] = now
            self.axes = None
        name = problem.system.name.replace("_", " ") or "system without a name"
        bits = status.describe(int(self.carry.status))
        drawn = scene(seen, name, "; ".join(cause for cause, _ in bits))
        import matplotlib

        with matplotlib.rc_context(RC):
            if self.axes is None:
                self.axes = FilmAxes(drawn)
            self.axes.scene = drawn
            self.pixels = self.axes.pixels(0)

    def _look(self, q: np.ndarray) -> Motion:
        t = np.full(len(q), float(self.carry.state.t))
        return moved(self.step.problem.system, self.step.problem.params, t, q)

    def _repr_png_(self) -> bytes:
        from PIL import Image

        held = io.BytesIO()
        Image.fromarray(self.pixels).save(held, format="png", compress_level=1)
        return held.getvalue()

    def _ipython_display_(self) -> None:
        from IPython.display import display

        try:
            import ipywidgets
        except ImportError:
            display({"image/png": self._repr_png_(), "text/plain": repr(self)}, raw=True)
            return
        display(self._widgets(ipywidgets))

    def _widgets(self, ipywidgets: Any) -> Any:
        """Sliders, buttons and the picture."""
        image = ipywidgets.Image(value=self._repr_png_(), format="png")
        play = ipywidgets.ToggleButton(value=False, description="play")
        back = ipywidgets.Button(description="back to the start")
        sliders = _sliders(ipywidgets, self.ranges, continuous=True)

        def read(change: Any = None) -> None:
            self.values = {name: float(x.value) for name, x in sliders.items()}

        def show() -> None:
            image.value = self._repr_png_()

        async def run() -> None:
            while play.value:
                begun = time.monotonic()
                self.advance()
                show()
                # messages of sliders and buttons arrive meanwhile
                await asyncio.sleep(max(0.01, 1.0 / self.rate - (time.monotonic() - begun)))

        def toggled(change: Any) -> None:
            if play.value and (self.task is None or self.task.done()):
                self.task = asyncio.ensure_future(run())

        def restart(button: Any) -> None:
            self.reset()
            show()

        for x in sliders.values():
            x.observe(read, names="value")
        play.observe(toggled, names="value")
        back.on_click(restart)
        return ipywidgets.VBox([ipywidgets.HBox([play, back]), *sliders.values(), image])


def _ends(seen: Motion) -> np.ndarray:
    """How far bodies reach in the first row, against and along each axis (2 d,)."""
    bodies = [x for x in seen.shapes if x.role != "ground"] or list(seen.shapes)
    points = np.concatenate([x.world[0] for x in bodies])
    found: np.ndarray = np.concatenate([-np.nanmin(points, axis=0), np.nanmax(points, axis=0)])
    return found


@compiled_for("step", "control", "count")
def _advanced(
    step: Stepper, control: Callable[..., Any] | None, count: int, carry: StepperCarry, values: Any
) -> StepperCarry:
    """The carry after some steps with constant arguments."""

    def once(_: Any, carry: StepperCarry) -> StepperCarry:
        u = (values or None) if control is None else control(carry, **values)
        return step.step(carry, u)[0]

    return lax.fori_loop(0, count, once, carry)


def live(
    step: Stepper, ranges: Mapping[str, Any], control: Callable[..., Any] | None = None, *,
    rate: float = 20.0,
) -> Live:  # fmt: skip
    """A mechanism that moves in a notebook while its inputs are changed by sliders (extra ``notebook``).

    The button *play* starts it: steps go on in the time of the clock, or as fast as the machine can, and
    the picture, drawn as the frames of films, shows the state. Other cells can be executed meanwhile.

    Args:
        step: a stepper (`nsjax.stepper`) of a problem with shapes.
        ranges: ``{name: (low, high, start)}``, a slider for each, in the unit of the number: of all inputs
            of the stepper, or of the arguments of ``control``.
        control: function ``(carry, **numbers) -> u`` of arrays of JAX, for every step: a controller whose
            arguments have the sliders, such as its gains or its goal; None: the sliders are the inputs.
        rate: pictures a second.

    Returns:
        A `Live`, which a notebook shows; without ipywidgets as a picture of its state. ``advance()`` goes
        on by one picture, ``reset()`` goes back to the start, ``carry`` is the state, ``values`` are the
        numbers of the sliders.

    Raises:
        InputError: for an invalid range, inputs without one, a system without shapes, and without
            matplotlib.

    Limits: forces of contacts are not drawn; `nsjax.animate` draws them after a run. A remote notebook
    gets some 20 kB a picture.

    Example:
        >>> import nsjax
        >>> from nsjax import models, plot, schemes
        >>> crank = nsjax.stepper(models.slider_crank(), schemes.moreau(), 1e-3, inputs=["torque"])
        >>> shown = plot.live(crank, {"torque": (-0.2, 0.2, 0.0)})
        >>> round(float(shown.advance().state.t), 3)
        0.05
    """
    check_is("live", "step", step, Stepper)
    require_matplotlib()
    _check("live", ranges)
    wrong = next((x for x in (*step.names, *ranges) if (x in step.names) != (x in ranges)), None)
    if control is None and wrong is not None:
        raise InputError(
            f"live: {wrong!r} is an input without a range, or a range without an input; give a range to "
            f"each of {', '.join(step.names) or 'no inputs'}, or control="
        )
    if not rate > 0.0:
        raise InputError(f"live: rate = {rate!r} pictures a second; it must be positive")
    return Live(step, ranges, control, rate)
