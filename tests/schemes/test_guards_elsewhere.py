"""Resets in sweeps, in runs into files and in identification, beside closed forms."""

from __future__ import annotations

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import Problem, models, schemes, transforms
from nsjax import multibody as mb
from nsjax.types import Array


def car(engine: Any = 4.0, at: Any = 1.0) -> Problem:
    """A car whose engine is shut down, and which latches on to a trailer at rest, at a place."""
    return mb.assemble(
        mb.body("car", mass=2.0), mb.slide("road", "ground", "car"), mb.actuator("engine", "road", engine),
        mb.body("trailer", mass=1.0), mb.slide("rails", "ground", "trailer"),
        mb.gear("hook", "rails", "road", ratio=1.0, active=False),
        mb.force("mark", "car", law=none, own={"at": at}),
    )  # fmt: skip


def none(t: Any, scene: Any, own: Any) -> Any:
    return jnp.zeros(2)


def arrives(t: Any, q: Any, v: Any, p: Any) -> Any:
    return p["mark"].own["at"] - q[0]


RESETS = ((arrives, {"hook.active": True, "engine": 0.0}),)
TURNED = ((arrives, lambda t, q, v, p: (q, -0.5 * v)),)


def latched(engine: Any, at: Any, time: float = 1.5) -> Array:
    """Places of car and trailer, and their rate: ``v^2 = 2 a x`` until they share the momentum."""
    rate = jnp.sqrt(engine * at)
    left = time - 2.0 * rate / engine
    return jnp.stack([at + rate * 2.0 / 3.0 * left, rate * 2.0 / 3.0 * left, rate * 2.0 / 3.0])


def ends(traj: Any) -> Array:
    return jnp.stack([traj.q[-1, 0], traj.q[-1, 1], traj.v[-1, 1]])


ENGINES, PLACES = jnp.array([3.0, 4.0, 5.0]), jnp.array([1.0, 0.7, 1.3])
RUN: dict[str, Any] = {"dt": 0.01, "steps": 150, "every": 75, "reduce": ends}


def test_lanes_of_a_sweep_change_at_their_own_instants() -> None:
    """The engine is a number that lanes differ in and that the reset changes."""
    keys = {"params.engine.value": ENGINES, "params.mark.own.at": PLACES}
    found = nsjax.sweep(car(), schemes.moreau(), keys, **RUN, resets=RESETS)
    assert bool(found.ok.all())
    exact = jax.vmap(latched)(ENGINES, PLACES)
    np.testing.assert_allclose(found.values, exact, atol=1e-11)


@pytest.mark.slow
def test_their_derivatives() -> None:
    """Forward and reverse, beside those of the closed form."""

    def run(engine: Array, at: Array) -> Any:
        keys = {"params.engine.value": engine, "params.mark.own.at": at}
        return nsjax.sweep(car(), schemes.moreau(), keys, **RUN, resets=RESETS).values

    exact = jax.vmap(jax.jacfwd(latched, (0, 1)))(ENGINES, PLACES)
    for transform in (jax.jacfwd, jax.jacrev):
        slopes = jax.jit(transform(run, (0, 1)))(ENGINES, PLACES)
        for found, one in zip(slopes, exact, strict=True):
            own = jnp.stack([found[k, :, k] for k in range(3)])
            np.testing.assert_allclose(own, one, atol=1e-9)
            np.testing.assert_allclose(jnp.sum(jnp.abs(found)), jnp.sum(jnp.abs(own)), atol=1e-12)


HALFWAY = ((lambda t, q, v, p: q[0] - 0.5, lambda t, q, v, p: (q, -0.5 * v)),)
"""Throws a ball back before it meets its floor."""


