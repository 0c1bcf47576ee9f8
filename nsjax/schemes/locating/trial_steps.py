"""Trial steps of a scheme in which contacts keep to their modes, and the time at which one changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact import events
from nsjax.contact.criteria import criteria_of
from nsjax.core.branches import branch
from nsjax.core.operators import acting
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.step import SystemState
from nsjax.core.system import State, System
from nsjax.nonlinear import implicit_solution
from nsjax.schemes.at_events import LOCATED
from nsjax.schemes.locating import modes as closed_modes
from nsjax.schemes.locating.modes import GRIP, Modes
from nsjax.types import Array, PyTree, record

DEPTH = 1e-12
"""Gap at a located impact is minus this [m]: a contact that stays there is closed for any scheme."""

FAR = 1e6
"""Stands for the gap of contacts that are not looked for [m]."""

EDGE = 1e-9
"""An impact happens at least this part of a step after its start and before its end: no part vanishes."""


def inside(scheme: Scheme, gradient: str | None = None) -> Scheme:
    """The scheme inside, which carries the derivative of the motion where nothing is located."""
    wanted = gradient or ("discrete" if scheme.gradient == "discrete" else LOCATED)
    return dataclasses.replace(scheme.options.inner, coef=scheme.coef.inner, gradient=wanted)


@record()
class Masked:
    """Parameters of a system of which only the contacts ``may`` (nc,) bool act, in their modes, if any."""

    params: PyTree
    may: Array
    modes: Modes | None = None


@dataclasses.dataclass(frozen=True)
class _Unmasked:
    """A function of the system that takes `Masked` parameters as its last argument."""

    function: Any

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments[:-1], arguments[-1].params)


@dataclasses.dataclass(frozen=True)
class _Gap(_Unmasked):
    """Gaps; those of closed contacts stay closed, whatever positions drift."""

    def __call__(self, t: Array, q: Array, p: Masked) -> Array:
        gap: Array = self.function(t, q, p.params)
        if p.modes is None:
            return gap
        return jnp.where(p.modes.held, gap - events.frozen(gap) - DEPTH, gap)


@dataclasses.dataclass(frozen=True)
class _Slip(_Unmasked):
    """Tangential velocities; sliding contacts slide in their direction, whatever their velocity."""

    def __call__(self, t: Array, q: Array, v: Array, p: Masked) -> Array:
        slip: Array = self.function(t, q, v, p.params)
        return slip if p.modes is None else slip + (p.modes.slide * p.modes.reach)[:, None]


@dataclasses.dataclass(frozen=True)
class _Directions(_Unmasked):
    """The same of a mechanism that knows its rows."""

    def __call__(self, t: Array, q: Array, p: Masked) -> Any:
        rows = self.function(t, q, p.params)
        return rows if p.modes is None else closed_modes.with_offset(rows, p.modes)


@dataclasses.dataclass(frozen=True)
class _Law(_Unmasked):
    """The contact law; contacts that stick do so, whatever their force."""

    def __call__(self, p: Masked) -> Any:
        law = self.function(p.params)
        if p.modes is None:
            return law
        stuck = p.modes.stuck
        friction = jnp.where(stuck, GRIP, law.friction_of(stuck.shape[0]))
        return dataclasses.replace(law, friction=friction)


@dataclasses.dataclass(frozen=True)
class _Force(_Unmasked):
    """The force; what is closed is pushed on, see `nsjax.schemes.locating.modes.pushed`."""

    system: System

    def __call__(self, t: Array, q: Array, v: Array, p: Masked) -> Array:
        force: Array = self.function(t, q, v, p.params)
        if p.modes is None:
            return force
        return force + closed_modes.pushed(self.system, t, q, p.params, p.modes)


@dataclasses.dataclass(frozen=True)
class _Refresh:
    """Data that a step holds fixed; derivatives compute it again where they shift the start of a step."""

    function: Any

    def __call__(self, t: Array, q: Array, p: Masked) -> Masked:
        return dataclasses.replace(p, params=self.function(t, q, p.params))


@dataclasses.dataclass(frozen=True)
class _Allowed:
    """Contacts that the system allows to act, and the mask."""

    function: Any

    def __call__(self, t: Array, q: Array, p: Masked) -> Array:
        return p.may if self.function is None else p.may & self.function(t, q, p.params)


SPECIAL: dict[str, Any] = {"gap": _Gap, "slip": _Slip, "rows": _Directions, "law": _Law}


def maskable(system: System) -> System:
    """The same system with `Masked` parameters."""
    names = (
        "mass", "inertia", "potential", "gap", "slip", "rows", "constraint", "velocity_constraint", "law",
    )  # fmt: skip
    taken = {name: getattr(system, name) for name in names}
    wrapped: Any = {name: SPECIAL.get(name, _Unmasked)(f) for name, f in taken.items() if f is not None}
    none: Any = dict.fromkeys(("prepare", "observe"))  # they belong to the whole step
    refresh = None if system.refresh is None else _Refresh(system.refresh)
    return dataclasses.replace(
        system, **wrapped, **none, force=_Force(system.force, system), refresh=refresh,
        allowed=_Allowed(system.allowed),
    )  # fmt: skip


@record()
class Start:
    """Everything that a trial step depends on.

    Args:
        may: (nc,) bool, contacts that act.
        hit: (kinds, nc) bool, what comes to an end in the step: gaps, which would be penetrated, then what
            `nsjax.schemes.locating.modes.signals` tells.
        depth: of the deepest of them at the end of the step, see `Stepper.depth`.
        base: (nc,) gaps from which contacts count as penetrated, zero unless they leave [m].
        modes: of closed contacts; None where they are left to the scheme inside.
        gone: (nc,) bool, contacts that were released in this step.
        begun: (nc,) sign in which contacts have begun to slide in this step.
    """

    scheme: Scheme
    params: PyTree
    constants: PyTree
    carry: Carry
    dt: Array
    may: Array
    hit: Array
    depth: Array
    base: Array
    modes: Modes | None
    gone: Array
    begun: Array


class Stepper:
    """Trial steps of the scheme inside."""

    def __init__(self, system: System, scheme: Scheme, params: PyTree) -> None:
        self.system, self.masked = system, maskable(system)
        self.keeps = closed_modes.kept(scheme, system, params)
        self.kinds = 1 + ((1 + 2 * system.nt) if self.keeps else 0)

    def advance(
        self, d: Start, dt: Array, may: Array, modes: Modes | None, gradient: str | None = None
    ) -> tuple[Carry, Output]:
        """A step of length ``dt`` in which the contacts ``may`` (nc,) act."""
        inner = inside(d.scheme, gradient)
        p = Masked(params=d.params, may=may, modes=modes)
        constants = inner.prepare(inner, self.masked, p, dt)  # they belong to the length of the step
        end, output = inner.step(inner, self.masked, p, constants, d.carry, dt)
        return end, output if modes is None else self._own(d, output, dt, modes)

    def _own(self, d: Start, output: Output, dt: Array, modes: Modes) -> Output:
        """The books without what keeps contacts closed."""
        own: Any = {}
        for name, size in (("force", 1.0), ("impulse", dt)):
            normal, tangential = getattr(output, f"{name}_normal"), getattr(output, f"{name}_tangential")
            both = jnp.concatenate([normal[:, None], tangential], axis=1) / size
            both = size * closed_modes.own_forces(self.system, d.params, both, modes)
            own |= {f"{name}_normal": both[:, 0], f"{name}_tangential": both[:, 1:]}
        return dataclasses.replace(output, **own)

    def at(self, d: Start, state: State) -> SystemState:
        """The system at a state."""
        return SystemState(system=self.system, params=d.params, state=state)

    def gaps(self, d: Start, state: State) -> Array:
        """Gaps (nc,) at a state."""
        return self.system.gap(jnp.asarray(state.t), state.q, d.params)

    def told(self, d: Start, state: State) -> Array:
        """Signals (kinds, nc) of what may come to an end, zero where it does."""
        gap = self.gaps(d, state) - d.base + DEPTH
        if d.modes is None:
            return gap[None]
        modes = d.modes
        quiet = jnp.ones((self.kinds - 1, self.system.nc))
        look = lambda s: closed_modes.signals(self.at(d, s), modes)  # noqa: E731
        others = branch(jnp.any(modes.held), look, lambda _: quiet, state)
        return jnp.concatenate([gap[None], others])

    def least(self, d: Start, state: State) -> Array:
        """Least of the signals that come to an end in the step."""
        return jnp.min(jnp.where(d.hit, self.told(d, state), FAR))

    def depth(self, sigma: Array, d: Start, gradient: str | None = None) -> Array:
        """The same after ``sigma``."""
        return self.least(d, self.advance(d, sigma, d.may, d.modes, gradient)[0].state)

    def trial(self, d: Start) -> tuple[Start, tuple[Carry, Output]]:
        """A step in which contacts keep to what they do at its start, and what would come to an end."""
        d, open_ = self._beginning(d)
        end, output = self.advance(d, d.dt, d.may, d.modes)
        gap, at = self.gaps(d, end.state), end.state
        told = self.told(d, at)
        hit = open_ & acting(self.system, jnp.asarray(at.t), at.q, d.params, told[0] < 0.0)
        hit = jnp.concatenate([hit[None], told[1:] < -DEPTH])
        d = dataclasses.replace(d, hit=hit, depth=jnp.min(jnp.where(hit, told, FAR)))
        # tested at the end of the step where the scheme inside did not look
        seen = dataclasses.replace(output.event, gap=jnp.where(open_, gap, output.event.gap))
        return d, (end, dataclasses.replace(output, event=seen))

    def _beginning(self, d: Start) -> tuple[Start, Array]:
        """What contacts do at the start of a step, and which (nc,) bool are open."""
        state = d.carry.state
        gap = self.gaps(d, state)
        if not self.keeps:
            open_ = gap > 0.0
            return dataclasses.replace(d, may=~open_), open_
        at = events.frozen(self.at(d, state))
        held = d.carry.memory.touch.held & ~d.gone
        modes = closed_modes.modes_at(inside(d.scheme), at, held, d.begun)
        low = (gap <= 0.0) & ~held
        rates = branch(jnp.any(low), lambda _: events.gap_rates(at), lambda _: jnp.zeros(gap.shape), None)
        leaves = low & ((rates > 0.0) & ~events.at_rest(criteria_of(d.scheme), rates, at.v) | d.gone)
        leaves = leaves | (d.carry.memory.touch.held & ~modes.held)
        open_ = (gap > 0.0) & ~modes.held | leaves
        base = jnp.where(leaves, jnp.minimum(events.frozen(gap), 0.0), 0.0)
        return dataclasses.replace(d, may=~open_, modes=modes, base=base), open_


def locate(stepper: Stepper) -> Callable[[Start], tuple[Array, Array]]:
    """The time of the first impact after the start of the step, and whether it was found."""

    def solver(d: Start) -> tuple[Array, Array]:
        ends = stepper.least(d, d.carry.state), d.depth
        most = d.scheme.options.max_roots
        sigma, found = _root(lambda s: stepper.depth(s, d, "discrete"), ends, d.dt, jnp.any(d.hit), most)
        return jnp.clip(sigma, EDGE * d.dt, (1.0 - EDGE) * d.dt), found

    def live_step(sigma: Array, d: Start) -> Callable[[Start], Array]:
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
