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

from nsjax.linalg import matvec
from nsjax.math import picked
from nsjax.multibody import planar_vectors as plane
from nsjax.multibody.loads import tension
from nsjax.multibody.parts import Part
from nsjax.multibody.topology import LOADS, Link, Topology
from nsjax.types import Array, PyTree, record


@record()
class Stacked:
    """Numbers of efforts alike, group by group, and bounds of the limits (k,)."""

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
        return {name: link for name, link in every if link.kind in ("hinge", "slide")}

    @property
    def hold_limits(self) -> bool:
        """Whether all limits are theirs."""
        return all(name in self.links for name, _ in self.limits)

    @property
    def hold_drags(self) -> bool:
        """Whether all dry friction is theirs."""
        return all(name in self.links for name in self.drags)

    @functools.cached_property
    def loads(self) -> tuple[Part, ...]:
        """Springs and motors in them."""
        return tuple(x for x in self.topology.all_of(*LOADS) if x.option("joint") in self.links)

    @functools.cached_property
    def others(self) -> tuple[Part, ...]:
        """All other loads."""
        own = {x.name for x in self.loads}
        return tuple(x for x in self.topology.all_of(*LOADS) if x.name not in own)

    def _alike(self, p: PyTree) -> list[list[Part]]:
        """Loads of one kind, with one law, of which the same numbers are given."""
        groups: dict[Any, list[Part]] = {}
        for part in self.loads:
            leaves, structure = jax.tree.flatten(p[part.name])
            shapes = tuple(np.shape(x) for x in leaves)
            groups.setdefault((part.kind, part.option("law"), structure, shapes), []).append(part)
        return list(groups.values())

    def stacked(self, p: PyTree) -> Stacked:
        """Numbers side by side."""

        def beside(*x: Any) -> Array:
            return jnp.stack([jnp.asarray(y, float) for y in x])

        efforts = tuple(jax.tree.map(beside, *(p[x.name] for x in alike)) for alike in self._alike(p))
        bounds = [jnp.asarray(getattr(p[name], which), float) for name, which in self.limits]
        return Stacked(efforts=efforts, bounds=jnp.stack(bounds) if bounds and self.hold_limits else None)

    def efforts(self, t: Array, q: Array, v: Array, p: PyTree, stacked: Stacked) -> Array:
        """Forces (nv,) of springs and motors on the velocities of their joints."""
        found, places = [], []
        for alike, own in zip(self._alike(p), stacked.efforts, strict=True):
            links = [self.links[x.option("joint")] for x in alike]
            x, rate = picked(q, np.array([s.q for s in links])), picked(v, np.array([s.v for s in links]))
            made = effort(alike[0], own, t, x, rate)
            if made is not None:
                found.append(jnp.broadcast_to(made, x.shape))
                places += [s.v for s in links]
        if not found:
            return jnp.zeros_like(v)
        return matvec(jnp.asarray(np.eye(v.shape[0])[:, places]), jnp.concatenate(found))

    def gaps(self, q: Array, stacked: Stacked) -> Array:
        """Of the limits (k,)."""
        sides = np.array([1.0 if which == "lower" else -1.0 for _, which in self.limits])
        x = picked(q, np.array([self.links[name].q for name, _ in self.limits]))
        return sides * (x - stacked.bounds)

    def rates(self, v: Array) -> Array:
        """Of the dry joints (k,)."""
        return picked(v, np.array([self.links[name].v for name in self.drags]))


def effort(part: Part, own: Any, t: Array, x: Array, rate: Array) -> Any:
    """Of springs or motors alike (k,); None: none."""
    law = part.option("law")
    if part.kind == "joint_spring":
        extension = plane.plus(x, plane.minus(own.rest))
        if law is None:
            return plane.minus(tension(part, own, extension, rate))
        return -jax.vmap(law)(extension, rate, own.own)
    if law is None:
        return own.value
    return jax.vmap(law, (None, 0, 0, 0))(t, x, rate, own.own)
