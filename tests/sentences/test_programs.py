"""Wrong input of sweeps and identification, refused before anything is compiled."""

from __future__ import annotations

import dataclasses
import importlib
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, Problem, Recording, State, System, models, schemes, transforms
from nsjax.sweep.result import SweepResult
from nsjax.sweep.work_precision import COLUMNS, WorkPrecision
from tests.points import unit_mass

run = importlib.import_module("nsjax.identify.run")
BALL, MOREAU = models.bouncing_ball(), schemes.moreau()
T = np.array([0.1, 0.2, 0.3])
FELL = Recording(times=T, values={"y": 1.0 - T})
TABLE = WorkPrecision(
    scheme=("moreau",), failures=(),
    **{name: np.zeros(1) for name in COLUMNS if name != "scheme"},
)  # fmt: skip


def swept(over: Any = None, problem: Any = BALL, **options: Any) -> Any:
    over = {"params.restitution": [0.5]} if over is None else over
    return nsjax.sweep(problem, MOREAU, over, **{"dt": 1e-3, "steps": 2, "every": 2, **options})


def fitted(problem: Any = BALL, data: Any = FELL, train: Any = None, **options: Any) -> Any:
    train = {"restitution": transforms.interval(0.0, 1.0)} if train is None else train
    return nsjax.identify(problem, MOREAU, data, train, **{"dt": 0.1, **options})


def lost(t: Any, q: Any, v: Any, p: Any) -> Any:
    return jnp.where(t > 0.5, jnp.nan, -q)


def steps_of_a_lost_force() -> Any:
    system = System(nq=1, nv=1, mass=unit_mass, force=lost)
    problem = Problem(system=system, params={}, state=State(t=0.0, q=np.ones(1), v=np.ones(1)))
    return nsjax.sweep_time_step(problem, MOREAU, [0.1, 0.05], time=1.0, samples=10)


class Unhashable:
    """A reduction that no program can be kept for."""

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, traj: Any) -> Any:
        return traj.q


def made(cls: type[Any], **fields: Any) -> Any:
    """A record of which only some fields are there."""
    record = object.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(record, name, value)
    return record


def test_no_search_that_could_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    none = types.SimpleNamespace(best=None, why="the model failed")
    monkeypatch.setattr(run.search, "search", lambda *given: [none])
    point = types.SimpleNamespace(status=np.array([4]), fault="the run failed")
    monkeypatch.setattr(run.Objective, "points", lambda self, at: [point])
    with pytest.raises(
        InputError, match=r"identify: no search could begin: the model failed \(status \[4\]\); give"
    ):
        fitted()


def test_a_traced_result() -> None:
    def keep(x: Any) -> None:
        fields = {f.name: None for f in dataclasses.fields(SweepResult)}
        made(SweepResult, **{**fields, "status": x}).save("map.npz")

    with pytest.raises(InputError, match="save: the result is traced; save outside jit and grad"):
        jax.make_jaxpr(keep)(1.0)
