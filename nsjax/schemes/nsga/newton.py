"""Semismooth Newton iterations of the nonsmooth generalized-alpha family, counted in linear solves.

On the linearised dynamics a velocity jump with friction is a contact problem
(`nsjax.schemes.nsga.correction`); the other subproblems solve their laws with the dynamics, as in [C]: a
position correction with friction has a creep force whose bound is the answer of its gap. The decoupled
schemes iterate each subproblem on its own, the coupled scheme all three in turn (as published) or all at
once. Dynamics may be linearised anew in every correction, or as in an earlier step until corrections shrink
too slowly. The derivative of an answer is one more correction with data that have derivatives.
Source: [C (33), (39), (43), (47)-(51), Algorithm 1].
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.contact.at_nodes import NodeProblem, correction_at_nodes, tangent_at_nodes, without_responses
from nsjax.contact.equations import CarriedTangent, StageTangent, blank
from nsjax.contact.events import DEFAULT, Criteria
from nsjax.contact.stage import CONTRACTION
from nsjax.core.operators import jacobian
from nsjax.jaxtools import implicit_solution
from nsjax.jaxtools.control_flow import branch, repeat
from nsjax.jaxtools.owned import RECENT
from nsjax.schemes.nsga.correction import (
    IterationBounds,
    LevelUnknowns,
    Residual,
    Tangent,
    correction,
    evaluate,
    is_contact_problem,
    linear_of,
    linearised,
    no_unknown,
    regularisation,
    sigma,
    velocity_jump,
)
from nsjax.schemes.nsga.levels import Level
from nsjax.types import Array, PyTree, record


def tangent(
    level: Level, d: PyTree, w: Array, s: Array, held: Array, kept: StageTangent | None = None
) -> Any:
    """Linearisation of one subproblem at an increment ``w`` (nv,), with augmented multipliers ``s`` (rows,)
    and the multipliers ``held`` (rows,) of the iterate, along which forces turn: augmented ones are no
    forces before the gaps vanish. ``kept``: linearisation of the dynamics, if it is known.
    """
    if level.rows and without_responses(level.system):
        return tangent_at_nodes(level, d, w, s, held)
    k, p = (jnp.broadcast_to(x, (level.rows,)) for x in level.factors(d))
    kept = linear_of(level, d, w, held) if kept is None else kept
    law = jax.jacfwd(lambda s: level.law(d, s))(s)
    added, weight = level.always & level.system.structure.dense, regularisation(level.system)
    way = level.slides(d, s)
    return Tangent(linear=kept, law=law, k=k, p=p, added=added, weight=weight, way=way)


@dataclasses.dataclass(frozen=True)
class Subproblems:
    """Subproblems that are solved together: a single one, or all three with each other's present answers.

    Args:
        levels: the subproblems.
        data: ``(self, s, z) -> data of each``, module-level.
        monolithic: Newton on all rows at once; else one correction of each in turn.
        criteria: decide which contacts are at rest, where the data depend on it.
    """

    levels: tuple[Level, ...]
    data: Callable[..., tuple[PyTree, ...]]
    monolithic: bool = True
    criteria: Criteria = DEFAULT


def own_data(c: Subproblems, s: PyTree, z: Any) -> tuple[PyTree, ...]:
    """Data of a single subproblem."""
    return (s,)


def _linear(c: Subproblems, s: PyTree, z: Any, data: Any, held: Any) -> StageTangent:
    """Linearised dynamics of all subproblems with respect to all unknowns, with the data at ``z``."""
    if len(c.levels) == 1:
        return linear_of(c.levels[0], data[0], z[0].w, held[0])
    system = c.levels[0].system
    n, sizes = system.nv, [level.rows for level in c.levels]
    ends, x = np.cumsum(sizes)[:-1], [y.x for y in z]

    def unknowns(w: Array) -> tuple[LevelUnknowns, ...]:
        return tuple(LevelUnknowns(w=w[i * n : (i + 1) * n], x=x[i]) for i in range(3))

    def stacked(f: Callable[..., Array], w: Array, *more: Any) -> Array:
        now = unknowns(w)
        data = c.data(c, s, now)
        return jnp.concatenate([f(c.levels[i], data[i], now[i].w, *(m[i] for m in more)) for i in range(3)])

    # one tangent over three copies of the velocities: each problem sees the others through its data
    w = jnp.concatenate([y.w for y in z])

    def dynamic(level: Level, d: PyTree, w: Array, pi: Array) -> Array:
        return functools.reduce(jnp.add, level.terms(d, w, pi))

    def push(pi: Array) -> Array:
        return -stacked(dynamic, w, jnp.split(pi, ends))

    # forces are linear in multipliers: their derivative is the directions
    directions = jax.jacfwd(push)(jnp.concatenate(held))
    values = jacobian(lambda w: stacked(lambda v, d, w: v.values(d, w), w), w, sum(sizes))
    (_, p), always = _factors(c, data), np.concatenate([v.always for v in c.levels])
    return linearised(
        system.structure.stacked(3), lambda w: stacked(dynamic, w, held), w, (directions, values),
        (p, always),
    )  # fmt: skip


def _factors(c: Subproblems, data: Any) -> tuple[Array, Array]:
    """Factors ``k`` and ``p`` (rows,) of all rows."""
    each = zip(*[v.factors(d) for v, d in zip(c.levels, data, strict=True)], strict=True)
    sizes = [v.rows for v in c.levels]
    k, p = (
        jnp.concatenate([jnp.broadcast_to(x, (m,)) for x, m in zip(f, sizes, strict=True)]) for f in each
    )
    return k, p


def _all_tangent(
    c: Subproblems, s: PyTree, z: Any, data: Any, r: Any, kept: StageTangent | None
) -> Tangent:
    """Linearisation of all subproblems together, as `tangent` of one."""
    sigmas, held = zip(*r, strict=True)
    system, sizes = c.levels[0].system, [level.rows for level in c.levels]
    ends = np.cumsum(sizes)[:-1]

    def law(t: Array) -> Array:
        split = jnp.split(t, ends)
        return jnp.concatenate([v.law(d, y) for v, d, y in zip(c.levels, data, split, strict=True)])

    (k, p), always = _factors(c, data), np.concatenate([v.always for v in c.levels])
    linear = _linear(c, s, z, data, held) if kept is None else kept
    slopes = jax.jacfwd(law)(jnp.concatenate(sigmas))
    added = always & system.structure.stacked(3).dense
    way, first, weight = c.levels[-1].slides(data[-1], sigmas[-1]), sum(sizes[:-1]), regularisation(system)
    return Tangent(linear=linear, law=slopes, k=k, p=p, added=added, weight=weight, way=way, first=first)


def _tangent(c: Subproblems, s: PyTree, z: Any, data: Any, r: Any, kept: StageTangent | None) -> Any:
    if len(c.levels) > 1:
        return _all_tangent(c, s, z, data, r, kept)
    ((sigma, held),) = r
    return tangent(c.levels[0], data[0], z[0].w, sigma, held, kept)


def _evaluate(c: Subproblems, s: PyTree, z: Any, tolerances: IterationBounds) -> tuple[Any, list[Residual]]:
    """Data and residuals of all subproblems."""
    data = c.data(c, s, z)
    return data, [evaluate(v, d, y, tolerances) for v, d, y in zip(c.levels, data, z, strict=True)]


def _moved(
    levels: tuple[Level, ...], x: Any, z: Any, r: list[Residual], derivative: bool = False
) -> tuple[Any, Array]:
    """Next iterates by one linear solve (at an answer: the answer with its derivative), and update size."""
    if isinstance(x, NodeProblem):
        dw, dx = correction_at_nodes(x, r[0].dynamic, levels[0].by_contact(r[0].rows))
        parts: Any = [dw], [levels[0].in_rows(dx)]
    elif len(levels) == 1:
        dw, dx = correction(x, r[0].dynamic, r[0].rows, derivative)
        parts = [dw], [dx]
    else:
        dynamic, rows = (jnp.concatenate([getattr(y, f) for y in r]) for f in ("dynamic", "rows"))
        dw, dx = correction(x, dynamic, rows, derivative)
        parts = jnp.split(dw, len(levels)), jnp.split(dx, np.cumsum([v.rows for v in levels])[:-1])
    moved = tuple(LevelUnknowns(w=y.w + a, x=y.x + b) for y, a, b in zip(z, *parts, strict=True))
    return moved, jnp.max(jnp.abs(dw))


def _corrected(
    c: Subproblems, s: PyTree, z: Any, data: Any, r: list[Residual], linear: StageTangent | None = None
) -> tuple[Any, Array]:
    """Next iterates by one linear solve, on the linearised dynamics if they are known, and update size."""
    if len(c.levels) == 1 and is_contact_problem(c.levels[0]):
        if linear is None:
            linear = _linear(c, s, z, data, [r[0].held])
        moved = velocity_jump(c.levels[0], data[0], z[0].w, linear)
        return (moved,), jnp.max(jnp.abs(moved.w - z[0].w))
    rows = [(y.sigma, y.held) for y in r]
    return _moved(c.levels, _tangent(c, s, z, data, rows, linear), z, r)


def _in_turn(c: Subproblems, s: PyTree, z: Any, tolerances: IterationBounds) -> tuple[Any, Array]:
    """Next iterates by one correction of each subproblem in turn, and the largest update size."""
    now, sizes = list(z), []
    for i, level in enumerate(c.levels):
        d, one = c.data(c, s, tuple(now))[i], Subproblems((level,), own_data)
        r = evaluate(level, d, now[i], tolerances)
        (now[i],), size = _corrected(one, d, (now[i],), (d,), [r])
        sizes.append(size)
    return tuple(now), jnp.max(jnp.stack(sizes))


@record()
class _TangentState:
    """The tangent that the next correction uses, and the quality that it has shown.

    Args:
        tangent: tangent of the last correction.
        anew: whether the next correction forms it anew.
        astray: whether an old tangent has made an update grow; every correction then forms its own.
        proven: whether the tangent was formed in this step, or has shrunk an update by ten. Updates that
            stagnate are then rounding and no fault of the tangent.
    """

    tangent: StageTangent
    anew: Array
    astray: Array
    proven: Array


def _judged(
    passes: _TangentState, linear: StageTangent, size: Array, before: Array, z: Any, start: Any
) -> tuple[Any, Array, _TangentState]:
    """The next iterate, whether an update that stagnates is rounding, and the next tangent, judged by the
    size of its update.
    """
    formed = passes.anew | passes.astray
    slow, proven = size > CONTRACTION * before, passes.proven | formed
    lost = ~proven & (size > before)
    z = jax.tree.map(lambda a, b: jnp.where(lost, b, a), z, start)
    after = proven | ((before < jnp.inf) & ~slow)
    return z, proven, _TangentState(tangent=linear, anew=slow, astray=passes.astray | lost, proven=after)


def _iterate(c: Subproblems, arguments: Any) -> tuple[Any, tuple[Array, Array, Any]]:
    """Last iterate, number of corrections, whether it is an answer, and the tangent for the next step."""
    s, tolerances, kept, carried = arguments
    scale, max_iterations = tolerances.scale, tolerances.max_iterations
    none, start = jnp.asarray(0, int), tuple(no_unknown(v) for v in c.levels)
    # decoupled subproblems, and those in turn, solve jumps with friction as contact problems in any case
    falls_back = len(c.levels) > 1 and c.monolithic and is_contact_problem(c.levels[-1])
    most = 2 * max_iterations if falls_back else max_iterations

    # updates below this part of the velocities are rounding: the residual cannot fall any further
    rounding = 1e-14

    def body(carry: Any) -> Any:
        z, count, small, _, before, passes = carry
        data, r = _evaluate(c, s, z, tolerances)
        done = functools.reduce(jnp.logical_and, [y.converged for y in r]) | small
        stop = done | (count >= most) | jnp.isnan(before) | jnp.isnan(scale)  # of a refused run

        def fall_back(_: None) -> tuple[Any, Array, Array, Any]:
            level, d, w = c.levels[-1], data[-1], z[-1].w
            w = jnp.where(jnp.all(jnp.isfinite(w)), w, 0.0)  # corrections may have diverged
            jump = velocity_jump(level, d, w, linear_of(level, d, w, jnp.zeros(level.rows)))
            anew = None if passes is None else dataclasses.replace(passes, anew=jnp.asarray(True))
            return (*z[:-1], jump), jnp.asarray(False), jnp.full_like(scale, jnp.inf), anew

        def more(_: None) -> tuple[Any, Array, Array, Any]:
            if not c.monolithic:
                z1, size = _in_turn(c, s, z, tolerances)
                return z1, size <= rounding * scale, size, passes
            linear = kept
            if passes is not None:
                linear = branch(
                    passes.anew | passes.astray,
                    lambda _: _linear(c, s, z, data, [y.held for y in r]), lambda _: passes.tangent, None,
                )  # fmt: skip
            z1, size = _corrected(c, s, z, data, r, linear)
            # part of the velocities below which an update is rounding if it is larger than half of the one
            # before: Newton's updates shrink quadratically, but for rounding of stiff forces, with waves of
            # the speed c through elements of the length l about c^2 h / l^2 times that of positions
            stagnates, after = (size <= 1.5e-8 * scale) & (size > 0.5 * before), passes
            if passes is not None:
                z1, proven, after = _judged(passes, linear, size, before, z1, start)
                stagnates = stagnates & proven
            return z1, stagnates | (size <= rounding * scale), size, after

        same = z, small, before, passes
        choices = [lambda _: same, more] + [fall_back] * falls_back
        kind = jnp.where(stop, 0, jnp.where((count == max_iterations) & falls_back, 2, 1))
        z, small, before, passes = lax.switch(kind, choices, None)
        return z, jnp.where(stop, count, count + 1), small, jnp.where(stop, 1 + done, 0), before, passes

    passes = None
    if carried is not None:
        no = jnp.asarray(False)
        passes = _TangentState(tangent=carried.tangent, anew=~carried.known, astray=no, proven=no)
    first = start, none, jnp.asarray(False), none, jnp.full_like(scale, jnp.inf), passes
    z, count, _, state, _, passes = repeat(lambda carry: carry[3] == 0, body, first)
    if passes is not None:
        carried = CarriedTangent(tangent=passes.tangent, known=(state == 2) & (carried.known | (count > 0)))
    return z, (count, state == 2, carried)


def blank_tangent(c: Subproblems, s: PyTree) -> CarriedTangent:
    """``carried`` of `solve_levels` at the start of a run: a tangent of zeros that is not known yet."""

    def made() -> StageTangent:
        z = tuple(no_unknown(v) for v in c.levels)
        return _linear(c, s, z, c.data(c, s, z), [y.x for y in z])

    return CarriedTangent(tangent=blank(jax.eval_shape(made)), known=jnp.asarray(False))


@functools.lru_cache(maxsize=RECENT)
def _solver(c: Subproblems) -> Callable[[Any], Any]:
    """The iteration, with its derivative."""
    answer = dataclasses.replace(c, levels=tuple(dataclasses.replace(v, answer=True) for v in c.levels))

    def live_step(z: Any, arguments: Any) -> Callable[[Any], Any]:
        data = c.data(c, arguments[0], z)
        sigmas = [sigma(level, d, y) for level, d, y in zip(c.levels, data, z, strict=True)]
        pis = [level.law(d, x) for level, d, x in zip(c.levels, data, sigmas, strict=True)]
        x = _tangent(answer, arguments[0], z, data, list(zip(sigmas, pis, strict=True)), arguments[2])
        return lambda live: _moved(c.levels, x, z, _evaluate(answer, live[0], z, live[1])[1], True)[0]

    return implicit_solution(functools.partial(_iterate, c), live_step)


def solve_levels(
    c: Subproblems, s: PyTree, tolerances: IterationBounds, kept: StageTangent | None = None,
    carried: CarriedTangent | None = None,
) -> tuple[tuple[LevelUnknowns, ...], Array, Array, CarriedTangent | None]:  # fmt: skip
    """Solution of subproblems from zero: unknowns, number of linear solves, whether they have converged,
    and the last tangent if one was given.

    Args:
        c: the subproblems.
        s: the prediction, or the data of a single subproblem.
        tolerances: bounds that end the iteration.
        kept: linearised dynamics of a single subproblem of a model for which they are constant.
        carried: tangent of an earlier step, or of `blank_tangent`; not for subproblems in turn.
    """
    tolerances = dataclasses.replace(tolerances, scale=lax.stop_gradient(tolerances.scale))
    z, (count, solved, after) = _solver(c)((s, tolerances, kept, carried))
    return z, count if c.monolithic else len(c.levels) * count, solved, after
