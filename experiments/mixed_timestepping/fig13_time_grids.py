"""[R&S] Figure 13: ED-alpha in time, and the time grids of all schemes beside it.

Nothing is drawn from a table: one real step of every scheme is taken on an oscillator whose force and gap
write down when and where they are evaluated. It is a step in flight, run without compilation, so that
these are plain numbers. For ED-alpha the stages are drawn with their velocities: stage j stands at the
start of the step like t_i itself, but behind a jump, j = i+; the equations [R&S (79)-(82)] are checked
on them.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import Carry, Scheme, State, System, schemes
from nsjax.contact import ContactLaw

from .. import common

START_TIME, STEP = 0.7, 1.2
START_Q, START_V = 0.3, 1.0
"""An oscillator of mass and stiffness one; the step is a fifth of its period, so that jumps show."""

BLUE, RED, GREEN, GREY = "#1f4e9c", "#c0392b", "#2c8a4b", "0.45"


@dataclass(frozen=True)
class Stage:
    """One evaluation of the force: place in the step (0 start, 1 end), position, velocity, acceleration."""

    abscissa: float
    q: float
    v: float
    a: float


@dataclass(frozen=True)
class Grid:
    """A step: stages as last evaluated, where gaps are tested, start and end."""

    stages: tuple[Stage, ...]
    tested: tuple[float, ...]
    start: Stage
    end: Stage


_forces: list[tuple[float, float, float]] = []
_gaps: list[float] = []


def _mass(q: Any, p: Any) -> Any:
    return jnp.eye(1)


def _force(t: Any, q: Any, v: Any, p: Any) -> Any:
    jax.debug.callback(lambda t, q, v: _forces.append((float(t), float(q), float(v))), t, q[0], v[0])
    return -q


def _gap(t: Any, q: Any, p: Any) -> Any:
    jax.debug.callback(lambda t: _gaps.append(float(t)), t)
    return q + 10.0  # never closed


def _law(p: Any) -> ContactLaw:
    return ContactLaw(restitution=0.0, restitution_tangential=0.0, friction=0.0)


OSCILLATOR = System(nq=1, nv=1, nc=1, mass=_mass, force=_force, gap=_gap, law=_law)


def _abscissa(t: float) -> float:
    """Place of a time in the step; the digits beyond 1e-12 are rounding."""
    return round((t - START_TIME) / STEP, 12) + 0.0


def _known(carry: Carry) -> Carry:
    """The carry with the initial acceleration, which the first step of a run would compute."""
    if not hasattr(carry.memory, "stale"):
        return carry
    a = jnp.asarray([-START_Q])
    memory = dataclasses.replace(carry.memory, a=a, algorithmic=a, stale=jnp.asarray(False))
    return dataclasses.replace(carry, memory=memory)


def grid(scheme: Scheme) -> Grid:
    """The time grid of a scheme, recorded in one real step."""
    state = State(t=jnp.asarray(START_TIME), q=jnp.asarray([START_Q]), v=jnp.asarray([START_V]))
    dt = jnp.asarray(STEP)
    with jax.disable_jit():
        constants = scheme.prepare(scheme, OSCILLATOR, (), dt)
        carry = _known(scheme.init(scheme, OSCILLATOR, (), constants, state))
        jax.effects_barrier()
        _forces.clear()
        _gaps.clear()
        carry, _ = scheme.step(scheme, OSCILLATOR, (), constants, carry, dt)
    jax.effects_barrier()
    last = {_abscissa(t): Stage(_abscissa(t), q, v, -q) for t, q, v in _forces}
    q, v = float(carry.state.q[0]), float(carry.state.v[0])
    return Grid(
        stages=tuple(last[x] for x in sorted(last)),
        tested=tuple(sorted({_abscissa(t) for t in _gaps})),
        start=Stage(0.0, START_Q, START_V, -START_Q),
        end=Stage(1.0, q, v, -q),
    )


def grids() -> dict[str, Grid]:
    """Time grids of all registered schemes."""
    return {name: grid(entry.factory()) for name, entry in schemes.REGISTRY.items()}


def exact_velocity(abscissa: np.ndarray) -> np.ndarray:
    """The velocity of the oscillator over the step."""
    phase = STEP * abscissa
    return START_V * np.cos(phase) - START_Q * np.sin(phase)


def ed_alpha_residuals(found: Grid, rho_inf: float = 0.0) -> dict[str, float]:
    """Residuals of [R&S (79)-(82)] at the measured stages."""
    i, end = found.start, found.end
    j, last = found.stages
    alpha, ar = (1 - rho_inf) / (1 + rho_inf), 1 / 6
    half = 0.5 * STEP
    left = {
        "(79)": i.v + STEP * ar * (alpha * (j.a - i.a) - last.a + i.a) - j.v,
        "(80)": i.v + half * (j.a + last.a) - end.v,
        "(81)": i.q + STEP * ar * (alpha * (j.v - i.v) - last.v + i.v) - j.q,
        "(82)": i.q + half * (j.v + last.v) - end.q,
    }
    return {equation: abs(value) for equation, value in left.items()}


def time_line(axis: Any, marks: dict[float, str], height: float) -> None:
    """The axis of time with its marked instants, at ``height``."""
    axis.annotate(
        "",
        (1.13, height),
        (-0.08, height),
        arrowprops={"arrowstyle": "-|>", "color": "black", "linewidth": 0.8},
    )
    axis.text(1.14, height, "$t$", va="center")
    for x, label in marks.items():
        axis.plot(x, height, "k|", markersize=8)
        axis.text(x, height - 0.1, label, ha="center", va="top")


def _paint_stages(axis: Any, found: Grid) -> None:
    j, last = found.stages
    x = np.linspace(-0.05, 1.05, 100)
    axis.plot(x, exact_velocity(x), color=GREY, linewidth=0.7, linestyle=(0, (5, 3)), label="exact")
    axis.plot([j.abscissa, last.abscissa], [j.v, last.v], color=BLUE, linewidth=1.0, label="stages")
    axis.annotate(
        "",
        (0.0, j.v),
        (0.0, found.start.v),
        arrowprops={"arrowstyle": "->", "color": RED, "linewidth": 1.0},
    )
    axis.plot(0.0, found.start.v, "ko", markersize=4)
    axis.plot([j.abscissa, last.abscissa], [j.v, last.v], "o", color=BLUE, markersize=4)
    axis.text(-0.03, found.start.v, "$v_i^+$", ha="right", va="top")
    axis.text(0.03, j.v, "$v_j$", va="bottom")
    axis.text(1.03, found.end.v, "$v_{i+1}^-$", va="center")
    time_line(axis, {0.0: "$i,\\; j = i^+$", 1.0: "$i+1$"}, -0.3)
    axis.set(xlim=(-0.2, 1.2), ylim=(-0.55, 1.3), ylabel="velocity", title="(a) ED-$\\alpha$")
    axis.set_xticks([])
    axis.set_yticks([0.0, 0.5, 1.0])
    axis.legend(loc="upper right", bbox_to_anchor=(1.0, 0.97))
    axis.spines[["top", "right", "bottom"]].set_visible(False)
    axis.tick_params(right=False)


def _paint_grids(axis: Any, found: dict[str, Grid]) -> None:
    names = list(found)[::-1]
    for row, name in enumerate(names):
        axis.plot([0.0, 1.0], [row, row], color="0.8", linewidth=0.8, zorder=0)
        at = [stage.abscissa for stage in found[name].stages]
        axis.plot(at, [row] * len(at), "o", color=BLUE, markersize=4.5, label="force" if row == 0 else None)
        tested = list(found[name].tested)
        axis.plot(
            tested, [row] * len(tested), "s", color=RED, markersize=8, markerfacecolor="none",
            markeredgewidth=0.8, label="gap" if row == 0 else None,
        )  # fmt: skip
    axis.set_yticks(range(len(names)), [name.replace("_", " ") for name in names])
    axis.set_xticks([0.0, 0.5, 1.0], ["$i$", r"$i+\frac{1}{2}$", "$i+1$"])
    axis.set(xlim=(-0.12, 1.12), ylim=(-0.6, len(names) - 0.4))
    axis.set_title("(b) where a step looks at force and gap")
    axis.tick_params(top=False, right=False, left=False)
    axis.spines[["top", "right", "left"]].set_visible(False)


def _paint(figure: Any, found: dict[str, Grid]) -> None:
    left, right = figure.subplots(1, 2)
    _paint_stages(left, found["ed_alpha"])
    _paint_grids(right, found)
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower right", ncols=2)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Measures, saves, draws and compares Figure 13; ``quick`` changes nothing, it is one step each."""
    found = grids()
    numbers: common.Numbers = {}
    for name, one in found.items():
        numbers[f"{name}: first force at"] = one.stages[0].abscissa
        numbers[f"{name}: last force at"] = one.stages[-1].abscissa
        numbers[f"{name}: gap first tested at"] = one.tested[0]
        numbers[f"{name}: stages"] = float(len(one.stages))
    ed = found["ed_alpha"]
    for equation, left in ed_alpha_residuals(ed).items():
        numbers[f"ed_alpha: residual of {equation}"] = left
    numbers["ed_alpha: jump v_j - v_i"] = ed.stages[0].v - ed.start.v
    arrays = {f"{name}: force": [stage.abscissa for stage in one.stages] for name, one in found.items()}
    arrays |= {f"{name}: gap": list(one.tested) for name, one in found.items()}
    arrays["ed_alpha: v"] = [ed.start.v, *(stage.v for stage in ed.stages), ed.end.v]
    return common.finish(__file__, folder, numbers, arrays, (17.0, 7.5), lambda f: _paint(f, found))


if __name__ == "__main__":
    common.command(main)
