"""Work done within one step of a run, as kernels for single steps."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.inertia import inertia_at
from nsjax.core.operators import kinetic_energy, potential_energy, refreshed, row_forces, row_rates
from nsjax.core.system import System, add
from nsjax.types import Array, Fn, PyTree, record


def _non_potential(system: System, p: PyTree, t: Array, q: Array, v: Array) -> tuple[Array, Array]:
    """``f = h + grad V - grad T + d(M v)/ds`` (nv,), whose power is that of the non-potential forces,
    and ``dV/dt`` at rest.

    For vector coordinates ``f`` itself is the non-potential force: inertia terms cancel.
    """
    p = refreshed(system, t, q, p)

    def energies(xi: Array) -> Array:
        moved = system.retract(q, xi)
        return potential_energy(system, t, moved, p) - kinetic_energy(system, moved, v, p)

    def momentum(s: Array) -> Array:
        return jax.grad(lambda w: kinetic_energy(system, system.retract(q, s * v), w, p))(v)

    zero, one = jnp.zeros_like(t), jnp.ones_like(t)
    turn = jax.jvp(momentum, (zero,), (one,))[1]
    drive = jax.jvp(lambda s: potential_energy(system, s, q, p), (t,), (one,))[1]
    return system.force(t, q, v, p) + jax.grad(energies)(jnp.zeros_like(v)) + turn, drive


def force_work(
    system: System, p: PyTree, first: tuple[Array, ...], last: tuple[Array, ...], dt: Array
) -> Array:
    """Work of the force in a step: trapezoidal rule over the displacement, or of the power with rotations.

    The rule over the displacement is exact for linear forces and the trapezoidal scheme. With rotations
    ``f`` contains gyroscopic torques, which are orthogonal to their own velocity, not to the mean velocity.
    """
    (f0, drive0), (f1, drive1) = (_non_potential(system, p, *x) for x in (first, last))
    drive = 0.5 * dt * (drive0 + drive1)
    if system.retract is add:
        return drive + 0.25 * dt * jnp.sum((f0 + f1) * (first[2] + last[2]))
    return drive + 0.5 * dt * (jnp.sum(f0 * first[2]) + jnp.sum(f1 * last[2]))


def rates(system: System, p: PyTree, t: Array, q: Array, v: Array) -> tuple[Array, Array]:
    """Rates of all rows, and ``W' v``, their part without the motion of obstacles."""
    if not system.nc and not system.nb:
        return jnp.zeros(0), jnp.zeros(0)
    p = refreshed(system, t, q, p)
    full = row_rates(system, t, q, v, p)
    return full, full - row_rates(system, t, q, 0.0 * v, p)


def _response(
    system: System, t: Array, q: Array, p: PyTree, rows: Array, force: Array | float = 0.0
) -> Array:
    """``M^-1 (force + W rows)`` (nv,)."""
    push = row_forces(system, t, q, rows, p) + force
    return inertia_at(system, t, q, p, joints=False).solve(push[:, None])[:, 0]


@record()
class StepEnds:
    """States ``(t, q, v)`` at both ends of a step, and its length [s]."""

    first: tuple[Array, Array, Array]
    last: tuple[Array, Array, Array]
    dt: Array


@dataclasses.dataclass(frozen=True)
class ByColumns:
    """A kernel of steps as one of `nsjax.analysis.rows.by_rows`: of states at both ends, step, the rest."""

    kernel: Fn

    def __call__(self, system: System, p: PyTree, *row: Array) -> PyTree:
        """Work of one step."""
        t, q, v, t1, q1, v1, dt, *rest = row
        return self.kernel(system, p, StepEnds(first=(t, q, v), last=(t1, q1, v1), dt=dt), *rest)


@dataclasses.dataclass(frozen=True)
class EndStep:
    """Work in a step with time integrals of row forces and an impulse at the end: of the non-potential
    force, of the rows, of the row impulses; and the loss by the impulses.
    """

    def __call__(
        self, system: System, p: PyTree, step: StepEnds, integral: Array, jump: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Work of one step."""
        t1, q1, v1 = step.last
        left = v1
        if jump.size:
            left = v1 - _response(system, t1, q1, refreshed(system, t1, q1, p), jump)
        _, begin = rates(system, p, *step.first)
        full, end = rates(system, p, t1, q1, left)
        full_after, end_after = rates(system, p, t1, q1, v1)
        work = force_work(system, p, step.first, (t1, q1, left), step.dt)
        smooth = 0.5 * integral * (begin + end)
        return work, smooth, 0.5 * jump * (end + end_after), -0.5 * jump * (full + full_after)


@dataclasses.dataclass(frozen=True)
class CutStep:
    """Work in a step that an impact at a known time cuts into two, each as in `EndStep`: up to the impact
    and through it, and from there to the end.

    The state after the impact is that of a motion from the end of the step backwards, with the
    acceleration there, which leaves ``O(dt^2)`` in the velocity and ``O(dt^3)`` in the position.
    """

    def __call__(
        self,
        system: System,
        p: PyTree,
        step: StepEnds,
        integral: Array,
        jump: Array,
        forces: Array,
        part: Array,
    ) -> tuple[Array, Array, Array, Array]:
        """Work of one step; ``forces`` (n,) of the rows at its end, ``part`` () of it before the impact."""
        t1, q1, v1 = step.last
        back, there = (1.0 - part) * step.dt, refreshed(system, t1, q1, p)
        a = _response(system, t1, q1, there, forces, system.force(t1, q1, v1, there))
        after = t1 - back, system.retract(q1, -back * (v1 - 0.5 * back * a)), v1 - back * a
        to = StepEnds(first=step.first, last=after, dt=part * step.dt)
        on = StepEnds(first=after, last=step.last, dt=back)
        struck = EndStep()(system, p, to, part * integral, jump)
        free = EndStep()(system, p, on, (1.0 - part) * integral, 0.0 * jump)
        return jax.tree.map(jnp.add, struck, free)


@dataclasses.dataclass(frozen=True)
class WholeStep:
    """Work in a step with one impulse: of the non-potential force, of the rows; the loss by the impulse, if
    it is an impact; and the violation (as work) of the laws of impact and constraint.
    """

    midpoint: bool

    def __call__(
        self, system: System, p: PyTree, step: StepEnds, impulse: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Work of one step."""
        (t, q, v), (_, q1, v1), dt = step.first, step.last, step.dt
        xi = 0.5 * (system.difference(q, q1) if self.midpoint else dt * v)
        tm, qm = t + 0.5 * dt, system.retract(q, xi)
        (full, begin), (full_after, end) = (rates(system, p, tm, qm, w) for w in (v, v1))
        e = jnp.zeros(system.nb)
        if system.nc:
            law = system.law(refreshed(system, tm, qm, p))
            e = jnp.concatenate([law.row_restitution(system.nc, system.nt), e])
        miss = impulse * (full_after + e * full)
        tangents = np.zeros((system.nc, 1 + system.nt), bool)
        tangents[:, 1:] = True
        checked = ~np.concatenate([tangents.reshape(-1), np.zeros(system.nb, bool)])
        work = force_work(system, p, step.first, step.last, dt)
        missed = jnp.sum(jnp.where(checked, jnp.abs(miss), 0.0))
        return work, 0.5 * impulse * (begin + end), -0.5 * impulse * (full + full_after), missed
