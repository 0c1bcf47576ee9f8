"""One step of the nonsmooth generalized-alpha family; see `nsjax.schemes.nsga`."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax import notes
from nsjax.contact import ContactProblem, Jump, events, no_jump, worst_contact
from nsjax.contact.certificate import relative_residual
from nsjax.contact.criteria import criteria_of
from nsjax.contact.events import Formed, Touch, gap_rates
from nsjax.contact.sensitivity import Family, Stepped, Told, nothing_told, through_events
from nsjax.core.branches import branch
from nsjax.core.errors import InputError
from nsjax.core.inertia import NO_RESPONSES
from nsjax.core.operators import gap_drift, gap_rows, momentum, row_rates, touching
from nsjax.core.scheme import Carry, Output, Scheme
from nsjax.core.system import State, System, is_local
from nsjax.linalg import magnitude, matvec
from nsjax.nonlinear import without_derivative
from nsjax.schemes.at_events import derivatives, held_or_acting, touch_at_start
from nsjax.schemes.books import impulse_output
from nsjax.schemes.nsga.linear import Tangent, correction, linearised
from nsjax.schemes.nsga.newton import Tolerances, tangent
from nsjax.schemes.nsga.solve import Answer, blank_tangents, coupled, data_of, decoupled, levels_of
from nsjax.schemes.nsga.states import Step
from nsjax.schemes.parameters import chung_hulbert
from nsjax.types import Array, PyTree, record


@record()
class Coefficients:
    """Numbers of the family; see `nsga_decoupled`."""

    rho_inf: Array | float
    tolerance: Array | float
    force_tolerance: Array | float
    mass_scale: Array | float | None = None

    def parameters(self) -> tuple[Any, Any, Any, Any]:
        """``alpha_m, alpha_f, beta, gamma``, [C after (35)]."""
        return chung_hulbert(self.rho_inf)


@record()
class Memory:
    """What the family remembers.

    Args:
        a, acceleration: (nv,) algorithmic and smooth acceleration.
        algorithmic_force, force: (nb,) the bilateral forces that belong to them [N]; with those of contacts
            before them where these act on accelerations.
        scale: () characteristic mass [kg].
        tangential: (nc, nt) impulses of the last step without an impact, at contacts still closed.
        touch: what is remembered of contacts for events.
        solves: (3,) largest numbers of linear solves of a step so far: smooth motion, position,
            velocity; of all together in the first entry for the coupled scheme.
        tangents: of the subproblems, or of all together, where they are kept from step to step.
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


def nsga_prepare(scheme: Scheme, system: System, params: PyTree, dt: Array) -> PyTree:
    """Linearised subproblems of models that promise constant ones, factored once for the run."""
    if not system.structure.constant or scheme.options.iteration is not None:
        return ()
    zero = jnp.zeros(system.nv)
    memory = _first_memory(scheme, system, zero, jnp.zeros(system.nb), jnp.ones(()))
    state = State(t=jnp.zeros(()), q=jnp.zeros(system.nq), v=zero)
    s = _predicted(scheme, system, params, state, memory, dt)
    levels, data = levels_of(system, scheme.options), data_of(scheme.options, system, s)
    none = [jnp.zeros(level.rows) for level in levels]
    return tuple(
        tangent(level, d, zero, x, x).linear for level, d, x in zip(levels, data, none, strict=True)
    )


def _first_memory(scheme: Scheme, system: System, a: Array, force: Array, scale: Array) -> Memory:
    """At the start of a run, from the smooth acceleration and its bilateral forces."""
    force = jnp.concatenate([jnp.zeros(levels_of(system, scheme.options)[0].contacts), force])
    return Memory(
        a=a, acceleration=a, algorithmic_force=force, force=force, scale=scale,
        tangential=jnp.zeros((system.nc, system.nt)), touch=events.no_touch(system),
        solves=jnp.zeros(3, int),
    )  # fmt: skip


