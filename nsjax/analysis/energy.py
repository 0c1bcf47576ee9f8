"""Work-energy balance of a run: the work of every source in every step, and the residual of the balance."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.analysis.rows import by_rows, check_run, impulse_steps
from nsjax.contact import ContactLaw
from nsjax.contact.bounded import bounded_as_contacts, places_of_rows, rows_of_laws
from nsjax.core.errors import InputError, check_choice
from nsjax.core.operators import kinetic_energy, potential_energy, refreshed, row_forces, row_rates
from nsjax.core.scheme import LOADS
from nsjax.core.step import inertia_at
from nsjax.core.system import System, add, row_groups
from nsjax.renamed import renamed_fields
from nsjax.trajectory import Trajectory
from nsjax.types import Array, Fn, PyTree, record

# Work done within one step of a run, as kernels for single steps.


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
    """Work of the force in a step: trapezoidal rule over the displacement, exact for linear forces, or of
    the power with rotations, whose gyroscopic torques are orthogonal to their own velocity, not to the mean
    one.
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
    """Work in a step that an impact at a known time cuts into two, each as in `EndStep`; the state after
    the impact is that of a motion back from the end with its acceleration, ``O(dt^2)`` off in the velocity.
    """

    def __call__(
        self, system: System, p: PyTree, step: StepEnds, integral: Array, jump: Array, forces: Array,
        part: Array,
    ) -> tuple[Array, Array, Array, Array]:  # fmt: skip
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
        groups, law = row_groups(system), ContactLaw()
        if system.nc:
            law = system.law(refreshed(system, tm, qm, p)).at_speed(groups.contacts(full))
        miss = impulse * (full_after + law.rebound(groups, full))
        tangents = np.zeros((system.nc, 1 + system.nt), bool)
        tangents[:, 1:] = True
        checked = ~groups.stack(tangents, np.zeros(system.nb, bool))
        work = force_work(system, p, step.first, step.last, dt)
        missed = jnp.sum(jnp.where(checked, jnp.abs(miss), 0.0))
        return work, 0.5 * impulse * (begin + end), -0.5 * impulse * (full + full_after), missed


NEEDED = (*LOADS, "impacts", "closed_time")

FORCES = ("auto", "end", "mean", "midpoint")


@renamed_fields
@record()
class EnergyBalance:
    """Energies at every row and the work done since the previous row [J], zero for row 0.

    Args:
        t (rows,): time [s].
        kinetic, potential (rows,): energies of the state.
        force (rows,): work of the non-potential part of ``h``, plus the gain of a potential that depends
            explicitly on time.
        normal, friction (rows, nc): work of the contact forces.
        constraint (rows, nb): work of the bilateral constraint forces.
        dry_friction (rows, nd): work of the bounded rows.
        impact (rows,): whether impulses acted at an impact.
        impact_normal, impact_friction (rows, nc), impact_constraint (rows, nb): work of these impulses.
        lost_normal, lost_friction (rows, nc): energy lost by the impact in the contact,
            ``-Lambda (u^- + u^+)/2`` with the rates relative to a moving obstacle; for an obstacle at
            rest the negative of ``impact_normal`` and ``impact_friction``.

    The values of single contacts that support a body redundantly are not unique; their sums are.
    """

    t: np.ndarray
    kinetic: np.ndarray
    potential: np.ndarray
    force: np.ndarray
    normal: np.ndarray
    friction: np.ndarray
    constraint: np.ndarray
    impact: np.ndarray
    impact_normal: np.ndarray
    impact_friction: np.ndarray
    impact_constraint: np.ndarray
    lost_normal: np.ndarray
    lost_friction: np.ndarray
    dry_friction: np.ndarray

    @property
    def energy(self) -> np.ndarray:
        """Total energy at every row (rows,) [J]."""
        return self.kinetic + self.potential

    @property
    def work(self) -> dict[str, np.ndarray]:
        """Work since the previous row by source, each (rows,) [J], summed over contacts."""
        kinds = "normal", "friction", "constraint"
        names = [*kinds, *(f"impact_{kind}" for kind in kinds), "dry_friction"]
        return {"force": self.force, **{name: getattr(self, name).sum(axis=1) for name in names}}

    @property
    def residual(self) -> np.ndarray:
        """Change of energy since the previous row minus all work (rows,) [J]."""
        change = np.diff(self.energy, prepend=self.energy[:1])
        return change - sum(self.work.values())

    def __str__(self) -> str:
        lines = {"energy at the start": self.energy[0]}
        lines |= {f"work of {name.replace('_', ', ')}": x.sum() for name, x in self.work.items()}
        lines |= {"residual": self.residual.sum(), "energy at the end": self.energy[-1]}
        return "\n".join(f"{name:<28}{value: .6e} J" for name, value in lines.items())


