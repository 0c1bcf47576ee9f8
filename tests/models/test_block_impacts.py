"""A block that lands, rolls over and strikes, against references."""

from __future__ import annotations

import numpy as np
import pytest

from nsjax import models
from tests.models.block_runs import cuboid, run
from tests.references import slope
from tests.references.rigid_box import Reference, angle_between, standing

ROWS = 10
# Numbers of steps that do not nest: the step of an impact is quantised.
COUNTS = ROWS * np.array(
    [41, 53, 71, 97, 127, 163, 211, 277, 359, 467, 607, 787, 1021, 1327, 1723, 2239, 2909, 3779]
)


def convergence(ref: Reference, q, stuck, time: float):
    """Errors of poses (any row) and of the last velocity for all step sizes, and the true impacts."""
    times, qs, vs, impacts = ref.path(q, np.zeros(ref.nv), stuck, time, ROWS)
    numbers = {"dimension": ref.d, "size": ref.size, "friction": ref.friction, "slope": ref.angle}
    poses, rates = [], []
    for n in COUNTS:
        traj = run(models.block(initial_q=q, **numbers), time / n, int(n), every=int(n) // ROWS)
        np.testing.assert_allclose(traj.t, times, rtol=1e-12)
        move = np.linalg.norm(traj.q[:, : ref.d] - qs[:, : ref.d], axis=1)
        space = ref.d == 3
        turn = angle_between(traj.q[:, 3:], qs[:, 3:]) if space else np.abs(traj.q[:, 2] - qs[:, 2])
        poses.append(np.max(move + np.linalg.norm(ref.size) / 2 * turn))
        rates.append(np.abs(traj.v[-1] - vs[-1]).max())
    return time / COUNTS, np.array(poses), np.array(rates), impacts, (qs, vs)


# An impact is noticed up to d = 1.5 steps late. Rocking, with 0.7 of the speed kept, that prolongs the
# next swing by 2 * 0.7 d, so that the delay of the third impact is d + 2.4 (d + 2.4 d) = 9.2 d;
# rolling is alike. The velocity in the smooth motion that follows is off by the acceleration times that.
LATE = 9.2 * 1.5


@pytest.mark.slow
def test_box_lands_flat_and_stays():
    # A flat box (height < length / sqrt 2) that lands on its face stops dead: both corners get impulses.
    ref = Reference([0.6, 0.2], 1.5, 0.2)
    q = standing(ref, -0.6)
    stuck = [int(np.argmin(ref.gaps(q)))]
    steps, poses, _, impacts, _ = convergence(ref, q, stuck, 0.6)
    assert [i.active for i in impacts] == [[1, 3]]
    assert ref.margin > 0.2
    for counts in (1234, 6000):
        traj = run(
            models.block(dimension=2, size=ref.size, friction=1.5, slope=0.2, initial_q=q),
            0.6 / counts,
            counts,
        )
        assert np.abs(traj.v[-1]).max() < 1e-12
        held = traj.q[traj.t > impacts[0].time + 0.01]
        assert np.abs(held - held[-1]).max() < 1e-12
    assert 0.85 <= slope(steps, poses) <= 1.15
    # It stops up to a step and a half late, in an attitude off by what it turns in that time.
    far = np.linalg.norm(ref.size) * abs(impacts[0].before[2])
    assert np.all(poses <= 1.5 * far * steps)


@pytest.mark.slow
def test_box_rolls_over_its_corners_in_space():
    # Released on one corner it falls onto a second, a third and a fourth; each sticks, the one before
    # lifts off, and between the impacts the box is a heavy top about the corner.
    ref = Reference([0.2, 0.25, 0.4], 1.0)
    q = standing(ref, [-0.2, 0.3, 0.1])
    steps, poses, rates, impacts, (qs, vs) = convergence(ref, q, [1], 0.45)
    acceleration = np.abs(ref.acceleration(qs[-1], vs[-1], impacts[-1].stuck)[0]).max()
    assert [i.stuck for i in impacts] == [[3], [7], [5]]
    assert ref.margin > 0.3
    assert 0.85 <= slope(steps, poses) <= 1.15
    assert np.all(rates <= LATE * acceleration * steps)


# ---------------------------------------------------------------------------- parallelepiped

FALL = {
    "restitution": 0.8, "friction": 0.0, "initial_q": [0, 0, 1, 1, 0, 0, 0],
    "initial_v": [3, 0, 0, 60, 60, 0],
}  # fmt: skip


# Published to four digits for these step sizes.
@pytest.mark.parametrize(
    ("dt", "published"),
    [
        (2.5e-4, 503.1),
        (1e-4, 502.4),
        (2.5e-5, 500.8),
        pytest.param(1e-3, 506.6, marks=pytest.mark.slow),
        pytest.param(5e-4, 512.9, marks=pytest.mark.slow),
    ],
)
def test_impulse_of_the_parallelepiped(dt, published):
    steps = round(0.69 / dt)
    traj = run(cuboid(**FALL), dt, steps, every=steps)
    assert int(traj.events.count) == 1
    assert float(traj.events.impulse_normal[0]) == pytest.approx(published, abs=0.051)
    assert int(traj.events.contact[0]) == 2  # (+,-,+)
