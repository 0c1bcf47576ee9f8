"""What families of schemes share: options, parameters, treatment of events, output of a step."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import status
from nsjax.contact import Jump, events, no_jump
from nsjax.contact.events import Approach, Criteria, Touch, criteria_of
from nsjax.contact.problem import with_reserve
from nsjax.contact.sensitivity import MARKED, QUIET, ContactReport, Contacts, Stepped
from nsjax.contact.stage import StageAnswer
from nsjax.core.errors import InputError, check_choice, check_known
from nsjax.core.keys import as_number
from nsjax.core.operators import touching
from nsjax.core.row_groups import GivenForces
from nsjax.core.scheme import Event, Output, Scheme
from nsjax.core.step import Balance, Step, SystemState
from nsjax.core.system import TANGENTS, State, System, add, row_groups
from nsjax.jaxtools.control_flow import branch
from nsjax.types import Array, PyTree, is_traced


def chung_hulbert(rho_inf: Any) -> tuple[Any, Any, Any, Any]:
    """``alpha_m, alpha_f, beta, gamma`` of Chung and Hulbert's method for ``rho_inf``, [R&S (26)]."""
    alpha_m, alpha_f = (2 * rho_inf - 1) / (rho_inf + 1), rho_inf / (rho_inf + 1)
    return alpha_m, alpha_f, 1 / (1 + rho_inf) ** 2, (3 - rho_inf) / (2 * (1 + rho_inf))


# Options that several schemes offer under the same names, and their checks.


FORMS = ("index_2", "ggl", "index_3", "index_1")
"""Forms of bilateral constraints: on velocity, position and velocity, position, acceleration level."""

MIXED = (
    "stage_tolerance", "contact_tolerance", "gap_tolerance", "consistent_initial_acceleration",
    "acceleration_after_change", "constraint_form", "tangent", "force_at_release", "max_passes",
    "max_iterations", "criteria",
)  # fmt: skip
"""Keywords common to all schemes of the mixed framework."""

METRICS = ("auto", "euclidean", "kinetic")
"""Metrics of a projection of positions."""


def choose(name: str, option: str, value: str, known: tuple[str, ...]) -> str:
    """``value``, if it is one of ``known``. ``name``, ``option``: of the scheme and of its option, for the
    error message. Raises `InputError` for another value.
    """
    check_choice(f"{name}: {option}", value, known)
    return value


def known_options(name: str, options: dict[str, Any], *own: str) -> dict[str, Any]:
    """``options``, if all of them are options of the mixed framework (`MIXED`). Raises `InputError` for an
    unknown option; it names those that are known, ``own`` ones of the scheme first.
    """
    for key in options:
        check_known(f"{name}: unknown option", key, (*own, *MIXED))
    return options


def within(name: str, option: str, value: Any, low: float, high: float = np.inf, remedy: str = "") -> Any:
    """``value``, if it lies in ``[low, high]`` or is traced; ``remedy`` ends the sentence of the error.
    Raises `InputError` for a value that is no number, or outside the range.
    """
    if is_traced(value):
        return value
    plain = as_number(value)
    if isinstance(plain, list | tuple) or np.asarray(plain).dtype.kind not in "iuf" or not np.size(plain):
        raise InputError(f"{name}: {option} = {value!r} is no number; give one")
    if not np.all((low <= np.asarray(plain)) & (np.asarray(plain) <= high)):
        range_ = f"be at least {low:g}" if high == np.inf else f"lie in [{low:g}, {high:g}]"
        end = f"; {remedy}" if remedy else ""
        raise InputError(f"{name}: {option} = {value}; it must {range_}{end}")
    return value


def checked_criteria(name: str, criteria: Criteria | None) -> Criteria | None:
    """``criteria`` of events, if they are a `nsjax.Criteria` or None. Raises `InputError` for a value of
    another type.
    """
    if criteria is not None and not isinstance(criteria, Criteria):
        raise InputError(
            f"{name}: criteria must be a nsjax.Criteria, got {criteria!r}; "
            "change single numbers as in nsjax.Criteria(gate=3.0)"
        )
    return criteria


