"""What ends and stations of beams are called, wherever a body is named; contacts of groups."""

from __future__ import annotations

import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.core import InputError
from nsjax.multibody import (
    assemble,
    beam,
    body,
    contact_group,
    force,
    plane,
    section,
    sphere,
)

SOFT = section(EA=100.0, GA=100.0, EI=1.0, GJ=1.0, line_mass=1.0, line_inertia=0.01)
MOREAU = schemes.moreau()


def _pull(t, scene, own):
    return -own * scene.position("b.end")


def pulled(name: str, **start):
    return assemble(
        beam("b", (0, 0, 0), (1, 0, 0), elements=2, section=SOFT, stations={"mid": 0.5}),
        force("F", "b.end", law=_pull, own=0.5),
        start={name: ((0.5, 0.0, 0.0), (0.0, 1.0, 0.0)), **start},
    )  # fmt: skip


@pytest.mark.slow
def test_ends_and_stations_of_a_beam_are_bodies() -> None:
    """In `Trajectory.body`, in laws and in starts: the same numbers as of the node."""
    problem = pulled("b.mid")
    np.testing.assert_array_equal(problem.state.v, pulled("b.1").state.v)
    traj = nsjax.simulate(*problem, MOREAU, dt=1e-3, steps=4)
    for other, node in (("b.start", "b.0"), ("b.mid", "b.1"), ("b.end", "b.2")):
        for one, two in zip(*(vars(traj.body(x)).values() for x in (other, node)), strict=True):
            np.testing.assert_array_equal(one, two)
    assert traj.body("b.mid").velocity[0, 1] == 1.0
    np.testing.assert_allclose(traj.load("F").force, -0.5 * traj.body("b.end").position)
    with pytest.raises(KeyError, match=r"no body 'b.ende'.*b\.end"):
        traj.body("b.ende")


def test_a_node_by_two_names_is_refused() -> None:
    with pytest.raises(InputError, match=r"'b.1' is the node 'b.1', which is given, too"):
        pulled("b.mid", **{"b.1": (0.0, 0.0, 0.0)})


@pytest.mark.slow
def test_contacts_of_a_group_with_a_capacity() -> None:
    """Are those of all pairs, by the names of their bodies."""
    names = ("a", "b", "c")
    problem = assemble(
        *(body(x, mass=1.0, inertia=(0.01, 0.01, 0.01)) for x in names),
        contact_group("all", [*(sphere(x, 0.1) for x in names), plane()], capacity=3, reach=0.05),
        gravity=(0.0, 0.0, -9.81), coordinates="absolute",
        start={x: (0.5 * k, 0.0, 0.1) for k, x in enumerate(names)},
    )  # fmt: skip
    traj = nsjax.simulate(*problem, MOREAU, dt=1e-3, steps=5)
    assert traj.gap.shape == (6, 6)
    for name in ("a_ground", "b_ground", "c_ground"):
        np.testing.assert_allclose(traj.contact(name).impulse[-1, 0], 9.81e-3, rtol=1e-9)
    np.testing.assert_allclose(traj.contact("a_c").gap[-1], 0.8, rtol=1e-9)
    with pytest.raises(KeyError, match=r"no contact 'a_groun'.*a_ground"):
        traj.contact("a_groun")
