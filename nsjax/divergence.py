"""Detects runs that have diverged, or passed a wall, by their rows, after the run.

The rows of an eager run are examined if its speeds have grown by far. Where motion that is too fast for the
step has far more energy than the loads can have put into it, `nsjax.status.DIVERGED` is set. Rows of runs
inside JAX transformations and of sweeps are not examined.

Limits: energy that a step puts into slow motion is not distinguished from work of forces. A ball that gains
speed with every bounce on a stiff spring, because a bounce has too few steps, is not detected.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax import status
from nsjax.core.inertia import added_momentum
from nsjax.core.operators import momentum
from nsjax.core.system import System, gap_units
from nsjax.impact_energy import rise_in_run
from nsjax.loop import RunState
from nsjax.stability import is_conditional, local_model
from nsjax.startup.once import compiled_once
from nsjax.startup.owned import compiled_for
from nsjax.types import Array, PyTree

UNEXPLAINED = 4.0
"""Ratio of energy to the energy that is explained, from which on a run counts as diverged: twice the speed.
In a stable run the ratio is at most about one; near the stability limit it is two for parts of a period."""

GROWN = float(np.sqrt(UNEXPLAINED))
"""The same ratio for schemes without a stability limit, after a start in motion: no warning stands before
such runs. In stiff nonlinear motion they gain energy in some steps and lose it in others: speeds of a bob
on a spring of 1,000 rad/s grow 3- to 40-fold with steps of 0.02 to 0.2 s."""

DEEP = 1e-2
"""Least length [m] of a start, and so least penetration by which a wall counts as passed; chosen: ten times
``dt^2 g`` of a step of 10 ms, in which a body that rests on a wall may fall."""

NOT_FINITE = (
    status.MASS_NOT_FINITE | status.FORCE_NOT_FINITE | status.GAP_NOT_FINITE | status.STATE_NOT_FINITE
)
"""Status bits of values that are not finite."""


@compiled_for("system", "implicit", make=compiled_once)
def _row_energies(
    system: System, params: PyTree, start: tuple[Array, Array, Array], rows: tuple[Array, ...],
    implicit: bool,
) -> tuple[Array, ...]:  # fmt: skip
    """Energies and frequencies of the motion in every row of a run.

    Args:
        start: ``t``, ``q``, ``v`` of the start.
        rows: ``t``, ``q``, ``v`` of the rows.
        implicit: whether the scheme takes `System.damping` implicitly; this part is then no part of ``c``.

    Returns:
        For every row (rows,): kinetic energy [J]; ``omega^2 = v K v / v M v``; ``c = v C v / v M v``; and
        ``f M^-1 f`` with the loads ``f`` at the time of the row and the position of the start.
    """

    def look(t: Array, q: Array, v: Array) -> tuple[Array, ...]:
        here = local_model(system, params, t, q, v)
        twice = jnp.sum(v * momentum(system, q, v, here.params))
        w2, c = jnp.sum(v * here.force_change(v[None])[:, 0], axis=1)
        if implicit:
            c = c - jnp.sum(v * added_momentum(system.damping(t, q, v, here.params), v))  # type: ignore[misc]
        over = jnp.where(twice > 0.0, twice, 1.0)
        then = local_model(system, params, t, *start[1:])
        push = system.force(t, *start[1:], then.params)
        return 0.5 * twice, w2 / over, c / over, jnp.sum(push * then.free(then.inertia()[1])(push))

    return lax.map(lambda row: look(*row), rows)


def _finite_rows(rows: dict[str, Any]) -> int:
    """Number of rows before the first one that is not finite."""
    finite = np.all(np.isfinite(rows["q"]), axis=1) & np.all(np.isfinite(rows["v"]), axis=1)
    return len(finite) if finite.all() else int(np.argmin(finite))


def _has_grown(rows: dict[str, Any], speeds: np.ndarray, conditional: bool) -> bool:
    """Whether a run that has moved has speeds that grew by the factor 10, or `GROWN`,
    or that are not finite. Only then are its energies examined, which evaluates the functions of the model.
    """
    last = _finite_rows(rows)
    if last < len(rows["t"]):
        return True
    far = np.max(np.abs(rows["q"] - rows["q"][0]), initial=0.0)
    # of the largest coordinate, thousands of roundings: speeds of bodies that lie on each other are
    # roundings, whose growth says nothing
    rests = 1e-12
    if far <= rests * np.max(np.abs(rows["q"]), initial=0.0):
        return False
    usual = speeds[0] if speeds[0] > 0.0 else np.median(speeds)
    # ratio of the largest speed of a run to that at its start (to the median, after a start at rest), from
    # which on its energies are examined
    outstanding = 10.0
    factor = outstanding if conditional or speeds[0] == 0.0 else GROWN
    return bool(np.max(speeds) > factor * usual)


def diverged_row(
    system: System, params: PyTree, rows: dict[str, Any], dt: float, implicit: bool = False
) -> int | None:
    """The first row whose motion is too fast for the step and has energy that nothing explains.

    Motion is too fast if ``omega dt`` is above one, half of the limit of explicit schemes. Its energy is
    explained by the energy of the start and of earlier rows with slower motion, and by loads, which give a
    motion at most the speed ``2 |M^-1 f| / omega``. Above `UNEXPLAINED` times that it is not.

    Args:
        system, params: the model.
        rows: ``t``, ``q``, ``v`` of the run.
        dt: step size [s].
        implicit: whether the scheme takes `System.damping` implicitly.

    Returns:
        Index of the row among ``rows``, of which 128 are examined; None if there is no such row.
    """
    last = _finite_rows(rows) - 1
    if last < 1:
        return None
    # evenly spaced, the last finite row among them; their program is compiled without optimisation, which
    # took half of the first call of a robot
    examined = 128
    some = np.unique(np.linspace(0, last, examined).astype(int))
    some = np.concatenate([some, np.full(examined - len(some), last)])
    start = tuple(np.asarray(rows[name][0]) for name in "tqv")
    looked = _row_energies(
        system, params, start, tuple(np.asarray(rows[name])[some] for name in "tqv"), implicit
    )
    energy, w2, damping, push = (np.asarray(x) for x in looked)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        fast = w2 * dt * dt + 2.0 * damping * dt > 1.0
        there = np.maximum.accumulate(np.where(fast & (some > 0), 0.0, energy))
        given = 2.0 * np.maximum.accumulate(push) / np.maximum(w2, damping**2)
        # an energy that overflows counts as infinite
        far = fast & ~(energy <= UNEXPLAINED * (np.sqrt(there) + np.sqrt(given)) ** 2)
    return int(some[np.argmax(far)]) if far.any() else None


def passed(rows: dict[str, Any], units: tuple[str, ...]) -> tuple[int, int] | None:
    """The first row and contact with a penetration above all coordinates and gaps of the start, the largest
    of which is at least `DEEP`: a step that lets a body go so deep does not see the wall. Or None.

    A scheme tests gaps once a step, so that a body at the speed ``u`` goes up to ``dt u`` deep. What is
    deep depends on the size of a body. A system does not tell it: its coordinates and gaps at the start do.

    Args:
        rows: ``q`` and ``gap_min``, and ``gap`` where it is saved.
        units: of the gaps; those in radians are not looked at.
    """
    if rows.get("gap_min") is None or "m" not in units:
        return None
    metres = np.array(units) == "m"
    least, q = np.asarray(rows["gap_min"]), np.abs(np.asarray(rows["q"][0]))
    begin = np.abs(least[0] if rows.get("gap") is None else np.asarray(rows["gap"][0]))
    size = max(np.max(q, initial=0.0), np.max(begin, initial=0.0, where=metres & np.isfinite(begin)))
    if size < DEEP:  # a start at the origin, on its walls, has no length
        return None
    deep = np.argwhere((least < -size) & metres & np.isfinite(least))
    return (int(deep[0, 0]), int(deep[0, 1])) if len(deep) else None


def with_findings(call: Any, warned: bool, rows: dict[str, Any], run: RunState) -> RunState:
    """The end of an eager run, with the status bits of `nsjax.status` that its rows show: ``DIVERGED``,
    ``ENERGY_ROSE`` at an impact, ``WALL_PASSED`` within a step.

    Args:
        call: the run, a `nsjax.simulate.Call`.
        warned: whether `warn_of_step` has warned before the run.
        rows: all rows of the run.
        run: the end of the run.
    """
    system, scheme, speeds = call.program.system, call.scheme, np.max(np.abs(rows["v"]), axis=1)
    if warned or _has_grown(rows, speeds, is_conditional(scheme)):
        row = diverged_row(system, call.params, rows, float(run.next.dt), scheme.implicit_damping)
        if row is not None or (warned and int(run.status) & NOT_FINITE):
            run = _marked(call, rows, run, row, status.DIVERGED)
    row = rise_in_run(system, call.params, rows, speeds)
    if row is not None:
        run = _marked(call, rows, run, row, status.ENERGY_ROSE, int(np.argmax(rows["impacts"][row])))
    looked = system.nc and not int(run.status)  # what failed before may lie anywhere
    found = passed(rows, gap_units(system)) if looked else None
    return run if found is None else _marked(call, rows, run, found[0], status.WALL_PASSED, found[1])


def _marked(
    call: Any, rows: dict[str, Any], run: RunState, row: int | None, bit: int, contact: int = -1
) -> RunState:
    """The run with a status bit that belongs to a row, or to the first failure if that is not known."""
    bits, first = int(run.status), run.first_failure
    step = None if row is None else int(run.next.index) - (len(rows["t"]) - 1 - row) * call.every
    if step is not None and (not bits or step <= int(first.step)):
        found = {"step": step, "time": rows["t"][row], "status": bit, "contact": contact}
    else:
        found = {"status": int(first.status) | bit}
    plain: dict[str, Any] = {name: np.asarray(x) for name, x in found.items()}
    union: Any = np.asarray(bits | bit)
    return dataclasses.replace(run, status=union, first_failure=dataclasses.replace(first, **plain))