def choose_tangent(name: str, value: str) -> str:
    """``value``, if it is a tangent of the iteration. Raises `InputError` for another value."""
    return choose(name, "tangent", value, ("auto", *TANGENTS))


def tangent_of(choice: str, system: System) -> str:
    """The tangent of the iteration: ``choice``, or for ``"auto"`` the hint of the model."""
    return system.tangent_hint if choice == "auto" else choice


def with_rotations(system: System, params: PyTree) -> bool | Array:
    """Whether a model has rotations; of a size class of mechanisms, its params know it."""
    known = getattr(system.parts, "with_rotations", None)
    return system.retract is not add if known is None else known(params)


def kinetic_metric(choice: str, system: System, params: PyTree) -> bool | Array:
    """Whether positions are corrected along ``M^-1 W``: for ``"kinetic"``, and for ``"auto"`` in models
    with rotations, whose coordinates have different units.
    """
    return choice == "kinetic" or (choice == "auto" and with_rotations(system, params))


# Treatment of events common to several families of schemes: derivatives, and contacts at rest.


LOCATED = "located"
"""Value of `Scheme.gradient` of the scheme inside `nsjax.schemes.localized`."""


def derivatives(scheme: Scheme) -> dict[str, bool]:
    """Derivatives that a step carries through events, as fields of `nsjax.contact.sensitivity.Family`.

    ``derivative``: whether a step has the derivative of the motion; not with ``gradient="discrete"``.
    ``refuse``: whether a second differentiation is refused; not inside `nsjax.schemes.localized`.
    ``moves``: whether events may add to the derivative; not in steps that are known to have none.
    ``marked``: whether steps say if events do.
    """
    gradient = scheme.gradient
    return {
        "derivative": gradient != "discrete", "refuse": gradient != LOCATED,
        "moves": gradient != QUIET, "marked": gradient == MARKED,
    }  # fmt: skip


def touch_at_start(step: Step, tolerance: Array | float) -> Touch:
    """Memory of contacts at the start of a run. Contacts that touch there, with a gap up to ``tolerance``
    [m] and at rest, count as closed in the step before.
    """
    at = events.frozen(step.start)
    closed = touching(at.system, at.t, at.q, at.params, at.gap(), tolerance)
    rests = events.at_rest(criteria_of(step.scheme), events.gap_rates(at), at.v)
    return events.set_touching(events.no_touch(at.system), closed & rests)


def held_contacts(step: Step, contacts: Contacts, r: Stepped, found: Approach, load: Array) -> Array:
    """Contacts (nc,) bool that are at rest under ``load`` (nc,) bool after a step: those at rest before,
    those that approached too slowly for an impact, those that separate more slowly than the slowest
    approach that counts as one after an impact, and those whose gap rate is zero.
    """
    jump = r.jump
    rests = events.at_rest(criteria_of(step.scheme), jump.after, r.end.v)
    landed = found.impacts & (jnp.abs(jump.after) <= found.limit)
    return load & (contacts.touch.held | found.gated | landed | rests)


def held_or_acting(step: Step, contacts: Contacts, r: Stepped, found: Approach, load: Array) -> Array:
    """`held_contacts` for a scheme that decides contacts at a predicted end of the step, at which a contact
    that slides over a convex surface is open: contacts that acted in this step and the last one, and whose
    gap rate is zero, are at rest, too.
    """
    acts = (r.jump.contacts[:, 0] > 0.0) & (contacts.touch.off == 0)
    stays = acts & events.at_rest(criteria_of(step.scheme), r.jump.after, r.end.v)
    return stays | held_contacts(step, contacts, r, found, load)


# Output of a step that all schemes report in the same way.


