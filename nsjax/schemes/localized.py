"""Impacts at their own time: a step is cut in two where a contact closes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax import notes
from nsjax.contact import events, velocity_jump
from nsjax.core.scheme import Carry, Event, Output, Scheme
from nsjax.core.system import State, System
from nsjax.nonlinear import implicit_solution
from nsjax.schemes.choices import within
from nsjax.schemes.midpoint_contacts import LOCATED, criteria_of
from nsjax.types import Array, PyTree, record

DEPTH = 1e-12
"""Gap at a located impact is minus this [m]: a contact that stays there is closed for any scheme."""

LIFT = 1e6
"""Contacts that are open at the start of a step are kept out of it by this added to their gap [m]."""

CUTS = 3
"""Instants of impact in one step that are located; a step with more is one of an accumulation."""

EDGE = 1e-9
"""An impact happens at least this part of a step after its start and before its end: no part vanishes."""


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


def localized(
    scheme: Scheme, *, tolerance: float = 1e-11, max_iterations: int = 50, max_roots: int = 60
) -> Scheme:
    """A scheme that resolves the time of an impact inside the step.

    With the step ``Phi_s`` of length ``s`` of the given scheme, in which contacts open at the start
    cannot act, and the impact map ``R`` of Newton and Coulomb with the plain mass matrix::

        x_{n+1} = Phi_{h - s} R Phi_s x_n,        g(Phi_s x_n) = 0

    where ``g`` is the least gap of the contacts that would be penetrated at the end of the step; contacts
    that strike at one instant, like both corners of a wall, do so together. After the impact the
    scheme starts anew, with consistent accelerations, and what is left of the step may be cut again, at
    up to `CUTS` instants. The time ``s`` is found without derivatives and has those of the equation
    that defines it, of any order: second ones (`jax.hessian`) included.

    Args:
        scheme: any scheme of the package.
        tolerance: bound on the natural-map residual of the contact problem of an impact.
        max_iterations: plain Newton steps of that problem.
        max_roots: trial steps that locate an impact; usually five or six are made.

    Returns:
        A `Scheme` with the registered name of the scheme inside, in brackets. Where it locates nothing it
        carries the derivative of the scheme inside: through reversals of sliding, and through steps
        that are left to it. ``gradient="discrete"`` leaves that out.

    Raises:
        InputError: as the scheme inside.

    Order: that of the scheme inside, state and derivative, at impacts; first order in the derivative at
    reversals of sliding and in steps left to the scheme inside.

    Limits: a step is carried out by the scheme inside alone, with its own treatment of the contacts and its
        own derivative, if a contact closes again after its impact, if the approach is slower than two
        steps of free normal acceleration (grazing, the end of a sequence of bounces), if more instants
        than `CUTS` are in it, or if a time is not found: `notes.UNLOCATED`. Second derivatives are then,
        and through reversals of sliding, taken with what scales the first ones held fixed. A contact
        that opens and closes again within one step without being penetrated at its end is not seen. The cut
        excites stiff flexible modes. A step with an impact costs about eight steps.

    Source: `saltation.md` section 7.

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
        ),
        prepare=_prepare,
        init=_init,
        step=_step,
        gradient=scheme.gradient,
        criteria=scheme.criteria,
        accelerations=scheme.accelerations,
    )


def _inside(scheme: Scheme, gradient: str | None = None) -> Scheme:
    """The scheme inside, which carries the derivative of the motion where nothing is located."""
    wanted = gradient or ("discrete" if scheme.gradient == "discrete" else LOCATED)
    return dataclasses.replace(scheme.options.inner, coef=scheme.coef.inner, gradient=wanted)


def _prepare(scheme: Scheme, system: System, params: PyTree, dt: Array) -> PyTree:
    inner = _inside(scheme)
    return inner.prepare(inner, system, params, dt)


def _init(scheme: Scheme, system: System, params: PyTree, constants: PyTree, state: State) -> Carry:
    inner = _inside(scheme)
    return inner.init(inner, system, params, constants, state)


@record()
class _Lifted:
    """Parameters of a system with some gaps lifted by (nc,) [m]."""

    params: PyTree
    lift: Array


