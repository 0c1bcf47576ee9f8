"""Data of the subproblems of the nonsmooth generalized-alpha family: the step, the smooth motion, the
total state, and the forces there.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from nsjax.contact import GivenNormals
from nsjax.contact.projection import position_rows
from nsjax.core.operators import Rows, all_rows, no_rows
from nsjax.core.system import System
from nsjax.types import Array, PyTree, record


@record()
class Prediction:
    """Data of a step before its subproblems are solved.

    Args:
        params, dt: params of the model, and step size [s].
        t: end of the step.
        q: (nq,) position at its start.
        xi, v: (nv,) predicted increment of the position and velocity, without the unknown.
        c1, c2: ``dv/dt = c1 delta`` and position increment ``xi + c2 delta`` of the unknown ``delta``.
        scale: characteristic mass [kg].
        creep: (nc, nt) see `PositionLevel` [N s^2].
        restitution: (rows,) ``e G(q_n) v_n`` of contact and bilateral rows.
        friction: (nc,).
        given: given normal impulses of the step, if there are any.
        held: (2, nc) impulses of contacts on position [N s^2] and velocity [N s] that the accelerations in
            memory contain, if contacts act on accelerations (`Smooth.contacts`).
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
    given: GivenNormals | None = None
    held: Array | None = None


@record()
class Smooth:
    """The smooth motion at the end of the step: position, velocity, acceleration, and the whole force
    there, including that of the bilateral multipliers ``lam`` [N]. If contacts act on accelerations: their
    forces ``push`` (nc,) [N], and their impulses ``contacts`` (2, nc) on position and velocity that the
    smooth motion contains.
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
    """Smooth position, velocity and acceleration for the unknown ``delta``, [C (44)]."""
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
    """The `Smooth` motion for the other subproblems, with the bilateral multipliers ``lam`` (nb,) [N]."""
    q, v, a = smooth_motion(system, s, delta)
    return Smooth(q=q, v=v, a=a, lam=lam, force=whole_force(system, s, q, v, lam))


def rows_at(system: System, s: Prediction, q: Array) -> Rows:
    """All rows at a position at the end of the step."""
    if not system.nc and not system.nb:
        return no_rows(system)
    return all_rows(system, s.t, q, s.params)


def total_state(system: System, s: Prediction, q: Array, active: Array) -> Total:
    """`Total` at the corrected position, with the characteristic mass for all multipliers."""
    return Total(q=q, rows=rows_at(system, s, q), active=active, masses=s.scale)
