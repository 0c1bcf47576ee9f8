"""Trial steps of a scheme in which open contacts cannot act, and the search of the first event."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.core.guards import Guards
from nsjax.core.operators import acting
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.step import SystemState
from nsjax.core.system import State, System
from nsjax.jaxtools import event_solution
from nsjax.jaxtools.control_flow import repeat
from nsjax.schemes.common import LOCATED
from nsjax.types import Array, PyTree, record

# The motion up to its first event within a given time, found by one search of trial motions.


DEPTH = 1e-12
"""A located impact has the gap ``-DEPTH`` [m]: a contact that stays there is closed for every scheme."""

SAME_INSTANT = 0.1 * DEPTH
"""Gaps that differ by less close at the same instant [m]. It is the tolerance of the search, too."""


@record()
class Flight:
    """A trial motion.

    Args:
        end: its end and what else is needed of it, a tree of arrays.
        values: (...) event functions at the end, positive before the event, scaled to gaps [m].
        hit: (...) bool, functions that count as events if they are so at the end of the whole motion.
    """

    end: PyTree
    values: Array
    hit: Array


@record()
class FirstEvent:
    """The motion up to its first event, or over the whole time if there is none.

    Args:
        time: () time from the start [s].
        flight: the motion up to there; ``hit`` are the events by the end of the whole time.
        found: () bool, whether the first zero was found; of no meaning without an event.
    """

    time: Array
    flight: Flight
    found: Array


Fly = Callable[[Array, PyTree], Flight]


def first_event(
    fly: Fly, begin: Callable[[PyTree], Array], like: PyTree, most: int, halves: bool = False
) -> Callable[..., Any]:  # fmt: skip
    """Function that returns the motion up to its first event. Returns ``(whole time, data) -> FirstEvent``.

    The time is found without derivatives. Its derivatives of any order, and those of the motion, follow
    from the equation that defines it: the least event function vanishes, or the time is the whole time.

    Args:
        fly: ``(time, data) -> Flight``.
        begin: ``data -> (...)`` event functions at the start.
        like: arrays of the shapes of ``Flight.end``.
        most: largest number of trial motions beside the first.
        halves: whether every second trial halves the bracket: functions of users may be flat behind their
            zero, as a velocity that sticks.
    """
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x)), like)

    def solver(given: Any) -> Any:
        length, data = given
        last = _search(lambda s: fly(s, data), begin(data), (length, halves), shapes, most)
        return last.x, last.flight.end, (last.flight.values, last.flight.hit, last.found)

    def flown(time: Array, given: Any, found: Any) -> tuple[PyTree, Array]:
        length, data = given
        flight, hit = fly(time, data), found[1]
        return flight.end, jnp.where(jnp.any(hit), _least(flight.values, hit), length - time)

    solution = event_solution(solver, flown)

    def to_event(length: Array, data: PyTree) -> FirstEvent:
        time, end, (values, hit, found) = solution((length, data))
        return FirstEvent(time=time, flight=Flight(end=end, values=values, hit=hit), found=found)

    return to_event


def _least(values: Array, hit: Array) -> Array:
    far = 1e6  # stands for gaps of contacts that are not searched for [m]
    return jnp.min(jnp.where(hit, values, far))


def happening(values: Array, hit: Array, touching: Any = 0.0) -> Array:
    """Which of the events ``hit`` happen at the instant of the first one: equal values of their functions
    to rounding, a zero passed where the instant was moved off an end, or a value up to ``touching``.
    """
    return hit & ((values <= _least(values, hit) + SAME_INSTANT) | (values <= touching))


@record()
class _Bracket:
    """State of the search: bracket with the values of the function, side of its last change, next time,
    number of trial motions, whether the next or the last of them ends at a zero moved away from the ends,
    whether a zero is found, whether to go on, and the last trial motion.
    """

    low: Array
    f_low: Array
    high: Array
    f_high: Array
    side: Array
    x: Array
    count: Array
    moved: Array
    found: Array
    going: Array
    flight: Flight


def _search(
    fly: Callable[[Array], Flight], start: Array, over: tuple[Array, bool], shapes: PyTree, most: int
) -> _Bracket:
    """First trial over the whole time; if events occur by its end, the zero of their least function, by the
    Illinois form of regula falsi. One loop, so that the program holds one trial motion.
    """
    length, halves = over

    def body(s: _Bracket) -> _Bracket:
        flight, first = fly(s.x), s.count == 0
        hit = jnp.where(first, flight.hit, s.flight.hit)
        f = _least(flight.values, hit)
        up = f > 0.0
        low = jnp.where(first, 0.0, jnp.where(up, s.x, s.low))
        high = jnp.where(up & ~first, s.high, s.x)
        # the value of an end that stays is halved: of a convex function only one end would move otherwise
        half_low = jnp.where(s.side < 0, 0.5 * s.f_low, s.f_low)
        half_high = jnp.where(s.side > 0, 0.5 * s.f_high, s.f_high)
        f_low = jnp.where(first, _least(start, hit), jnp.where(up, f, half_low))
        f_high = jnp.where(up & ~first, half_high, f)
        secant = (low * f_high - high * f_low) / (f_high - f_low)
        middle = 0.5 * (low + high)
        secant = jnp.where((secant > low) & (secant < high), secant, middle)
        if halves:
            secant = jnp.where(s.count % 2 == 1, middle, secant)
        # an event at an end of the step is put inside it, so that both of its parts have a length; a
        # function that counts as an event before its zero has it beyond the whole time, by rounding alone
        beyond = first & (f > 0.0)
        zero = ~(jnp.abs(f) > SAME_INSTANT) | beyond
        edge = 1e-9  # least distance of an event from both ends, relative to the length
        inner = jnp.clip(s.x, edge * length, (1.0 - edge) * length)
        more = jnp.any(hit) & ~s.moved & jnp.where(zero, inner != s.x, s.count < most)
        return _Bracket(
            low=low, f_low=f_low, high=high, f_high=f_high,
            side=jnp.where(first, 0, jnp.where(up, 1, -1)),
            x=jnp.where(more, jnp.where(zero, inner, secant), s.x), count=s.count + 1, moved=more & zero,
            found=jnp.where(s.moved, s.found, beyond | (jnp.abs(f) <= 0.5 * DEPTH)), going=more,
            flight=dataclasses.replace(flight, hit=hit),
        )  # fmt: skip

    zero, no, none = jnp.zeros_like(length), jnp.asarray(False), jnp.asarray(0)
    end = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    rest = Flight(end=end, values=jnp.zeros_like(start), hit=jnp.zeros(start.shape, bool))
    first = _Bracket(
        low=zero, f_low=zero, high=zero, f_high=zero, side=none, x=length, count=none, moved=no, found=no,
        going=jnp.asarray(True), flight=rest,
    )  # fmt: skip
    return repeat(lambda s: s.going, body, first)


# Trial steps of a scheme in which open contacts cannot act, up to the first one that closes.


CUTS = 3
"""Largest number of instants in one step; more of them occur at the end of an accumulation of impacts."""


def inside(scheme: Scheme) -> Scheme:
    """The scheme inside `localized`: it has the derivative of the motion where nothing is located."""
    wanted = "discrete" if scheme.gradient == "discrete" else LOCATED
    return dataclasses.replace(scheme.options.inner, coef=scheme.coef.inner, gradient=wanted)


@record()
class MaskedParams:
    """Parameters of a system in which only the contacts ``may`` (nc,) bool can act."""

    params: PyTree
    may: Array


@dataclasses.dataclass(frozen=True)
class _MaskedFunction:
    """A function of the system that takes `MaskedParams` as its last argument."""

    function: Any

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments[:-1], arguments[-1].params)


@dataclasses.dataclass(frozen=True)
class _Refresh:
    """`System.refresh` with `MaskedParams`."""

    function: Any

    def __call__(self, t: Array, q: Array, p: MaskedParams) -> MaskedParams:
        return MaskedParams(params=self.function(t, q, p.params), may=p.may)


@dataclasses.dataclass(frozen=True)
class _MaskedAllowed:
    """`System.allowed` with `MaskedParams`: contacts that the system allows and the mask contains."""

    function: Any

    def __call__(self, t: Array, q: Array, p: MaskedParams) -> Array:
        return p.may if self.function is None else p.may & self.function(t, q, p.params)


def maskable(system: System) -> System:
    """The same system with functions of `MaskedParams` parameters."""
    names = (
        "mass", "inertia", "force", "potential", "gap", "slip", "rows", "constraint", "velocity_constraint",
        "law", "damping",
    )  # fmt: skip
    taken = {name: getattr(system, name) for name in names}
    wrapped: Any = {name: _MaskedFunction(f) for name, f in taken.items() if f is not None}
    none: Any = dict.fromkeys(("prepare", "observe"))  # they belong to the whole step
    refresh = None if system.refresh is None else _Refresh(system.refresh)
    return dataclasses.replace(
        system, **wrapped, **none, refresh=refresh, allowed=_MaskedAllowed(system.allowed)
    )


@record()
class Start:
    """Everything that a trial step depends on.

    Args:
        scheme: the scheme that locates.
        params, constants, carry: as in `Scheme.step`.
        dt: () length of the step [s].
        may: (nc,) bool, contacts that can act.
        search: () bool, whether impacts of the other contacts are looked for.
        armed: (k,) bool, guards that count if they fall through zero; None: there are none.
        size: (k,) magnitudes of their values.
    """

    scheme: Scheme
    params: PyTree
    constants: PyTree
    carry: Carry
    dt: Array
    may: Array
    search: Array
    armed: Any = None
    size: Any = None


def in_one_step(d: Start) -> Start:
    """The same for a step of another length than the last (`Traits.one_step`), if anything is located."""
    scheme, own = d.scheme, (d.scheme.coef.inner, d.carry.memory)
    if scheme.options.inner.traits.one_step is None:
        return d
    alone = scheme.options.inner.traits.one_step(*own)
    looks = d.search if d.armed is None else True
    numbers, memory = jax.tree.map(lambda a, b: jnp.where(looks, a, b), alone, own)
    coef = dataclasses.replace(scheme.coef, inner=numbers)
    carry = dataclasses.replace(d.carry, memory=memory)
    return dataclasses.replace(d, scheme=dataclasses.replace(scheme, coef=coef), carry=carry)


class Stepper:
    """Trial steps of the scheme inside, for one system, up to impacts and to zeros of guards."""

    def __init__(self, system: System, guards: Guards | None = None) -> None:
        self.system, self.guards = system, guards
        self.masked = maskable(system) if system.nc else system

    def params(self, p: PyTree, may: Array) -> PyTree:
        """Parameters for `masked`."""
        return MaskedParams(params=p, may=may) if self.system.nc else p

    def begin(self, d: Start) -> Start:
        """The same, where only contacts that are closed at the start can act if impacts are looked for.

        Rounding moves the gap of a contact at rest: up to `DEPTH` above zero it is closed.
        """
        return dataclasses.replace(d, may=~d.search | ~(self.gaps(d, d.carry.state) > DEPTH))

    def gaps(self, d: Start, state: State) -> Array:
        """Gaps (nc,) at a state [m]."""
        return SystemState(system=self.system, params=d.params, state=state).gap()

    def values(self, d: Start, state: State) -> tuple[Array, Array]:
        """Gaps (nc,) [m], and event functions: gaps above `DEPTH`, then guards in units of their size."""
        gap = self.gaps(d, state)
        if self.guards is None:
            return gap, gap + DEPTH
        own = self.guards.values(SystemState(system=self.system, params=d.params, state=state))
        return gap, jnp.concatenate([gap + DEPTH, own / jnp.where(d.size > 0.0, d.size, 1.0)])

    def fly(self, dt: Array, d: Start) -> Flight:
        """A step of length ``dt`` [s] with its carry and output, and the contacts that it penetrates."""
        inner = inside(d.scheme)
        p = self.params(d.params, d.may)
        constants = inner.prepare(inner, self.masked, p, dt)  # they depend on the length of the step
        end, output = inner.step(inner, self.masked, p, constants, d.carry, dt)
        at = end.state
        gap, values = self.values(d, at)
        # a contact that touches is closed at the start of the next step: it strikes in this one
        hit = ~d.may & acting(self.system, jnp.asarray(at.t), at.q, d.params, gap <= DEPTH)
        if self.guards is not None:
            hit = jnp.concatenate([hit, d.armed & (values[gap.shape[0] :] <= 0.0)])
        # the scheme inside has not tested contacts that cannot act: their gaps at the end of the step
        seen = dataclasses.replace(output.event, gap=jnp.where(d.may, output.event.gap, gap))
        return Flight(end=(end, dataclasses.replace(output, event=seen)), values=values, hit=hit)

    def to_impact(self, d: Start, like: tuple[Carry, Output]) -> FirstEvent:
        """The step up to its first impact or guard, if there is one."""
        begin = lambda d: self.values(d, d.carry.state)[1]  # noqa: E731
        guarded = self.guards is not None
        return first_event(self.fly, begin, like, d.scheme.options.max_roots, guarded)(d.dt, d)