@dataclasses.dataclass(frozen=True)
class _Through:
    """A function of the system, whose last argument is the parameters, taking `_Lifted` ones."""

    function: Any

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments[:-1], arguments[-1].params)


@dataclasses.dataclass(frozen=True)
class _Gap:
    """The lifted gap."""

    function: Any

    def __call__(self, t: Array, q: Array, p: _Lifted) -> Array:
        return self.function(t, q, p.params) + p.lift


def _liftable(system: System) -> System:
    """The same system with `_Lifted` parameters."""
    names = "mass", "inertia", "force", "potential", "slip", "constraint", "law"
    taken = {name: getattr(system, name) for name in names}
    wrapped: Any = {name: _Through(f) for name, f in taken.items() if f is not None}
    return dataclasses.replace(system, **wrapped, gap=_Gap(system.gap), prepare=None, observe=None)


@record()
class _Start:
    """Everything that a trial step depends on.

    Args:
        lift: (nc,) [m], see `LIFT`.
        hit: (nc,) bool, contacts that would be penetrated at the end of the step.
        depth: of the deepest of them there [m], see `_Stepper.depth`.
    """

    scheme: Scheme
    params: PyTree
    constants: PyTree
    carry: Carry
    dt: Array
    lift: Array
    hit: Array
    depth: Array


class _Stepper:
    """Trial steps of the scheme inside."""

    def __init__(self, system: System) -> None:
        self.system, self.lifted = system, _liftable(system)

    def advance(
        self, d: _Start, carry: Carry, dt: Array, lift: Array, gradient: str | None = None
    ) -> tuple[Carry, Output]:
        inner = _inside(d.scheme, gradient)
        p = _Lifted(params=d.params, lift=lift)
        constants = inner.prepare(inner, self.lifted, p, dt)  # they belong to the length of the step
        return inner.step(inner, self.lifted, p, constants, carry, dt)

    def gaps(self, d: _Start, state: State) -> Array:
        return self.system.gap(jnp.asarray(state.t), state.q, d.params)  # type: ignore[misc]

    def least(self, d: _Start, state: State) -> Array:
        """Least gap of the hit contacts above the one at which an impact happens."""
        return jnp.min(jnp.where(d.hit, self.gaps(d, state), LIFT)) + DEPTH

    def depth(self, sigma: Array, d: _Start, gradient: str | None = None) -> Array:
        """The same after ``sigma``."""
        return self.least(d, self.advance(d, d.carry, sigma, d.lift, gradient)[0].state)

    def trial(self, d: _Start) -> tuple[_Start, tuple[Carry, Output]]:
        """A step in which contacts open at its start cannot act, and what it would hit."""
        open_ = self.gaps(d, d.carry.state) > 0.0
        lift = jnp.where(open_, LIFT, 0.0)
        end, output = self.advance(d, d.carry, d.dt, lift)
        gap = self.gaps(d, end.state)
        hit = open_ & (gap < -DEPTH)
        d = dataclasses.replace(d, lift=lift, hit=hit)
        d = dataclasses.replace(d, depth=self.least(d, end.state))
        # tested at the end of the step where the scheme inside did not look
        seen = dataclasses.replace(output.event, gap=jnp.where(open_, gap, output.event.gap))
        return d, (end, dataclasses.replace(output, event=seen))


def _step(
    scheme: Scheme, system: System, params: PyTree, constants: PyTree, carry: Carry, dt: Array
) -> tuple[Carry, Output]:
    if not system.nc:
        inner = _inside(scheme)
        return inner.step(inner, system, params, constants, carry, dt)
    stepper, none = _Stepper(system), jnp.zeros(system.nc)
    state = State(t=jnp.asarray(carry.state.t), q=carry.state.q, v=carry.state.v)
    d = _Start(
        scheme=scheme, params=params, constants=constants, dt=jnp.asarray(dt), lift=none,
        carry=dataclasses.replace(carry, state=state), hit=jnp.zeros(system.nc, bool), depth=jnp.zeros(()),
    )  # fmt: skip
    aimed, flight = stepper.trial(d)
    return lax.cond(jnp.any(aimed.hit), lambda: _strike(stepper, d, aimed, flight[1]), lambda: flight)


