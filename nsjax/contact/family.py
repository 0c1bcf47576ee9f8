"""Interface of schemes to the driver of derivatives at events: steps, contacts, how they meet events."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax.numpy as jnp

from nsjax.contact.events import Approach, GapsAround, Touch
from nsjax.contact.jump import Jump
from nsjax.core.step import Step, SystemState
from nsjax.core.system import State
from nsjax.types import Array, PyTree, record


@record()
class Stepped:
    """Result of a step, as a scheme returns it.

    Args:
        end: state at the end, ``t`` included.
        jump: impulses and rates.
        estimate: (), error estimate of an iteration relative to ``1 + |v|``, zero if nothing is iterated.
        more: whatever else the scheme hands on.
    """

    end: State
    jump: Jump
    estimate: Array
    more: PyTree = ()


@dataclasses.dataclass(frozen=True)
class Family:
    """Functions and choices by which a family of schemes handles events.

    Args:
        predict: ``(step) -> State`` at which the contacts are looked at: close to where they
            close, with the velocity before an impact.
        held: ``(step, contacts, r, found, load) -> (nc,) bool``, contacts at rest after the step ``r``, of
            which some carry a ``load``.
        corrects: whether gaps are corrected on position level. The derivative of such a step annuls
            that of a gap, so that independent impacts must each be shifted before it.
        turns: whether reversals of sliding are events of the step in which they happen.
        derivative: whether derivatives are wanted at all, or decisions alone.
        refuse: whether a second differentiation is refused.
        ahead: part of the step by which ``predict`` looks ahead of the state along its velocity.
        laws: part of the step at which the contact laws hold for the velocity of its end: 1/2 where rows
            are those of the midpoint. Sliding is decided there: on a belt a contact that sticks under such
            a scheme slips, at the times of the grid, by the change of the belt's speed in half a step.
    """

    predict: Callable[[Step], State]
    held: Callable[[Step, Contacts, Stepped, Approach, Array], Array]
    corrects: bool
    turns: bool
    derivative: bool
    refuse: bool = True
    ahead: float = 0.0
    laws: float = 1.0

    def slip(self, at: SystemState, dt: Array) -> Array:
        """Tangential velocities (nc, nt) to which the law of the last step referred."""
        if self.laws == 1.0:
            return at.slip()
        back = (1.0 - self.laws) * dt
        return at.moved(t=at.state.t - back, q=at.system.retract(at.q, -back * at.v)).slip()


def loaded(jump: Jump, active: Array) -> Array:
    """Contacts (nc,) bool that carry an impulse."""
    return active & (jump.contacts[:, 0] > 0.0)


@record()
class Contacts:
    """The contacts of a step before it is taken.

    Args:
        touch: memory of the contacts.
        active: (nc,) bool, closed at the predicted state. A contact seen a step early does no harm.
        known: (nv,) acceleration and (rows,) row forces before the step; None: they are not known.
        load: (nc,) bool, under load before it, where the scheme knows better than ``touch.held``.
        around: gaps and their curvature at the predicted state, where the scheme has them.
    """

    touch: Touch
    active: Array
    known: tuple[Array, Array] | None = None
    load: Array | None = None
    around: GapsAround | None = None


def stacked(jump: Jump) -> Array:
    """Impulses of contacts and constraints as rows."""
    return jnp.concatenate([jump.contacts.reshape(-1), jump.constraints])
