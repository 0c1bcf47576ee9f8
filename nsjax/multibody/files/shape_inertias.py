"""Masses and moments of links of a URDF from their collision shapes and a density."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nsjax.core import InputError
from nsjax.core.arguments import numbers
from nsjax.multibody.files.source import listed
from nsjax.multibody.files.texts import Element

HEAVY = 1e12
"""Density with which shapes are compiled [kg/m^3]: the package refuses moments below 1e-15 kg m^2."""

ASSUMED = 1000.0
"""Density of shapes of links without inertial, where the user gives none [kg/m^3]."""

Masses = dict[str, float | None]


def checked_density(density: Any) -> float | None:
    """The density of an argument.

    Raises:
        InputError: for what is no positive number.
    """
    if density is None:
        return None
    found = numbers("read_urdf", "density", density)
    if np.shape(found) != () or not 0.0 < found < math.inf:
        raise InputError(f"read_urdf: density = {density!r}; give a positive number [kg/m^3]")
    return float(found)


def without_inertials(root: Element) -> Masses:
    """Takes incomplete inertials, and those without mass, out of the links with collision shapes; returns
    the masses of these links that the file gives, by their names, None where it gives none.
    """
    found = Masses()
    for link in root.findall("link"):
        inertial = link.find("inertial")
        mass = None if inertial is None else inertial.find("mass")
        try:
            given = 0.0 if mass is None else float(mass.get("value", "0"))
        except ValueError:  # a word, which the package names
            continue
        whole = inertial is not None and inertial.find("inertia") is not None and given > 0.0
        if whole or link.find("collision") is None:
            continue
        if inertial is not None:
            link.remove(inertial)
        found[str(link.get("name"))] = given or None
    return found


def made_heavy(spec: Any, masses: Masses) -> None:
    """Gives the shapes of links the density `HEAVY`."""
    for body in spec.bodies:
        for geom in body.geoms if body.name in masses else ():
            geom.density = HEAVY


def made_as_given(model: Any, masses: Masses, density: float | None) -> list[str]:
    """Gives the links in the model their masses, or those of the density, with moments of their shapes;
    sentences about them. Without a density they are as they are, with `ASSUMED`.
    """
    said = []
    for name, mass in masses.items():
        k = int(model.body(name).id) if name != "world" else 0
        if not k or not model.body_mass[k]:
            continue
        known = ASSUMED if density is None else HEAVY
        factor = (density or ASSUMED) / known if mass is None else mass / float(model.body_mass[k])
        model.body_mass[k] *= factor
        model.body_inertia[k] *= factor
        said.append(f"{name!r} ({model.body_mass[k]:.3g} kg)")
    if not said:
        return []
    return [
        "links without whole inertials have the moments of their collision shapes, of "
        f"{density or ASSUMED:g} kg/m^3 where no mass is given: {listed(said)}"
    ]
