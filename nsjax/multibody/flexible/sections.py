"""Sections of beams, given by stiffness and inertia, or by shape and material."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core.checks import is_traced
from nsjax.multibody.number_checks import NEEDED, ONE, POSITIVE, number, record_of
from nsjax.multibody.numbers import Section


def section(
    *, EA: Any, GA: Any, EI: Any, GJ: Any, line_mass: Any = None, line_inertia: Any = None
) -> Section:  # fmt: skip
    """A section by its stiffness and inertia.

    Args:
        EA: stiffness of extension [N].
        GA: stiffness of shear, shear factors included [N]: a number, or two along ``d1`` and ``d2``.
        EI: stiffness of bending [N m^2]: a number, or two about ``d1`` and ``d2``.
        GJ: stiffness of twist [N m^2].
        line_mass: mass per length [kg/m]; None: none, for static analysis.
        line_inertia: rotary inertia per length about ``d1`` and ``d2`` [kg m]: a number, or two; about the
            axis of the beam it is their sum.

    Raises:
        InputError: for a stiffness that is not positive, and for an inertia below zero.

    Example:
        >>> from nsjax.multibody import section
        >>> section(EA=1e4, GA=5e3, EI=100.0, GJ=100.0).EI
        100.0
    """
    given = {"EA": EA, "GA": GA, "EI": EI, "GJ": GJ, "line_mass": line_mass, "line_inertia": line_inertia}
    return record_of(Section, "section", "of a beam", **given)


def _positive(who: str, **given: Any) -> None:
    for name, value in given.items():
        number(who, "of a beam", name, value, form=POSITIVE)


def circular(radius: Any, *, E: Any, nu: Any = 0.3, rho: Any = None, inner: Any = 0.0) -> Section:
    """A circular section or, with an inner radius, a tube.

    Args:
        radius, inner: [m].
        E, nu: Young's modulus [Pa] and Poisson's ratio.
        rho: density [kg/m^3].

    The shear factor of a full circle is ``6 (1 + nu) / (7 + 6 nu)``, after Cowper. For every ``inner`` that
    is not zero it is 0.5, the factor of a thin tube.

    Example:
        >>> from nsjax.multibody import circular
        >>> round(circular(0.005, E=2.1e11, rho=7850.0).EI, 4)
        103.0835
    """
    _positive("circular", radius=radius, E=E)
    given = (("inner", inner, NEEDED), ("nu", nu, NEEDED), ("rho", rho, ONE))
    inner, nu, rho = (number("circular", "of a beam", k, x, form=form) for k, x, form in given)
    _positive("circular", **{"1 + nu": 1.0 + nu})
    area = math.pi * (radius**2 - inner**2)
    second = 0.25 * math.pi * (radius**4 - inner**4)
    tube = not is_traced(inner) and inner != 0.0
    factor = 0.5 if tube else 6.0 * (1.0 + nu) / (7.0 + 6.0 * nu)
    G = E / (2.0 * (1.0 + nu))
    mass = {} if rho is None else {"line_mass": rho * area, "line_inertia": rho * second}
    return section(EA=E * area, GA=factor * G * area, EI=E * second, GJ=2.0 * G * second, **mass)


def rectangular(width: Any, height: Any, *, E: Any, nu: Any = 0.3, rho: Any = None) -> Section:
    """A rectangle: ``width`` along the first section axis ``d1``, ``height`` along ``d2``.

    The shear factor is 5/6; the torsional stiffness is the series of Saint-Venant.

    Args:
        width, height: edges [m].
        E, nu, rho: see `circular`.

    Raises:
        InputError: for edges or a modulus that are not positive.

    Example:
        >>> from nsjax.multibody import rectangular
        >>> flat = rectangular(0.02, 0.01, E=2.1e11, rho=7850.0)
        >>> [round(float(x), 3) for x in flat.EI]
        [350.0, 1400.0]
    """
    _positive("rectangular", width=width, height=height, E=E)
    nu = number("rectangular", "of a beam", "nu", nu, form=NEEDED)
    rho = number("rectangular", "of a beam", "rho", rho, form=ONE)
    _positive("rectangular", **{"1 + nu": 1.0 + nu})
    area, G = width * height, E / (2.0 * (1.0 + nu))
    first, second = width * height**3 / 12.0, height * width**3 / 12.0
    xp = jnp if is_traced((width, height)) else np
    a, b = xp.maximum(width, height), xp.minimum(width, height)
    # terms of the series of the torsion of a rectangle: the next term is below 1e-6 of the first
    torsion_terms = 7
    odd = np.arange(1, 2 * torsion_terms, 2)
    series = xp.sum(xp.tanh(odd * math.pi * a / (2.0 * b)) / odd**5)
    torsion = a * b**3 * (1.0 / 3.0 - 64.0 / math.pi**5 * b / a * series)
    inertia = (
        {} if rho is None else {"line_mass": rho * area, "line_inertia": rho * xp.stack([first, second])}
    )
    return section(
        EA=E * area, GA=5.0 / 6.0 * G * area, EI=E * xp.stack([first, second]), GJ=G * torsion, **inertia
    )
