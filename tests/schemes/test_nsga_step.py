"""The nonsmooth generalized-alpha steps against steps of plain linear algebra: a chain that hits a wall.

Mass, stiffness and damping are constant and one contact may act, so that a step is a linear system for each
of three states of the contact, one of which fulfils all inequalities.
"""

from __future__ import annotations

import numpy as np
import pytest

import nsjax
from nsjax import ContactLaw, State, System, schemes

MASS = np.diag([1.0, 2.0, 0.5])
STIFFNESS = 40.0 * np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
DAMPING = 0.1 * STIFFNESS / 40.0
WEIGHT = np.array([1.0, 2.0, 0.5]) * 9.81
WALL, RESTITUTION, RHO, H = 0.3, 0.5, 0.6, 2e-2

CHAIN = System(
    nq=3, nv=3, nc=1,
    mass=lambda q, p: MASS, force=lambda t, q, v, p: WEIGHT - STIFFNESS @ q - DAMPING @ v,
    gap=lambda t, q, p: p["wall"] - q[2:], law=lambda p: ContactLaw(restitution=p["restitution"]),
)  # fmt: skip
OUT = np.array([0.0, 0.0, -1.0])
NUMBERS = {"wall": WALL, "restitution": RESTITUTION}
START = State(t=0.0, q=np.array([0.0, 0.1, 0.05]), v=np.array([0.5, 0.0, -1.0]))


VARIANTS = {"nsga_coupled": (1.0, 0.0), "nsga_decoupled": (0.0, 1.0), "nsga_neglected": (0.0, 0.0)}
"""Whether forces of the smooth motion see the corrections, and whether these have forces of their own."""


def answers(variant: str, v0, old, closed: bool, struck: bool):
    """Increment of the smooth velocity, correction, impulse of position, jump, impulse, with a contact that
    is closed on position level and takes an impulse, or not.
    """
    c1, c2, smooth_q, smooth_v = old
    n, k, c = 3, STIFFNESS, DAMPING
    zero, column, blank = np.zeros((n, n)), OUT[:, None], np.zeros((n, 1))
    see, own = VARIANTS[variant]
    # unknowns (delta, U, nu, W, Lambda)
    load = WEIGHT - k @ smooth_q - c @ smooth_v
    rows = [np.hstack([c1 * MASS + c2 * k + c, see * k, blank, see * c, blank])]
    right = [load]
    rows.append(np.hstack([zero, MASS + own * H * H * k, -column, zero, blank]))
    rows.append(np.hstack([zero, own * H * k, blank, MASS + own * H * c, -column]))
    right += [np.zeros(n), np.zeros(n)]
    touch = np.hstack([c2 * OUT, OUT, [0.0], np.zeros(n), [0.0]])
    rows.append((touch if closed else np.eye(3 * n + 2)[2 * n])[None])
    right.append([-(WALL + OUT @ smooth_q) if closed else 0.0])
    rate = np.hstack([OUT, np.zeros(n), [0.0], OUT, [0.0]])
    rows.append((rate if struck else np.eye(3 * n + 2)[3 * n + 1])[None])
    right.append([-(OUT @ smooth_v + RESTITUTION * OUT @ v0) if struck else 0.0])
    z = np.linalg.solve(np.vstack(rows), np.concatenate(right))
    return z[:n], z[n : 2 * n], z[2 * n], z[2 * n + 1 : 3 * n + 1], z[3 * n + 1]


def run(variant: str, steps: int):
    """Positions, velocities and impulses by steps of linear algebra, each with the one state that fits."""
    am, af = (2 * RHO - 1) / (RHO + 1), RHO / (RHO + 1)
    gamma = 0.5 + af - am
    beta = 0.25 * (gamma + 0.5) ** 2
    c1, c2 = (1 - am) / ((1 - af) * gamma * H), H * beta / gamma
    q, v = START.q, START.v
    rate = np.linalg.solve(MASS, WEIGHT - STIFFNESS @ q - DAMPING @ v)
    a, path, impulses = rate, [(q, v)], [0.0]
    for _ in range(steps):
        first = (af * rate - am * a) / (1 - am)
        smooth_v = v + H * (1 - gamma) * a + H * gamma * first
        smooth_q = q + H * v + H * H * (0.5 - beta) * a + H * H * beta * first
        fits = []
        for closed, struck in ((False, False), (True, False), (True, True)):
            delta, u, nu, w, impulse = answers(variant, v, (c1, c2, smooth_q, smooth_v), closed, struck)
            new_q, new_v = smooth_q + c2 * delta + u, smooth_v + delta + w
            gap, rebound = WALL + OUT @ new_q, OUT @ new_v + RESTITUTION * OUT @ v
            on_position = nu >= 0.0 if closed else gap > 0.0
            on_velocity = impulse >= 0.0 if struck else (rebound >= 0.0 or not closed)
            if on_position and on_velocity:
                fits.append((new_q, new_v, impulse, delta))
        assert len(fits) == 1
        q, v, impulse, delta = fits[0]
        rate = c1 * delta
        a = first + (1 - af) / (1 - am) * rate
        path.append((q, v))
        impulses.append(impulse)
    return *(np.array(x) for x in zip(*path, strict=True)), np.array(impulses)


@pytest.mark.parametrize(
    "scheme",
    [
        pytest.param(schemes.nsga_coupled(RHO, iteration="monolithic"), id="coupled"),
        pytest.param(
            schemes.nsga_coupled(RHO, iteration="block"), marks=pytest.mark.slow, id="coupled, block"
        ),
        pytest.param(schemes.nsga_decoupled(RHO), id="decoupled"),
        pytest.param(schemes.nsga_neglected(RHO), marks=pytest.mark.slow, id="neglected"),
    ],
)
def test_steps_are_those_of_linear_algebra(scheme) -> None:
    steps = 300
    q, v, impulses = run(scheme.name, steps)
    traj = nsjax.simulate(CHAIN, NUMBERS, START, scheme, dt=H, steps=steps)
    traj.raise_for_status()
    hits = (impulses > 0).sum()
    assert 10 < hits < 290  # it leaves and comes back
    # the criterion of the paper, 1e-11 of the largest term, times the condition of 300 contracting steps
    np.testing.assert_allclose(traj.q, q, atol=1e-8)
    np.testing.assert_allclose(traj.v, v, atol=1e-7)
    np.testing.assert_allclose(traj.impulse_normal[:, 0], impulses, atol=1e-7)
