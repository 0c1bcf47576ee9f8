"""Amplification matrices of schemes on the linear oscillator: stability, period error, numerical damping.

The matrix is the derivative of the step that the scheme executes, so it shows the behaviour of the code,
not of a formula. Source: [R&S appendix A].
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.errors import InputError
from nsjax.core.scheme import Accelerations, Carry, Scheme
from nsjax.core.system import State, System
from nsjax.types import Array, PyTree


def _mass(q: Array, p: PyTree) -> Array:
    return jnp.eye(1)


def _force(t: Array, q: Array, v: Array, p: PyTree) -> Array:
    return -2.0 * p["damping"] * p["omega"] * v - p["omega"] ** 2 * q


def _damping(t: Array, q: Array, v: Array, p: PyTree) -> Array:
    return 2.0 * p["damping"] * p["omega"] * jnp.ones(1)


oscillator = System(nq=1, nv=1, mass=_mass, force=_force, damping=_damping)
"""``q'' + 2 zeta omega q' + omega^2 q = 0``; parameters ``omega`` [rad/s] and ``damping`` (zeta) [-]."""


def _which(scheme: Scheme, memory: str | None) -> str:
    """The acceleration in the vector ``X``: ``"algorithmic"``, ``"true"`` or ``"none"``.

    Args:
        memory: choice of the user; None: what the scheme says to carry.

    Raises:
        InputError: for an acceleration that the memory of the scheme does not have.
    """
    params = {"omega": jnp.ones(()), "damping": jnp.zeros(())}
    state = State(t=jnp.zeros(()), q=jnp.zeros(1), v=jnp.zeros(1))
    carried = jax.eval_shape(lambda s: _start(s, params, state).memory, scheme)
    where = _fields(scheme)
    known = ["none"]
    if all(hasattr(carried, name) for name in where):
        known = ["algorithmic", "true", "none"]
    if memory is None:
        if scheme.traits.accelerations is not None:
            memory = scheme.traits.accelerations.carries
        elif not jax.tree.leaves(carried):
            memory = "none"
    if memory not in known:
        raise InputError(
            f"amplification_matrix: memory = {memory!r} for scheme {scheme.name!r}, which "
            f"{'has' if len(known) > 1 else 'does not have'} the accelerations {' and '.join(where)} in "
            f"its memory; choose {'one of ' if len(known) > 1 else ''}{', '.join(known)}, or let the "
            "scheme say what it carries (Traits.accelerations)"
        )
    return memory


def _fields(scheme: Scheme) -> tuple[str, str]:
    """Names of the true and of the algorithmic acceleration in the memory of the scheme."""
    named = scheme.traits.accelerations or Accelerations("none")
    return named.true, named.algorithmic


def _start(scheme: Scheme, params: PyTree, state: State) -> Carry:
    """The carry at the start of a run of the scheme; its accelerations are consistent with the state."""
    constants = scheme.prepare(scheme, oscillator, params, jnp.ones(()))
    return scheme.init(scheme, oscillator, params, constants, state)


def _to_carry(scheme: Scheme, params: PyTree, x: Array, memory: str) -> Carry:
    """``X -> carry`` for ``dt = 1``: accelerations in ``X`` replace those of the start of a run."""
    carry = _start(scheme, params, State(t=jnp.zeros(()), q=x[:1], v=x[1:2]))
    if memory == "none":
        return carry
    a = x[2:] if memory == "true" else _force(jnp.zeros(()), carry.state.q, carry.state.v, params)
    true, algorithmic = _fields(scheme)
    new = dataclasses.replace(carry.memory, **{true: a, algorithmic: x[2:]})
    return Carry(state=carry.state, memory=new)


@jax.custom_jvp
def _final(x: Array) -> Array:
    """Identity that refuses differentiation: second derivatives of an implicit stage would be wrong."""
    return x


@_final.defjvp
def _refuse(primals: Any, tangents: Any) -> Any:
    raise InputError(
        "amplification_matrix: it is the derivative of a step, and implicit stages have first derivatives "
        "only; use finite differences for its sensitivity to the scheme's numbers"
    )


