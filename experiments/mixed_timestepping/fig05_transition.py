"""[R&S] Figure 5: from impulsive to non-impulsive reactions, "drift-off" instead of bouncing without end.

The paper's sketch, computed: rigid slider-crank of Table 1 (restitution 0.4), generalized-alpha with
rho_inf = 0.8 in the mixed framework, dt = 1e-5 s. The slider bounces on the upper wall; in the exact motion
infinitely often, up to the accumulation point 9.14563 ms. Computed, an impulse Lambda sends it back, and
the first rebound that does not reach the surface of the wall again ends the sequence: the contact remains
closed, forces lambda take over on velocity level, and the slider rests where that rebound ended, a few
nanometres inside the wall, until the force vanishes at 15.0287 ms.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import schemes
from nsjax.analysis import impulse_steps

from .. import common
from .rigid import UPPER, jumps, loaded, phases, run, table1

STEP = 1e-5
STEPS = 1600
DETAIL = (8.6e-3, 9.1e-3)


def gap_and_rate(traj: nsjax.Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Gap [m] of the upper corners and its rate [m/s] at the saved states, the slider being level."""
    p, q, v = traj.params, np.asarray(traj.q), np.asarray(traj.v)
    rate = p.crank_length * np.cos(q[:, 0]) * v[:, 0] + p.rod_length * np.cos(q[:, 1]) * v[:, 1]
    return np.asarray(p.clearance - np.asarray(traj["y"])), np.asarray(-rate)


def _paint(figure: Any, arrays: dict[str, np.ndarray]) -> None:
    axes = figure.subplots(2, 2)
    t, blue, red = 1e3 * arrays["t"], "#1f4e9c", "#c8501e"
    shown = (arrays["t"] >= DETAIL[0]) & (arrays["t"] <= DETAIL[1])
    axes[0, 0].plot(t, 1e3 * arrays["gap"], color=blue)
    axes[0, 0].set(xlabel="time $t$ [ms]", ylabel="gap $g$ [mm]", xlim=(2.0, 16.0), ylim=(-0.05, 0.5))
    axes[0, 1].plot(t[shown], 1e6 * arrays["gap"][shown], "o-", color=blue, markersize=2.0)
    axes[0, 1].set(ylabel=r"gap $g$ [$\mu$m]", ylim=(-0.3, 0.8))
    axes[1, 1].plot(t[shown], 1e3 * arrays["rate"][shown], "o-", color=blue, markersize=2.0)
    axes[1, 1].set(ylabel=r"gap rate $\dot g$ [mm/s]")
    for name, label, colour in (
        ("impulse", r"$\Lambda$", red),
        ("force impulse", r"$\Delta t\,\lambda$", blue),
    ):
        acting = shown & (arrays[name] > 0.0)
        axes[1, 0].vlines(t[acting], 1e-6, arrays[name][acting], color=colour, label=label)
    axes[1, 0].set(yscale="log", ylim=(1e-5, 1e-2), ylabel="impulse of a step [N s]")
    axes[1, 0].legend(loc="upper right")
    for axis in (axes[0, 1], axes[1, 0], axes[1, 1]):
        axis.set(xlim=(1e3 * DETAIL[0], 1e3 * DETAIL[1]), xlabel="time $t$ [ms]")
    for axis in (axes[0, 0], axes[0, 1], axes[1, 1]):
        axis.axhline(0.0, color="0.55", linewidth=0.6, linestyle=(0, (5, 3)), zorder=0)
    for axis, letter in zip(axes.ravel(), "abcd", strict=True):
        axis.set_title(f"({letter})", loc="left")


def _numbers(traj: nsjax.Trajectory, arrays: dict[str, np.ndarray]) -> common.Numbers:
    t, struck = arrays["t"], np.flatnonzero(impulse_steps(traj))
    stretches = phases(loaded(traj, STEP, UPPER))
    first, behind = stretches[np.argmax(stretches[:, 1] - stretches[:, 0])]
    rest = slice(first, behind - 1)  # the wall lets go within the last loaded step
    return {
        "first impulse [N s]": float(arrays["impulse"][struck[0]]),
        "second impulse [N s]": float(arrays["impulse"][struck[1]]),
        "impulses before the closed phase": float(np.sum(struck < first)),
        "impulses in the closed phase": float(np.sum(struck >= first)),
        "closure [s]": float(t[first]),
        "release [s]": float(t[behind - 1]),
        "largest |gap rate| in the closed phase [m/s]": float(np.abs(arrays["rate"][rest]).max()),
        "least gap in the closed phase [m]": float(arrays["gap"][rest].min()),
        "largest gap in the closed phase [m]": float(arrays["gap"][rest].max()),
        "drift of the gap in the closed phase [m]": float(np.ptp(arrays["gap"][rest])),
    }


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 5; ``quick`` changes nothing, the run is short."""
    traj = run(table1(), schemes.generalized_alpha(0.8), STEP, STEPS)
    gap, rate = gap_and_rate(traj)
    struck = jumps(traj, STEP)
    arrays = {
        "t": np.asarray(traj.t),
        "gap": gap,
        "rate": rate,
        "impulse": struck[:, UPPER].sum(axis=1),
        "force impulse": (np.asarray(traj.impulse_normal) - struck)[:, UPPER].sum(axis=1),
    }
    numbers = _numbers(traj, arrays)
    return common.finish(__file__, folder, numbers, arrays, (16.0, 11.0), lambda f: _paint(f, arrays))


if __name__ == "__main__":
    common.command(main)
