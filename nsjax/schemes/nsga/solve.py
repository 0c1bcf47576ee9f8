"""Solution of the subproblems of a step, smooth motion first, one after the other or together."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact import events
from nsjax.contact.at_nodes import own_responses, without_responses
from nsjax.contact.events import Criteria
from nsjax.core.operators import Rows, gap_drift, gap_rows, jacobian, momentum, position_rows, row_rates
from nsjax.core.system import System, row_groups
from nsjax.jaxtools.control_flow import branch
from nsjax.schemes.common import tangent_of
from nsjax.schemes.nsga.correction import IterationBounds, LevelUnknowns, acting, linearised, sigma
from nsjax.schemes.nsga.levels import (
    Level,
    PositionLevel,
    Prediction,
    Smooth,
    Total,
    VelocityLevel,
    bilateral_forces,
    decided,
    rows_at,
    smooth_motion,
    smooth_state,
    total_state,
)
from nsjax.schemes.nsga.newton import Subproblems, blank_tangent, own_data, solve_levels
from nsjax.types import Array, PyTree, record

# The smooth motion of the nonsmooth generalized-alpha family, with a choice of the forces in it.
#
# Forces that it leaves out act in position corrections and velocity jumps, with first order. Source: [C
# section 3.1].


SMOOTH = ("constrained", "full", "free", "zero")
"""Accelerations of the smooth motion: with bilateral forces, [B14]; with contact forces, too; with neither,
after Chen and co-workers; none at all.
"""


@dataclasses.dataclass(frozen=True)
class SmoothLevel(Level):
    """Motion without impacts and contacts, constraints on velocity level; data ``(Prediction, u, w)``.

    Args:
        smooth: forces that it contains, see `SMOOTH`. ``"full"``: also those of the contacts
            (nc,) bool that follow in the data, with both laws on acceleration level.
    """

    smooth: str = "constrained"

    @property
    def contacts(self) -> int:
        """Number of contact rows."""
        return self.system.nc if self.smooth == "full" else 0

    @property
    def rows(self) -> int:
        """Number of rows: contacts, then constraints."""
        return 0 if self.smooth in ("free", "zero") else self.contacts + self.system.nb

    @property
    def bilateral(self) -> int:
        """Number of bilateral rows."""
        return self.rows - self.contacts

    def factors(self, d: Any) -> tuple[Array, Array]:
        """``k_s = p_s``: a mass over a time; a mass on acceleration level."""
        k = d[0].scale if self.smooth == "full" else d[0].scale / d[0].dt
        return k, k

    def _at(self, d: Any, w: Array) -> tuple[Array, Array, Array, Array]:
        """Position and velocity at which the operators are taken; smooth velocity and acceleration."""
        s, u, jump = d[:3]
        q, v, a = smooth_motion(self.system, s, w)
        if self.coupled:
            return self.system.retract(q, u), v + jump, v, a
        return q, v, v, a

    def terms(self, d: Any, w: Array, pi: Array) -> tuple[Array, ...]:
        """``M dv/dt - f - G_b' pi``; for ``"zero"`` a scaled ``w``, so that the velocity is constant."""
        (q, v, _, a), s = self._at(d, w), d[0]
        if self.smooth == "zero":
            return (s.scale * w,)
        inertia, force = momentum(self.system, q, a, s.params), self.system.force(s.t, q, v, s.params)
        if self.smooth == "free":
            return inertia, -force
        return inertia, -force, -bilateral_forces(self.system, s, q, pi, self.contacts)

    def values(self, d: Any, w: Array) -> Array:
        """``G_b v`` of the smooth velocity; ``G dv/dt + dG/dt v`` on acceleration level."""
        if not self.rows:
            return jnp.zeros(0)
        q, total, v, a = self._at(d, w)
        if self.smooth == "full":
            return self._accelerations(d[0], q, total, a)
        return row_rates(self.system, d[0].t, q, v, d[0].params, contacts=False)

    def directions(self, d: Any, w: Array) -> tuple[Array, Array]:
        """``G'`` and the tangent of `values`."""
        n, parts = self.system.nv, []
        if not self.rows:
            return jnp.zeros((n, 0)), jnp.zeros((0, n))
        q, _, _, _ = self._at(d, w)
        for name, count in (("gap", self.contacts), ("constraint", self.system.nb)):
            if count:
                parts.append(gap_rows(self.system, name, d[0].t, q, d[0].params).jacobian())
        return jnp.concatenate(parts).T, jacobian(lambda w: self.values(d, w), w, self.rows)

    def law(self, d: Any, sigma: Array) -> Array:
        """Acting part of ``sigma``: contacts only push, and only contacts that take part."""
        nc = self.contacts
        if not nc:
            return sigma
        push = jnp.where(d[3] & decided(sigma[:nc] >= 0.0), sigma[:nc], 0.0)
        return jnp.concatenate([push, sigma[nc:]])

    def _accelerations(self, s: Prediction, q: Array, v: Array, a: Array) -> Array:
        """Accelerations of gaps and constraints at the total state."""
        system, p = self.system, s.params
        names = [name for name, count in (("gap", system.nc), ("constraint", system.nb)) if count]
        drift = jnp.concatenate([gap_drift(system, s.t, q, v, p, name) for name in names])
        along = lambda xi: position_rows(system, s.t, (q, xi), p, system.nc)  # noqa: E731
        return drift + jax.jvp(along, (jnp.zeros(system.nv),), (a,))[1]

    def state(self, s: Prediction, delta: Array, x: Array) -> Smooth:
        """The smooth motion for the other subproblems, with its forces ``x`` (rows,) [N]."""
        system, nc = self.system, self.contacts
        lam = x[nc:] if self.rows else jnp.zeros(system.nb)
        found = smooth_state(system, s, delta, lam)
        if self.smooth == "zero":
            return dataclasses.replace(found, force=jnp.zeros(system.nv))
        if s.held is None:
            return found
        # an acceleration c1 delta adds delta to the velocity and c2 delta to the position
        added = x[:nc] / s.c1
        return dataclasses.replace(found, push=x[:nc], contacts=s.held + jnp.stack([s.c2 * added, added]))