@pytest.mark.parametrize(
    ("made", "resets"),
    [
        (models.bouncing_ball, HALFWAY),
        *(pytest.param(car, x, marks=pytest.mark.slow) for x in (RESETS, TURNED)),
    ],
)
def test_a_run_into_a_file_is_reset(tmp_path: pathlib.Path, made: Any, resets: Any) -> None:
    """Bit for bit as `simulate`, after a crash behind the reset, too; and it goes on from the file."""
    path, scheme, run = tmp_path / "run.npz", schemes.moreau(), {"dt": 0.01, "steps": 150}
    traj = nsjax.simulate(*made(), scheme, **run, resets=resets)
    with pytest.raises(RuntimeError, match="crash"):
        nsjax.simulate_to_file(made(), scheme, path, **run, resets=resets, period=0.0, progress=crash)
    with pytest.raises(nsjax.InputError, match="the run has 1 resets, which files do not hold, and 0 are"):
        nsjax.resume(path, made())
    found = nsjax.resume(path, made(), resets=resets)
    np.testing.assert_array_equal(found.q, traj.q)
    saved = nsjax.load(path, made()).traj
    np.testing.assert_array_equal(saved.q, traj.q)
    for x in (found, saved):
        jax.tree.map(np.testing.assert_array_equal, x.carry, traj.carry)
    nsjax.save(tmp_path / "own.npz", made(), traj, scheme=scheme)
    np.testing.assert_array_equal(nsjax.load(tmp_path / "own.npz", made()).traj.v, traj.v)


def crash(done: int, total: int) -> None:
    if done > 120:
        raise RuntimeError("crash")


@pytest.mark.slow
def test_a_latch_is_identified() -> None:
    """Its place and the force of the engine, from where the car is before and after."""
    times, true = np.linspace(0.1, 1.5, 15), jnp.array([3.7, 0.83])
    rate = np.sqrt(true[0] * true[1])
    instant = 2.0 * rate / true[0]
    places = np.where(
        times < instant, true[0] * times**2 / 4.0, true[1] + rate * 2.0 / 3.0 * (times - instant)
    )
    data = nsjax.Recording(times=times, values={"car.x": places}, noise=1e-4)
    found = nsjax.identify(
        car(), schemes.moreau(), data,
        {"engine.value": transforms.positive(), "mark.own.at": transforms.positive()},
        dt=0.01, resets=RESETS,
    )  # fmt: skip
    assert found.success, found.messages
    np.testing.assert_allclose(found.values, true, rtol=1e-6)
    stopped = nsjax.identify(
        car(), schemes.moreau(),
        nsjax.Recording(
            times=times, values={"car.x": np.where(times < instant, places, true[1])}, noise=1e-4
        ),
        {"engine.value": transforms.positive(), "mark.own.at": transforms.positive()},
        dt=0.01, stop=arrives,
    )  # fmt: skip
    assert stopped.success, stopped.messages
    np.testing.assert_allclose(stopped.values, true, rtol=1e-6)


@pytest.mark.slow
def test_a_stepper_stops_and_is_reset() -> None:
    """The same state as `simulate`; steps after the stop change nothing."""
    made = nsjax.stepper(car(), schemes.moreau(), 0.01, stop=(arrives, 2), resets=TURNED, inputs=["engine"])

    def step(carry: Any, u: Any) -> tuple[Any, Any]:
        return made.step(carry, u)

    carry, rows = jax.lax.scan(step, made.reset(), jnp.full((500, 1), 4.0))
    again = nsjax.simulate(*car(), schemes.moreau(), dt=0.01, steps=500, stop=(arrives, 2), resets=TURNED)
    assert bool(again.stopped)
    assert bool(carry.stopped)
    np.testing.assert_allclose(carry.state.t, again.t[-1], atol=1e-12)
    np.testing.assert_allclose(rows.q[-1], again.q[-1], atol=1e-12)
    with pytest.raises(
        nsjax.InputError, match=r"resets change hook\.active, engine; name these in inputs="
    ):
        nsjax.stepper(car(), schemes.moreau(), 0.01, resets=RESETS)