@record()
class _Part:
    """A step under way: where it is, what is left of it, what has happened; whether it has ended or failed."""

    carry: Carry
    left: Array
    output: Output
    done: Array
    failed: Array


def _strike(stepper: _Stepper, whole: _Start, first: _Start, like: Output) -> tuple[Carry, Output]:
    """A step in which contacts close: cut where they do, else as the scheme inside does it."""
    zero = jax.tree.map(jnp.zeros_like, like)
    zero = dataclasses.replace(zero, contact=like.contact)
    no = jnp.asarray(False)
    part = _Part(carry=whole.carry, left=whole.dt, output=zero, done=no, failed=no)

    def cut(part: _Part, _: None) -> tuple[_Part, None]:
        return lax.cond(part.done, lambda p: p, lambda p: _advance_part(stepper, whole, p), part), None

    part, _ = lax.scan(cut, part, None, length=CUTS + 1)

    def plain() -> tuple[Carry, Output]:
        carry, output = stepper.advance(whole, whole.carry, whole.dt, jnp.zeros_like(whole.lift))
        bits = output.notes | jnp.where(first.hit, notes.UNLOCATED, 0)
        return carry, dataclasses.replace(output, notes=bits)

    return lax.cond(part.done & ~part.failed, lambda: (part.carry, part.output), plain)


def _advance_part(stepper: _Stepper, whole: _Start, part: _Part) -> _Part:
    """To the end of the step if nothing is hit, else to the next impact and through it."""
    d = dataclasses.replace(whole, carry=part.carry, dt=part.left)
    d, (end, output) = stepper.trial(d)

    def rest() -> _Part:
        # what a contact that has just been struck hits again is left to the scheme inside
        again = jnp.any(output.event.impact)
        whole_output = _added(part.output, output, output.event)
        return _Part(
            carry=end, left=jnp.zeros_like(part.left), output=whole_output, done=jnp.asarray(True),
            failed=part.failed | again,
        )  # fmt: skip

    return lax.cond(jnp.any(d.hit), lambda: _through(stepper, d, part), rest)


def _through(stepper: _Stepper, d: _Start, part: _Part) -> _Part:
    """To the next impact and through it."""
    system, coef = stepper.system, d.scheme.coef
    sigma, located = _locate(stepper)(d)
    before, first = stepper.advance(d, d.carry, sigma, d.lift)
    at = before.state
    gap = stepper.gaps(d, at)
    # contacts that strike at one instant lie equally deep, to the rounding of their gaps
    struck = d.hit & (gap <= jnp.min(jnp.where(d.hit, gap, LIFT)) + 0.1 * DEPTH)
    f = events.formed(system, d.params, at)
    active = first.event.active | struck
    jump = velocity_jump(
        system, d.params, f.rows, f.response, at.v, jnp.zeros(system.nv), active,
        tolerance=coef.tolerance, max_iterations=d.scheme.options.max_iterations,
    )  # fmt: skip
    inner = _inside(d.scheme)
    limit, _ = events.gate(criteria_of(inner), system, d.params, f, d.dt)
    slow = jnp.any(struck & (jump.before >= -limit))
    p = _Lifted(params=d.params, lift=jnp.where(struck, 0.0, d.lift))
    after = inner.init(inner, stepper.lifted, p, d.constants, State(t=at.t, q=at.q, v=at.v + jump.dv))
    event = Event(
        gap=jnp.where(struck, -DEPTH, gap),
        active=active,
        impact=struck,
        rate_before=jump.before,
        rate_after=jump.after,
        shift=jnp.where(struck, at.t - (d.carry.state.t + d.dt), 0.0),
    )
    friction = system.law(d.params).friction_of(system.nc)  # type: ignore[misc]
    links = events.linked(criteria_of(inner), f.rows, f.response, active, friction, system.nt)
    pair = links & struck[:, None] & struck[None, :] & ~jnp.eye(system.nc, dtype=bool)
    bits = jnp.where(jnp.any(pair, axis=1), notes.TOGETHER, 0)
    own = dataclasses.replace(
        first,
        impulse_normal=first.impulse_normal + jump.contacts[:, 0],
        impulse_tangential=first.impulse_tangential + jump.contacts[:, 1:],
        constraint_impulse=first.constraint_impulse + jump.constraints,
        iterations=first.iterations + jump.iterations,
        residual=jnp.maximum(first.residual, jump.residual),
        notes=first.notes | bits,
    )
    bad = ~located | slow | ~(jump.residual <= coef.tolerance) | jnp.any(first.event.impact)
    return _Part(
        carry=after, left=d.dt - sigma, output=_added(part.output, own, event),
        done=part.done, failed=part.failed | bad,
    )  # fmt: skip


