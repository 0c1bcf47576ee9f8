"""Runs that were never simulated: pictures of a motion need no compiled time loop."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from nsjax import Problem, Trajectory
from nsjax.trajectory import Continuation


def coasting(problem: Problem, rows: int = 4, step: float = 1e-3, push: float = 0.0) -> Trajectory:
    """The system goes on along its velocity at the start; every contact gets the normal impulse ``push``
    between two rows.
    """
    s, state = problem.system, problem.state
    q, v = [np.asarray(state.q)], np.asarray(state.v)
    for _ in range(rows - 1):
        q.append(np.asarray(s.retract(q[-1], step * v)))
    impulse = np.full((rows, s.nc), push)
    impulse[0] = 0.0
    carry: Any = Continuation(
        carry=None, origin=0.0, index=rows - 1, dt=step, scheme="moreau", impulses=""  # type: ignore[arg-type]
    )  # fmt: skip
    return Trajectory(
        system=s, params=problem.params, t=step * np.arange(rows), q=np.stack(q), v=np.tile(v, (rows, 1)),
        status=np.asarray(0), first_failure=None, events=None, carry=carry, impulse_normal=impulse,
        impulse_tangential=np.zeros((rows, s.nc, s.nt)),
    )  # fmt: skip


def stretched(cube: Problem, rate: float) -> Problem:
    """A cube that grows along z by ``rate`` a second."""
    places = np.asarray(cube.state.q).reshape(-1, 3)
    v = rate * (places - places.min(axis=0)) * np.array([0.0, 0.0, 1.0])
    return dataclasses.replace(cube, state=dataclasses.replace(cube.state, v=v.reshape(-1)))
