"""Impacts at their own time: a step is cut in two where a contact closes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact import velocity_jump
from nsjax.contact.saltation import COUPLED, GATED
from nsjax.core.inertia import inertia_at
from nsjax.core.operators import all_rows
from nsjax.core.scheme import Carry, Event, Output, Scheme
from nsjax.core.system import State, System
from nsjax.nonlinear import implicit_solution
from nsjax.schemes.books import event_limit
from nsjax.schemes.choices import within
from nsjax.types import Array, PyTree, record

DEPTH = 1e-12
"""Gap at a located impact is minus this [m]: a contact that stays there is closed for any scheme."""

LIFT = 1e6
"""Contacts that are open at the start of a step are kept out of it by this added to their gap [m]."""

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

    where ``g`` is the gap of the one contact that would be penetrated at the end of the step. After the
    impact the scheme starts anew, with consistent accelerations. The time ``s`` is found without
    derivatives and has those of the equation that defines it, of any order: plain differentiation of
    a run gives its derivatives, second ones (`jax.hessian`) included.

    Args:
        scheme: any scheme of the package.
        tolerance: bound on the natural-map residual of the contact problem of an impact.
        max_iterations: plain Newton steps of that problem.
        max_roots: trial steps that locate an impact; usually five or six are made.

    Returns:
        A `Scheme` with the registered name of the scheme inside, in brackets. Its own derivative is
        ``"discrete"``, and right.

    Raises:
        InputError: as the scheme inside.

    Order: that of the scheme inside, state and derivative, if impacts are isolated: one per step.

    Limits: a step is carried out by the scheme inside alone, with its own treatment of the contacts, if
        two contacts close in it, if one closes again after the impact, if the approach is slower
        than two steps of free normal acceleration (grazing, the end of a sequence of bounces), or if
        no time is found. Its derivative is then that of the discrete map; ``traj.notes`` tells.
        A contact that opens and closes again within one step without being penetrated at its end is not
        seen. Contacts that close or open without impact (a planar reversal of sliding, a release) are not
        located. The cut excites stiff flexible modes. A step with an impact costs about eight steps.

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
    inner = dataclasses.replace(scheme, coef=(), gradient="discrete")
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
        gradient="discrete",
        accelerations=scheme.accelerations,
    )


def _inside(scheme: Scheme) -> Scheme:
    return dataclasses.replace(scheme.options.inner, coef=scheme.coef.inner)


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
        depth: of the one hit contact there [m], see `_Stepper.depth`.
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

    def advance(self, d: _Start, carry: Carry, dt: Array, lift: Array) -> tuple[Carry, Output]:
        inner = _inside(d.scheme)
        p = _Lifted(params=d.params, lift=lift)
        constants = inner.prepare(inner, self.lifted, p, dt)  # they belong to the length of the step
        return inner.step(inner, self.lifted, p, constants, carry, dt)

    def gaps(self, d: _Start, state: State) -> Array:
        return self.system.gap(jnp.asarray(state.t), state.q, d.params)  # type: ignore[misc]

    def depth(self, sigma: Array, d: _Start) -> Array:
        """Gap of the hit contact above the one at which an impact happens, after ``sigma``."""
        end = self.advance(d, d.carry, sigma, d.lift)[0].state
        return jnp.sum(jnp.where(d.hit, self.gaps(d, end), 0.0)) + DEPTH


def _step(
    scheme: Scheme, system: System, params: PyTree, constants: PyTree, carry: Carry, dt: Array
) -> tuple[Carry, Output]:
    if not system.nc:
        inner = _inside(scheme)
        return inner.step(inner, system, params, constants, carry, dt)
    stepper, none = _Stepper(system), jnp.zeros(system.nc)
    state = State(t=jnp.asarray(carry.state.t), q=carry.state.q, v=carry.state.v)
    carry = dataclasses.replace(carry, state=state)
    d = _Start(
        scheme=scheme, params=params, constants=constants, carry=carry, dt=jnp.asarray(dt), lift=none,
        hit=jnp.zeros(system.nc, bool), depth=jnp.zeros(()),
    )  # fmt: skip
    open_ = stepper.gaps(d, state) > 0.0
    lift = jnp.where(open_, LIFT, 0.0)
    end, output = stepper.advance(d, carry, dt, lift)
    gap = stepper.gaps(d, end.state)
    hit = open_ & (gap < -DEPTH)
    depth = jnp.sum(jnp.where(hit, gap, 0.0)) + DEPTH
    d = dataclasses.replace(d, lift=lift, hit=hit, depth=depth)
    # tested at the end of the step where the scheme inside did not look
    seen = dataclasses.replace(output.event, gap=jnp.where(open_, gap, output.event.gap))
    flight = end, dataclasses.replace(output, event=seen)
    return lax.cond(jnp.any(hit), lambda: _strike(stepper, d), lambda: flight)


def _strike(stepper: _Stepper, d: _Start) -> tuple[Carry, Output]:
    """A step in which contacts close: cut in two if there is one, else as the scheme inside does it."""
    found, slow, ok = _cut(stepper, d)
    several = jnp.sum(d.hit) > 1

    def plain() -> tuple[Carry, Output]:
        carry, output = stepper.advance(d, d.carry, d.dt, jnp.zeros_like(d.lift))
        notes = jnp.where(slow, GATED, 0) | jnp.where(several, COUPLED, 0)
        return carry, dataclasses.replace(output, notes=notes)

    return lax.cond(ok & ~several, lambda: found, plain)


def _cut(stepper: _Stepper, d: _Start) -> tuple[tuple[Carry, Output], Array, Array]:
    """The step cut at the impact; whether the approach is slow, and whether all went well."""
    system, coef = stepper.system, d.scheme.coef
    sigma, located = _locate(stepper)(d)
    before, first = stepper.advance(d, d.carry, sigma, d.lift)
    at = before.state
    rows = all_rows(system, jnp.asarray(at.t), at.q, d.params)
    force = system.force(at.t, at.q, at.v, d.params)
    x = inertia_at(system, at.q, d.params).solve(jnp.concatenate([force[:, None], rows.wt.T], axis=1))
    active = first.event.active | d.hit
    jump = velocity_jump(
        system, d.params, rows, x[:, 1:], at.v, jnp.zeros(system.nv), active,
        tolerance=coef.tolerance, max_iterations=d.scheme.options.max_iterations,
    )  # fmt: skip
    limit = event_limit(system, d.params, at, rows, x[:, 0], d.dt)
    slow = jnp.any(d.hit & (jump.before >= -limit))

    inner, lift = _inside(d.scheme), jnp.where(d.hit, 0.0, d.lift)
    p = _Lifted(params=d.params, lift=lift)
    after = inner.init(inner, stepper.lifted, p, d.constants, State(t=at.t, q=at.q, v=at.v + jump.dv))
    end, second = stepper.advance(d, after, d.dt - sigma, lift)
    gap = stepper.gaps(d, end.state)
    again = jnp.any((d.lift > 0.0) & ~d.hit & (gap < -DEPTH)) | jnp.any(second.event.impact)
    ok = located & ~slow & ~again & (jump.residual <= coef.tolerance)
    event = Event(
        gap=jnp.where(d.hit, -DEPTH, jnp.where(d.lift > 0.0, gap, second.event.gap)),
        active=active | second.event.active,
        impact=first.event.impact | d.hit,
        rate_before=jump.before,
        rate_after=jump.after,
    )
    output = dataclasses.replace(
        second,
        impulse_normal=first.impulse_normal + jump.contacts[:, 0] + second.impulse_normal,
        impulse_tangential=first.impulse_tangential + jump.contacts[:, 1:] + second.impulse_tangential,
        constraint_impulse=first.constraint_impulse + jump.constraints + second.constraint_impulse,
        event=event,
        iterations=first.iterations + jump.iterations + second.iterations,
        residual=jnp.maximum(jnp.maximum(first.residual, jump.residual), second.residual),
        status=first.status | second.status,
        notes=jnp.asarray(0),
    )
    return (end, output), slow, ok


def _locate(stepper: _Stepper) -> Callable[[_Start], tuple[Array, Array]]:
    """The time of the impact after the start of the step, and whether it was found."""

    def solver(d: _Start) -> tuple[Array, Array]:
        start = jnp.sum(jnp.where(d.hit, stepper.gaps(d, d.carry.state), 0.0)) + DEPTH
        single = jnp.sum(d.hit) == 1
        ends, most = (start, d.depth), d.scheme.options.max_roots
        sigma, found = _root(lambda s: stepper.depth(s, d), ends, d.dt, single, most)
        return jnp.where(single, jnp.clip(sigma, EDGE * d.dt, (1.0 - EDGE) * d.dt), 0.5 * d.dt), found

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
