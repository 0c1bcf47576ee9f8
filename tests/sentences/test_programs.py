"""Wrong input of sweeps and identification, refused before anything is compiled."""

from __future__ import annotations

import dataclasses
import importlib
import types
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import nsjax
from nsjax import InputError, Recording, losses, models, reductions, schemes, transforms
from nsjax.identify import search
from nsjax.identify.losses import read
from nsjax.identify.records import Estimate
from nsjax.schemes.mixed.base_step import Runner
from nsjax.sweep.result import SweepResult
from nsjax.sweep.work_precision import COLUMNS, WorkPrecision
from tests.plot.coasting import coasting

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


class Unhashable:
    """A reduction that no program can be kept for."""

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, traj: Any) -> Any:
        return traj.q


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "mode": (lambda: swept(mode="outer"), "sweep: mode = 'outer'; "),
    "steps per lane": (
        lambda: swept({"dt": np.ones((2, 2))}, dt=None),
        r"sweep: dt has shape \(2, 2\); give one number per",
    ),
    "problem": (lambda: swept(problem=3), "sweep: problem = 3; it must be an nsjax.Problem"),
    "rows": (lambda: swept(rows=0, every=None), "sweep: rows = 0; it must be a whole number, at least 1"),
    "hash": (
        lambda: swept(reduce=Unhashable()),
        "sweep: reduce = .* cannot be hashed; derive a frozen dataclass",
    ),
    "memory": (
        lambda: swept(memory_bytes=0),
        r"sweep: memory_bytes = 0; give a number of bytes, 2\*\*30 for instance",
    ),
    "not saved": (lambda: reductions.quantity(coasting(BALL), "gap"), "reduce: gap is not saved"),
    "quantity": (
        lambda: reductions.quantity(coasting(BALL), "hight"),
        "reduce: trajectory has no quantity 'hight'; ",
    ),
    "table": (lambda: TABLE.of("bathe"), "no scheme 'bathe' in the table; "),
    "data": (lambda: fitted(data=[3]), "identify: data holds int; give nsjax.Recording"),
    "fitted problem": (lambda: fitted(problem=3), "identify: problem = 3; it must be an nsjax.Problem"),
    "observable": (
        lambda: fitted(data=Recording(times=T, values={"hight": T})),
        "identify: data has the observable 'hight'; ",
    ),
    "fixed start": (
        lambda: fitted(train={"state.q[0]": transforms.fixed(1.0)}),
        r"identify: state.q\[0\]: set a fixed start in the problem or in the recording",
    ),
    "noise": (
        lambda: fitted(data=Recording(times=T, values={"y": T}, noise=-1.0)),
        "noise of 'y' = -1.0; it must be positive",
    ),
    "values": (
        lambda: fitted(data=Recording(times=T, values={"y": T[:2]})),
        r"has shape \(2,\); there are 3 times",
    ),
    "loss": (lambda: read("cubes"), "loss = 'cubes'; "),
    "scale of a loss": (
        lambda: read(losses.Loss("huber", -1.0)),
        "choose squares.* with a positive scale",
    ),
    "ends": (
        lambda: transforms.interval(1.0, 0.0),
        r"interval\(1.0, 0.0\): the lower end must lie below the upper",
    ),
    "starts": (lambda: fitted(starts=0), "identify: starts = 0; it must be a whole number, at least 1"),
    "runs": (lambda: fitted(max_runs=0), "identify: max_runs = 0; it must be a whole number, at least 1"),
    "spread": (lambda: fitted(spread=0.0), "identify: spread = 0.0; it must be positive"),
    "intervals": (lambda: fitted(intervals="own"), "identify: intervals = 'own'; "),
    "resamples": (
        lambda: fitted(resamples=1),
        "identify: resamples = 1; it must be a whole number, at least 2",
    ),
    "method": (
        lambda: search.make("newtn", T, None, 1e-8, 60),  # type: ignore[arg-type]
        "identify: method = 'newtn'; .*; or give an optimiser of optax",
    ),
    "no method": (
        lambda: search.make(3, T, None, 1e-8, 60),  # type: ignore[arg-type]
        r"identify: method = 3; give one of .* or optax.adam\(...\)",
    ),
    "estimate": (
        lambda: made(Estimate, names=("restitution",), values=np.ones(1))["frction"],
        "no estimate 'frction'; known: restitution",
    ),
}


def made(cls: type[Any], **fields: Any) -> Any:
    """A record of which only some fields are there."""
    record = object.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(record, name, value)
    return record


@pytest.mark.parametrize("name", CASES)
def test_refused(name: str) -> None:
    make, words = CASES[name]
    with pytest.raises((InputError, KeyError), match=words):
        make()


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


def test_joints_inside_have_no_rows() -> None:
    """A base scheme of one's own asks for them, for a system that keeps them inside its structure."""
    names = {"system": types.SimpleNamespace(inside=1), "scheme": types.SimpleNamespace(name="own")}
    with pytest.raises(
        InputError, match="own: joints inside the structure have no rows; give joints_inside=False"
    ):
        made(Runner, **names).rows_at(0.0, np.zeros(1))
