"""Treatment of events that is common to the families of schemes."""

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
"""`Scheme.gradient` of a scheme inside `nsjax.schemes.localized`."""


def derivatives(scheme: Scheme) -> dict[str, bool]:
    """Which derivatives a step is to carry through events, as fields of `Family`: those of the motion
    (``"saltation"``), the same inside `nsjax.schemes.localized`, where higher ones are not refused, or
    none.
    """
    return {"derivative": scheme.gradient != "discrete", "refuse": scheme.gradient != LOCATED}


def touch_at_start(step: Step, tolerance: Array | float) -> Touch:
    """Memory of contacts at the start: contacts that touch, and neither approach nor leave, count as having
    done so before.
    """
    at = events.frozen(step.start)
    closed = touching(at.system, at.t, at.q, at.params, at.gap(), tolerance)
    rests = events.at_rest(criteria_of(step.scheme), events.gap_rates(at), at.v)
    return events.touching(events.no_touch(at.system), closed & rests)


def held_contacts(step: Step, contacts: Contacts, r: Stepped, found: Approach, load: Array) -> Array:
    """Contacts (nc,) bool at rest after a step: held before and still loaded; come too slowly to leave
    again; landed, if they leave more slowly than an impact comes.
    """
    jump = r.jump
    rests = events.at_rest(criteria_of(step.scheme), jump.after, r.end.v)
    landed = found.impacts & (jnp.abs(jump.after) <= found.limit)
    return load & (contacts.touch.held | found.gated | landed | rests)


def held_or_acting(step: Step, contacts: Contacts, r: Stepped, found: Approach, load: Array) -> Array:
    """`held_contacts` of a scheme that looks ahead at contacts which it closes at the end of the step.
    Sliding over a convex surface, a contact is open ahead; those that have acted in this step and the last
    one, and neither come nor leave, are held too.
    """
    acts = (r.jump.contacts[:, 0] > 0.0) & (contacts.touch.off == 0)
    stays = acts & events.at_rest(criteria_of(step.scheme), r.jump.after, r.end.v)
    return stays | held_contacts(step, contacts, r, found, load)