def step_status(
    at: SystemState, end: State, gap: Array, solved: Array, residual: Array, balance: Balance | None = None
) -> Array:
    """Status bits of a step, see `nsjax.status`. Causes are looked for only when something is wrong.
    Returns () int, the bits.

    Args:
        at: the system at a finite state inside the step; mass and force there show the cause.
        end: the new state.
        gap: (nc,) gaps by which the scheme decided its contacts [m].
        solved: () bool, whether all contact problems fulfil their tolerance.
        residual: () residual of the contact problems; infinite if one has no solution.
        balance: mass and force at ``at``; None: they are evaluated where needed.
    """

    def broken(x: Array) -> Array:
        return ~jnp.isfinite(jnp.sum(x))

    def causes(_: None) -> Array:
        if balance is None:
            mass, force = at.inertia(), at.force()
            drift = mass.solve(force[:, None])
        else:
            mass, force, drift = balance.inertia, balance.push, balance.drift
        heavy = broken(mass.times(jnp.ones(at.system.nv)))
        inputs = heavy | broken(force)
        singular = ~inputs & broken(drift)
        state = ~inputs & ~singular & (broken(end.v) | broken(end.q))
        found = {
            status.GAP_NOT_FINITE: broken(gap) & ~broken(end.q), status.MASS_NOT_FINITE: heavy,
            status.FORCE_NOT_FINITE: broken(force), status.MASS_SINGULAR: singular,
            status.STATE_NOT_FINITE: state,
            status.CONTACT_JAMMED: ~inputs & ~singular & jnp.isinf(residual),
            status.CONTACT_UNSOLVED: ~solved & ~jnp.isinf(residual),
        }  # fmt: skip
        return sum((jnp.where(on, bit, 0) for bit, on in found.items()), start=jnp.asarray(0))

    bad = broken(gap) | broken(end.v) | broken(end.q) | ~solved
    return branch(bad, causes, lambda _: jnp.asarray(0), None)


def stage_jump(
    system: System, answer: StageAnswer, dv: Array, rates: tuple[Array, Array], active: Array | None,
    given: GivenForces | None = None,
) -> Jump:  # fmt: skip
    """The result of the stage solver as a `Jump`.

    Args:
        answer: answer of the stage solver.
        dv: (nv,) velocity change of the step.
        rates: (rows,) row velocities before and after the step [m/s], contacts (if any) first.
        active: (nc,) bool, contacts that take part; None where contacts have no rows.
        given: numbers of the bounded forces. Such a force has the normal impulse of its bound, or that of
    """
    none, groups = no_jump(system), row_groups(system, active is not None)
    contacts, before, after = none.contacts, none.before, none.after
    if active is not None:
        contacts = groups.impulses(answer.impulses, given, active)
        contacts = with_reserve(groups, given, contacts, rates[1])
        before, after = (jnp.where(active, groups.normals(x), 0.0) for x in rates)
    return Jump(
        dv=dv, contacts=contacts, constraints=groups.bilateral(answer.impulses)[: system.nb], before=before,
        after=after, iterations=answer.iterations, residual=answer.residual, worst=none.worst,
    )  # fmt: skip


def contact_event(gap: Array, active: Array, report: ContactReport, jump: Jump) -> Event:
    """The contact decision of a step: gaps (nc,) by which it was made [m], ``active`` contacts (nc,) bool
    that took part, impacts of the ``report``, and normal gap rates of the ``jump``.
    """
    return Event(
        gap=gap, active=active, impact=report.impact, rate_before=jump.before, rate_after=jump.after,
        shift=report.tau, timed=report.timed, moves=report.moves,
    )  # fmt: skip


def impulse_output(r: Stepped, event: Event, notes: Array, dt: Array, status: Array) -> Output:
    """Output of a step whose contact and constraint forces are impulses over ``dt``."""
    jump = r.jump
    return Output(
        force_normal=jump.contacts[:, 0] / dt, force_tangential=jump.contacts[:, 1:] / dt,
        constraint_force=jump.constraints / dt, impulse_normal=jump.contacts[:, 0],
        impulse_tangential=jump.contacts[:, 1:], constraint_impulse=jump.constraints, event=event,
        iterations=jump.iterations, residual=jump.residual, status=status, contact=jump.worst, notes=notes,
    )  # fmt: skip
