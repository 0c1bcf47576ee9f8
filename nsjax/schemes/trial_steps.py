"""Trial steps of a scheme in which contacts that are open cannot act, and the time at which one closes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.system import State, System
from nsjax.nonlinear import implicit_solution
from nsjax.schemes.family import LOCATED
from nsjax.types import Array, PyTree, record

DEPTH = 1e-12
"""Gap at a located impact is minus this [m]: a contact that stays there is closed for any scheme."""

LIFT = 1e6
"""Contacts that are open at the start of a step are kept out of it by this added to their gap [m]."""

EDGE = 1e-9
"""An impact happens at least this part of a step after its start and before its end: no part vanishes."""


def inside(scheme: Scheme, gradient: str | None = None) -> Scheme:
    """The scheme inside, which carries the derivative of the motion where nothing is located."""
    wanted = gradient or ("discrete" if scheme.gradient == "discrete" else LOCATED)
    return dataclasses.replace(scheme.options.inner, coef=scheme.coef.inner, gradient=wanted)


@record()
class Lifted:
    """Parameters of a system with some gaps lifted by (nc,) [m]."""

    params: PyTree
    lift: Array


@dataclasses.dataclass(frozen=True)
class _Through:
    """A function of the system, whose last argument is the parameters, taking `Lifted` ones."""

    function: Any

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments[:-1], arguments[-1].params)


@dataclasses.dataclass(frozen=True)
class _Gap:
    """The lifted gap."""

    function: Any

    def __call__(self, t: Array, q: Array, p: Lifted) -> Array:
        return self.function(t, q, p.params) + p.lift


def liftable(system: System) -> System:
    """The same system with `Lifted` parameters."""
    names = "mass", "inertia", "force", "potential", "slip", "constraint", "law", "allowed"
    taken = {name: getattr(system, name) for name in names}
    wrapped: Any = {name: _Through(f) for name, f in taken.items() if f is not None}
    none: Any = dict.fromkeys(("prepare", "refresh", "observe"))  # they belong to the whole step
    return dataclasses.replace(system, **wrapped, **none, gap=_Gap(system.gap))


@record()
class Start:
    """Everything that a trial step depends on.

    Args:
        lift: (nc,) [m], see `LIFT`.
        hit: (nc,) bool, contacts that would be penetrated at the end of the step.
        depth: of the deepest of them there [m], see `Stepper.depth`.
    """

    scheme: Scheme
    params: PyTree
    constants: PyTree
    carry: Carry
    dt: Array
    lift: Array
    hit: Array
    depth: Array


class Stepper:
    """Trial steps of the scheme inside."""

    def __init__(self, system: System) -> None:
        self.system, self.lifted = system, liftable(system)

    def advance(
        self, d: Start, carry: Carry, dt: Array, lift: Array, gradient: str | None = None
    ) -> tuple[Carry, Output]:
        """A step of length ``dt`` with gaps lifted by (nc,) ``lift``."""
        inner = inside(d.scheme, gradient)
        p = Lifted(params=d.params, lift=lift)
        constants = inner.prepare(inner, self.lifted, p, dt)  # they belong to the length of the step
        return inner.step(inner, self.lifted, p, constants, carry, dt)

    def gaps(self, d: Start, state: State) -> Array:
        """Gaps (nc,) at a state."""
        return self.system.gap(jnp.asarray(state.t), state.q, d.params)  # type: ignore[misc]

    def least(self, d: Start, state: State) -> Array:
        """Least gap of the hit contacts above the one at which an impact happens."""
        return jnp.min(jnp.where(d.hit, self.gaps(d, state), LIFT)) + DEPTH

    def depth(self, sigma: Array, d: Start, gradient: str | None = None) -> Array:
        """The same after ``sigma``."""
        return self.least(d, self.advance(d, d.carry, sigma, d.lift, gradient)[0].state)

    def trial(self, d: Start) -> tuple[Start, tuple[Carry, Output]]:
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
