"""Parts of a step in which the modes of closed contacts do not change, and the times at which they end."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np

from nsjax.contact import events
from nsjax.contact.criteria import criteria_of
from nsjax.core.branches import branch
from nsjax.core.operators import acting
from nsjax.core.scheme import Carry, PartEnd, Scheme
from nsjax.core.step import Step, SystemState
from nsjax.core.system import State, System
from nsjax.schemes.locating.first_event import DEPTH, FirstEvent, Flight, first_event
from nsjax.schemes.locating.modes import Modes, held_answer, modes_at, signals
from nsjax.schemes.locating.trial_steps import inside
from nsjax.types import Array, PyTree, record


@record()
class StepPart:
    """Everything that a part of a step depends on.

    Args:
        scheme: the scheme that locates.
        params: parameters of the system, refreshed at the start of the part.
        constants: constants of the scheme inside.
        state: state at the start of the part.
        left: () time from there to the end of the step [s].
        modes: modes of the closed contacts.
        base: (nc,) gap below which a contact counts as penetrated [m]: zero, or the negative gap from which
            it leaves.
    """

    scheme: Scheme
    params: PyTree
    constants: PyTree
    state: State
    left: Array
    modes: Modes
    base: Array


def advance(system: System, d: StepPart, dt: Array, flies: bool = False) -> PartEnd:
    """The motion after ``dt`` [s] in the modes of the part; with ``flies``, with all contacts open."""
    inner = inside(d.scheme)
    step = Step(
        scheme=inner, system=system, params=d.params, constants=d.constants, carry=Carry(state=d.state),
        dt=dt,
    )  # fmt: skip
    friction = step.start.friction()

    def answer(g: Array, c: Array) -> Array:
        own = friction if c.shape[0] > system.nb else friction[:0]
        return held_answer(g, c, d.modes, own, system.nt)

    held = None if flies else d.modes.held
    found: PartEnd = inner.in_modes.advance(step, held, answer)  # type: ignore[union-attr]
    return found


def state_of(d: StepPart, dt: Array, end: PartEnd) -> State:
    """The state after ``dt`` [s] from the start of the part."""
    return State(t=d.state.t + dt, q=end.q, v=end.v)


def look(system: System, d: StepPart, state: State) -> tuple[Array, Array]:
    """Event functions (kinds, nc) at a state, and forces of the closed contacts (nc, 1 + nt) [N].

    The functions are positive during a part; the first zero ends it. They are the gaps, then those of
    `signals`.
    """
    at = SystemState(system=system, params=d.params, state=state)
    # a closed contact stays closed however far its gap drifts
    gap = jnp.where(d.modes.held, 1.0, at.gap() - d.base + DEPTH)
    quiet = jnp.ones((1 + 2 * system.nt, system.nc)), jnp.zeros((system.nc, 1 + system.nt))
    own = lambda s: signals(at.moved(t=s.t, q=s.q, v=s.v), d.modes)  # noqa: E731
    others, force = branch(jnp.any(d.modes.held), own, lambda _: quiet, state)
    return jnp.concatenate([gap[None], others]), force


def begin(
    system: System, d: StepPart, held: Array, gone: Array, slid: Array, begun: Array
) -> tuple[StepPart, Array]:
    """The part with the modes of its contacts.

    A contact with a gap up to zero and a gap rate of zero is held or leaves, by the sign of its force. This
    includes contacts that opened just before the end of the last step.

    Args:
        system: the system.
        d: the part, without modes.
        held: (nc,) bool, contacts known to be closed at rest.
        gone: (nc,) bool, contacts that opened in this step.
        slid: (nc,) bool, contacts that slide already.
        begun: (nc,) sign of the direction in which other contacts begin to slide; zero: not known.

    Returns:
        The part, and contacts (nc,) bool that are closed but neither at rest nor leaving.
    """
    at = events.frozen(SystemState(system=system, params=d.params, state=d.state))
    gap = at.gap()
    low = acting(system, at.t, at.q, at.params, (gap <= 0.0) & ~held)
    rates = branch(jnp.any(low), lambda _: events.gap_rates(at), lambda _: jnp.zeros(gap.shape), None)
    still = events.at_rest(criteria_of(d.scheme), rates, at.v)
    held = held | low & still & ~gone
    modes = modes_at(inside(d.scheme), at, held, slid, begun)
    low = acting(system, at.t, at.q, at.params, (gap <= 0.0) & ~modes.held)
    released = gone | (held & ~modes.held)
    leaves = low & ((rates > 0.0) & ~still | released)
    base = jnp.where(leaves, jnp.minimum(gap, 0.0), 0.0)
    return dataclasses.replace(d, modes=modes, base=base), low & ~leaves


def to_event(system: System, d: StepPart) -> FirstEvent:
    """The motion from the start of a part to its first event, or to the end of the step.

    The end of the flight is the motion, the contact forces (nc, 1 + nt) [N], and contacts (nc,) bool that
    hop: they leave and come back within the step, and were never open at its end.
    """

    def fly(dt: Array, d: StepPart) -> Flight:
        end = advance(system, d, dt)
        at = state_of(d, dt, end)
        values, force = look(system, d, at)
        at, still, known = events.frozen((at, d, values))
        hit = acting(system, at.t, at.q, still.params, known[0] < 0.0)
        # a force that is negative by rounding only ends no mode
        bound = np.array([-DEPTH, 0.0, -DEPTH])[: len(known) - 1, None]
        hit = jnp.concatenate([hit[None], known[1:] < bound])
        low = (d.base < 0.0) & (known[0] + d.base <= DEPTH)
        there = SystemState(system=system, params=still.params, state=at)
        hops = branch(jnp.any(low), lambda _: low & (events.gap_rates(there) <= 0.0), lambda _: low, None)
        return Flight(end=(end, force, hops), values=values, hit=hit)

    v, rows = d.state.v, jnp.zeros(system.nc * (1 + system.nt) + system.nb)
    none = PartEnd(q=d.state.q, v=v, a=v, force=rows, impulse=rows)
    like = none, jnp.zeros((system.nc, 1 + system.nt)), jnp.zeros(system.nc, bool)
    start = lambda d: look(system, d, d.state)[0]  # noqa: E731
    found: FirstEvent = first_event(fly, start, like, d.scheme.options.max_roots)(d.left, d)
    return found
