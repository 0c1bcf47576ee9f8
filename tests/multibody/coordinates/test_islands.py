"""Bodies that nothing joins are islands in absolute coordinates."""

import numpy as np
import pytest

import nsjax
from nsjax import Problem, schemes
from nsjax.linalg import BlockDiagonal, Dense
from nsjax.multibody import assemble, body, contact, corners, force, plane, spring


def boxes(n: int, coordinates: str, dimension: int = 2, *more) -> Problem:
    names, space = [f"box{k}" for k in range(n)], dimension == 3
    half = (0.1, 0.05, 0.05)[:dimension]
    place = (lambda k: (0.5 * k, 0.0, 0.06)) if space else (lambda k: (0.5 * k, 0.075))
    turn = (lambda k: (0.1 * k, 0.0, 0.0)) if space else (lambda k: 0.1 * k)
    still = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0) if space else (1.0, 0.0, 0.0)
    return assemble(
        *(body(name, mass=1.0 + k, inertia=[0.01] * 3 if space else 0.01) for k, name in enumerate(names)),
        *(contact(f"on_{name}", corners(name, *half), plane(), friction=0.3) for name in names),
        force("wind", "box0", (1.0, *[0.0] * (dimension - 1))),
        *more, gravity=9.81, coordinates=coordinates,
        start={name: ((place(k), turn(k)), still) for k, name in enumerate(names)},
    )  # fmt: skip


@pytest.mark.parametrize("dimension", [pytest.param(3, marks=pytest.mark.slow)])
def test_as_all_together(dimension: int) -> None:
    """To rounding, which two hundred steps and some impacts spread; of the corners of a face, which share
    their impulse in more than one way, the sum is looked at. In space a box slides on a face and turns from
    step 106 on: the share then decides its friction torque, and Coulomb's law has more than one motion
    (`tests.contact.test_undecided.test_a_face_that_slides_and_turns`).
    """
    runs, n = [], 2
    for coordinates in ("joint", "absolute"):
        problem = boxes(n, coordinates, dimension)
        traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=200, every=50)
        traj.raise_for_status()
        runs.append(traj)
        assert problem.system.islands == (n if coordinates == "absolute" else 0)
    one, other = runs
    assert one.impacts.sum() > 2
    pushed = (x.impulse_normal.reshape(5, n, -1).sum(axis=2) for x in runs)
    np.testing.assert_allclose(*pushed, rtol=1e-9, atol=1e-10)
    unique = slice(3 if dimension == 3 else None)  # rows up to step 100
    for x, y in ((one.q, other.q), (one.v, other.v)):
        np.testing.assert_allclose(x[unique], y[unique], rtol=1e-9, atol=1e-10)
    # behind that, 7e-6 m and 2.2e-4 m/s were measured; of the motion along the floor alone
    np.testing.assert_allclose(one.q, other.q, rtol=0.0, atol=5e-5)
    np.testing.assert_allclose(one.v, other.v, rtol=0.0, atol=2e-3)


def test_what_joins_them_makes_none() -> None:
    tied = boxes(3, "absolute", 2, spring("tie", "box0", "box1", stiffness=10.0))
    assert (tied.system.islands, tied.system.structure) == (0, Dense())
    to_ground = boxes(3, "absolute", 2, spring("tie", "box2", "ground", stiffness=10.0))
    assert (to_ground.system.islands, to_ground.system.structure) == (3, BlockDiagonal(3))
    uneven = boxes(3, "absolute", 2, contact("more", corners("box2", 0.2, 0.1), plane(), friction=0.1))
    assert uneven.system.islands == 0


def test_without_contacts_there_are_blocks_alone() -> None:
    names = [f"b{k}" for k in range(4)]
    problem = assemble(
        *(body(x, mass=1.0, inertia=1.0) for x in names), coordinates="absolute", gravity=9.81
    )
    assert problem.system.structure == BlockDiagonal(3)
    traj = nsjax.simulate(*problem, schemes.generalized_alpha(), dt=1e-2, steps=10)
    np.testing.assert_allclose(traj.q[-1, 1::3], -9.81 * 0.1**2 / 2, rtol=1e-12)
