"""A hand of 20 joints that grips a box, and a pile of five boxes that an arm pushes: with a capacity they
move, and change with their parameters, as with all contacts by name.
"""

from __future__ import annotations

import numpy as np
import pytest

import nsjax
from nsjax import schemes
from tests.multibody.contacts.gripping_hand import hand


@pytest.mark.slow
def test_the_hand_lifts_the_box() -> None:
    """As far as the palm rises, but for what the closing fingers move it."""
    problem = hand(6, own=False)
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=1000, every=500)
    traj.raise_for_status()
    z = np.asarray(traj["crate.z"])
    assert abs(z[-1] - z[1] - 0.04) < 5e-3
    assert abs(z[-1] - z[0] - 0.04) < 1e-3
