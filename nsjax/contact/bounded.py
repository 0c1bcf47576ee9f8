"""Bounded rows as friction: a force up to a given bound is that of a contact whose normal force is given.

With ``W_N = 0``, ``mu = 1`` and the normal force ``bound``, Coulomb's law on the rate ``u_D`` of a bounded
row (`System.dry_friction`) is its law, and with two tangents that of a pair of rows that share a disc
(`System.dry_friction_discs`)::

    lambda_D = prox_{|.| <= bound}(lambda_D - r u_D)

so that every scheme, the contact solver with its certificate, and the driver of derivatives (stick, slip,
reversal) meet bounded rows as contacts that are always closed. The bound is a force: it makes ``bound dt``
in a step and nothing in an impact. The bound of a row that follows a contact
(`System.dry_friction_contact`) is a multiple of its normal impulse, in impacts, too: the normal impulse of
the row is that of the contact, and ``mu`` the multiple. With a law of a user (`System.dry_friction_law`)
the contact solver has that law in place of the disc.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.contact.problem import ContactLaw
from nsjax.core.operators import jacobian
from nsjax.core.row_groups import Bounded, GivenForces, RowGroup, RowGroups
from nsjax.core.scheme import QUANTITIES, Output
from nsjax.core.system import System
from nsjax.jaxtools.owned import kept
from nsjax.math import taken
from nsjax.types import Array, PyTree, record


def rows_of_laws(system: System) -> np.ndarray:
    """Bounded rows (laws, tangents) int of each law: one, or the two of a disc; ``nd`` where none is."""
    nd, discs = system.nd, system.dry_friction_discs
    both = [(k, k + 1 if k in discs else nd) for k in range(nd) if k - 1 not in discs]
    return np.array(both, int).reshape(-1, 2)[:, : 2 if discs else 1]


def by_law(system: System, x: Array) -> Array:
    """Values (laws, tangents, ...) of the laws from those (nd, ...) of the rows, zero for none."""
    if not system.dry_friction_discs:
        return x[:, None]
    rows = rows_of_laws(system)
    found = taken(jnp.concatenate([x, jnp.zeros_like(x[:1])]), rows.reshape(-1))
    return found.reshape(*rows.shape, *x.shape[1:])


def by_row(system: System, x: Array) -> Array:
    """Values (nd,) of the bounded rows from those (laws, tangents) of the laws."""
    if not system.dry_friction_discs:
        return x[:, 0]
    return taken(x.reshape(-1), places_of_rows(system))


def places_of_rows(system: System) -> np.ndarray:
    """Place (nd,) int of each bounded row among the tangents of all laws."""
    return np.argsort(rows_of_laws(system), axis=None, kind="stable")[: system.nd]


@record()
class LoadedLaw(ContactLaw):
    """Laws of contacts, also those of the ``contacts`` alone, and of the bounded forces after them: their
    bounds ``load`` (k,) [N], or the ``numbers`` of their `nsjax.contact.RateLaw`.
    """

    contacts: ContactLaw = dataclasses.field(default_factory=ContactLaw)
    load: Array = dataclasses.field(default_factory=lambda: jnp.zeros(0))
    numbers: PyTree = None

    @property
    def by_speed(self) -> bool:
        """Whether the law of the contacts depends on the speed."""
        return self.contacts.by_speed

    def at_speed(self, rates: Array) -> LoadedLaw:
        """The same with the contacts at their speeds; tangents of the forces alone have no friction."""
        nc = rates.shape[0] - self.load.shape[0]
        own = self.contacts.at_speed(rates[:nc])
        before = self.friction_of(rates.shape[0])
        friction = jnp.where(before[:nc] == 0.0, 0.0, own.friction_of(nc))
        return dataclasses.replace(self, contacts=own, friction=jnp.concatenate([friction, before[nc:]]))

    def rebound(self, rows: RowGroups, before: Array, settling: Array | None = None) -> Array:
        """That of the contacts, which may have a law of a user; zero for the forces."""
        alone, last = rows.without_forces(), rows.ends[1]
        settling = None if settling is None else settling[: alone.nc]
        return jnp.pad(self.contacts.rebound(alone, before[:last], settling), (0, rows.count - last))

    def given(self, duration: Array | float) -> GivenForces:
        """Numbers of the bounded forces in a time [s]."""
        others = jnp.shape(self.friction)[0] - self.load.shape[0]
        normal = jnp.concatenate([jnp.zeros(others), self.load * duration])
        return GivenForces(normal=normal, numbers=self.numbers, duration=duration)


@dataclasses.dataclass(frozen=True)
class _BoundedFunction:
    """Functions of a system whose last contacts are the laws of its bounded rows."""

    system: System

    @functools.cached_property
    def laws(self) -> np.ndarray:
        """See `rows_of_laws`."""
        return rows_of_laws(self.system)

    @property
    def leads(self) -> tuple[int, ...]:
        """Contact (laws,) whose normal force each law shares, or -1; (): none does."""
        which = self.system.dry_friction_contact
        return tuple(which[k] for k in self.laws[:, 0]) if which else ()

    @property
    def nt(self) -> int:
        """Tangents of each contact."""
        return max(self.system.nt, self.laws.shape[1])

    def gap(self, t: Array, q: Array, p: PyTree) -> Array:
        """Gaps (nc + laws,), zero for bounded rows wherever the system is."""
        closed = jnp.zeros(len(self.laws))
        if not self.system.nc:
            return closed
        return jnp.concatenate([self.system.gap(t, q, p), closed])

    def slip(self, t: Array, q: Array, v: Array, p: PyTree) -> Array:
        """Rates (nc + laws, nt); those of bounded rows are the first entries, others are zero."""
        s = self.system
        parts = [by_law(s, s.dry_friction(t, q, v, p))]
        if s.nc:
            parts.insert(0, s.slip(t, q, v, p) if s.nt else jnp.zeros((s.nc, self.nt)))
        return jnp.concatenate([jnp.pad(x, [(0, 0), (0, self.nt - x.shape[1])]) for x in parts])

    def rows(self, t: Array, q: Array, p: PyTree) -> tuple[Array, Array]:
        """Rows and offsets of the contacts, and of the bounded rows, in place of the first tangents."""
        s, rest = self.system, jnp.zeros(self.system.nv)
        d = 1 + self.nt
        rate = lambda v: s.dry_friction(t, q, v, p)  # noqa: E731
        wt, offset = s.rows(t, q, p)  # type: ignore[misc]
        more = d - wt.shape[1]
        own = jacobian(rate, rest, s.nd), rate(rest)

        def all_of(x: Array, y: Array) -> Array:
            same, y = [(0, 0)] * (x.ndim - 2), by_law(s, y)
            last = jnp.pad(y, [(0, 0), (1, d - 1 - y.shape[1]), *same])
            return jnp.concatenate([jnp.pad(x, [(0, 0), (0, more), *same]), last])

        return all_of(wt, own[0]), all_of(offset, own[1])

    def law(self, p: PyTree) -> ContactLaw:
        """Laws of the contacts, then bounds as normal forces with ``mu = 1``."""
        s = self.system
        first, count = self.laws[:, 0], len(self.laws)
        numbers = s.dry_friction_bound(p)
        bound = jnp.zeros(count)  # a law of its own has no bound
        if s.dry_friction_law is None:
            bound = taken(jnp.broadcast_to(jnp.asarray(numbers, float), (s.nd,)), first)
        own = s.law(p) if s.nc else ContactLaw()

        def every(name: str, last: float) -> Array:
            contacts = jnp.broadcast_to(jnp.asarray(getattr(own, name), float), (s.nc,))
            return jnp.concatenate([contacts, jnp.full(count, last)])

        friction = every("friction", 1.0)
        if s.dry_friction_contact:
            follows = np.array(self.leads) >= 0
            friction = jnp.concatenate([friction[: s.nc], jnp.where(follows, bound, 1.0)])
            bound = jnp.where(follows, 0.0, bound)
        if not s.nt:  # the tangents of contacts are there for the bounded rows alone
            friction = jnp.where(np.arange(s.nc + count) < s.nc, 0.0, friction)
        return LoadedLaw(
            restitution=every("restitution", 0.0),
            restitution_tangential=every("restitution_tangential", 0.0), friction=friction, contacts=own,
            load=bound, numbers=None if s.dry_friction_law is None else numbers,
        )  # fmt: skip

    def allowed(self, t: Array, q: Array, p: PyTree) -> Array:
        """Contacts that may act; bounded rows always may."""
        return jnp.concatenate([self.system.allowed(t, q, p), jnp.ones(len(self.laws), bool)])


@kept
def bounded_as_contacts(system: System) -> System:
    """The system that schemes work on: laws of bounded rows as further contacts; unchanged without them."""
    if not system.nd:
        return system
    loaded = _BoundedFunction(system)
    law, count = Bounded(loaded.laws.shape[1], loaded.leads, system.dry_friction_law), len(loaded.laws)
    return dataclasses.replace(
        system, nc=system.nc + count, nt=loaded.nt, nd=0, dry_friction=None, dry_friction_bound=None,
        dry_friction_law=None, dry_friction_contact=(), dry_friction_discs=(), bounded=RowGroup(law, count),
        frictionless=system.frictionless if system.nt else system.nc,
        gap=loaded.gap, slip=loaded.slip, law=loaded.law, rows=None if system.rows is None else loaded.rows,
        allowed=None if system.allowed is None else loaded.allowed,
        labels=dataclasses.replace(system.labels, contacts=(), dry_frictions=(), gaps=()),
    )  # fmt: skip


def reported(system: System, output: Output) -> Output:
    """Output of a step of `bounded_as_contacts`, with contacts and bounded rows of ``system`` apart."""
    nc = system.nc
    if not system.nd:
        none = jnp.zeros(0)
        return dataclasses.replace(output, dry_friction_force=none, dry_friction_impulse=none)
    loads = {
        "dry_friction_force": output.force_tangential, "dry_friction_impulse": output.impulse_tangential,
    }  # fmt: skip
    tangents = 2 if system.dry_friction_discs else 1
    own = {name: by_row(system, x[nc:, :tangents]) for name, x in loads.items()}
    for name, kind in QUANTITIES.items():
        x = getattr(output, name)
        if x is not None and "nc" in kind.axes:
            own[name] = x[tuple(slice(size) for size in kind.shape(system))]
    event = jax.tree.map(lambda x: x[:nc] if jnp.ndim(x) else x, output.event)
    contact = jnp.where(output.contact < nc, output.contact, -1)
    return dataclasses.replace(output, **own, event=event, contact=contact)
