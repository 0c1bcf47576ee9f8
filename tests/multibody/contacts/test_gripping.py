"""A hand of 20 joints that grips a box, and a pile of five boxes that an arm pushes: with a capacity they
move, and change with their parameters, as with all contacts by name.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import Problem, schemes
from tests.multibody.contacts.gripping_hand import hand
from tests.multibody.contacts.pushed_pile import BOXES, pile

ALL = 1000
"""Places for all pairs: contacts by name."""


@pytest.mark.slow
def test_the_hand_lifts_the_box() -> None:
    """As far as the palm rises, but for what the closing fingers move it."""
    problem = hand(6, own=False)
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=1000, every=500)
    traj.raise_for_status()
    z = np.asarray(traj["crate.z"])
    assert abs(z[-1] - z[1] - 0.04) < 5e-3
    assert abs(z[-1] - z[0] - 0.04) < 1e-3


def height(problem: Problem, steps: int) -> Any:
    """Of the box at the end, of changes of all coefficients of friction and of the motors in parts of
    them.
    """
    place = next(k for k, x in enumerate(problem.system.labels.q) if x.startswith("crate.z"))

    def end(x: Any) -> Any:
        p = {
            name: dataclasses.replace(y, friction=y.friction + x[0]) if hasattr(y, "first") else y
            for name, y in problem.params.items()
        }
        for name in [x for x in p if x.endswith("_motor")]:
            own = p[name].own
            own = dataclasses.replace(own, limits=[y * (1.0 + x[1]) for y in own.limits])
            p[name] = dataclasses.replace(p[name], own=own)
        traj = nsjax.simulate(
            problem.system, p, problem.state, schemes.moreau(), dt=1e-3, steps=steps, every=steps
        )
        return traj.q[-1, place]

    return end


@pytest.mark.slow
def test_derivatives_of_the_hand() -> None:
    """By friction and motors, while the fingers close: those of the same contacts by name."""
    found = []
    for capacity in (6, ALL):
        end = height(hand(capacity, own=False), 100)
        found.append(jax.jit(jax.jacfwd(end))(jnp.zeros(2)))
    assert float(jnp.max(jnp.abs(found[0]))) > 1e-6
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-9)


def test_what_the_pile_is_made_of() -> None:
    """In plane and space; with all places no step chooses."""
    for dimension in (2, 3):
        few, every = (pile(k, dimension).system for k in (10, ALL))
        assert few.nc == every.nc
        assert every.chosen is None
        assert {f"{x}_fore" for x in BOXES} <= {x.split(".")[0] for x in few.labels.contacts}
