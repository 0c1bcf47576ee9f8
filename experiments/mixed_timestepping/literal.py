"""The solver of [R&S] as it is printed: what `table_literal_solver` runs beside the package's schemes.

Plain NumPy, step by step from the paper: fixed-point iterations (55) of generalized-alpha, (75) and (76) of
Bathe and (85) of ED-alpha, in each of which the contact forces come from the Gauss-Newton iteration (43)
with pseudo-inverse, fixed r = 0.1 and start from zero; impulses (49)-(54) with r = 0.1 dt. Nothing of
`nsjax.schemes` and `nsjax.contact` is used, and of the mechanism the shape integrals of the rod alone.

What the paper leaves open is in `Setting`: the tolerances, what happens when an iteration does not end
("while true"), which contacts are closed in a midpoint (here those of the start of the step, (41)).
``c_7`` and ``c_14`` of (90) are taken without the 1/dt that they have in print.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .literal_crank import Matrix, Mechanism, Vector, start


@dataclasses.dataclass(frozen=True)
class Setting:
    """What the paper fixes (r) and what it leaves open.

    Args:
        scheme: "gen-alpha", "Bathe" or "ED-alpha" (rho_inf = 0, alpha_AR = 1/6 unless ``rho`` says else).
        rho: rho_inf.
        dt: step [s].
        tolerance: of the outer loop, on the change of the velocities.
        inner: tolerance of the Gauss-Newton iteration (43), on the norm of f.
        cap: passes after which either loop is left all the same; the paper has none.
        r: of the forces; ``r_impulse`` times dt: of the impulses.
        printed: derivative (52) with the printed signs of its off-diagonal blocks, opposite to (43).
    """

    scheme: str = "gen-alpha"
    rho: float = 0.8
    dt: float = 1e-5
    tolerance: float = 1e-8
    inner: float = 1e-10
    cap: int = 100
    r: float = 0.1
    r_impulse: float = 0.1
    printed: bool = False


def gauss_newton(
    free: Vector, delassus: Matrix, r: float, friction: float, tolerance: float, cap: int, sign: float = 1.0
) -> tuple[Vector, int]:
    """Roots of (42) or (51), and the number of iterations, `cap` where it did not end.

    Args:
        free: relative velocities without the multipliers, normals then tangents (2 m,).
        delassus: their change with the multipliers (2 m, 2 m).
        r: slope of the projection.
        friction: coefficient.
        tolerance: of the norm of f.
        cap: most iterations.
        sign: of the off-diagonal blocks of the derivative; -1: as printed in (52).
    """
    m = len(free) // 2
    block = np.kron([[1.0, sign], [sign, 1.0]], np.ones((m, m)))
    found = np.zeros(2 * m)
    for k in range(cap + 1):
        trial = found - r * (free + delassus @ found)
        bound = friction * np.abs(found[:m])
        proper = np.concatenate([np.maximum(trial[:m], 0.0), np.clip(trial[m:], -bound, bound)])
        f = found - proper
        if not np.linalg.norm(f) > tolerance or k == cap:
            break
        on = np.concatenate([trial[:m] >= 0.0, np.abs(trial[m:]) <= bound])
        slope = np.eye(2 * m) - on[:, None] * (np.eye(2 * m) - r * block * delassus)
        found = found - np.linalg.pinv(slope) @ f
    return found, k


@dataclasses.dataclass
class _State:
    q: Vector
    v: Vector
    a: Vector
    memory: Vector


class Solver:
    """One run; `step` advances ``state``."""

    def __init__(self, mechanism: Mechanism, setting: Setting) -> None:
        self.m, self.s = mechanism, setting
        n = mechanism.size
        q, v = np.zeros(n), np.zeros(n)
        v[:3] = start(mechanism)
        a = np.linalg.solve(mechanism.masses(q), mechanism.forces(q, v) - mechanism.stiffness @ q)
        self.state = _State(q, v, a, a.copy())
        self.closed = mechanism.gaps(q) <= 0.0
        self.passes = self.iterations = 0
        self.force = np.zeros(4)
        self.failed = False
        self.impact: tuple[Vector, Matrix] | None = None

    def stage(
        self, matrix: Matrix, right: Vector, directions: tuple[Matrix, Matrix], base: Vector, factor: Any
    ) -> tuple[Vector, Vector]:
        """``x = matrix^-1 (right + W lambda)`` with the contact laws of ``v = base + factor x``.

        Returns:
            x, and lambda of normals then tangents of the closed contacts.
        """
        normal, tangent = directions
        both = np.concatenate([normal, tangent], axis=1)
        solved = np.linalg.solve(matrix, np.column_stack([right, both]))
        if not both.shape[1]:
            return solved[:, 0], np.zeros(0)
        free = both.T @ (base + factor * solved[:, 0])
        delassus = both.T @ (factor * solved[:, 1:])
        found, k = gauss_newton(
            free, delassus, self.s.r, float(self.m.p.friction), self.s.inner, self.s.cap
        )
        self.iterations = max(self.iterations, k)
        return solved[:, 0] + solved[:, 1:] @ found, found

    def active(self, q: Vector) -> tuple[Matrix, Matrix]:
        """W_N and W_T of the contacts closed at the start of the step, (27)."""
        normal, tangent = self.m.directions(q)
        return normal[:, self.closed], tangent[:, self.closed]

    def keep(self, multipliers: Vector) -> None:
        """Normal forces of the corners."""
        self.force = np.zeros(4)
        self.force[self.closed] = multipliers[: int(self.closed.sum())]

    def generalized_alpha(self) -> None:
        """One step of (55)."""
        s, x, dt, m = self.s, self.state, self.s.dt, self.m
        am, af = (2.0 * s.rho - 1.0) / (s.rho + 1.0), s.rho / (s.rho + 1.0)
        gamma, beta = 0.5 - am + af, 0.25 * (1.0 - am + af) ** 2
        weight = (1.0 - af) / (1.0 - am)
        rest = (af * x.a - am * x.memory) / (1.0 - am)
        drift = x.v + dt * (1.0 - gamma) * x.memory + dt * gamma * rest
        place = x.q + dt * x.v + dt**2 * (0.5 - beta) * x.memory + dt**2 * beta * rest
        q, v = x.q, x.v
        for _ in range(s.cap):
            self.passes += 1
            matrix = m.masses(q) + dt**2 * beta * weight * m.stiffness
            right = m.forces(q, v) - m.stiffness @ place
            a, found = self.stage(matrix, right, self.active(q), drift, dt * gamma * weight)
            memory = weight * a + rest
            new = x.v + dt * (1.0 - gamma) * x.memory + dt * gamma * memory
            q = x.q + dt * x.v + dt**2 * ((0.5 - beta) * x.memory + beta * memory)
            change, v = np.linalg.norm(new - v), new
            if not change >= s.tolerance:
                break
        self.keep(found)
        self.state = _State(q, v, a, memory)

    def _half(self, q: Vector, v: Vector, base: Vector, c: float, inertia: Vector) -> tuple[Vector, Vector]:
        """Fixed-point iteration of a half step of Bathe: ``v = base + c q``, ``K^ = c^2 M + K``."""
        s, m = self.s, self.m
        for _ in range(s.cap):
            self.passes += 1
            mass = m.masses(q)
            right = m.forces(q, v) + mass @ inertia
            q, found = self.stage(c * c * mass + m.stiffness, right, self.active(q), base, c)
            new = base + c * q
            change, v = np.linalg.norm(new - v), new
            if not change >= s.tolerance:
                break
        self.keep(found)
        return q, v

    def bathe(self) -> None:
        """One step of (75) and (76)."""
        x, d = self.state, self.s.dt
        inertia = 16.0 / d**2 * x.q + 8.0 / d * x.v + x.a
        qh, vh = self._half(x.q, x.v, -x.v - 4.0 / d * x.q, 4.0 / d, inertia)
        inertia = (12.0 * qh - 3.0 * x.q) / d**2 + (4.0 * vh - x.v) / d
        q, v = self._half(qh, vh, (x.q - 4.0 * qh) / d, 3.0 / d, inertia)
        a = (x.v - 4.0 * vh + 3.0 * v) / d
        self.state = _State(q, v, a, a)

    def ed_alpha(self) -> None:
        """One step of (85) with (86)-(90)."""
        s, x, dt, m = self.s, self.state, self.s.dt, self.m
        alpha, ar, n = (1.0 - s.rho) / (1.0 + s.rho), 1.0 / 6.0, m.size
        e = dt * ar * (alpha + 1.0)
        c4, c5, c6, c7 = 2 * ar * alpha / e, (1 - 2 * ar * alpha) / e, -1 / e, ar * (1 - alpha) / e * dt
        c12, c13, c14, c15 = 1 / e, -(1 + 2 * ar) / e, -ar * (1 - alpha) / e * dt, 2 * ar / e
        c8, c10, c11 = -dt * ar, dt * ar * alpha, dt * ar * (1 - alpha)
        q, qj, v, vj, stiff = x.q, x.q, x.v, x.v, m.stiffness
        for _ in range(s.cap):
            self.passes += 1
            end, mid = m.masses(q), m.masses(qj)
            matrix = np.block([
                [c4 * end + dt / 2 * stiff, c6 * end + dt / 2 * stiff],
                [c15 * mid + c8 * stiff, c12 * mid + c10 * stiff],
            ])  # fmt: skip
            right = np.concatenate([
                m.forces(q, v) - end @ (c5 * x.v + c7 * x.a) - stiff @ x.q,
                m.forces(qj, vj) - mid @ (c13 * x.v + c14 * x.a) - stiff @ (x.q + c11 * x.v),
            ])  # fmt: skip
            pairs = zip(self.active(q), self.active(qj), strict=True)
            both = [np.kron([[1, 0], [0, 0]], w) + np.kron([[0, 0], [0, 1]], wj) for w, wj in pairs]
            found, forces = self.stage(matrix, right, (both[0], both[1]), np.zeros(2 * n), 1.0)
            new, vj = found[:n], found[n:]
            q, qj = x.q + dt / 2 * (vj + new), x.q + c8 * new + c10 * vj + c11 * x.v
            change, v = np.linalg.norm(new - v), new
            if not change >= s.tolerance:
                break
        self.keep(forces)
        a = c4 * v + c5 * x.v + c6 * vj + c7 * x.a
        self.state = _State(q, v, a, a)

    def impulse(self) -> None:
        """(46) with the impulses (49), (50) of all contacts that are closed now."""
        x, p = self.state, self.m.p
        normal, tangent = (w[:, self.closed] for w in self.m.directions(x.q))
        both = np.concatenate([normal, tangent], axis=1)
        turned = np.linalg.solve(self.m.masses(x.q), both)
        before, count = both.T @ x.v, int(self.closed.sum())
        law = np.repeat([float(p.restitution), float(p.restitution_tangential)], count)
        found, k = gauss_newton(
            before * (1.0 + law), both.T @ turned, self.s.r_impulse * self.s.dt, float(p.friction),
            self.s.inner, self.s.cap, -1.0 if self.s.printed else 1.0,
        )  # fmt: skip
        self.iterations = max(self.iterations, k)
        self.impact = before * (1.0 + law), both.T @ turned
        x.v = x.v + turned @ found

    def step(self) -> bool:
        """One step of Figure 4; whether it ended with an impulse."""
        self.passes = self.iterations = 0
        {"gen-alpha": self.generalized_alpha, "Bathe": self.bathe, "ED-alpha": self.ed_alpha}[
            self.s.scheme
        ]()
        if not np.all(np.isfinite(self.state.v)):
            self.failed = True
            return False
        was, self.closed = self.closed, self.m.gaps(self.state.q) <= 0.0
        new = bool(np.any(self.closed & ~was))
        if new:
            self.impulse()
        return new


EXCESS = 1.0
"""Energy beyond initial energy and work of the torque [J] that counts as blown up: contact, friction and
damping take energy away, and in 0.06 s the torque does 1.2 J of work."""


@dataclasses.dataclass(frozen=True)
class Run:
    """Rows of a run: time, angles, rates, height, wall forces, elastic energy, energy without the work."""

    t: Vector
    q: Matrix
    v: Matrix
    y: Vector
    wall: Matrix
    elastic: Vector
    excess: Vector
    impulse: Vector
    passes: Vector
    iterations: Vector
    blown: bool


def run(mechanism: Mechanism, setting: Setting, steps: int) -> Run:
    """A run; it ends early when a step is not finite, or when `EXCESS` was created."""
    solver = Solver(mechanism, setting)
    rows: list[tuple[Any, ...]] = []
    before = mechanism.energy(solver.state.q, solver.state.v)
    for k in range(steps):
        struck = solver.step()
        if solver.failed:
            break
        x, m = solver.state, mechanism
        wall = (solver.force[:2].sum(), solver.force[2:].sum())
        excess = m.energy(x.q, x.v) - before - float(m.p.torque) * x.q[0]
        rows.append((
            (k + 1) * setting.dt, x.q[:3], x.v[:3], m.height(x.q), wall, m.elastic(x.q), excess, struck,
            solver.passes, solver.iterations,
        ))  # fmt: skip
        if excess > EXCESS:
            break
    columns = [np.asarray(x) for x in zip(*rows, strict=True)]
    names = [field.name for field in dataclasses.fields(Run)][:-1]
    found: dict[str, Any] = dict(zip(names, columns, strict=True))
    return Run(**found, blown=len(rows) < steps)
