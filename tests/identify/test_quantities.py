"""Quantities of parts as measured values: the angle of a joint, and its force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import multibody as mb
from nsjax import schemes, transforms

MASS, COM, INERTIA, GRAVITY, START = 1.3, 0.4, 0.11, 9.81, 0.3


def swing(times: np.ndarray) -> dict[str, np.ndarray]:
    """Angle of a pendulum that falls from rest, and the horizontal force on it in its pin."""
    about = INERTIA + MASS * COM**2
    turn = lambda angle: -MASS * GRAVITY * COM * np.cos(angle) / about  # noqa: E731
    found: Any = solve_ivp(
        lambda t, y: [y[1], turn(y[0])],
        (0.0, times[-1]),
        [START, 0.0],
        t_eval=times,
        rtol=1e-12,
        atol=1e-12,
    )
    angle, rate = found.y
    pull = -MASS * COM * (np.sin(angle) * turn(angle) + np.cos(angle) * rate**2)
    return {"pin.position": angle, "pin.force.x": pull}


@pytest.mark.parametrize(("name", "coordinates"), [
    ("pin.force.x", "joint"), pytest.param("pin.position", "joint", marks=pytest.mark.slow),
    pytest.param("pin.force.x", "absolute", marks=pytest.mark.slow),
])  # fmt: skip
def test_an_inertia_from_a_quantity_of_a_joint(name: str, coordinates: Any) -> None:
    arm = mb.assemble(
        mb.body("arm", mass=MASS, inertia=0.2, com=COM), mb.hinge("pin", "ground", "arm"),
        gravity=GRAVITY, start={"arm": (START, 0.0)}, coordinates=coordinates,
    )  # fmt: skip
    times = np.linspace(0.02, 0.4, 20)
    data = nsjax.Recording(times=times, values={name: swing(times)[name]}, noise=1e-4)
    dt = 1e-3
    train = {"arm.inertia": transforms.positive()}
    fit = nsjax.identify(arm, schemes.generalized_alpha(), data, train, dt=dt)
    # steps are of second order: 1e-6 of an angle of 1 rad; forces are those in the middle of a step
    assert abs(float(fit.problem.params["arm"].inertia) / INERTIA - 1.0) < 1e-3