def nsga_init(scheme: Scheme, system: System, params: PyTree, constants: PyTree, state: State) -> Carry:
    """Accelerations that the constraints allow, without contact forces: ``[M, G'; G, 0]``; or those that
    the smooth motion has instead.
    """
    t, q, v = jnp.asarray(state.t), state.q, state.v
    smooth = scheme.options.smooth
    if smooth == "full" and system.nt:
        raise InputError(
            f"{scheme.name}: smooth = 'full' takes contacts without friction, {system.name} has nt = "
            f"{system.nt}: Coulomb's law acts on velocity level; use smooth = 'constrained'"
        )
    n, nb = system.nv, 0 if smooth in ("free", "zero") else system.nb
    scale = scheme.coef.mass_scale
    if scale is None:
        # per velocity, where all are equal to one: the mass of a body that moves as a whole
        scale = lax.stop_gradient(jnp.sum(momentum(system, q, jnp.ones(n), params)) / n)
    scale = jnp.asarray(scale, float)
    wt, drift = jnp.zeros((0, n)), jnp.zeros(0)
    if nb:
        wt = gap_rows(system, "constraint", nb, t, q, params).wt
        drift = gap_drift(system, t, q, v, params, "constraint")
    masses, bilateral = jnp.full(nb, scale), np.ones(nb, bool)
    linear = linearised(
        system.structure,
        lambda w: momentum(system, q, w, params),
        jnp.zeros(n),
        wt.T,
        wt,
        masses,
        bilateral,
    )
    added = bilateral & system.structure.dense
    known = Tangent(linear=linear, law=jnp.eye(nb), k=masses, p=masses, added=added)
    if smooth == "zero":
        a, x = jnp.zeros(n), jnp.zeros(0)
    else:
        a, x = correction(known, -system.force(t, q, v, params), scale * drift)
    touch = events.no_touch(system)
    if system.nc:
        touch = touch_at_start(scheme, system, params, state, 0.0)
    # what acts is the augmented multiplier k x - p G a, and G a = -drift
    memory = _first_memory(scheme, system, a, _padded(system, scale * (x + drift)), scale)
    memory = dataclasses.replace(memory, touch=touch)
    s = _predicted(scheme, system, params, State(t=t, q=q, v=v), memory, jnp.ones(()))
    tangents = blank_tangents(scheme.options, criteria_of(scheme), system, s)
    return Carry(state=state, memory=dataclasses.replace(memory, tangents=tangents))


def _padded(system: System, x: Array) -> Array:
    """Bilateral forces (nb,) of a smooth motion that may be without."""
    return x if x.shape[0] == system.nb else jnp.zeros(system.nb)


def _held(scheme: Scheme, system: System, memory: Memory, dt: Array) -> Array | None:
    """`Step.held`: the filter of the accelerations, run on the forces of contacts."""
    count = levels_of(system, scheme.options)[0].contacts
    if not count:
        return None
    _, _, beta, gamma = scheme.coef.parameters()
    old = memory.algorithmic_force[:count]
    new = _filtered(scheme, memory.force[:count], old, 0.0)
    return jnp.stack([dt * dt * ((0.5 - beta) * old + beta * new), dt * ((1 - gamma) * old + gamma * new)])


def _filtered(scheme: Scheme, true: Array, old: Array, new: Array | float) -> Array:
    """The algorithmic value after a step, from the true one and it before, and the true one after."""
    alpha_m, alpha_f, _, _ = scheme.coef.parameters()
    return (alpha_f * true - alpha_m * old) / (1 - alpha_m) + (1 - alpha_f) / (1 - alpha_m) * new


def _predicted(
    scheme: Scheme, system: System, params: PyTree, state: State, memory: Memory, dt: Array
) -> Step:
    """Everything known before the solves."""
    alpha_m, alpha_f, beta, gamma = scheme.coef.parameters()
    t, v, old = jnp.asarray(state.t), state.v, memory.a
    a = _filtered(scheme, memory.acceleration, old, 0.0)
    restitution, friction, given = jnp.zeros(system.nb), jnp.zeros(0), None
    if system.nc:
        law = system.law(params)
        e = jnp.concatenate([law.row_restitution(system.nc, system.nt), restitution])
        restitution = e * row_rates(system, t, state.q, v, params)
        friction, given = law.friction_of(system.nc), law.given(system.nc, dt)
    return Step(
        params=params,
        dt=dt,
        t=t + dt,
        q=state.q,
        xi=dt * v + dt * dt * ((0.5 - beta) * old + beta * a),
        v=v + dt * ((1 - gamma) * old + gamma * a),
        c1=(1 - alpha_m) / ((1 - alpha_f) * gamma * dt),
        c2=dt * beta / gamma,
        scale=memory.scale,
        creep=levels_of(system, scheme.options)[1].share * dt * memory.tangential,
        restitution=restitution,
        friction=friction,
        given=given,
        held=_held(scheme, system, memory, dt),
    )


