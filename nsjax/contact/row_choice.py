"""A contact problem with all rows of every contact as one with only the rows that each contact needs."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.contact.problem import ContactProblem, GivenNormals
from nsjax.core.system import System
from nsjax.math import taken
from nsjax.types import Array


@dataclasses.dataclass(frozen=True)
class RowChoice:
    """Contacts by the rows that they need, as numbers in the order of the problem with all rows.

    A robot with 4 feet, 24 limits of joints and 12 dry joints has 48 of 120 rows left.

    Args:
        rough: contacts with all rows.
        smooth: contacts without friction, which keep their normal.
        bounded: contacts with a given normal impulse, which keep their first tangents.
        nt: tangents of each contact.
        tangents: tangents that each of the bounded contacts keeps.
    """

    rough: tuple[int, ...]
    smooth: tuple[int, ...]
    bounded: tuple[int, ...]
    nt: int
    tangents: int = 1

    @property
    def order(self) -> np.ndarray:
        """Numbers of all contacts in the order of the smaller problem."""
        return np.array([*self.rough, *self.smooth, *self.bounded], int)

    @property
    def all(self) -> bool:
        """Whether all rows are needed."""
        return not self.smooth and not self.bounded

    def rows(self, x: Array) -> Array:
        """Entries (k, ...) of the chosen rows from those of all rows (m, ...)."""
        if self.all:
            return x
        count = len(self.order) * (1 + self.nt)
        block, more = x[:count].reshape(-1, 1 + self.nt, *x.shape[1:]), x.shape[1:]
        parts = [taken(block, np.array(self.rough, int)).reshape(-1, *more)]
        last = taken(block[:, 1 : 1 + self.tangents], np.array(self.bounded, int)).reshape(-1, *more)
        parts += [taken(block[:, 0], np.array(self.smooth, int)), last]
        return jnp.concatenate([*parts, x[count:]])

    def columns(self, x: Array) -> Array:
        """Columns (n, k) of the chosen rows from those of all rows (n, m)."""
        return x if self.all else self.rows(x.T).T

    def problem(
        self, operator: tuple[Array, Array], laws: tuple[Array, Array, GivenNormals | None], nb: int
    ) -> ContactProblem:
        """The problem of the chosen rows.

        Args:
            operator: ``G`` (k, k) and the free velocities (k,) of these rows.
            laws: friction (nc,), mask (nc,) and given normal impulses of all contacts in their order.
            nb: bilateral rows.
        """
        (delassus, free), (friction, mask, given) = operator, laws
        if not self.all:
            friction, mask = (taken(x, self.order) for x in (friction, mask))
            given = self._given(given)
        return ContactProblem(
            nc=len(self.order), nt=self.nt, nb=nb, delassus=delassus, free=free, friction=friction,
            mask=mask, given=given, smooth=len(self.smooth), bounded=len(self.bounded),
        )  # fmt: skip

    def _given(self, given: GivenNormals | None) -> GivenNormals | None:
        """Given normal impulses in the order of the smaller problem."""
        if given is None:
            return None
        order, leads = self.order, np.array(given.leads, int)
        if leads.size:
            leads = np.where(leads < 0, -1, np.argsort(order)[leads])[order]
        return GivenNormals(
            on=given.on[order], normal=taken(given.normal, order), leads=tuple(int(k) for k in leads),
            tangents=self.tangents,
        )  # fmt: skip

    def every(self, problem: ContactProblem, x: Array) -> Array:
        """Impulses of all rows from those of the smaller ``problem``."""
        if self.all:
            return x
        contacts = taken(problem.impulses(x), np.argsort(self.order))
        return jnp.concatenate([contacts.reshape(-1), problem.bilateral(x)])


def row_choice(nc: int, nt: int, smooth: np.ndarray | None, given: GivenNormals | None) -> RowChoice:
    """The rows that contacts need.

    Args:
        nc, nt: contacts, and tangents of each.
        smooth: (nc,) bool, contacts without friction whatever the parameters are; None: all rows are
            chosen.
        given: normal impulses that are given, if any.
    """
    none = np.zeros(nc, bool)
    bounded = none if given is None else np.asarray(given.on)
    if smooth is None or not nt:
        smooth = bounded = none
    smooth = smooth & ~bounded
    tangents = 1 if given is None else given.tangents
    return RowChoice(_numbers(~smooth & ~bounded), _numbers(smooth), _numbers(bounded), nt, tangents)


def chosen_rows(problem: ContactProblem, smooth: np.ndarray) -> tuple[ContactProblem, RowChoice]:
    """The problem with the rows that its contacts need, and their choice among all rows.

    Args:
        problem: the problem with all rows of every contact.
        smooth: (nc,) bool, contacts without friction whatever the parameters are.

    Returns:
        The problem itself, with all rows, if its operator is not an array.
    """
    g: Any = problem.delassus
    array = isinstance(g, jax.Array)
    own = row_choice(problem.nc, problem.nt, smooth if array else None, problem.given)
    if own.all:
        return problem, own
    operator = own.columns(own.rows(g)), own.rows(problem.free)
    return own.problem(operator, (problem.friction, problem.mask, problem.given), problem.nb), own


def _numbers(which: np.ndarray) -> tuple[int, ...]:
    """Numbers of the contacts that are true."""
    return tuple(int(k) for k in np.flatnonzero(which))


def smooth_contacts(system: System, bounded: int) -> np.ndarray:
    """Contacts (nc,) bool of `System.smooth`, which come before the ``bounded`` last ones."""
    last = system.nc - bounded
    number = np.arange(system.nc)
    return (number >= last - system.smooth) & (number < last)
