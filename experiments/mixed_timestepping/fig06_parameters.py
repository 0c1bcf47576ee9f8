"""[R&S] Figure 6: stability region of generalized-alpha in the plane (alpha_m, alpha_f), points A to E.

beta and gamma are those of [R&S (98), (102)]. The shaded region is measured: at every node of a grid
the spectral radius of the real step stays below one for all dt/T. It equals the triangle of
[R&S (100)], alpha_m <= alpha_f <= 1/2. Curves: lambda_3 = -1 (alpha_f = 1/2), lambda_12 = -1
(alpha_m = alpha_f), lambda_3 = lambda_12 (alpha_f = (alpha_m + 1)/3, rho_inf from 0 to 1) and HHT
(alpha_m = 0), all at infinite frequency, [R&S (101), (103)].
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import schemes
from nsjax.analysis import amplification_matrix, spectral_radius

from .. import common

POINTS = {"A": (-1.0, 0.5), "B": (-1.0, 0.0), "C": (-1.0, -0.5), "D": (0.5, 0.5), "E": (0.0, 1 / 3)}
FAR = 2.0e4 * np.pi
MARGIN = 1e-6
"""A radius up to one plus this counts as stable: rounding where three roots meet."""


def roots_far(alpha_m: float, alpha_f: float) -> tuple[float, float]:
    """Mean of the double root and third root of the real step at dt/T = 1e4.

    The third root is the eigenvalue nearest to its limit; the trace gives the rest, because single
    roots are ill-conditioned where they meet.
    """
    scheme = schemes.generalized_alpha(alpha_m=alpha_m, alpha_f=alpha_f)
    matrix = np.asarray(amplification_matrix(scheme, FAR))
    roots = np.linalg.eigvals(matrix)
    third = roots[np.argmin(np.abs(roots - alpha_f / (alpha_f - 1.0)))].real
    return float(0.5 * (np.trace(matrix) - third)), float(third)


def stability(quick: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Grid (no node on a boundary or at gamma = 0), largest radius over dt/T, radius at dt/T = 1e4."""
    count, waves = (20, 13) if quick else (90, 25)
    edge = np.linspace(-1.2, 0.6, count + 1)
    centre = 0.5 * (edge[1:] + edge[:-1])
    omegas = 2.0 * np.pi * np.geomspace(1e-2, 1e4, waves)

    def matrices(alpha_m: Any, alpha_f: Any) -> Any:
        return amplification_matrix(schemes.generalized_alpha(alpha_m=alpha_m, alpha_f=alpha_f), omegas)

    m, f = np.meshgrid(centre + 1e-3, centre + 1.7e-3, indexing="ij")
    found = jax.jit(jax.vmap(matrices))(jnp.asarray(m.ravel()), jnp.asarray(f.ravel()))
    radii = np.max(np.abs(np.linalg.eigvals(np.asarray(found))), axis=-1).reshape(count, count, waves)
    return m, f, np.max(radii, axis=-1), radii[..., -1]


def _numbers(m: np.ndarray, f: np.ndarray, largest: np.ndarray) -> common.Numbers:
    measured, asked = largest <= 1.0 + MARGIN, (m <= f) & (f <= 0.5)
    numbers = {
        "nodes that contradict (100)": float(np.sum(measured != asked)),
        "stable share of the plane": float(np.mean(measured)),
    }
    for name, point in POINTS.items():
        scheme = schemes.generalized_alpha(alpha_m=point[0], alpha_f=point[1])
        double, third = roots_far(*point)
        numbers[f"{name}: lambda_12"], numbers[f"{name}: lambda_3"] = double, third
        numbers[f"{name}: radius at dt/T = 1e4"] = float(spectral_radius(scheme, FAR))
    return numbers


def _paint(figure: Any, m: np.ndarray, f: np.ndarray, largest: np.ndarray, far: np.ndarray) -> None:
    axis = figure.subplots()
    shown = np.where(largest <= 1.0 + MARGIN, far, np.nan)
    shade = axis.pcolormesh(f, m, shown, cmap="Blues", vmin=-0.35, vmax=1.35, rasterized=True)
    shade.set_clim(-0.35, 1.35)
    bar = figure.colorbar(shade, ax=axis, label=r"$\rho$ at $\Delta t/T = 10^4$")
    bar.ax.set_ylim(0.0, 1.0)
    line = np.linspace(-1.2, 0.6, 2)
    axis.plot([0.5, 0.5], line, "k-", label=r"$\lambda_3^\infty = -1$")
    axis.plot(line, line, "k--", label=r"$\lambda_{1,2}^\infty = -1$")
    axis.plot((line + 1) / 3, line, color="#c8501e", linestyle=":", linewidth=1.3,
              label=r"$\lambda_3^\infty = \lambda_{1,2}^\infty$")  # fmt: skip
    axis.plot([0.0, 0.5], [-1.0, 0.5], color="#c8501e", linewidth=1.3,
              label=r"generalized-$\alpha$, $0 \leq \rho_\infty \leq 1$")  # fmt: skip
    axis.plot([0.0, 0.5], [0.0, 0.0], color="#2c8a4b", linewidth=1.3, label="HHT")
    for name, (alpha_m, alpha_f) in POINTS.items():
        axis.plot(alpha_f, alpha_m, "ko", markersize=3.5)
        offset = (7, -4) if name == "D" else (4, 4)
        axis.annotate(f"${name}$", (alpha_f, alpha_m), offset, textcoords="offset points")
    axis.set(xlabel=r"$\alpha_f$", ylabel=r"$\alpha_m$", xlim=(-1.2, 0.6), ylim=(-1.2, 0.6))
    axis.legend(loc="upper left")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 6; ``quick``: a coarser grid."""
    m, f, largest, far = stability(quick)
    numbers = _numbers(m, f, largest)
    arrays = {"alpha_m": m, "alpha_f": f, "largest_radius": largest, "radius_far": far}
    return common.finish(
        __file__, folder, numbers, arrays, (13.0, 10.0), lambda x: _paint(x, m, f, largest, far)
    )


if __name__ == "__main__":
    common.command(main)
