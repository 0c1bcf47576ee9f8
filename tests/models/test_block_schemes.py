"""The planar block with every registered scheme: dropped on a slope on which it sticks."""

from __future__ import annotations

import numpy as np

import nsjax
from nsjax import models, schemes
from tests.design import each_family

G, MASS, SLOPE, DROP, TIME = 9.81, 2.5, 0.2, 5e-3, 0.2


@each_family("name", "moreau")
def test_impulses_of_a_block_that_falls_and_sticks_are_those_of_its_weight(name):
    """At rest at both ends: normal and tangential impulses are the weight's, whatever the scheme, and the
    block has slid by what it fell along the slope, and little more.
    """
    steps = 1000
    problem = models.block(
        dimension=2, size=[0.2, 0.1], slope=SLOPE, friction=0.8, mass=MASS, restitution=0.0, height=DROP
    )
    traj = nsjax.simulate(*problem, schemes.REGISTRY[name].factory(), dt=TIME / steps, steps=steps)
    traj.raise_for_status()
    weight = MASS * G * TIME * np.array([np.cos(SLOPE), np.sin(SLOPE)])
    speed = np.abs(np.asarray(traj.v)[-1])
    assert speed[:2].max() < 1e-8
    assert np.asarray(traj.gap)[-1].min() > -2 * TIME / steps * np.sqrt(
        2 * G * DROP
    )  # two steps of the fall
    normal = np.asarray(traj.impulse_normal)[1:].sum()
    tangent = np.abs(np.asarray(traj.impulse_tangential)[1:].sum())
    np.testing.assert_allclose([normal, tangent], weight, rtol=1e-6)
    fallen = DROP * np.tan(SLOPE)
    moved = abs(float(traj.q[-1, 0] - traj.q[0, 0]))
    # the impact is met within two steps
    assert abs(moved - fallen) < 2 * TIME / steps * np.sqrt(2 * G * DROP)
