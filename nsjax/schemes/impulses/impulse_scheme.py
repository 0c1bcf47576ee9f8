"""Makes a scheme whose contact forces are all impulses from one function, the step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from nsjax.contact.equations import CarriedTangent, no_tangent
from nsjax.contact.events import Criteria
from nsjax.core.scheme import Carry, Output, Scheme, Traits
from nsjax.core.step import Step
from nsjax.core.system import State, System
from nsjax.renamed import read_by, renamed_fields
from nsjax.schemes.common import checked_criteria, tangent_of, within
from nsjax.schemes.impulses.impulse_step import (
    ImpulseRun,
    Method,
    StepFunction,
    StepHook,
    impulse_init,
    impulse_step,
    run_of,
)
from nsjax.types import Array, PyTree, record

# Tangents that schemes of impulses keep from step to step: ``tangent="kept"``, see `mixed_scheme`.


Pair = tuple[CarriedTangent, CarriedTangent]
"""Tangents of the steps without and with contact rows."""


def blank_tangents(run: ImpulseRun, problem: Callable[[bool], tuple[Any, PyTree, int]]) -> PyTree:
    """Memory at the start of a run: a pair of empty tangents if tangents are kept, else ``()``. ``run``:
    any step of the run; ``problem``: ``(contacts) -> (equations, data, unknowns)``, the equations of that
    step.
    """
    system = run.system
    if system.structure.constant or tangent_of(run.scheme.options.tangent, system) != "kept":
        return ()
    return tuple(no_tangent(*problem(contacts)) for contacts in (False, system.nc > 0))


def carried_tangent(run: ImpulseRun) -> CarriedTangent | None:
    """The tangent of the last step of this kind, with or without contact rows; None if none is kept."""
    return run.memory[run.contacts] if run.memory else None


def memory_after(run: ImpulseRun, carried: CarriedTangent | None) -> PyTree:
    """Memory (`Stepped.more`) after a step whose solver returned the tangent ``carried``."""
    if not run.memory or carried is None:
        return ()
    without, within = run.memory
    return (without, carried) if run.contacts else (carried, within)


@renamed_fields
@record()
class ImpulseCoefficients:
    """Numbers of a scheme of impulses.

    Args:
        stage_tolerance: bound on the estimated next update of an iteration, relative to ``1 + |v|``.
        contact_tolerance: bound on the relative natural-map residual of each contact problem.
        gap_tolerance: gap up to which a contact counts as closed [m]. It is above zero because a contact at
            rest keeps its gap to rounding only.
    """

    stage_tolerance: Array | float = 1e-12
    contact_tolerance: Array | float = 1e-11
    gap_tolerance: Array | float = 1e-12


@dataclasses.dataclass(frozen=True)
class Choices:
    """Choices of a scheme of impulses without choices of its own: its limits of iterations."""

    max_passes: int
    max_iterations: int


@dataclasses.dataclass(frozen=True)
class _Prepare:
    """`Scheme.prepare`: the step size, and ``Method.prepare`` of a step from zero position and velocity."""

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
    name: str, respond: StepFunction, *, prepare: StepHook | None = None, balance: StepHook | None = None,
    gaps: StepHook | None = None, remember: StepHook | None = None, corrects: bool = False,
    numbers: Any = None, choices: Any = None, gradient: str = "discrete", max_passes: int = 20,
    max_iterations: int = 20, criteria: Criteria | None = None, traits: Traits | None = None,
) -> Scheme:  # fmt: skip
    """A scheme made from one function, the step. Its functions must be defined at module level.

    Args:
        name: name of the scheme.
        respond: ``(run) -> Stepped``, the step, see `ImpulseRun`. `Stepped.more` becomes the memory of the
            next step.
        prepare: ``(run) -> constants``, called once per run with a step from zero position and velocity.
            The other functions find its result in `ImpulseRun.constants`. None: nothing is prepared.
        balance: ``(run) -> Balance or None``, mass and force at the predicted midpoint, if the step uses
            mass and force there; else None. Runs without derivatives then form mass, force, rows and
            responses once, for the contact decision and the step: `ImpulseRun.balance`,
            `ImpulseRun.formed`.
        gaps: ``(run) -> (nc,)``, gaps that decide which contacts take part: those up to
            `ImpulseCoefficients.gap_tolerance` [m]. None: those at the predicted midpoint ``q + dt/2 v``.
        remember: ``(run) -> memory``, memory at the start of a run; ``()``: none. None: the scheme has no
            memory of its own.
        corrects: whether the scheme corrects gaps on position level.
        numbers: record of numbers, with the fields of `ImpulseCoefficients` at least; None: these.
        choices: frozen, hashable record of the scheme's own choices (``run.scheme.options``), with the
            fields ``max_passes`` and ``max_iterations`` at least. None: these two.
        gradient: ``"saltation"``: the derivative of the motion. It needs a step from ``(q, v)`` to
            ``(q, v)`` in which every impact begins and ends. ``"discrete"``: the derivative of the map.
        max_passes: largest number of linearisations of the stage solver.
        max_iterations: largest number of Newton steps per contact problem.
        criteria: thresholds that classify events; None: `nsjax.Criteria` with its defaults.
        traits: what the scheme takes; None: nothing beyond a plain step. Its impulses are those of a whole
            step. With ``implicit_damping`` ``dt D`` is added to the mass of every step, see
            `System.damping`: forces at the velocity of the start are then damped by the velocity of the
            end.

    Raises:
        InputError: for criteria of another type, and for limits of less than one pass or iteration.

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
        coef=ImpulseCoefficients() if numbers is None else read_by(numbers, tolerance="contact_tolerance"),
        options=limits if choices is None else choices, prepare=_Prepare(method), init=_Init(method),
        step=_Take(method), gradient=gradient, criteria=checked_criteria(name, criteria),
        traits=dataclasses.replace(traits or Traits(), impulses="step"),
    )  # fmt: skip
