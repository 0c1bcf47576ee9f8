"""Contacts of mechanisms from parts against closed forms: rolling, row of spheres, stack, drop."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import nsjax
from experiments.contact.fig_row_of_spheres import collided
from nsjax import schemes
from nsjax.multibody import (
    assemble,
    body,
    contact,
    slide,
    sphere,
)
from tests.design import slow_but


@pytest.mark.parametrize("restitution", slow_but([1.0, 0.7], 0.7))
def test_row_of_spheres(restitution: float) -> None:
    """Four equal spheres with room between them: velocities after all impacts, and momentum."""
    names, places = "abcd", np.array([0.0, 0.35, 0.68, 1.03])
    problem = assemble(
        *(body(x, mass=1.5) for x in names),
        *(slide(f"rail_{x}", "ground", x) for x in names),
        *(
            contact(f"{x}{y}", sphere(x, 0.1), sphere(y, 0.1), restitution=restitution)
            for x, y in itertools.pairwise(names)
        ),
        start={f"rail_{x}": (float(s), 2.0 * (x == "a")) for x, s in zip(names, places, strict=True)},
    )
    problem = problem.replace({f"{x}{y}.restitution": restitution for x, y in ("ab", "bc", "cd")})
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-4, time=1.0, every=1000)
    found = collided(places, np.array([2.0, 0.0, 0.0, 0.0]), 0.2, restitution, 1.0)
    assert np.allclose(traj.v[-1], found, atol=1e-12)
    assert np.allclose(np.sum(traj.v, axis=1), 2.0, atol=1e-13)
    if restitution == 1.0:
        assert np.allclose(found, [0.0, 0.0, 0.0, 2.0], atol=1e-13)
