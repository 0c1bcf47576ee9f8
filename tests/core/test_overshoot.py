"""How far inside walls a start may lie: as far as a step of the scheme may have gone, and no further."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, State, models, multibody, schemes
from nsjax.core import checks
from nsjax.core.operators import prepared, refreshed, row_rates
from nsjax.core.start_checks import overshoot
from nsjax.core.step import mass_matrix
from tests.common.boxes import boxes
from tests.common.chain import chain
from tests.design import slow_but

DT = 1e-3
BALL = models.bouncing_ball(restitution=0.0, gravity=9.81, radius=0.05)


def starts(problem, q, v, t=0.0, dt=DT):
    state = State(t=t, q=np.array(q, float), v=np.array(v, float))
    return nsjax.simulate(problem.system, problem.params, state, schemes.moreau(), dt=dt, steps=1)


def test_depth_of_a_ball() -> None:
    """``dt (|v| + |t| g)``, and a nanometre of rounding."""
    for v, t in ((0.0, 0.0), (-2.0, 0.0), (3.0, 0.25), (0.0, -0.5)):
        depth = DT * (abs(v) + abs(t) * 9.81) + 1e-9
        starts(BALL, [0.05 - depth * (1 - 1e-6)], [v], t)
        with pytest.raises(InputError, match="the start penetrates"):
            starts(BALL, [0.05 - depth * (1 + 1e-6)], [v], t)


def test_energy_of_other_parts_counts() -> None:
    """The tip of a bar that its wall has stopped, while the rest still moves: all of the kinetic energy may
    have been its own.
    """
    bar = models.elastic_bar(elements=6, distance=0.3, restitution=0.0)
    system, p, v = bar.system, checks.canonical(bar.params, "params"), np.ones(7)
    ready = prepared(system, p)
    tip = int(np.argmin([system.gap(0.0, x, ready)[0] for x in np.eye(7)]))
    v[tip] = 0.0
    mass = np.asarray(mass_matrix(system, np.zeros(7), ready))
    fastest = np.sqrt(v @ mass @ v * np.linalg.inv(mass)[tip, tip])
    assert fastest > 1.0
    found = overshoot(system, p, State(t=0.0, q=np.zeros(7), v=v), np.float64(DT))["beyond gap"]
    np.testing.assert_allclose(found, [DT * fastest], rtol=1e-9)


BAD = {
    "bouncing_ball": models.bouncing_ball(radius=0.05).replace(initial_q=[0.04]),
    "block": models.block(height=-0.01),
    "slider_crank": models.slider_crank().replace(initial_q=[0.0, 0.036, 0.0]),
}


@pytest.mark.parametrize("model", slow_but(sorted(BAD), "bouncing_ball"))
def test_a_centimetre_inside_is_no_start(model: str) -> None:
    problem = BAD[model]
    deepest = float(
        np.min(problem.system.gap(0.0, problem.state.q, prepared(problem.system, problem.params)))
    )
    assert -0.05 < deepest < -0.005
    with pytest.raises(InputError, match=r"at the start; the start penetrates; .* let nsjax\.consistent"):
        nsjax.simulate(*problem, schemes.moreau(), dt=1e-5, steps=1)


def _spheres():
    return multibody.spheres(0.1, 1.0, [[0.0, 0.0, 0.1], [0.0, 0.05, 0.3]], capacity=4)


MADE = {
    "joints in the structure": lambda: chain(3, True, floor=True, loop=True),
    "contacts of nodes": lambda: models.flexible_cube(elements=1, size=1.0, solver="iterative"),
    "islands": lambda: boxes(2),
    "pairs": _spheres,
}


@pytest.mark.parametrize("kind", slow_but(sorted(MADE), "contacts of nodes"))
def test_rows_of_any_kind(kind: str) -> None:
    """Of a start moving at 2 m/s along everything: no faster than the fastest rate, and at least as fast as
    the rows are.
    """
    problem = MADE[kind]()
    system, p = problem.system, checks.canonical(problem.params, "params")
    v = np.full(system.nv, 2.0)
    state = checks.canonical(dataclasses.replace(problem.state, v=v), "state")
    found = overshoot(system, p, state, np.float64(DT))
    t, q = jnp.asarray(state.t), jnp.asarray(state.q)
    ready = refreshed(system, t, q, prepared(system, p))
    rates = np.abs(row_rates(system, t, q, v, ready))
    normal = rates[: system.nc * (1 + system.nt) : 1 + system.nt]
    assert np.all(found["beyond gap"] >= DT * normal * (1 - 1e-12))
    if system.nb:
        assert np.all(found["beyond constraint"] >= DT * rates[-system.nb :] * (1 - 1e-12))


@pytest.mark.parametrize("form", slow_but(["index_2", "index_3", "ggl"], "index_2"))
def test_long_drift_of_constraints_is_a_start(form: str) -> None:
    """Joints fulfilled at midpoints drift for as long as the run lasts, on both levels."""
    crank, scheme = models.slider_crank_bilateral(), schemes.moreau(constraint_form=form)
    traj = nsjax.simulate(*crank, scheme, dt=2e-5, steps=20_000, every=1000, save=())
    for t, q, v in zip(traj.t, traj.q, traj.v, strict=True):
        state = State(t=t, q=q, v=v)
        assert not nsjax.simulate(crank.system, crank.params, state, scheme, dt=2e-5, steps=1).status
    far = dataclasses.replace(crank.state, q=np.array([0.3, 0.1]))
    with pytest.raises(InputError, match=r"residual of constraint 0 .* the start violates it"):
        nsjax.simulate(crank.system, crank.params, far, scheme, dt=2e-5, steps=1)
