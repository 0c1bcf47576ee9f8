"""Rows of the constraints of a mechanism: their names, and the redundant rows that are left out."""

from __future__ import annotations

import dataclasses
import functools

import jax.numpy as jnp
import numpy as np

from nsjax.math import taken
from nsjax.multibody.joints import kind_of
from nsjax.multibody.presence import Presence
from nsjax.multibody.topology import Topology
from nsjax.types import Array


@dataclasses.dataclass(frozen=True)
class ConstraintRows:
    """Constraint rows in the order: joints that close loops, prescribed motions, couplings, and rows on
    velocities alone.
    """

    topology: Topology
    presence: Presence

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all constraint rows, including those left out."""
        of, closures, d = self.topology.of, self.topology.closures, self.topology.dimension
        found = [x for name in closures for x in kind_of(of[name]).row_names(of[name], d)]
        motions = (f"{name}.motion" for name in self.presence.motions)
        return (*found, *motions, *self.presence.couplings, *self.rates)

    @functools.cached_property
    def rates(self) -> tuple[str, ...]:
        """Names of the rows on velocities alone, which come last."""
        parts = [self.topology.of[name] for name in self.topology.closures]
        return tuple(x for part in parts for x in kind_of(part).rate_names(part, self.topology.dimension))

    @property
    def dropped(self) -> bool:
        """Whether any row is left out."""
        return bool(self.presence.dropped)

    @functools.cached_property
    def present(self) -> tuple[str, ...]:
        """Names of the rows that are not left out."""
        return tuple(x for x in self.names if x not in self.presence.dropped)

    @functools.cached_property
    def apart(self) -> tuple[list[int], list[int]]:
        """Numbers of the kept rows on positions and of those on velocities, each counted from zero."""
        first = len(self.names) - len(self.rates)
        kept = [k for k, name in enumerate(self.names) if name in self.present]
        return [k for k in kept if k < first], [k - first for k in kept if k >= first]

    def all_of(self, x: Array) -> Array:
        """Multipliers of all constraint rows, zero for rows left out, from those of the kept rows."""
        if not self.dropped:
            return x
        places = [self.present.index(x) if x in self.present else len(self.present) for x in self.names]
        return taken(jnp.concatenate([x, jnp.zeros(1)]), np.array(places))
