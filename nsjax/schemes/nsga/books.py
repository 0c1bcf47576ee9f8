"""The velocity jump of a step of the nonsmooth generalized-alpha family, with rates and certificate."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp

from nsjax.contact import ContactProblem, Jump, no_jump, worst_contact
from nsjax.contact.certificate import relative_residual
from nsjax.contact.events import gap_rates
from nsjax.core.branches import branch
from nsjax.core.step import Step
from nsjax.core.system import System
from nsjax.schemes.nsga.solve import Answer
from nsjax.schemes.nsga.states import Prediction
from nsjax.types import Array


def _certificate(
    system: System, s: Prediction, x: Answer, values: Array, free: Array, size: Array
) -> tuple[Array, Array]:
    """Natural-map residual of all laws, relative to the largest impulse that single rows would need with
    the characteristic mass, and the contact that fulfils its law worst.

    Args:
        values, free: (rows,) rates in the laws, ``G v + e G(q_n) v_n``, with and without the jump.
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


def jump_of(step: Step, s: Prediction, x: Answer) -> Jump:
    """The jump of a step, with rates and certificate."""
    scheme, system = step.scheme, step.system
    none = no_jump(system)
    iterations = jnp.sum(x.solves)

    def look(_: None) -> Jump:
        rates, free = x.rows.rate(x.smooth.v + x.w), x.rows.rate(x.smooth.v) + s.restitution
        values, size = rates + s.restitution, x.rows.rate_size(x.smooth.v + x.w)
        residual, worst = _certificate(system, s, x, values, free, size)
        d, count = 1 + system.nt, system.nc * (1 + system.nt)
        before = gap_rates(step.start) if system.nc else none.before
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
