"""The base step of the mixed framework: what a base scheme gets, uses and returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from nsjax.contact import ContactProblem, solve
from nsjax.contact.stage import StageSettings, solve_stage
from nsjax.core.operators import Rows, all_rows
from nsjax.core.scheme import Scheme
from nsjax.core.system import State, System
from nsjax.schemes.stages import Maps, StageEquations
from nsjax.types import Array, PyTree, record


@record()
class Memory:
    """What mixed schemes remember: true and algorithmic acceleration, closed and resting contacts."""

    a: Array
    algorithmic: Array
    closed: Array
    resting: Array


@record()
class BaseEnd:
    """What a base scheme returns: end of the step before an impact, accelerations, row forces [N].

    ``free`` is the velocity without row forces for schemes that drop them in a step with an impulse;
    None keeps them.
    """

    q: Array
    v: Array
    a: Array
    algorithmic: Array
    force: Array
    free: Array | None = None


@record()
class End:
    """End of a base step: position, velocity before an impact, accelerations, impulses over ``dt``."""

    q: Array
    v: Array
    a: Array
    algorithmic: Array
    contacts: Array
    constraints: Array
    iterations: Array
    residual: Array
    solved: Array
    free: Array | None = None


class Runner:
    """What a base scheme may use in a step: the model, and the solves that belong to it.

    Calling it with `Maps` solves one group of implicit stages. `rows_at` and `velocity_level` serve
    base schemes without a Newton iteration.
    """

    def __init__(
        self, scheme: Scheme, system: System, params: PyTree, state: State, closed: Array, contacts: bool
    ) -> None:
        self.scheme, self.system, self.params, self.contacts = scheme, system, params, contacts
        self.closed = closed if contacts else jnp.zeros(0, bool)
        self.scale = 1.0 + jnp.max(jnp.abs(state.v))
        self.has_rows = bool(system.nb) or contacts
        self.residuals: list[Array] = [jnp.zeros(())]
        self.estimates: list[Array] = [jnp.zeros(())]
        self.iterations: Array = jnp.asarray(0, int)

    def __call__(self, maps: Maps) -> tuple[list[tuple[Array, Array, Array, Array]], list[Array]]:
        """``(t, q, v, a)`` and the row impulses (contacts, then constraints) of every stage."""
        tolerances, options = self.scheme.coef.tolerances, self.scheme.options
        stages = maps.v.shape[0]
        equations = StageEquations(self.system, stages, self.contacts, options.constraint_form)
        settings = StageSettings(
            tolerance=tolerances.stage, contact_tolerance=tolerances.contact, scale=self.scale
        )
        answer = solve_stage(
            equations, (self.params, maps), jnp.zeros(equations.unknowns),
            jnp.concatenate([self.closed] * stages), settings,
            max_passes=options.max_passes, max_iterations=options.max_iterations,
        )  # fmt: skip
        self.residuals.append(answer.residual)
        self.estimates.append(answer.estimate)
        self.iterations = self.iterations + answer.iterations
        return maps.at(self.system, answer.z), equations.split(answer.impulses)

    def rows_at(self, t: Array, q: Array) -> Rows:
        """Rows of the contacts (if any can act in this branch) and constraints."""
        return all_rows(self.system, t, q, self.params, self.contacts)

    def velocity_level(self, delassus: Array, free: Array) -> Array:
        """Impulses for which the row velocities ``free + delassus x`` fulfil the laws without
        restitution.
        """
        nc = self.system.nc if self.contacts else 0
        friction = self.system.law(self.params).friction_of(nc) if nc else jnp.zeros(0)  # type: ignore[misc]
        problem = ContactProblem(
            nc=nc, nt=self.system.nt, nb=self.system.nb, delassus=delassus, free=free,
            friction=friction, mask=self.closed,
        )  # fmt: skip
        answer = solve(
            problem,
            tolerance=self.scheme.coef.tolerances.contact,
            max_iterations=self.scheme.options.max_iterations,
        )
        self.residuals.append(answer.residual)
        self.iterations = self.iterations + answer.iterations
        return answer.x


def split_force(system: System, force: Array, contacts: bool) -> tuple[Array, Array]:
    """Row forces as (nc, 1 + nt) of the contacts, zero where they have no rows, and (nb,)."""
    d = system.nc * (1 + system.nt) if contacts else 0
    shape = system.nc, 1 + system.nt
    return (force[:d].reshape(shape) if contacts else jnp.zeros(shape)), force[d:]


def on_contacts(system: System, closed: Array, f: Callable[[bool], Any]) -> Any:
    """``f(contacts)``: with contact rows where any contact is closed, else without."""
    if not system.nc:
        return f(False)
    return lax.cond(jnp.any(closed), lambda _: f(True), lambda _: f(False), None)


def base_step(
    scheme: Scheme, system: System, params: PyTree, state: State, memory: Memory, dt: Array, contacts: bool
) -> End:
    """The base scheme's step before an impulse, with or without contact rows."""
    run = Runner(scheme, system, params, state, memory.closed, contacts)
    base: BaseEnd = scheme.options.base(scheme.coef, state, memory, dt, run)
    residual, estimate = jnp.max(jnp.stack(run.residuals)), jnp.max(jnp.stack(run.estimates))
    tolerances = scheme.coef.tolerances
    force, constraints = split_force(system, base.force, contacts)
    return End(
        q=base.q,
        v=base.v,
        a=base.a,
        algorithmic=base.algorithmic,
        contacts=force,
        constraints=constraints,
        iterations=run.iterations,
        residual=residual,
        solved=(residual <= tolerances.contact) & (estimate <= tolerances.stage),
        free=base.free,
    )
