"""Runs that are worthless because the step is too large: looked at before a run, and after it.

Nothing of this is part of a compiled run. Runs inside transformations are not looked at, and of sweeps the
problem that they vary is before, and nothing after.
Before an eager run the fastest motion of the model is estimated at one state; a scheme that is not stable
there is warned of. After it, rows whose speeds stand out are looked at: where motion faster than the step
holds far more energy than was there, `nsjax.status.DIVERGED` is set.

Limits: energy that a step puts into slow motion is not told from work of forces: a ball that gains speed
with every bounce on a stiff spring, met by too few steps, is not flagged.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax import status
from nsjax.core.errors import InputError
from nsjax.core.inertia import added_momentum, heavier, inertia_at, mass_matrix
from nsjax.core.operators import gap_rows, momentum, prepared, refreshed
from nsjax.core.scheme import Scheme
from nsjax.core.step import SystemState
from nsjax.core.system import State, System
from nsjax.loop import RunState
from nsjax.schemes.amplification import spectral_radius
from nsjax.schemes.registry import REGISTRY
from nsjax.startup.lowered import kept_call
from nsjax.startup.once import compiled_once
from nsjax.types import Array, PyTree, record

ITERATIONS = 40
"""Iterations of the power method. It approaches the largest frequency from below, to 1 to 2 % for a mesh
of 100 elements, whose frequencies lie densest at the top. The limit is overestimated by as much."""

GROWTH = 1e-5
"""Spectral radius above one that counts as unstable: above the error of the amplification matrix."""

FAR = 4.0
"""Energy over what was there that counts as diverged: twice the speeds. A stable run keeps to one, and
near its limit doubles the energy of a mode for parts of its period."""

OUTSTANDING = 10.0
"""Speeds of a run over that of its start (or the median, after a start at rest) from which on it is looked
at: a run is not wrong by a factor of ten unseen."""

NOT_FINITE = (
    status.MASS_NOT_FINITE | status.FORCE_NOT_FINITE | status.GAP_NOT_FINITE | status.STATE_NOT_FINITE
)

LOOKED_AT = 256
"""Rows of a run that are looked at, evenly spaced, the last finite one among them."""


@dataclasses.dataclass(frozen=True)
class Fastest:
    """The fastest motions of a model at a state: that of its stiffness, and that of its damping.

    Args:
        stiffness (2,): ``omega^2`` of both [1/s^2], zero where the force does not restore.
        damping (2,): ``c = x C x / x M x`` of both [1/s], twice damping ratio times frequency.
        implicit (2,): ``d = x D x / x M x`` of both [1/s], the part of ``c`` that is taken implicitly.
    """

    stiffness: np.ndarray
    damping: np.ndarray
    implicit: np.ndarray

    def explicit_limit(self) -> float:
        """Largest step of Moreau's rule [s]: with the mass ``M + dt D``
        ``omega^2 dt^2 + 2 c dt <= 4 (1 + d dt)``. Other explicit schemes of one force a step allow this
        much or more.
        """
        w2, c = self.stiffness, self.damping - 2.0 * self.implicit
        root = np.sqrt(c * c + 4.0 * w2)
        # without cancellation where damping is implicit
        slope = np.where(c < 0.0, 4.0 * w2 / np.where(c < 0.0, root - c, 1.0), root + c)
        return float(np.min(np.divide(4.0, slope, out=np.full(2, np.inf), where=slope > 0.0)))


@record(static=("system",))
class _Model:
    """Stiffness and damping at a state, as products: directional derivatives of the force. ``added`` to the
    mass is ``dt D`` of damping that is taken implicitly.
    """

    system: System
    params: PyTree
    state: State
    added: Array | None = None

    def force_change(self, x: Array) -> Array:
        """``K x`` and ``C x`` of vectors (n, nv): (2, n, nv), from one copy of the force."""
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
        """``x -> M x`` (nv,), and ``b -> M^-1 b`` (nv,) or (nv, k), joints inside the structure holding."""
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
        """``b -> P M^-1 b`` (nv,), what a force does to a motion that the constraints allow."""
        system = self.system
        closures = system.nb - system.inside
        if not closures:
            return solve
        t, q = jnp.asarray(self.state.t), self.state.q
        rows = gap_rows(system, "constraint", t, q, self.params, first=system.inside).jacobian()
        answer = solve(rows.T)
        # dependent constraints: the inverse where there is one
        inner = jnp.linalg.pinv(rows @ answer, hermitian=True)

        def motion(b: Array) -> Array:
            x = solve(b)
            return x - answer @ (inner @ (rows @ x))

        return motion


def _at(
    system: System, params: PyTree, t: Array, q: Array, v: Array, dt: Array | None = None
) -> _Model:  # fmt: skip
    """At a state; with damping that steps of the size ``dt`` take implicitly."""
    ready = refreshed(system, t, q, prepared(system, params))
    at = SystemState(system=system, params=ready, state=State(t=t, q=q, v=v))
    added = None if dt is None else dt * at.damping()
    return _Model(system=system, params=ready, state=at.state, added=added)


@functools.partial(compiled_once, static_argnames=("system",))
def _fastest(
    system: System, params: PyTree, t: Array, q: Array, v: Array, dt: Array | None
) -> tuple[Array, Array | None]:  # fmt: skip
    """``omega^2`` and ``c``, each (2,), of the modes of the largest stiffness and the largest damping, over
    the mass of a step ``dt``; and ``x dt D x`` of both.
    """
    return kept_call(_by_power, system, params, t, q, v, dt)


def _by_power(
    system: System, params: PyTree, t: Array, q: Array, v: Array, dt: Array | None
) -> tuple[Array, Array | None]:  # fmt: skip
    """By the power method."""
    model = _at(system, params, t, q, v, dt)
    weigh, solve = model.inertia()
    free = jax.vmap(model.free(solve))
    number = jnp.arange(system.nv)

    def better(_: Any, both: tuple[Array, Array]) -> tuple[Array, Array]:
        x, _ = both
        size = jnp.sqrt(jnp.sum(x * jax.vmap(weigh)(x), axis=1))
        x = x / jnp.where(size > 0.0, size, 1.0)[:, None]
        change = model.force_change(x)
        y = free(jnp.stack([change[0, 0], change[1, 1]]))
        return jnp.where(jnp.any(y != 0.0, axis=1, keepdims=True), y, x), jnp.sum(x * change, axis=2)

    begin = free(jnp.broadcast_to(jnp.cos(1.0 * number * number), (2, system.nv)))
    x, found = lax.fori_loop(0, ITERATIONS, better, (begin, jnp.zeros((2, 2))))
    if model.added is None:
        return found, None
    heavy = jax.vmap(lambda y: y @ added_momentum(model.added, y))(x)  # type: ignore[arg-type]
    return found, heavy / jnp.sum(x * jax.vmap(weigh)(x), axis=1)


def fastest(system: System, params: PyTree, state: State, dt: float | None = None) -> Fastest | None:
    """The fastest motions at a state, of motions that the bilateral constraints allow; None where they
    cannot be told. Closed contacts hold nothing here, since they may open.

    Args:
        dt: step size of a scheme that takes `System.damping` implicitly [s]; None: of one that does not.
    """
    at = (np.asarray(x) for x in (state.t, state.q, state.v))
    answer = _fastest(system, params, *at, None if dt is None else np.asarray(dt))
    found, part = (np.asarray(0.0 if x is None else x) for x in answer)
    if not (np.all(np.isfinite(found)) and np.all(np.isfinite(part))):
        return None
    # over the mass without damping
    w2, c = np.maximum(found, 0.0) / (1.0 - part)
    implicit = np.broadcast_to(part / (1.0 - part) / (dt or 1.0), (2,))
    return Fastest(stiffness=w2, damping=c, implicit=implicit)


def is_conditional(scheme: Scheme) -> bool:
    """Whether the scheme may have a largest stable step: those with a limit, Newmark's with such numbers,
    and all that are not the package's, whose numbers are refused else.
    """
    entry = REGISTRY.get(scheme.name)
    if entry is None or entry.stability_limit is not None:
        return True
    coef: Any = scheme.coef
    return scheme.name == "newmark" and not 2.0 * coef.beta >= coef.gamma >= 0.5


def largest_step(scheme: Scheme, modes: Fastest, dt: float) -> float | None:
    """The largest stable step below ``dt`` [s], from the scheme's own amplification; None if ``dt`` is
    stable, or if the scheme does not say what it carries.
    """
    limit = modes.explicit_limit()
    if dt <= limit:
        return None
    if scheme.implicit_damping:
        return limit
    omega = np.maximum(np.sqrt(modes.stiffness), 1e-3 * modes.damping)
    keep = omega > 0.0
    omega, ratio = omega[keep], (modes.damping[keep] / 2.0) / omega[keep]
    steps = np.geomspace(limit, dt, 65)
    try:
        radius = spectral_radius(scheme, omega * steps[:, None], ratio)
    except InputError:
        return None
    stable = np.all(radius <= 1.0 + GROWTH, axis=1)
    if stable[-1]:
        return None
    return float(steps[max(0, int(np.argmin(stable)) - 1)])


def warn_of_step(
    system: System, params: PyTree, state: State, scheme: Scheme, dt: Any, *, stacklevel: int = 3
) -> bool:
    """Warns before a run, or a sweep of steps ``dt`` (lanes,), above the largest stable one, and says
    whether any is.

    The limit is an estimate: that of one state, with contacts open. A nonlinear model may leave it.
    """
    if not is_conditional(scheme):
        return False
    sizes = np.asarray(dt, float)
    largest = float(np.max(sizes))
    modes = fastest(system, params, state, largest if scheme.implicit_damping else None)
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
        stacklevel=stacklevel,
    )
    return True


def _stable_at(system: System, params: PyTree, state: State, scheme: Scheme, dt: float) -> str:
    """Says whether the scheme is stable at ``dt`` with damping of joints taken implicitly."""
    may = getattr(scheme.options, "joint_damping", "implicit") == "explicit"
    if not may or system.damping is None or not system.structure.dense:
        return ""
    modes = fastest(system, params, state, dt)
    if modes is None or dt > modes.explicit_limit():
        return ""
    return f'or joint_damping="implicit" of {scheme.name}, which is stable at this dt, '


@functools.partial(jax.jit, static_argnames=("system", "implicit"))
def _looks(
    system: System, params: PyTree, start: tuple[Array, Array, Array], rows: tuple[Array, ...],
    implicit: bool,
) -> tuple[Array, ...]:  # fmt: skip
    """For every row: kinetic energy, ``omega^2`` and ``c`` of its motion, and the square of ``M^-1 f`` in
    the norm of the mass, with ``f`` the loads at the time of the row and the position of the start. Damping
    that is taken implicitly does not count in ``c``.
    """

    def look(t: Array, q: Array, v: Array) -> tuple[Array, ...]:
        here = _at(system, params, t, q, v)
        twice = jnp.sum(v * momentum(system, q, v, here.params))
        w2, c = jnp.sum(v * here.force_change(v[None])[:, 0], axis=1)
        if implicit:
            c = c - jnp.sum(v * added_momentum(system.damping(t, q, v, here.params), v))  # type: ignore[misc]
        over = jnp.where(twice > 0.0, twice, 1.0)
        then = _at(system, params, t, *start[1:])
        push = system.force(t, *start[1:], then.params)
        return 0.5 * twice, w2 / over, c / over, jnp.sum(push * then.free(then.inertia()[1])(push))

    return lax.map(lambda row: look(*row), rows)


def _finite_rows(rows: dict[str, Any]) -> int:
    """Rows before the first that is not finite."""
    finite = np.all(np.isfinite(rows["q"]), axis=1) & np.all(np.isfinite(rows["v"]), axis=1)
    return len(finite) if finite.all() else int(np.argmin(finite))


def _has_grown(rows: dict[str, Any]) -> bool:
    """Whether speeds of a run stand out: the models' functions are asked about such runs alone."""
    last = _finite_rows(rows)
    if last < len(rows["t"]):
        return True
    speeds = np.max(np.abs(rows["v"]), axis=1)
    usual = speeds[0] if speeds[0] > 0.0 else np.median(speeds)
    return bool(np.max(speeds) > OUTSTANDING * usual)


