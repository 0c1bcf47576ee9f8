"""[R&S] Figure 16: mass 3 of model problem (a), on its stiff spring (503.3 Hz), dt = 1e-3 s.

Two samples per period: the fast oscillation, of exact amplitude 9.8e-7 m around the slow motion, cannot be
resolved. Generalized-alpha with rho_inf = 0.8 keeps it for a while with a shift of phase; the others
remove it within a few steps. The fast part of a scheme is its distance from the slow modes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import common
from .chain import GRAVITY, STIFF_SPRING, exact, stiff_run, stiffness
from .rigid import LOOKS, NAMES

SHOWN = ("gen-alpha 1", "gen-alpha 0.8", "gen-alpha 0", "Bathe", "ED-alpha 0")
DRAWN = 61
SPANS = {
    "steps 1 to 15": slice(1, 16),
    "from step 20": slice(20, None),
    "from step 1000": slice(1000, None),
}


def slow_part(t: np.ndarray) -> tuple[np.ndarray, float]:
    """Motion of the third mass without the oscillation of the fast mode, and the amplitude of that."""
    squares, shapes = np.linalg.eigh(stiffness(STIFF_SPRING, held=False))
    load = GRAVITY * shapes.sum(axis=0)
    swing = load / squares * (1 - np.cos(np.sqrt(squares) * t[:, None]))
    rest = shapes[2, 2] * load[2] / squares[2]
    return swing[:, :2] @ shapes[2, :2] + rest, float(abs(rest))


def _paint(figure: Any, fine: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
    axes = figure.subplots(2, 1)
    q3 = exact(fine, stiffness(STIFF_SPRING, held=False))[0][:, 2]
    axes[0].plot(1e3 * fine, 1e6 * q3, color="0.75", linewidth=0.7, label=r"exact, $10^{-4}$ s")
    t = arrays["t"]
    for name in SHOWN[1:]:
        look = {**LOOKS[name], "marker": "o", "markersize": 1.8}
        axes[0].plot(1e3 * t[:DRAWN], 1e6 * arrays[name][:DRAWN], label=NAMES[name], **look)
    for name in SHOWN:
        fast = np.abs(arrays[name] - arrays["slow"])
        largest = fast[:1000].reshape(-1, 5).max(axis=1)
        axes[1].semilogy(t[:1000:5], largest, label=NAMES[name], **LOOKS[name])
    axes[0].set(xlim=(0.0, 60.0), ylabel=r"$q_3$ [$\mu$m]", xlabel="time $t$ [ms]")
    axes[1].set(xlim=(0.0, 1.0), ylabel="fast part of $q_3$ [m]", xlabel="time $t$ [s]", ylim=(1e-13, 1e-5))
    handles, names = axes[0].get_legend_handles_labels()
    more, other = axes[1].get_legend_handles_labels()
    figure.legend([*handles, more[0]], [*names, other[0]], loc="outside lower center", ncols=3)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 16; ``quick`` changes nothing, the run is short."""
    t = np.asarray(stiff_run(SHOWN[0]).t)
    slow, amplitude = slow_part(t)
    numbers: common.Numbers = {"amplitude": amplitude}
    arrays = {"t": t, "slow": slow, "exact": exact(t, stiffness(STIFF_SPRING, held=False))[0][:, 2]}
    for name in SHOWN:
        arrays[name] = np.asarray(stiff_run(name).q)[:, 2]
        for span, rows in SPANS.items():
            fast = np.abs(arrays[name] - slow)[rows].max() / amplitude
            numbers[f"{name}: fast part / amplitude, {span}"] = float(fast)
    shifted = np.abs(arrays["gen-alpha 0.8"] - arrays["exact"])[:16].max() / amplitude
    numbers["gen-alpha 0.8: error / amplitude, steps 1 to 15"] = float(shifted)
    fine = 1e-4 * np.arange(601)
    return common.finish(__file__, folder, numbers, arrays, (16.0, 12.0), lambda f: _paint(f, fine, arrays))


if __name__ == "__main__":
    common.command(main)
