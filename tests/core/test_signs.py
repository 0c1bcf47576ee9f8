"""Numbers that must not be negative, and shapes that replaced numbers of parts keep."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import nsjax
from nsjax import InputError, schemes
from nsjax.core.arguments import check_signs, impossible, negative
from nsjax.models.registry import REGISTRY
from nsjax.multibody import assemble, body, box, contact, hinge, plane

PENDULUM = assemble(
    body("rod", mass=1.0, inertia=0.1, com=0.5), body("bob", mass=1.0, inertia=0.1, com=0.5),
    hinge("pin", "ground", "rod"), hinge("elbow", "rod", "bob", at=(1.0, 0.0)), gravity=9.81,
)  # fmt: skip
CRATE = assemble(
    body("crate", mass=1.0, inertia=0.1), contact("feet", box("crate", 0.1, 0.1), plane(), friction=0.5),
    gravity=9.81, start={"crate": (0.0, 0.1, 0.0)},
)  # fmt: skip


def run(problem: nsjax.Problem) -> nsjax.Trajectory:
    return nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=2)


def test_a_mass_that_leaves_the_mass_matrix_positive_is_refused() -> None:
    """The matrix of the pendulum is positive definite with -0.05 kg of one rod: only the sign tells."""
    light = PENDULUM.replace({"rod.mass": -0.05})
    mass = light.system.mass(light.state.q, light.params)  # type: ignore[misc]
    assert np.linalg.eigvalsh(mass)[0] > 0.0
    with pytest.raises(InputError, match=r"^rod.mass = -0.05; it must not be negative"):
        run(light)
    assert run(PENDULUM.replace({"rod.mass": 0.0})).status == 0


def test_lanes_of_a_sweep_are_refused_one_by_one() -> None:
    """A sweep names the lanes and runs the others."""
    swept = nsjax.sweep(
        PENDULUM, schemes.moreau(), over={"params.rod.mass": [1.0, -0.05, 0.0]}, dt=1e-3, steps=2
    )
    assert swept.refused == ((1, "params.rod.mass = -0.05; it must not be negative"),)
    assert np.asarray(swept.ok).tolist() == [True, False, True]


@pytest.mark.parametrize("name", REGISTRY)
def test_numbers_of_registered_models_are_not_negative(name: str) -> None:
    check_signs(REGISTRY[name].factory().params)


def test_of_a_matrix_the_diagonal_counts() -> None:
    """Products of inertia have either sign; the moment of a turned rod about its axis is rounding."""
    assert not negative(np.array([[1.0, -0.2], [-0.2, 1.0]]))
    assert negative(np.array([[1.0, 0.2], [0.2, -1.0]]))
    assert not negative([1.0, 1.0, -1e-17])
    assert negative(-1e-17)
    assert negative(np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0]]), 1).tolist() == [False, True]


def test_moments_of_traced_matrices_are_those_of_their_eigenvalues() -> None:
    """Of 2,000 turned bodies, many of them rods and plates, which fulfil the inequality with equality."""
    draw = np.random.default_rng(0)
    second = draw.uniform(-0.3, 1.0, (2000, 3)) * (draw.uniform(size=(2000, 3)) < 0.6)
    moments = second.sum(axis=1, keepdims=True) - second
    turn = np.linalg.qr(draw.normal(size=(2000, 3, 3)))[0]
    whole = np.einsum("nij,nj,nkj->nik", turn, moments, turn)
    found = np.asarray(jax.jit(lambda x: impossible(x, 1))(whole))
    np.testing.assert_array_equal(found, (second < 0.0).any(axis=1))
    assert 500 < found.sum() < 1500
    np.testing.assert_array_equal(found[:99], [bool(impossible(x)) for x in whole[:99]])


def test_points_may_be_numbers_or_vectors() -> None:
    """``com`` and ``at`` on the x axis are numbers as well: the motion is the same."""
    other = PENDULUM.replace({"rod.com": (0.5, 0.0), "elbow.at": 1.0})
    np.testing.assert_array_equal(run(other).q, run(PENDULUM).q)


def test_friction_may_become_one_number_for_each_contact() -> None:
    each = CRATE.replace({"feet.friction": [0.1, 0.2, 0.3, 0.4]})
    assert run(each).status == 0
    with pytest.raises(
        InputError,
        match=r"^contact 'feet': friction has shape \(2,\); give one number, or one for each of its 4",
    ):
        run(CRATE.replace({"feet.friction": [0.1, 0.2]}))
