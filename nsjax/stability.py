"""Stability of a run: a warning before it if its step is too large, and what its rows show after it.

The fastest motion of the model is estimated at the start of an eager run, or of the problem that a sweep
varies. If the scheme is not stable for it, the user is warned. Runs inside JAX transformations are not
examined. `nsjax.stability` examines a run afterwards.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax import schemes, status
from nsjax.core.errors import InputError
from nsjax.core.operators import gap_rows, momentum, prepared, refreshed
from nsjax.core.scheme import Scheme
from nsjax.core.step import SystemState, added_momentum, heavier, inertia_at, mass_matrix
from nsjax.core.system import State, System, gap_units
from nsjax.jaxtools.cache import kept_call
from nsjax.jaxtools.compilation import compiled_once
from nsjax.jaxtools.owned import compiled_for, latest
from nsjax.loop import RunState
from nsjax.report import rise_in_run
from nsjax.schemes.amplification import spectral_radius
from nsjax.types import Array, PyTree, record


@dataclasses.dataclass(frozen=True)
class FastestModes:
    """The fastest motions of a model at a state: the mode of largest stiffness and that of largest damping.

    With the stiffness, damping and mass matrices ``K``, ``C``, ``M`` and a mode ``x``:

    Args:
        stiffness: (2,) ``omega^2 = x K x / x M x`` of both [1/s^2]; zero where the force does not restore.
        damping: (2,) ``c = x C x / x M x`` of both [1/s]: twice the damping ratio times the frequency.
        implicit: (2,) ``d = x D x / x M x`` of both [1/s]: the part of ``c`` that the scheme takes
            implicitly, see `System.damping`.
    """

    stiffness: np.ndarray
    damping: np.ndarray
    implicit: np.ndarray

    def explicit_limit(self) -> float:
        """Largest stable step of Moreau's rule [s].

        With the mass ``M + dt D`` its condition is ``omega^2 dt^2 + 2 c dt <= 4 (1 + d dt)``. The limit of
        other explicit schemes with one force evaluation per step is at least as large.
        """
        w2, c = self.stiffness, self.damping - 2.0 * self.implicit
        root = np.sqrt(c * c + 4.0 * w2)
        # without cancellation where damping is implicit
        slope = np.where(c < 0.0, 4.0 * w2 / np.where(c < 0.0, root - c, 1.0), root + c)
        return float(np.min(np.divide(4.0, slope, out=np.full(2, np.inf), where=slope > 0.0)))


@record(static=("system",))
class LocalModel:
    """Products with the stiffness and damping matrices at a state: directional derivatives of the force.

    ``added`` is the part ``dt D`` of the mass from damping that the scheme takes implicitly.
    """

    system: System
    params: PyTree
    state: State
    added: Array | None = None

    def force_change(self, x: Array) -> Array:
        """``K x`` and ``C x`` (2, n, nv) for vectors ``x`` (n, nv), from one copy of the force."""
        t, q, v, p, system = self.state.t, self.state.q, self.state.v, self.params, self.system
        rest = jnp.zeros(system.nv)

        def force(xi: Array, dv: Array) -> Array:
            return system.force(t, system.retract(q, xi), v + dv, p)

        def along(xi: Array, dv: Array) -> Array:
            return -jax.jvp(force, (rest, rest), (xi, dv))[1]

        none = jnp.zeros_like(x)
        both = jax.vmap(along)(jnp.concatenate([x, none]), jnp.concatenate([none, x]))
        return both.reshape(2, *x.shape)

    def inertia(self) -> tuple[Any, Any]:
        """``x -> M x`` (nv,), and ``b -> M^-1 b`` (nv,) or (nv, k), which keeps eliminated joints."""
        system, q, p = self.system, self.state.q, self.params
        if not system.structure.dense:
            solve = inertia_at(system, self.state.t, q, p).solve
            return (
                lambda x: momentum(system, q, x, p),
                lambda b: solve(b) if b.ndim == 2 else solve(b[:, None])[:, 0],
            )
        matrix = mass_matrix(system, q, p)
        if self.added is not None:
            matrix = heavier(matrix, self.added)
        factor = jax.scipy.linalg.cho_factor(matrix)
        return lambda x: matrix @ x, lambda b: jax.scipy.linalg.cho_solve(factor, b)

    def free(self, solve: Any) -> Any:
        """``b -> P M^-1 b`` (nv,): acceleration by a force along motions that constraints allow."""
        system = self.system
        closures = system.nb - system.inside
        if not closures:
            return solve
        t, q = jnp.asarray(self.state.t), self.state.q
        rows = gap_rows(system, "constraint", t, q, self.params, first=system.inside).jacobian()
        answer = solve(rows.T)
        # constraints may depend on each other: pseudo-inverse
        inner = jnp.linalg.pinv(rows @ answer, hermitian=True)

        def motion(b: Array) -> Array:
            x = solve(b)
            return x - answer @ (inner @ (rows @ x))

        return motion


def local_model(
    system: System, params: PyTree, t: Array, q: Array, v: Array, dt: Array | None = None
) -> LocalModel:  # fmt: skip
    """`LocalModel` at a state. With ``dt`` its mass contains damping that such steps take implicitly."""
    ready = refreshed(system, t, q, prepared(system, params))
    at = SystemState(system=system, params=ready, state=State(t=t, q=q, v=v))
    added = None if dt is None else dt * at.damping()
    return LocalModel(system=system, params=ready, state=at.state, added=added)


@compiled_for("system", make=compiled_once)
def _fastest(
    system: System, params: PyTree, t: Array, q: Array, v: Array, dt: Array | None
) -> tuple[Array, Array | None]:  # fmt: skip
    """Stiffness and damping of the fastest modes, in a compiled program; see `_by_power`."""
    return kept_call(_by_power, system, params, t, q, v, dt)


def _by_power(
    system: System, params: PyTree, t: Array, q: Array, v: Array, dt: Array | None
) -> tuple[Array, Array | None]:  # fmt: skip
    """The modes of largest stiffness and of largest damping by the power method.

    Returns:
        ``x K x`` and ``x C x`` of both modes (2, 2), relative to ``x (M + dt D) x``; and ``x dt D x`` of
        both (2,), relative to the same, or None without ``dt``.
    """
    model = local_model(system, params, t, q, v, dt)
    weigh, solve = model.inertia()
    free = jax.vmap(model.free(solve))
    number = jnp.arange(system.nv)
    change_of = model.force_change
    # iterations of the power method. It approaches the largest frequency from below; for a mesh of 100
    # elements, whose frequencies are densest at the top, to 1 to 2 %. The largest stable step is
    # overestimated by as much
    iterations = 40
    if system.structure.dense and system.nv <= 2 * iterations:
        # the force along all directions once, in place of two directions in each iteration
        matrices = model.force_change(jnp.eye(system.nv))
        change_of = lambda x: x @ matrices  # noqa: E731

    def better(_: Any, both: tuple[Array, Array]) -> tuple[Array, Array]:
        x, _ = both
        size = jnp.sqrt(jnp.sum(x * jax.vmap(weigh)(x), axis=1))
        x = x / jnp.where(size > 0.0, size, 1.0)[:, None]
        change = change_of(x)
        y = free(jnp.stack([change[0, 0], change[1, 1]]))
        return jnp.where(jnp.any(y != 0.0, axis=1, keepdims=True), y, x), jnp.sum(x * change, axis=2)

    begin = free(jnp.broadcast_to(jnp.cos(1.0 * number * number), (2, system.nv)))
    x, found = lax.fori_loop(0, iterations, better, (begin, jnp.zeros((2, 2))))
    if model.added is None:
        return found, None
    heavy = jax.vmap(lambda y: y @ added_momentum(model.added, y))(x)  # type: ignore[arg-type]
    return found, heavy / jnp.sum(x * jax.vmap(weigh)(x), axis=1)


@latest
def fastest(system: System, params: PyTree, state: State, dt: float | None = None) -> FastestModes | None:
    """The fastest motions at a state among those that the bilateral constraints allow; None if the estimate
    is not finite. Contacts count as open, since they may open during the run. ``dt``: step size [s] of a
    scheme that takes `System.damping` implicitly; None for other schemes.
    """
    at = (np.asarray(x) for x in (state.t, state.q, state.v))
    answer = _fastest(system, params, *at, None if dt is None else np.asarray(dt))
    found, part = (np.asarray(0.0 if x is None else x) for x in answer)
    if not (np.all(np.isfinite(found)) and np.all(np.isfinite(part))):
        return None
    # relative to the mass without damping
    w2, c = np.maximum(found, 0.0) / (1.0 - part)
    implicit = np.broadcast_to(part / (1.0 - part) / (dt or 1.0), (2,))
    return FastestModes(stiffness=w2, damping=c, implicit=implicit)


def is_conditional(scheme: Scheme) -> bool:
    """Whether the scheme may have a largest stable step.

    That is so for registered schemes with a stability limit, for Newmark's scheme with numbers outside its
    unconditionally stable range, for `ggl_unified` with explicit forces, and for every scheme that is not
    registered. The other registered schemes refuse numbers for which they are not unconditionally stable.
    """
    entry = schemes.REGISTRY.get(scheme.name)
    if entry is None or entry.stability_limit is not None:
        return True
    coef: Any = scheme.coef
    if scheme.name == "ggl_unified":
        return bool(scheme.options.force == "explicit")
    return scheme.name == "newmark" and not 2.0 * coef.beta >= coef.gamma >= 0.5


def largest_step(scheme: Scheme, modes: FastestModes, dt: float) -> float | None:
    """The largest stable step below ``dt`` [s], by the spectral radius of the scheme.

    Returns:
        The step [s]. None if ``dt`` is stable, and for a scheme with a memory but without
        `nsjax.schemes.building.Traits.accelerations`, whose spectral radius is not known.
    """
    limit = modes.explicit_limit()
    if dt <= limit:
        return None
    if scheme.traits.implicit_damping:
        return limit
    omega = np.maximum(np.sqrt(modes.stiffness), 1e-3 * modes.damping)
    keep = omega > 0.0
    omega, ratio = omega[keep], (modes.damping[keep] / 2.0) / omega[keep]
    steps = np.geomspace(limit, dt, 65)
    try:
        radius = spectral_radius(scheme, omega * steps[:, None], ratio)
    except InputError:
        return None
    # excess of the spectral radius over one that counts as unstable: above the error of the amplification
    # matrix
    growth = 1e-5
    stable = np.all(radius <= 1.0 + growth, axis=1)
    if stable[-1]:
        return None
    return float(steps[max(0, int(np.argmin(stable)) - 1)])


def warn_of_step(system: System, params: PyTree, state: State, scheme: Scheme, dt: Any) -> bool:
    """Warns before a run or a sweep if its step is above the largest stable one.

    The limit is an estimate at one state with open contacts. It may change during the motion of a nonlinear
    model. ``dt``: step size [s], or (lanes,) of a sweep.
    """
    if not is_conditional(scheme):
        return False
    sizes = np.asarray(dt, float)
    largest = float(np.max(sizes))
    modes = fastest(system, params, state, largest if scheme.traits.implicit_damping else None)
    step = None if modes is None else largest_step(scheme, modes, largest)
    if modes is None or step is None:
        return False
    why = f"fastest oscillation {np.sqrt(np.max(modes.stiffness)):.4g} rad/s"
    if np.max(modes.damping) * step > 0.1:
        why += f", strongest damping {np.max(modes.damping):.4g} 1/s"
    what, where = f"simulate: dt = {largest:g} s", "at the start"
    if sizes.ndim:
        above = np.count_nonzero(sizes > step)
        what = f"sweep: dt of {above} of {sizes.size} lanes, up to {largest:g} s,"
        where = "for the problem that is varied, at its start"
    warnings.warn(
        f"{what} is above the largest stable step of {scheme.name} for this model, about {step:.3g} s "
        f"(estimated {where}: {why}); a run diverges wherever this motion is excited. Take a smaller dt, "
        f"{_stable_at(system, params, state, scheme, largest)}or an implicit scheme, "
        "schemes.generalized_alpha() for instance",
        stacklevel=3,
    )
    return True


def _stable_at(system: System, params: PyTree, state: State, scheme: Scheme, dt: float) -> str:
    """Part of a warning that suggests implicit damping; empty if the scheme is not stable with it."""
    may = getattr(scheme.options, "joint_damping", "implicit") == "explicit"
    if not may or system.damping is None or not system.structure.dense:
        return ""
    modes = fastest(system, params, state, dt)
    if modes is None or dt > modes.explicit_limit():
        return ""
    return f'or joint_damping="implicit" of {scheme.name}, which is stable at this dt, '


# Detects runs that have diverged, or passed a wall, by their rows, after the run.
#
# The rows of an eager run are examined if its speeds have grown by far. Where motion that is too fast for
# the step has far more energy than the loads can have put into it, `nsjax.status.DIVERGED` is set. Rows
# of runs inside JAX transformations and of sweeps are not examined.
#
# Limits: energy that a step puts into slow motion is not distinguished from work of forces. A ball that
# gains speed with every bounce on a stiff spring, because a bounce has too few steps, is not detected.


UNEXPLAINED = 4.0
"""Ratio of energy to the energy that is explained, from which on a run counts as diverged: twice the speed.
In a stable run the ratio is at most about one; near the stability limit it is two for parts of a period."""

GROWN = float(np.sqrt(UNEXPLAINED))
"""The same ratio for schemes without a stability limit, after a start in motion: no warning stands before
such runs. In stiff nonlinear motion they gain energy in some steps and lose it in others: speeds of a bob
on a spring of 1,000 rad/s grow 3- to 40-fold with steps of 0.02 to 0.2 s."""

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
    """Whether a run that has moved gained speed by the factor 10, or `GROWN`; then energies are read."""
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
    """Index among ``rows`` (``t``, ``q``, ``v`` of the run; 128 are examined) of the first one whose motion
    is too fast for the step ``dt`` and has energy that nothing explains; None if there is no such row.
    ``implicit``: whether the scheme takes `System.damping` implicitly.

    Motion is too fast if ``omega dt`` is above one, half of the limit of explicit schemes. Its energy is
    explained by the energy of the start and of earlier rows with slower motion, and by loads, which give a
    motion at most the speed ``2 |M^-1 f| / omega``. Above `UNEXPLAINED` times that it is not.
    """
    last = _finite_rows(rows) - 1
    if last < 1:
        return None
    # evenly spaced, the last finite row among them; their program is compiled without optimisation
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
    of which is at least 1 cm: a step that lets a body go so deep does not see the wall. Or None.

    A scheme tests gaps once a step, so that a body at the speed ``u`` goes up to ``dt u`` deep. What is
    deep depends on the size of a body. A system does not tell it: its coordinates and gaps at the start do.
    ``rows``: ``q`` and ``gap_min``, and ``gap`` where it is saved; ``units``: of the gaps; those in radians
    are not looked at.
    """
    if rows.get("gap_min") is None or "m" not in units:
        return None
    metres = np.array(units) == "m"
    least, q = np.asarray(rows["gap_min"]), np.abs(np.asarray(rows["q"][0]))
    begin = np.abs(least[0] if rows.get("gap") is None else np.asarray(rows["gap"][0]))
    size = max(np.max(q, initial=0.0), np.max(begin, initial=0.0, where=metres & np.isfinite(begin)))
    # a start at the origin, on its walls, has no length; a body that rests on a wall may fall within a step
    # of 10 ms, by a tenth of this one
    if size < 1e-2:
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
        row = diverged_row(system, call.params, rows, float(run.next.dt), scheme.traits.implicit_damping)
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
