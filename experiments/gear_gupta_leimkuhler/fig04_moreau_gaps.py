"""[S&U&S] Figure 4: gaps and gap rates of the four corners for restitution 0.1, Moreau's rule.

Same run as Figure 3 (a): (8)-(13), gaps (14)-(17), dt = 1e-5 s. The slider does not turn, so corners
act in pairs (1, 2) and (3, 4) whose gaps add up to twice the clearance. Moreau's rule enforces
contact on velocity level, with the directions of the midpoint: in a closed contact the gap rate at
the step ends is slightly negative and the gap drifts about linearly to negative values.

The drift is measured in the loaded phase before the deepest penetration, from a tenth after its
beginning (when the impacts have died out) to its end. Unloaded, the slider sinks a little further
before it turns back.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np

import nsjax

from .. import common
from .fig03_moreau_path import CLEARANCE, STEP, run

RESTITUTION = 0.1
COLOURS = ("#1f4e9c", "#c8501e")


def gap_rates(traj: nsjax.Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Rates of all gaps at the saved states (rows, nc), and their rates of change by curvature alone,
    ``W_N' v`` and ``v' (d2 g / dq2) v``.
    """
    gap = traj.system.gap
    assert gap is not None

    def rate(t: Any, q: Any, v: Any, p: Any) -> Any:
        return jax.jvp(lambda x: gap(t, x, p), (q,), (v,))[1]

    def both(t: Any, q: Any, v: Any, p: Any) -> Any:
        return jax.jvp(lambda x: rate(t, x, v, p), (q,), (v,))

    found = jax.jit(jax.vmap(both, in_axes=(0, 0, 0, None)))(traj.t, traj.q, traj.v, traj.params)
    return np.asarray(found[0]), np.asarray(found[1])


