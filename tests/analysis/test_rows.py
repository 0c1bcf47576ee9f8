"""Evaluation row by row: chunks, and what is refused."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes
from nsjax.analysis import rows
from nsjax.core import InputError


@functools.cache
def run(**options) -> nsjax.Trajectory:
    return nsjax.simulate(*models.bouncing_ball(), schemes.moreau(), dt=1e-3, steps=100, **options)


def _both(system, p, t, q, v):
    return t + p.gravity, q * v


def test_chunks_join_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    traj = run()
    monkeypatch.setattr(rows, "CHUNK", 32)  # 101 rows: three full calls and a filled one
    first, second = rows.by_rows(_both, traj, traj.t, traj.q, traj.v)
    np.testing.assert_array_equal(first, traj.t + 9.81)
    np.testing.assert_array_equal(second, traj.q * traj.v)


def test_prepared_parameters_reach_the_model() -> None:
    from tests.analysis.test_energy import PREPARED, START

    traj = nsjax.simulate(PREPARED, {"weight": 2.0}, START, schemes.moreau(), dt=1e-2, steps=2)
    assert rows.by_rows(_weight, traj, traj.t).tolist() == [4.0, 4.0, 4.0]


def _weight(system, p, t):
    return p["mass"]


def test_refusals() -> None:
    with pytest.raises(InputError, match="who: got Problem; pass the Trajectory"):
        rows.check_run(models.bouncing_ball(), "who")
    with pytest.raises(InputError, match=r"who: t has shape \(2, 101\); pass one run"):
        rows.check_run(jax.tree.map(lambda x: np.stack([x, x]), run()), "who")
    with pytest.raises(InputError, match="who: gap not saved; run simulate with save=None"):
        rows.check_run(run(save=("impacts",)), "who", ("gap", "impacts"))
    with pytest.raises(InputError, match="who: rows are 20 steps apart; run simulate with every=1"):
        rows.check_run(run(every=20), "who", every_step=True)

    def traced(x):
        traj = nsjax.simulate(*models.bouncing_ball(gravity=x), schemes.moreau(), dt=1e-3, steps=2)
        rows.check_run(traj, "who")
        return x

    with pytest.raises(InputError, match="outside transformations"):
        jax.jit(traced)(jnp.asarray(9.81))
