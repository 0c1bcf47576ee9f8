"""Locates events inside a step: it is cut where a contact closes, leaves, stops or begins to slide."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import lax

from nsjax import notes
from nsjax.contact import Jump
from nsjax.core.arguments import check_is
from nsjax.core.branches import branch
from nsjax.core.operators import refreshed
from nsjax.core.quantities import ROWS, accumulated
from nsjax.core.scheme import Carry, Event, Output, Scheme
from nsjax.core.step import Step, SystemState
from nsjax.core.system import State, System
from nsjax.schemes.choices import within
from nsjax.schemes.locating.blow import Struck, blow, merged
from nsjax.schemes.locating.mode_step import step_in_modes
from nsjax.schemes.locating.modes import kept
from nsjax.schemes.locating.trial_steps import (
    CUTS,
    DEPTH,
    FAR,
    SAME_INSTANT,
    Masked,
    Start,
    Stepper,
    inside,
    locate,
)
from nsjax.types import Array, PyTree, record


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

    The motion goes on in the mode that the laws on acceleration level choose. A bounce from a flight of
    less than a step (`blow.SETTLES`) is the last of an accumulation: its contact closes without
    restitution, and makes the impulses of the bounces that are left out while it is closed. Parts of steps
    are taken by the formulas of the scheme with linear equations of the modes in the place of the laws.

    Args:
        scheme: any scheme of the package.
        tolerance: bound on the natural-map residual of the contact problem of an impact.
        max_iterations: plain Newton steps of that problem.
        max_roots: trial steps that locate an impact; usually five or six are made.
        changes: whether times are found at which closed contacts leave, stop or begin to slide. The
            program is then smaller, too: parts of steps are taken by equations of the modes, without
            contact problems. A slider-crank that bounces and rests (300 steps of 1e-4 s): two thirds of
            the program, half as much time again (1.9 and 2.8 times that of the scheme inside).

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
        the scheme inside is `half_explicit` on velocity level, which holds the rates of closed contacts at
        the end of a step. Moreau's rule, the theta method and GGL hold them by rows of the midpoint and
        leave ``O(dt)`` of them at the end, with which slipping or a release would begin: tried with
        Moreau's rule, derivatives on a vibrating belt were wrong by 0.2 % at one step size and by a
        multiple of themselves at others. Schemes with stages have no modes. Around all these impacts alone
        are located. For the same reason a contact that rests between Moreau's steps keeps bouncing with
        rates of ``O(dt)`` where its direction turns: the list of impacts of a slider-crank has 43, 78, 149
        instants at 1, 0.5, 0.25e-5 s, and 8, 9, 11 around `half_explicit`.

        A step is carried out by the scheme inside alone, with its own treatment of the contacts and its own
        derivative, if the approach is slower than two steps of free normal acceleration (grazing; with
        ``changes`` not of contacts that bounced lately), without ``changes`` if a contact closes again
        after its impact, if more instants than `CUTS` are in it, or if a time is not found:
        `notes.UNLOCATED`; instants of impacts in such steps are those of the scheme inside. Where a contact
        strikes twice in a step, the list of impacts holds the first one, with the impulses of all.

        Second derivatives hold the factors of the first ones fixed in such steps, at reversals of sliding,
        and where independent impacts strike at one instant. A contact that opens and closes again within
        one step without being penetrated at its end is not seen. The cut excites stiff flexible modes. A
        step with an impact costs about eight steps.

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
    check_is("localized", "scheme", scheme, Scheme)
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
        implicit_damping=scheme.implicit_damping,
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
    if kept(scheme, system, params):
        step = Step(
            scheme=scheme,
            system=system,
            params=params,
            constants=constants,
            carry=carry,
            dt=jnp.asarray(dt),
        )
        return step_in_modes(step)
    stepper, none = Stepper(system), jnp.zeros(system.nc, bool)
    state = State(t=jnp.asarray(carry.state.t), q=carry.state.q, v=carry.state.v)
    d = Start(
        scheme=scheme, params=params, constants=constants, dt=jnp.asarray(dt), may=none,
        carry=dataclasses.replace(carry, state=state), hit=none, depth=jnp.zeros(()),
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


def _strike(stepper: Stepper, whole: Start, first: Start, like: Output) -> tuple[Carry, Output]:
    """A step in which contacts close: cut at their instants, or left to the scheme inside."""
    zero = jax.tree.map(jnp.zeros_like, like)
    zero = dataclasses.replace(zero, contact=like.contact)
    no = jnp.asarray(False)
    part = _PartialStep(carry=whole.carry, left=whole.dt, output=zero, done=no, failed=no)

    def cut(part: _PartialStep, _: None) -> tuple[_PartialStep, None]:
        return branch(part.done, lambda p: p, lambda p: _advance_part(stepper, whole, p), part), None

    part, _ = lax.scan(cut, part, None, length=CUTS + 1)

    def plain() -> tuple[Carry, Output]:
        carry, output = stepper.advance(whole, whole.carry, whole.dt, jnp.ones_like(whole.may))
        bits = output.notes | jnp.where(first.hit, notes.UNLOCATED, 0)
        return carry, dataclasses.replace(output, notes=bits)

    return branch(part.done & ~part.failed, lambda: (part.carry, part.output), plain)


def _advance_part(stepper: Stepper, whole: Start, part: _PartialStep) -> _PartialStep:
    """Steps to the end of the step if nothing is hit, else to the next impact and through it."""
    state = part.carry.state
    fresh = refreshed(stepper.system, state.t, state.q, whole.params)
    d = dataclasses.replace(whole, carry=part.carry, dt=part.left, params=fresh)
    d, (end, output) = stepper.trial(d)

    def rest() -> _PartialStep:
        # a contact that hits again right after its impact is left to the scheme inside
        again = jnp.any(output.event.impact)
        whole_output = _added(part.output, output, output.event)
        return _PartialStep(
            carry=end, left=jnp.zeros_like(part.left), output=whole_output, done=jnp.asarray(True),
            failed=part.failed | again,
        )  # fmt: skip

    return branch(jnp.any(d.hit), lambda: _through(stepper, d, part), rest)


def _through(stepper: Stepper, d: Start, part: _PartialStep) -> _PartialStep:
    """Steps to the next impact and through it."""
    system = stepper.system
    sigma, located = locate(stepper)(d)
    before, first = stepper.advance(d, d.carry, sigma, d.may)
    at = before.state
    gap = stepper.gaps(d, at)
    # contacts that strike at one instant lie equally deep, to the rounding of their gaps
    now = d.hit & (gap <= jnp.min(jnp.where(d.hit, gap, FAR)) + SAME_INSTANT)
    there = SystemState(system=system, params=refreshed(system, at.t, at.q, d.params), state=at)
    struck = Struck(now=now, resting=d.may, active=first.event.active | now, dt=d.dt)
    met = blow(d.scheme, there, struck)
    jump, inner = met.jump, inside(d.scheme)
    p = Masked(params=there.params, may=now | d.may)
    after = inner.init(inner, stepper.masked, p, d.constants, met.state)
    event = Event(
        gap=jnp.where(now, -DEPTH, gap), active=struck.active, impact=now, rate_before=jump.before,
        rate_after=jump.after, shift=jnp.where(now, at.t - (d.carry.state.t + d.dt), 0.0), timed=now,
    )  # fmt: skip
    own = _with_jump(first, jump, met.notes)
    bad = ~located | met.failed | jnp.any(first.event.impact)
    return _PartialStep(
        carry=after, left=d.dt - sigma, output=_added(part.output, own, event),
        done=part.done, failed=part.failed | bad,
    )  # fmt: skip


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


def _added(so_far: Output, now: Output, event: Event) -> Output:
    """Books of a step with those of its next part added."""
    books = {name: getattr(so_far, name) for name in ROWS if getattr(so_far, name) is not None}
    return dataclasses.replace(
        now, **accumulated(books, now), event=merged(so_far.event, event), status=so_far.status | now.status
    )