def energy_balance(traj: Trajectory, *, forces: str = "auto") -> EnergyBalance:
    """Energies and work by source in every step of a run, and the residual of the balance.

    Between impacts, along the motion (``q`` moves along `System.retract`)::

        dE/dt = v.h + d/ds [T(q + s v, v) + V(t + s, q + s v)]_(s=0) + lambda.(W' v)

    where the first two terms are the power of the non-potential forces (inertia terms drop out), and
    ``W' v`` is the gap, slip or constraint rate without the motion of the obstacle. An impulse does the
    work ``Lambda.(W' v^- + W' v^+)/2`` exactly. The kind of the saved forces of a scheme decides how they
    are integrated:

    * ``"end"``: an impulse at the end of a step in which a contact closes (`impulse_steps`), and before it
      the time integrals ``P`` of the forces with the scheme's own weights (mixed framework). These do
      the work ``P.(W' v_i + W' v^-)/2``; ``Lambda = impulse - dt force`` and ``v^- = v^+ - M^-1 W
      Lambda``. In a step with an impact the integral of the forces is separated from the impulse to first
      order only. This moves work between the two; their sum changes by O(dt^3) in such a step, and only
      where constraints or other contacts carry forces.
    * ``"mean"``, ``"midpoint"``: one impulse over the step, directions ``W`` at ``q_i + dt/2 v_i``
      (Moreau, theta-method, decoupled GGL) or midway between ``q_i`` and ``q_{i+1}`` (unified GGL). Its
      work with the mean of ``v_i`` and ``v_{i+1}`` is that of the step's momentum balance. It counts as
      work of an impact in a step with an impact, else as work of a force.

    Contacts of nonsmooth generalized-alpha have one impulse per step, at its end.

    A run with `nsjax.schemes.localized` and an impact list (``events=K`` of `nsjax.simulate`) is cut at the
    first impact of the list in each step. Both parts of such a step have balances of their own, of the kind
    ``"end"``.

    Args:
        traj: one run saved with ``every=1`` and all row quantities.
        forces: one of these kinds, or ``"auto"``: the kind that the scheme declares (`Traits.impulses`),
            and ``"end"`` whenever impulses differ from ``dt force``; of ``"mean"`` and ``"midpoint"`` the
            kind whose directions make the saved impulses fulfil the laws of impact and constraint.

    Returns:
        `EnergyBalance`; ``print`` gives the sums over the run.

    Raises:
        InputError: for a batch, rows more than one step apart, quantities not saved, or unknown
            ``forces``; for a run of an old file that does not say where its impulses act.

    Accuracy: the residual is of the scheme's order between impacts. It vanishes to rounding for impulses
        of ``"end"``, and for the theta-method with ``theta = 1/2`` and Newmark's trapezoidal rule with
        constant mass and directions and linear forces, apart from the O(dt^3) of impacts (see ``"end"``).
        In a step with an impact, ``"mean"`` has a residual of O(dt) from non-potential forces and varying
        mass or directions.
        At a located impact it is O(dt^2), as at slow ones that are left to the scheme inside, with impulses
        of O(dt). It is O(dt) without an impact list and where a step has impacts at several instants.

    Limits: the potential must be that of forces in ``h``; other forces count as non-potential. Position
        corrections of stabilised schemes appear in the residual. The mass matrix is solved densely.

    Source: work of an impulse is ``x . (u+ + u-) / 2`` with the contact velocities before and after.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> from nsjax.analysis import energy_balance
        >>> problem = models.bouncing_ball(restitution=0.5)
        >>> balance = energy_balance(nsjax.simulate(problem, schemes.newmark(), dt=1e-3, steps=500))
        >>> loss = balance.lost_normal.sum()
        >>> bool(abs(loss - 0.75 * 9.81) < 0.05)  # 1 kg from 1 m, up to the time of the impact
        True
        >>> bool(abs(balance.residual).max() < 1e-13)
        True
    """
    check_choice("energy_balance: forces", forces, FORCES)
    check_run(traj, "energy_balance", NEEDED, every_step=True)
    own, traj, dt = traj.system, _with_bounded_rows(traj), float(traj.carry.dt)
    force, impulse = _rows_of(traj, "force"), _rows_of(traj, "impulse")
    where = traj.carry.impulses
    if forces == "auto" and not where:
        raise InputError(
            "energy_balance: the run does not say where its impulses act: it is of an earlier version's "
            f"file without its scheme; give forces = one of {', '.join(FORCES[1:])}"
        )
    if forces == "auto" and where == "contacts":
        jump, impact = _impulses_at_the_end(traj, force, impulse)
        return _enter(traj, _apart(traj, impulse, jump), impact, own)
    jump = impulse - dt * force
    # differences of the size of rounding are not impulses
    jump = np.where(np.abs(jump) <= 4 * np.finfo(float).eps * np.abs(impulse), 0.0, jump)
    apart = forces == "end"
    if forces == "auto":
        apart = where == "end" or bool(jump.any())
    if apart:
        jump = np.where(impulse_steps(traj)[:, None], jump, 0.0)
        impact = np.any(jump, axis=1)
        work = _apart(traj, impulse, jump)
    else:
        impact = np.any(np.asarray(traj.impacts), axis=1)
        work = _whole_steps(traj, forces, impulse[1:], impact[1:, None])
    parts = _parts_before_impacts(traj)
    if forces == "auto" and parts is not None:
        cut = parts < 1.0
        jump = np.where(cut[:, None], impulse - dt * force, 0.0)
        columns = (impulse - jump)[1:], jump[1:], force[1:], parts[1:]
        found = _steps(traj, CutStep(), *columns)
        work = tuple(
            np.where(cut[1:].reshape(-1, *[1] * (new.ndim - 1)), new, old)
            for new, old in zip(found, work, strict=True)
        )
        impact = impact | cut
    return _enter(traj, work, impact, own)


