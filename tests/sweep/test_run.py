"""Sweeps: lanes are single runs; axes, gradients, results."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import ContactLaw, Problem, State, System, models, reductions, schemes, status
from nsjax.status import REFUSED
from nsjax.sweep import program
from tests.sweep.press import BALL, SYSTEM

# Lanes against single runs and against each other: values, failures, compilations, chunks.
run_module = importlib.import_module("nsjax.sweep.run")
SCHEME = schemes.moreau()
RESTITUTION = "params.restitution"
DT, STEPS = 1e-3, 400

KEPT = {
    "z": reductions.final("z"), "impacts": reductions.total("impacts"), "highest": reductions.maximum("q"),
    "deepest": reductions.minimum("gap_min"), "mean": reductions.mean("v"),
    "start": reductions.initial("energy"),
}  # fmt: skip


def ball(over, **options) -> nsjax.SweepResult:
    """A sweep of the ball; one program for all calls with the same keys and reduction."""
    lengths = {"steps": STEPS, "every": 100} if "dt" in over else {"dt": DT, "steps": STEPS, "every": 100}
    return nsjax.sweep(BALL, SCHEME, over, **{"reduce": KEPT, **lengths, **options})


def single(dt: float = DT, steps: int = STEPS, every: int = 100, **changes: Any) -> nsjax.Trajectory:
    """The run that a lane stands for."""
    params = {**BALL.params, **changes}
    return nsjax.simulate(BALL.system, params, BALL.state, SCHEME, dt=dt, steps=steps, every=every)


def same(a: Any, b: Any) -> bool:
    return all(
        np.array_equal(x, y, equal_nan=True)
        for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    )


def test_lanes_are_single_runs() -> None:
    values = np.linspace(0.1, 0.9, 7)
    found = ball({RESTITUTION: values})
    assert found.shape == (7,)
    assert bool(found.ok.all())
    for k, e in enumerate(values):
        traj = single(restitution=e)
        # another compiled program of the same operations: equal up to the rounding of heights, 1e-17 m,
        # times the steps
        close = {"rtol": 1e-12, "atol": 1e-13}
        np.testing.assert_allclose(found["z"][k], traj.q[-1, 0], **close)
        np.testing.assert_array_equal(found["impacts"][k], traj.impacts.sum(0))
        np.testing.assert_allclose(found["highest"][k], traj.q.max(0), **close)
        np.testing.assert_allclose(found["deepest"][k], traj.gap_min.min(0), **close)
        np.testing.assert_allclose(found["mean"][k], traj.v.mean(0), **close)
        np.testing.assert_allclose(found["start"][k], 9.81 * 0.05, rtol=1e-15)
    assert len(set(found["impacts"][:, 0].tolist())) > 2  # the lanes do differ


def test_a_failing_lane_is_told_and_leaves_the_others_alone() -> None:
    n = 6
    over = {
        RESTITUTION: np.linspace(0.2, 0.8, n),
        "params.press": np.full(n, 1e3),
        "params.lost": np.full(n, 1e3),
    }
    good = ball(over)
    over["params.restitution"] = np.where(np.arange(n) == 4, np.nan, over[RESTITUTION])
    over["params.press"] = np.where(np.arange(n) == 1, 0.055, 1e3)
    over["params.lost"] = np.where(np.arange(n) == 2, 0.2, 1e3)
    found = ball(over)
    np.testing.assert_array_equal(found.ok, [True, False, False, True, False, True])
    assert found.status[1] == status.CONTACT_JAMMED
    assert found.status[2] & status.FORCE_NOT_FINITE
    assert found.status[4] == REFUSED
    keep = np.asarray(found.ok)
    assert same(*(jax.tree.map(lambda x: x[keep], r.values) for r in (found, good)))
    assert np.isnan(found["z"][4])
    failures = found.failures()
    assert list(failures) == [1, 2, 4]
    # the press is first seen closed at the midpoint of step 56
    assert failures[1].startswith("lane 1 (params.restitution = 0.32, params.press = 0.055, ")
    assert "step 56, t = 0.056 s: no impulses fulfil the contact laws" in failures[1]
    assert "(contact 1: press)" in failures[1]
    assert "the force function returned a value that is not finite" in failures[2]
    assert failures[4].endswith("params.restitution = nan; every number must be finite")
    with pytest.raises(nsjax.RunError, match="3 of 6 lanes failed; lane 1"):
        found.raise_for_status()


def test_values_that_the_model_refuses_are_refused_in_their_lanes() -> None:
    found = ball({RESTITUTION: [0.5, 1.5, 0.7]})
    assert found.status.tolist() == [0, REFUSED, 0]
    assert "must lie in [0, 1]" in found.failures()[1]


def test_numbers_of_the_scheme_and_entries_of_the_start_are_varied() -> None:
    found = ball({"scheme.gap_tolerance": [0.0, 0.01], "state.v[0]": [-1.0, 0.0]})
    for k, (tolerance, speed) in enumerate(((0.0, -1.0), (0.01, 0.0))):
        scheme = schemes.moreau(gap_tolerance=tolerance)
        start = dataclasses.replace(BALL.state, v=np.array([speed]))
        traj = nsjax.simulate(SYSTEM, BALL.params, start, scheme, dt=DT, steps=STEPS, every=100)
        np.testing.assert_allclose(found["z"][k], traj.q[-1, 0], rtol=1e-12)  # as above
    assert found["deepest"][1, 0] > 0.0 > found["deepest"][0, 0]  # contact before the floor


def test_step_sizes_are_lanes_of_one_program_with_the_bits_of_their_own_runs() -> None:
    dts = [1e-3, 5e-4, 2e-3, 2.5e-4, 1e-4]
    lengths = {"steps": None, "every": None, "time": 0.4, "samples": 4}
    found = ball({"dt": dts}, **lengths)
    programs = program.call._cache_size()
    again = ball({"dt": np.asarray(dts)[::-1] * 0.5}, **lengths)
    assert bool(again.ok.all())
    for k, dt in enumerate(dts):
        alone = ball({"dt": [dt]}, **lengths)
        assert same(
            jax.tree.map(lambda x, k=k: x[k], found.values), jax.tree.map(lambda x: x[0], alone.values)
        )
    assert program.call._cache_size() == programs
    for k, dt in enumerate(dts):  # and they are what simulate computes
        traj = single(dt=dt, steps=round(0.4 / dt), every=round(0.1 / dt))
        np.testing.assert_allclose(found["z"][k], traj.q[-1, 0], rtol=1e-10)  # rounding over 4000 steps
        np.testing.assert_array_equal(found["impacts"][k], traj.impacts.sum(0))


def test_numbers_lanes_and_lengths_do_not_compile_again(monkeypatch) -> None:
    ball({RESTITUTION: [0.5]})
    programs = program.call._cache_size()
    ball({RESTITUTION: np.linspace(0, 1, 33)}, steps=30, every=10)
    ball({RESTITUTION: [0.1, 0.2]}, dt=2e-3)
    monkeypatch.setattr(run_module, "CALL_STEPS", 10)  # many compiled calls of few lanes
    told: list[tuple[int, int]] = []
    few = ball({RESTITUTION: np.linspace(0, 1, 5)}, progress=lambda *x: told.append(x))
    assert told == [(k, 5) for k in range(1, 6)]
    monkeypatch.undo()
    assert same(few.values, ball({RESTITUTION: np.linspace(0, 1, 5)}).values)
    assert program.call._cache_size() == programs


def test_product_has_one_axis_per_key() -> None:
    over = {RESTITUTION: [0.3, 0.6, 0.9], "params.gravity": [5.0, 9.81]}
    found = ball(over, mode="product")
    assert found.shape == found["z"].shape == (3, 2)
    assert found["impacts"].shape == (3, 2, 2)
    lanes = {name: x.reshape(-1) for name, x in found.lanes().items()}
    flat = ball(lanes)
    assert same(jax.tree.map(lambda x: x.reshape(6, *x.shape[2:]), found.values), flat.values)
    np.testing.assert_allclose(found["z"][2, 1], single(restitution=0.9).q[-1, 0], rtol=1e-12)  # as above


def test_whole_rows_and_functions_of_the_trajectory() -> None:
    reduce = {"z": reductions.samples("z", first=-3), "count": _count, "t": reductions.final("t")}
    found = ball({RESTITUTION: [0.3, 0.6], "state.v[0]": [0.0, -1.0]}, reduce=reduce)
    assert found["z"].shape == (2, 3)
    start = dataclasses.replace(BALL.state, v=np.array([-1.0]))
    params = {**BALL.params, "restitution": 0.6}
    traj = nsjax.simulate(SYSTEM, params, start, SCHEME, dt=DT, steps=STEPS, every=100)
    np.testing.assert_allclose(found["z"][1], traj.q[-3:, 0], rtol=1e-12)  # as above
    assert found["count"][1] == np.count_nonzero(traj.impacts[:, 0])
    assert found["t"].tolist() == [0.4, 0.4]


def _count(traj: nsjax.Trajectory) -> jax.Array:
    return jnp.count_nonzero(traj.impacts[:, 0])


def test_a_fold_needs_no_memory_for_rows_and_a_function_is_refused_in_time() -> None:
    over = {RESTITUTION: [0.5]}
    ball(over, steps=STEPS, every=1, memory_bytes=2000)
    with pytest.raises(nsjax.InputError, match="save fewer rows"):
        ball(over, steps=STEPS, every=1, memory_bytes=2000, reduce={"z": reductions.samples("z")})


def test_results_are_saved(tmp_path) -> None:
    xarray = pytest.importorskip("xarray")
    over = {RESTITUTION: [0.3, 1.6, 0.9], "params.gravity": [5.0, 9.81]}
    found = ball(over, mode="product")
    found.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        np.testing.assert_array_equal(file["over.params.restitution"], over[RESTITUTION])
        np.testing.assert_array_equal(file["values.z"], found["z"])
        np.testing.assert_array_equal(file["status"], found.status)
        assert file["failures"].tolist() == list(found.failures().values())
        assert len(file["failures"]) == 2
    found.save(tmp_path / "run.nc")
    with xarray.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as data:
        assert data["values.z"].dims == (RESTITUTION, "params.gravity")
        np.testing.assert_array_equal(data["values.z"].sel({"params.gravity": 9.81}), found["z"][:, 1])
        np.testing.assert_array_equal(data[RESTITUTION], over[RESTITUTION])
        assert data["values.impacts"].shape == (3, 2, 2)
        assert data.attrs["failures"].count("\n") == 1
    flat = ball({"state.q": [[0.1], [0.2]], RESTITUTION: [0.5, 0.6]})
    data = flat.to_xarray()
    assert data["over.state.q"].dims == ("lane", "state.q.0")
    with pytest.raises(nsjax.InputError, match=r"not as 'mat'"):
        found.save(tmp_path / "run.mat")


def test_the_bar_needs_its_extra(monkeypatch, capsys) -> None:
    pytest.importorskip("tqdm")
    ball({RESTITUTION: [0.5, 0.6]}, progress=True)
    assert "2/2" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(nsjax.InputError, match=r"pip install 'nsjax\[progress\]'"):
        ball({RESTITUTION: [0.5]}, progress=True)


DROP = Problem(
    system=System(
        nq=1, nv=1, nc=1, mass=lambda q, p: jnp.eye(1), force=lambda t, q, v, p: -9.81 * jnp.ones(1),
        gap=lambda t, q, p: q, law=lambda p: ContactLaw(restitution=p["restitution"]),
    ),
    params={"restitution": 0.5}, state=State(t=0.0, q=np.full(1, 0.02), v=np.zeros(1)),
)  # fmt: skip
"""It falls for 64 ms: each lane of 100 steps of 1 ms bounces."""


@pytest.mark.parametrize(
    "problem", [DROP, pytest.param(BALL, marks=pytest.mark.slow)], ids=["drop", "ball"]
)
def test_the_path_for_accelerators_gives_the_same_lanes(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All lanes at once, as on a GPU, on this CPU: equal to rounding, a lane that fails included."""
    found, steps = [], 100 if problem is DROP else STEPS
    for backend, names in (("cpu", ("q", "impacts")), ("gpu", ("impacts", "q"))):  # programs of their own
        monkeypatch.setattr(jax, "default_backend", lambda name=backend: name)
        kept = {"q": reductions.final("q"), "impacts": reductions.total("impacts")}
        found.append(
            nsjax.sweep(
                problem, SCHEME, {RESTITUTION: np.array([0.2, 0.5, np.nan, 0.8])}, dt=DT, steps=steps,
                every=steps, reduce={name: kept[name] for name in names},
            )
        )  # fmt: skip
    here, there = found
    assert here.ok.tolist() == there.ok.tolist() == [True, True, False, True]
    assert np.all(np.sum(np.reshape(here["impacts"], (4, -1)), axis=1)[here.ok] > 0)
    for name in ("q", "impacts"):
        # hundreds of steps of a loop that the compiler may contract in another way
        np.testing.assert_allclose(there[name], here[name], rtol=1e-11, atol=1e-13, equal_nan=True)


