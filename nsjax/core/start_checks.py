"""What a start must fulfil: ranges of numbers, promised structure, bounds on penetration and drift."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax import status
from nsjax.core.arguments import impossible, negative, signed
from nsjax.core.errors import InputError
from nsjax.core.operators import (
    Joints,
    Rows,
    contact_rows,
    gap_drift,
    gap_rows,
    kinetic_energy,
    momentum,
    prepared,
    refreshed,
    row_rates,
    touching,
)
from nsjax.core.scheme import Scheme
from nsjax.core.step import inertia_at, mass_matrix, saddle
from nsjax.core.system import State, System, bordered, is_local, residuals, row_groups
from nsjax.jaxtools.cache import kept_call
from nsjax.jaxtools.compilation import compiled_once
from nsjax.jaxtools.owned import compiled_for
from nsjax.jaxtools.precision import least_tolerance
from nsjax.linalg import Local, interleaving, matvec
from nsjax.linalg.blocks import magnitude, product_diagonal
from nsjax.linalg.dense import unit_matrix
from nsjax.types import Array, PyTree, is_traced

# Bounds on how far inside walls, and off its constraints, a time-stepping scheme may leave a state.


@compiled_for("system")
def overshoot(system: System, params: PyTree, state: State, dt: Array) -> dict[str, Array]:
    """Depths, residuals and rates that steps of the size ``dt`` may leave at ``state``.

    A scheme tests a gap or a constraint once a step, so that a motion with the rate ``u`` passes it by up
    to ``dt u``. A method of first order has an error of ``dt^2 / 2`` times the acceleration in every step,
    of ``dt t / 2`` times it after ``t / dt`` steps. With ``W'`` the direction of the row, ``w`` the rate of
    moving obstacles, and sums of magnitudes of all terms::

        u0    = sqrt(2 T W' M^-1 W) + |w|       the fastest rate of the kinetic energy T
        a     = |W'| |M^-1 h| + |gamma|         acceleration by loads and along the motion
        depth = dt (u0 + |t| a)
        rate  = dt a                            of constraints, fulfilled at the midpoint of a step

    An impact may have taken away the speed with which the body passed its wall: ``t a`` is the speed that
    the loads have given since ``t = 0``. At ``t = 0`` a body at rest may not be inside a wall. ``dt``: step
    size [s].

    Returns:
        ``"beyond gap"`` (nc,) [m], ``"beyond constraint"`` (nb,) and ``"beyond rate"`` (nb,), as far as the
        system has them; zero where they are not finite (a mass without inverse).

    Limits: bodies thrown at a wall that takes all their speed, without loads that could have given it, may
    lie deeper.
    """
    system, t, q = bordered(system), jnp.asarray(state.t), state.q
    p = refreshed(system, t, q, prepared(system, params))
    found: dict[str, Array] = {}
    if system.nc:
        if is_local(system) or system.islands or system.changing_contacts:
            rows, groups = contact_rows(system, t, q, p), row_groups(system)
            normal = Rows(wt=groups.normals_of(rows.wt), offset=groups.normals(rows.offset))
        else:
            normal = gap_rows(system, "gap", t, q, p)
        found["beyond gap"], _ = _row(system, p, state, dt, "gap", normal)
    if system.nb:
        rows = gap_rows(system, "constraint", t, q, p)
        found["beyond constraint"], found["beyond rate"] = _row(system, p, state, dt, "constraint", rows)
    return {name: jnp.where(jnp.isfinite(x), x, 0.0) for name, x in found.items()}


def _row(
    system: System, p: PyTree, state: State, dt: Array, function: str, rows: Rows
) -> tuple[Array, Array]:
    """Depths and rates of the rows of a function of the system."""
    t, q, v = jnp.asarray(state.t), state.q, state.v
    inertia, push = inertia_at(system, t, q, p), system.force(t, q, v, p)
    size = magnitude(rows.wt)
    if isinstance(rows.wt, Local):  # of thousands of nodes: responses are not formed
        free = inertia.solve(push[:, None])[:, 0]
        fastest = matvec(size, jnp.full_like(v, jnp.max(jnp.abs(v))))
    else:
        free, response = inertia.answers(push, rows)
        fastest = jnp.sqrt(2.0 * kinetic_energy(system, q, v, p) * product_diagonal(rows.wt, response))
    load = matvec(size, jnp.abs(free)) + jnp.abs(gap_drift(system, t, q, v, p, function))
    return dt * (fastest + jnp.abs(rows.offset) + jnp.abs(t) * load), dt * load


# Tests whether a system has the structure that it promises, along random directions.


TOLERANCE = 1e-9
"""Relative error of a promise, or asymmetry of a mass matrix, that is accepted: between rounding and the
effect of a missing entry."""


def _off(found: Array, wanted: Array, least: Array | float = 0.0) -> Array:
    """Largest difference relative to the size of the wanted values, or to ``least`` if this is larger."""
    size = jnp.maximum(jnp.max(jnp.abs(wanted)), least)
    return jnp.max(jnp.abs(found - wanted)) / jnp.where(size > 0.0, size, 1.0)


def _functions(system: System, state: State, p: PyTree, xi: Array, dv: Array) -> dict[str, Any]:
    """Inertia, and force over position and over velocity, as functions (nv,) -> (nv,) at a moved state."""
    t, q, v = state.t, system.retract(state.q, xi), state.v + dv
    return {
        "inertia": lambda w: momentum(system, q, w, p),
        "force over the positions": lambda x: system.force(t, system.retract(q, x), v, p),
        "force over the velocities": lambda x: system.force(t, q, v + x, p),
    }


def _directions(system: System) -> tuple[Array, Array]:
    """Two velocities (nv,) along which functions are tested."""
    number = jnp.arange(system.nv)
    return jnp.cos(1.0 * number * number), jnp.sin(3.0 * number * number + 1.0)


def weighed(system: System, state: State, p: PyTree) -> dict[str, Array]:
    """Twice the kinetic energy along a direction, of dense systems also of single velocities; skew part."""
    x, y = _directions(system)
    if not system.structure.dense:
        mx, my = (momentum(system, state.q, w, p) for w in (x, y))
        energy = jnp.sum(x * mx)
        return {"energy": energy, "skew": jnp.abs(jnp.sum(y * mx) - jnp.sum(x * my)) / energy}
    mass = mass_matrix(system, state.q, p)
    each, energy = jnp.sum(mass * unit_matrix(system.nv), axis=1), jnp.sum(x * matvec(mass, x))
    skew = jnp.max(jnp.abs(mass - mass.T)) / energy
    return {"energy": jnp.concatenate([each, energy[None]]), "skew": skew}


def sampled(system: System, state: State, p: PyTree) -> dict[str, Array]:
    """Numbers for `check_promises`; empty for a structure that promises nothing."""
    structure, rest = system.structure, jnp.zeros(system.nv)
    x, y = _directions(system)
    found: dict[str, Array] = {}

    def along(f: Callable[[Array], Array]) -> Array:
        return jax.jvp(f, (rest,), (x,))[1]

    here = _functions(system, state, p, rest, rest)
    if not structure.dense:
        # gyroscopic moments of equal inertias cancel; their rounding error is no coupling
        turning = jnp.max(jnp.abs(here["inertia"](x))) * jnp.max(jnp.abs(state.v))
        for name, f in here.items():
            least = turning if name == "force over the velocities" else 0.0
            product = structure.times(structure.tangent(f, rest), x)
            found[f"outside: {name}"] = _off(product, along(f), least)
        if system.inside:
            whole, both = saddle(system, jnp.asarray(state.t), state.q, p), jnp.concatenate([x, y])
            zero = jnp.zeros(system.nv + system.inside)
            both, with_joints = both[: zero.shape[0]], interleaving(structure).saddle
            matrix = with_joints.tangent(whole, zero)
            wanted = jax.jvp(whole, (zero,), (both,))[1]
            found["outside: joints"] = _off(with_joints.times(matrix, both), wanted)
        found |= _apart(system, state, p, x)
    if system.rows is not None:
        at = jnp.asarray(state.t)
        rate, count = contact_rows(system, at, state.q, p).rate(x), row_groups(system).ends[2]
        found["rows: contacts"] = _off(rate, row_rates(system, at, state.q, x, p)[:count])
    if system.frictionless and system.nt:
        friction = system.law(p).friction_of(system.nc)[system.nc - system.frictionless :]
        found["frictionless: friction"] = jnp.max(jnp.abs(friction))
    if structure.constant:
        # distance (in the units of q and v) over which a state is moved to test whether the tangent changes
        step = 1e-2
        moved = _functions(system, state, p, step * y, step * x)
        for name, f in here.items():
            found[f"changes: {name}"] = _off(along(moved[name]), along(f))
        for name, count in (("gap", system.nc), ("constraint", system.nb)):
            if count:
                places = state.q, system.retract(state.q, step * y)
                wt = [gap_rows(system, name, jnp.asarray(state.t), q, p).wt for q in places]
                found[f"changes: directions of the {name}"] = _off(wt[1], wt[0])
    return found


def _apart(system: System, state: State, p: PyTree, x: Array) -> dict[str, Array]:
    """Amount by which rates of contacts depend on velocities outside of their islands or bodies."""
    if not system.islands and not system.changing_contacts:
        return {}
    t = jnp.asarray(state.t)
    rows, rest = contact_rows(system, t, state.q, p), jnp.zeros(system.nv)
    whole = lambda v: row_rates(system, t, state.q, v, p)  # noqa: E731
    what = "islands" if system.islands else "pairs"
    return {f"{what}: contacts": _off(rows.rate(x) - rows.offset, whole(x) - whole(rest))}


def check_promises(system: System, found: dict[str, np.ndarray]) -> None:
    """Refuses a model without the promised structure, or whose inertia is not positive."""
    kind = type(system.structure).__name__
    for name, value in found.items():
        what, _, of = name.partition(": ")
        if what == "outside" and not value <= TOLERANCE:
            raise InputError(
                f"structure: the tangent of the {of} is not {kind}: products with it are wrong by "
                f"{value:.3g} of their size; give a wider block or pattern that contains all couplings"
            )
        if what == "islands" and not value <= TOLERANCE:
            raise InputError(
                f"islands: rates of the {of} depend on velocities of other parts, by {value:.3g} of their "
                "size; order contacts part by part, or leave islands out"
            )
        if what == "rows" and not value <= TOLERANCE:
            raise InputError(
                f"rows: rates of the {of} differ from those of gap and slip by {value:.3g} of their size; "
                "check rows, or leave them out, and gap and slip are differentiated"
            )
        if what == "pairs" and not value <= TOLERANCE:
            raise InputError(
                f"pairs: rates of the {of} by the directions differ from those of gap and slip by "
                f"{value:.3g} of their size; check directions and bodies"
            )
        if what == "frictionless" and value != 0.0:
            raise InputError(
                f"System: frictionless = {system.frictionless}, but friction of the law is {value:.3g} in "
                "the last of the contacts; order contacts with friction first, or leave frictionless out"
            )
        if what == "changes" and not value <= TOLERANCE:
            raise InputError(
                f"structure: constant = True, but the {of} has a tangent that changes with the state, by "
                f"{value:.3g} of its size; leave constant out"
            )
        if what == "energy" and not value > 0:
            raise InputError(
                f"inertia is not positive definite at the start: v M v = {value:.6g} for some v; every "
                "velocity needs inertia (check masses, lengths and their signs)"
            )
        if what == "skew" and not value <= TOLERANCE:
            raise InputError(f"inertia is not symmetric at the start: v M w - w M v = {value:.3g} of v M v")


# Values that the checks of a start need, in one compiled call.


def _bend(function: Any, state: State, p: PyTree) -> Array:
    """Second difference of a rate with the velocity, relative to its size: zero if the rate is affine."""
    number = jnp.arange(state.v.shape[0])
    aside = (1.0 + jnp.max(jnp.abs(state.v))) * jnp.cos(1.0 * number * number)
    three = jax.vmap(lambda s: function(state.t, state.q, state.v + s * aside, p))(jnp.arange(-1.0, 2.0))
    size = jnp.max(jnp.abs(three))
    return jnp.max(jnp.abs(three[0] - 2.0 * three[1] + three[2])) / jnp.where(size > 0.0, size, 1.0)


def probe(
    system: System, params: PyTree, state: State, promises: bool = True, mechanics: bool = True
) -> dict[str, Any]:
    """Everything whose value is checked at the start; without ``promises`` only what numbers decide, not
    what the functions of the system promise, and without ``mechanics`` those of its laws alone.
    """
    p = prepared(system, params)
    if mechanics:
        p = refreshed(system, jnp.asarray(state.t), state.q, p)
    found: dict[str, Any] = {}
    if promises and system.structure.dense:
        found["mass"] = mass_matrix(system, state.q, p)
    elif mechanics:
        found |= weighed(system, state, p)
    if promises:
        found |= sampled(system, state, p)
    if mechanics and system.gap is not None:
        gap = system.gap(state.t, state.q, p)
        # contacts that may not act count as open, whatever their gaps
        found["gap"] = jnp.where(touching(system, state.t, state.q, p, gap, 0.0), gap, jnp.abs(gap))
    if mechanics and system.nb:
        found["constraint"] = residuals(system, jnp.asarray(state.t), state.q, p)
        found |= _constraint_rates(system, state, p)
    for name in ("slip", "dry_friction", "velocity_constraint") if promises else ():
        if getattr(system, name) is not None:
            found[f"{name}: bend"] = _bend(getattr(system, name), state, p)
    if system.dry_friction_bound is not None and system.dry_friction_law is None:
        found["dry_friction_bound"] = jnp.asarray(system.dry_friction_bound(p), float)
    if system.law is not None:
        law = system.law(p)
        found["restitution"] = law.restitution
        found["restitution_tangential"] = law.restitution_tangential
        found["friction"] = law.friction
        if law.by_speed:  # of `nsjax.contact.SpeedLaw`; laws of users may have other numbers
            more = {name: getattr(law, name, None) for name in BY_SPEED}
            found |= {name: jnp.asarray(x, float) for name, x in more.items() if x is not None}
    return found


@compiled_for("system", make=compiled_once)
def probed(system: System, params: PyTree, state: State) -> dict[str, Any]:
    """`probe` in one compiled call, outside transformations."""
    return kept_call(probe, system, params, state)


def _constraint_rates(system: System, state: State, p: PyTree) -> dict[str, Any]:
    """Rates of the constraints, sums of the magnitudes of their terms, and rows checked with the mass."""
    t, v, inside = jnp.asarray(state.t), state.v, system.inside
    rows = gap_rows(system, "constraint", t, state.q, p, first=inside)
    found: dict[str, Any] = {"constraint_rows": rows.wt} if system.structure.dense else {}
    rate, size = rows.rate(v), jnp.sum(jnp.abs(rows.wt) * jnp.abs(v), axis=1) + jnp.abs(rows.offset)
    if inside:
        joints = Joints(system=system, t=t, q=state.q, params=p)
        structure = interleaving(system.structure).saddle
        still, rest = joints.rate(jnp.zeros_like(v)), jnp.zeros(system.nv + inside)
        matrix = jax.tree.map(jnp.abs, structure.tangent(saddle(system, t, state.q, p), rest))
        speed = jnp.concatenate([jnp.abs(v), jnp.zeros(inside)])
        rate = jnp.concatenate([joints.rate(v), rate])
        size = jnp.concatenate([structure.times(matrix, speed)[system.nv :] + jnp.abs(still), size])
    return found | {"rate": rate, "rate_size": size}


# Ranges of the numbers of a start: one table for single runs, for sweeps and for programs.
#
# Outside transformations `nsjax.core.checks` turns what is out of range into sentences. Inside them
# nothing can raise: `examined` gives status bits, and a start that is not a number, so that every loop of
# the run ends at once and derivatives are not numbers either.


CONSTRAINT_TOLERANCE = 1e-8
"""Largest violation of a constraint by a computed start, and of its rate relative to its terms; a state of
a run may violate them by more."""

BY_SPEED = ("friction_sliding", "friction_speed", "restitution_speed")
"""Numbers of contact laws that depend on the speed."""

BITS = {
    status.REFUSED_LAW: (
        "restitution", "restitution_tangential", "friction", "dry_friction_bound", *BY_SPEED,
    ),
    status.REFUSED_MASS: ("mass", "energy", "skew"),
    status.REFUSED_START: ("gap", "constraint", "rate"),
}  # fmt: skip
"""Status bits of numbers out of range, by the names that `nsjax.core.start_checks.probe` gives them."""

Found = dict[str, Any]
"""Results of `nsjax.core.start_checks.probe`, and of `overshoot` if it was called."""


def violation(name: str, found: Found) -> Any:
    """Amounts by which gaps, constraints or rates of a start violate their laws; at most zero: they do not.

    Example:
        >>> import numpy as np
        >>> from nsjax.core.start_checks import violation
        >>> violation("gap", {"gap": np.array([-0.5, 1.0])}).round(6).tolist()
        [0.5, -1.0]
    """
    x, beyond = found[name], found.get(f"beyond {name}", 0.0)
    least = least_tolerance()
    if name == "gap":
        # [m], rounding of a start placed in contact; a state that a scheme has left may lie deeper
        return -x - beyond - max(1e-9, least)
    if name == "constraint":
        return abs(x) - beyond - max(CONSTRAINT_TOLERANCE, least)
    size = found["rate_size"]
    largest = (jnp if isinstance(size, jax.Array) else np).max(size, initial=0.0)
    # violation on velocity level that is allowed relative to the largest of all rows, a thousand roundings:
    # a row that follows from others may have only terms of rounding
    rounding = 1e-13
    return abs(x) - max(CONSTRAINT_TOLERANCE, least) * size - beyond - rounding * largest


def within(name: str, found: Found, singular: bool = False) -> Any:
    """Whether numbers are in their range, bool of their shape, of a mass (); not a number is in no range.

    Args:
        name: entry of ``found``; names without a range, such as ``rate_size``, have none to leave.
        found: of one start.
        singular: whether the scheme takes a singular mass that constraints hold.
    """
    x, what = found[name], name.partition(":")[0]
    if what in ("restitution", "restitution_tangential"):
        return (x >= 0) & (x <= 1)
    if what in ("friction", "dry_friction_bound", "friction_sliding"):
        return x >= 0
    if what in ("friction_speed", "restitution_speed"):
        return x > 0
    if what in ("slip", "dry_friction", "velocity_constraint"):
        return x <= max(CONSTRAINT_TOLERANCE, least_tolerance())
    if what in ("outside", "changes", "skew", "islands", "rows", "pairs"):
        return x <= TOLERANCE
    if what == "frictionless":
        return x == 0
    if what == "energy":
        return x >= 0 if singular else x > 0
    if what == "mass":
        return _positive(x, found.get("constraint_rows") if singular else None)
    if what in ("gap", "constraint", "rate"):
        return violation(name, found) <= 0.0
    return np.ones((), bool)


def held(mass: Any, rows: Any) -> Any:
    """Whether constraints, as springs of the size of the mass, hold all velocities without inertia."""
    xp = jnp if isinstance(mass, jax.Array) else np
    size, stiff = xp.max(abs(mass)), xp.max(xp.sum(rows * rows, axis=1))
    both = mass / xp.where(size > 0, size, 1.0) + rows.T @ rows / xp.where(stiff > 0, stiff, 1.0)
    smallest = xp.linalg.eigvalsh(both)[0]
    # eigenvalue, relative to the largest entry, up to which one counts as zero
    zero = 1e-8
    return (size > 0) & (xp.linalg.eigvalsh(mass)[0] >= -zero * size) & (smallest > zero)


def definite(mass: Any) -> Any:
    """Whether a finite symmetric matrix is positive definite, after scaling its diagonal to one."""
    xp = jnp if isinstance(mass, jax.Array) else np
    own = xp.diagonal(mass)
    scale = xp.where(own > 0, 1.0 / xp.sqrt(xp.where(own > 0, own, 1.0)), 0.0)
    return xp.all(own > 0) & (xp.linalg.eigvalsh(scale[:, None] * mass * scale)[0] > 0)


def _positive(mass: Array, rows: Array | None) -> Array:
    """Whether a mass matrix is finite, symmetric and positive definite, or held by constraint rows."""
    finite = jnp.isfinite(mass).all()
    m = jnp.where(finite, mass, 0.0)
    symmetric = jnp.max(abs(m - m.T)) <= TOLERANCE * jnp.max(abs(m))
    good = definite(m)
    return finite & symmetric & (good if rows is None else good | held(m, rows))


def sound(found: Found, singular: bool) -> Array:
    """Whether all numbers of a start are in their ranges, () bool."""
    return jnp.all(jnp.stack([jnp.all(within(name, found, singular)) for name in found]))


def examined(
    system: System, params: PyTree, state: State, scheme: Scheme, dt: Array
) -> tuple[State, Array | None]:
    """Start of a run inside transformations, and status bits of numbers that are refused outside of them,
    or zero; None if they have values and are good. A refused start is not a number, nor are its derivatives
    by all numbers of the run.

    Numbers without a trace are left out, except where values of the model at the start depend on them, and
    what a model promises about its functions.
    """
    traced = [x for x in jax.tree.leaves((params, state, scheme.coef, dt)) if is_traced(x)]
    floats = [x for x in traced if jnp.issubdtype(x.dtype, jnp.floating)]
    named = [(jax.tree_util.keystr(k), x) for k, x in jax.tree_util.tree_leaves_with_path(scheme.coef)]
    own = [(x, y) for _, x, y in signed(params)]
    own += [(x, False) for name, x in named if "tolerance" in name and "gap" not in name]
    alike: dict[tuple[bool, Any], list[Array]] = {}  # numbers of one shape are looked at together
    for x, moments in ((x, y) for x, y in own if is_traced(x)):
        # a number that is traced here may have a value without its derivative
        alike.setdefault((moments, jnp.shape(x)), []).append(lax.stop_gradient(x))
    given = lax.stop_gradient((params, state, dt, floats))
    bits = _start_bits(system, scheme.traits.singular_mass, least_tolerance(), *given[:3])
    bits = _all_bits(tuple(moments for moments, _ in alike), [*alike.values()], given[3], given[2], bits)
    if not is_traced(bits) and not int(bits):
        return state, None
    lost = jnp.sum(jnp.where(bits == 0, 0.0, jnp.nan) * jnp.concatenate([*map(jnp.ravel, (dt, *floats))]))
    return State(t=state.t, q=state.q + lost, v=state.v + lost), bits


@functools.partial(jax.jit, static_argnums=0)
def _all_bits(
    moments: tuple[bool, ...], alike: list[list[Array]], floats: list[Array], dt: Array, bits: Array
) -> Array:
    """Status of a start with those bits, or of signs of numbers, or of numbers that are not finite."""
    below = [~(dt > 0.0)]
    for inertia, some in zip(moments, alike, strict=True):
        each = jnp.stack(some)
        below.append(jnp.any(negative(each, 1)))
        below += [jnp.any(impossible(each, 1))] if inertia else []
    bits = bits | jnp.where(jnp.any(jnp.stack(below)), status.REFUSED_NEGATIVE, 0)
    finite = jnp.isfinite(jnp.concatenate([*map(jnp.ravel, (dt, *floats))])).all()
    bits = jnp.where(finite, bits, status.REFUSED_NOT_FINITE)
    # the first bit is the most basic reason, the others mostly follow from it
    return jnp.where(bits == 0, 0, bits & -bits | status.REFUSED)


@compiled_for("system", "singular", "least")
def _start_bits(
    system: System, singular: bool, least: float, params: PyTree, state: State, dt: Array
) -> Array:
    """Status bits of law, mass and start; ``least`` tells programs of either precision apart. The mass must
    be positive along each velocity and along a direction of all: eigenvalues would call a library. Of
    mechanisms the law alone: signs of their numbers are known, and a look at the rest costs as much as the
    mechanics.
    """
    whole = system.parts is None
    found = probe(system, params, state, mechanics=whole, promises=False)
    if whole:
        found |= overshoot(system, params, state, dt)
    bits = jnp.asarray(0)
    for bit, names in BITS.items():
        good = [jnp.all(within(name, found, singular)) for name in names if name in found]
        bits = bits | jnp.where(jnp.all(jnp.asarray(good, bool)), 0, bit)
    return bits