def _parts_before_impacts(traj: Trajectory) -> np.ndarray | None:
    """Part (rows,) of every step before its first impact, 1 without one; None where none is located."""
    if traj.events is None or not traj.carry.scheme.startswith("localized("):
        return None
    parts, dt = np.ones(len(traj.t)), float(traj.carry.dt)
    # the list has one entry for each contact that strikes in a step, in the order of steps
    steps = np.repeat(np.arange(len(traj.t)), np.sum(np.asarray(traj.impacts) > 0, axis=1))
    for step, time in zip(steps, np.asarray(traj.events.time), strict=False):
        part = 1.0 - (float(traj.t[step]) - float(time)) / dt
        parts[step] = min(parts[step], max(part, 0.0))
    return parts


def _with_bounded_rows(traj: Trajectory) -> Trajectory:
    """The run with bounded rows as tangents of contacts that are always closed, as schemes treat them."""
    if not traj.system.nd:
        return traj
    system, rows, laws = bounded_as_contacts(traj.system), len(traj.t), rows_of_laws(traj.system)
    closed = np.zeros((rows, len(laws)))

    def tangential(contacts: Any, bounded: Any) -> np.ndarray:
        wide = np.zeros((rows, system.nc, system.nt))
        wide[:, : traj.system.nc, : traj.system.nt] = contacts
        wide[:, traj.system.nc :, : laws.shape[1]] = np.pad(bounded, [(0, 0), (0, 1)])[:, laws]
        return wide

    fields: dict[str, Any] = {
        name: np.concatenate([np.asarray(getattr(traj, name)), closed], axis=1)
        for name in ("force_normal", "impulse_normal", "impacts")
    }
    fields["closed_time"] = np.concatenate([np.asarray(traj.closed_time), closed + traj.carry.dt], axis=1)
    fields["force_tangential"] = tangential(traj.force_tangential, traj.dry_friction_force)
    fields["impulse_tangential"] = tangential(traj.impulse_tangential, traj.dry_friction_impulse)
    return dataclasses.replace(traj, system=system, **fields)


def _apart(traj: Trajectory, impulse: np.ndarray, jump: np.ndarray) -> Any:
    """Work of the time integrals of forces and, separately, of the impulses at the ends of the steps."""
    return _steps(traj, EndStep(), (impulse - jump)[1:], jump[1:])


