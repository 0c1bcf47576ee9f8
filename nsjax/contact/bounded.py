"""Bounded rows as friction: a force up to a given bound is that of a contact whose normal force is given.

With ``W_N = 0``, ``mu = 1`` and the normal force ``bound``, Coulomb's law on the rate ``u_D`` of a bounded
row (`System.drag`) is its law::

    lambda_D = prox_[-bound, bound](lambda_D - r u_D)

so that every scheme, the contact solver with its certificate, and the driver of derivatives (stick, slip,
reversal) meet bounded rows as contacts that are always closed. The bound is a force: it makes ``bound dt``
in a step and nothing in an impact. The bound of a row that follows a contact (`System.drag_contact`) is a
multiple of its normal impulse, in impacts, too: the normal impulse of the row is that of the contact, and
``mu`` the multiple.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.contact.law import ContactLaw
from nsjax.core.operators import jacobian
from nsjax.core.quantities import QUANTITIES
from nsjax.core.scheme import Output
from nsjax.core.system import System
from nsjax.types import Array, PyTree


@dataclasses.dataclass(frozen=True)
class _BoundedFunction:
    """Functions of a system whose last ``nd`` contacts are its bounded rows."""

    system: System

    def gap(self, t: Array, q: Array, p: PyTree) -> Array:
        """Gaps (nc + nd,), zero for bounded rows wherever the system is."""
        closed = jnp.zeros(self.system.nd)
        if not self.system.nc:
            return closed
        return jnp.concatenate([self.system.gap(t, q, p), closed])

    def slip(self, t: Array, q: Array, v: Array, p: PyTree) -> Array:
        """Rates (nc + nd, max(nt, 1)); that of a bounded row is its first entry, the second is zero."""
        s = self.system
        rates = s.drag(t, q, v, p)[:, None]
        parts = [jnp.concatenate([rates] + [jnp.zeros_like(rates)] * (s.nt - 1), axis=1)]
        if s.nc:
            contacts = s.slip(t, q, v, p) if s.nt else jnp.zeros((s.nc, 1))
            parts = [contacts, *parts]
        return jnp.concatenate(parts)

    def rows(self, t: Array, q: Array, p: PyTree) -> tuple[Array, Array]:
        """Rows and offsets of the contacts, and of the bounded rows, each in place of a first tangent."""
        s, rest = self.system, jnp.zeros(self.system.nv)
        d = 1 + max(s.nt, 1)
        rate = lambda v: s.drag(t, q, v, p)  # noqa: E731
        wt, offset = s.rows(t, q, p)  # type: ignore[misc]
        more = d - wt.shape[1]
        own = jacobian(rate, rest, s.nd), rate(rest)

        def all_of(x: Array, y: Array) -> Array:
            same = [(0, 0)] * (x.ndim - 2)
            last = jnp.pad(y[:, None], [(0, 0), (1, d - 2), *same])
            return jnp.concatenate([jnp.pad(x, [(0, 0), (0, more), *same]), last])

        return all_of(wt, own[0]), all_of(offset, own[1])

    def law(self, p: PyTree) -> ContactLaw:
        """Laws of the contacts, then bounds as normal forces with ``mu = 1``."""
        s = self.system
        bound = jnp.broadcast_to(jnp.asarray(s.drag_bound(p), float), (s.nd,))
        own = s.law(p) if s.nc else ContactLaw()

        def every(name: str, last: float) -> Array:
            first = jnp.broadcast_to(jnp.asarray(getattr(own, name), float), (s.nc,))
            return jnp.concatenate([first, jnp.full(s.nd, last)])

        friction = every("friction", 1.0)
        if s.drag_contact:
            follows = np.array(s.drag_contact) >= 0
            friction = jnp.concatenate([friction[: s.nc], jnp.where(follows, bound, 1.0)])
            bound = jnp.where(follows, 0.0, bound)
        if not s.nt:  # the tangents of contacts are there for the bounded rows alone
            friction = jnp.where(np.arange(s.nc + s.nd) < s.nc, 0.0, friction)
        return ContactLaw(
            restitution=every("restitution", 0.0),
            restitution_tangential=every("restitution_tangential", 0.0),
            friction=friction,
            load=bound,
            follow=s.drag_contact,
        )

    def allowed(self, t: Array, q: Array, p: PyTree) -> Array:
        """Contacts that may act; bounded rows always may."""
        return jnp.concatenate([self.system.allowed(t, q, p), jnp.ones(self.system.nd, bool)])


@functools.cache
def bounded_as_contacts(system: System) -> System:
    """The system that schemes work on: bounded rows as further contacts; unchanged if there are none."""
    if not system.nd:
        return system
    loaded = _BoundedFunction(system)
    return dataclasses.replace(
        system, nc=system.nc + system.nd, nt=max(system.nt, 1), nd=0, drag=None, drag_bound=None,
        drag_contact=(), smooth=system.smooth if system.nt else system.nc,
        gap=loaded.gap, slip=loaded.slip, law=loaded.law, rows=None if system.rows is None else loaded.rows,
        allowed=None if system.allowed is None else loaded.allowed,
        labels=dataclasses.replace(system.labels, contacts=(), drags=(), gaps=()),
    )  # fmt: skip


def reported(system: System, output: Output) -> Output:
    """Output of a step of `bounded_as_contacts`, with contacts and bounded rows of ``system`` apart."""
    nc = system.nc
    if not system.nd:
        none = jnp.zeros(0)
        return dataclasses.replace(output, drag_force=none, drag_impulse=none)
    own = {"drag_force": output.force_tangential[nc:, 0], "drag_impulse": output.impulse_tangential[nc:, 0]}
    for name, kind in QUANTITIES.items():
        x = getattr(output, name)
        if x is not None and "nc" in kind.axes:
            own[name] = x[tuple(slice(size) for size in kind.shape(system))]
    event = jax.tree.map(lambda x: x[:nc] if jnp.ndim(x) else x, output.event)
    contact = jnp.where(output.contact < nc, output.contact, -1)
    return dataclasses.replace(output, **own, event=event, contact=contact)
