"""Angles of spatial hinges that are constraints, over many turns: against motions in one coordinate."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import schemes
from nsjax.multibody import (
    assemble,
    body,
    hinge,
    joint_spring,
)
from nsjax.multibody.assemble import TurnsWarning
from nsjax.multibody.topology import joint_topology

J, K, C1, C2 = 0.5, 2.0, 0.05, 0.02
AXIS = tuple(np.array([1.0, 2.0, 2.0]) / 3.0)
Z = (0.0, 0.0, 1.0)
MOREAU = schemes.moreau()


def rotor(*more, coordinates="absolute", start=(0.0, 60.0), axis=AXIS, **given):
    """M1 of the specification: a rotor on a hinge with a torsion spring and a quadratic damper."""
    return assemble(
        body("r", mass=1.0, inertia=(J, J, J)), hinge("h", "ground", "r", axis=axis, **given),
        joint_spring("s", "h", stiffness=K, damping=C1, quadratic_damping=C2), *more,
        coordinates=coordinates, start={"h": start},
    )  # fmt: skip


def exact(time, start=(0.0, 60.0), torque=lambda t, x, w: 0.0):
    def rates(t, y):
        x, w = y
        return [w, (torque(t, x, w) - K * x - C1 * w - C2 * abs(w) * w) / J]

    return solve_ivp(rates, (0.0, time), start, method="DOP853", rtol=1e-11, atol=1e-11).y[:, -1]


@pytest.fixture(scope="module")
def absolute():
    return rotor()


@pytest.mark.slow
def test_torsion_spring_over_many_turns(absolute) -> None:
    """M1, printed: -6.64642136 at 2 s, a maximum of 2.81 turns before; second order."""
    assert exact(2.0)[0] == pytest.approx(-6.64642136, abs=1e-7)
    ends = []
    for dt in (4e-3, 2e-3):
        traj = nsjax.simulate(*absolute, schemes.generalized_alpha(0.8), dt=dt, time=2.0, every=50)
        traj.raise_for_status()
        ends.append([float(np.asarray(x)[-1]) for x in (traj.joint("h").coordinate, traj.joint("h").rate)])
        assert np.max(traj.joint("h").coordinate) > 16.0
    error = np.abs(np.array(ends) - exact(2.0))
    assert np.all(error[1] < 2e-3)
    energy = np.asarray(traj["energy"])  # the spring's, of turns that are counted
    assert energy[-1] == pytest.approx(0.5 * K * ends[-1][0] ** 2 + 0.5 * J * ends[-1][1] ** 2, rel=1e-9)


@pytest.mark.slow
def test_who_counts() -> None:
    """Entries of ``q`` for hinges whose angle something reads, and none for others; a hinge asks itself."""
    bare = [body("r", mass=1.0, inertia=(J, J, J)), hinge("h", "ground", "r", axis=Z)]
    assert assemble(*bare, coordinates="absolute").system.nq == 7
    asked = [bare[0], hinge("h", "ground", "r", axis=Z, turns=True)]
    problem = assemble(*asked, coordinates="absolute", start={"h": (40.0, -30.0)})
    assert problem.system.nq == 10
    assert problem.system.labels.q[-3:] == tuple(f"h.turned{k} [rad]" for k in (1, 2, 3))
    traj = nsjax.simulate(*problem, MOREAU, dt=1e-2, steps=200, every=100)
    np.testing.assert_allclose(traj.joint("h").coordinate, [40.0, 10.0, -20.0], atol=1e-9)
    driven = [bare[0], hinge("h", "ground", "r", axis=Z, motion=lambda t: 9.0 * t)]
    problem = assemble(*driven, coordinates="absolute")
    assert problem.system.nq == 7  # the motion tells the turns
    traj = nsjax.simulate(*problem, MOREAU, dt=1e-2, steps=200, every=100)
    np.testing.assert_allclose(traj.joint("h").coordinate, [0.0, 9.0, 18.0], atol=1e-6)


def loop(springs, **options):
    """Four bars in space, the last hinge given closing the loop unless it is read."""

    def bar(name, length):
        return body(name, mass=1.0, inertia=(0.01, 0.1, 0.1), com=length / 2.0)

    return [
        bar("k", 0.1), bar("r", 0.4), bar("s", 0.3), hinge("a", "ground", "k", axis=Z),
        hinge("b", "k", "r", at=0.1, axis=Z), hinge("c", "r", "s", at=0.4, on=0.3, axis=Z),
        hinge("d", "ground", "s", at=0.4, axis=Z, **options),
        *(joint_spring(f"s{x}", x, stiffness=0.01) for x in springs),
    ]  # fmt: skip


def test_a_loop_is_closed_where_nothing_reads() -> None:
    closures = {x: joint_topology(loop(x), 3).closures for x in ("", "c", "cb", "abcd")}
    assert closures == {"": ("c",), "c": ("d",), "cb": ("d",), "abcd": ("c",)}
    narrow = [x for x in loop("") if x.name != "c"]
    narrow.append(hinge("c", "r", "s", at=0.4, on=0.3, axis=Z, limits=(-1.0, 3.0)))
    assert joint_topology(narrow, 3).closures == ("c",)  # within half a turn poses tell the angle


@pytest.mark.slow
def test_what_cannot_count_says_so() -> None:
    with pytest.warns(TurnsWarning, match="hinge 'c': closes a loop, so that its angle lies between -pi"):
        assemble(*loop("abcd"), start={"a": 1.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error", TurnsWarning)
        assemble(*loop("abc"), start={"a": 1.0})
