"""The base step of the mixed framework, and that after contacts have changed stiff motion."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.core.branches import branch
from nsjax.core.operators import momentum
from nsjax.core.step import Step
from nsjax.core.system import State
from nsjax.schemes.mixed.base_step import BaseEnd, ConstantParts, End, Memory, end_by, split_rows
from nsjax.schemes.mixed.stages import single
from nsjax.types import Array


def base_step(step: Step, contacts: bool) -> End:
    """The step before an impulse, with or without contact rows: that of the base scheme, or the implicit
    Euler rule where contacts have changed motion that is too fast for the step.

    The rule adds no energy to motion with a convex potential and dampers, whatever its velocities::

        E_{i+1} - E_i <= -dv M dv / 2 - dt v_{i+1} D v_{i+1} + P W' v_{i+1}

    Unilateral contacts do no work at the velocity of the end, and friction takes energy. One such step has
    an error of order two, no more than the impact before it. Source of the idea: Rannacher's start of
    parabolic equations (1984), and Marti and Lin's steps after switches in circuits (1989).
    """
    scheme = step.scheme
    end = end_by(step, contacts, scheme.options.base, step.carry.memory.tangents[contacts])
    if not (contacts and step.system.stiff and scheme.options.implicit):
        return end

    def anew(_: None) -> End:
        inertia_alone = ConstantParts(inertia=step.constants.inertia) if step.constants else step.constants
        found = end_by(dataclasses.replace(step, constants=inertia_alone), True, _implicit_euler)
        return dataclasses.replace(
            found, iterations=end.iterations + found.iterations, tangents=end.tangents
        )

    found: End = branch(_unresolved(step, end), anew, lambda _: end, None)
    return found


def _implicit_euler(coef: Any, state: State, memory: Memory, dt: Array, run: Any) -> BaseEnd:
    """``q_{i+1} = q_i + dt v_{i+1}``, ``M (v_{i+1} - v_i) = dt h_{i+1} + W P``. No memory is read."""
    v, rest = state.v, jnp.zeros_like(state.v)
    maps = single(
        anchor=state.q, xi=dt * v, v=v, a=rest, cq=dt, ca=1 / dt, t=jnp.asarray(state.t) + dt, dt=dt
    )
    ((_, q, v, a),), (impulses,) = run(maps)
    return BaseEnd(q=q, v=v, a=a, algorithmic=a, force=impulses / dt, impulse=impulses)


def _unresolved(step: Step, end: End) -> Array:
    """Whether () bool contacts have changed motion that is too fast for the step.

    Contacts change velocities at once where they are new, leave, or push what moves apart. If then
    ``dt d D d + dt^2 d K d > d M d`` (``omega dt`` above one, or decay within a step) for the change ``d``
    of the velocity in the step, or for the acceleration at its start, weights of a scheme do what
    forces do not: the acceleration ``-D dv / M`` after an impact moves bodies far over their aim, and the
    contact force of the start does work on a contact that leaves. In slower motion both are errors of the
    order of the scheme.
    """
    system, memory, state, dt = step.system, step.carry.memory, step.state, step.dt
    before, pushed, after = (split_rows(system, x)[0] > 0.0 for x in (memory.force, end.impulse, end.force))
    changes = (before & ~after) | (pushed & ~memory.resting)

    def too_fast(d: Array) -> Array:
        def force(s: Array) -> Array:
            q = system.retract(state.q, s * dt * d)
            found: Array = system.force(jnp.asarray(state.t), q, state.v + s * d, step.params)
            return found

        push = jax.jvp(force, (jnp.zeros(()),), (jnp.ones(()),))[1]
        return -dt * jnp.sum(d * push) > jnp.sum(d * momentum(system, state.q, d, step.params))

    def fast(_: None) -> Array:
        ways = jax.lax.stop_gradient(jnp.stack([end.v - state.v, dt * memory.a]))
        return jnp.any(jax.vmap(too_fast)(ways))

    suspect = memory.stale | jnp.any(memory.closed & changes)
    return branch(suspect, fast, lambda _: jnp.asarray(False), None)