def drift_phase(force: np.ndarray, gap: np.ndarray) -> slice:
    """Rows of the drift: the last phase under load before the least gap, without its first tenth."""
    loaded = force[: int(np.argmin(gap)) + 1] > 0.0
    end = loaded.size - int(np.argmax(loaded[::-1]))
    length = int(np.argmin(loaded[:end][::-1]))
    return slice(end - length + length // 10, end)


def drift_rate(curvature: np.ndarray) -> np.ndarray:
    """Gap rate ``dt (1 - e) / (2 (1 + e)) k`` of a persistent contact under Moreau's rule.

    With ``x_i = W_M' v_i`` before the contact solve of step i, the law gives ``W_M' v_{i+1} = -e x_i``,
    and the next midpoint lies one step further along the curved gap: ``x_{i+1} = -e x_i + dt k``. So
    ``x = dt k / (1 + e)``; the gap changes by ``dt (x - e x) / 2`` per step, and the rate at the step
    end, half a step after the midpoint, is the same: ``-e x + dt k / 2``.
    """
    return STEP * (1.0 - RESTITUTION) / (2.0 * (1.0 + RESTITUTION)) * curvature


def _numbers(traj: nsjax.Trajectory, rates: np.ndarray, drift: slice) -> common.Numbers:
    gap, time = np.asarray(traj.gap), np.asarray(traj.t)
    line = np.polyval(np.polyfit(time[drift], gap[drift, 0], 1), time[drift])
    mean = (gap[drift, 0][-1] - gap[drift, 0][0]) / (time[drift][-1] - time[drift][0])
    return {
        "theta3_max": float(np.max(np.abs(traj.q[:, 2]))),
        "difference within pairs": float(np.max(np.abs(gap[:, ::2] - gap[:, 1::2]))),
        "sum of opposite gaps - 2 c": float(np.max(np.abs(gap[:, 0] + gap[:, 2] - 2 * CLEARANCE))),
        "gap_min, upper corners": float(gap[:, 0].min()),
        "gap_min, lower corners": float(gap[:, 2].min()),
        "drift of gap [m/s]": float(mean),
        "deviation from line / drift": float(np.max(np.abs(gap[drift, 0] - line)) / np.ptp(line)),
        "gap rate in drift, least": float(rates[drift, 0].min()),
        "gap rate in drift, largest": float(rates[drift, 0].max()),
    }


SHOWN = (0.039, 0.056)
"""Ends of the detail [s]."""


def paint_gaps(figure: Any, traj: nsjax.Trajectory, rates: np.ndarray) -> Any:
    """Gaps and their rates over time, and those of the upper corners between two instants; the axes."""
    time, gap = np.asarray(traj.t), np.asarray(traj.gap)
    axes = figure.subplots(2, 2, sharex="col")
    names = ("$k = 1, 2$", "$k = 3, 4$")
    for pair, (colour, name) in enumerate(zip(COLOURS, names, strict=True)):
        axes[0, 0].plot(time, 1e3 * gap[:, 2 * pair], color=colour, label=name)
        axes[1, 0].plot(time, rates[:, 2 * pair], color=colour, linewidth=0.5)
    axes[0, 1].plot(time, 1e6 * gap[:, 0], color=COLOURS[0])
    axes[1, 1].plot(time, 1e3 * rates[:, 0], color=COLOURS[0], label="computed")
    for axis in axes.ravel():
        axis.axhline(0.0, color="0.55", linewidth=0.6, linestyle=(0, (5, 3)), zorder=0)
    axes[0, 0].set(ylabel="gap $g_k$ [mm]", ylim=(-0.15, 2.7), xlim=(0.0, time[-1]))
    axes[0, 0].legend(loc="upper center", ncols=2)
    axes[1, 0].set(ylabel=r"gap rate $\dot g_k$ [m/s]", xlabel="time $t$ [s]")
    axes[0, 1].set(ylabel=r"detail: $g_{1,2}$ [$\mu$m]", ylim=(-50.0, 25.0))
    axes[0, 1].set_xlim(SHOWN)
    axes[1, 0].set_xticks(np.linspace(0.0, 0.2, 5), ["0", "0.05", "0.1", "0.15", "0.2"])
    axes[1, 1].set_xticks([0.04, 0.045, 0.05, 0.055], ["0.04", "0.045", "0.05", "0.055"])
    axes[1, 1].set(ylabel=r"detail: $\dot g_{1,2}$ [mm/s]", xlabel="time $t$ [s]", ylim=(-12.0, 12.0))
    for axis, letter in zip(axes.ravel(), "abcd", strict=True):
        axis.set_title(f"({letter})", loc="left")
    figure.align_ylabels()
    return axes


def _paint(
    figure: Any, traj: nsjax.Trajectory, rates: np.ndarray, drift: slice, predicted: np.ndarray
) -> None:
    detail = paint_gaps(figure, traj, rates)[1, 1]
    detail.plot(np.asarray(traj.t)[drift], 1e3 * predicted, "k:", linewidth=1.4, label="closed form")
    detail.legend(loc="upper left", bbox_to_anchor=(0.12, 1.0))


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 4; ``quick`` changes nothing, the run is short."""
    traj = run(RESTITUTION)
    rates, curvature = gap_rates(traj)
    drift = drift_phase(np.asarray(traj.force_normal)[:, 0], np.asarray(traj.gap)[:, 0])
    numbers = _numbers(traj, rates, drift)
    predicted = drift_rate(curvature[drift, 0])
    numbers["largest |gap rate / prediction - 1|"] = float(
        np.max(np.abs(rates[drift, 0] / predicted - 1.0))
    )
    numbers["drift / mean prediction"] = numbers["drift of gap [m/s]"] / float(predicted.mean())
    arrays = {"t": traj.t, "gap": traj.gap, "gap_rate": rates}
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 10.0), lambda f: _paint(f, traj, rates, drift, predicted)
    )


if __name__ == "__main__":
    common.command(main)