def _impulses_at_the_end(
    traj: Trajectory, force: np.ndarray, impulse: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Impulses (rows, n) and mask of the impacts of nonsmooth generalized-alpha, whose contacts have one
    impulse at the end of the step. It counts as that of an impact in a step with one, else as force.
    """
    dt = float(traj.carry.dt)
    impact = np.any(np.asarray(traj.impacts), axis=1)
    smooth = force.copy()
    smooth[:, : force.shape[1] - traj.system.nb] = 0.0
    return np.where(impact[:, None], impulse - dt * smooth, 0.0), impact


def _steps(traj: Trajectory, kernel: Fn, *columns: np.ndarray) -> tuple[np.ndarray, ...]:
    """Results of a kernel for every step; its arguments are `StepEnds` and the given columns."""
    ends = [np.asarray(x)[part] for part in (np.s_[:-1], np.s_[1:]) for x in (traj.t, traj.q, traj.v)]
    dt = np.full(len(traj.t) - 1, float(traj.carry.dt))
    return by_rows(ByColumns(kernel), traj, *ends, dt, *columns)


def _whole_steps(
    traj: Trajectory, forces: str, impulse: np.ndarray, impact: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Work with one impulse per step, which is that of an impact in steps with an impact."""
    places = ("mean", "midpoint") if forces == "auto" else (forces,)
    tried = [_steps(traj, WholeStep(midpoint=place == "midpoint"), impulse) for place in places]
    force, smooth, lost, _ = min(tried, key=lambda found: found[-1].sum())
    return force, np.where(impact, 0.0, smooth), np.where(impact, smooth, 0.0), np.where(impact, lost, 0.0)


def _rows_of(traj: Trajectory, what: str) -> np.ndarray:
    """Forces or impulses of all rows, see `nsjax.core.row_groups`."""
    names = f"{what}_normal", f"{what}_tangential", f"constraint_{what}"
    normal, tangential, constraints = (np.asarray(getattr(traj, name)) for name in names)
    contacts = np.moveaxis(np.concatenate([normal[..., None], tangential], axis=2), 0, 2)
    return np.asarray(row_groups(traj.system).stack(contacts, constraints.T)).T


def _enter(
    traj: Trajectory, work: tuple[np.ndarray, ...], impact: np.ndarray, own: System
) -> EnergyBalance:
    """The balance from the work of forces, rows and row impulses and the loss by the impulses, with a first
    row without work. Contacts beyond those of the system ``own`` are its bounded rows, without impacts.
    """
    system, nc = traj.system, own.nc
    # work is done between samples: none has been done at the first
    force, smooth, struck, lost = (np.concatenate([0.0 * x[:1], x]) for x in work)
    kinetic, potential = by_rows(_energies, traj, traj.t, traj.q, traj.v)
    groups = row_groups(system)

    def parts(x: np.ndarray) -> tuple[np.ndarray, ...]:
        found = groups.normals(x.T), groups.tangential(x.T), groups.bilateral(x.T)
        return tuple(np.moveaxis(np.asarray(y), -1, 0) for y in found)

    normal, friction, constraint = parts(smooth)
    impact_normal, impact_friction, impact_constraint = parts(struck)
    lost_normal, lost_friction, _ = parts(lost)
    dry_friction = (friction + impact_friction)[:, nc:, : rows_of_laws(own).shape[1]]
    return EnergyBalance(
        t=np.asarray(traj.t), kinetic=kinetic, potential=potential, force=force, normal=normal[:, :nc],
        friction=friction[:, :nc].sum(axis=2), constraint=constraint, impact=impact,
        impact_normal=impact_normal[:, :nc], impact_friction=impact_friction[:, :nc].sum(axis=2),
        impact_constraint=impact_constraint, lost_normal=lost_normal[:, :nc],
        lost_friction=lost_friction[:, :nc].sum(axis=2),
        dry_friction=dry_friction.reshape(len(dry_friction), -1)[:, places_of_rows(own)],
    )  # fmt: skip


def _energies(system: System, p: PyTree, t: Array, q: Array, v: Array) -> tuple[Array, Array]:
    p = refreshed(system, t, q, p)
    return kinetic_energy(system, q, v, p), potential_energy(system, t, q, p)
