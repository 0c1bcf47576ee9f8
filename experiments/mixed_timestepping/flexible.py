"""What the figures of the flexible slider-crank of [R&S] share: 20, 21, 24 to 32, 36 to 39, 43 to 45.

The rod has twenty beam elements in a tangential frame unless a figure says otherwise; schemes come with
the paper's memory rule, as in `rigid.py`. Every run is made once per process. Expected numbers lie in
``expected_flexible.json``.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import fem, models
from nsjax.analysis import impulse_steps

from .. import common
from .rigid import NAMES, RIGID, run

ELEMENTS = 20
STEP = 1e-5
BEFORE = 752
"""Steps of 1e-5 s before the first contact, Table 2: all rods and schemes have it in the step that ends at
7.53 ms."""
COLOURS = ("#1f4e9c", "#c8501e", "#1d7a4a", "#8a2f8f", "#b8860b", "#4d4d4d")


@dataclasses.dataclass(frozen=True)
class Rod:
    """How the rod is modelled: elements, or a modal basis made from them; Young's modulus [N/m^2]."""

    elements: int = ELEMENTS
    modes: fem.Modes | None = None
    young: float = 2e11

    def model(self, **data: Any) -> Any:
        """The mechanism with this rod, by the schemes alone: the step of implicit Euler that mixed schemes
        take at contacts of stiff models slows the crank by 0.3 per cent within ten turns at 1e-4 s.
        """
        problem = models.slider_crank_flexible(
            elements=self.elements, modes=self.modes, young=self.young, **data
        )
        return dataclasses.replace(problem, system=dataclasses.replace(problem.system, stiff=False))


def modal(conditions: str, count: int) -> Rod:
    """A rod with so many modes of twenty elements."""
    return Rod(modes=fem.Modes(conditions, count))


@functools.cache
def free_run(rod: Rod, steps: int) -> nsjax.Trajectory:
    """Table 1: running freely from 150 rad/s; Bathe, dt = 1e-5 s, every step saved."""
    return run(rod.model(), RIGID["Bathe"], STEP, steps)


@functools.cache
def driven_run(rod: Rod, name: str, dt: float, steps: int) -> nsjax.Trajectory:
    """Table 2: driven from rest by 1 N m; every step saved."""
    return run(rod.model(**models.TABLE_2), RIGID[name], dt, steps)


def finish_paths(
    beside: str, folder: str | Path | None, numbers: common.Numbers, runs: Mapping[str, nsjax.Trajectory],
    zoom: tuple[float, float], quick: bool, table: str = "",
) -> common.Numbers:  # fmt: skip
    """`common.finish` of a figure of paths: the height of the slider is saved, `paint_paths` draws."""
    arrays = {f"{name}: y": np.asarray(traj["y"]) for name, traj in runs.items()}
    arrays["t"] = np.asarray(next(iter(runs.values())).t)
    return common.finish(
        beside, folder, numbers, arrays, (16.0, 12.0), lambda f: paint_paths(f, runs, zoom),
        table=table, quick=quick,
    )  # fmt: skip


# ---------------------------------------------------------------------------------- numbers of runs


def angles(traj: nsjax.Trajectory, dt: float, instants: tuple[float, ...], name: str) -> common.Numbers:
    """The angles of crank and rod at some instants."""
    q = np.asarray(traj.q)
    return {
        f"{name}: theta{k + 1}({time:g})": float(q[round(time / dt), k])
        for time in instants
        for k in (0, 1)
    }


def contact_numbers(traj: nsjax.Trajectory, name: str) -> common.Numbers:
    """Impulses, forces and the energy of the vibrations of a run."""
    struck = impulse_steps(traj)
    return {
        f"{name}: first impact [s]": float(traj.t[np.flatnonzero(struck)[0]]),
        f"{name}: steps with an impulse": float(struck.sum()),
        f"{name}: largest force [N]": float(np.asarray(traj.force_normal).max()),
        f"{name}: largest elastic energy [J]": float(np.max(traj["elastic_energy"])),
    }


def over_next_damping(values: Mapping[str, float], what: str) -> common.Numbers:
    """Ratios of ``values`` of generalized-alpha between a rho_inf and the next smaller one."""
    pairs = (("gen-alpha 0.8", "gen-alpha 0.5"), ("gen-alpha 0.5", "gen-alpha 0"))
    return {f"{what}, {a} / {b}": values[a] / values[b] for a, b in pairs if a in values and b in values}


def roughness(x: Any) -> float:
    """Standard deviation of the second differences of a series: what oscillates from step to step."""
    return float(np.std(np.diff(np.asarray(x), 2)))


def deviations(traj: nsjax.Trajectory, full: nsjax.Trajectory, name: str) -> common.Numbers:
    """Largest differences in the height of the slider before the first contact and in the whole run."""
    apart = np.abs(np.asarray(traj["y"]) - np.asarray(full["y"]))
    return {
        f"{name}: deviation before the impact [m]": float(apart[: BEFORE + 1].max()),
        f"{name}: deviation up to {traj.t[-1]:.2g} s [m]": float(apart.max()),
    }


# ---------------------------------------------------------------------------------------- drawings


