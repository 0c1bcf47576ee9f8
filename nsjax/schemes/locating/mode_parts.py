"""Parts of a step in which closed contacts keep to their modes, and the times at which one ends."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax.contact import events
from nsjax.contact.criteria import criteria_of
from nsjax.core.branches import branch
from nsjax.core.operators import acting
from nsjax.core.scheme import Carry, PartEnd, Scheme
from nsjax.core.step import Step, SystemState
from nsjax.core.system import State, System
from nsjax.nonlinear import event_solution
from nsjax.schemes.locating.modes import Modes, held_answer, modes_at, signals
from nsjax.schemes.locating.trial_steps import DEPTH, FAR, inside, root
from nsjax.types import Array, PyTree, record


@record()
class StepPart:
    """Everything that a part of a step depends on.

    Args:
        scheme: that locates.
        params, constants: of the system, refreshed at the start of the part, and of the scheme inside.
        state: at the start. left: time to the end of the step [s].
        modes: of closed contacts.
        base: (nc,) gaps from which contacts count as penetrated, zero unless they leave [m].
        hit: (kinds, nc) bool, what comes to an end: gaps, then what `signals` tells.
        low: its least value at the end of the step.
    """

    scheme: Scheme
    params: PyTree
    constants: PyTree
    state: State
    left: Array
    modes: Modes
    base: Array
    hit: Array
    low: Array


@record()
class Arrival:
    """Where a part ends: time, motion, signals (kinds, nc), forces (nc, 1 + nt), whether it was found."""

    sigma: Array
    end: PartEnd
    told: Array
    force: Array
    found: Array


def advance(system: System, d: StepPart, dt: Array, flies: bool = False) -> PartEnd:
    """The motion in the modes of the part after ``dt``; with ``flies`` all contacts are open."""
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
    """The state after ``dt``."""
    return State(t=d.state.t + dt, q=end.q, v=end.v)


def look(system: System, d: StepPart, state: State) -> tuple[Array, Array]:
    """Signals (kinds, nc) of what may come to an end, zero where it does, and forces (nc, 1 + nt)."""
    at = SystemState(system=system, params=d.params, state=state)
    # gaps of closed contacts stay closed, whatever positions drift
    gap = jnp.where(d.modes.held, 1.0, at.gap() - d.base + DEPTH)
    quiet = jnp.ones((1 + 2 * system.nt, system.nc)), jnp.zeros((system.nc, 1 + system.nt))
    own = lambda s: signals(at.moved(t=s.t, q=s.q, v=s.v), d.modes)  # noqa: E731
    others, force = branch(jnp.any(d.modes.held), own, lambda _: quiet, state)
    return jnp.concatenate([gap[None], others]), force


def begin(
    system: System, d: StepPart, held: Array, gone: Array, slid: Array, begun: Array
) -> tuple[StepPart, Array]:
    """The part with its modes, and contacts (nc,) bool that are closed and neither rest nor leave. Closed
    contacts whose gap does not change rest or leave by the sign of their force: those that were let go just
    before the end of the last step, too.

    Args:
        held: (nc,) bool, contacts known to be closed at rest.
        gone: (nc,) bool, contacts released in this step.
        slid, begun: (nc,) bool, contacts that slide already; (nc,) sign in which others begin to.
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


def trial(system: System, d: StepPart) -> tuple[StepPart, PartEnd, Array]:
    """The motion to the end of the step, what would come to an end before, and penetrated contacts
    (nc,) bool that hop: they leave and come back without having been open at the end of the step.
    """
    end = advance(system, d, d.left)
    at, still = events.frozen((state_of(d, d.left, end), d))
    told = look(system, still, at)[0]
    hit = acting(system, at.t, at.q, still.params, told[0] < 0.0)
    # nothing changes where a force passes zero by rounding
    hit = jnp.concatenate([hit[None], told[1:] < np.array([-DEPTH, 0.0, -DEPTH])[: len(told) - 1, None]])
    low = (d.base < 0.0) & (told[0] + d.base <= DEPTH)
    there = SystemState(system=system, params=still.params, state=at)
    hops = branch(jnp.any(low), lambda _: low & (events.gap_rates(there) <= 0.0), lambda _: low, None)
    return dataclasses.replace(d, hit=hit, low=jnp.min(jnp.where(hit, told, FAR))), end, hops


def arrival(system: System) -> Callable[[StepPart], Arrival]:
    """The end of a part at the first of its events. Its time is found without derivatives, and has those
    of the equation that defines it, of any order.
    """

    def flown(sigma: Array, d: StepPart) -> Any:
        end = advance(system, d, sigma)
        told, force = look(system, d, state_of(d, sigma, end))
        return end, jnp.min(jnp.where(d.hit, told, FAR)), (told, force)

    def solver(d: StepPart) -> tuple[Array, Array]:
        start = jnp.min(jnp.where(d.hit, look(system, d, d.state)[0], FAR))
        depth = lambda s: flown(s, d)[1]  # noqa: E731
        return root(depth, (start, d.low), d.left, jnp.any(d.hit), d.scheme.options.max_roots)

    solution = event_solution(solver, flown)

    def arrive(d: StepPart) -> Arrival:
        sigma, end, ((told, force), found) = solution(d)
        return Arrival(sigma=sigma, end=end, told=told, force=force, found=found)

    return arrive
