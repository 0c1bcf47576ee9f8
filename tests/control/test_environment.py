"""Environments of gymnasium: steps of the stepper, the package's own checks, sentences."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import nsjax
from nsjax import InputError, State, models, schemes

gymnasium = pytest.importorskip("gymnasium", reason="the package gymnasium is not installed")


@pytest.fixture(scope="module")
def crank():
    return nsjax.stepper(
        models.slider_crank(), schemes.moreau(), 1e-3, inputs=["torque"], outputs=["theta1", "energy"]
    )


def drawn(generator: np.random.Generator) -> State:
    state = models.slider_crank().state
    return State(t=0.0, q=state.q, v=np.asarray(state.v) * generator.uniform(0.9, 1.1))


def reward(row, u):
    return row.v[0] - 0.1 * u[0] ** 2


@pytest.mark.slow
def test_the_checks_of_gymnasium_and_seeds(crank) -> None:
    from gymnasium.utils.env_checker import check_env

    env = nsjax.environment(crank, reward, low=-0.2, high=0.2, start=drawn, steps=3)
    check_env(env, skip_render_check=True)
    first, again, other = (env.reset(seed=k)[0] for k in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert [env.step(np.zeros(1))[3] for _ in range(3)] == [False, False, True]


def test_a_failure_ends_the_episode(crank) -> None:
    env = nsjax.environment(crank, reward, low=-1.0, high=1.0)
    env.reset()
    _, _, over, _, info = env.step(np.array([np.nan]))
    assert over
    assert info["failures"]


def test_sentences(crank, monkeypatch) -> None:
    blind = nsjax.stepper(models.slider_crank(), schemes.moreau(), 1e-3, inputs=["torque"])
    with pytest.raises(InputError, match=r"and outputs \[\]; name at least one of both in nsjax.stepper"):
        nsjax.environment(blind, reward, low=0.0, high=1.0)
    with pytest.raises(InputError, match=r"low = 1.0 and high = 0.0; low must be below high"):
        nsjax.environment(crank, reward, low=1.0, high=0.0)
    with pytest.raises(InputError, match=r"no episode has begun; call reset\(\) of the environment first"):
        nsjax.environment(crank, reward, low=0.0, high=1.0).step(np.zeros(1))
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ImportError, match=r"environments need gymnasium; .* pip install 'nsjax\[gym\]'"):
        nsjax.environment(crank, reward, low=0.0, high=1.0)