def paint_paths(figure: Any, runs: Mapping[str, nsjax.Trajectory], zoom: tuple[float, float]) -> None:
    """Height of the slider over time, whole and between two instants [ms], and its path."""
    parts = figure.subplot_mosaic([["all", "all"], ["zoom", "path"]])
    for (name, traj), colour in zip(runs.items(), COLOURS, strict=False):
        t, x, y = (np.asarray(a) for a in (traj.t, traj["x"], traj["y"]))
        for part in ("all", "zoom"):
            parts[part].plot(1e3 * t, 1e3 * y, color=colour, label=name)
        parts["path"].plot(x, 1e3 * y, color=colour)
    wall = 1e3 * float(traj.params.clearance)
    for part, axis in parts.items():
        axis.axhline(wall, color="0.55", linewidth=0.6, linestyle=(0, (5, 3)))
        axis.axhline(-wall, color="0.55", linewidth=0.6, linestyle=(0, (5, 3)))
        axis.set(ylim=(-1.15 * wall, 1.15 * wall), ylabel="$y$ [mm]")
        axis.set_xlabel("$x$ [m]" if part == "path" else "time $t$ [ms]")
    parts["all"].set_xlim(0.0, 1e3 * float(traj.t[-1]))
    window = [np.asarray(x["y"])[(x.t >= 1e-3 * zoom[0]) & (x.t <= 1e-3 * zoom[1])] for x in runs.values()]
    heights = 1e3 * np.concatenate(window)
    margin = 0.05 * np.ptp(heights)
    parts["zoom"].set(xlim=zoom, ylim=(heights.min() - margin, heights.max() + margin))
    figure.legend(*parts["all"].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def paint_series(figure: Any, t: np.ndarray, series: Mapping[str, np.ndarray], labels: tuple[str, ...],
                 zoom: tuple[float, float]) -> None:  # fmt: skip
    """Columns of every series over time [s], one above the other; at the right a part of the time."""
    axes = figure.subplots(len(labels), 2, squeeze=False)
    for row, label in enumerate(labels):
        for axis in axes[row]:
            for (name, x), colour in zip(series.items(), COLOURS, strict=False):
                axis.plot(1e3 * t, x[:, row], color=colour, label=NAMES.get(name, name), linewidth=0.7)
            axis.set_xlabel("time $t$ [ms]" if row == len(labels) - 1 else "")
        axes[row, 0].set(ylabel=label, xlim=(0.0, 1e3 * t[-1]))
        inside = (1e3 * t >= zoom[0]) & (1e3 * t <= zoom[1])
        values = np.concatenate([x[inside, row] for x in series.values()])
        axes[row, 1].set(xlim=zoom, ylim=(values.min(), values.max()))
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def paint_pattern(axis: Any, kinds: np.ndarray, names: list[str], title: str) -> None:
    """Entries of a matrix by origin: 0 none, 1 the first element, 2 the second, 3 both, 4 other bodies."""
    from matplotlib.colors import ListedColormap

    colours = ListedColormap(["white", "#d9534f", "#4a7fc1", "#8e5aa8", "#b9b9b9"])
    axis.imshow(kinds, cmap=colours, vmin=0, vmax=4)
    n = len(kinds)
    axis.set_xticks(range(n), names, fontsize=6)
    axis.set_yticks(range(n), names, fontsize=6)
    axis.tick_params(length=0, top=False, right=False)
    axis.set_xticks(np.arange(n + 1) - 0.5, minor=True)
    axis.set_yticks(np.arange(n + 1) - 0.5, minor=True)
    axis.grid(which="minor", color="0.85", linewidth=0.4)
    axis.tick_params(which="minor", length=0, top=False, right=False)
    axis.set_title(title)


def paint_shapes(axis: Any, shapes: np.ndarray, labels: list[str], shift: float, length: float) -> None:
    """Bent rods from nodal coordinates of the unit rod (N, k): deflection over the position."""
    x = np.linspace(0.0, 1.0, 201)
    values = fem.rod_shapes(shapes.shape[0] // 3 - 1, x)[:, 1] @ shapes
    axis.axhline(0.0, color="0.55", linewidth=0.6, linestyle=(0, (5, 3)))
    for k, (label, colour) in enumerate(zip(labels, COLOURS, strict=False)):
        axis.plot(length * (x - shift), values[:, k], color=colour, label=label)
    axis.set(xlabel="$x$ [m]", ylabel="deflection, mass 1")
    axis.legend(loc="best", fontsize=6.5)


# ------------------------------------------------------------------- matrices, assembled by elements


def coordinate_names(elements: int) -> list[str]:
    """Nodal coordinates of a chain of elements."""
    return [f"${name}_{k}$" for k in range(elements + 1) for name in ("u", "w", "w'")]


def element_masses(q: np.ndarray, angle: float, elements: int, p: Any) -> np.ndarray:
    """Mass matrices ``int rho A L' L dx`` of the elements, ``L = (I, R_theta u, R S)``, in the coordinates
    ``(R, theta, nodal)`` (elements, 3 + N, 3 + N), [R&S (123)-(140)].

    Args:
        q: nodal coordinates (N,).
        angle: of the frame.
        elements: of the rod.
        p: parameters of the mechanism.
    """
    unit = fem.unit_rod(elements)
    scale = np.tile([1.0, 1.0, p.rod_length], elements + 1)
    c, s = np.cos(angle), np.sin(angle)
    turn, turned = np.array([[c, -s], [s, c]]), np.array([[-s, -c], [c, -s]])
    found = np.zeros((elements, 3 + unit.size, 3 + unit.size))
    for x, weight, values in zip(unit.points, unit.weights, unit.values, strict=True):
        shape = values * scale
        u = np.array([p.rod_length * x, 0.0]) + shape @ q
        rows = np.concatenate([np.eye(2), (turned @ u)[:, None], turn @ shape], axis=1)
        found[int(x * elements)] += p.rod_mass * weight * rows.T @ rows
    return found


def origins(parts: np.ndarray) -> np.ndarray:
    """Which of two matrices has an entry: 0 none, 1 the first, 2 the second, 3 both."""
    size = np.abs(parts).max()
    return np.asarray((np.abs(parts) > 1e-14 * size) * np.array([1, 2])[:, None, None]).sum(axis=0)
