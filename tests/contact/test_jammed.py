"""Contact problems without an answer: they say so, and hold no enormous impulses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import Labels, State, System, gradient_notes, schemes, status
from nsjax.contact import ContactProblem, RowGroups, solve
from nsjax.contact.problem import ContactLaw
from tests.points import no_force, unit_mass

ALONG = np.array([np.cos(0.3), np.sin(0.3)])
"""Normal of the left wall of a wedge that narrows downwards; the right one is its mirror image."""


def wedge(friction: float, constrained: bool) -> ContactProblem:
    """A unit mass that moves down with 1 m/s between two walls; a drive insists on that, or not."""
    mirror = np.array([-1.0, 1.0])
    left, right = ALONG, ALONG * mirror
    turned = np.array([-ALONG[1], ALONG[0]])
    rows = [left, turned, right, turned * mirror * -1.0] + [[0.0, 1.0]] * constrained
    w = np.array(rows)
    free = w @ [0.0, -1.0]
    free[4:] = 0.0
    return ContactProblem(
        rows=RowGroups.of(2, 1, int(constrained)), delassus=jnp.asarray(w @ w.T), free=jnp.asarray(free),
        friction=jnp.full(2, friction), mask=jnp.ones(2, bool),
    )  # fmt: skip


@pytest.mark.parametrize("friction", [0.0, 0.5, 2.0])
def test_a_drive_into_a_wedge_has_no_answer(friction: float) -> None:
    jammed = jax.jit(solve)(wedge(friction, True))
    assert np.isinf(jammed.residual)
    # of the first ten sweeps, each of which may add what a single row needs, at most 1 / G_kk = 1 per wall
    assert float(jnp.max(jnp.abs(jammed.x))) < 100.0
    held = jax.jit(solve)(wedge(friction, False))
    assert float(held.residual) <= 1e-11
    np.testing.assert_allclose(held.x[0] * ALONG[1] + held.x[1] * ALONG[0], 0.5, atol=1e-9)


def gap(t, q, p):
    return jnp.stack([ALONG[0] * q[0] + ALONG[1] * q[1], -ALONG[0] * q[0] + ALONG[1] * q[1]]) + p["room"]


def slip(t, q, v, p):
    return jnp.stack([-ALONG[1] * v[0] + ALONG[0] * v[1], ALONG[1] * v[0] + ALONG[0] * v[1]])[:, None]


def law(p):
    return ContactLaw(restitution=jnp.zeros(2), friction=jnp.full(2, 0.5))


def driven(t, q, p):
    return jnp.stack([q[1] + t])


def test_a_run_names_the_jam() -> None:
    """Down with 1 m/s, the walls meet after 1 / sin(0.3) times the room of 5 mm: 17 ms."""
    system = System(
        nq=2, nv=2, nc=2, nt=1, nb=1, mass=unit_mass, force=no_force, gap=gap, slip=slip, law=law,
        constraint=driven, labels=Labels(contacts=("left wall", "right wall")),
    )  # fmt: skip
    start = State(t=0.0, q=np.zeros(2), v=np.array([0.0, -1.0]))
    traj = nsjax.simulate(system, {"room": 5e-3}, start, schemes.moreau(), dt=1e-3, steps=25)
    assert int(traj.status) & status.CONTACT_JAMMED
    assert int(traj.first_failure.status) == status.CONTACT_JAMMED
    assert float(traj.first_failure.time) == pytest.approx(5e-3 / ALONG[1], abs=1.5e-3)
    assert np.max(np.abs(traj.impulse_normal)) < 100.0
    assert np.max(np.abs(traj.constraint_impulse)) < 200.0
    assert "jammed" in str(traj)


@pytest.mark.slow
def test_a_start_that_slides_above_the_jamming_limit_is_noted() -> None:
    """A rod slides on its leading end: ``1/m + x^2/I < mu x y/I``. A gap of rounding touches, a real one
    does not.
    """
    x, y, inertia, friction = 0.3, 0.4, 0.02, 1.5
    assert 1.0 + x * x / inertia < friction * x * y / inertia

    def rod_gap(t, q, p):
        return (q[1] + jnp.sin(q[2]) * x - jnp.cos(q[2]) * y)[None]

    def rod_slip(t, q, v, p):
        return (v[0] + v[2] * (jnp.cos(q[2]) * y - jnp.sin(q[2]) * x))[None, None]

    rod = System(
        nq=3, nv=3, nc=1, nt=1, mass=lambda q, p: jnp.diag(jnp.array([1.0, 1.0, inertia])),
        force=lambda t, q, v, p: jnp.array([0.0, -9.81, 0.0]), gap=rod_gap, slip=rod_slip,
        law=lambda p: ContactLaw(restitution=jnp.zeros(1), friction=jnp.full(1, friction)),
    )  # fmt: skip
    for above in (1e-9, 0.0, 3e-17):
        start = State(t=0.0, q=np.array([0.0, y + above, 0.0]), v=np.array([1.0, 0.0, 0.0]))
        traj = nsjax.simulate(rod, {}, start, schemes.moreau(), dt=1e-6, steps=1, notes=True)
        assert bool(traj.notes[0, 0] & gradient_notes.JAMMED) == (above < 1e-12)
