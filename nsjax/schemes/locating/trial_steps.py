"""Trial steps of a scheme in which open contacts cannot act, and the time at which the first one closes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.core.operators import acting
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.system import State, System
from nsjax.nonlinear import implicit_solution
from nsjax.schemes.at_events import LOCATED
from nsjax.types import Array, PyTree, record

DEPTH = 1e-12
"""A located impact has the gap ``-DEPTH`` [m]: a contact that stays there is closed for every scheme."""

SAME_INSTANT = 0.1 * DEPTH
"""Gaps that differ by less close at the same instant [m]. It is the tolerance of the search, too."""

FAR = 1e6
"""Replaces the gap of contacts that are not searched for [m]."""

CUTS = 3
"""Largest number of instants that are located in one step. More of them occur at the end of an accumulation
of impacts."""

EDGE = 1e-9
"""Least distance of an impact from both ends of its step, relative to the step: no part has length zero."""


def inside(scheme: Scheme, gradient: str | None = None) -> Scheme:
    """The scheme inside `localized`, with its numbers. Unless ``gradient`` says otherwise, it has the
    derivative of the motion where nothing is located.
    """
    wanted = gradient or ("discrete" if scheme.gradient == "discrete" else LOCATED)
    return dataclasses.replace(scheme.options.inner, coef=scheme.coef.inner, gradient=wanted)


@record()
class Masked:
    """Parameters of a system in which only the contacts ``may`` (nc,) bool can act."""

    params: PyTree
    may: Array


@dataclasses.dataclass(frozen=True)
class _Unmasked:
    """A function of the system that takes `Masked` parameters as its last argument."""

    function: Any

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments[:-1], arguments[-1].params)


@dataclasses.dataclass(frozen=True)
class _Refresh:
    """`System.refresh` with `Masked` parameters."""

    function: Any

    def __call__(self, t: Array, q: Array, p: Masked) -> Masked:
        return Masked(params=self.function(t, q, p.params), may=p.may)


@dataclasses.dataclass(frozen=True)
class _Allowed:
    """`System.allowed` with `Masked` parameters: contacts that the system allows and the mask contains."""

    function: Any

    def __call__(self, t: Array, q: Array, p: Masked) -> Array:
        return p.may if self.function is None else p.may & self.function(t, q, p.params)


def maskable(system: System) -> System:
    """The same system with functions of `Masked` parameters."""
    names = (
        "mass", "inertia", "force", "potential", "gap", "slip", "rows", "constraint", "velocity_constraint",
        "law", "damping",
    )  # fmt: skip
    taken = {name: getattr(system, name) for name in names}
    wrapped: Any = {name: _Unmasked(f) for name, f in taken.items() if f is not None}
    none: Any = dict.fromkeys(("prepare", "observe"))  # they belong to the whole step
    refresh = None if system.refresh is None else _Refresh(system.refresh)
    return dataclasses.replace(system, **wrapped, **none, refresh=refresh, allowed=_Allowed(system.allowed))


@record()
class Start:
    """Everything that a trial step depends on.

    Args:
        scheme: the scheme that locates.
        params, constants, carry: as in `Scheme.step`.
        dt: () length of the step [s].
        may: (nc,) bool, contacts that are closed at the start and can act.
        hit: (nc,) bool, contacts that would be penetrated at the end of the step.
        depth: () least gap of these contacts there plus `DEPTH` [m].
    """

    scheme: Scheme
    params: PyTree
    constants: PyTree
    carry: Carry
    dt: Array
    may: Array
    hit: Array
    depth: Array


class Stepper:
    """Trial steps of the scheme inside, for one system."""

    def __init__(self, system: System) -> None:
        self.system, self.masked = system, maskable(system)

    def advance(
        self, d: Start, carry: Carry, dt: Array, may: Array, gradient: str | None = None
    ) -> tuple[Carry, Output]:
        """A step of length ``dt`` [s] in which only the contacts ``may`` (nc,) bool can act."""
        inner = inside(d.scheme, gradient)
        p = Masked(params=d.params, may=may)
        constants = inner.prepare(inner, self.masked, p, dt)  # they depend on the length of the step
        return inner.step(inner, self.masked, p, constants, carry, dt)

    def gaps(self, d: Start, state: State) -> Array:
        """Gaps (nc,) at a state [m]."""
        return self.system.gap(jnp.asarray(state.t), state.q, d.params)

    def least(self, d: Start, state: State) -> Array:
        """Least gap of the contacts ``d.hit``, plus `DEPTH`: zero at a located impact [m]."""
        return jnp.min(jnp.where(d.hit, self.gaps(d, state), FAR)) + DEPTH

    def depth(self, sigma: Array, d: Start, gradient: str | None = None) -> Array:
        """`least` after a trial step of length ``sigma`` [s]."""
        return self.least(d, self.advance(d, d.carry, sigma, d.may, gradient)[0].state)

    def trial(self, d: Start) -> tuple[Start, tuple[Carry, Output]]:
        """A step in which contacts open at its start cannot act, and the contacts that it penetrates.

        Returns:
            ``d`` with ``may``, ``hit`` and ``depth``; carry and output of the step.
        """
        open_ = self.gaps(d, d.carry.state) > 0.0
        end, output = self.advance(d, d.carry, d.dt, ~open_)
        gap, at = self.gaps(d, end.state), end.state
        hit = open_ & acting(self.system, jnp.asarray(at.t), at.q, d.params, gap < -DEPTH)
        d = dataclasses.replace(d, may=~open_, hit=hit)
        d = dataclasses.replace(d, depth=self.least(d, end.state))
        # the scheme inside has not tested contacts that cannot act: their gaps at the end of the step
        seen = dataclasses.replace(output.event, gap=jnp.where(open_, gap, output.event.gap))
        return d, (end, dataclasses.replace(output, event=seen))


def locate(stepper: Stepper) -> Callable[[Start], tuple[Array, Array]]:
    """Function that returns the time of the first impact after the start of the step [s], and whether it
    was found.
    """

    def solver(d: Start) -> tuple[Array, Array]:
        ends = stepper.least(d, d.carry.state), d.depth
        most = d.scheme.options.max_roots
        return root(lambda s: stepper.depth(s, d, "discrete"), ends, d.dt, jnp.any(d.hit), most)

    def live_step(sigma: Array, d: Start) -> Callable[[Start], Array]:
        rate = jax.jvp(lambda s: stepper.depth(s, d), (sigma,), (jnp.ones_like(sigma),))[1]
        rate = jnp.where(rate < 0.0, rate, -1.0)
        return lambda data: sigma - stepper.depth(sigma, data) / rate

    return implicit_solution(solver, live_step)


def root(
    depth: Callable[[Array], Array], ends: tuple[Array, Array], dt: Array, run: Array, most: int
) -> tuple[Array, Array]:
    """Zero of ``depth`` between 0 and ``dt``, by the Illinois form of regula falsi.

    Args:
        depth: function of a time [s].
        ends: its values at 0 and ``dt``, of different signs.
        dt: () end of the interval [s].
        run: () bool, whether to search at all.
        most: largest number of evaluations.

    Returns:
        The time, at least ``EDGE dt`` away from both ends [s]; and whether ``depth`` is zero there.
    """

    def wide(s: Any) -> Array:
        return run & (jnp.abs(s[6]) > SAME_INSTANT) & (s[7] < most)

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
    inner = jnp.clip(last[5], EDGE * dt, (1.0 - EDGE) * dt)
    return inner, jnp.abs(last[6]) <= 0.5 * DEPTH
