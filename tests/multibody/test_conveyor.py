"""A conveyor belt of parts: a plane on a body whose motion is prescribed."""

from __future__ import annotations

import numpy as np
import pytest

import nsjax
from nsjax import multibody as mb
from nsjax import schemes

SPEED, MU, G = 0.8, 0.3, 9.81


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [schemes.moreau(), schemes.ggl_unified()])
def test_a_puck_is_taken_along(scheme) -> None:
    """It slides with ``mu g`` until it is as fast as the belt, then sticks."""
    problem = mb.assemble(
        mb.body("belt", mass=1.0, inertia=1.0), mb.body("puck", mass=0.5, inertia=1e-3),
        mb.slide("drive", "ground", "belt", motion=lambda t: SPEED * t),
        mb.contact("grip", mb.corners("puck", 0.2, 0.02), mb.plane("belt"), friction=MU),
        gravity=G, start={"puck": (0.0, 0.02, 0.0)},
    )  # fmt: skip
    dt = 1e-3
    run = nsjax.simulate(*problem, scheme, dt=dt, time=0.5, every=10)
    until, t = SPEED / (MU * G), np.asarray(run.t)
    slides = np.minimum(t, until)
    wanted = 0.5 * MU * G * slides**2 + SPEED * (t - slides)
    # friction begins at the end of its first step, and sticking within a step
    np.testing.assert_allclose(np.asarray(run.body("puck").position)[:, 0], wanted, atol=SPEED * dt)
    np.testing.assert_allclose(np.asarray(run.body("puck").velocity)[t > until + dt, 0], SPEED, atol=1e-9)


def test_columns_are_of_the_origin_or_of_the_centre_of_mass() -> None:
    """`traj.body` is the origin in both kinds of coordinates, columns of a body are its coordinates."""
    found = {}
    for coordinates in ("joint", "absolute"):
        problem = mb.assemble(
            mb.body("cab", mass=0.8, inertia=0.01, com=(0.0, -0.1)), start={"cab": (1.0, 0.0, 0.0)},
            coordinates=coordinates,
        )  # fmt: skip
        run = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=1)
        np.testing.assert_allclose(run.body("cab").position[0], [1.0, 0.0], atol=1e-15)
        found[coordinates] = float(run["cab.y"][0])
    assert found == {"joint": 0.0, "absolute": -0.1}