# Solution of the three subproblems of a step, one after the other or together.


@dataclasses.dataclass(frozen=True)
class NsgaOptions:
    """Choices of the family; ``iteration`` is None for decoupled problems, ``smooth`` one of `SMOOTH`."""

    exchange: bool
    iteration: str | None
    creep_correction: bool
    max_iterations: int
    smooth: str = "constrained"
    tangent: str = "auto"


@record()
class Answer:
    """Solution of the three subproblems: smooth motion, corrected position with its rows and contacts, jump
    with impulses (rows,) [N s], linear solves (3,), whether all fulfil their criterion, and the tangents
    for the next step. Where no gap closes the rows are zeros.
    """

    smooth: Smooth
    q: Array
    rows: Rows
    active: Array
    w: Array
    impulses: Array
    solves: Array
    solved: Array
    tangents: Any = ()


def decoupled(
    options: NsgaOptions, system: System, s: Prediction, tolerances: IterationBounds, constants: PyTree,
    tangents: Any,
) -> Answer:  # fmt: skip
    """Solution of the three subproblems one after the other, [C Algorithm 1]."""
    levels = levels_of(system, options)

    def solve(k: int, d: PyTree) -> tuple[LevelUnknowns, Array, Array, Any]:
        kept, carried = constants[k] if constants else None, tangents[k] if tangents else None
        c = Subproblems((levels[k],), own_data)
        (z,), count, solved, after = solve_levels(c, d, tolerances, kept, carried)
        return z, count, solved, after

    alone = s, jnp.zeros(system.nv), jnp.zeros(system.nv)
    z, first, fine, one = solve(0, alone)
    smooth = levels[0].state(s, z.w, acting(levels[0], alone, z))

    def correct(_: None) -> Answer:
        zp, second, placed, two = solve(1, (s, smooth))
        at = _total(levels[1], (s, smooth), zp)
        zv, third, struck, three = solve(2, (s, smooth, at))
        return Answer(
            smooth=smooth, q=at.q, rows=at.rows, active=at.active, w=zv.w,
            impulses=acting(levels[2], (s, smooth, at), zv),
            solves=jnp.stack([first, second, third]), solved=fine & placed & struck,
            tangents=(one, two, three) if tangents else (),
        )  # fmt: skip

    def fly(_: None) -> Answer:
        none = jnp.asarray(0, int)
        # rows that nobody reads in flight: their shapes, not their values
        shapes = jax.eval_shape(lambda q: rows_at(system, s, q), smooth.q)
        rows = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
        return Answer(
            smooth=smooth, q=smooth.q, rows=rows, active=jnp.zeros(system.nc, bool), w=jnp.zeros(system.nv),
            impulses=jnp.zeros(levels[2].rows), solves=jnp.stack([first, none, none]), solved=fine,
            tangents=(one, *tangents[1:]) if tangents else (),
        )  # fmt: skip

    if system.nb or options.smooth == "zero":
        return correct(None)
    if not system.nc:
        return fly(None)
    # with all gaps open both corrections have nothing to do
    gap = system.gap(s.t, smooth.q, s.params)
    return branch(jnp.all(gap > 0.0), fly, correct, None)


def levels_of(system: System, options: NsgaOptions) -> tuple[SmoothLevel, PositionLevel, VelocityLevel]:
    """The three subproblems of a variant."""
    coupled, zero = options.iteration is not None, options.smooth == "zero"
    creep = options.creep_correction and system.nt > 0
    exchange = options.exchange or zero  # the corrections are the motion
    return (
        SmoothLevel(system, coupled, exchange, options.smooth),
        PositionLevel(system, coupled, exchange, creep, 1.0 if zero else 0.5),
        VelocityLevel(system, coupled, exchange),
    )


