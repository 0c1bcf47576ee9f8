"""The active contacts of a problem as a smaller problem of fixed size."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.contact.branches import Branches
from nsjax.contact.problem import ContactProblem, Factored, GivenNormals
from nsjax.linalg import LOOP_LIMIT
from nsjax.types import Array, record

CAPACITY, MANY = (8, 16), 32
"""Capacity of the smaller problem for each kind of contacts (with all rows; with a normal alone), if a
problem has up to `MANY` of the kind, and if it has more. Bodies touch the ground at few of their points."""


def places(problem: ContactProblem) -> tuple[int, int]:
    """Capacities for contacts with all rows, and for contacts with a normal alone."""
    return _room(problem.rough), _room(problem.smooth)


def _room(count: int) -> int:
    """Capacity for ``count`` contacts of a kind."""
    return min(count, CAPACITY[count > MANY])


def overflows(rough: int, smooth: int, nt: int) -> bool:
    """Whether a system may have more contacts than the capacity, and so many rows that the solver of all
    rows is a large part of its program.
    """
    return rough > _room(rough) and rough * (1 + nt) + smooth > LOOP_LIMIT


def crowded(rough: int, closed: Array) -> bool:
    """Whether more contacts ``closed`` (nc,) bool are closed than the capacity allows."""
    return int(np.sum(np.asarray(closed)[:rough])) > _room(rough)


def gathers(problem: ContactProblem) -> bool:
    """Whether the active contacts of a problem are gathered: it has more contacts than the capacity."""
    return places(problem) != (problem.rough, problem.smooth) and not problem.leading


def fits(problem: ContactProblem) -> Array:
    """Whether all active contacts fit into the capacity."""
    rough, smooth = places(problem)
    last = problem.rough + problem.smooth
    return (jnp.sum(problem.mask[: problem.rough]) <= rough) & (
        jnp.sum(problem.mask[problem.rough : last]) <= smooth
    )


@record()
class Compact:
    """Smaller problem of gathered contacts, with the maps of its rows from and to the whole problem.

    Args:
        problem: the gathered contacts, one in each place; unused places are masked out.
        rough, smooth: (places, contacts) bool, one-hot: the contact of its kind in each place; None: all
            contacts in their order.
        whole: the problem whose contacts are gathered.
    """

    problem: ContactProblem
    rough: Array | None
    smooth: Array | None
    whole: ContactProblem

    def spread(self, x: Array) -> Array:
        """Rows of the smaller problem as rows of the whole one, zero elsewhere."""
        (first, second, _), few = self.problem.ends, self.problem
        rough = x[:first].reshape(few.rough, 1 + few.nt)
        if self.rough is not None:
            rough = jnp.sum(jnp.where(self.rough[:, :, None], rough[:, None, :], 0.0), axis=0)
        parts = [rough.reshape(-1)]
        if few.smooth:
            smooth = x[first:second]
            if self.smooth is not None:
                smooth = jnp.sum(jnp.where(self.smooth, smooth[:, None], 0.0), axis=0)
            parts.append(smooth)
        return jnp.concatenate([*parts, x[second:]])

    def rows(self, x: Array) -> Array:
        """Rows of the smaller problem from those of the whole one, zero in unused places: by a sum instead
        of a gather, whose transpose would be a scatter.
        """
        first, second, _ = self.whole.ends
        rough = x[:first].reshape(self.whole.rough, 1 + self.whole.nt)
        if self.rough is not None:
            rough = jnp.sum(jnp.where(self.rough[:, :, None], rough[None], 0), axis=1)
        parts = [rough.reshape(-1)]
        if self.whole.smooth:
            smooth = x[first:second]
            if self.smooth is not None:
                smooth = jnp.sum(jnp.where(self.smooth, smooth[None], 0), axis=1)
            parts.append(smooth)
        return jnp.concatenate([*parts, x[second:]])

    def contacts(self, x: Array) -> Array:
        """Entries (nc, ...) of the contacts of the smaller problem, zero in unused places."""
        first, second = self.whole.rough, self.whole.rough + self.whole.smooth
        parts = [_picked(self.rough, x[:first])]
        if self.whole.smooth:
            parts.append(_picked(self.smooth, x[first:second]))
        return jnp.concatenate([*parts, x[second:]])

    def branches(self, b: Branches) -> Branches:
        """Branches of the smaller problem from those of the whole one, open in unused places."""
        slip, slope, size = (self.contacts(x) for x in (b.slip, b.slope, b.size))
        return Branches(use=self.rows(b.use) > 0, slip=slip > 0, slope=slope, size=size)


def _picked(place: Array | None, x: Array) -> Array:
    if place is None:
        return x
    return jnp.sum(jnp.where(place.reshape(place.shape + (1,) * (x.ndim - 1)), x[None], 0), axis=1)


def _places(mask: Array, size: int) -> Array | None:
    """One-hot rows (size, n) for the first true entries of ``mask`` (n,); None where all entries fit."""
    if size >= mask.shape[0]:
        return None
    order = jnp.cumsum(mask) - 1
    return mask[None, :] & (order[None, :] == np.arange(size)[:, None])


def _numbers(place: Array | None, count: int) -> Array:
    """Index of the contact in each place (places,)."""
    return jnp.arange(count) if place is None else jnp.sum(place * np.arange(count), axis=1)


def gather(problem: ContactProblem, rough: int, smooth: int) -> Compact:
    """Smaller problem of the first active contacts, as many as there are places, and of all bounded and
    bilateral rows.

    Args:
        problem: dense or `Factored`, as the smaller one is.
        rough, smooth: places for contacts with all rows, and for contacts with a normal alone.
    """
    d, (first, second, _), last = 1 + problem.nt, problem.ends, problem.rough + problem.smooth
    mask = problem.mask
    own = _places(mask[: problem.rough], rough), _places(mask[problem.rough : last], smooth)
    which = _numbers(own[0], problem.rough), _numbers(own[1], problem.smooth)
    rows = (which[0][:, None] * d + np.arange(d)).reshape(-1)
    rows = jnp.concatenate([rows, first + which[1], np.arange(second, problem.free.shape[0])])
    contact = jnp.concatenate([which[0], problem.rough + which[1], np.arange(last, problem.nc)])
    kinds = mask[: problem.rough], mask[problem.rough : last]
    here = [m if x is None else jnp.any(x, axis=1) for x, m in zip(own, kinds, strict=True)]
    taken = jnp.concatenate([*here, mask[last:]])
    given = None
    if problem.given is not None:
        normal = jnp.where(taken, problem.given.normal[contact], 0.0)
        given = GivenNormals(on=taken & jnp.asarray(problem.given.on)[contact], normal=normal)
    g: Any = problem.delassus
    if isinstance(g, Factored):
        g = Factored(wt=g.wt[rows], response=g.response[:, rows])
    else:
        g = problem.matrix[rows][:, rows]
    small = ContactProblem(
        nc=contact.shape[0], nt=problem.nt, nb=problem.nb, delassus=g, free=problem.free[rows],
        friction=problem.friction[contact], mask=taken, given=given, smooth=which[1].shape[0],
        bounded=problem.bounded,
    )  # fmt: skip
    return Compact(problem=small, rough=own[0], smooth=own[1], whole=problem)
