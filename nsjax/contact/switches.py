"""Derivatives where a force jumps, and of the time for which contacts are closed.

On the surface ``s(t, q, v, p) = 0`` positions and velocities are continuous and accelerations jump. A
time-stepping scheme puts the jump at a time of its grid, and the derivative of its step keeps it there;
the motion crosses the surface at an instant that moves with the data, ``dtau = -ds / (ds/dt)``. The step
therefore lacks, after the instant ``tau`` (saltation matrix of a reset that is the identity)::

    dv -> dv + (a^- - a^+) dtau,    dq -> dq + (t_1 - tau) (a^- - a^+) dtau

with the accelerations ``a^-`` and ``a^+`` on the two sides, contacts at rest and constraints held. It is
the same for every scheme, since it looks at the start and the end of a step alone. Where the force beyond
the surface drives the motion back, it stays there: ``a^+`` is then the mean of the two accelerations that
keeps ``s`` at zero (Filippov's solution), and ``ds`` vanishes.

Everything has a derivative only: values pass through unchanged. Source: the theory of hybrid systems, as
in `nsjax.contact.jump`; A. F. Filippov, Differential Equations with Discontinuous Righthand Sides.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax import gradient_notes
from nsjax.contact.event_motion import accelerate
from nsjax.contact.events import Touch, criteria_of, frozen, gap_rates
from nsjax.contact.friction import SlidingRule, sticking
from nsjax.core.operators import momentum
from nsjax.core.scheme import Carry, Output
from nsjax.core.step import Step
from nsjax.core.system import State, row_groups
from nsjax.jaxtools import only_tangent, with_retract_tangent, with_tangent
from nsjax.jaxtools.control_flow import branch, repeat, repeat_for
from nsjax.jaxtools.programs import decides
from nsjax.linalg import matvec
from nsjax.types import Array, record

# Derivative of the time for which contacts are closed: landings and releases move with the data.
#
# A run counts closed time in steps. The count has no derivative: it misses how the ends of a closed phase
# move inside their steps. A landing moves with its last impact. A release happens where the acceleration
# ``A`` that the gap would have without the contact passes zero, so that ``dt_release = -dA / (dA/dt)``.
#
# The contact force passes zero there, too, but it cannot replace ``A``: a scheme with impulses knows only
# the impulse of a whole step, which is zero in one step and twice as large in the next where a contact
# hops. ``A`` is a smooth function of the state. Source: the implicit function theorem; the papers do not
# treat closed times.


@record()
class ClosedPhases:
    """Memory of the closed phases of contacts between steps.

    Args:
        shift: (nc,) zero, with the derivative of the time of the last impact or release that counts,
            relative to its step [s].
        steps: (nc,) int, steps for which the contact has been held.
    """

    shift: Array
    steps: Array


def touch_of(carry: Carry) -> Touch | Any:
    """Memory that a scheme keeps of its contacts, if it is a `Touch`, as in the package; else None."""
    memory = carry.memory
    touch = memory if isinstance(memory, Touch) else getattr(memory, "touch", None)
    return touch if isinstance(touch, Touch) else None


def begin_closing(carry: Carry, wanted: bool) -> ClosedPhases | None:
    """Closed phases at the start of a run; None if no derivative is wanted or the scheme has no `Touch`."""
    touch = touch_of(carry)
    if not wanted or touch is None:
        return None
    none = jnp.zeros(touch.held.shape)
    return ClosedPhases(shift=none, steps=none.astype(int))


def follow_closing(
    step: Step, closing: ClosedPhases, after: Carry, output: Output
) -> tuple[ClosedPhases, Array]:
    """Closed phases after a step, and the gain (nc,) of the closed time: zero, with a derivative.

    A phase begins where a contact comes to rest under load. Its start moves with the last impact after a
    long flight, see `Criteria.long`: the instants of shorter flights have errors that are comparable to the
    flights, and the time from that impact to the end of all bounces changes by whole steps. A contact that
    is held again after a hop was not released: the shift of that release is removed. A phase ends where the
    contact is no longer held. Its end moves with the impact elsewhere that throws the contact off, if there
    is one, else by `_release`. A phase of at most `Criteria.hop` steps ends with its own landing: a contact
    that leaves at once has not been closed.
    """
    criteria, before, dt = criteria_of(step.scheme), step.carry, step.dt
    held, holds = touch_of(before).held, touch_of(after).held
    impact = output.event.timed
    flown = touch_of(before).off > criteria.long
    shift = jnp.where(impact & flown, output.event.shift, closing.shift)
    left = held & ~holds
    # all impacts of a step throw the contact off together: the mean of their shifts
    struck = jnp.sum(jnp.where(impact, output.event.shift, 0.0)) / jnp.maximum(jnp.sum(impact), 1)
    free = lax.cond(
        jnp.any(left & ~jnp.any(impact)), lambda _: _release(step, after.state, holds, output),
        lambda _: jnp.zeros(shift.shape), None,
    )  # fmt: skip
    gone = jnp.where(jnp.any(impact), struck, jnp.where(closing.steps > criteria.hop, free, shift))
    gained = jnp.where(left, gone, jnp.where(holds & ~held, -shift, 0.0))
    # closed time also counts steps in which a contact still touches after its release, without load; the
    # derivative by the step size counts the steps of held contacts alone
    gained = gained + jnp.where(holds, only_tangent(dt, False), 0.0)
    steps = jnp.where(holds, closing.steps + 1, 0)
    return ClosedPhases(shift=jnp.where(left, gone, shift), steps=steps), gained


def _release(step: Step, end: State, on: Array, output: Output) -> Array:
    """Time shifts (nc,) of releases in a step; zero where no gap acceleration passes zero near the step."""
    criteria, system, dt = criteria_of(step.scheme), step.system, step.dt
    impulses = jnp.concatenate([output.impulse_normal[:, None], output.impulse_tangential], axis=1)
    # friction that was inside its cone holds the contact until its release
    stuck = sticking(*frozen((impulses, step.start.friction())))

    def opening(x: tuple[Array, Array, Array]) -> Array:
        """Accelerations of the gaps with the contacts ``on`` alone."""
        t, q, v = x
        at = step.shifted(State(t=t, q=q, v=v)).start
        a = accelerate(at, on, SlidingRule(criteria=criteria, stuck=stuck)).a

        def rates(s: Array) -> Array:
            return gap_rates(at.moved(t=t + s, q=system.retract(q, s * v), v=v + s * a))

        return jax.jvp(rates, (jnp.zeros(()),), (jnp.ones(()),))[1]

    both = (
        jnp.stack([jnp.asarray(x), frozen(y)]) for x, y in zip(_parts(step.state), _parts(end), strict=True)
    )
    first, last = lax.map(opening, tuple(both))
    change = frozen(last - first)
    late = frozen(jnp.abs(first)) <= (1 + criteria.hop) * change
    passes = late & (frozen(last) > 0.0)
    # the divisor is frozen: the impacts of the run refuse a second derivative, or take it
    return jnp.where(passes, -only_tangent(first, False) * dt / jnp.where(passes, change, 1.0), 0.0)


def _parts(state: State) -> tuple[Array, Array, Array]:
    return jnp.asarray(state.t), state.q, state.v


# Derivatives and notes where a force jumps: laws with different values on the two sides of a surface.


HALVINGS = 40
"""Number of times that the part of a step with an instant is halved: to 1e-12 of the step."""

LEAST_JUMP = 1e-6
"""Jump of a force or acceleration, relative to its largest entry, from which it counts."""


@record()
class Path:
    """The motion inside a step, as a scheme leaves it: straight from its start to its end.

    Args:
        step: the step.
        end: state at its end.
        struck: () bool, whether velocities jump in it: they are then those of the nearer end.
        tried: () bool, whether this is not the scheme's motion, but that by the accelerations at its start:
            forces that it meets count only if they turn it back.
    """

    step: Step
    end: State
    struck: Array
    tried: Array

    def at(self, part: Array) -> State:
        """State after a ``part`` of the step, between 0 and 1."""
        system, start = self.step.system, self.step.state
        along = system.difference(start.q, self.end.q)
        # an impact has no velocity between those before and after it
        share = jnp.where(self.struck, jnp.where(part < 0.5, 0.0, 1.0), part)
        return State(
            t=jnp.asarray(start.t) + part * self.step.dt,
            q=system.retract(start.q, part * along),
            v=start.v + share * (self.end.v - start.v),
        )

    def surfaces(self, part: Array) -> Array:
        """Values (ns,) of the surfaces after a part of the step."""
        at = self.at(part)
        found: Array = self.step.system.switch(at.t, at.q, at.v, self.step.params)  # type: ignore[misc]
        return found

    def force(self, part: Array) -> Array:
        """Force (nv,) after a part of the step."""
        return self.step.at(self.at(part)).force()


def path_of(step: Step, end: State, output: Output) -> Path:
    """The `Path` of a step with this end and output."""
    end = dataclasses.replace(end, t=step.state.t)  # not read
    struck = jnp.any(output.event.impact)
    return Path(step=step, end=end, struck=struck, tried=jnp.zeros((), bool))


def _tried(path: Path) -> Path:
    """The motion by the accelerations at the start, where a step without an impact moves velocities by less
    than half of it. A scheme that takes means of forces inside a step may stay on one side of a jump that
    drives it back, in every step.
    """
    step, at, dt = path.step, path.step.state, frozen(path.step.dt)
    still = frozen(step)
    a = accelerate(still.start, *_held(still)).a
    pushed = momentum(step.system, still.state.q, a, still.params)
    # by the inertia, so that units of coordinates do not count
    short = jnp.sum((frozen(path.end.v) - still.state.v - 0.5 * dt * a) * pushed) < 0.0
    q = step.system.retract(at.q, dt * (still.state.v + 0.5 * dt * a))
    end = dataclasses.replace(path.end, q=q, v=at.v + dt * a)
    return dataclasses.replace(path, end=end, tried=short & ~path.struck)


def _with_crossings(path: Path) -> Path:
    """The path, or what is tried in its place where it crosses no surface."""
    first, last = (frozen(path).surfaces(jnp.asarray(x)) > 0.0 for x in (0.0, 1.0))
    other = _tried(path)
    # the motion of the scheme is preferred: its crossings are those of the run
    instead = other.tried & ~jnp.any(first != last)
    return jax.tree.map(lambda a, b: jnp.where(instead, a, b), other, path)


def _held(step: Step) -> tuple[Array, SlidingRule]:
    """Contacts (nc,) bool at rest at the start of a step, and the rule of their sliding."""
    touch, criteria = touch_of(step.carry), criteria_of(step.scheme)
    held = jnp.zeros(step.system.nc, bool) if touch is None else touch.held
    return held, SlidingRule(criteria=criteria, stuck=None if touch is None else touch.stuck)


@record()
class Crossings:
    """Surfaces that a step crosses, without derivatives.

    Args:
        part: (ns,) part of the step after which each is crossed.
        rate: (ns,) its rate before; zero for surfaces without a shift.
        jump: (ns, nv) jump of the acceleration at its instant.
        force: (ns, rows) jump of the row forces.
        bits: () bits of `nsjax.gradient_notes`.
    """

    part: Array
    rate: Array
    jump: Array
    force: Array
    bits: Array


def crossings(path: Path) -> Crossings:
    """Surfaces that a step crosses, instant by instant; those crossed at one instant share its jump."""
    path = frozen(path)
    system = path.step.system
    first, last = (path.surfaces(jnp.asarray(x)) > 0.0 for x in (0.0, 1.0))
    ns, rows = first.shape[0], row_groups(system).count
    none = Crossings(
        part=jnp.zeros(ns), rate=jnp.zeros(ns), jump=jnp.zeros((ns, system.nv)),
        force=jnp.zeros((ns, rows)), bits=jnp.asarray(0, int),
    )  # fmt: skip

    # one instant after the other, each from the sides behind the last: a surface may be crossed twice
    def one(both: tuple[Array, Array, Crossings]) -> tuple[Array, Array, Crossings]:
        count, sides, found = both
        past, new = _instant(path, sides)
        return count + 1, new, _with_instant(path, found, past, sides, new)

    def going(both: tuple[Array, Array, Crossings]) -> Array:
        count, sides, _ = both
        return (count < ns) & jnp.any(sides != last)

    def walk(_: Any) -> Any:
        return repeat(going, one, (jnp.asarray(0, int), first, none))[2]

    return branch(jnp.any(first != last), walk, lambda _: none, None)


def _instant(path: Path, sides: Array) -> tuple[tuple[Array, Array], Array]:
    """Parts of the step before and after the next instant at which a side changes, and the sides then."""

    def halve(_: Array, both: tuple[Array, Array]) -> tuple[Array, Array]:
        before, after = both
        middle = 0.5 * (before + after)
        # the earliest crossing: all surfaces are halved together
        crossed = jnp.any((path.surfaces(middle) > 0.0) != sides)
        return jnp.where(crossed, before, middle), jnp.where(crossed, middle, after)

    before, after = repeat_for(jnp.asarray(HALVINGS), halve, (jnp.zeros(()), jnp.ones(())))
    return (before, after), path.surfaces(after) > 0.0


def _with_instant(
    path: Path, found: Crossings, past: tuple[Array, Array], sides: Array, new: Array
) -> Crossings:
    """``found`` with the surfaces that are crossed between two parts of the step, see `_instant`."""
    step, crossed = path.step, sides != new
    system, criteria = step.system, criteria_of(step.scheme)
    held, rule = _held(step)

    def look(part: Array) -> tuple[Array, Array, Array, Array]:
        at = step.at(path.at(part))
        motion = accelerate(at, held, rule)
        a = motion.a

        def along(s: Array) -> Array:
            q = system.retract(at.q, s * at.v + 0.5 * s * s * a)
            value: Array = system.switch(at.t + s, q, at.v + s * a, step.params)  # type: ignore[misc]
            return value

        def rate(s: Array) -> Array:
            return jax.jvp(along, (s,), (jnp.ones(()),))[1]

        return a, motion.force, *jax.jvp(rate, (jnp.zeros(()),), (jnp.ones(()),))

    a, force, rate, bend = lax.map(look, jnp.stack(past))
    towards = jnp.where(new, 1.0, -1.0)
    jumps = jnp.zeros((), bool)
    for x in (a, force):
        jumps = jumps | jnp.any(jnp.abs(x[1] - x[0]) > LEAST_JUMP * jnp.max(jnp.abs(x), initial=0.0))
    # slower than what the motion changes in a step, an instant is not known to a step
    resolved = towards * rate[0] > criteria.gate * step.dt * jnp.abs(bend[0])
    # velocities that an impact throws across a surface do so at its instant, which has a shift of its own
    thrown = path.struck & (past[0] < 0.5) & (past[1] >= 0.5)
    back = towards * rate[1] <= 0.0
    shifted = crossed & resolved & jumps & ~thrown & (back | ~path.tried)
    # driven back from both sides the motion stays on the surface: the mean of both accelerations that
    # keeps it there (Filippov)
    share = jnp.where(back, rate[0] / jnp.where(shifted & back, rate[0] - rate[1], 1.0), 1.0)
    share = jnp.where(shifted, share / jnp.maximum(jnp.sum(shifted), 1), 0.0)[:, None]
    unsure = (jnp.any(crossed & ~resolved) | path.struck) & ~thrown & ~path.tried
    bits = jnp.where(jumps & unsure, gradient_notes.SWITCHED, 0)
    bits = bits | jnp.where(jumps & (jnp.sum(crossed) > 1) & ~path.tried, gradient_notes.TOGETHER, 0)
    return Crossings(
        part=jnp.where(crossed, past[1], found.part), rate=jnp.where(shifted, rate[0], found.rate),
        jump=found.jump + share * (a[1] - a[0]), force=found.force + share * (force[1] - force[0]),
        bits=found.bits | bits,
    )  # fmt: skip


def through_switches(step: Step, carry: Carry, output: Output) -> tuple[Carry, Output]:
    """Carry and output of a step with the derivative of a motion that crosses surfaces of its force."""
    if step.system.switch is None:
        return carry, output
    found = crossings(_with_crossings(path_of(step, carry.state, output)))
    groups = row_groups(step.system)
    moved = found.rate != 0.0

    def times(step: Step, end: State) -> Array:
        path = _with_crossings(path_of(step, end, output))
        values = jnp.diagonal(jax.vmap(path.surfaces)(found.part))
        return jnp.where(moved, -only_tangent(values) / jnp.where(moved, found.rate, 1.0), 0.0)

    none = jnp.zeros(found.rate.shape)
    tau = branch(jnp.any(moved), times, lambda *_: none, step, carry.state, again=True)
    # the force of the other side acts for ``tau`` longer: velocities change by the jump of acceleration
    # times it, positions by the velocity so gained over the rest of the step
    later = frozen(step.dt) * (1.0 - found.part) * tau
    state = carry.state
    state = dataclasses.replace(
        state, q=with_retract_tangent(step.system.retract, state.q, -matvec(found.jump.T, later)),
        v=with_tangent(state.v, -matvec(found.jump.T, tau)),
    )  # fmt: skip
    rows = -matvec(found.force.T, tau)
    contacts = groups.contacts(rows)
    changes = {
        "impulse_normal": contacts[:, 0], "impulse_tangential": contacts[:, 1:],
        "constraint_impulse": groups.bilateral(rows),
    }  # fmt: skip
    known = {name: (getattr(output, name), x) for name, x in changes.items()}
    moving: dict[str, Any] = {
        name: with_tangent(x, change) for name, (x, change) in known.items() if x is not None
    }
    return dataclasses.replace(carry, state=state), dataclasses.replace(output, **moving)


def force_notes(step: Step, carry: Carry, output: Output) -> Array:
    """Notes () on jumps of the force in a step, of surfaces without an instant and of none."""
    system, bits = step.system, jnp.asarray(0, int)
    if system.changing_contacts:
        return bits
    path = frozen(path_of(step, carry.state, output))
    if system.switch is not None:
        bits = crossings(_with_crossings(path)).bits
    state, p = step.state, step.params
    if getattr(system.parts, "own_laws", True) and decides(
        jax.make_jaxpr(lambda t, q, v: system.force(t, q, v, p))(jnp.asarray(state.t), state.q, state.v)
    ):
        other = _tried(path)
        back = branch(other.tried, _jumps_unseen, lambda _: jnp.zeros((), bool), other)
        bits = bits | jnp.where(_jumps_unseen(path) | back, gradient_notes.JUMP, 0)
    return bits


def _jumps_unseen(path: Path) -> Array:
    """Whether the force jumps inside a step, across no surface that its law declares: () bool.

    The half of the step in which the force changes by more, in the entry in which the halves differ most,
    is halved again, until the change is as small as a smooth force makes it, or does not become smaller.
    A jump in which the force changes less than smoothly in the rest of the step may be missed: the
    derivative of a step is not better.
    """
    step = path.step
    ends = jnp.zeros(()), jnp.ones(())
    first, last = path.force(ends[0]), path.force(ends[1])
    size = LEAST_JUMP * jnp.max(jnp.abs(jnp.stack([first, last])))

    def going(both: tuple[Array, tuple[Array, Array], tuple[Array, Array]]) -> Array:
        count, _, (first, last) = both
        return (count < HALVINGS) & jnp.any(jnp.abs(last - first) > size)

    def halve(both: tuple[Array, tuple[Array, Array], tuple[Array, Array]]) -> Any:
        count, (before, after), (first, last) = both
        middle = 0.5 * (before + after)
        found = path.force(middle)
        more = jnp.abs(found - first) - jnp.abs(last - found)
        # a jump stands out in one entry, whatever the others do
        left = jnp.max(more) >= jnp.max(-more)
        ends = jnp.where(left, before, middle), jnp.where(left, middle, after)
        return count + 1, ends, (jnp.where(left, first, found), jnp.where(left, found, last))

    _, ends, both = repeat(going, halve, (jnp.asarray(0, int), ends, (first, last)))
    change = both[1] - both[0]

    def confirmed(_: Any) -> Array:
        # rounding differs as much between other points near by, and moves nothing
        width = 2.0**10 * (ends[1] - ends[0])
        beside = path.force(ends[0] - width) - both[0], path.force(ends[1] + width) - both[1]
        alone = jnp.max(jnp.abs(change)) > 10.0 * jnp.max(jnp.abs(jnp.stack(beside)))
        a = step.start.inertia().solve(change[:, None])[:, 0]
        v = step.state.v
        moves = step.dt * jnp.max(jnp.abs(a)) > criteria_of(step.scheme).rest * (1.0 + jnp.max(jnp.abs(v)))
        thrown = path.struck & (ends[0] < 0.5) & (ends[1] >= 0.5)
        known = jnp.zeros((), bool)
        if step.system.switch is not None:
            known = jnp.any((path.surfaces(ends[0]) > 0.0) != (path.surfaces(ends[1]) > 0.0))
        moved = path.end.v - v
        turned = jnp.sum(
            moved * (step.dt * change + momentum(step.system, step.state.q, moved, step.params))
        )
        return alone & moves & ~thrown & ~known & ((turned < 0.0) | ~path.tried)

    return branch(jnp.any(jnp.abs(change) > size), confirmed, lambda _: jnp.zeros((), bool), None)