def _matrices(scheme: Scheme, omega: Array, damping: Array, memory: str) -> Array:
    """Amplification matrices for flat arrays of ``omega`` and damping ratios, with ``dt = 1``."""

    def one(omega: Array, damping: Array) -> Array:
        params, dt = {"omega": omega, "damping": damping}, jnp.ones(())
        constants = scheme.prepare(scheme, oscillator, params, dt)

        def step(x: Array) -> Array:
            carry = _to_carry(scheme, params, x, memory)
            end, _ = scheme.step(scheme, oscillator, params, constants, carry, dt)
            parts = [end.state.q, end.state.v]
            if memory != "none":
                parts.append(getattr(end.memory, _fields(scheme)[memory == "algorithmic"]))
            return jnp.concatenate(parts)

        # the map is linear: any point will do
        return jax.jacfwd(step)(jnp.zeros(2 if memory == "none" else 3))

    return _final(jax.vmap(one)(omega, damping))


_compiled = jax.jit(_matrices, static_argnums=3)


def amplification_matrix(
    scheme: Scheme, omega_dt: Any, damping: Any = 0.0, *, memory: str | None = None
) -> Array:
    """Amplification matrix of a scheme on the linear oscillator, from the step that it executes.

    On ``q'' + 2 zeta omega q' + omega^2 q = 0`` a step is linear, ``X_{i+1} = A X_i``, with

    * ``X = (q, dt v, dt^2 A)`` for the generalized-alpha family, nonsmooth ones included: ``A`` the
      algorithmic acceleration; the true one enters as ``a = -omega^2 q - 2 zeta omega v``;
    * ``X = (q, dt v, dt^2 a)`` for Bathe's scheme and ED-alpha;
    * ``X = (q, dt v)`` for schemes that remember nothing else (half-explicit, Moreau, Moreau-Jean).

    ``A`` is `jax.jacfwd` of ``scheme.step``; it depends on ``omega dt`` and ``zeta`` only.

    Args:
        scheme: any scheme; its numbers may be traced (one compilation sweeps them).
        omega_dt: ``Omega = omega dt`` [rad], any shape.
        damping: Lehr's damping ratio ``zeta`` [-], broadcast against ``omega_dt``.
        memory: the acceleration in ``X``, ``"algorithmic"``, ``"true"`` or ``"none"``. None: the one that
            `nsjax.schemes.building.Traits.accelerations` names.

    Returns:
        Matrices, an array of shape ``omega_dt.shape + (n, n)`` with n = 3 or 2.

    Raises:
        InputError: for an acceleration that the scheme does not have; for a scheme with a memory but
            without them; and if the result is differentiated.

    Accuracy: entries to 1e-15 relative to the largest one, in double precision; for the
        generalized-alpha family ``eps max(1, Omega^2)`` (3e-13 at ``Omega = 60``, 1e-7 at 6e4), because
        its predictor rounds the acceleration ``-Omega^2 q`` of the start before it cancels.

    Limits: smooth motion only; contacts and constraints play no part. Not differentiable: it is a
        derivative itself.

    Source: [R&S (93)-(96), (106)]; (96) holds for ``(q, dt v, dt^2 A)`` with the
        algorithmic acceleration A, not ``a`` as printed in (94), and (106) has its rows in reverse order.

    Example:
        >>> from nsjax import schemes
        >>> from nsjax.analysis import amplification_matrix
        >>> amplification_matrix(schemes.bathe(), [0.1, 0.2]).shape
        (2, 3, 3)
    """
    omega, zeta = jnp.broadcast_arrays(jnp.asarray(omega_dt, float), jnp.asarray(damping, float))
    found = _compiled(scheme, omega.ravel(), zeta.ravel(), _which(scheme, memory))
    return found.reshape(*omega.shape, *found.shape[1:])


def _eigenvalues(scheme: Scheme, omega_dt: Any, damping: Any) -> np.ndarray:
    return np.linalg.eigvals(np.asarray(amplification_matrix(scheme, omega_dt, damping)))