def diverged_row(
    system: System, params: PyTree, rows: dict[str, Any], dt: float, implicit: bool = False
) -> int | None:
    """The first of the rows looked at whose motion no scheme can follow and that holds `FAR` times the
    energy that was there and that loads can have put into such motion; None if there is none.

    Motion is too fast with ``omega dt`` beyond one, half of what explicit schemes follow. What was there:
    the start, and rows of slower motion. Loads at the start put at most the speed ``2 |M^-1 f| / omega``
    into a motion.

    Args:
        rows: ``t``, ``q``, ``v``.
        dt: step size [s].
        implicit: whether the scheme takes `System.damping` implicitly.
    """
    last = _finite_rows(rows) - 1
    if last < 1:
        return None
    some = np.unique(np.linspace(0, last, LOOKED_AT).astype(int))
    some = np.concatenate([some, np.full(LOOKED_AT - len(some), last)])
    start = tuple(np.asarray(rows[name][0]) for name in "tqv")
    looked = _looks(system, params, start, tuple(np.asarray(rows[name])[some] for name in "tqv"), implicit)
    energy, w2, damping, push = (np.asarray(x) for x in looked)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        fast = w2 * dt * dt + 2.0 * damping * dt > 1.0
        there = np.maximum.accumulate(np.where(fast & (some > 0), 0.0, energy))
        given = 2.0 * np.maximum.accumulate(push) / np.maximum(w2, damping**2)
        # an energy that overflows counts as infinite
        far = fast & ~(energy <= FAR * (np.sqrt(there) + np.sqrt(given)) ** 2)
    return int(some[np.argmax(far)]) if far.any() else None


def judged(call: Any, warned: bool, rows: dict[str, Any], run: RunState) -> RunState:
    """An eager run after its end, with `nsjax.status.DIVERGED` where its rows show it.

    Args:
        call: what was run, a `nsjax.simulate.Call`.
        warned: what `warn_of_step` said of the start.
        rows: all rows of the run.
        run: its end.
    """
    if not warned and not _has_grown(rows):
        return run
    dt, implicit = float(run.next.dt), call.scheme.implicit_damping
    row = diverged_row(call.program.system, call.params, rows, dt, implicit)
    bits, first = int(run.status), run.first_failure
    if row is None and not (warned and bits & NOT_FINITE):
        return run
    step = None if row is None else int(run.next.index) - (len(rows["t"]) - 1 - row) * call.every
    if step is not None and (not bits or step <= int(first.step)):
        found = {"step": step, "time": rows["t"][row], "status": status.DIVERGED, "contact": -1}
    else:
        found = {"status": int(first.status) | status.DIVERGED}
    plain: dict[str, Any] = {name: np.asarray(x) for name, x in found.items()}
    union: Any = np.asarray(bits | status.DIVERGED)
    return dataclasses.replace(run, status=union, first_failure=dataclasses.replace(first, **plain))
