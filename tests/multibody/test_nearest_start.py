"""`assemble(near=)`: nearest positions and velocities that loops, couplings and limits allow."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from nsjax.multibody import assemble, body, coupling, hinge, slide

BOTH = ("joint", "absolute")


def linkage(**given: Any) -> Any:
    return assemble(
        body("crank", mass=1.0, inertia=0.02, com=0.15), hinge("A", "ground", "crank"),
        body("coupler", mass=1.5, inertia=0.05, com=0.3), hinge("B", "crank", "coupler", at=0.3),
        body("rocker", mass=1.0, inertia=0.05, com=0.25), hinge("D", "ground", "rocker", at=0.7),
        hinge("C", "coupler", "rocker", at=0.6, on=0.5, loop=True), gravity=9.81, **given,
    )  # fmt: skip


@pytest.mark.slow
def test_the_nearest_position_of_a_loop() -> None:
    """Against a search by scipy over all angles."""
    wanted, rates = np.array([0.9, 0.3, 1.9]), np.array([1.0, -0.5, 0.8])
    near = dict(zip(("crank", "coupler", "rocker"), zip(wanted, rates, strict=True), strict=True))
    problem = linkage(near=near)

    def open_by(x: np.ndarray) -> np.ndarray:
        ends = [(r * np.cos(a), r * np.sin(a)) for r, a in zip((0.3, 0.6, -0.5), x, strict=True)]
        return np.sum(ends, axis=0) - (0.7, 0.0)

    def rows(x: np.ndarray) -> np.ndarray:
        ends = [(-r * np.sin(a), r * np.cos(a)) for r, a in zip((0.3, 0.6, -0.5), x, strict=True)]
        return np.array(ends).T

    found = minimize(
        lambda x: np.sum((x - wanted) ** 2), wanted, method="SLSQP", tol=1e-14,
        constraints={"type": "eq", "fun": open_by, "jac": rows},
    )  # fmt: skip
    angles = np.asarray(problem.state.q)
    np.testing.assert_allclose(open_by(angles), 0.0, atol=1e-11)
    np.testing.assert_allclose(angles, found.x, atol=1e-6)  # of the search
    J = rows(angles)
    np.testing.assert_allclose(problem.state.v, rates - np.linalg.pinv(J) @ (J @ rates), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", BOTH)
def test_couplings_and_limits(coordinates: str) -> None:
    """``x = 2 y`` with x at most 0.5: from (1, 0.1) the limit acts, from (0.4, 0.1) it does not."""
    parts = [
        body("a", mass=1.0, inertia=0.1), slide("A", "ground", "a", limits=(-0.5, 0.5)),
        body("b", mass=1.0, inertia=0.1), slide("B", "ground", "b"),
        coupling("law", "A", "B", polynomial=(0.0, 2.0)),
    ]  # fmt: skip
    for near, x, rates in (((1.0, 0.1), 0.5, (1.0, 0.0)), ((0.4, 0.1), 0.36, (0.2, 0.4))):
        start = {name: (y, v) for name, y, v in zip("ab", near, rates, strict=True)}
        problem = assemble(*parts, coordinates=coordinates, near=start)
        mechanism, state, params = problem.system.parts, problem.state, problem.params
        scene = mechanism.scene(jnp.zeros(()), *map(jnp.asarray, (state.q, state.v)), params)
        found, speeds = zip(*(scene.coordinates(name) for name in "AB"), strict=True)
        np.testing.assert_allclose(np.ravel(found), (x, x / 2.0), atol=1e-10)
        speed = (2.0 * rates[0] + rates[1]) / 5.0
        np.testing.assert_allclose(np.ravel(speeds), (2.0 * speed, speed), atol=1e-10)
