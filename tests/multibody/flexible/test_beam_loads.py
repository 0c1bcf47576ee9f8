"""Loads along beams, stations, and ends that move as prescribed."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.analysis import equilibrium
from nsjax.math import rotations
from nsjax.multibody import assemble, beam, fixed, force, line_load, section
from tests.multibody.flexible.beam_cases import COLUMN

SOFT = section(**COLUMN)


def arm(**given):
    return beam("arm", (0, 0, 0), (1, 0, 0), section=SOFT, first_axis=(0, 0, 1), **{"elements": 4, **given})


def pushes(problem, t=0.0, q=None):
    s, p = problem.system, problem.system.prepare(problem.params)
    q = problem.state.q if q is None else q
    return np.asarray(jax.jit(s.force)(t, q, jnp.zeros(s.nv), p)).reshape(-1, 6)


def test_resultants_of_a_load_along_a_beam() -> None:
    """``f = t (1 + x)``: its force 3/2 t and its moment 5/6 t about the start, exactly with linear shapes;
    a second load follows the nodes, all turned by a right angle.
    """
    shape = jnp.asarray(np.outer(1.0 + np.linspace(0.0, 1.0, 5), (0.0, 1.0, 0.0)))
    problem = assemble(
        arm(), line_load("wind", "arm", law=lambda t, own: t * own, own=shape),
        line_load("jet", "arm", (0.0, 0.0, 2.0), follower=True),
        start={"arm": (((0.0, 0.0, 0.0), (np.pi / 2, 0.0, 0.0)), None)},
    )  # fmt: skip
    found, x = pushes(problem, t=2.0), np.linspace(0.0, 1.0, 5)
    np.testing.assert_allclose(found[:, 3:], 0.0, atol=1e-9)  # of stiffness 1e6, rounding
    np.testing.assert_allclose(found[:, :3].sum(axis=0), (0.0, 3.0 - 2.0, 0.0), atol=1e-8)
    assert x @ found[:, 1] == pytest.approx(2.0 * 5.0 / 6.0 - 1.0, abs=1e-8)


@pytest.mark.slow
def test_deflection_under_a_load_along_the_cantilever() -> None:
    """The sum of the closed forms of its nodal forces: a force P at a moves the tip by ``P (a^3/3 - a
    l^2/12 + a^2 (L - a)/2) / EI + P a / GA``, exactly for linear elements of one point.
    """
    weight, step = 1e-4, 0.25
    problem = assemble(arm(), fixed("clamp", "ground", "arm.start"), line_load("w", "arm", (0.0, 0.0, 0.0)))
    found = equilibrium(problem, {"w.value": (0.0, weight, 0.0)})
    wanted = 0.0
    for k in range(1, 5):
        a, P = k * step, weight * step * (0.5 if k == 4 else 1.0)
        wanted += P * (a**3 / 3.0 - a * step**2 / 12.0 + 0.5 * a**2 * (1.0 - a)) + P * a / COLUMN["GA"]
    assert found.positions[-1].reshape(-1, 7)[-1, 1] == pytest.approx(wanted, rel=1e-8)


@pytest.mark.slow
def test_stations_are_nodes() -> None:
    stations = {"third": 1.0 / 3.0, "half": 0.5}
    problem = assemble(arm(stations=stations), force("f", "arm.third", (1.0, 0.0, 0.0)))
    assert problem.params["arm"].points.shape == (6, 3)
    found = pushes(problem)
    np.testing.assert_allclose(found[:, 0], [0, 0, 1, 0, 0, 0], atol=1e-9)
    np.testing.assert_allclose(problem.params["arm"].points[3], (0.5, 0.0, 0.0), atol=1e-15)
    assert dict(arm(stations=stations).option("stations")) == {"third": 2, "half": 3}


@pytest.mark.slow
def test_an_end_that_moves_as_prescribed() -> None:
    """The clamp is closed where the beam is moved as a whole by the path, at the rate of the path."""

    def path(t):
        return (0.1 * t, 0.2 * t, 0.0), (0.0, 0.0, 3.0 * t)

    problem = assemble(arm(elements=1), fixed("clamp", "ground", "arm.start", path=path))
    v = np.asarray(problem.state.v).reshape(-1, 6)
    np.testing.assert_allclose(v, [(0.1, 0.2, 0, 0, 0, 3), (0.1, 3.2, 0, 0, 0, 3)], atol=1e-9)
    s, p, t = problem.system, problem.system.prepare(problem.params), 0.5
    turn = np.asarray(rotations.exponential(jnp.asarray([0.0, 0.0, 3.0 * t])))
    place = np.array([0.1 * t, 0.2 * t, 0.0])
    other = place + np.array([np.cos(3.0 * t), np.sin(3.0 * t), 0.0])
    q = jnp.asarray(np.concatenate([place, turn, other, turn]))
    rows = jax.jit(s.constraint)
    np.testing.assert_allclose(rows(t, q, p), 0.0, atol=1e-14)
    assert np.max(np.abs(rows(t + 0.1, q, p))) > 0.01