def _added(so_far: Output, now: Output, event: Event) -> Output:
    """The books of a step with those of its next part."""
    old = so_far.event
    fresh = event.impact & ~old.impact
    merged = Event(
        gap=jnp.where(old.impact & ~event.impact, old.gap, event.gap),
        active=old.active | event.active,
        impact=old.impact | event.impact,
        rate_before=jnp.where(fresh, event.rate_before, old.rate_before),
        rate_after=jnp.where(fresh, event.rate_after, old.rate_after),
        shift=jnp.where(fresh, event.shift, old.shift),
    )
    return dataclasses.replace(
        now,
        impulse_normal=so_far.impulse_normal + now.impulse_normal,
        impulse_tangential=so_far.impulse_tangential + now.impulse_tangential,
        constraint_impulse=so_far.constraint_impulse + now.constraint_impulse,
        event=merged,
        iterations=so_far.iterations + now.iterations,
        residual=jnp.maximum(so_far.residual, now.residual),
        status=so_far.status | now.status,
        notes=so_far.notes | now.notes,
    )


def _locate(stepper: _Stepper) -> Callable[[_Start], tuple[Array, Array]]:
    """The time of the first impact after the start of the step, and whether it was found."""

    def solver(d: _Start) -> tuple[Array, Array]:
        ends = stepper.least(d, d.carry.state), d.depth
        most = d.scheme.options.max_roots
        sigma, found = _root(lambda s: stepper.depth(s, d, "discrete"), ends, d.dt, jnp.any(d.hit), most)
        return jnp.clip(sigma, EDGE * d.dt, (1.0 - EDGE) * d.dt), found

    def live_step(sigma: Array, d: _Start) -> Callable[[_Start], Array]:
        rate = jax.jvp(lambda s: stepper.depth(s, d), (sigma,), (jnp.ones_like(sigma),))[1]
        rate = jnp.where(rate < 0.0, rate, -1.0)
        return lambda data: sigma - stepper.depth(sigma, data) / rate

    return implicit_solution(solver, live_step)


def _root(
    depth: Callable[[Array], Array], ends: tuple[Array, Array], dt: Array, run: Array, most: int
) -> tuple[Array, Array]:
    """Where ``depth`` changes its sign between its values ``ends`` at 0 and ``dt``; whether it is zero.

    Regula falsi that halves the value at an end that stays (Illinois).
    """

    def wide(s: Any) -> Array:
        return run & (jnp.abs(s[6]) > 0.1 * DEPTH) & (s[7] < most)

    def narrow(s: Any) -> Any:
        low, f_low, high, f_high, side, _, _, count = s
        x = (low * f_high - high * f_low) / (f_high - f_low)
        x = jnp.where((x > low) & (x < high), x, 0.5 * (low + high))
        f = depth(x)
        up = f > 0.0
        ends = jnp.where(up, x, low), jnp.where(up, high, x)
        f_low = jnp.where(up, f, jnp.where(side < 0, 0.5 * f_low, f_low))
        f_high = jnp.where(up, jnp.where(side > 0, 0.5 * f_high, f_high), f)
        return ends[0], f_low, ends[1], f_high, jnp.where(up, 1, -1), x, f, count + 1

    zero, none = jnp.zeros_like(dt), jnp.asarray(0)
    first: Any = (zero, ends[0], dt, ends[1], none, dt, ends[1], none)
    last = lax.while_loop(wide, narrow, first)
    return last[5], jnp.abs(last[6]) <= 0.5 * DEPTH
