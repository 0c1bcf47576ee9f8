"""Free body and heavy top from parts: orders of all schemes."""

from __future__ import annotations

import numpy as np
import pytest

from nsjax import schemes
from nsjax.multibody import assemble, ball, body
from tests.multibody.benchmark_runs import halved, run

OTHERS = {
    "moreau": schemes.moreau(),
    "half_explicit": schemes.half_explicit(),
    "bathe": schemes.bathe(),
    "ed_alpha": schemes.ed_alpha(),
    "ggl_unified": schemes.ggl_unified(),
    "nsga_decoupled": schemes.nsga_decoupled(),
}

FREE = assemble(
    body("stone", mass=1.0, inertia=(1.0, 2.0, 3.0)),
    start={"stone": ((0.0, 0.0, 0.0), ((0.0, 0.0, 0.0), (0.3, 5.0, 0.2)))},
)
FREE_TURN = np.array([0.22163858, 0.12989281, -0.74757703, -0.61248084])
FREE_SPIN = np.array([-4.81412577, 1.38354367, 2.78123515])
TOP = assemble(
    body("top", mass=15.0, inertia=(0.234375, 0.46875, 0.234375), com=(0.0, 1.0, 0.0)),
    ball("tip", "ground", "top"),
    gravity=9.81,
    start={"top": ((1.0, 0.0, 0.0, 0.0), (0.0, 150.0, -4.61538))},
)
TOP_TURN = np.array([0.73294398, -0.27828572, 0.53182461, -0.32017614])


def turned(found, wanted) -> float:
    """Angle between two attitudes."""
    return float(np.min([np.linalg.norm(found - wanted), np.linalg.norm(found + wanted)]))


def free_error(scheme, dt):
    traj = run(FREE, scheme, dt, 2.0, 1)
    return turned(traj.q[-1, 3:], FREE_TURN), float(np.linalg.norm(traj.v[-1, 3:] - FREE_SPIN))


def order_of_free_body(scheme) -> None:
    coarse, fine = halved(lambda dt: free_error(scheme, dt), 5e-3)
    for one, other in zip(coarse, fine, strict=True):
        assert 3.4 <= one / other <= 4.6, (coarse, fine)


def order_of_top(scheme, dt) -> None:
    coarse, fine = halved(lambda dt: turned(run(TOP, scheme, dt, 1.0, 1).q[-1], TOP_TURN), dt)
    assert 3.4 <= coarse / fine <= 4.6, (coarse, fine)


def test_free_body() -> None:
    order_of_free_body(schemes.generalized_alpha())


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_other_schemes_turn_bodies(name: str) -> None:
    order_of_free_body(OTHERS[name])
    order_of_top(OTHERS[name], 2.5e-4)
