"""Boxes thrown on each other, named contacts of whole faces that bounce: every step is solved."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.core.operators import kinetic_energy, potential_energy
from nsjax.multibody import assemble, body, box, contact, plane

BOXES, HALF = 4, 0.1


def thrown(seed: int):
    """Boxes of masses within a factor of ten fall on each other, turned at random; 80 contacts."""
    draw = np.random.default_rng(seed)
    parts, start = [], {}
    for name in (f"box_{k}" for k in range(BOXES)):
        inertia = tuple(0.01 * draw.uniform(0.8, 1.2, 3))
        parts.append(body(name, mass=float(10.0 ** draw.uniform(-0.5, 0.5)), inertia=inertia))
        turn = draw.normal(size=4)
        place = (*(0.02 * draw.normal(size=2)), 0.3 + 0.35 * len(start))
        start[name] = ((*place, *(turn / np.linalg.norm(turn))),)
    shapes = [box(name, HALF, HALF, HALF) for name in start]
    law = {"friction": 0.7, "restitution": 0.5}
    parts += [contact(f"ground_{k}", shape, plane(), **law) for k, shape in enumerate(shapes)]
    pairs = itertools.combinations(range(BOXES), 2)
    parts += [contact(f"pair_{j}_{k}", shapes[j], shapes[k], **law) for j, k in pairs]
    return assemble(*parts, gravity=9.81, start=start)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_thrown_boxes_are_solved_in_every_step(seed: int) -> None:
    """Energy falls from bounce to bounce, and no box sinks into the ground by more than a step's fall."""
    problem, dt = thrown(seed), 1e-3
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=dt, steps=1500)
    assert not np.any(traj.status)
    heights = np.asarray(traj.q).reshape(-1, BOXES, 7)[:, :, 2]
    assert np.min(heights) > HALF - 5e-3
    system, p = problem.system, problem.params
    energy = np.asarray(
        jax.vmap(lambda t, q, v: kinetic_energy(system, q, v, p) + potential_energy(system, t, q, p))(
            traj.t, traj.q, traj.v
        )
    )
    assert np.max(np.diff(energy[::50])) < 1e-2 * energy[0]
    assert energy[-1] < 0.5 * energy[0]
