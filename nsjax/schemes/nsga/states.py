"""What the subproblems of the nonsmooth generalized-alpha family know: the step, the smooth motion, the
total state, and the forces there.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact import Given
from nsjax.contact.projection import position_rows
from nsjax.core.operators import Rows, all_rows, no_rows
from nsjax.core.system import System
from nsjax.types import Array, PyTree, record


@record()
class Prediction:
    """What a step knows before anything is solved.

    Args:
        params, dt: of the model and the run.
        t: end of the step.
        q: (nq,) position at its start.
        xi, v: (nv,) predicted increment of the position and velocity, without the unknown.
        c1, c2: ``dv/dt = c1 delta`` and position increment ``xi + c2 delta`` of the unknown ``delta``.
        scale: characteristic mass [kg].
        creep: (nc, nt) see `PositionLevel` [N s^2].
        restitution: (rows,) ``e G(q_n) v_n`` of contact and bilateral rows.
        friction: (nc,).
        given: normal impulses of the step that are given, if any.
        held: (2, nc) impulses of contacts on position [N s^2] and velocity [N s] that remembered
            accelerations contain, where contacts act on these (`Smooth.contacts`).
    """

    params: PyTree
    dt: Array
    t: Array
    q: Array
    xi: Array
    v: Array
    c1: Array
    c2: Array
    scale: Array
    creep: Array
    restitution: Array
    friction: Array
    given: Given | None = None
    held: Array | None = None


@record()
class Smooth:
    """The smooth motion at the end of the step: position, velocity, acceleration, and the whole force
    there, that of the bilateral multipliers ``lam`` [N] included. Where contacts act on accelerations:
    their forces ``push`` (nc,) [N], and ``contacts`` (2, nc) the impulses on position and velocity that
    the smooth motion contains of them.
    """

    q: Array
    v: Array
    a: Array
    lam: Array
    force: Array
    push: Array | None = None
    contacts: Array | None = None


@record()
class Total:
    """A total state with the rows there, the contacts (nc,) bool that may carry an impulse, and the masses
    (rows,) or () that scale their multipliers [kg].
    """

    q: Array
    rows: Rows
    active: Array
    masses: Array


def smooth_motion(system: System, s: Prediction, delta: Array) -> tuple[Array, Array, Array]:
    """Smooth position, velocity and acceleration of the unknown, [C (44)]."""
    return system.retract(s.q, s.xi + s.c2 * delta), s.v + delta, s.c1 * delta


def bilateral_forces(system: System, s: Prediction, q: Array, x: Array, nc: int = 0) -> Array:
    """``G(q)' x`` (nv,) of the gaps (if ``nc``) and the constraints."""
    if not nc and not system.nb:
        return jnp.zeros(system.nv)
    rest = jnp.zeros(system.nv)
    work = lambda xi: jnp.sum(x * position_rows(system, s.t, (q, xi), s.params, nc))  # noqa: E731
    return jax.grad(work)(rest)


def whole_force(system: System, s: Prediction, q: Array, v: Array, lam: Array) -> Array:
    """``f(q, v) + G_b(q)' lam``."""
    return system.force(s.t, q, v, s.params) + bilateral_forces(system, s, q, lam)


def decided(on: Array) -> Array:
    """A decision, without derivative."""
    return lax.stop_gradient(on)


def smooth_state(system: System, s: Prediction, delta: Array, lam: Array) -> Smooth:
    """What the other subproblems read of the smooth motion; ``lam`` [N]."""
    q, v, a = smooth_motion(system, s, delta)
    return Smooth(q=q, v=v, a=a, lam=lam, force=whole_force(system, s, q, v, lam))


def rows_at(system: System, s: Prediction, q: Array) -> Rows:
    """All rows at a position at the end of the step."""
    if not system.nc and not system.nb:
        return no_rows(system)
    return all_rows(system, s.t, q, s.params)


def total_state(system: System, s: Prediction, q: Array, active: Array) -> Total:
    """Rows at the corrected position, scaled by the characteristic mass."""
    return Total(q=q, rows=rows_at(system, s, q), active=active, masses=s.scale)
