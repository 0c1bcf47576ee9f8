"""Runs whose first program has no solver for more active contacts than there are places."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.contact import active_set
from nsjax.contact.active_set import without_overflow
from nsjax.jaxtools.owned import owned
from nsjax.multibody import assemble, body, contact, plane, points


def overflowed(problem, forget=False):
    """Programs of a system that have met more active contacts than places; ``forget`` them."""
    store = owned(problem.system)
    found = [key for key in store if key[0] is without_overflow]
    for key in found if forget else ():
        del store[key]
    return found


SPIKES = 34
"""Points of a body: 16 of them find places, and their 68 rows are more than a loop eliminates."""


def wheel():
    """A wheel of points that rolls and slides on a plane; two of them touch at most."""
    angles = 2.0 * np.pi * np.arange(SPIKES) / SPIKES
    rim = 0.2 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return assemble(
        body("wheel", mass=1.3, inertia=0.02),
        contact("road", points("wheel", rim), plane(), friction=0.3, restitution=0.2),
        gravity=9.81, start={"wheel": ((0.0, 0.23, 0.05), (1.5, -0.4, 3.0))},
    )  # fmt: skip


def comb():
    """A comb that falls flat: all of its points touch at once."""
    teeth = np.stack([np.linspace(-0.5, 0.5, SPIKES), np.full(SPIKES, -0.1)], axis=1)
    return assemble(
        body("comb", mass=1.3, inertia=0.1),
        contact("road", points("comb", teeth), plane(), friction=0.3),
        gravity=9.81, start={"comb": ((0.0, 0.15, 0.0), (0.5, 0.0, 0.0))},
    )  # fmt: skip


def run(problem, steps, every):
    return nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=steps, every=every)


def first_end(problem, steps):
    """End of a run by the first program and what follows it."""
    traj = run(problem, steps, steps)
    assert int(np.max(np.asarray(traj.status))) == 0
    return np.asarray(traj.q[-1])


def whole_rows(problem, steps, every):
    """Rows of a run by the whole program."""
    return np.asarray(jax.jit(lambda: run(problem, steps, every).q)())


def ends(problem, steps):
    """Ends of both."""
    return first_end(problem, steps), whole_rows(problem, steps, steps)[-1]


@pytest.mark.slow
def test_a_comb_needs_all_rows() -> None:
    problem = comb()
    overflowed(problem, forget=True)
    one, other = ends(problem, 200)
    assert len(overflowed(problem)) == 1
    assert np.allclose(one, other, rtol=0, atol=1e-10)
    # it slides at rest on the road: closed form of the slide after the landing of all points at once
    landing = np.sqrt(2 * 0.05 / 9.81)
    left = 0.5 - 0.3 * 9.81 * landing  # the impulse of the landing brakes it
    assert abs(one[0] - 0.5 * landing - left**2 / (2 * 0.3 * 9.81) * (left > 0.0)) < 2e-3  # order dt
    # what a process has seen it does not try again
    first_end(comb(), 200)
    assert len(overflowed(problem)) == 1


def test_who_begins_so(monkeypatch) -> None:
    problem, none = wheel(), np.zeros(SPIKES, bool)
    system, given = problem.system, (problem.params, problem.state)
    found = without_overflow(system, schemes.moreau(), *given, none)
    assert found is not None
    assert found.options.few
    assert without_overflow(system, schemes.moreau(), *given, ~none) is None
    assert without_overflow(system, found, *given, none) is None
    assert without_overflow(system, schemes.bathe(), *given, none) is None
    monkeypatch.setattr(active_set, "LARGEST_GAPS", 5)  # a step that is long to compile
    assert without_overflow(system, schemes.moreau(), *given, none) is None
    small = assemble(body("b", mass=1.0, inertia=0.1), contact("road", points("b", [[0.0, 0.0]]), plane()))
    few = np.zeros(1, bool)
    assert without_overflow(small.system, schemes.moreau(), small.params, small.state, few) is None