def _certificate(
    system: System, s: Step, x: Answer, values: Array, free: Array, size: Array
) -> tuple[Array, Array]:
    """Natural-map residual of all laws, relative to the largest impulse that single rows would need with
    the characteristic mass, and the contact that fulfils its law worst.

    Args:
        values, free: (rows,) what the laws ask to vanish, with and without the jump.
        size: (rows,) sums of the magnitudes of their terms.
    """
    problem = ContactProblem(
        nc=system.nc, nt=system.nt, nb=system.nb, delassus=jnp.zeros((0, 0)), free=free,
        friction=s.friction, mask=x.active, given=s.given,
    )  # fmt: skip
    masses = s.scale * jnp.ones(values.shape[0])
    single = masses * jnp.maximum(jnp.abs(free), size)
    normal = jnp.where(x.active, problem.contacts(single)[:, 0], 0.0)
    parts = [normal, problem.bilateral(single), s.dt * jnp.abs(x.smooth.lam)]
    largest = jnp.max(jnp.concatenate(parts))
    residual = relative_residual(problem, x.impulses, values, masses, (largest, largest))
    return residual, worst_contact(problem, x.impulses, (values, masses))


def _books(scheme: Scheme, system: System, s: Step, state: State, x: Answer) -> Jump:
    """The jump, with rates and certificate."""
    none = no_jump(system)
    iterations = jnp.sum(x.solves)

    def look(_: None) -> Jump:
        rates, free = x.rows.rate(x.smooth.v + x.w), x.rows.rate(x.smooth.v) + s.restitution
        values, size = rates + s.restitution, matvec(magnitude(x.rows.wt), jnp.abs(x.smooth.v + x.w))
        residual, worst = _certificate(system, s, x, values, free, size)
        d, count = 1 + system.nt, system.nc * (1 + system.nt)
        start = State(t=jnp.asarray(state.t), q=state.q, v=state.v)
        before = gap_rates(system, s.params, start) if system.nc else none.before
        after = rates[:count:d] if system.nc else none.after
        return Jump(
            dv=x.w,
            contacts=x.impulses[:count].reshape(system.nc, d),
            constraints=x.impulses[count:],
            before=jnp.where(x.active, before, 0.0),
            after=jnp.where(x.active, after, 0.0),
            iterations=iterations,
            residual=residual,
            worst=jnp.where(residual > scheme.coef.tolerance, worst, none.worst),
        )

    def fly(_: None) -> Jump:
        return dataclasses.replace(none, dv=x.w, iterations=iterations)

    if system.nb:
        return look(None)
    return branch(jnp.any(x.active), look, fly, None) if system.nc else fly(None)


