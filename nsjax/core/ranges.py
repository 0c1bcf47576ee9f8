"""Ranges of the numbers of a start: one table for single runs, for sweeps and for programs.

Outside transformations `nsjax.core.checks` turns what is out of range into sentences. Inside them nothing
can raise: `examined` gives status bits, and a start that is not a number, so that every loop
of the run ends at once and derivatives are not numbers either.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax import status
from nsjax.core import promises
from nsjax.core.overshoot import overshoot
from nsjax.core.probe import probe
from nsjax.core.scheme import Scheme
from nsjax.core.signs import impossible, negative, signed
from nsjax.core.system import State, System
from nsjax.startup.owned import compiled_for
from nsjax.types import Array, PyTree

PENETRATION_TOLERANCE = 1e-9
"""A start may lie this deep inside an obstacle [m]: rounding of a start placed in contact. A state that a
scheme has left may lie deeper, see `nsjax.core.overshoot`.
"""

CONSTRAINT_TOLERANCE = 1e-8
"""A start may violate a bilateral constraint by this much: rounding of a computed start. A state that a
scheme has left may violate it by more."""

SKEW_TOLERANCE = 1e-9
"""Relative asymmetry that a mass matrix may have: far above rounding, far below a modelling error."""

RATE_TOLERANCE = 1e-8
"""A start may violate a constraint on velocity level by this much, relative to the terms of the rate."""

BITS = {
    status.REFUSED_LAW: ("restitution", "restitution_tangential", "friction", "drag_bound"),
    status.REFUSED_MASS: ("mass", "energy", "skew"),
    status.REFUSED_START: ("gap", "constraint", "rate"),
}
"""Status bits of numbers out of range, by the names that `nsjax.core.probe.probe` gives them."""

Found = dict[str, Any]
"""Results of `nsjax.core.probe.probe`, and of `overshoot` if it was called: arrays of numpy or of jax."""


def violation(name: str, found: Found) -> Any:
    """Amounts by which gaps, constraints or rates of a start violate their laws; at most zero: they do not.

    Example:
        >>> import numpy as np
        >>> from nsjax.core.ranges import violation
        >>> violation("gap", {"gap": np.array([-0.5, 1.0])}).round(6).tolist()
        [0.5, -1.0]
    """
    x, beyond = found[name], found.get(f"beyond {name}", 0.0)
    if name == "gap":
        return -x - beyond - PENETRATION_TOLERANCE
    if name == "constraint":
        return abs(x) - beyond - CONSTRAINT_TOLERANCE
    size = found["rate_size"]
    largest = (jnp if isinstance(size, jax.Array) else np).max(size, initial=0.0)
    # violation on velocity level that is allowed relative to the largest of all rows, a thousand roundings:
    # a row that follows from others may have only terms of rounding
    rounding = 1e-13
    return abs(x) - RATE_TOLERANCE * size - beyond - rounding * largest


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
    if what in ("friction", "drag_bound"):
        return x >= 0
    if what in ("slip", "drag", "velocity_constraint"):
        return x <= RATE_TOLERANCE
    if what in ("outside", "changes", "skew", "islands", "rows", "pairs"):
        return x <= promises.TOLERANCE
    if what == "smooth":
        return x == 0
    if what == "energy":
        return x >= 0 if singular else x > 0
    if what == "mass":
        return _positive(x, found.get("constraint_rows") if singular else None)
    if what in ("gap", "constraint", "rate"):
        return violation(name, found) <= 0.0
    return np.ones((), bool)


def held(mass: Any, rows: Any) -> Any:
    """Whether constraints hold all velocities without inertia: they count as springs whose stiffness is of
    the size of the mass.
    """
    xp = jnp if isinstance(mass, jax.Array) else np
    size, stiff = xp.max(abs(mass)), xp.max(xp.sum(rows * rows, axis=1))
    both = mass / xp.where(size > 0, size, 1.0) + rows.T @ rows / xp.where(stiff > 0, stiff, 1.0)
    smallest = xp.linalg.eigvalsh(both)[0]
    return (
        (size > 0) & (xp.linalg.eigvalsh(mass)[0] >= -RATE_TOLERANCE * size) & (smallest > RATE_TOLERANCE)
    )


def _positive(mass: Array, rows: Array | None) -> Array:
    """Whether a mass matrix is finite, symmetric and positive definite, or held by constraint rows."""
    finite = jnp.isfinite(mass).all()
    m = jnp.where(finite, mass, 0.0)
    symmetric = jnp.max(abs(m - m.T)) <= SKEW_TOLERANCE * jnp.max(abs(m))
    good = jnp.linalg.eigvalsh(m)[0] > 0
    return finite & symmetric & (good if rows is None else good | held(m, rows))


def sound(found: Found, singular: bool) -> Array:
    """Whether all numbers of a start are in their ranges, () bool."""
    return jnp.all(jnp.stack([jnp.all(within(name, found, singular)) for name in found]))


def examined(
    system: System, params: PyTree, state: State, scheme: Scheme, dt: Array
) -> tuple[State, Array]:
    """Start of a run inside transformations, and status bits of numbers that are refused outside of them,
    or zero. A refused start is not a number, nor are its derivatives by all numbers of the run.

    Numbers without a trace are left out, except where values of the model at the start depend on them. What
    a model promises about its functions, and not its numbers, is not looked at.
    """
    numbers = _traced_numbers((params, state, scheme.coef, dt))
    given = lax.stop_gradient((params, state, scheme.coef, dt))
    named = [(jax.tree_util.keystr(place), x) for place, x in jax.tree_util.tree_leaves_with_path(given[2])]
    own = [(x, y) for _, x, y in signed(given[0])]
    own += [(x, False) for name, x in named if "tolerance" in name and "gap" not in name]
    alike: dict[Any, list[Array]] = {}  # numbers of one shape are looked at together
    for x, moments in own:
        if isinstance(x, jax.core.Tracer):
            alike.setdefault((jnp.shape(x), moments), []).append(x)
    below = [~(given[3] > 0.0)]
    for (_, moments), some in alike.items():
        each = jnp.stack(some)
        below.append(jnp.any(negative(each, 1)))
        below += [jnp.any(impossible(each, 1))] if moments else []
    bits = jnp.where(jnp.any(jnp.stack(below)), status.REFUSED_NEGATIVE, 0)
    bits = bits | _start_bits(system, scheme.singular_mass, *given[:2], given[3])
    bits = jnp.where(jnp.all(jnp.isfinite(lax.stop_gradient(numbers))), bits, status.REFUSED_NOT_FINITE)
    first = bits & -bits  # the most basic reason, the others mostly follow from it
    lost = jnp.sum(jnp.where(bits == 0, 0.0, jnp.nan) * numbers)
    bits = jnp.where(bits == 0, 0, first | status.REFUSED)
    return State(t=state.t, q=state.q + lost, v=state.v + lost), bits


@compiled_for("system", "singular")
def _start_bits(system: System, singular: bool, params: PyTree, state: State, dt: Array) -> Array:
    """Status bits of law, mass and start. The mass must be positive along each velocity and along a
    direction of all: eigenvalues would call a library in every lane of a batch.

    Of mechanisms of the law alone: their mass follows from numbers whose signs are known, and a look at
    mass, walls and constraints costs as much as the mechanics several times (of an ant 5,300 operations,
    beside 7,200 of a run).
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


def _traced_numbers(tree: PyTree) -> Array:
    """All traced floats of a tree, in one vector."""
    leaves = [x for x in jax.tree.leaves(tree) if isinstance(x, jax.core.Tracer)]
    floats = [jnp.ravel(x) for x in leaves if jnp.issubdtype(x.dtype, jnp.floating)]
    return jnp.concatenate(floats) if floats else jnp.zeros(0)
