"""Systems with contacts held closed, whose gaps become constraints."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError, System, nearest
from nsjax.core.arguments import name_list
from nsjax.core.operators import refreshed
from nsjax.core.system import bordered, contact_names
from nsjax.types import Array, PyTree


@dataclasses.dataclass(frozen=True)
class HeldClosed:
    """Constraints of a system, followed by the gaps of its held contacts."""

    system: System
    contacts: tuple[int, ...]

    def constraint(self, t: Array, q: Array, p: PyTree) -> Array:
        """Constraints and gaps (nb + k,)."""
        s = self.system
        gaps = s.gap(t, q, refreshed(s, t, q, p))[np.array(self.contacts)]
        return gaps if not s.nb else jnp.concatenate([s.constraint(t, q, p), gaps])


def chosen_contacts(system: System, names: Sequence[str], who: str) -> tuple[int, ...]:
    """Numbers of contacts given by name.

    Raises:
        InputError: for an unknown name, with the nearest known one.
    """
    known = contact_names(system) if system.nc else ()
    names = name_list(who, "contacts", names)
    for name in names:
        if name not in known:
            what = nearest(str(name), list(known)) if known else "the system has none"
            raise InputError(f"{who}: no contact {name!r}; {what}")
    return tuple(known.index(name) for name in names)


def held_closed(system: System, names: Sequence[str], who: str) -> System:
    """The system with the gaps of the named contacts as its last constraints, and without contacts."""
    contacts = chosen_contacts(system, names, who)
    if not contacts:
        return system
    system = bordered(system)
    labels, own = system.labels, system.labels.constraints
    if own or not system.nb:
        labels = dataclasses.replace(labels, constraints=(*own, *(f"{x}.closed" for x in names)))
    function = HeldClosed(system, contacts).constraint
    return dataclasses.replace(system, nb=system.nb + len(contacts), constraint=function, labels=labels)


def check_positioned(system: System, who: str) -> None:
    """Refuses systems with constraints on velocities alone.

    Raises:
        InputError: names these constraints.
    """
    if system.nh:
        names = ", ".join(system.labels.constraints[-system.nh :]) or f"the last {system.nh} constraints"
        raise InputError(
            f"{who}: {names} hold velocities alone (wheels that roll), so that positions at rest are not "
            "isolated; hold the wheel by a joint, or leave these constraints out"
        )
