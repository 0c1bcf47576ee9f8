"""Gear-Gupta-Leimkuhler schemes against an independent implementation, closed forms and references.

The slider-crank has its published data, without friction and with restitution 0.1: contacts that stay
closed for long, where enforcing the gap matters.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy.optimize import nnls

import nsjax
from experiments.gear_gupta_leimkuhler.fig09_unified_gaps import penetrations
from nsjax import models, schemes
from nsjax.analysis import amplification_matrix
from nsjax.core import InputError
from tests.references.slider_crank import Data
from tests.schemes.small_systems import LIFT, G, run

RESTITUTION = 0.1


def slider_crank(scheme, dt: float, steps: int, every: int = 1) -> nsjax.Trajectory:
    problem = models.slider_crank(restitution=RESTITUTION, friction=0.0)
    traj = nsjax.simulate(*problem, scheme, dt=dt, steps=steps, every=every)
    traj.raise_for_status()
    return traj


# ---------------------------------------------------------------- an independent implementation


class Peer:
    """`schemes.md` sections 3 and 4 for the slider-crank, in numpy: mechanics by hand, contact problems as
    nearest points by non-negative least squares, the unified step as a fixed point over them.
    """

    up = np.array([-1.0, -1.0, 1.0, 1.0])
    left = np.array([1.0, -1.0, 1.0, -1.0])

    def __init__(self, data: Data, turn: float = 2.7e-6, length: float = 0.05, half: float = 0.025):
        self.d, self.turn, self.length, self.half = data, turn, length, half

    def mass(self, q):
        d = self.d
        side = d.l1 * d.l2 * (d.m2 / 2 + d.m3) * np.cos(q[0] - q[1])
        first = d.j1 + d.l1**2 * (d.m1 / 4 + d.m2 + d.m3)
        return np.array(
            [[first, side, 0], [side, d.j2 + d.l2**2 * (d.m2 / 4 + d.m3), 0], [0, 0, self.turn]]
        )

    def force(self, q, v):
        d = self.d
        side = d.l1 * d.l2 * (d.m2 / 2 + d.m3) * np.sin(q[0] - q[1])
        first = -side * v[1] ** 2 - d.gravity * d.l1 * np.cos(q[0]) * (d.m1 / 2 + d.m2 + d.m3)
        return np.array(
            [first, side * v[0] ** 2 - d.gravity * d.l2 * np.cos(q[1]) * (d.m2 / 2 + d.m3), 0.0]
        )

    def gap(self, q):
        y = self.d.l1 * np.sin(q[0]) + self.d.l2 * np.sin(q[1])
        tilt = self.left * self.length * np.sin(q[2])
        return self.half + self.d.clearance + self.up * (y - tilt) - self.half * np.cos(q[2])

    def w(self, q):
        turn = -self.up * self.left * self.length * np.cos(q[2]) + self.half * np.sin(q[2])
        return np.stack([self.up * self.d.l1 * np.cos(q[0]), self.up * self.d.l2 * np.cos(q[1]), turn])

    @staticmethod
    def law(metric, w, free):
        """``0 <= x  _|_  w' metric^-1 w x + free >= 0``."""
        factor = np.linalg.solve(np.linalg.cholesky(metric), w)
        target = np.linalg.lstsq(factor.T, -free, rcond=None)[0]
        return nnls(factor, target)[0]

    def decoupled(self, q, v, dt):
        middle = q + dt / 2 * v
        mass, w, on = self.mass(middle), self.w(middle), self.gap(middle) <= 0
        v1 = v + np.linalg.solve(mass, dt * self.force(middle, v))
        impulse, psi = np.zeros(4), np.zeros(4)
        if on.any():
            free = w[:, on].T @ (v1 + self.d.restitution * v)
            impulse[on] = self.law(mass, w[:, on], free)
        v1 = v1 + np.linalg.solve(mass, w @ impulse)
        q1 = q + dt / 2 * (v + v1)
        for _ in range(50 if self.gap(q1).min() < 0 else 0):
            near = self.gap(q1) < self.d.clearance / 2
            change = (
                self.law(np.eye(3), w[:, near], self.gap(q1)[near] - w[:, near].T @ w @ psi) - psi[near]
            )
            psi[near] += change
            q1 = q1 + w[:, near] @ change
            if np.abs(change).max() < 1e-17:
                break
        return q1, v1, impulse

    def unified(self, q, v, dt, position=True, linearised=False, kinetic=False):
        middle = q + dt / 2 * v
        mass, on = self.mass(middle), self.gap(middle) <= 0
        q1, v1, impulse, psi = q + dt * v, v, np.zeros(4), np.zeros(on.sum())
        for _ in range(200):
            before = q1, v1
            bar = (q + q1) / 2
            w = self.w(bar)[:, on]
            v1 = v + np.linalg.solve(mass, dt * self.force(bar, (v + v1) / 2))
            if on.any():
                impulse[on] = self.law(mass, w, w.T @ (v1 + self.d.restitution * v))
                v1 = v1 + np.linalg.solve(mass, w @ impulse[on])
            q1 = q + dt / 2 * (v + v1)
            if on.any() and position:
                metric = mass if kinetic else np.eye(3)
                d = np.linalg.solve(metric, w)
                free = self.gap(q)[on] + w.T @ (q1 - q)
                if not linearised:
                    free = self.gap(q1 + d @ psi)[on] - w.T @ d @ psi
                psi = self.law(metric, w, free)
                q1 = q1 + d @ psi
            if max(np.abs(q1 - before[0]).max() / dt, np.abs(v1 - before[1]).max()) < 1e-13 * 150:
                break
        return q1, v1, impulse


