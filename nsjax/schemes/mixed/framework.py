"""The mixed framework: a base step with velocity-level contact forces, an impulse at its end.

Between impacts a scheme of structural dynamics runs with the contact forces of the contacts closed at
the start of the step; if a contact has newly closed at the end, all closed contacts share an impulse
with Newton's and Coulomb's laws. A base scheme contributes its stages, as affine maps of the
velocity increments, and nothing else. Source: [R&S section 2.3, (46)-(54)]; the
renewal of the memory after a change of contacts is the package's own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from nsjax import gradient_notes
from nsjax.contact import events
from nsjax.contact.events import Criteria, Touch, criteria_of
from nsjax.contact.friction import consistent_forces
from nsjax.contact.jump import impulses_of
from nsjax.core.operators import row_forces, touching
from nsjax.core.scheme import Accelerations, Carry, Output, Scheme, Traits
from nsjax.core.step import Step, SystemState
from nsjax.core.system import State, System, row_groups
from nsjax.jaxtools.control_flow import branch
from nsjax.schemes.common import (
    FORMS,
    checked_criteria,
    choose,
    choose_tangent,
    contact_event,
    step_status,
    within,
)
from nsjax.schemes.mixed.base_step import (
    EXPLICIT,
    BaseEnd,
    End,
    Memory,
    Runner,
    base_step,
    contact_settings,
    kept_parts,
    loaded_rows,
    no_tangents,
    on_contacts,
)
from nsjax.schemes.mixed.impact import (
    after_step,
    end_with_impact,
    recomputes,
    remembering,
    renewed,
    through_reversal,
)
from nsjax.types import Array, PyTree, record

__all__ = ["BaseEnd", "Memory", "MixedOptions", "Tolerances", "mixed_scheme"]


@record()
class Tolerances:
    """Numbers common to all mixed schemes.

    Args:
        stage: bound on the estimated next update of the stage solver relative to ``1 + |v|``.
        contact: bound on the relative natural-map residual of each contact problem.
        gap: gap that counts as closed [m]: above zero, because a contact at rest keeps its gap to rounding
            only.
    """

    stage: Array | float = 1e-12
    contact: Array | float = 1e-11
    gap: Array | float = 1e-12


@dataclasses.dataclass(frozen=True)
class MixedOptions:
    """Choices common to all mixed schemes; see `mixed_scheme`."""

    base: Callable[..., Any]
    consistent_initial_acceleration: bool
    acceleration_after_change: str
    constraint_form: str
    starting_force: Callable[..., Any] | None
    laws_at_start: bool
    leaving_is_open: bool
    max_passes: int
    max_iterations: int
    tangent: str = "auto"
    force_at_release: str = "keep"
    implicit: bool = True


def mixed_scheme(
    name: str, base: Callable[..., Any], coef: Any, *, consistent_initial_acceleration: bool = True,
    acceleration_after_change: str = "recompute", constraint_form: str = "index_2",
    starting_force: Callable[..., Any] | None = None, laws_at_start: bool = False,
    leaving_is_open: bool = False, carries: str | None = None,
    one_step: Callable[[Any, Any], tuple[Any, Any]] | None = None, tangent: str = "auto",
    force_at_release: str = "keep", joints_inside: bool = True, max_passes: int = 20,
    max_iterations: int = 20, criteria: Criteria | None = None,
) -> Scheme:  # fmt: skip
    """A scheme of the mixed framework around a base step.

    Args:
        name: registered name.
        base: ``(coef, state, memory, dt, run) -> BaseEnd``, the formulas of the base scheme.
            ``run(maps)`` solves one group of stages; it returns ``(t, q, v, a)`` and the row impulses
            ``dt lambda`` (contacts, then constraints) of every stage.
        coef: record of numbers with a field ``tolerances``.
        consistent_initial_acceleration: start with the acceleration that contacts and constraints allow.
            False leaves their forces out, as the paper does, and reproduces its Figures 17 and 18.
        acceleration_after_change: acceleration after a change of the set of persistent contacts.
            ``"recompute"``: the consistent one for the new set; ``"keep"``: the stored one, as in the
            paper.
        constraint_form: level on which implicit stages fulfil bilateral constraints: ``"index_2"``
            velocity, ``"ggl"`` position and velocity (Gear, Gupta, Leimkuhler), ``"index_3"`` position,
            ``"index_1"`` acceleration.
        starting_force: ``(coef, state, dt, run) -> (rows,)``, row forces at the start of a step. If
            given, a step without impulse reports the mean of its own forces and those with which the
            next step starts.
        laws_at_start: whether a stage at the start of the step fulfils the contact laws.
        leaving_is_open: whether a closed contact that moves apart counts as open, so that it strikes when
            it comes back: for a base step that does not hold velocities.
        carries: the acceleration that a step of the base scheme starts from, see `Accelerations`.
        one_step: see `Scheme`.
        tangent: tangent with which stages iterate. ``"full"``: the derivative of the residual. ``"mass"``:
            the inertia alone, with position, velocity and directions frozen; the same solution from
            more but cheaper passes, and the full tangent if they contract too slowly (stiff forces).
            ``"kept"``: the tangent of an earlier step, which is remembered, and a new one if passes
            contract too slowly: for tangents that cost much, on a CPU (lanes of a GPU form them in
            every pass).
            ``"auto"``: as `System.tangent_hint` says. Derivatives are the same.
        force_at_release: force of a contact that has one at the start of a step and none at its end.
            ``"keep"``: the step keeps the former, as in the paper; with weights of a half it does the work
            ``dt/4 lambda dg/dt`` on the contact that leaves. ``"drop"``: the step is taken again without
            it. Models that are stiff (`System.stiff`) gain nothing with either.
        joints_inside: see `nsjax.core.scheme.Traits`; False for a base step that calls ``run.rows_at``.
        max_passes, max_iterations: most passes of the stage solver, and Newton steps of a contact problem.
        criteria: thresholds that classify events; None: `Criteria` with its defaults.

    Raises:
        InputError: for an unknown choice, criteria of another type, and less than one pass or iteration.

    Example:
        A base scheme in ten lines is at the top of `nsjax.schemes.building`.

        >>> from nsjax import schemes
        >>> schemes.bathe().name  # made by it
        'bathe'
    """
    choose(name, "acceleration_after_change", acceleration_after_change, ("recompute", "keep"))
    choose(name, "constraint_form", constraint_form, FORMS)
    choose(name, "force_at_release", force_at_release, ("keep", "drop"))
    options = MixedOptions(
        base=base, consistent_initial_acceleration=consistent_initial_acceleration,
        acceleration_after_change=acceleration_after_change, constraint_form=constraint_form,
        starting_force=starting_force, laws_at_start=laws_at_start, leaving_is_open=leaving_is_open,
        max_passes=within(name, "max_passes", max_passes, 1),
        max_iterations=within(name, "max_iterations", max_iterations, 1),
        tangent=choose_tangent(name, tangent), force_at_release=force_at_release,
        implicit=carries != "none",
    )  # fmt: skip
    return Scheme(
        name=name, coef=coef, options=options, prepare=kept_parts, init=_init, step=_step,
        gradient="saltation", criteria=checked_criteria(name, criteria),
        traits=Traits(
            accelerations=None if carries is None else Accelerations(carries),
            in_modes=EXPLICIT if carries == "none" and not joints_inside else None,
            one_step=one_step,
            joints_inside=joints_inside and options.constraint_form == "index_2",
        ),
    )  # fmt: skip


def _init(scheme: Scheme, system: System, params: PyTree, constants: PyTree, state: State) -> Carry:
    step = Step(
        scheme=scheme, system=system, params=params, constants=constants, carry=Carry(state=state),
        dt=jnp.ones(()),
    )  # fmt: skip
    at = step.start
    closed = resting = _closed(step, at)
    if system.nc:
        # a closed contact that approaches at the start counts as open, so that the first step has an impact
        rates = events.gap_rates(at)
        resting = closed & events.at_rest(criteria_of(scheme), rates, at.v)
        closed = resting | (closed & (rates >= 0.0) & (not scheme.options.leaving_is_open))
    stale = scheme.options.consistent_initial_acceleration and system.nc > 0
    a, force = jnp.zeros(system.nv), jnp.zeros(row_groups(system).count)
    if not scheme.options.consistent_initial_acceleration:
        a = at.inertia().solve(at.force()[:, None])[:, 0]
    elif not stale:
        a, force = consistent_forces(at, resting, contact_settings(scheme))
    touch = events.set_touching(events.no_touch(system), resting)
    # nothing is known of the sliding before the start
    touch = dataclasses.replace(touch, held=resting, slide=jnp.full_like(touch.slide, jnp.inf))
    memory = Memory(
        a=a, algorithmic=a, force=force, algorithmic_force=force, closed=closed, touch=touch,
        stale=jnp.asarray(stale), tangents=no_tangents(step),
    )  # fmt: skip
    return Carry(state=state, memory=memory)


def _taking_part(step: Step) -> Array:
    """Contacts (nc,) bool that take part in the stages of a step: in the first step after contacts have
    changed not the unloaded ones, since a stage at its start sees them at rest where their acceleration
    opens them.
    """
    memory = step.carry.memory
    closed: Array = memory.closed
    if not (step.scheme.options.laws_at_start and recomputes(step)):
        return closed
    unloaded = memory.resting & ~loaded_rows(step.system, memory.force)
    return closed & ~(memory.stale & unloaded)


def _released(step: Step, gone: Array) -> Step:
    """The step without the forces of the contacts ``gone`` (nc,), and the accelerations by them."""
    at, system, memory = step.start, step.system, step.carry.memory
    on, settings = jnp.zeros(system.nc, bool), contact_settings(step.scheme)
    own = row_groups(system).per_contact(gone, jnp.zeros(system.nb, bool))

    def without(a: Array, force: Array) -> tuple[Array, Array]:
        push = row_forces(system, at.t, at.q, jnp.where(own, force, 0.0), at.params)
        (more, held), (less, free) = (consistent_forces(at, on, settings, push=x) for x in (push, None))
        return a - (more - less), jnp.where(own, 0.0, force) - (held - free)

    a, force = without(memory.a, memory.force)
    algorithmic, behind = without(memory.algorithmic, memory.algorithmic_force)
    return remembering(
        step,
        dataclasses.replace(memory, a=a, force=force, algorithmic=algorithmic, algorithmic_force=behind),
    )


def _closed(step: Step, at: SystemState) -> Array:
    """Contacts (nc,) bool that are closed at a state."""
    return touching(step.system, at.t, at.q, at.params, at.gap(), step.scheme.coef.tolerances.gap)


def _without_forces(end: End, drop: Array) -> End:
    """The step without its row forces, where ``drop`` () bool, if the base scheme gives ``free``."""
    if end.free is None:
        return end
    pick = lambda kept, dropped: jnp.where(drop, dropped, kept)  # noqa: E731
    return dataclasses.replace(
        end, v=pick(end.v, end.free), force=pick(end.force, 0.0), impulse=pick(end.impulse, 0.0),
    )  # fmt: skip


def _reported_forces(step: Step, end: End, state: State, closed: Array, impulse: Array) -> Array:
    """Row forces at the end of the step; see ``starting_force`` of `mixed_scheme`."""
    scheme, following = step.scheme, step.starting(state)
    if scheme.options.starting_force is None:
        return end.force

    def start(contacts: bool) -> Array:
        run = Runner(following, closed, contacts)
        return run.all(scheme.options.starting_force(scheme.coef, state, step.dt, run))

    then = on_contacts(step.system, closed, start)
    return jnp.where(impulse, end.force, 0.5 * (end.force + then))


def _remember(step: Step, end: End, state: State, closed: Array, touch: Touch) -> Memory:
    """Memory after the step; accelerations are stale where the set of persistent contacts has changed."""
    before = step.carry.memory
    resting, stops = after_step(step, state, closed)
    closed = resting if step.scheme.options.leaving_is_open else closed
    stale = jnp.asarray(False)
    if recomputes(step):
        stale = jnp.any(closed & ~before.closed) | jnp.any(resting != before.resting)
        stale = stale | jnp.any(stops)
    touch = dataclasses.replace(touch, held=resting, bounced=touch.bounced & ~resting, slide=end.slide)
    return Memory(
        a=end.a, algorithmic=end.algorithmic, force=end.force, algorithmic_force=end.algorithmic_force,
        closed=closed, touch=touch, stale=stale, tangents=end.tangents,
    )  # fmt: skip


def _before_impact(step: Step) -> End:
    """The base step; see ``force_at_release`` of `mixed_scheme`."""
    scheme, system, memory = step.scheme, step.system, step.carry.memory

    def base(contacts: bool, step: Step = step) -> End:
        if contacts and scheme.gradient != "discrete" and system.nt:
            return through_reversal(step)
        return base_step(step, contacts)

    end: End = on_contacts(system, memory.closed, base)
    if scheme.options.force_at_release == "keep" or not system.nc:
        return end
    gone = memory.closed & loaded_rows(system, memory.force) & ~loaded_rows(system, end.force)
    free = lambda _: base(True, _released(step, gone))  # noqa: E731
    return branch(jnp.any(gone), free, lambda _: end, None)


def _step(
    scheme: Scheme, system: System, params: PyTree, constants: PyTree, carry: Carry, dt: Array
) -> tuple[Carry, Output]:
    step, jams = renewed(
        Step(scheme=scheme, system=system, params=params, constants=constants, carry=carry, dt=dt)
    )
    state, memory = step.state, step.carry.memory
    stays = remembering(step, dataclasses.replace(memory, closed=_taking_part(step)))
    end = _before_impact(stays)
    last = step.at(State(t=jnp.asarray(state.t) + dt, q=end.q, v=end.v))
    gap = last.gap()
    closed = touching(system, last.t, last.q, params, gap, scheme.coef.tolerances.gap)
    new = jnp.any(closed & ~memory.closed)
    load = loaded_rows(system, end.force)
    end = _without_forces(end, new)
    found = end_with_impact(step, end, closed, load)
    after, jump, report = found.state, found.jump, found.report
    # a contact that was open for this step alone has not struck, unless no force held it
    unheld = jnp.where(jams, gradient_notes.JAMMED, 0)
    let_go = carry.memory.closed & ~memory.closed
    report = dataclasses.replace(report, impact=report.impact & (jams | ~let_go))
    kept = _remember(step, end, after, closed, report.touch)
    force = _reported_forces(step, end, after, closed, new)
    groups = row_groups(system)
    forces, impulses = impulses_of(system, params, force, 1.0), impulses_of(system, params, end.impulse, dt)
    solved = end.solved & (jump.residual <= scheme.coef.tolerances.contact)
    ahead = step.at(State(t=last.t, q=system.retract(state.q, dt * state.v), v=state.v))
    output = Output(
        force_normal=forces[:, 0], force_tangential=forces[:, 1:], constraint_force=groups.bilateral(force),
        impulse_normal=impulses[:, 0] + jump.contacts[:, 0],
        impulse_tangential=impulses[:, 1:] + jump.contacts[:, 1:],
        constraint_impulse=groups.bilateral(end.impulse) + jump.constraints,
        event=dataclasses.replace(contact_event(gap, closed, report, jump), unheld=jams),
        iterations=end.iterations + jump.iterations, residual=jnp.maximum(end.residual, jump.residual),
        status=step_status(ahead, after, gap, solved, jump.residual), contact=jump.worst,
        notes=end.notes | report.notes | unheld | events.settling(memory.touch, kept.resting),
    )  # fmt: skip
    return Carry(state=after, memory=kept), output
