"""[R&S] Figure 38: mass matrix of the whole mechanism, with the joint at the crank and the slider.

The matrix that the model uses, beside one assembled here element by element: rod in the coordinates of
Figure 37, the joint ``R = l_1 (cos theta_1, sin theta_1)``, crank and slider added.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import fem, models

from .. import common
from .fig37_mass_assembly import BENT
from .flexible import coordinate_names, element_masses, paint_pattern

ANGLES = (0.7, -0.3, 0.1)
ELEMENTS = 2


def by_hand(p: Any, deformation: np.ndarray) -> np.ndarray:
    """Mass matrix in the coordinates (theta_1, theta_2, theta_3, nodal without the clamped node)."""
    nodal = np.concatenate([np.zeros(3), deformation])
    rod = element_masses(nodal, ANGLES[1], ELEMENTS, p).sum(axis=0)
    c, s = np.cos(ANGLES[1]), np.sin(ANGLES[1])
    turn, turned = np.array([[c, -s], [s, c]]), np.array([[-s, -c], [c, -s]])
    end = fem.unit_rod(ELEMENTS).tip * np.tile([1.0, 1.0, p.rod_length], ELEMENTS + 1)
    u = np.array([p.rod_length, 0.0]) + end @ nodal
    slider = np.concatenate([np.eye(2), (turned @ u)[:, None], turn @ end], axis=1)
    rod = rod + p.slider_mass * slider.T @ slider
    rod[2, 2] += p.rod_inertia - p.rod_mass * p.rod_length**2 / 12
    n = len(nodal)
    joint = np.zeros((3 + n, 3 + n - 3))  # (R, theta_2, nodal) from (theta_1, theta_2, theta_3, nodal)
    joint[:2, 0] = p.crank_length * np.array([-np.sin(ANGLES[0]), np.cos(ANGLES[0])])
    joint[2, 1] = 1.0
    joint[6:, 3:] = np.eye(n - 3)
    found = joint.T @ rod @ joint
    found[0, 0] += p.crank_inertia + p.crank_mass * p.crank_length**2 / 4
    found[2, 2] += p.slider_inertia
    return np.asarray(found)


def _paint(figure: Any, mass: np.ndarray) -> None:
    kinds = np.where(np.abs(mass) > 1e-14 * np.abs(mass).max(), 4, 0)
    kinds[:3, :] = np.where(kinds[:3, :] > 0, 3, 0)
    kinds[:, :3] = np.where(kinds[:, :3] > 0, 3, 0)
    names = [r"$\theta_1$", r"$\theta_2$", r"$\theta_3$", *coordinate_names(ELEMENTS)[3:]]
    paint_pattern(figure.subplots(), kinds, names, "purple: coupling to the angles, grey: deformation")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares Figure 38; ``quick`` changes nothing."""
    system, p, _ = models.slider_crank_flexible(elements=ELEMENTS)
    ready = system.prepare(p)
    deformation = BENT[3:]
    mass = np.asarray(system.mass(jnp.asarray([*ANGLES, *deformation]), ready))
    straight = np.asarray(system.mass(jnp.zeros(system.nq), ready))
    other = by_hand(p, deformation)
    numbers: common.Numbers = {
        "M11 [kg m^2]": float(straight[0, 0]),
        "M22, straight rod [kg m^2]": float(straight[1, 1]),
        "M33 [kg m^2]": float(mass[2, 2]),
        "coupling of theta3": float(np.abs(np.delete(mass[2], 2)).max()),
        "model - assembled by hand": float(np.abs(mass - other).max() / np.abs(mass).max()),
        "smallest eigenvalue > 0": float(np.linalg.eigvalsh(mass)[0] > 0.0),
        "deformation block, bent - straight": float(np.abs(mass - straight)[3:, 3:].max()),
    }
    arrays = {"mass": mass, "straight": straight, "by_hand": other}
    return common.finish(__file__, folder, numbers, arrays, (10.0, 10.5), lambda f: _paint(f, mass))


if __name__ == "__main__":
    common.command(main)
