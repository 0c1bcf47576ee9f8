"""Joints of a spatial tree whose coordinates stand in ``q``: what acts in them acts on their velocities.

Springs, motors, limits and dry friction of such joints are numbers side by side, so that a program does
not grow with their number: those alike are evaluated at once.
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
    """Laws of motors that may be evaluated for many joints at once: without branches."""

    def __call__(self, t: Array, x: Array, rate: Array, own: Any) -> Array:
        """Effort at a joint's coordinate and rate."""
        raise NotImplementedError


OWN = "joints side by side"
"""Key of `JointNumbers` in prepared params."""


@record()
class JointNumbers:
    """Numbers of efforts alike, group by group, None of a law of a user; bounds of the limits (k,)."""

    efforts: tuple[Any, ...]
    bounds: Any


@dataclasses.dataclass(frozen=True)
class OwnJoints:
    """Hinges and slides of a tree with the limits ``(joint, "lower" or "upper")`` and dry joints.

    Args:
        topology: of the tree.
        limits, drags: of the mechanism, in their order.
    """

    topology: Topology
    limits: tuple[tuple[str, str], ...]
    drags: tuple[str, ...]

    @functools.cached_property
    def links(self) -> dict[str, Link]:
        """By joint; none but those of joint coordinates in space."""
        if self.topology.dimension == 2 or self.topology.coordinates == "absolute":
            return {}
        every = self.topology.link_of_joint.items()
        return {name: link for name, link in every if link.kind.measure is not None}

    @functools.cached_property
    def limits_held(self) -> tuple[tuple[str, str], ...]:
        """Limits of theirs."""
        return tuple(x for x in self.limits if x[0] in self.links)

    @functools.cached_property
    def limits_apart(self) -> tuple[tuple[str, str], ...]:
        """Limits of other joints, and of tendons."""
        return tuple(x for x in self.limits if x[0] not in self.links)

    @functools.cached_property
    def order(self) -> np.ndarray | None:
        """Place of every limit among those held, then those apart; None if they stand so."""
        both = [*self.limits_held, *self.limits_apart]
        found = np.array([both.index(x) for x in self.limits], int)
        return None if np.array_equal(found, np.arange(len(both))) else found

    @property
    def hold_drags(self) -> bool:
        """Whether all dry friction is theirs."""
        return all(name in self.links for name in self.drags)

    @functools.cached_property
    def loads(self) -> tuple[Part, ...]:
        """Springs and motors in them."""
        return tuple(x for x in self.topology.loads if x.option("joint") in self.links)

    @functools.cached_property
    def others(self) -> tuple[Part, ...]:
        """All other loads."""
        own = {x.name for x in self.loads}
        return tuple(x for x in self.topology.loads if x.name not in own)

    def _alike(self, p: PyTree) -> list[list[Part]]:
        """Loads of one kind of which the same numbers are given; those with a law of a user, which may
        branch, one by one.
        """
        groups: dict[Any, list[Part]] = {}
        for part in self.loads:
            law = part.option("law")
            leaves, structure = jax.tree.flatten(p[part.name])
            alike = (structure, tuple(np.shape(x) for x in leaves)) if _at_once(part) else part.name
            groups.setdefault((part.kind, law, alike), []).append(part)
        return list(groups.values())

    def stacked(self, p: PyTree) -> JointNumbers:
        """Numbers side by side."""
        efforts = []
        for alike in self._alike(p):
            efforts.append(side_by_side([p[x.name] for x in alike]) if _at_once(alike[0]) else None)
        bounds = [jnp.asarray(getattr(p[name], which), float) for name, which in self.limits_held]
        return JointNumbers(efforts=tuple(efforts), bounds=jnp.stack(bounds) if bounds else None)

    def efforts(self, t: Array, q: Array, v: Array, p: PyTree, stacked: JointNumbers) -> Array:
        """Forces (nv,) of springs and motors on the velocities of their joints."""
        found, places = [], []
        for alike, own in zip(self._alike(p), stacked.efforts, strict=True):
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
        """Gaps of the limits that they hold (k,)."""
        sides = np.array([1.0 if which == "lower" else -1.0 for _, which in self.limits_held])
        x = picked(q, np.array([self.links[name].q for name, _ in self.limits_held]))
        return sides * (x - stacked.bounds)

    def rates(self, v: Array) -> Array:
        """Rates of the dry joints (k,)."""
        return picked(v, np.array([self.links[name].v for name in self.drags]))


def _none(part: Part, numbers: Any, t: Any, x: Any, rate: Any) -> None:
    """What a load without effort exerts on a coordinate."""


def _at_once(part: Part) -> bool:
    """Whether the law of a spring or motor is one of the package."""
    law = part.option("law")
    return law is None or isinstance(law, AtOnce)
