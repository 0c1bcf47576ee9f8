"""A new base scheme in one file: Bathe's two-part scheme with controllable spectral radius.

G. Noh, K.-J. Bathe, Computers & Structures 212 (2019) 299-310: trapezoidal rule to ``t_g = t + gamma dt``,
then ``v_{n+1} = v_n + dt (q0 a_n + q1 a_g + q2 a_{n+1})``, positions likewise. The framework does the rest.
"""

from typing import Any

import jax.numpy as jnp

from nsjax.schemes.building import Array, BaseEnd, Scheme, Tolerances, mixed_scheme, record, single


@record()
class Numbers:
    """Spectral radius at infinite frequency in [0, 1), and tolerances."""

    rho_inf: Array | float
    tolerances: Tolerances = Tolerances()


def base(coef: Any, state: Any, memory: Any, dt: Array, run: Any) -> BaseEnd:
    t, q, v, a, rho = jnp.asarray(state.t), state.q, state.v, memory.a, coef.rho_inf
    gamma = (2 - jnp.sqrt(2 + 2 * rho)) / (1 - rho)
    q1 = (rho + 1) / (2 * gamma * (rho - 1) + 4)
    q0, q2 = (gamma - 1) * q1 + 0.5, 0.5 - gamma * q1
    h = gamma * dt  # first part: trapezoidal rule, predicted with the acceleration at the start
    guess = v + h * a
    first = single(anchor=q, xi=0.5 * h * (v + guess), v=guess, a=a, cq=h / 2, ca=2 / h, t=t + h, dt=dt)
    ((_, _, vg, ag),), (middle,) = run(first)
    guess = v + dt * (q0 * a + (q1 + q2) * ag)  # second part, with the acceleration of the first
    xi, cq = dt * (q0 * v + q1 * vg + q2 * guess), dt * q2
    ((_, q, v, a),), (end,) = run(single(anchor=q, xi=xi, v=guess, a=ag, cq=cq, ca=1 / cq, t=t + dt, dt=dt))
    impulse = q0 * dt * memory.force + q1 * middle + q2 * end  # the formula of v
    return BaseEnd(q=q, v=v, a=a, algorithmic=a, force=end / dt, impulse=impulse)


def rho_infinity_bathe(rho_inf: Array | float = 0.5, **options: Any) -> Scheme:
    return mixed_scheme("rho_infinity_bathe", base, Numbers(rho_inf=rho_inf), **options)
