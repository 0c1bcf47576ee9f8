"""Locates events inside a step: it is cut where a contact closes, leaves, stops or begins to slide."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax

from nsjax import notes
from nsjax.contact import Jump, SolverSettings, events, saltation, velocity_jump
from nsjax.contact.acceleration import SlidingRule
from nsjax.contact.criteria import criteria_of
from nsjax.contact.event_motion import EventMotion, accelerate, near_border, shift_back
from nsjax.contact.links import struck_with
from nsjax.core.branches import branch
from nsjax.core.operators import refreshed
from nsjax.core.quantities import ROWS, accumulated
from nsjax.core.scheme import Carry, Event, Output, Scheme
from nsjax.core.step import SystemState, formed
from nsjax.core.system import State, System
from nsjax.nonlinear import only_tangent
from nsjax.schemes.choices import within
from nsjax.schemes.locating.modes import forces_in, no_modes
from nsjax.schemes.locating.trial_steps import DEPTH, FAR, Masked, Start, Stepper, inside, locate
from nsjax.types import Array, PyTree, record

CUTS = 3
"""Instants of events in one step that are located; a step with more is one of an accumulation."""


@record()
class Numbers:
    """Numbers of the scheme inside, and of the impact: see `localized`."""

    inner: PyTree
    tolerance: Array | float


@dataclasses.dataclass(frozen=True)
class Options:
    """The scheme inside without its numbers, and iterations of the impact and of its time."""

    inner: Scheme
    max_iterations: int
    max_roots: int
    changes: bool = False


def localized(
    scheme: Scheme, *, tolerance: float = 1e-11, max_iterations: int = 50, max_roots: int = 60,
    changes: bool = False,
) -> Scheme:  # fmt: skip
    """A scheme that resolves the times of impacts, and with ``changes`` of those of closed contacts, inside
    the step.

    With the step ``Phi_s`` of length ``s`` of the given scheme, in which contacts open at the start
    cannot act, and the impact map ``R`` of Newton and Coulomb with the plain mass matrix::

        x_{n+1} = Phi_{h - s} R Phi_s x_n,        g(Phi_s x_n) = 0

    where ``g`` is the least gap of the contacts that would be penetrated at the end of the step; contacts
    that strike at one instant, like both corners of a wall, do so together. After the impact the
    scheme starts anew, with consistent accelerations, and what is left of the step may be cut again, at
    up to `CUTS` instants. The time ``s`` is found without derivatives and has those of the equation
    that defines it, of any order: second ones (`jax.hessian`) included.

    With ``changes``, around `half_explicit`, without friction or in the plane, closed contacts keep to
    their mode (at rest under load, sticking, sliding forth or back) in each part of the step, and
    ``g`` is also the least of the functions whose zeros end it::

        leaves or slips:  lambda_N  or  mu lambda_N - |lambda_T|,  the forces of the mode
        stops or turns:   the sliding velocity in its direction at the start of the part

    The motion goes on in the mode that the laws on acceleration level choose.

    Args:
        scheme: any scheme of the package.
        tolerance: bound on the natural-map residual of the contact problem of an impact.
        max_iterations: plain Newton steps of that problem.
        max_roots: trial steps that locate an impact; usually five or six are made.
        changes: whether times are found at which closed contacts leave, stop or begin to slide. For states:
            derivatives through sticking, slipping and turning are not tested, and with friction their
            programs are large and compile for minutes.

    Returns:
        A `Scheme` with the registered name of the scheme inside, in brackets. Where it locates nothing it
        carries the derivative of the scheme inside: through reversals of sliding, and through steps
        that are left to it. ``gradient="discrete"`` leaves that out.

    Raises:
        InputError: as the scheme inside.

    Order: that of the scheme inside, state and derivative, at impacts, and where changes of closed contacts
    are located; first order in the derivative at other reversals of sliding and in steps left to the
    scheme inside.

    Limits: changes of closed contacts are located for systems with a dense structure, without bounded rows;
        the scheme inside is `half_explicit` on velocity level. A step is carried out by
        the scheme inside alone, with its own treatment of the contacts and its own derivative, if a contact
        closes again after its impact, if the approach is slower than two steps of free normal acceleration
        (grazing, the end of a sequence of bounces), if more instants than `CUTS` are in it, or if a time is
        not found: `notes.UNLOCATED`. Second derivatives hold the factors of the first ones fixed in such
        steps, at reversals of sliding, and where independent impacts strike at one instant. A contact that
        opens and closes again within one step without being penetrated at its end is not seen. The cut
        excites stiff flexible modes. A step with an impact costs about eight steps.

    Source: the implicit function theorem on ``g(Phi_s x_n) = 0``; nothing of it is in the papers.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> scheme = schemes.localized(schemes.moreau())
        >>> traj = nsjax.simulate(*models.bouncing_ball(height=1.0), scheme, dt=0.05, time=0.6)
        >>> fall = (2.0 / 9.81) ** 0.5  # one impact with e = 0.8; parabolas are exact in any step
        >>> exact = 0.05 + 0.8 * 9.81 * fall * (0.6 - fall) - 9.81 / 2 * (0.6 - fall) ** 2
        >>> bool(abs(traj.q[-1, 0] - exact) < 1e-11)
        True
    """
    inner = dataclasses.replace(scheme, coef=())
    return Scheme(
        name=f"localized({scheme.name})",
        coef=Numbers(inner=scheme.coef, tolerance=tolerance),
        options=Options(
            inner=inner,
            max_iterations=within("localized", "max_iterations", max_iterations, 1),
            max_roots=within("localized", "max_roots", max_roots, 1),
            changes=changes,
        ),
        prepare=_prepare,
        init=_init,
        step=_step,
        gradient=scheme.gradient,
        criteria=scheme.criteria,
        accelerations=scheme.accelerations,
        impulses=scheme.impulses,
        joints_inside=scheme.joints_inside,
        locates=True,
    )


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
    stepper, none = Stepper(system, scheme, params), jnp.zeros(system.nc, bool)
    state = State(t=jnp.asarray(carry.state.t), q=carry.state.q, v=carry.state.v)
    d = Start(
        scheme=scheme, params=params, constants=constants, dt=jnp.asarray(dt), may=none,
        carry=dataclasses.replace(carry, state=state), hit=jnp.zeros((stepper.kinds, system.nc), bool),
        depth=jnp.zeros(()), base=jnp.zeros(system.nc), gone=none, begun=jnp.zeros(system.nc),
        modes=no_modes(system.nc) if stepper.keeps else None,
    )  # fmt: skip
    aimed, flight = stepper.trial(d)
    return branch(jnp.any(aimed.hit), lambda: _strike(stepper, d, aimed, flight[1]), lambda: flight)


@record()
class _PartialStep:
    """A step that is partly done: state, time left, books, and whether it has ended or failed."""

    carry: Carry
    left: Array
    output: Output
    done: Array
    failed: Array
    gone: Array
    begun: Array


def _strike(stepper: Stepper, whole: Start, first: Start, like: Output) -> tuple[Carry, Output]:
    """A step in which contacts close: cut at their instants, or left to the scheme inside."""
    zero = jax.tree.map(jnp.zeros_like, like)
    zero = dataclasses.replace(zero, contact=like.contact)
    no = jnp.asarray(False)
    part = _PartialStep(
        carry=whole.carry, left=whole.dt, output=zero, done=no, failed=no, gone=whole.gone,
        begun=whole.begun,
    )  # fmt: skip

    def cut(part: _PartialStep, _: None) -> tuple[_PartialStep, None]:
        return branch(part.done, lambda p: p, lambda p: _advance_part(stepper, whole, p), part), None

    part, _ = lax.scan(cut, part, None, length=CUTS + 1)

    def plain() -> tuple[Carry, Output]:
        carry, output = stepper.advance(whole, whole.dt, jnp.ones_like(whole.may), None)
        bits = output.notes | jnp.where(jnp.any(first.hit, axis=0), notes.UNLOCATED, 0)
        return carry, dataclasses.replace(output, notes=bits)

    return branch(part.done & ~part.failed, lambda: (part.carry, part.output), plain)


def _advance_part(stepper: Stepper, whole: Start, part: _PartialStep) -> _PartialStep:
    """Steps to the end of the step if nothing is hit, else to the next impact and through it."""
    state = part.carry.state
    fresh = refreshed(stepper.system, state.t, state.q, whole.params)
    d = dataclasses.replace(
        whole, carry=part.carry, dt=part.left, params=fresh, gone=part.gone, begun=part.begun
    )
    d, (end, output) = stepper.trial(d)

    def rest() -> _PartialStep:
        # a contact that hits again right after its impact is left to the scheme inside
        again = jnp.any(output.event.impact)
        whole_output = _added(part.output, output, output.event)
        return dataclasses.replace(
            part, carry=end, left=jnp.zeros_like(part.left), output=whole_output, done=jnp.asarray(True),
            failed=part.failed | again,
        )  # fmt: skip

    return branch(jnp.any(d.hit), lambda: _through(stepper, d, part), rest)


def _through(stepper: Stepper, d: Start, part: _PartialStep) -> _PartialStep:
    """Steps to the next event and through it."""
    system = stepper.system
    sigma, located = locate(stepper)(d)
    before, first = stepper.advance(d, sigma, d.may, d.modes)
    at = before.state
    told = stepper.told(d, at)
    # contacts that strike at one instant lie equally deep, to the rounding of their gaps
    now = d.hit & (told <= jnp.min(jnp.where(d.hit, told, FAR)) + 0.1 * DEPTH)
    there = refreshed(system, at.t, at.q, d.params)
    impact = lambda _: _blow(stepper, d, SystemState(system=system, params=there, state=at), first, now[0])  # noqa: E731
    change = lambda _: _changed(stepper, d, at, first)  # noqa: E731
    if stepper.keeps:
        state, own, event, bad = branch(jnp.any(now[0]), impact, change, None)
    else:
        state, own, event, bad = impact(None)
    gone, begun = part.gone, part.begun
    if d.modes is not None:
        gone = (gone | now[1]) & ~now[0]
    if d.modes is not None and system.nt:
        ahead = -jnp.sign(forces_in(stepper.at(d, at), d.modes)[0][:, 1])
        begun = jnp.where(now[3], events.frozen(ahead), jnp.where(now[2], 0.0, begun))
    inner = inside(d.scheme)
    p = Masked(params=there, may=(now[0] | d.may) & ~gone)
    after = inner.init(inner, stepper.masked, p, d.constants, state)
    bad = bad | ~located | jnp.any(first.event.impact)
    return _PartialStep(
        carry=after, left=d.dt - sigma, output=_added(part.output, own, event),
        done=part.done, failed=part.failed | bad, gone=gone, begun=begun,
    )  # fmt: skip


_Met = tuple[State, Output, Event, Array]
"""What an event makes of the motion: state, books, contact decision, and whether it failed."""


def _changed(stepper: Stepper, d: Start, at: State, first: Output) -> _Met:
    """A closed contact leaves, stops or begins to slide: the motion goes on from the same state."""
    event = first.event
    zero = jnp.zeros(stepper.system.nc)
    rates = {"rate_before": zero, "rate_after": zero, "shift": zero}
    none = jnp.zeros(stepper.system.nc, bool)
    event = dataclasses.replace(event, gap=stepper.gaps(d, at), impact=none, timed=none, **rates)
    return at, first, event, jnp.asarray(False)


def _blow(stepper: Stepper, d: Start, there: SystemState, first: Output, struck: Array) -> _Met:
    """The impact of the contacts ``struck`` (nc,)."""
    system, coef, at = stepper.system, d.scheme.coef, there.state
    gap = stepper.gaps(d, at)
    f = formed(there)
    active = first.event.active | struck
    settings = SolverSettings(tolerance=coef.tolerance, max_iterations=d.scheme.options.max_iterations)
    jump = velocity_jump(f, active, settings)
    inner = inside(d.scheme)
    limit, _ = events.gate(criteria_of(inner), f, d.dt)
    slow = jnp.any(struck & (jump.before >= -limit))
    links = events.linked(criteria_of(inner), f, active)
    pairs = struck_with(links, struck)
    state, near = State(t=at.t, q=at.q, v=at.v + jump.dv), jnp.zeros(system.nc, bool)
    if d.scheme.gradient != "discrete":
        apart = (jnp.sum(struck) > 1) & ~jnp.any(pairs)
        around = _around(inner, f.at, state, jump, struck, d.may)
        if system.nt:
            near = struck & near_border(around, events.frozen(d.dt))
        state = branch(
            apart, lambda s: _each_in_time(around, s, jump, struck, gap, d.dt), lambda s: s, state
        )
    event = Event(
        gap=jnp.where(struck, -DEPTH, gap), active=active, impact=struck, rate_before=jump.before,
        rate_after=jump.after, shift=jnp.where(struck, at.t - (d.carry.state.t + d.dt), 0.0), timed=struck,
    )  # fmt: skip
    own = _with_jump(first, jump, jnp.where(pairs, notes.TOGETHER, 0) | jnp.where(near, notes.KINK, 0))
    return state, own, event, slow | ~(jump.residual <= coef.tolerance)


def _with_jump(output: Output, jump: Jump, bits: Array) -> Output:
    """The part before an impact, and the impact."""
    return dataclasses.replace(
        output,
        impulse_normal=output.impulse_normal + jump.contacts[:, 0],
        impulse_tangential=output.impulse_tangential + jump.contacts[:, 1:],
        constraint_impulse=output.constraint_impulse + jump.constraints,
        iterations=output.iterations + jump.iterations,
        residual=jnp.maximum(output.residual, jump.residual),
        notes=output.notes | bits,
    )


def _around(
    inner: Scheme, at: SystemState, end: State, jump: Jump, struck: Array, resting: Array
) -> EventMotion:
    """Data of the motion around a located impact."""
    criteria = criteria_of(inner)
    here, there, still = events.frozen((at, end, jump))
    rule, system = SlidingRule(criteria=criteria), at.system
    a, _ = accelerate(here, resting, rule)
    return EventMotion(
        at=here, a=a, aside=jnp.zeros((system.nv, system.nc)), end=there, resting=resting,
        after=(resting | struck) & events.at_rest(criteria, still.after, there.v), rule=rule,
        active=struck | resting,
        impulses=jnp.concatenate([still.contacts.reshape(-1), still.constraints]),
    )  # fmt: skip


def _each_in_time(
    around: EventMotion, end: State, jump: Jump, struck: Array, gap: Array, dt: Array
) -> State:
    """``end`` whose derivative has every impact at its own time. Impacts of one instant that know nothing
    of each other are located as the deepest of them, whose time moves with a mean of their data.
    """
    tau = jnp.where(struck, -only_tangent(gap, refuse=False) / jnp.where(struck, jump.before, -1.0), 0.0)
    shift = saltation.Shift(tau=tau, mean=jnp.zeros(()), events=struck, apart=jnp.asarray(True))
    return shift_back(around, end, shift, events.frozen(dt))[0]


def _added(so_far: Output, now: Output, event: Event) -> Output:
    """Books of a step with those of its next part added."""
    old = so_far.event
    fresh = event.impact & ~old.impact
    merged = Event(
        gap=jnp.where(old.impact & ~event.impact, old.gap, event.gap),
        active=old.active | event.active,
        impact=old.impact | event.impact,
        rate_before=jnp.where(fresh, event.rate_before, old.rate_before),
        rate_after=jnp.where(fresh, event.rate_after, old.rate_after),
        shift=jnp.where(fresh, event.shift, old.shift),
        timed=old.timed | event.timed,
    )
    books = {name: getattr(so_far, name) for name in ROWS if getattr(so_far, name) is not None}
    return dataclasses.replace(
        now, **accumulated(books, now), event=merged, status=so_far.status | now.status
    )