TIGHT = {"contact_tolerance": 1e-13, "stage_tolerance": 1e-14}
VARIANTS = {
    "decoupled": (schemes.ggl_decoupled(**TIGHT), {}),
    "unified": (schemes.ggl_unified(**TIGHT), {}),
    "reference": (schemes.ggl_unified(position_multiplier=False, **TIGHT), {"position": False}),
    "linearised": (schemes.ggl_unified(gap="linearised", **TIGHT), {"linearised": True}),
    "kinetic": (schemes.ggl_unified(metric="kinetic", **TIGHT), {"kinetic": True}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_steps_equal_an_independent_implementation(name):
    scheme, options = VARIANTS[name]
    dt, steps = 1e-4, 400
    traj = slider_crank(scheme, dt, steps)
    peer = Peer(Data(restitution=RESTITUTION, friction=0.0))
    step = functools.partial(peer.decoupled if name == "decoupled" else peer.unified, dt=dt, **options)
    q, v, acting = np.zeros(3), np.array([150.0, -75.0, 0.0]), 0
    for i in range(steps):
        q1, v1, impulse = step(traj.q[i], traj.v[i])
        # the solvers stop at 1e-13 of 150 rad/s and of impulses of 1e-2 N s
        np.testing.assert_allclose(traj.q[i + 1], q1, rtol=0, atol=5e-15)
        np.testing.assert_allclose(traj.v[i + 1], v1, rtol=0, atol=5e-11)
        np.testing.assert_allclose(traj.impulse_normal[i + 1], impulse, rtol=0, atol=5e-14)
        q, v, _ = step(q, v)
        acting += impulse.any()
    assert acting > 90
    # and on its own: rounding grows along the impacts
    np.testing.assert_allclose(traj.q[-1], q, rtol=0, atol=5e-12)
    np.testing.assert_allclose(traj.v[-1], v, rtol=0, atol=5e-10)


# ------------------------------------------------------------------------ energy and penetration


@pytest.mark.parametrize("steps", [pytest.param(400_000, marks=pytest.mark.slow)])
def test_unified_scheme_keeps_the_walls(steps):
    # Late by one step where a contact was not foreseen: dt/2 |dg| = 5e-6 m at 1 m/s.
    traj = slider_crank(schemes.ggl_unified(), 1e-5, steps)
    activating, settled = penetrations(traj)
    assert 1e-6 < activating.max() < 5e-6
    assert settled.max() < 1e-7
    acts = np.asarray(traj.closed_time) > 0
    assert -traj.gap[acts].min() < 1e-13
    assert traj.residual.max() <= 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("steps", [20_000, 400_000])
def test_decoupled_scheme_keeps_the_walls(steps):
    traj = slider_crank(schemes.ggl_decoupled(), 1e-5, steps)
    # the projection stops within 1e-12 of 150 rad/s times dt and the length of the crank
    assert -traj.gap.min() < 1e-13
    assert traj.residual.max() <= 1e-11


# --------------------------------------------------------------- closed forms of single contacts

BOTH = {
    "decoupled": schemes.ggl_decoupled(contact_tolerance=1e-14, gap_tolerance=1e-12),
    "unified": schemes.ggl_unified(contact_tolerance=1e-13, stage_tolerance=1e-13, gap_tolerance=1e-12),
}
pairs = pytest.mark.parametrize("name", BOTH)


@pytest.mark.slow
@pairs
def test_constraint_that_depends_on_time(name):
    amplitude, w, m, dt = 0.2, 9.0, 1.7, 1e-2
    p = {"mass": m, "amplitude": amplitude, "frequency": w}
    traj = run(LIFT, p, [0.0], [amplitude * w], dt, 200, scheme=BOTH[name])
    t, v = traj.t, amplitude * w * np.cos(w * (traj.t - dt / 2))
    np.testing.assert_allclose(traj.q[:, 0], amplitude * np.sin(w * t), rtol=0, atol=1e-13)
    np.testing.assert_allclose(traj.v[1:, 0], v[1:], rtol=0, atol=1e-11)
    force = m * (G + np.diff(v[1:]) / dt)
    np.testing.assert_allclose(traj.constraint_force[2:, 0], force, rtol=1e-9)


# ------------------------------------------------------------------------------- smooth motion


def test_unified_scheme_is_an_implicit_midpoint_rule():
    # In (q, dt v), with x = omega dt: stable for every x.
    x = np.array([0.1, 1.0, 2.0, 3.0, 30.0])
    found = amplification_matrix(schemes.ggl_unified(), x)
    for k, y in enumerate(x * x):
        expected = np.array([[1 - y / 4, 1.0], [-y, 1 - y / 4]]) / (1 + y / 4)
        np.testing.assert_allclose(found[k], expected, rtol=0, atol=1e-13 * np.abs(expected).max())
        assert np.abs(np.linalg.eigvals(found[k])).max() == pytest.approx(1.0, abs=1e-12)


# ------------------------------------------------------------------------------------ refusals


@pytest.mark.slow
def test_penetration_tolerance_leaves_a_resting_body_where_it_is():
    """What Moreau's step leaves, at most its way in a step, is projected to the tolerance or left."""
    dt, steps = 1e-3, 400
    deepest = []
    for depth in (0.0, 1e-5, 5e-3):
        scheme = schemes.ggl_decoupled(penetration_tolerance=depth)
        problem = models.bouncing_ball(restitution=0.0, initial_q=(0.1,), initial_v=(0.0,))
        traj = nsjax.simulate(*problem, scheme, dt=dt, steps=steps)
        traj.raise_for_status()
        gap = np.asarray(traj.gap)[:, 0]
        hit = int(np.argmax(np.asarray(traj.impacts)[:, 0]))
        assert 0 < hit < steps // 2
        assert gap.min() >= -depth - 1e-14
        np.testing.assert_allclose(gap[hit:], gap[hit], atol=1e-14)  # rounding: no drift
        deepest.append(gap[hit])
    assert deepest[:2] == pytest.approx([0.0, -1e-5], abs=1e-14)
    assert -dt < deepest[2] < -1e-5  # of the order of the speed of 1 m/s times dt
    with pytest.raises(InputError, match="it must be at least 0"):
        schemes.ggl_decoupled(penetration_tolerance=-1e-6)
