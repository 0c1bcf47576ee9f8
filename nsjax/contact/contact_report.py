"""Report on the contacts of a step."""

from __future__ import annotations

import jax.numpy as jnp

from nsjax.contact.events import Touch
from nsjax.types import Array, record


@record()
class ContactReport:
    """Report of the driver of derivatives on the contacts of a step.

    Args:
        touch: memory of the contacts after the step.
        notes: (nc,) bits of `nsjax.notes`.
        impact: (nc,) bool, impacts: approaches faster than the gate, with an impulse.
        tau: (nc,) zero, with the derivative of the time of each impact [s].
        timed: (nc,) bool, impacts whose time has a derivative, whatever a scheme lists as impacts.
    """

    touch: Touch
    notes: Array
    impact: Array
    tau: Array
    timed: Array


def no_report(touch: Touch) -> ContactReport:
    """The report of a step in which no contact takes part."""
    zero = jnp.zeros(touch.held.shape)
    none = jnp.zeros(zero.shape, bool)
    return ContactReport(touch=touch, notes=jnp.zeros(zero.shape, int), impact=none, tau=zero, timed=none)
