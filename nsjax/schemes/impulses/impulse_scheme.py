"""Schemes whose contact forces are all impulses, from one function: how a state is answered."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from nsjax.contact import Jump
from nsjax.contact.criteria import Criteria
from nsjax.contact.events import Balance, Formed
from nsjax.contact.sensitivity import Stepped
from nsjax.core.inertia import inertia_at
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.system import State, System
from nsjax.schemes.choices import told_by, within
from nsjax.schemes.impulses.frozen_rows import FrozenRowEquations, FrozenRows, frozen_rows, solve_frozen
from nsjax.schemes.impulses.midpoint_contacts import Remembered, contact_init, gap_of, impulse_step
from nsjax.types import Array, Fn, PyTree, record


@record()
class Numbers:
    """Numbers of a scheme of impulses.

    Args:
        stage_tolerance: bound on the estimated next update of an iteration relative to ``1 + |v|``.
        tolerance: bound on the relative natural-map residual of each contact problem.
        gap_tolerance: gap that counts as closed [m]: above zero, because a contact at rest keeps its gap to
            rounding only.
    """

    stage_tolerance: Array | float = 1e-12
    tolerance: Array | float = 1e-11
    gap_tolerance: Array | float = 1e-12


@record()
class StepData:
    """What the equations of a step read.

    Args:
        params: of the system.
        state: start of the step.
        memory: what the scheme remembers of the step before.
        dt: step size [s].
        frozen: rows of contacts (if any may act) and constraints.
    """

    params: PyTree
    state: State
    memory: PyTree
    dt: Array
    frozen: FrozenRows


@dataclasses.dataclass(frozen=True)
class ImpulseRun:
    """What the functions of a scheme of impulses get: the step, and the solves that belong to it.

    Args:
        scheme, system, params: as in `Scheme`.
        dt: step size [s].
        state: start of the step.
        memory: what the scheme remembers of the step before.
        active: (nc,) bool, contacts that take part.
        contacts: whether any may.
    """

    scheme: Scheme
    system: System
    params: PyTree
    state: State
    memory: PyTree
    dt: Array
    active: Array | None = None
    contacts: bool = False

    def data(self, t: Array | float, q: Array) -> StepData:
        """What equations read, with the rows of contacts and constraints at ``(t, q)``."""
        rows = frozen_rows(self.system, self.params, jnp.asarray(t), q, self.contacts)
        return StepData(params=self.params, state=self.state, memory=self.memory, dt=self.dt, frozen=rows)

    def solve(self, equations: type[FrozenRowEquations], data: StepData) -> tuple[Array, Jump, Array]:
        """Velocity change (nv,), jump, and error estimate of the iteration."""
        active = jnp.zeros(self.system.nc, bool) if self.active is None else self.active
        jump, answer = solve_frozen(self.scheme, equations(self.system, self.contacts), data, active)
        return answer.z, jump, answer.estimate

    def acceleration(self) -> Array:
        """``M^-1 h`` (nv,) at the start of the step, without contact and constraint forces."""
        s, system = self.state, self.system
        force = system.force(s.t, s.q, s.v, self.params)
        return inertia_at(system, s.t, s.q, self.params).solve(force[:, None])[:, 0]


Respond = Callable[[ImpulseRun], Stepped]
Look = Callable[[ImpulseRun], Any]


@dataclasses.dataclass(frozen=True)
class Options:
    """Choices of `impulse_scheme`."""

    respond: Respond
    gaps: Look | None
    remember: Look | None
    corrects: bool
    max_passes: int
    max_iterations: int


def impulse_scheme(
    name: str,
    respond: Respond,
    *,
    gaps: Look | None = None,
    remember: Look | None = None,
    corrects: bool = False,
    numbers: Any = None,
    gradient: str = "discrete",
    max_passes: int = 20,
    max_iterations: int = 20,
    criteria: Criteria | None = None,
) -> Scheme:
    """A scheme made from one function, the step. Functions must stand at module level.

    Args:
        name: of the scheme.
        respond: ``(run) -> Stepped``, the whole step, see `ImpulseRun`; `Stepped.more` is the memory of
            the next step.
        gaps: ``(run) -> (nc,)`` [m], up to `Numbers.gap_tolerance` at contacts that take part; None:
            the gaps at the predicted midpoint ``q + dt/2 v``.
        remember: ``(run) -> memory`` at the start of a run; None: the scheme has no memory.
        corrects: whether gaps are corrected on position level.
        numbers: record of numbers, with the fields of `Numbers` at least; None: these.
        gradient: ``"saltation"`` for the derivative of the motion: right where every impact is over within
            one step of a map from ``(q, v)`` to ``(q, v)``. ``"discrete"``: that of the map.
        max_passes, max_iterations: of the stage solver and of each contact problem.
        criteria: thresholds that classify events; None: `nsjax.Criteria` with its defaults.

    Returns:
        A `Scheme`.

    Raises:
        InputError: for criteria that are none, and for less than one pass or iteration.

    Example:
        >>> from nsjax.schemes.building import FrozenRowEquations, State, Stepped, impulse_scheme, momentum
        >>> class Balance(FrozenRowEquations):
        ...     def residual(self, d, z):
        ...         force = self.system.force(d.state.t, d.state.q, d.state.v, d.params)
        ...         return momentum(self.system, d.state.q, z, d.params) - d.dt * force
        ...
        ...     def rates(self, d, z):
        ...         return d.frozen.rows.rate(d.state.v + z)
        >>> def respond(run):
        ...     s, dt = run.state, run.dt
        ...     z, jump, estimate = run.solve(Balance, run.data(s.t, s.q))
        ...     end = State(t=s.t + dt, q=run.system.retract(s.q, dt * (s.v + z)), v=s.v + z)
        ...     return Stepped(end=end, jump=jump, estimate=estimate)
        >>> impulse_scheme("symplectic_euler", respond).name
        'symplectic_euler'
    """
    options = Options(
        respond=respond,
        gaps=gaps,
        remember=remember,
        corrects=corrects,
        max_passes=within(name, "max_passes", max_passes, 1),
        max_iterations=within(name, "max_iterations", max_iterations, 1),
    )
    return Scheme(
        name=name,
        coef=Numbers() if numbers is None else numbers,
        options=options,
        prepare=_prepare,
        init=_init,
        step=_step,
        gradient=gradient,
        criteria=told_by(name, criteria),
        impulses="step",
    )


def _prepare(scheme: Scheme, system: System, params: PyTree, dt: Array) -> PyTree:
    return dt


def _init(scheme: Scheme, system: System, params: PyTree, dt: Array, state: State) -> Carry:
    carry = contact_init(scheme, system, params, (), state)
    if scheme.options.remember is None:
        return carry
    own = scheme.options.remember(ImpulseRun(scheme, system, params, state, (), dt))
    return Carry(state=state, memory=Remembered(touch=carry.memory, own=own))


def _step(
    scheme: Scheme, system: System, params: PyTree, constants: PyTree, carry: Carry, dt: Array
) -> tuple[Carry, Output]:
    options: Options = scheme.options
    memory = carry.memory.own if options.remember is not None else ()

    def respond(
        scheme: Scheme, system: System, p: PyTree, state: State, active: Array, dt: Array, contacts: bool,
        _balance: Balance | None, _formed: Formed | None,
    ) -> Stepped:  # fmt: skip
        return options.respond(ImpulseRun(scheme, system, p, state, memory, dt, active, contacts))

    gaps: Fn = gap_of
    if options.gaps is not None:
        start = State(t=jnp.asarray(carry.state.t), q=carry.state.q, v=carry.state.v)
        run = ImpulseRun(scheme, system, params, start, memory, dt)
        gaps = lambda *_: options.gaps(run)  # type: ignore[misc]  # noqa: E731
    return impulse_step(respond, scheme, system, params, carry, dt, corrects=options.corrects, gaps=gaps)
