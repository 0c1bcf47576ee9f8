"""Couplings of two coordinates, or of lengths of tendons, by a polynomial."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError
from nsjax.multibody.couplings.coupling_kind import CouplingKind, coupled
from nsjax.multibody.number_checks import number
from nsjax.multibody.numbers import Coupling
from nsjax.multibody.parts import Part


def coupling(name: str, joint: str, of: str | None = None, *, polynomial: Any) -> Part:
    """The coordinate of ``joint`` is a polynomial ``c0 + c1 y + c2 y^2 + ...`` of the coordinate of ``of``.

    Examples are a finger that follows another, a cam with a given law, and a joint fixed at ``c0``. A
    tendon may take the place of a joint, with its length as the coordinate: for a rope of fixed length, or
    two tendons with a constant sum of lengths.

    Args:
        name: of the coupling; its numbers are ``params[name].polynomial``.
        joint, of: names of two hinges, slides or tendons; ``of`` None: ``joint`` is fixed at ``c0``.
        polynomial: (n,) coefficients, at least one, constant term first.

    Raises:
        InputError: for coefficients that are no row of numbers, and as for `gear`.

    Limits: those of `gear`. A tendon of fixed length also pushes; for a rope that may be slack, give the
    tendon ``limits``, see `tendon`. At the shortest possible length of a tendon, the row vanishes.

    Example:
        >>> from nsjax.multibody import coupling
        >>> coupling("tip", "distal", "proximal", polynomial=(0.0, 0.7, 0.1)).option("joints")
        ('distal', 'proximal')
    """
    polynomial = number("coupling", name, "polynomial", polynomial)
    if np.ndim(polynomial) != 1 or not np.shape(polynomial)[0]:
        raise InputError(
            f"coupling {name!r}: polynomial has shape {np.shape(polynomial)}; give coefficients (n,), "
            "constant first"
        )
    return coupled("coupling", name, joint, of, polynomial=polynomial)


def _value(numbers: Coupling, x: Any) -> Any:
    total: Any = 0.0
    factors = jnp.asarray(numbers.polynomial, float)
    for k in reversed(range(factors.shape[0])):  # Horner's scheme
        total = factors[k] + x * total
    return total


COUPLING = CouplingKind(name="coupling", value=_value)
