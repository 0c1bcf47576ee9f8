"""A scheme outside the mixed framework in one file: Schatzman's and Paoli's, contacts on position level.

L. Paoli, M. Schatzman, SIAM J. Numer. Anal. 40 (2002) 702-733: with ``v_n = (q_n - q_{n-1}) / dt``,
``M (v_{n+1} - v_n) = dt h + W P`` at ``q_n``, and ``0 <= (g_{n+1} + e g_{n-1}) / (1 + e) _|_ P >= 0`` at
contacts that the free step ``q_n + dt v_n + dt^2 M^-1 h`` reaches. Ours: Coulomb's law on ``W_T' v_{n+1}``,
constraints by ``g_B(q_{n+1}) = 0``. Order 1, stable up to ``omega dt = 2``; an impact takes two steps, in
which gaps fall to ``-e g_{n-1}``; no tangential restitution. Energy may rise by
O(dt) at an impact with ``e`` near one. Derivatives are those of the discrete map: ``gradient="discrete"``.
"""

from __future__ import annotations

from typing import Any

from nsjax.schemes import building
from nsjax.schemes.building import Array, FrozenRowEquations, ImpulseRun, Scheme, State, Stepped


def weighted(run: Any, system: Any, q: Array) -> Array:
    """``g(q_{n+1}) + e g(q_{n-1})`` (nc,), in which a positive factor of the law is left out."""
    e = system.law(run.params).restitution
    before = system.gap(run.state.t - run.dt, run.memory, run.params)
    return system.gap(run.state.t + run.dt, q, run.params) + e * before


class Equations(FrozenRowEquations):
    """Momentum balance and laws for the unknown ``z = v_{n+1} - v_n``; all rows as velocities."""

    def residual(self, d: Any, z: Array) -> Array:
        force = self.system.force(d.state.t, d.state.q, d.state.v, d.params)
        return building.momentum(self.system, d.state.q, z, d.params) - d.dt * force

    def rates(self, d: Any, z: Array) -> Array:
        system, v = self.system, d.state.v + z
        q = system.retract(d.state.q, d.dt * v)
        normal = weighted(d, system, q) / d.dt if self.rows.nc else None
        bilateral = system.constraint(d.state.t + d.dt, q, d.params) / d.dt if system.constraint else None
        return self.replaced(d.frozen.rows.rate(v), normal, bilateral)


def respond(run: ImpulseRun) -> Stepped:
    state, system, dt = run.state, run.system, run.dt
    dv, jump, estimate = run.solve(Equations, run.data(state.t, state.q))
    end = State(t=state.t + dt, q=system.retract(state.q, dt * (state.v + dv)), v=state.v + dv)
    return Stepped(end=end, jump=jump, estimate=estimate, more=state.q)


def free_gaps(run: ImpulseRun) -> Array:
    v = run.state.v + run.dt * run.acceleration()
    return weighted(run, run.system, run.system.retract(run.state.q, run.dt * v))


def previous(run: ImpulseRun) -> Array:
    return run.system.retract(run.state.q, -run.dt * run.state.v)


def schatzman_paoli(**options: Any) -> Scheme:
    look: dict[str, Any] = {"gaps": free_gaps, "remember": previous, "corrects": True}
    return building.impulse_scheme("schatzman_paoli", respond, **look, **options)
