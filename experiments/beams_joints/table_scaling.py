"""Scaling of the constraint rows: condition of the iteration matrix, digits of its solution, iterations.

A Newmark step in displacements and multipliers, as the source writes it, has the matrix ``((A, s W), (s W',
0))`` with ``A = M / (beta dt^2) + K``: unscaled (``s = 1``) its condition grows with ``dt^-4`` where
inertia rules; scaled by the mean diagonal of ``A``, an inertia over ``dt^2`` and a stiffness, it stays. The
package has velocities and impulses as unknowns, ``((M + dt^2 beta K, W), (beta W', 0))``: such a scaling by
itself.

Newton's method in exact numbers does not see the scaling, nor does elimination with pivots: iterations and
multipliers are equal. The package eliminates the velocities first, and then the multipliers from what is
left, ``W' A^-1 W``, so that a power of two in the rows changes no bit of the motion. Mechanism: M2 of
`fig_oscillation`.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import schemes
from nsjax.core import Problem
from nsjax.core.operators import momentum, row_forces

from .. import common
from . import shared
from .fig_oscillation import mechanism

BETA, GAMMA = 0.25, 0.5
STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
SCALED = "row scale"
RUN_SCALES, RUN_STEP, RUN_STEPS = (1.0, 2.0**-20, 2.0**20), 1e-3, 20
NEWTON_STEPS = (1e-3, 1e-5)


class Step:
    """Residual and matrix of a Newmark step from rest at the start of a problem, dense."""

    def __init__(self, problem: Problem) -> None:
        s: Any = problem.system
        p = s.prepare(problem.params)
        self.s, q0 = s, jnp.asarray(problem.state.q)

        def residual(y: Any, dt: Any, a0: Any, scale: Any) -> Any:
            d, x = y[: s.nv], scale * y[s.nv :]
            q, v = s.retract(q0, d), GAMMA / (BETA * dt) * d + (1.0 - GAMMA / (2.0 * BETA)) * dt * a0
            a = d / (BETA * dt**2) - (1.0 - 2.0 * BETA) / (2.0 * BETA) * a0
            push = s.force(dt, q, v, p) + row_forces(s, dt, q, x, p, contacts=False)
            return jnp.concatenate([momentum(s, q, a, p) - push, scale * s.constraint(dt, q, p)])

        self.residual, self.matrix = jax.jit(residual), jax.jit(jax.jacfwd(residual))
        self.size = s.nv + s.nb
        # inertia, stiffness and rows from matrices of two steps: A = M / (beta dt^2) + K
        zero = np.zeros(self.size), np.zeros(s.nv)
        one, two = (np.asarray(self.matrix(zero[0], dt, zero[1], 1.0)) for dt in (1e-4, 1e-2))
        inner = np.s_[: s.nv, : s.nv]
        self.mass = (one[inner] - two[inner]) * BETA / (1e8 - 1e4)
        self.stiffness = two[inner] - self.mass / (BETA * 1e-4)
        self.rows = one[s.nv :, : s.nv]
        push = -np.asarray(self.residual(zero[0], 1e-4, zero[1], 1.0))
        self.start = np.linalg.solve(_saddle(self.mass, self.rows, 1.0), push)[: s.nv]

    def iterate(self, dt: float, scale: float) -> tuple[int, np.ndarray]:
        """Number of Newton steps until the update is below 1e-9 of the displacement, as the specification
        requires, and the solution (displacements and multipliers).
        """
        y = np.zeros(self.size)
        for count in range(1, 21):  # noqa: B007
            value = np.asarray(self.residual(y, dt, self.start, scale))
            step = np.linalg.solve(np.asarray(self.matrix(y, dt, self.start, scale)), -value)
            y = y + step
            if np.abs(step[: self.s.nv]).max() <= 1e-9 * np.abs(y[: self.s.nv]).max():
                break
        return count, np.concatenate([y[: self.s.nv], scale * y[self.s.nv :]])


def _saddle(A: np.ndarray, rows: np.ndarray, scale: float, lower: float = 1.0) -> np.ndarray:
    """``((A, s W), (lower s W', 0))``."""
    nothing = np.zeros((len(rows), len(rows)))
    return np.block([[A, scale * rows.T], [lower * scale * rows, nothing]])


def conditions_at(step: Step, dt: float) -> dict[str, float]:
    """Condition numbers, in the spectral norm, of iteration matrices by the scaling of their rows.

    Each inverse is that of the well-scaled matrix with rows and columns scaled back, since rounding would
    limit the condition number of the unscaled matrix.
    """
    A = step.mass / (BETA * dt**2) + step.stiffness
    n, best = len(A), float(np.mean(np.diag(A)))
    inverse = np.linalg.inv(_saddle(A, step.rows, best))
    found = {}
    for name, scale in (("none", 1.0), ("stiffness", float(np.mean(np.diag(step.stiffness)))),
                        ("inertia and stiffness", best)):  # fmt: skip
        back = np.where(np.arange(len(inverse)) < n, 1.0, best / scale)
        lengths = (
            np.linalg.norm(_saddle(A, step.rows, scale), 2),
            np.linalg.norm(back[:, None] * inverse * back, 2),
        )
        found[name] = float(lengths[0] * lengths[1])
    ours = step.mass + dt**2 * BETA * step.stiffness
    found["velocities and impulses"] = float(np.linalg.cond(_saddle(ours, step.rows, 1.0, BETA)))
    return found


def run_scales(problem: Problem) -> tuple[list[int], float]:
    """Iterations of the package with rows multiplied by powers of two, and the largest difference of the
    motion.
    """
    old: Any = problem.system.constraint
    system = dataclasses.replace(problem.system, constraint=lambda t, q, p: p[SCALED] * old(t, q, p))
    scheme, counts, motions = schemes.newmark(constraint_form="index_3"), [], []
    for scale in RUN_SCALES:
        params = {**problem.params, SCALED: scale}
        traj = shared.run((system, params, problem.state), scheme, RUN_STEP, RUN_STEPS * RUN_STEP)
        counts.append(int(np.asarray(traj.iterations).sum()))
        motions.append(np.asarray(traj.q))
    return counts, float(max(np.abs(x - motions[0]).max() for x in motions))


def _paint(figure: Any, conditions: dict[str, list[float]]) -> None:
    axis = figure.subplots()
    for name, values in conditions.items():
        axis.loglog(STEPS, values, "o-", markersize=3, label=name)
    axis.set_xlabel("step $dt$ [s]")
    axis.set_ylabel("condition of the iteration matrix")
    axis.legend(fontsize=6)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` leaves the runs of the package out."""
    problem = mechanism()
    step, numbers = Step(problem), {}
    conditions: dict[str, list[float]] = {}
    for dt in STEPS:
        for name, value in conditions_at(step, dt).items():
            conditions.setdefault(name, []).append(value)
    for name, values in conditions.items():
        numbers[f"{name}: condition at 1e-2 s"] = values[0]
        numbers[f"{name}: condition at 1e-6 s"] = values[-1]
    unscaled = conditions["none"]
    numbers["none: growth of the condition, power of 1 / dt"] = float(np.log10(unscaled[-1] / unscaled[-2]))
    apart = 0
    for dt in NEWTON_STEPS:
        scale = float(np.mean(np.diag(step.mass / (BETA * dt**2) + step.stiffness)))
        (plain, y), (scaled, z) = step.iterate(dt, 1.0), step.iterate(dt, scale)
        numbers[f"iterations at {dt:g} s, none"], numbers[f"iterations at {dt:g} s, scaled"] = plain, scaled
        apart = max(apart, abs(plain - scaled))
        forces = np.abs(y - z)[step.s.nv :].max() / np.abs(z[step.s.nv :]).max()
        numbers[f"multipliers at {dt:g} s: none against scaled"] = float(forces)
    numbers["difference of the iterations, none and scaled"] = apart
    if not quick:
        counts, off = run_scales(problem)
        for scale, count in zip(RUN_SCALES, counts, strict=True):
            numbers[f"package: iterations, rows times {scale:.3g}"] = count
        numbers["package: difference of the iterations"] = max(counts) - min(counts)
        numbers["package: largest difference of the motion"] = off
    return common.finish(
        __file__, folder, numbers, {"dt": STEPS, **conditions}, (17.0, 7.0),
        lambda f: _paint(f, conditions), quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
