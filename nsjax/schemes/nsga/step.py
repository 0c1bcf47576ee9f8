"""One step of the nonsmooth generalized-alpha family; see `nsjax.schemes.nsga`."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax import gradient_notes
from nsjax.contact import ContactLaw, ContactProblem, Jump, events, no_jump, worst_contact
from nsjax.contact.at_nodes import without_responses
from nsjax.contact.events import Touch, criteria_of, gap_rates
from nsjax.contact.friction import sliding, sticking
from nsjax.contact.problem import relative_residual
from nsjax.contact.sensitivity import ContactReport, Contacts, Family, Stepped, no_report, through_events
from nsjax.core.errors import InputError
from nsjax.core.operators import gap_drift, gap_rows, momentum, row_rates, touching
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.step import NO_RESPONSES, Step, SystemState
from nsjax.core.system import State, System, row_groups
from nsjax.jaxtools import without_derivative
from nsjax.jaxtools.control_flow import branch
from nsjax.renamed import renamed_fields
from nsjax.schemes.common import (
    chung_hulbert,
    contact_event,
    derivatives,
    held_or_acting,
    impulse_output,
    step_status,
    touch_at_start,
)
from nsjax.schemes.nsga.correction import IterationBounds, Tangent, correction, linearised
from nsjax.schemes.nsga.levels import Prediction
from nsjax.schemes.nsga.newton import tangent
from nsjax.schemes.nsga.solve import Answer, blank_tangents, coupled, data_of, decoupled, levels_of
from nsjax.types import Array, PyTree, record

# The velocity jump of a step of the nonsmooth generalized-alpha family, with rates and certificate.


def _certificate(
    system: System, s: Prediction, x: Answer, values: Array, free: Array, size: Array
) -> tuple[Array, Array]:
    """Natural-map residual of all laws, relative to the largest impulse that single rows would need with
    the characteristic mass, and the contact that fulfils its law worst. ``values``, ``free``: (rows,) rates
    in the laws, ``G v + e G(q_n) v_n``, with and without the jump; ``size``: (rows,) sums of the magnitudes
    of their terms.
    """
    problem = ContactProblem(
        rows=row_groups(system), delassus=jnp.zeros((0, 0)), free=free, friction=s.friction,
        mask=x.active, given=s.given,
    )  # fmt: skip
    masses = s.scale * jnp.ones(values.shape[0])
    single = masses * jnp.maximum(jnp.abs(free), size)
    normal = jnp.where(x.active, problem.contacts(single)[:, 0], 0.0)
    parts = [normal, problem.bilateral(single), s.dt * jnp.abs(x.smooth.lam)]
    largest = jnp.max(jnp.concatenate(parts))
    residual = relative_residual(problem, x.impulses, values, masses, (largest, largest))
    return residual, worst_contact(problem, x.impulses, (values, masses))


def jump_of(step: Step, s: Prediction, x: Answer) -> Jump:
    """The jump of a step, with rates and certificate."""
    scheme, system = step.scheme, step.system
    none = no_jump(system)
    iterations = jnp.sum(x.solves)

    def look(_: None) -> Jump:
        rates, free = x.rows.rate(x.smooth.v + x.w), x.rows.rate(x.smooth.v) + s.restitution
        values, size = rates + s.restitution, x.rows.rate_size(x.smooth.v + x.w)
        residual, worst = _certificate(system, s, x, values, free, size)
        groups = row_groups(system)
        before = gap_rates(step.start) if system.nc else none.before
        after = groups.normals(rates)
        return Jump(
            dv=x.w, contacts=groups.impulses(x.impulses, s.given, x.active),
            constraints=groups.bilateral(x.impulses), before=jnp.where(x.active, before, 0.0),
            after=jnp.where(x.active, after, 0.0), iterations=iterations, residual=residual,
            worst=jnp.where(residual > scheme.coef.relative_tolerance, worst, none.worst),
        )  # fmt: skip

    def fly(_: None) -> Jump:
        return dataclasses.replace(none, dv=x.w, iterations=iterations)

    # in flight nothing is to be certified, and a step pays no residual
    if system.nb:
        return look(None)
    return branch(jnp.any(x.active), look, fly, None) if system.nc else fly(None)


@renamed_fields
@record()
class NsgaCoefficients:
    """Numbers of the family; see `nsga_decoupled`."""

    rho_inf: Array | float
    relative_tolerance: Array | float
    force_tolerance: Array | float
    mass_scale: Array | float | None = None

    def parameters(self) -> tuple[Any, Any, Any, Any]:
        """``alpha_m, alpha_f, beta, gamma``, [C after (35)]."""
        return chung_hulbert(self.rho_inf)


@record()
class NsgaMemory:
    """Memory of the family between steps.

    Args:
        a, acceleration: (nv,) algorithmic and smooth acceleration.
        algorithmic_force, force: (nb,) the bilateral forces that belong to them [N]; contact forces precede
            them if contacts act on accelerations.
        scale: () characteristic mass [kg].
        tangential: (nc, nt) impulses of the last step without an impact, at contacts still closed.
        touch: memory of contacts for events.
        solves: (3,) largest numbers of linear solves of a step so far: smooth motion, position,
            velocity; of all together in the first entry for the coupled scheme.
        tangents: tangents of the subproblems, or of all together, if they are kept from step to step.
    """

    a: Array
    acceleration: Array
    algorithmic_force: Array
    force: Array
    scale: Array
    tangential: Array
    touch: Touch
    solves: Array
    tangents: Any = ()


def nsga_one_step(coef: NsgaCoefficients, memory: NsgaMemory) -> tuple[NsgaCoefficients, NsgaMemory]:
    """`nsjax.core.scheme.Traits.one_step`, see `nsjax.schemes.mixed.generalized_alpha.trapezoidal`."""
    memory = dataclasses.replace(memory, a=memory.acceleration, algorithmic_force=memory.force)
    return dataclasses.replace(coef, rho_inf=1.0), memory


def nsga_prepare(scheme: Scheme, system: System, params: PyTree, dt: Array) -> PyTree:
    """Linearised subproblems, factored once for the run, of models with a constant structure; else none."""
    if not system.structure.constant or scheme.options.iteration is not None:
        return ()
    zero = jnp.zeros(system.nv)
    memory = _first_memory(scheme, system, zero, jnp.zeros(system.nb), jnp.ones(()))
    state = State(t=jnp.zeros(()), q=jnp.zeros(system.nq), v=zero)
    s = _predicted(_step(scheme, system, params, Carry(state=state, memory=memory), dt))
    levels, data = levels_of(system, scheme.options), data_of(scheme.options, system, s)
    none = [jnp.zeros(level.rows) for level in levels]
    return tuple(
        tangent(level, d, zero, x, x).linear for level, d, x in zip(levels, data, none, strict=True)
    )


def _step(scheme: Scheme, system: System, params: PyTree, carry: Carry, dt: Array) -> Step:
    """A `Step` without constants."""
    state = dataclasses.replace(carry.state, t=jnp.asarray(carry.state.t))
    carry = dataclasses.replace(carry, state=state)
    return Step(scheme=scheme, system=system, params=params, constants=(), carry=carry, dt=dt)


def _first_memory(scheme: Scheme, system: System, a: Array, force: Array, scale: Array) -> NsgaMemory:
    """Memory at the start of a run, from the smooth acceleration and its bilateral forces."""
    force = jnp.concatenate([jnp.zeros(levels_of(system, scheme.options)[0].contacts), force])
    return NsgaMemory(
        a=a, acceleration=a, algorithmic_force=force, force=force, scale=scale,
        tangential=jnp.zeros((system.nc, system.nt)), touch=events.no_touch(system),
        solves=jnp.zeros(3, int),
    )  # fmt: skip


def nsga_init(scheme: Scheme, system: System, params: PyTree, constants: PyTree, state: State) -> Carry:
    """Carry at the start of a run, with the accelerations that the constraints allow without contact
    forces, by ``[M, G'; G, 0]``, or those of the chosen smooth motion.
    """
    t, q, v = jnp.asarray(state.t), state.q, state.v
    smooth = scheme.options.smooth
    if smooth == "full" and system.nt:
        raise InputError(
            f"{scheme.name}: smooth = 'full' works without friction only, {system.name} has nt = "
            f"{system.nt}: Coulomb's law acts on velocity level; use smooth = 'constrained'"
        )
    if smooth in ("free", "zero") and system.nh:
        raise InputError(
            f"{scheme.name}: smooth = {smooth!r} leaves constraints to corrections of the position, and "
            f"{system.name} has nh = {system.nh} without position level (wheels that roll); use smooth = "
            "'constrained'"
        )
    n, nb = system.nv, 0 if smooth in ("free", "zero") else system.nb
    scale = scheme.coef.mass_scale
    if scale is None:
        # momentum per velocity, with all velocities equal to one: the mass of a body that moves as a whole
        scale = lax.stop_gradient(jnp.sum(momentum(system, q, jnp.ones(n), params)) / n)
    scale = jnp.asarray(scale, float)
    wt, drift = jnp.zeros((0, n)), jnp.zeros(0)
    if nb:
        wt = gap_rows(system, "constraint", t, q, params).jacobian()
        drift = gap_drift(system, t, q, v, params, "constraint")
    masses, bilateral = jnp.full(nb, scale), np.ones(nb, bool)
    linear = linearised(
        system.structure, lambda w: momentum(system, q, w, params), jnp.zeros(n), (wt.T, wt),
        (masses, bilateral),
    )  # fmt: skip
    added = bilateral & system.structure.dense
    known = Tangent(linear=linear, law=jnp.eye(nb), k=masses, p=masses, added=added)
    if smooth == "zero":
        a, x = jnp.zeros(n), jnp.zeros(0)
    else:
        a, x = correction(known, -system.force(t, q, v, params), scale * drift)
    touch = events.no_touch(system)
    step = _step(scheme, system, params, Carry(state=state), jnp.ones(()))
    if system.nc:
        touch = touch_at_start(step, 0.0)
    # the force is the augmented multiplier k x - p G a, with G a = -drift
    lam = scale * (x + drift)  # none without forces of the smooth motion
    lam = lam if lam.shape[0] == system.nb else jnp.zeros(system.nb)
    memory = _first_memory(scheme, system, a, lam, scale)
    memory = dataclasses.replace(memory, touch=touch)
    s = _predicted(dataclasses.replace(step, carry=Carry(state=step.state, memory=memory)))
    tangents = blank_tangents(scheme.options, criteria_of(scheme), system, s)
    return Carry(state=state, memory=dataclasses.replace(memory, tangents=tangents))


def _held_forces(step: Step) -> Array | None:
    """`Prediction.held`, by the filter of the accelerations applied to the forces of contacts."""
    scheme, system, memory, dt = step.scheme, step.system, step.carry.memory, step.dt
    count = levels_of(system, scheme.options)[0].contacts
    if not count:
        return None
    _, _, beta, gamma = scheme.coef.parameters()
    old = memory.algorithmic_force[:count]
    new = _filtered(scheme, memory.force[:count], old, 0.0)
    return jnp.stack([dt * dt * ((0.5 - beta) * old + beta * new), dt * ((1 - gamma) * old + gamma * new)])


def _filtered(scheme: Scheme, true: Array, old: Array, new: Array | float) -> Array:
    """The algorithmic value at the end: ``true`` and ``old`` at the start, ``new`` at the end."""
    alpha_m, alpha_f, _, _ = scheme.coef.parameters()
    return (alpha_f * true - alpha_m * old) / (1 - alpha_m) + (1 - alpha_f) / (1 - alpha_m) * new


def _predicted(step: Step) -> Prediction:
    """The `Prediction` of a step."""
    scheme, system, params, dt = step.scheme, step.system, step.params, step.dt
    state, memory = step.state, step.carry.memory
    # Newmark's formulas with the accelerations that are known; the new one enters by ``c1`` and ``c2``
    alpha_m, alpha_f, beta, gamma = scheme.coef.parameters()
    t, v, old = jnp.asarray(state.t), state.v, memory.a
    a = _filtered(scheme, memory.acceleration, old, 0.0)
    law, groups = step.start.law() if system.nc else ContactLaw(), row_groups(system)
    restitution = jnp.zeros(groups.count)
    if system.nc:
        restitution = law.rebound(groups, row_rates(system, t, state.q, v, params))
    return Prediction(
        params=params, dt=dt, t=t + dt, q=state.q, xi=dt * v + dt * dt * ((0.5 - beta) * old + beta * a),
        v=v + dt * ((1 - gamma) * old + gamma * a), c1=(1 - alpha_m) / ((1 - alpha_f) * gamma * dt),
        c2=dt * beta / gamma, scale=memory.scale,
        creep=levels_of(system, scheme.options)[1].share * dt * memory.tangential, restitution=restitution,
        friction=law.friction_of(system.nc), given=law.given(dt), held=_held_forces(step),
    )  # fmt: skip


@record()
class _StepRest:
    """Results of a step other than its velocity jump.

    Args:
        a, acceleration: algorithmic and true acceleration.
        algorithmic_force, force: the forces that belong to them, see `NsgaMemory`.
        lam: bilateral forces of the step.
        impulse: time integral of the bilateral forces of the smooth motion.
        free: position to which the smooth motion leads.
        active: contacts that act.
        solves, solved: number of linear solutions, and whether the iterations ended.
        tangents: tangents for the next step.
    """

    a: Array
    acceleration: Array
    algorithmic_force: Array
    force: Array
    lam: Array
    impulse: Array
    free: Array
    active: Array
    solves: Array
    solved: Array
    tangents: Any


def _respond(step: Step) -> Stepped:
    """The whole step, by its three subproblems."""
    scheme, system, dt, memory = step.scheme, step.system, step.dt, step.carry.memory
    coef, s = scheme.coef, _predicted(step)
    tolerances = IterationBounds(
        relative=coef.relative_tolerance, force=coef.force_tolerance, scale=1.0 + jnp.max(jnp.abs(s.v)),
        max_iterations=scheme.options.max_iterations,
    )  # fmt: skip
    if scheme.options.iteration is None:
        x = decoupled(scheme.options, system, s, tolerances, step.constants, memory.tangents)
    else:
        x = coupled(scheme.options, criteria_of(scheme), system, s, tolerances, memory.tangents)
    jump = jump_of(step, s, x)
    true, old, lam = x.smooth.lam, memory.algorithmic_force, x.smooth.lam
    if x.smooth.push is not None:
        true = jnp.concatenate([x.smooth.push, true])
    # the filter of the accelerations, applied to the forces that cause them
    force = _filtered(scheme, memory.force, old, true)
    bilateral, gamma = slice(len(true) - system.nb, None), coef.parameters()[3]
    impulse = dt * ((1 - gamma) * old + gamma * force)[bilateral]
    if scheme.options.smooth in ("free", "zero"):
        lam = jump.constraints / dt
    more = _StepRest(
        a=_filtered(scheme, memory.acceleration, memory.a, x.smooth.a), acceleration=x.smooth.a,
        algorithmic_force=force, force=true, lam=lam, impulse=impulse, free=x.smooth.q, active=x.active,
        solves=x.solves, solved=x.solved, tangents=x.tangents,
    )  # fmt: skip
    q, v = x.q, x.smooth.v + x.w
    if without_responses(system) and scheme.gradient != "discrete":
        q, v = without_derivative((q, v), NO_RESPONSES)
    end = State(t=s.t, q=q, v=v)
    return Stepped(end=end, jump=jump, estimate=jnp.zeros(()), more=more)


def _ahead(step: Step) -> State:
    """State at which contacts are looked at for the derivative: the predicted end of the step."""
    system, state, dt = step.system, step.state, step.dt
    return State(t=state.t + dt, q=system.retract(state.q, dt * state.v), v=state.v)


def _listed(step: Step, r: Stepped, report: ContactReport, pushed: Array) -> ContactReport:
    """The report with impacts and memory by the contacts that have acted. Closed contacts do not chatter in
    this family: every contact that comes back from a flight is an impact, however slow. Contacts in
    ``pushed`` get a note.
    """
    criteria, state, touch = criteria_of(step.scheme), step.state, step.carry.memory.touch
    x: _StepRest = events.frozen(r.more)
    before = events.frozen(r.jump.before)
    comes = (before < 0.0) & ~events.at_rest(criteria, before, events.frozen(state.v))
    contacts, friction = events.frozen((r.jump.contacts, step.start.friction()))
    load = x.active & (contacts[:, 0] > 0.0)
    impact = load & comes & (touch.off >= criteria.hop)
    off = jnp.where(x.active, 0, touch.off + 1)
    # a loaded contact may be open where the step looks ahead
    stuck = jnp.where(load, sticking(contacts, friction), report.touch.stuck)
    return dataclasses.replace(
        report, impact=impact, touch=dataclasses.replace(report.touch, off=off, stuck=stuck),
        notes=report.notes | jnp.where(pushed, gradient_notes.COUPLED, 0),
    )  # fmt: skip


def _stopped(step: Step, stuck: Array) -> Array:
    """Contacts (nc,) bool that slide at the start of a step and are ``stuck`` after it."""
    if not step.system.nt:
        return stuck
    new, criteria = stuck & ~step.carry.memory.touch.stuck, criteria_of(step.scheme)
    slid = lambda _: new & sliding(criteria, *events.frozen((step.start.slip(), step.state.v)))  # noqa: E731
    return branch(jnp.any(new), slid, lambda _: new, None)


def nsga_step(
    scheme: Scheme, system: System, params: PyTree, constants: PyTree, carry: Carry, dt: Array
) -> tuple[Carry, Output]:
    """One step, with the derivative of the motion around it; see `nsjax.contact.jump`."""
    step = dataclasses.replace(_step(scheme, system, params, carry, dt), constants=constants)
    memory: NsgaMemory = carry.memory
    at = step.at(_ahead(step))
    if system.nc:
        r, report = _through_events(step, at)
    else:
        r, report = _respond(step), no_report(memory.touch)
    more: _StepRest = r.more
    gap = step.at(r.end).gap()
    bits = step_status(at, r.end, gap, more.solved, r.jump.residual)
    output = impulse_output(r, contact_event(gap, more.active, report, r.jump), report.notes, dt, bits)
    output = dataclasses.replace(
        output, constraint_force=more.lam, constraint_impulse=more.impulse + r.jump.constraints
    )
    # tangential impulses of a step with an impact are no lasting forces, not even at other contacts; nor
    # are those that stop a sliding contact
    last = jnp.where(jnp.any(report.impact), memory.tangential, r.jump.contacts[:, 1:])
    last = jnp.where(_stopped(step, report.touch.stuck)[:, None], 0.0, last)
    memory = NsgaMemory(
        a=more.a, acceleration=more.acceleration, algorithmic_force=more.algorithmic_force,
        force=more.force, scale=memory.scale,
        tangential=jnp.where(more.active[:, None], last, 0.0), touch=report.touch,
        solves=jnp.maximum(memory.solves, more.solves), tangents=more.tangents,
    )  # fmt: skip
    return Carry(state=r.end, memory=memory), output


def _through_events(step: Step, at: SystemState) -> tuple[Stepped, ContactReport]:
    """A step with contacts, which are tested at the predicted state ``at``, and the report on them."""
    wanted = derivatives(step.scheme)
    if without_responses(step.system):
        wanted = wanted | {"derivative": False}
    family = Family(predict=_ahead, held=held_or_acting, corrects=True, turns=True, ahead=1.0, **wanted)

    def respond(step: Step, _: Contacts) -> tuple[Stepped, None]:
        return _respond(step), None

    # contacts (nc,) that may be closed at the end of the step, see `Criteria.early`
    rates, gap = gap_rates(at), at.gap()
    limit = criteria_of(step.scheme).early * step.dt * jnp.abs(rates)
    closing = touching(step.system, at.t, at.q, step.params, gap, limit)
    contacts = Contacts(touch=step.carry.memory.touch, active=closing)
    r, report = through_events(respond, family, step, contacts)
    # loaded contacts (nc,) that the motion without impulses leaves open: the impact of another contact has
    # closed them. Their law refers to velocities from before that impact, and the step shares one impulse
    # where the motion has two impacts
    load = events.frozen(r.more.active & (r.jump.contacts[:, 0] > 0.0))
    unseen = load & ~closing & ~step.carry.memory.touch.held
    q = at.q if step.scheme.options.smooth == "zero" else r.more.free
    there = events.frozen(at.moved(t=r.end.t, q=q))
    open_ = lambda unseen: unseen & (there.gap() > 0.0)  # noqa: E731
    pushed = branch(jnp.any(unseen) & jnp.any(report.impact), open_, jnp.zeros_like, unseen)
    return r, _listed(step, r, report, pushed)
