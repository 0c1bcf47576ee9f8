"""What an accelerator would be given: a batch of runs lowered for CUDA on a CPU, and its operations."""

from __future__ import annotations

import collections
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import State, models, schemes
from tests.design import slow_but

LANES = 1_000
FOUND = {  # loops, gathers
    "moreau": (6, 20), "half_explicit": (12, 46), "ggl_decoupled": (12, 32), "moreau_theta": (6, 6),
    "generalized_alpha": (10, 18), "bathe": (14, 24), "ggl_unified": (6, 6), "nsga_decoupled": (7, 6),
    "nsga_coupled": (5, 6),
}  # fmt: skip
"""Loops of a batch of slider-cranks (rows, steps, iterations: the host waits in each) and gathers (rows by
lane), as counted when this was written; a program that needs more is to be looked at.
"""


def operations(text: str) -> dict[str, int]:
    """How often a program has operations that accelerators pay for beyond arithmetic."""
    found = re.findall(r"stablehlo\.(while|gather|scatter|sort|dot_general|custom_call)\b", text)
    return dict(collections.Counter(found))


def lane(name: str, problem: nsjax.Problem) -> Callable[[Any, Any], Any]:
    """The end of 100 steps over start values."""
    scheme = schemes.REGISTRY[name].factory()

    def end(q: Any, v: Any) -> Any:
        state = State(t=jnp.zeros(()), q=q, v=v)
        return nsjax.simulate(
            problem.system, problem.params, state, scheme, dt=1e-5, steps=100, every=100
        ).q[-1]

    return end


@pytest.mark.parametrize("name", slow_but(FOUND, "moreau"))
def test_batches_for_cuda(name: str) -> None:
    """No call of a library, no scatter, no sort: the lanes of a batch are arithmetic in a few loops."""
    start = jax.ShapeDtypeStruct((LANES, 3), float)
    batch = jax.jit(jax.vmap(lane(name, models.slider_crank())))
    found = operations(jax.export.export(batch, platforms=["cuda"])(start, start).mlir_module())
    assert set(found) <= {"while", "gather"}
    assert (found["while"], found["gather"]) <= FOUND[name]
    assert found["gather"] <= FOUND[name][1]


@pytest.mark.slow
def test_derivatives_of_a_batch_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through impacts, forward and in reverse, as on a GPU: those of the lanes one after the other."""
    ball, heights = models.bouncing_ball(), jnp.linspace(0.01, 0.1, 40)[:, None]

    def total(q: Any) -> Any:
        found = nsjax.sweep(
            ball, schemes.moreau(), {"state.q": q}, reduce=at_end, dt=1e-3, steps=200, every=200
        )
        return jnp.sum(found.values[0]), found.values[1]

    made = []
    for backend in ("cpu", "gpu"):
        monkeypatch.setattr(jax, "default_backend", lambda name=backend: name)
        # a function of its own for each, which traces anew
        back, hits = jax.jit(jax.grad(lambda q: total(q), has_aux=True))(heights)
        along = jax.jit(lambda q: jax.jvp(lambda q: total(q)[0], (q,), (jnp.ones_like(q),))[1])(heights)
        made.append((back, along))
        assert np.sum(hits) > len(heights)
    (back, along), (there, along_there) = made
    # rounding of 200 steps, which impacts amplify
    np.testing.assert_allclose(there, back, rtol=1e-9)
    np.testing.assert_allclose([along, along_there, np.sum(there)], np.sum(back), rtol=1e-9)


def at_end(run: nsjax.Trajectory) -> Any:
    """Velocity at the end, and all impacts."""
    return run.v[-1], jnp.sum(run.impacts)
