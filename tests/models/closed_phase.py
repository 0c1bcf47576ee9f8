"""Event-driven motion of the flexible slider-crank into its first closed phase.

Mass, forces and directions are the model's, which its tests derive from energies. Independent is how they
are integrated: Dormand and Prince between events, Newton's and Coulomb's laws at the impact of the corners
of one wall, and their accelerations while these slide along it.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from nsjax.core.operators import contact_rows, row_drift
from nsjax.core.step import mass_matrix


@functools.partial(jax.jit, static_argnames=("system",))
def _looked_at(system, p, t, q, v):
    """Mass, force, gaps, rows and drift of normals and tangents."""
    wt = contact_rows(system, t, q, p).wt.reshape(system.nc, 2, system.nv)
    drift = row_drift(system, t, q, v, p)[: 2 * system.nc].reshape(system.nc, 2)
    return mass_matrix(system, q, p), system.force(t, q, v, p), system.gap(t, q, p), wt, drift


class Motion:
    """The mechanism with its numbers; states are ``x = (q, v)``."""

    def __init__(self, problem):
        self.system, p, state = problem
        self.p, self.n = self.system.prepare(p), self.system.nv
        self.friction = float(p.friction)
        assert float(p.restitution) == 0.0
        self.start = np.concatenate([np.asarray(state.q), np.asarray(state.v)])

    def look(self, t, x):
        found = _looked_at(self.system, self.p, jnp.asarray(float(t)), x[: self.n], x[self.n :])
        return [np.asarray(y) for y in found]

    def pushes(self, wt, v, on):
        """Normals, and what sliding corners push per normal force (n, corners)."""
        normal, tangent = wt[on, 0], wt[on, 1]
        return normal, (normal - self.friction * np.sign(tangent @ v)[:, None] * tangent).T

    def forces(self, t, x, on):
        """Normal forces that keep the corners on their wall, and the acceleration."""
        mass, force, _, wt, drift = self.look(t, x)
        normal, push = self.pushes(wt, x[self.n :], on)
        back = np.linalg.solve(mass, np.column_stack([push, force]))
        lam = -np.linalg.solve(normal @ back[:, :-1], normal @ back[:, -1] + drift[on, 0])
        return lam, back[:, -1] + back[:, :-1] @ lam

    def struck(self, t, x, on):
        """The state after a plastic impact of these corners."""
        mass, _, _, wt, _ = self.look(t, x)
        normal, push = self.pushes(wt, x[self.n :], on)
        back = np.linalg.solve(mass, push)
        impulse = -np.linalg.solve(normal @ back, normal @ x[self.n :])
        assert np.all(impulse > 0.0)
        return np.concatenate([x[: self.n], x[self.n :] + back @ impulse])

    def fly(self, end):
        """Time and state of the first contact, and its corners."""
        gap = lambda t, x: self.look(t, x)[2].min()  # noqa: E731
        gap.terminal, gap.direction = True, -1

        def rate(t, x):
            mass, force, *_ = self.look(t, x)
            return np.concatenate([x[self.n :], np.linalg.solve(mass, force)])

        run = solve_ivp(rate, (0.0, end), self.start, "DOP853", events=gap, rtol=1e-10, atol=1e-12)
        assert run.status == 1
        t, x = float(run.t[-1]), run.y[:, -1]
        return t, x, np.flatnonzero(self.look(t, x)[2] < 1e-10)

    def slide(self, t, x, on, end):
        """Time and state at the end, or where the wall lets go."""
        force = lambda t, x: self.forces(t, x, on)[0].min()  # noqa: E731
        force.terminal, force.direction = True, -1

        def rate(t, x):
            return np.concatenate([x[self.n :], self.forces(t, x, on)[1]])

        run = solve_ivp(rate, (t, end), x, "DOP853", events=force, rtol=1e-10, atol=1e-12)
        return float(run.t[-1]), run.y[:, -1], run.status == 1
