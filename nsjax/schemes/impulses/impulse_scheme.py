"""Schemes whose contact forces are all impulses, from one function: how a state is answered."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp

from nsjax.contact.criteria import Criteria
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.step import Step
from nsjax.core.system import State, System
from nsjax.schemes.choices import told_by, within
from nsjax.schemes.impulses.impulse_step import (
    ImpulseRun,
    Look,
    Method,
    Respond,
    StepData,
    impulse_init,
    impulse_step,
    run_of,
)
from nsjax.types import Array, PyTree, record

__all__ = ["ImpulseRun", "Numbers", "StepData", "impulse_scheme"]


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


@dataclasses.dataclass(frozen=True)
class Choices:
    """Choices of a scheme of impulses that has no others."""

    max_passes: int
    max_iterations: int


@dataclasses.dataclass(frozen=True)
class _Prepare:
    """`Scheme.prepare` of a method: the step size, and what its own ``prepare`` makes of a step at rest."""

    method: Method

    def __call__(self, scheme: Scheme, system: System, params: PyTree, dt: Array) -> PyTree:
        if self.method.prepare is None:
            return dt, ()
        rest = State(t=jnp.zeros(()), q=jnp.zeros(system.nq), v=jnp.zeros(system.nv))
        step = Step(
            scheme=scheme, system=system, params=params, constants=(), carry=Carry(state=rest), dt=dt
        )
        return dt, self.method.prepare(run_of(step, ()))


@dataclasses.dataclass(frozen=True)
class _Init:
    """`Scheme.init` of a method."""

    method: Method

    def __call__(
        self, scheme: Scheme, system: System, params: PyTree, constants: PyTree, state: State
    ) -> Carry:
        dt, own = constants
        step = Step(
            scheme=scheme, system=system, params=params, constants=own, carry=Carry(state=state), dt=dt
        )
        return impulse_init(step, self.method, own)


@dataclasses.dataclass(frozen=True)
class _Take:
    """`Scheme.step` of a method."""

    method: Method

    def __call__(
        self, scheme: Scheme, system: System, params: PyTree, constants: PyTree, carry: Carry, dt: Array
    ) -> tuple[Carry, Output]:
        step = Step(scheme=scheme, system=system, params=params, constants=constants, carry=carry, dt=dt)
        return impulse_step(step, self.method, constants[1])


def impulse_scheme(
    name: str,
    respond: Respond,
    *,
    prepare: Look | None = None,
    balance: Look | None = None,
    gaps: Look | None = None,
    remember: Look | None = None,
    corrects: bool = False,
    numbers: Any = None,
    choices: Any = None,
    gradient: str = "discrete",
    max_passes: int = 20,
    max_iterations: int = 20,
    criteria: Criteria | None = None,
    stores_solutions: bool = True,
    joints_inside: bool = False,
    pair_contacts: bool = False,
    implicit_damping: bool = False,
) -> Scheme:
    """A scheme made from one function, the step. Functions must stand at module level.

    Args:
        name: of the scheme.
        respond: ``(run) -> Stepped``, the whole step, see `ImpulseRun`; `Stepped.more` is the memory of
            the next step.
        prepare: ``(run) -> constants`` of a step from zero position and velocity, once for a run;
            `ImpulseRun.constants` of the other functions. None: nothing is prepared.
        balance: ``(run) -> Balance``, mass and force at the predicted midpoint, where those of the step are
            these; else it returns None. Runs without derivatives then form them, and rows and responses on
            them, once: `ImpulseRun.balance` and `ImpulseRun.formed`.
        gaps: ``(run) -> (nc,)`` [m], up to `Numbers.gap_tolerance` at contacts that take part; None:
            the gaps at the predicted midpoint ``q + dt/2 v``.
        remember: ``(run) -> memory`` at the start of a run; None, or a memory ``()``: there is none.
        corrects: whether gaps are corrected on position level.
        numbers: record of numbers, with the fields of `Numbers` at least; None: these.
        choices: frozen, hashable record of the scheme's own choices, with the fields ``max_passes`` and
            ``max_iterations``: ``run.scheme.options``. None: these two.
        gradient: ``"saltation"`` for the derivative of the motion: right where every impact is over within
            one step of a map from ``(q, v)`` to ``(q, v)``. ``"discrete"``: that of the map.
        max_passes, max_iterations: of the stage solver and of each contact problem.
        criteria: thresholds that classify events; None: `nsjax.Criteria` with its defaults.
        stores_solutions, joints_inside, pair_contacts: what the scheme takes, see `Scheme`.
        implicit_damping: whether ``dt D`` is added to the mass of every step, see `System.damping`: with
            forces at the velocity of its start their damping is then that of its end.

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
    method = Method(
        respond=respond, prepare=prepare, balance=balance, gaps=gaps, remember=remember, corrects=corrects
    )
    limits = Choices(
        max_passes=within(name, "max_passes", max_passes, 1),
        max_iterations=within(name, "max_iterations", max_iterations, 1),
    )
    return Scheme(
        name=name,
        coef=Numbers() if numbers is None else numbers,
        options=limits if choices is None else choices,
        prepare=_Prepare(method),
        init=_Init(method),
        step=_Take(method),
        gradient=gradient,
        criteria=told_by(name, criteria),
        impulses="step",
        stores_solutions=stores_solutions,
        joints_inside=joints_inside,
        pair_contacts=pair_contacts,
        implicit_damping=implicit_damping,
    )
