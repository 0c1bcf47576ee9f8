"""Trial steps of a scheme in which open contacts cannot act, up to the first one that closes."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.core.operators import acting
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.system import State, System
from nsjax.schemes.at_events import LOCATED
from nsjax.schemes.locating.first_event import DEPTH, FirstEvent, Flight, first_event
from nsjax.types import Array, PyTree, record

CUTS = 3
"""Largest number of instants that are located in one step. More of them occur at the end of an accumulation
of impacts."""


def inside(scheme: Scheme) -> Scheme:
    """The scheme inside `localized`, with its numbers. Unless the derivative is the discrete one, it has
    the derivative of the motion where nothing is located.
    """
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
    """

    scheme: Scheme
    params: PyTree
    constants: PyTree
    carry: Carry
    dt: Array
    may: Array
    search: Array


def in_one_step(d: Start) -> Start:
    """The same for a step of another length than the last one (`Scheme.one_step`); unchanged if no impacts
    are looked for.
    """
    scheme, own = d.scheme, (d.scheme.coef.inner, d.carry.memory)
    if scheme.options.inner.one_step is None:
        return d
    alone = scheme.options.inner.one_step(*own)
    numbers, memory = jax.tree.map(lambda a, b: jnp.where(d.search, a, b), alone, own)
    coef = dataclasses.replace(scheme.coef, inner=numbers)
    carry = dataclasses.replace(d.carry, memory=memory)
    return dataclasses.replace(d, scheme=dataclasses.replace(scheme, coef=coef), carry=carry)


class Stepper:
    """Trial steps of the scheme inside, for one system."""

    def __init__(self, system: System) -> None:
        self.system, self.masked = system, maskable(system)

    def begin(self, d: Start) -> Start:
        """The same, where only contacts that are closed at the start can act if impacts are looked for.

        Rounding moves the gap of a contact at rest: up to `DEPTH` above zero it is closed.
        """
        return dataclasses.replace(d, may=~d.search | ~(self.gaps(d, d.carry.state) > DEPTH))

    def gaps(self, d: Start, state: State) -> Array:
        """Gaps (nc,) at a state [m]."""
        return self.system.gap(jnp.asarray(state.t), state.q, d.params)

    def fly(self, dt: Array, d: Start) -> Flight:
        """A step of length ``dt`` [s] with its carry and output, and the contacts that it penetrates."""
        inner = inside(d.scheme)
        p = MaskedParams(params=d.params, may=d.may)
        constants = inner.prepare(inner, self.masked, p, dt)  # they depend on the length of the step
        end, output = inner.step(inner, self.masked, p, constants, d.carry, dt)
        gap, at = self.gaps(d, end.state), end.state
        hit = ~d.may & acting(self.system, jnp.asarray(at.t), at.q, d.params, gap < -DEPTH)
        # the scheme inside has not tested contacts that cannot act: their gaps at the end of the step
        seen = dataclasses.replace(output.event, gap=jnp.where(d.may, output.event.gap, gap))
        return Flight(end=(end, dataclasses.replace(output, event=seen)), values=gap + DEPTH, hit=hit)

    def to_impact(self, d: Start, like: tuple[Carry, Output]) -> FirstEvent:
        """The step up to its first impact, if there is one."""
        gaps = lambda d: self.gaps(d, d.carry.state) + DEPTH  # noqa: E731
        return first_event(self.fly, gaps, like, d.scheme.options.max_roots)(d.dt, d)
