"""The impacting parallelepiped of [C section 4.1] in its three formulations."""

from __future__ import annotations

import functools

import jax
import numpy as np

import nsjax
from nsjax import models
from nsjax.core.operators import row_rates

from . import published
from .block_motion import MASS, WATCHED, Impact, motion

TIME = 0.69
STEPS = (1e-2, 5e-3, 2.5e-3, 1e-3, 5e-4, 2.5e-4, 1e-4)
FORMS = {"a": "natural", "b": "rotation", "c": "nodes"}
"""Formulations by letter; (c), with gyroscopic forces and constraints, is the closest to the paper's."""


@functools.cache
def exact(dt: float) -> tuple[np.ndarray, np.ndarray, list[Impact]]:
    """Height and rate of the watched corner on a grid, resolved at impacts."""
    return motion(dt * np.arange(round(TIME / dt) + 1))


def run(form: str, name: str, dt: float) -> published.Run:
    """Run of one formulation with one variant of the scheme."""
    problem = models.block(formulation=FORMS[form], **models.SPINNING_BLOCK)
    return published.run(problem, name, dt, TIME, MASS)


def watched(traj: nsjax.Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Height and rate of the corner at all rows."""
    system, p = traj.system, traj.params
    contacts = jax.jit(
        jax.vmap(lambda t, q, v: row_rates(system, t, q, v, p)[WATCHED]),
    )
    rate = contacts(traj.t, traj.q, traj.v)
    return np.asarray(traj.gap)[:, WATCHED], np.asarray(rate)


def errors(r: published.Run, dt: float) -> tuple[float, float]:
    """Errors of height and rate, [C (52)]."""
    z, dz, _ = exact(dt)
    found, rate = watched(r.traj)
    return published.error(found, z), published.error(rate, dz)
