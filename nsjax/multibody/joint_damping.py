"""Damping of joints over the velocities of a tree: what schemes may take implicitly."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.coordinates.tree_joints import JointNumbers, OwnJoints
from nsjax.multibody.loads import kind_of as load_kind
from nsjax.multibody.parts import GROUND, Part
from nsjax.multibody.topology import Topology
from nsjax.types import Array, PyTree


@dataclasses.dataclass(frozen=True)
class JointDamping:
    """``D`` of the loads in joints of a tree, ``-d effort / d rate`` of each: of springs with dampers,
    servos and motors with a law; and of free bodies that files damp.

    What pushes in the direction of the rate, and joints that close loops, count nothing: they stay
    explicit. Beyond a limit an effort does not change with the rate, and its part is zero.

    Args:
        topology: of the tree.
        own: its joints in space.
    """

    topology: Topology
    own: OwnJoints

    def of_space(self, t: Array, q: Array, v: Array, p: PyTree, stacked: JointNumbers) -> Array:
        """``D`` (nv,): every joint has velocities of its own."""
        found = jnp.zeros_like(v)
        if self.own.loads:
            efforts = functools.partial(self._efforts, t, q, p, stacked)
            found = _resisting(efforts, v)
        for part, places in self._balls:
            if p[part.name].damping is not None:
                found = found + p[part.name].damping * places
        for part, places in self._free:
            found = found + p[part.name].own * places
        return found

    def _efforts(self, t: Array, q: Array, p: PyTree, stacked: JointNumbers, v: Array) -> Array:
        return self.own.efforts(t, q, v, p, stacked)

    @functools.cached_property
    def _free(self) -> tuple[tuple[Part, np.ndarray], ...]:
        """Loads whose law names the velocities of a free body that it damps, and a mask (nv,) of these."""
        every, found = np.arange(self.topology.sizes[1]), []
        for part in self.own.others:
            body, which = getattr(part.option("law"), "damps", ("", slice(0)))
            link = self.topology.link_of.get(body)
            if link is not None and link.free:
                found.append((part, 1.0 * np.isin(every, every[link.rates][which])))
        return tuple(found)

    @functools.cached_property
    def _balls(self) -> tuple[tuple[Part, np.ndarray], ...]:
        """Springs on balls of the tree, and a mask (nv,) of the velocities of these balls."""
        links, every = self.topology.link_of_joint, np.arange(self.topology.sizes[1])
        found = [(x, links.get(x.option("joint"))) for x in self.own.others]
        return tuple(
            (part, 1.0 * ((every >= link.rates.start) & (every < link.rates.stop)))
            for part, link in found
            if link is not None and link.kind.swivels
        )

    def of_plane(self, scene: Scene, turns: dict[str, int], group: dict[str, str], p: PyTree) -> Array:
        """``D`` (nv, nv): rates of hinges are differences of velocities.

        Args:
            scene: with velocities.
            turns: entries of angles by group.
            group: that of every body.
        """
        links, n = self.topology.link_of_joint, self.topology.sizes[1]
        found = jnp.zeros((n, n))
        for part in self.topology.loads:
            link, effort = links.get(part.option("joint")), load_kind(part).effort
            if link is None or link.kind.measure is None or effort is None:
                continue
            row = np.zeros(n)
            row[link.v] = 1.0
            if link.kind.turns and group[link.parent] != GROUND:
                row[turns[group[link.parent]]] -= 1.0
            x, rate = scene.coordinates(part.option("joint"))
            law = functools.partial(_effort, effort, part, p[part.name], scene.time, x)
            found = found + _resisting(law, rate) * np.outer(row, row)
        return found


def _effort(effort: Callable[..., Any], *given: Any) -> Array:
    """An effort as an array, zero for none."""
    made = effort(*given)
    return jnp.zeros(()) if made is None else jnp.asarray(made, float)


def _resisting(effort: Callable[[Array], Array], rate: Array) -> Array:
    """``-d effort / d rate`` of efforts that depend on their own rates alone, where it is positive."""
    slope = -jax.jvp(effort, (rate,), (jnp.ones_like(rate),))[1]
    return jnp.where(slope > 0.0, slope, 0.0)
