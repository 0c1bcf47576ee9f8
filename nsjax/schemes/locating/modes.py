"""Modes of closed contacts, and parts of a step in which they do not change."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np

from nsjax.contact import events
from nsjax.contact.branches import dependent_answer
from nsjax.contact.event_motion import EXACT
from nsjax.contact.events import Criteria, criteria_of, frozen
from nsjax.contact.friction import SlidingRule, consistent_forces
from nsjax.core.operators import acting
from nsjax.core.row_groups import RowGroups
from nsjax.core.scheme import Carry, PartEnd, Scheme
from nsjax.core.step import Step, SystemState
from nsjax.core.system import State, System, at_nodes_alone, row_groups
from nsjax.jaxtools.control_flow import branch
from nsjax.linalg import matvec
from nsjax.math import norm
from nsjax.schemes.locating.trial_steps import DEPTH, FirstEvent, Flight, first_event, inside
from nsjax.types import Array, PyTree, record


@record()
class Modes:
    """Modes of the closed contacts until the next event.

    Args:
        held: (nc,) bool, closed contacts; their gap rate is zero.
        slide: (nc,) sign of the sliding velocity; zero for contacts that do not slide.
        stuck: (nc,) bool, contacts that stick by friction.
        size: () largest contact force at the start plus 1 N, the scale of forces [N].
    """

    held: Array
    slide: Array
    stuck: Array
    size: Array


def locates_changes(scheme: Scheme, system: System, params: PyTree) -> bool:
    """Whether changes of closed contacts are located, see ``changes`` and Limits of `localized`."""
    inner = scheme.options.inner
    wanted = scheme.options.changes and inner.holds_velocities
    plain = (
        system.structure.dense and not system.islands and not system.changing_contacts and not system.inside
    )
    local = at_nodes_alone(system) is not system
    return wanted and plain and not local and system.nt < 2 and not system.bounded


def no_modes(nc: int) -> Modes:
    """`Modes` without closed contacts."""
    none = jnp.zeros(nc, bool)
    return Modes(held=none, slide=jnp.zeros(nc), stuck=none, size=jnp.ones(()))


def held_answer(g: Array, c: Array, modes: Modes, friction: Array, groups: RowGroups) -> Array:
    """Impulses or forces ``x`` (rows,) of all rows in fixed modes, from velocities or accelerations
    ``c + g x``.

    These vanish for the normals of held contacts, the tangents of contacts that stick, and constraints. A
    sliding contact has ``x_T = -mu slide x_N``. Signs are not restricted: a mode ends where one becomes
    wrong. Of rows that depend on each other ``x`` is the least answer.
    """
    m = c.shape[0]
    kinds = jnp.stack([modes.held, modes.stuck][: 1 + groups.nt], axis=1)
    fixed = groups.stack(kinds, jnp.ones(groups.nb, bool))
    own = jnp.diagonal(g)
    scale = 1.0 / jnp.where(fixed & (own > 0.0), own, 1.0)
    a = jnp.where(fixed[:, None], scale[:, None] * g, np.eye(m))
    if groups.rough and groups.nt:
        # a sliding contact: tangential force = -mu sign normal force
        tangents = np.zeros((groups.nc, 2))
        tangents[:, 1] = 1.0
        share = groups.stack(tangents * (modes.slide * friction)[:, None], jnp.zeros(groups.nb))
        a = a + np.eye(m, k=-1) * share[:, None]
    return dependent_answer(a, fixed, jnp.where(fixed, -scale * c, 0.0))


def forces_in(at: SystemState, modes: Modes) -> Array:
    """Forces (nc, 1 + nt) [N] of the held contacts in fixed modes, of either sign."""
    return _forces_and_rates(at, modes)[0]


def _forces_and_rates(at: SystemState, modes: Modes) -> tuple[Array, Array, Array]:
    """Forces in fixed modes, accelerations of rows without and with them, all (nc, 1 + nt)."""
    rows, inertia = at.rows(), at.inertia()
    free, response = inertia.answers(at.force(), rows)
    g, c = rows.delassus(response), matvec(rows.jacobian(), free) + at.drift()
    x = held_answer(g, c, modes, at.friction(), rows.groups)
    force, before, after = (rows.groups.contacts(y) for y in (x, c, c + matvec(g, x)))
    return force, before, after


def signals(at: SystemState, modes: Modes) -> tuple[Array, Array]:
    """Event functions of the modes, positive as long as a mode lasts, and forces of the held contacts.

    Returns:
        Functions (1, nc), with friction (3, nc): normal force; sliding velocity in its direction; and
        ``mu lambda_N - |lambda_T|``. They are scaled to gaps, and one where a contact is in another mode.
        Forces (nc, 1 + nt) [N].

    Sliding ends at a velocity a little below zero, as gaps close a little below zero. So an event that has
    not happened by the end of a step is still positive at the start of the next.
    """
    force = forces_in(at, modes)
    # weight of a force, relative to the largest contact force, among gaps [m]: it counts as zero at 1e-9
    force_scale = 1e-4
    loaded = jnp.where(modes.held, force_scale * force[:, 0] / modes.size, 1.0)
    if not at.system.nt:
        return loaded[None], force
    slides = modes.slide != 0.0
    # weight of a sliding velocity [m/s] among gaps [m]: with the tolerance of 1e-13 m of gaps, it counts
    # as zero at 1e-11 m/s
    slip = jnp.where(slides, 1e-2 * modes.slide * at.slip()[:, 0] + DEPTH, 1.0)
    spare = at.friction() * force[:, 0] - norm(force[:, 1:])
    grip = jnp.where(modes.stuck, force_scale * spare / modes.size, 1.0)
    return jnp.stack([loaded, slip, grip]), force


def modes_at(scheme: Scheme, at: SystemState, held: Array, slid: Array, begun: Array) -> Modes:
    """Modes in which the motion continues from a state, without derivatives.

    Args:
        held: (nc,) bool, closed contacts whose gap rate is zero.
        slid: (nc,) bool, contacts that slide already, however slowly: they have not reversed yet.
        begun: (nc,) sign of the direction in which contacts at rest begin to slide; zero: not known.
    """
    criteria, at = criteria_of(scheme), frozen(at)

    def closed(_: None) -> Modes:
        first = _guess(criteria, at, held, slid, begun)
        force, before, after = _forces_and_rates(at, first)
        grip = at.friction() * force[:, 0] >= norm(force[:, 1:])
        fixed = jnp.stack([held, first.stuck][: 1 + at.system.nt], axis=1)
        most, left = (jnp.max(jnp.abs(jnp.where(fixed, x, 0.0))) for x in (before, after))
        # part of the accelerations without contact forces up to which rows are held. Of rows that depend
        # on others 1e-4 may be left (see `nsjax.contact.branches.dependent_answer`). More is left where
        # the modes contradict each other: no friction holds a slider in its dead centre while the crank
        # turns
        stays = (force[:, 0] >= 0.0) & (~first.stuck | grip) & (left <= 1e-3 * most)
        lasting = jnp.all(stays | ~held)
        size = 1.0 + jnp.max(jnp.abs(jnp.where(held[:, None], force, 0.0)))
        chosen = branch(lasting, lambda _: first, lambda _: _solved(at, first, held), None)
        return dataclasses.replace(chosen, size=size)

    return branch(jnp.any(held), closed, lambda _: no_modes(at.system.nc), None)


def _guess(criteria: Criteria, at: SystemState, held: Array, slid: Array, begun: Array) -> Modes:
    """First guess of the modes: contacts that slide go on sliding, contacts at rest stick."""
    none = no_modes(at.system.nc)
    if not at.system.nt:
        return Modes(held=held, slide=none.slide, stuck=none.stuck, size=none.size)
    slip = at.slip()[:, 0]
    moves = slid | (jnp.abs(slip) > criteria.slide * (1.0 + jnp.max(jnp.abs(at.v))))
    slide = jnp.where(held, jnp.where(moves, jnp.sign(slip), begun), 0.0)
    stuck = held & (slide == 0.0) & (at.friction() > 0.0)
    return Modes(held=held, slide=slide, stuck=stuck, size=none.size)


def _solved(at: SystemState, first: Modes, held: Array) -> Modes:
    """Modes by the contact laws on acceleration level, for states at which the first guess is wrong."""
    system = at.system
    slide = None if not system.nt else (1.0 * first.slide)[:, None]
    rule = SlidingRule(stuck=first.stuck, slide=slide)
    force = row_groups(system).contacts(consistent_forces(at, held, EXACT, rule)[1])
    held = held & (force[:, 0] > 0.0)
    if not system.nt:
        return Modes(held=held, slide=first.slide, stuck=first.stuck, size=first.size)
    bound = at.friction() * force[:, 0]
    sticks = held & first.stuck & (norm(force[:, 1:]) < (1.0 - 1e-8) * bound)
    begins = jnp.where(first.stuck, -jnp.sign(force[:, 1]), first.slide)
    slide = jnp.where(held & ~sticks, begins, 0.0)
    return Modes(held=held, slide=slide, stuck=sticks, size=first.size)


# Parts of a step in which the modes of closed contacts do not change, and the times at which they end.


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
        groups = row_groups(system, c.shape[0] > system.nb)
        modes = d.modes if groups.nc else no_modes(0)
        return held_answer(g, c, modes, friction, groups)

    held = None if flies else d.modes.held
    found: PartEnd = inner.traits.in_modes.advance(step, held, answer)  # type: ignore[union-attr]
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
    """The part with the modes of its contacts, and contacts (nc,) bool that are closed but neither at rest
    nor leaving. A contact with a gap up to zero and a gap rate of zero is held or leaves, by the sign of
    its force.

    Args:
        d: the part, without modes.
        held: (nc,) bool, contacts known to be closed at rest.
        gone: (nc,) bool, contacts that opened in this step.
        slid, begun: see `modes_at`.
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
        # a contact that touches is closed at the start of the next step: it strikes in this one
        low = (known[0] < 0.0) | ((d.base == 0.0) & (known[0] <= DEPTH))
        hit = acting(system, at.t, at.q, still.params, low)
        # a force that is negative by rounding only ends no mode
        bound = np.array([-DEPTH, 0.0, -DEPTH])[: len(known) - 1, None]
        hit = jnp.concatenate([hit[None], known[1:] < bound])
        low = (d.base < 0.0) & (known[0] + d.base <= DEPTH)
        there = SystemState(system=system, params=still.params, state=at)
        hops = branch(jnp.any(low), lambda _: low & (events.gap_rates(there) <= 0.0), lambda _: low, None)
        return Flight(end=(end, force, hops), values=values, hit=hit)

    v, rows = d.state.v, jnp.zeros(row_groups(system).count)
    none = PartEnd(q=d.state.q, v=v, a=v, force=rows, impulse=rows)
    like = none, jnp.zeros((system.nc, 1 + system.nt)), jnp.zeros(system.nc, bool)
    start = lambda d: look(system, d, d.state)[0]  # noqa: E731
    return first_event(fly, start, like, d.scheme.options.max_roots)(d.left, d)