@record()
class _More:
    """What a step leaves beside the jump: accelerations, the forces that belong to them (`Memory`), the
    bilateral ones ``lam`` of the step with the time integral of those of the smooth motion, the position
    ``free`` to which that leads, contacts, solves, solved, tangents.
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


def _respond(
    scheme: Scheme, system: System, params: PyTree, constants: PyTree, state: State, memory: Memory,
    dt: Array,
) -> Stepped:  # fmt: skip
    """The whole step."""
    coef = scheme.coef
    s = _predicted(scheme, system, params, state, memory, dt)
    tolerances = Tolerances(relative=coef.tolerance, force=coef.force_tolerance)
    if scheme.options.iteration is None:
        x = decoupled(scheme.options, system, s, tolerances, constants, memory.tangents)
    else:
        x = coupled(scheme.options, criteria_of(scheme), system, s, tolerances, memory.tangents)
    jump = _books(scheme, system, s, state, x)
    true, old, lam = x.smooth.lam, memory.algorithmic_force, x.smooth.lam
    if x.smooth.push is not None:
        true = jnp.concatenate([x.smooth.push, true])
    # the filter of the accelerations, run on the forces that cause them
    force = _filtered(scheme, memory.force, old, true)
    bilateral, gamma = slice(len(true) - system.nb, None), coef.parameters()[3]
    impulse = dt * ((1 - gamma) * old + gamma * force)[bilateral]
    if scheme.options.smooth in ("free", "zero"):
        lam = jump.constraints / dt
    more = _More(
        a=_filtered(scheme, memory.acceleration, memory.a, x.smooth.a), acceleration=x.smooth.a,
        algorithmic_force=force, force=true, lam=lam, impulse=impulse, free=x.smooth.q, active=x.active,
        solves=x.solves, solved=x.solved, tangents=x.tangents,
    )  # fmt: skip
    q, v = x.q, x.smooth.v + x.w
    if is_local(system) and scheme.gradient != "discrete":
        q, v = without_derivative((q, v), NO_RESPONSES)
    end = State(t=s.t, q=q, v=v)
    return Stepped(end=end, jump=jump, estimate=jnp.zeros(()), more=more)


def _ahead(system: System, state: State, dt: Array) -> State:
    """Where the contacts are looked at for the derivative: the end of the step."""
    return State(t=state.t + dt, q=system.retract(state.q, dt * state.v), v=state.v)


def _closing(scheme: Scheme, system: System, params: PyTree, state: State, dt: Array) -> Array:
    """Contacts (nc,) bool that may be closed at the end of the step, see `Criteria.early`."""
    at = _ahead(system, state, dt)
    rates = gap_rates(system, params, at)
    gap = system.gap(at.t, at.q, params)
    limit = criteria_of(scheme).early * dt * jnp.abs(rates)
    return touching(system, at.t, at.q, params, gap, limit)


def _listed(scheme: Scheme, r: Stepped, told: Told, touch: Touch, state: State, pushed: Array) -> Told:
    """The books of contacts by those that have acted: closed contacts do not chatter here, so that every
    one that comes back from a flight is an impact, however slow. Those ``pushed`` are noted.
    """
    criteria = criteria_of(scheme)
    x: _More = events.frozen(r.more)
    before = events.frozen(r.jump.before)
    comes = (before < 0.0) & ~events.at_rest(criteria, before, events.frozen(state.v))
    load = x.active & (events.frozen(r.jump.contacts)[:, 0] > 0.0)
    impact = load & comes & (touch.off >= criteria.hop)
    off = jnp.where(x.active, 0, touch.off + 1)
    return dataclasses.replace(
        told, impact=impact, touch=dataclasses.replace(told.touch, off=off),
        notes=told.notes | jnp.where(pushed, notes.COUPLED, 0),
    )  # fmt: skip


def _pushed(
    scheme: Scheme, system: System, params: PyTree, r: Stepped, told: Told, touch: Touch, closing: Array,
    at: State,
) -> Array:  # fmt: skip
    """Loaded contacts (nc,) bool that the motion without impulses leaves open: the impact of another has
    closed them. Their law refers to velocities from before that, and the step shares the impulse where the
    motion has two impacts. ``closing`` (nc,) bool are those seen ahead, ``at``.
    """
    load = events.frozen(r.more.active & (r.jump.contacts[:, 0] > 0.0))
    unseen = load & ~closing & ~touch.held
    q, t, p = events.frozen((at.q if scheme.options.smooth == "zero" else r.more.free, r.end.t, params))
    open_ = lambda unseen: unseen & (system.gap(t, q, p) > 0.0)  # noqa: E731
    return branch(jnp.any(unseen) & jnp.any(told.impact), open_, jnp.zeros_like, unseen)


def nsga_step(
    scheme: Scheme, system: System, params: PyTree, constants: PyTree, carry: Carry, dt: Array
) -> tuple[Carry, Output]:
    """One step, with the derivative of the motion around it; see `nsjax.contact.saltation`."""
    memory: Memory = carry.memory
    state = State(t=jnp.asarray(carry.state.t), q=carry.state.q, v=carry.state.v)

    def step(p: PyTree, state: State, formed: Formed | None = None) -> Stepped:
        return _respond(scheme, system, p, constants, state, memory, dt)

    criteria = criteria_of(scheme)
    if system.nc:
        family = Family(
            predict=_ahead, held=functools.partial(held_or_acting, criteria), corrects=True, turns=True,
            **(derivatives(scheme) | ({"derivative": False} if is_local(system) else {})),
        )  # fmt: skip
        closing = _closing(scheme, system, params, state, dt)
        r, told = through_events(step, family, criteria, system, params, state, memory.touch, closing, dt)
        at = _ahead(system, state, dt)
        pushed = _pushed(scheme, system, params, r, told, memory.touch, closing, at)
        told = _listed(scheme, r, told, memory.touch, state, pushed)
    else:
        r = step(params, state)
        told = nothing_told(memory.touch)
    more: _More = r.more
    gap = jnp.zeros(0) if system.gap is None else system.gap(r.end.t, r.end.q, params)
    at = _ahead(system, state, dt)
    output = impulse_output(system, params, at, r.end, gap, more.active, told, r.jump, dt, more.solved)
    output = dataclasses.replace(
        output, constraint_force=more.lam, constraint_impulse=more.impulse + r.jump.constraints
    )
    # in a step with an impact they are no forces that act on, at contacts that only feel it either
    last = jnp.where(jnp.any(told.impact), memory.tangential, r.jump.contacts[:, 1:])
    memory = Memory(
        a=more.a, acceleration=more.acceleration, algorithmic_force=more.algorithmic_force,
        force=more.force, scale=memory.scale,
        tangential=jnp.where(more.active[:, None], last, 0.0), touch=told.touch,
        solves=jnp.maximum(memory.solves, more.solves), tangents=more.tangents,
    )  # fmt: skip
    return Carry(state=r.end, memory=memory), output
