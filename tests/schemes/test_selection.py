"""Which contacts take part in `moreau_theta`, in closed form."""

from __future__ import annotations

import numpy as np
import pytest

import nsjax
from nsjax import ContactLaw, State, System, schemes

POINT = System(
    nq=1, nv=1, nc=1, mass=lambda q, p: np.eye(1), force=lambda t, q, v, p: 0.0 * q,
    gap=lambda t, q, p: q, law=lambda p: ContactLaw(restitution=0.0),
)  # fmt: skip


@pytest.mark.parametrize(
    ("theta", "gamma", "least", "most"),
    [
        (0.5, 0.5, -1.0, 0.0),
        (0.5, 1.0, -0.5, 0.5),
        (1.0, 1.0, 0.0, 1.0),
        pytest.param(0.5, None, -1.0, 0.0, marks=pytest.mark.slow),
    ],
)
def test_gap_that_a_plastic_impact_leaves(theta, gamma, least, most):
    """At constant speed one the step ``k`` of the impact is the first with ``g_0 <= (k + gamma) dt``, and
    ``(1 - theta) dt`` of its way is still gone.
    """
    dt, left = 0.01, []
    scheme = schemes.moreau_theta(theta, gamma=gamma, gap_tolerance=0.0)
    for start in (0.0431, 0.0449, 0.0457, 0.0474, 0.0486):
        state = State(t=0.0, q=np.array([start]), v=np.array([-1.0]))
        traj = nsjax.simulate(POINT, (), state, scheme, dt=dt, steps=10)
        k = np.ceil(start / dt - (0.5 if gamma is None else gamma))
        left.append(start - (k + 1 - theta) * dt)
        assert traj.q[-1, 0] == pytest.approx(left[-1], abs=1e-15)  # rounding of ten sums
    assert np.all(np.array(left) >= least * dt)
    assert np.all(np.array(left) <= most * dt)