def _total(level: PositionLevel, d: Any, z: LevelUnknowns) -> Total:
    """The corrected position, its rows, and the contacts that it holds."""
    active = level.on(d, sigma(level, d, z))
    at = total_state(level.system, d[0], level.total(d, z.w), active)
    return at if not level.system.nt else dataclasses.replace(at, masses=_masses(level.system, d[0], at))


def _masses(system: System, s: Prediction, at: Total) -> Array:
    """Effective masses of contact rows, one for the tangents of a contact; the scale for constraints."""
    q, rows, p, scale = lax.stop_gradient((at.q, at.rows, s.params, s.scale))
    if without_responses(system):
        own = own_responses(system.structure, rows.jacobian(), lambda w: momentum(system, q, w, p))
        return _inverses(system, own, scale)
    m = rows.count
    linear = linearised(
        system.structure, lambda w: momentum(system, q, w, p), jnp.zeros(system.nv),
        (rows.directions(), rows.jacobian()), (jnp.full(m, scale), np.arange(m) >= m - system.nb),
    )  # fmt: skip
    # responses of the rows to their own impulses: the diagonal, without an index
    g = rows.groups.contacts(jnp.sum(linear.delassus * np.eye(m), axis=1))
    return _inverses(system, g, scale)


def _inverses(system: System, g: Array, scale: Array) -> Array:
    """Effective masses (rows,) from the responses ``g`` (nc, 1 + nt) of contacts to their own impulses."""
    g = jnp.concatenate([g[:, :1], *[jnp.max(g[:, 1:], axis=1, keepdims=True)] * system.nt], axis=1)
    each = jnp.where(g > 0.0, 1.0 / jnp.where(g > 0.0, g, 1.0), scale)
    return row_groups(system).stack(each, jnp.full(system.nb, scale))


def _coupled_data(c: Subproblems, s: Prediction, z: Any) -> Any:
    """Data of each subproblem from the present answers of the others."""
    levels: Any = c.levels
    smooth_z, position, velocity = z
    smooth = levels[0].state(s, smooth_z.w, levels[0].factors((s,))[0] * smooth_z.x)
    at = _total(levels[1], (s, smooth), position)
    first: Any = (s, position.w, velocity.w)
    last = s, smooth, at
    if levels[0].contacts:
        # only contacts at rest: the rate of one that is struck is -e times that of the start
        rests = events.at_rest(c.criteria, s.restitution[: levels[0].contacts], s.v)
        first = *first, rests & levels[2].on(last, sigma(levels[2], last, velocity))
    if levels[0].smooth == "zero":
        return first, (s, dataclasses.replace(smooth, v=smooth.v + velocity.w)), last
    return first, (s, smooth), last


def coupled(
    options: NsgaOptions, criteria: Criteria, system: System, s: Prediction, tolerances: IterationBounds,
    tangents: Any,
) -> Answer:  # fmt: skip
    """Solution of all subproblems together, [B14]; the criteria decide which contacts are at rest."""
    c = _together(options, criteria, system)
    carried = tangents[0] if tangents else None
    z, solves, solved, after = solve_levels(c, s, tolerances, carried=carried)
    _, _, (_, smooth, at) = data = _coupled_data(c, s, z)
    none, impulses = jnp.asarray(0, int), acting(c.levels[2], data[2], z[2])
    if smooth.contacts is not None:
        impulses = impulses + jnp.concatenate([smooth.contacts[1], jnp.zeros(system.nb)])
    return Answer(
        smooth=smooth, q=at.q, rows=at.rows, active=at.active, w=z[2].w, impulses=impulses,
        solves=jnp.stack([solves, none, none]), solved=solved, tangents=(after,) if tangents else (),
    )  # fmt: skip


def _together(options: NsgaOptions, criteria: Criteria, system: System) -> Subproblems:
    """All subproblems of the coupled scheme."""
    monolithic = options.iteration == "monolithic"
    return Subproblems(levels_of(system, options), _coupled_data, monolithic, criteria)


def blank_tangents(options: NsgaOptions, criteria: Criteria, system: System, s: Prediction) -> Any:
    """Tangents for the memory at the start of a run where they are kept from step to step, else none."""
    chosen = tangent_of(options.tangent, system) == "kept" and options.iteration != "block"
    if not chosen or system.structure.constant or without_responses(system):
        return ()
    if options.iteration is not None:
        return (blank_tangent(_together(options, criteria, system), s),)
    return tuple(
        blank_tangent(Subproblems((level,), own_data), d)
        for level, d in zip(levels_of(system, options), data_of(options, system, s), strict=True)
    )


def data_of(options: NsgaOptions, system: System, s: Prediction) -> tuple[Any, ...]:
    """Data of the three subproblems of the decoupled schemes before anything has moved."""
    first, zero = levels_of(system, options)[0], jnp.zeros(system.nv)
    smooth = first.state(s, zero, jnp.zeros(first.rows))
    at = total_state(system, s, s.q, jnp.zeros(system.nc, bool))
    if system.nt:
        at = dataclasses.replace(at, masses=jnp.full(at.rows.count, s.scale))
    return (s, zero, zero), (s, smooth), (s, smooth, at)
