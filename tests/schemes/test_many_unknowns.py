"""Schemes whose steps solve for several vectors of velocities, on a mechanism with more unknowns than are
eliminated in a loop that is one kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.multibody import assemble, body, contact_group, hinge, plane, sphere


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ggl_unified", "nsga_coupled"])
def test_thirteen_velocities(name: str) -> None:
    """Twice or three times as many unknowns: balls in a row and an arm that falls onto one of them end as
    with Moreau's rule, to first order in the step.
    """
    names = [f"ball{k}" for k in range(4)]
    parts: list[Any] = [body(x, mass=2.0, inertia=0.2) for x in names]
    parts += [
        body("arm", mass=1.0, inertia=0.02, com=(0.2, 0.0)),
        hinge("pin", "ground", "arm", at=(0.3, 0.4)),
    ]
    shapes = [*(sphere(x, 0.1) for x in names), sphere("arm", 0.05, at=(0.4, 0.0)), plane()]
    start: dict[str, Any] = {x: (0.205 * k + 0.05 * (k > 0), 0.1, 0.0) for k, x in enumerate(names)}
    start["ball0"] = start["ball0"], (1.0, 0.0, -10.0)
    problem = assemble(*parts, contact_group("all", shapes, friction=0.3), gravity=9.0, start=start)
    assert problem.system.nv == 13
    ends = []
    for scheme in (getattr(schemes, name)(), schemes.moreau()):
        traj = nsjax.simulate(*problem, scheme, dt=1e-3, steps=100, every=100)
        traj.raise_for_status()
        ends.append(np.asarray(traj.q[-1]))
    # velocities of 1 m/s and 10 rad/s, impulses up to two steps early or late
    np.testing.assert_allclose(ends[0], ends[1], atol=2e-2)
