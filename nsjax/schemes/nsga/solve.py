"""Solution of the three subproblems of a step, one after the other or together."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact import events
from nsjax.contact.at_nodes import own_responses, without_responses
from nsjax.contact.criteria import Criteria
from nsjax.core.branches import branch
from nsjax.core.operators import Rows, momentum
from nsjax.core.system import System
from nsjax.schemes.choices import tangent_of
from nsjax.schemes.nsga.levels import PositionLevel, VelocityLevel
from nsjax.schemes.nsga.linear import linearised
from nsjax.schemes.nsga.newton import Subproblems, blank_tangent, own_data, solve_levels
from nsjax.schemes.nsga.residual import IterationBounds, LevelUnknowns, acting, sigma
from nsjax.schemes.nsga.smooth import SmoothLevel
from nsjax.schemes.nsga.states import Prediction, Smooth, Total, rows_at, total_state
from nsjax.types import Array, PyTree, record


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
    options: NsgaOptions,
    system: System,
    s: Prediction,
    tolerances: IterationBounds,
    constants: PyTree,
    tangents: Any,
) -> Answer:
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
    nc, nb = system.nc, system.nb
    if without_responses(system):
        return _node_masses(system, s, at)
    q, rows, p, scale = lax.stop_gradient((at.q, at.rows, s.params, s.scale))
    m = rows.count
    linear = linearised(
        system.structure, lambda w: momentum(system, q, w, p), jnp.zeros(system.nv),
        (rows.directions(), rows.jacobian()), (jnp.full(m, scale), np.arange(m) >= m - nb),
    )  # fmt: skip
    g = jnp.sum(linear.delassus * np.eye(m), axis=1)[: m - nb].reshape(nc, -1)
    return jnp.concatenate([_inverses(system, g, scale), jnp.full(nb, scale)])


def _inverses(system: System, g: Array, scale: Array) -> Array:
    """Effective masses (rows,) from the responses ``g`` (nc, 1 + nt) of contacts to their own impulses."""
    g = jnp.concatenate([g[:, :1], *[jnp.max(g[:, 1:], axis=1, keepdims=True)] * system.nt], axis=1)
    return jnp.where(g > 0.0, 1.0 / jnp.where(g > 0.0, g, 1.0), scale).reshape(-1)


def _node_masses(system: System, s: Prediction, at: Total) -> Array:
    """Effective masses of contacts at single nodes, by the diagonal of the inertia's preconditioner."""
    q, rows, p, scale = lax.stop_gradient((at.q, at.rows, s.params, s.scale))
    own = own_responses(system.structure, rows.jacobian(), lambda w: momentum(system, q, w, p))
    return _inverses(system, own, scale)


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
    options: NsgaOptions,
    criteria: Criteria,
    system: System,
    s: Prediction,
    tolerances: IterationBounds,
    tangents: Any,
) -> Answer:
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
