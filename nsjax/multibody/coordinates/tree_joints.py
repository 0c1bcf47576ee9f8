"""Springs, motors, limits and dry friction of joints of a spatial tree with coordinates in ``q``.

They act directly on the velocities of their joints. Equal loads are stacked in arrays and evaluated as a
batch, so that a program does not grow with their number.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.math import picked
from nsjax.multibody.loads import kind_of
from nsjax.multibody.numbers import side_by_side
from nsjax.multibody.parts import Part
from nsjax.multibody.topology import Link, Topology
from nsjax.types import Array, PyTree, record


class AtOnce:
    """Base class of motor laws without branches, which are evaluated for many joints as a batch."""

    def __call__(self, t: Array, x: Array, rate: Array, own: Any) -> Array:
        """Effort at a joint's coordinate and rate."""
        raise NotImplementedError


@record()
class JointNumbers:
    """Numbers of equal loads, group by group (None for a law of a user), and bounds (k,) of the limits."""

    efforts: tuple[Any, ...]
    bounds: Any


@dataclasses.dataclass(frozen=True)
class OwnJoints:
    """Loads, limits and dry friction of the hinges and slides of a spatial tree.

    Args:
        topology: of the tree.
        limits: all limits ``(joint, "lower" or "upper")`` of the mechanism, in their order.
        drags: names of all joints with dry friction, in their order.
    """

    topology: Topology
    limits: tuple[tuple[str, str], ...]
    drags: tuple[str, ...]

    @functools.cached_property
    def links(self) -> dict[str, Link]:
        """Links by joint; empty in the plane and in absolute coordinates."""
        if self.topology.dimension == 2 or self.topology.coordinates == "absolute":
            return {}
        every = self.topology.link_of_joint.items()
        return {name: link for name, link in every if link.kind.measure is not None}

    @functools.cached_property
    def limits_held(self) -> tuple[tuple[str, str], ...]:
        """Limits of these joints."""
        return tuple(x for x in self.limits if x[0] in self.links)

    @functools.cached_property
    def limits_apart(self) -> tuple[tuple[str, str], ...]:
        """Limits of other joints, and of tendons."""
        return tuple(x for x in self.limits if x[0] not in self.links)

    @functools.cached_property
    def order(self) -> np.ndarray | None:
        """Index of every limit in `limits_held` and then `limits_apart`; None if the order is the same."""
        both = [*self.limits_held, *self.limits_apart]
        found = np.array([both.index(x) for x in self.limits], int)
        return None if np.array_equal(found, np.arange(len(both))) else found

    @property
    def hold_drags(self) -> bool:
        """Whether all dry friction belongs to these joints."""
        return all(name in self.links for name in self.drags)

    @functools.cached_property
    def loads(self) -> tuple[Part, ...]:
        """Springs and motors of these joints."""
        return tuple(x for x in self.topology.loads if x.option("joint") in self.links)

    @functools.cached_property
    def others(self) -> tuple[Part, ...]:
        """All other loads."""
        own = {x.name for x in self.loads}
        return tuple(x for x in self.topology.loads if x.name not in own)

    def _groups(self, p: PyTree) -> list[list[Part]]:
        """Groups of loads of one kind with the same numbers given; a load with a law of a user, which may
        branch, is a group of its own.
        """
        groups: dict[Any, list[Part]] = {}
        for part in self.loads:
            law = part.option("law")
            leaves, structure = jax.tree.flatten(p[part.name])
            alike = (structure, tuple(np.shape(x) for x in leaves)) if _at_once(part) else part.name
            groups.setdefault((part.kind, law, alike), []).append(part)
        return list(groups.values())

    def stacked(self, p: PyTree) -> JointNumbers:
        """Numbers of loads and limits, stacked in arrays."""
        efforts = []
        for alike in self._groups(p):
            efforts.append(side_by_side([p[x.name] for x in alike]) if _at_once(alike[0]) else None)
        bounds = [jnp.asarray(getattr(p[name], which), float) for name, which in self.limits_held]
        return JointNumbers(efforts=tuple(efforts), bounds=jnp.stack(bounds) if bounds else None)

    def efforts(self, t: Array, q: Array, v: Array, p: PyTree, stacked: JointNumbers) -> Array:
        """Forces (nv,) of springs and motors on the velocities of their joints."""
        found, places = [], []
        for alike, own in zip(self._groups(p), stacked.efforts, strict=True):
            links, part = [self.links[x.option("joint")] for x in alike], alike[0]
            x, rate = picked(q, np.array([s.q for s in links])), picked(v, np.array([s.v for s in links]))
            effort = kind_of(part).effort or _none
            if own is None:
                made = effort(part, p[part.name], t, x[0], rate[0])
            else:
                made = jax.vmap(functools.partial(effort, part), (0, None, 0, 0))(own, t, x, rate)
            if made is not None:
                found.append(jnp.broadcast_to(made, x.shape))
                places += [s.v for s in links]
        if not found:
            return jnp.zeros_like(v)
        here = np.arange(v.shape[0])[:, None] == np.array(places)
        return jnp.sum(jnp.where(here, jnp.concatenate(found), 0.0), axis=1)

    def gaps(self, q: Array, stacked: JointNumbers) -> Array:
        """Gaps (k,) of the limits of these joints [m or rad]."""
        sides = np.array([1.0 if which == "lower" else -1.0 for _, which in self.limits_held])
        x = picked(q, np.array([self.links[name].q for name, _ in self.limits_held]))
        return sides * (x - stacked.bounds)

    def rates(self, v: Array) -> Array:
        """Rates (k,) of the joints with dry friction [m/s or rad/s]."""
        return picked(v, np.array([self.links[name].v for name in self.drags]))


def _none(part: Part, numbers: Any, t: Any, x: Any, rate: Any) -> None:
    """Effort of a load that exerts none on a coordinate: None."""


def _at_once(part: Part) -> bool:
    """Whether the law of a spring or motor is one of the package."""
    law = part.option("law")
    return law is None or isinstance(law, AtOnce)