# What may be varied, how lanes are made of it, and what is refused before any work.
TWO_BALLS = models.bouncing_ball(balls=2, height=0.1)
FRICTION = "params.friction"


def plan(over, scheme=None, **options):
    """A sweep that is refused before it runs."""
    options = {"dt": 1e-3, "steps": 10, "every": 10, **options}
    return nsjax.sweep(TWO_BALLS, scheme or schemes.moreau(), over, **options)


@pytest.mark.parametrize(
    ("over", "options", "words"),
    [
        ({"params.frction": [0.1]}, {}, "params has no 'frction'; did you mean 'friction'"),
        ({"friction": [0.1]}, {}, "did you mean 'params.friction'"),
        ({"params": [0.1]}, {}, "'params' is no key; did you mean 'params.NAME'"),
        ({"state.v[7]": [0.1]}, {}, "state.v has shape (2,); there is no such entry"),
        ({"scheme.rho_inf": [0.1]}, {}, "scheme has no 'rho_inf'"),
        ({"state": [0.1]}, {}, "'state' is no key"),
        ({"start.rod": [0.1]}, {}, "'start.rod' is no key; did you mean 'state.q[0]'"),
        ({3: [0.1]}, {}, "3 is no key"),
        ({}, {}, "give a mapping such as"),
        ({FRICTION: []}, {}, "there is no lane"),
        ({FRICTION: 0.1}, {}, "lanes come first"),
        ({FRICTION: [[0.1, 0.2], [0.3]]}, {}, "one value per lane, all of one shape"),
        ({FRICTION: np.zeros(3, np.float32)}, {}, "give real numbers in 64 bits"),
        ({"state.v": np.zeros((3, 5))}, {}, "has shape (3, 5)"),
        ({FRICTION: [0.1, 0.2], RESTITUTION: [0.5]}, {}, "mode='product'"),
        ({FRICTION: [0.1]}, {"mode": "outer"}, "mode = 'outer'"),
        ({"state.v": np.zeros((1, 2)), "state.v[0]": [1.0]}, {}, "are the same number; vary it once"),
        ({"dt": [1e-3]}, {}, "give the step size either as dt or in over"),
        ({FRICTION: [0.1]}, {"dt": None}, "give the step size either as dt or in over"),
        ({FRICTION: [0.1]}, {"samples": 2}, "every = 10 and samples = 2; give one of them"),
        ({"dt": [1e-3, 3e-4]}, {"dt": None, "steps": None, "time": 0.01, "every": None}, "value 1 of dt"),
        (
            {"dt": [1e-3, 2e-3]},
            {"dt": None, "steps": None, "time": 0.01, "every": None, "samples": 10},
            "dt = 0.002 needs 5 steps, which do not make 10 rows",
        ),
        ({FRICTION: [0.1]}, {"reduce": 3}, "reduce = 3; give a fold"),
        ({FRICTION: [0.1]}, {"reduce": {}}, "reduce = {}; give a fold"),
        ({FRICTION: [0.1]}, {"memory_bytes": 0}, "memory_bytes = 0"),
        ({FRICTION: [0.1]}, {"memory_bytes": 100}, "one lane on each of 1 devices needs"),
        ({FRICTION: [0.1]}, {"gradient": "none"}, "gradient"),
        ({FRICTION: [0.1]}, {"reduce": reductions.final("thta")}, "'thta'"),
    ],
)
def test_refusals(over, options, words: str) -> None:
    with pytest.raises(nsjax.InputError) as refused:
        plan(over, **options)
    assert words in str(refused.value)


# Gradients of reduced sweeps: right, and in the memory of one lane.
LANES, FINE, LONG = 256, 5e-4, 500
HEIGHTS = np.linspace(0.05, 0.1, LANES)


def loss(both):
    """Mean square distance from 0.2 m after 0.25 s over starting heights; each ball bounces once."""
    restitution, gravity = both
    found = nsjax.sweep(
        BALL.replace(restitution=restitution, gravity=gravity), schemes.moreau(),
        {"state.q[0]": HEIGHTS}, reduce=reductions.final("z"), dt=FINE, steps=LONG, every=LONG,
    )  # fmt: skip
    return jnp.mean((found.values - 0.2) ** 2)


@pytest.fixture(scope="module")
def compiled():
    return jax.jit(jax.value_and_grad(loss)).lower(np.array([0.9, 9.81])).compile()


@pytest.mark.slow
def test_memory_is_that_of_one_lane(compiled) -> None:
    memory = compiled.memory_analysis().temp_size_in_bytes
    # carries of the steps of one lane, and inputs, results and status of all; carries of 500 steps of 256
    # lanes would take more than 256 * 500 * 80 bytes = 10 MB
    assert memory < LONG * 120 + LANES * 200
