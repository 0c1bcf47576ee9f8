"""[R&S] Figure 15: masses 1 and 2 of model problem (a), on soft springs, dt = 1e-3 s, 10 s.

All schemes follow the modal solution; the phase error is least for ED-alpha. The third mass on its stiff
spring, 503.3 Hz, is in Figure 16. Below the paper's rows: the error of the positions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import common
from .chain import STIFF_SPRING, accelerations, exact, stiff_run, stiffness
from .rigid import LOOKS, NAMES

SHOWN = ("gen-alpha 0.8", "gen-alpha 0", "Bathe", "ED-alpha 0")
MATRIX = stiffness(STIFF_SPRING, held=False)


def _paint(figure: Any, arrays: dict[str, np.ndarray]) -> None:
    axes = figure.subplots(4, 2, sharex=True, sharey="row")
    t = arrays["t"]
    labels = ("$q$ [m]", r"$\dot q$ [m/s]", r"$\ddot q$ [m/s$^2$]", r"$|\Delta q|$ [m]")
    for row, quantity in enumerate("qva"):
        for mass in (0, 1):
            axis = axes[row, mass]
            axis.plot(t, arrays[f"{quantity}, exact"][:, mass], color="0.75", linewidth=2.4, label="exact")
            for name in SHOWN:
                axis.plot(t, arrays[f"{quantity}, {name}"][:, mass], label=NAMES[name], **LOOKS[name])
    for mass in (0, 1):
        for name in SHOWN:
            off = np.abs(arrays[f"q, {name}"] - arrays["q, exact"])[:, mass]
            axes[3, mass].semilogy(t[1::20], off[1::20], **LOOKS[name])
        axes[3, mass].set(xlabel="time $t$ [s]", xlim=(0.0, t[-1]), ylim=(1e-12, 1e-3))
        axes[0, mass].set_title(f"mass {mass + 1}")
    for axis, label in zip(axes[:, 0], labels, strict=True):
        axis.set_ylabel(label)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.align_ylabels()


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 15; ``quick`` changes nothing, the run is short."""
    t = np.asarray(stiff_run(SHOWN[0]).t)
    reference = exact(t, MATRIX)
    squares = np.linalg.eigvalsh(MATRIX)
    numbers: common.Numbers = {"highest frequency [Hz]": float(np.sqrt(squares[-1]) / (2 * np.pi))}
    arrays = {"t": t} | {f"{name}, exact": x for name, x in zip("qva", reference, strict=True)}
    for name in SHOWN:
        traj = stiff_run(name)
        found = np.asarray(traj.q), np.asarray(traj.v), accelerations(traj)
        arrays |= {f"{quantity}, {name}": x for quantity, x in zip("qva", found, strict=True)}
        numbers[f"{name}: error of q1, q2"] = float(np.abs(found[0] - reference[0])[:, :2].max())
    return common.finish(__file__, folder, numbers, arrays, (16.0, 17.0), lambda f: _paint(f, arrays))


if __name__ == "__main__":
    common.command(main)
