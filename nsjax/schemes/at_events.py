"""Treatment of events common to several families of schemes: derivatives, and contacts at rest."""

from __future__ import annotations

import jax.numpy as jnp

from nsjax.contact import events
from nsjax.contact.criteria import criteria_of
from nsjax.contact.events import Approach, Touch
from nsjax.contact.family import Contacts, Stepped
from nsjax.core.operators import touching
from nsjax.core.scheme import Scheme
from nsjax.core.step import Step
from nsjax.types import Array

LOCATED = "located"
"""Value of `Scheme.gradient` of the scheme inside `nsjax.schemes.localized`."""


def derivatives(scheme: Scheme) -> dict[str, bool]:
    """Derivatives that a step carries through events, as fields of `nsjax.contact.family.Family`.

    ``derivative``: whether a step has the derivative of the motion; not with ``gradient="discrete"``.
    ``refuse``: whether a second differentiation is refused; not inside `nsjax.schemes.localized`.
    """
    return {"derivative": scheme.gradient != "discrete", "refuse": scheme.gradient != LOCATED}


def touch_at_start(step: Step, tolerance: Array | float) -> Touch:
    """Memory of contacts at the start of a run. Contacts that touch there, with a gap up to ``tolerance``
    [m] and at rest, count as closed in the step before.
    """
    at = events.frozen(step.start)
    closed = touching(at.system, at.t, at.q, at.params, at.gap(), tolerance)
    rests = events.at_rest(criteria_of(step.scheme), events.gap_rates(at), at.v)
    return events.set_touching(events.no_touch(at.system), closed & rests)


def held_contacts(step: Step, contacts: Contacts, r: Stepped, found: Approach, load: Array) -> Array:
    """Contacts (nc,) bool that are at rest under load after a step.

    A loaded contact is at rest if it was at rest before, if it approached too slowly for an impact, if it
    had an impact and separates more slowly than the slowest approach that counts as one, or if its gap rate
    is zero.

    Args:
        step: the step.
        contacts: the contacts before it.
        r: its result.
        found: approaching contacts.
        load: (nc,) bool, contacts that carry an impulse.
    """
    jump = r.jump
    rests = events.at_rest(criteria_of(step.scheme), jump.after, r.end.v)
    landed = found.impacts & (jnp.abs(jump.after) <= found.limit)
    return load & (contacts.touch.held | found.gated | landed | rests)


def held_or_acting(step: Step, contacts: Contacts, r: Stepped, found: Approach, load: Array) -> Array:
    """`held_contacts` for a scheme that decides contacts at a predicted end of the step.

    A contact that slides over a convex surface is open at that predicted state, although it stays closed.
    So contacts that acted in this step and the last one, and whose gap rate is zero, are at rest, too.
    """
    acts = (r.jump.contacts[:, 0] > 0.0) & (contacts.touch.off == 0)
    stays = acts & events.at_rest(criteria_of(step.scheme), r.jump.after, r.end.v)
    return stays | held_contacts(step, contacts, r, found, load)
