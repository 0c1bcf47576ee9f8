"""Equations of motion from a kinetic and a potential energy."""

from __future__ import annotations

import dataclasses
import functools

import jax

from nsjax.types import Array, Fn, PyTree


@dataclasses.dataclass(frozen=True)
class Lagrangian:
    """Mass matrix, force and potential derived from energies; made by `from_lagrangian`."""

    kinetic: Fn
    energy: Fn | None
    generalized: Fn | None

    def mass(self, q: Array, p: PyTree) -> Array:
        """``d2T/dv2`` (nv, nv); T is quadratic in v, so the value of v does not matter."""
        return jax.jacfwd(jax.grad(self.kinetic, argnums=1), argnums=1)(q, 0.0 * q, p)

    def force(self, t: Array, q: Array, v: Array, p: PyTree) -> Array:
        """``h = dT/dq - d/dq(dT/dv) v - dU/dq + Q``."""
        momentum = lambda q: jax.grad(self.kinetic, argnums=1)(q, v, p)  # noqa: E731
        h = jax.grad(self.kinetic)(q, v, p) - jax.jvp(momentum, (q,), (v,))[1]
        if self.energy is not None:
            h = h - jax.grad(self.energy, argnums=1)(t, q, p)
        if self.generalized is not None:
            h = h + self.generalized(t, q, v, p)
        return h

    def potential(self, t: Array, q: Array, p: PyTree) -> Array:
        """The potential energy, zero if none was given."""
        return 0.0 * q[0] if self.energy is None else self.energy(t, q, p)


@functools.cache
def from_lagrangian(kinetic: Fn, potential: Fn | None = None, force: Fn | None = None) -> Lagrangian:
    """The functions of a `System` from energies: ``d/dt dT/dv - dT/dq + dU/dq = Q``.

    Args:
        kinetic: ``T(q, v, p)`` [J], quadratic in ``v``.
        potential: ``U(t, q, p)`` [J].
        force: ``Q(t, q, v, p)`` (nv,), everything that has no potential.

    Returns:
        A record with methods ``mass``, ``force`` and ``potential`` for `System`. The same arguments
        give the same record, so a system built twice compiles once.

    Limits: coordinates form a vector space (``dq/dt = v``). Rotations by `System.retract` need
    bracket terms that energies alone do not give.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax import System, from_lagrangian
        >>> def T(q, v, p):
        ...     return 0.5 * p["m"] * p["l"] ** 2 * v[0] ** 2
        >>> def U(t, q, p):
        ...     return -p["m"] * 9.81 * p["l"] * jnp.cos(q[0])
        >>> pendulum = from_lagrangian(T, U)
        >>> system = System(
        ...     nq=1, nv=1, mass=pendulum.mass, force=pendulum.force, potential=pendulum.potential
        ... )
        >>> pendulum.mass(jnp.zeros(1), {"m": 2.0, "l": 3.0}).tolist()
        [[18.0]]
    """
    return Lagrangian(kinetic, potential, force)
