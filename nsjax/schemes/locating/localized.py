"""`localized`: steps divided at instants at which a contact closes, opens, stops or begins to slide."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax

from nsjax import gradient_notes
from nsjax.core.arguments import check_is
from nsjax.core.guards import ARMED, GuardMemory, Guards
from nsjax.core.operators import refreshed
from nsjax.core.scheme import ROWS, Carry, Event, Output, Scheme, Traits, accumulated
from nsjax.core.step import Step, SystemState
from nsjax.core.system import State, System
from nsjax.jaxtools.control_flow import branch
from nsjax.renamed import renamed_fields, renamed_options
from nsjax.schemes.common import within
from nsjax.schemes.locating.mode_step import (
    ImpactContacts,
    LocatedImpact,
    located_impact,
    merged,
    step_in_modes,
)
from nsjax.schemes.locating.modes import locates_changes
from nsjax.schemes.locating.trial_steps import (
    CUTS,
    DEPTH,
    FirstEvent,
    MaskedParams,
    Start,
    Stepper,
    happening,
    in_one_step,
    inside,
)
from nsjax.types import Array, PyTree, record


@renamed_fields
@record()
class LocalizedCoefficients:
    """Numbers of the scheme inside, and the tolerance of impacts; see `localized`."""

    inner: PyTree
    contact_tolerance: Array | float


@dataclasses.dataclass(frozen=True)
class Options:
    """The scheme inside without its numbers, and the other options; see `localized`."""

    inner: Scheme
    max_iterations: int
    max_roots: int
    changes: bool = False


@renamed_options(tolerance="contact_tolerance")
def localized(
    scheme: Scheme, *, contact_tolerance: float = 1e-11, max_iterations: int = 50, max_roots: int = 60,
    changes: bool = False,
) -> Scheme:  # fmt: skip
    """A scheme that locates the times of impacts inside the steps of another scheme.

    With ``changes`` it also locates the times at which closed contacts open, stop or begin to slide.

    Let ``Phi_s`` be a step of length ``s`` of the given scheme in which contacts open at its start cannot
    act, and ``R`` the impact map of Newton and Coulomb with the mass matrix of the system. A step of length
    ``h`` is then::

        x_{n+1} = Phi_{h - s} R Phi_s x_n,        g(Phi_s x_n) = 0

    Here ``g`` is the least gap of the contacts that would be penetrated at the end of the step. Contacts
    that strike at the same instant, like both corners of a wall, have one common impact. After the impact
    the scheme starts anew with consistent accelerations. Schemes whose steps begin with an acceleration of
    a time before (generalized-alpha with damping) take the parts of a divided step by the trapezoidal rule,
    `nsjax.schemes.mixed.generalized_alpha.trapezoidal`. The rest of the step may be divided again, at up
    to `CUTS` instants in all. The time ``s`` is found without derivatives; its derivatives follow from the
    equation that defines it, to any order: also second derivatives (`jax.hessian`).

    With ``changes``, closed contacts stay in one mode during each part of the step: at rest under load,
    sticking, or sliding in one direction. The part ends at the first zero of ``g`` or of::

        opening:               the normal force lambda_N
        beginning to slide:    mu lambda_N - |lambda_T|
        stopping or reversing: the sliding velocity in its direction at the start of the part

    The forces are those of the mode. The contact laws on acceleration level choose the next mode. A bounce
    that would fly for less than a step (`located_impact.SETTLES`) is the last of an accumulation: its
    contact closes without restitution, and its contact force replaces the impulses of the bounces that are
    left out. Parts of steps use the formulas of the scheme, with linear equations of the modes in place of
    the contact laws.

    Args:
        scheme: any scheme of the package.
        contact_tolerance: bound on the natural-map residual of the contact problem of an impact.
        max_iterations: largest number of plain Newton steps of that problem.
        max_roots: largest number of trial steps that locate an impact; usually there are five or six.
        changes: whether to locate the times at which closed contacts open, stop or begin to slide; around
            `half_explicit`, without friction or in the plane.

    Returns:
        A `Scheme` with the name ``localized(...)`` around the name of the scheme inside. Where it locates
        nothing, at reversals of sliding and in steps that are left to the scheme inside, it has the
        derivative of that scheme; with ``gradient="discrete"`` it has none there.

    Raises:
        InputError: if ``scheme`` is no scheme, and for less than one iteration or trial step.

    Cost: the program is some 2.4 times that of the scheme inside; steps take 1.2 to 1.8 times as long.

    Order: that of the scheme inside, for state and derivative, at impacts and at changes of closed contacts
    that are located. The derivative is of first order at other reversals of sliding, and in steps left to
    the scheme inside.

    Limits:
        Changes of closed contacts are located for systems with a dense structure and without bounded rows,
        around `half_explicit` on velocity level. That scheme makes the rates of closed contacts zero at the
        end of a step. Moreau's rule, the theta-method and GGL make them zero with the rows of the midpoint
        and leave ``O(dt)`` at the end, by which slipping or opening would begin. Schemes with stages have
        no modes. Around all these schemes only impacts are located. For the same reason a contact that
        rests keeps bouncing in Moreau's steps, with rates of ``O(dt)``, if its normal turns.

        Some steps are left to the scheme inside, with its treatment of contacts and its derivative, and are
        noted as `gradient_notes.UNLOCATED`: if an approach is slower than two steps of normal acceleration
        (grazing; with ``changes`` not for contacts that bounced lately); without ``changes``, if a contact
        closes again after its impact; if more than `CUTS` instants are in the step; and if a time is not
        found. Instants of impacts in such steps are those of the scheme inside.

        If a contact strikes several times in a step, the list of impacts has one entry: the time of the
        first impact, with the impulses of all.

        Second derivatives treat the coefficients of the first ones as constants in steps left to the scheme
        inside, at reversals of sliding, and where independent impacts strike at the same instant. A contact
        that closes and opens again within one step, without being penetrated at its end, is not detected.
        Dividing a step excites stiff flexible modes. A step with an impact costs about eight steps.

    Source: the implicit function theorem on ``g(Phi_s x_n) = 0``; the papers do not treat it.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> scheme = schemes.localized(schemes.moreau())
        >>> traj = nsjax.simulate(models.bouncing_ball(height=1.0), scheme, dt=0.05, time=0.6)
        >>> fall = (2.0 / 9.81) ** 0.5  # one impact with e = 0.8; parabolas are exact in any step
        >>> exact = 0.05 + 0.8 * 9.81 * fall * (0.6 - fall) - 9.81 / 2 * (0.6 - fall) ** 2
        >>> bool(abs(traj.q[-1, 0] - exact) < 1e-11)
        True
    """
    check_is("localized", "scheme", scheme, Scheme)
    inner = dataclasses.replace(scheme, coef=())
    return Scheme(
        name=f"localized({scheme.name})",
        coef=LocalizedCoefficients(inner=scheme.coef, contact_tolerance=contact_tolerance),
        options=Options(
            inner=inner,
            max_iterations=within("localized", "max_iterations", max_iterations, 1),
            max_roots=within("localized", "max_roots", max_roots, 1),
            changes=changes,
        ),
        prepare=_prepare, init=_init, step=_step, gradient=scheme.gradient, criteria=scheme.criteria,
        traits=Traits(
            impulses=scheme.traits.impulses, accelerations=scheme.traits.accelerations,
            joints_inside=scheme.traits.joints_inside,
            implicit_damping=scheme.traits.implicit_damping, locates=True,
        ),
    )  # fmt: skip


def _prepare(scheme: Scheme, system: System, params: PyTree, dt: Array) -> PyTree:
    inner = inside(scheme)
    return inner.prepare(inner, system, params, dt)


def _init(scheme: Scheme, system: System, params: PyTree, constants: PyTree, state: State) -> Carry:
    inner = inside(scheme)
    return inner.init(inner, system, params, constants, state)


def _step(
    scheme: Scheme, system: System, params: PyTree, constants: PyTree, carry: Carry, dt: Array
) -> tuple[Carry, Output]:
    if not system.nc:
        inner = inside(scheme)
        return inner.step(inner, system, params, constants, carry, dt)
    if locates_changes(scheme, system, params):
        step = Step(
            scheme=scheme, system=system, params=params, constants=constants, carry=carry,
            dt=jnp.asarray(dt),
        )  # fmt: skip
        return step_in_modes(step)
    stepper = Stepper(system)
    state = State(t=jnp.asarray(carry.state.t), q=carry.state.q, v=carry.state.v)
    d = Start(
        scheme=scheme, params=params, constants=constants, dt=jnp.asarray(dt),
        carry=dataclasses.replace(carry, state=state), may=jnp.ones(system.nc, bool),
        search=jnp.asarray(True),
    )  # fmt: skip
    flight = stepper.fly(d.dt, stepper.begin(d))

    def in_parts() -> tuple[Carry, Output]:
        part = _parts(stepper, d, flight.end, None)
        bits = part.output.notes | jnp.where(flight.hit & ~part.search, gradient_notes.UNLOCATED, 0)
        return part.carry, dataclasses.replace(part.output, notes=bits)

    return branch(jnp.any(flight.hit), in_parts, lambda: flight.end)


@record()
class _PartialStep:
    """A step of which some parts are done.

    Args:
        carry: carry at the end of these parts.
        left: () time to the end of the step [s].
        output: output of these parts, summed.
        done: () bool, whether the step has ended.
        failed: () bool, whether the step must be left to the scheme inside.
        search: () bool, whether impacts are looked for; if not, the step is left to the scheme inside.
        guards: memory of the guards of the run; None: there are none.
        fired: () bool, whether one of them was met.
    """

    carry: Carry
    left: Array
    output: Output
    done: Array
    failed: Array
    search: Array
    guards: GuardMemory | None = None
    fired: Array | bool = False


def _parts(
    stepper: Stepper, whole: Start, like: tuple[Carry, Output], guards: GuardMemory | None
) -> _PartialStep:
    """A step after all its parts.

    Where an instant is not found, or there are too many, the last part is the step of the scheme inside
    over the whole time: one trial step in the program serves both. Guards divide that step, too, at most
    twice.
    """
    zero = dataclasses.replace(
        jax.tree.map(jnp.zeros_like, like[1]), contact=jnp.full_like(like[1].contact, -1)
    )
    no = jnp.asarray(False)
    start = _PartialStep(
        carry=whole.carry, left=whole.dt, output=zero, done=no, failed=no, search=jnp.asarray(True),
        guards=guards, fired=no,
    )  # fmt: skip
    left_over = dataclasses.replace(start, search=no)
    count = CUTS + 2 if guards is None else CUTS + 4

    def cut(part: _PartialStep, k: Array) -> tuple[_PartialStep, None]:
        given_up = ~part.done & part.search & (part.failed | (k > CUTS))
        part = jax.tree.map(lambda a, b: jnp.where(given_up, a, b), left_over, part)
        if part.guards is not None:  # the last part is the rest of the step in any case
            armed = part.guards.armed & (k < count - 1)
            part = dataclasses.replace(part, guards=dataclasses.replace(part.guards, armed=armed))
        advance = lambda p: _advance_part(stepper, whole, p, like)  # noqa: E731
        return branch(part.done, lambda p: p, advance, part), None

    return lax.scan(cut, start, jnp.arange(count))[0]


def _advance_part(
    stepper: Stepper, whole: Start, part: _PartialStep, like: tuple[Carry, Output]
) -> _PartialStep:
    """The step after its next part: to its end, or through the next impact or guard."""
    state = part.carry.state
    given = whole.params
    if stepper.guards is not None:
        assert part.guards is not None
        given = stepper.guards.given(given, part.guards.numbers)
    fresh = refreshed(stepper.system, state.t, state.q, given)
    d = dataclasses.replace(whole, carry=part.carry, dt=part.left, params=fresh, search=part.search)
    if part.guards is not None:
        d = dataclasses.replace(d, armed=part.guards.armed, size=part.guards.size)
    d = stepper.begin(in_one_step(d))
    if stepper.guards is None:
        return _settled(stepper, whole, d, _flown_part(stepper, d, part, like)[0])
    # an impact may have thrown the state over a zero, at its instant
    over = d.armed & (lax.stop_gradient(stepper.values(d, d.carry.state)[1][stepper.system.nc :]) <= 0.0)
    part, met = branch(
        jnp.any(over), lambda: (part, over), lambda: _flown_part(stepper, d, part, like)
    )  # fmt: skip
    part = branch(jnp.any(met), lambda: _after_guard(stepper, d, part, met), lambda: part)
    return _settled(stepper, whole, d, part)


def _settled(stepper: Stepper, whole: Start, d: Start, part: _PartialStep) -> _PartialStep:
    """The step after its parts; where the last one, ``d``, is short, with accelerations as at a start.

    A part of the length ``h`` removes rates of closed rows left by rounding, 1e-16, with a force of 1e-16
    over ``h``, whose derivative by the instant is 1e-16 over ``h^2``: too large for a thousandth of a step.
    """
    short, inner = 1e-3, inside(d.scheme)
    known = inner.traits.accelerations
    if known is None or known.carries == "none":
        return part
    state, p = part.carry.state, d.params

    def anew() -> PyTree:
        given = p if part.guards is None else stepper.guards.given(p, part.guards.numbers)  # type: ignore[union-attr]
        given = stepper.params(refreshed(stepper.system, state.t, state.q, given), d.may)
        return inner.init(inner, stepper.masked, given, d.constants, state).memory

    memory = branch(part.done & (d.dt < short * whole.dt), anew, lambda: part.carry.memory)
    return dataclasses.replace(part, carry=dataclasses.replace(part.carry, memory=memory))


def _flown_part(
    stepper: Stepper, d: Start, part: _PartialStep, like: tuple[Carry, Output]
) -> tuple[_PartialStep, Array]:
    """The step after its part from ``d`` on, and the guards that are met at its end."""
    x = stepper.to_impact(d, like)

    def rest() -> _PartialStep:
        end, output = x.flight.end
        # a contact that hits again right after its impact is left to the scheme inside
        again = part.search & jnp.any(output.event.impact)
        every = _sum(part.output, output, output.event)
        event = jax.tree.map(lambda a, b: jnp.where(part.search, a, b), every.event, output.event)
        guards = part.guards
        if guards is not None:
            guards = guards.seen(x.flight.values[stepper.system.nc :] * guards.size)
        return dataclasses.replace(
            part, carry=end, left=jnp.zeros_like(part.left), output=dataclasses.replace(every, event=event),
            done=~again, failed=again, guards=guards,
        )  # fmt: skip

    nc = stepper.system.nc
    struck = lambda: branch(jnp.any(x.flight.hit[:nc]), lambda: _after_impact(stepper, d, x, part), rest)  # noqa: E731
    strikes = nc - (stepper.system.bounded.count if stepper.system.bounded else 0)  # bounded forces do not
    struck = struck if strikes else rest
    if stepper.guards is None:
        return struck(), jnp.zeros(0, bool)
    values, hit = x.flight.values, x.flight.hit
    met = happening(values, hit)[nc:]

    def met_at_end() -> _PartialStep:
        carry, output = x.flight.end
        return dataclasses.replace(
            part,
            carry=carry,
            left=d.dt - x.time,
            output=_sum(part.output, output, output.event),
            failed=part.search & jnp.any(output.event.impact),
        )

    return branch(jnp.any(met), met_at_end, struck), met


def _after_guard(stepper: Stepper, d: Start, part: _PartialStep, met: Array) -> _PartialStep:
    """The step after the guards that are ``met`` (k,) bool at the end of its parts so far."""
    system, guards, memory, carry = stepper.system, stepper.guards, part.guards, part.carry
    assert guards is not None
    assert memory is not None
    there = SystemState(system=system, params=d.params, state=carry.state)
    stopped = jnp.asarray(False)
    if guards.stop is not None:
        memory = dataclasses.replace(memory, count=memory.count + met[0])
        stopped = met[0] & (memory.count >= guards.count)
    first = 0 if guards.stop is None else 1
    if guards.resets:
        inner, at = inside(d.scheme), there.state
        there = dataclasses.replace(there, params=refreshed(system, at.t, at.q, d.params))
        memory = dataclasses.replace(memory, numbers=guards.numbers_after(there, met, memory.numbers))
        state = guards.after(there, met)
        given = refreshed(system, state.t, state.q, guards.given(d.params, memory.numbers))
        there = SystemState(system=system, params=given, state=state)
        turned = jnp.any(met[first:])
        if guards.closes:
            state, closed = _closed(stepper, d, part, there)
            part = jax.tree.map(lambda a, b: jnp.where(turned, a, b), closed, part)
        fresh = inner.init(inner, stepper.masked, stepper.params(given, d.may), d.constants, state)
        carry = jax.tree.map(lambda a, b: jnp.where(turned, a, b), fresh, carry)
    values = lax.stop_gradient(guards.values(dataclasses.replace(there, state=carry.state)))
    armed = jnp.where(met, values > ARMED * memory.size, memory.armed | (values > 0.0))
    memory = dataclasses.replace(memory, armed=armed, stopped=stopped)
    return dataclasses.replace(part, carry=carry, done=stopped, guards=memory, fired=jnp.asarray(True))


def _closed(
    stepper: Stepper, d: Start, part: _PartialStep, there: SystemState
) -> tuple[State, _PartialStep]:
    """State and step after the plastic impact of rows that have just come, with the contacts that touch."""
    none, touch = jnp.zeros_like(d.may), d.may & ~(there.gap() > DEPTH)
    impact = located_impact(d.scheme, there, ImpactContacts(now=none, resting=touch, active=touch, dt=d.dt))
    return impact.state, dataclasses.replace(part, output=_with_impact(part.output, impact))


def through_guards(
    step: Step, guards: Guards, memory: GuardMemory, end: tuple[Carry, Output]
) -> tuple[Carry, Output, GuardMemory]:
    """A step divided at the instants at which guards are met, whose state is reset there, or which ends
    there: carry, output and memory of the guards after it. It is located as impacts are, by every scheme.
    ``end``: carry and output of the step if nothing is met.
    """
    carry, output = end
    values = guards.values(step.at(carry.state))
    seen = dataclasses.replace(memory.seen(values), elapsed=step.dt)
    # a step with an impact may pass through a zero before it, or after it
    looks = jnp.any(memory.armed & (lax.stop_gradient(values) <= 0.0)) | jnp.any(output.event.impact)

    def located() -> tuple[Carry, Output, GuardMemory]:
        scheme = step.scheme if step.scheme.traits.locates else localized(step.scheme)
        stepper = Stepper(step.system, guards)
        state = State(t=jnp.asarray(step.state.t), q=step.state.q, v=step.state.v)
        whole = Start(
            scheme=scheme, params=step.params, constants=step.constants, dt=jnp.asarray(step.dt),
            carry=dataclasses.replace(step.carry, state=state), may=jnp.ones(step.system.nc, bool),
            search=jnp.asarray(True), armed=memory.armed, size=seen.size,
        )  # fmt: skip
        shapes = jax.eval_shape(stepper.fly, whole.dt, whole).end
        like = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
        part = _parts(stepper, whole, like, dataclasses.replace(memory, size=seen.size))
        assert part.guards is not None
        found = dataclasses.replace(part.guards, elapsed=step.dt - part.left)
        event = part.output.event
        if event.unheld is None and output.event.unheld is not None:  # known to some schemes
            event = dataclasses.replace(event, unheld=output.event.unheld & False)
        ended = dataclasses.replace(part.output, event=event)
        met = part.fired & part.done
        return jax.tree.map(
            lambda a, b: jnp.where(met, a, b), (part.carry, ended, found), (carry, output, seen)
        )

    return branch(looks, located, lambda: (carry, output, seen))


def _after_impact(stepper: Stepper, d: Start, x: FirstEvent, part: _PartialStep) -> _PartialStep:
    """The step after its next impact, the end of its part ``x``."""
    system, (before, first) = stepper.system, x.flight.end
    at, values = before.state, x.flight.values[: system.nc]
    now = happening(values, x.flight.hit[: system.nc], 2.0 * DEPTH)
    there = SystemState(system=system, params=refreshed(system, at.t, at.q, d.params), state=at)
    struck = ImpactContacts(now=now, resting=d.may, active=first.event.active | now, dt=d.dt)
    impact = located_impact(d.scheme, there, struck)
    jump, inner = impact.jump, inside(d.scheme)
    p = MaskedParams(params=there.params, may=now | d.may)
    after = inner.init(inner, stepper.masked, p, d.constants, impact.state)
    event = Event(
        gap=jnp.where(now, -DEPTH, values - DEPTH), active=struck.active, impact=now,
        rate_before=jump.before, rate_after=jump.after,
        shift=jnp.where(now, at.t - (d.carry.state.t + d.dt), 0.0), timed=now,
    )  # fmt: skip
    own = _with_impact(first, impact)
    bad = ~x.found | impact.failed | jnp.any(first.event.impact)
    return dataclasses.replace(
        part, carry=after, left=d.dt - x.time, output=_sum(part.output, own, event), failed=bad
    )


def _with_impact(output: Output, impact: LocatedImpact) -> Output:
    """``output`` of the part before an impact, with the impulses, iterations and notes of the impact."""
    jump = impact.jump
    return dataclasses.replace(
        output,
        impulse_normal=output.impulse_normal + jump.contacts[:, 0],
        impulse_tangential=output.impulse_tangential + jump.contacts[:, 1:],
        constraint_impulse=output.constraint_impulse + jump.constraints,
        iterations=output.iterations + jump.iterations,
        residual=jnp.maximum(output.residual, jump.residual),
        notes=output.notes | impact.notes,
    )


def _sum(so_far: Output, now: Output, event: Event) -> Output:
    """Output of a step so far, with that of its next part added; ``event`` is the decision of this part."""
    rows = {name: getattr(so_far, name) for name in ROWS if getattr(so_far, name) is not None}
    return dataclasses.replace(
        now, **accumulated(rows, now), event=merged(so_far.event, event), status=so_far.status | now.status
    )