def _principal(scheme: Scheme, omega_dt: Any, damping: Any) -> np.ndarray:
    """Eigenvalue with the largest positive imaginary part; not-a-number where all are real."""
    roots = _eigenvalues(scheme, omega_dt, damping)
    at = np.argmax(roots.imag, axis=-1)
    root = np.take_along_axis(roots, at[..., None], axis=-1)[..., 0]
    # roots with a smaller angle to the real axis count as real: rounding of a double root
    return np.where(root.imag > 1e-10 * np.abs(root), root, np.nan + 0j)


def spectral_radius(scheme: Scheme, omega_dt: Any, damping: Any = 0.0) -> np.ndarray:
    """Largest modulus of the eigenvalues of the amplification matrix, ``rho = max |lambda_k|``.

    Args:
        scheme: any scheme, see `amplification_matrix`.
        omega_dt: ``omega dt`` [rad], any shape.
        damping: Lehr's damping ratio [-], broadcast against ``omega_dt``.

    Returns:
        Array of the shape of ``omega_dt``. Below 1 the scheme damps, above 1 it is unstable.

    Accuracy: that of the matrix. Where three eigenvalues merge (generalized-alpha), errors stay below 1e-6
        up to ``omega dt = 6e4``.

    Source: [R&S (99)].

    Example:
        >>> from nsjax import schemes
        >>> from nsjax.analysis import spectral_radius
        >>> bool(abs(spectral_radius(schemes.newmark(), 3.0) - 1.0) < 1e-12)
        True
    """
    return np.max(np.abs(_eigenvalues(scheme, omega_dt, damping)), axis=-1)


def relative_period_error(scheme: Scheme, omega_dt: Any, damping: Any = 0.0) -> np.ndarray:
    """Relative error of the period, ``(T_num - T)/T = Omega_d/Omega_bar - 1``.

    ``Omega_bar = |arg lambda_1|`` with the complex principal root ``lambda_1``, and
    ``Omega_d = omega dt sqrt(1 - zeta^2)`` of the exact motion.

    Args:
        scheme: any scheme, see `amplification_matrix`.
        omega_dt: ``omega dt`` [rad], any shape.
        damping: Lehr's damping ratio [-] below 1, broadcast against ``omega_dt``.

    Returns:
        Array of the shape of ``omega_dt``; not-a-number where all eigenvalues are real.

    Limits: angles are folded into (0, pi]. Where a scheme turns the phase by more in a step (Bathe above
    ``omega dt = 5.37``), the result is the period that the samples show, an alias.

    Source: [R&S (105)], with the period 2 pi / omega instead of the printed 1 / (omega dt).

    Example:
        >>> from nsjax import schemes
        >>> from nsjax.analysis import relative_period_error
        >>> round(float(relative_period_error(schemes.bathe(), 0.628318530718)), 6)
        0.016179
    """
    exact = np.asarray(omega_dt, float) * np.sqrt(1.0 - np.asarray(damping, float) ** 2)
    return exact / np.abs(np.angle(_principal(scheme, omega_dt, damping))) - 1.0


def numerical_damping(scheme: Scheme, omega_dt: Any, damping: Any = 0.0) -> np.ndarray:
    """Damping ratio of the computed motion: ``lambda_1 = exp(-zeta_bar W +- i W sqrt(1 - zeta_bar^2))``.

    ``zeta_bar = -ln |lambda_1| / sqrt(ln^2 |lambda_1| + arg^2 lambda_1)``. An exact scheme would give
    ``damping``; the difference is the numerical damping of the scheme.

    Args:
        scheme: any scheme, see `amplification_matrix`.
        omega_dt: ``omega dt`` [rad], any shape.
        damping: Lehr's damping ratio [-] below 1, broadcast against ``omega_dt``.

    Returns:
        Array of the shape of ``omega_dt``; not-a-number where all eigenvalues are real.

    Limits: the angle is folded as in `relative_period_error`.

    Source: logarithm of the principal eigenvalue.

    Example:
        >>> from nsjax import schemes
        >>> from nsjax.analysis import numerical_damping
        >>> bool(abs(numerical_damping(schemes.newmark(), 0.5)) < 1e-12)
        True
    """
    root = _principal(scheme, omega_dt, damping)
    decay = -np.log(np.abs(root))
    return decay / np.hypot(decay, np.angle(root))
