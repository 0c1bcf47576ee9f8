"""A weight that pulls a cart on a spring: smooth, with closed forms; starts, several recordings, what the
data cannot tell."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import Labels, Problem, Recording, State, System, reductions, schemes, transforms
from nsjax.types import record

DT = 2e-3
TIMES = 0.05 * np.arange(1, 41)
SCHEME = schemes.moreau_theta(0.5)


def mass(q, p):
    return p["cart"] * jnp.eye(1)


def force(t, q, v, p):
    return p["mass"] * p["gravity"] - p["stiffness"] * q


def observe(t, q, v, output, p):
    return {"stretch": 100.0 * q[0]}


SYSTEM = System(
    nq=1, nv=1, mass=mass, force=force, observe=observe,
    labels=Labels(q=("x [m]",), v=("vx [m/s]",), observables=("stretch [cm]",)),
)  # fmt: skip
PARAMS = {"cart": 2.0, "mass": 0.3, "gravity": 9.81, "stiffness": 20.0}


def problem(x: float = 0.0, v: float = 0.0, **numbers: float) -> Problem:
    return Problem(
        system=SYSTEM, params={**PARAMS, **numbers}, state=State(t=0.0, q=np.array([x]), v=np.array([v]))
    )


def exact(x0: float, v0: float, stiffness: float = 20.0, weight: float = 0.3 * 9.81) -> np.ndarray:
    w, rest = np.sqrt(stiffness / 2.0), weight / stiffness
    return rest + (x0 - rest) * np.cos(w * TIMES) + v0 / w * np.sin(w * TIMES)


def recording(x0: float, v0: float, name: str = "", known_start: bool = True) -> Recording:
    start = State(t=0.0, q=np.array([x0]), v=np.array([v0 if known_start else 0.0]))
    return Recording(
        times=TIMES, values={"stretch": 100.0 * exact(x0, v0)}, noise=0.01, start=start, name=name
    )


def nested_mass(q, p):
    return p["cart"] * jnp.eye(1)


def nested_force(t, q, v, p):
    return 0.3 * p["weight"]["gravity"] - p["weight"]["spring"].stiffness * q


@record()
class Spring:
    stiffness: float


def test_numbers_inside_nested_parameters() -> None:
    """Trained, fixed, swept and replaced under one name."""
    params = {"cart": 2.0, "weight": {"gravity": 1.0, "spring": Spring(stiffness=18.0)}}
    system = System(nq=1, nv=1, mass=nested_mass, force=nested_force, labels=Labels(q=("x [m]",)))
    base = Problem(system=system, params=params, state=State(t=0.0, q=np.zeros(1), v=np.array([0.4])))
    data = Recording(times=TIMES, values={"x": exact(0.0, 0.4)}, noise=1e-4)
    train = {
        "params.weight.spring.stiffness": transforms.positive(),
        "weight.gravity": transforms.fixed(9.81),
    }
    found = nsjax.identify(base, SCHEME, data, train, dt=DT)
    # the scheme's period, as above
    assert found["weight.spring.stiffness"] == pytest.approx(20.0, rel=1e-4)
    assert found["params.weight.spring.stiffness"] == found["weight.spring.stiffness"]
    assert found.problem.params["weight"]["gravity"] == 9.81
    with pytest.raises(nsjax.InputError, match="has no 'stifness'; did you mean 'stiffness'"):
        nsjax.identify(base, SCHEME, data, {"weight.spring.stifness": transforms.positive()}, dt=DT)

    key = "params.weight.spring.stiffness"
    run = {"dt": DT, "steps": 100, "every": 100}
    swept = nsjax.sweep(base, SCHEME, {key: [18.0, 20.0]}, reduce={"end": reductions.final("x")}, **run)
    for k, stiffness in enumerate((18.0, 20.0)):
        one = nsjax.simulate(*base.replace({key: stiffness}), SCHEME, **run)
        assert swept["end"][k] == pytest.approx(float(one.q[-1, 0]), rel=1e-12)
    with pytest.raises(nsjax.InputError, match=r"choose one of gravity, spring\.stiffness"):
        nsjax.sweep(base, SCHEME, {"params.weight": [1.0]}, **run)


def test_mass_and_gravity_together_are_not_identifiable() -> None:
    train = {
        "mass": transforms.positive(), "gravity": transforms.positive(), "stiffness": transforms.positive(),
    }  # fmt: skip
    found = nsjax.identify(problem(mass=0.5, stiffness=18.0), SCHEME, recording(0.0, 0.4), train, dt=DT)
    said = [m for m in found.messages if m.startswith("not identifiable")]
    assert len(said) == 1
    assert "mass and gravity together" in said[0]
    assert not found.success
    assert np.isinf(found.deviation[:2]).all()
    # what the data do tell is found: the weight and the stiffness. The period of the scheme is short by
    # (w h)^2 / 24 = 2e-6, that of the trapezoidal rule long by twice that
    assert found["mass"] * found["gravity"] == pytest.approx(0.3 * 9.81, rel=1e-4)
    assert found["stiffness"] == pytest.approx(20.0, rel=1e-4)
    assert np.isfinite(found.deviation[2])
    direction = found.directions[np.argmin(found.singular_values)]
    np.testing.assert_allclose(np.abs(direction), [np.sqrt(0.5), np.sqrt(0.5), 0.0], atol=1e-5)


def test_every_recording_has_a_start_of_its_own() -> None:
    data = [recording(0.1, 0.7, "first", False), recording(-0.2, -0.3, "second", False)]
    train = {"state.v": transforms.free(), "stiffness": transforms.positive()}
    found = nsjax.identify(problem(stiffness=15.0), SCHEME, data, train, dt=DT)
    assert found.names == ("stiffness", "state.v[0] of first", "state.v[0] of second")
    # 3e-4 covers the scheme's error of the phase, 4e-6 w t, seen in positions of 0.3 m
    np.testing.assert_allclose(found.values, [20.0, 0.7, -0.3], rtol=3e-4)
    assert found.success
    # the same covariance as that of the closed form's sensitivities, all numbers at once
    columns = []
    for d in ([1e-4, 0, 0], [0, 1e-5, 0], [0, 0, 1e-5]):
        plus, minus = (
            np.concatenate(
                [exact(0.1, 0.7 + s * d[1], 20 + s * d[0]), exact(-0.2, -0.3 + s * d[2], 20 + s * d[0])]
            )
            for s in (1, -1)
        )
        columns.append(100.0 * (plus - minus) / (2 * max(d)) / 0.01)
    expected = np.linalg.inv(np.array(columns) @ np.array(columns).T)
    np.testing.assert_allclose(found.covariance, expected, rtol=2e-3, atol=1e-12)


def test_a_number_that_starts_can_stand_for_is_not_identifiable() -> None:
    def two(x0: float, name: str) -> Recording:
        stretch = exact(x0, 0.0)[:2]
        return Recording(
            times=TIMES[:2], values={"x": stretch, "stretch": 100.0 * stretch}, name=name,
            noise={"x": 1e-4, "stretch": 0.01}, start=State(t=0.0, q=np.array([x0]), v=np.zeros(1)),
        )  # fmt: skip

    train = {"state.v": transforms.free(), "state.q": transforms.free(), "mass": transforms.positive()}
    found = nsjax.identify(problem(), SCHEME, [two(0.1, "one"), two(0.2, "other")], train, dt=DT)
    assert not found.success
    said = [m for m in found.messages if m.startswith("not identifiable")]
    assert [m for m in said if m.startswith("not identifiable: mass does nothing that")] == said
    assert len(said) == 1


def test_long_tables_are_cut() -> None:
    data = [recording(0.1 + 0.01 * k, 0.0, f"run {k}", False) for k in range(32)]
    train = {"state.v": transforms.free(), "stiffness": transforms.positive()}
    found = nsjax.identify(problem(), SCHEME, data, train, dt=DT)
    assert len(found.names) == 33
    assert "and 3 more; all of them: names, values, interval" in str(found).splitlines()


def test_a_start_of_one_recording_is_in_the_fitted_problem() -> None:
    train = {"state.v": transforms.free(), "stiffness": transforms.positive()}
    data = [recording(0.1, 0.7, known_start=False)]
    found = nsjax.identify(problem(stiffness=15.0), SCHEME, data, train, dt=DT)
    np.testing.assert_allclose(found.problem.state.v, [0.7], rtol=3e-4)
    np.testing.assert_allclose(found.problem.state.q, [0.1], rtol=0)
    run = nsjax.simulate(*found.problem, SCHEME, dt=DT, steps=1000, every=25)
    np.testing.assert_allclose(run["stretch"][1:41], found.fits[0].model["stretch"], rtol=1e-10, atol=1e-10)


def test_a_number_that_moves_nothing_is_no_success() -> None:
    # at rest in its equilibrium the spring force is the weight; the cart's inertia has no part
    start = State(t=0.0, q=np.array([0.3 * 9.81 / 20.0]), v=np.zeros(1))
    y = np.full(len(TIMES), 100.0 * 0.3 * 9.81 / 20.0)
    data = Recording(times=TIMES, values={"stretch": y}, noise=0.01, start=start)
    found = nsjax.identify(problem(), SCHEME, data, {"cart": transforms.positive()}, dt=DT)
    assert not found.success
    text = " ".join(found.messages)
    assert "zero gradient" in text
    assert "not identifiable: cart" in text


def test_a_positive_number_that_vanishes_is_said() -> None:
    # data without any weight: the best mass is none
    y = 100.0 * exact(0.2, 0.0, weight=0.0)
    start = State(t=0.0, q=np.array([0.2]), v=np.zeros(1))
    data = Recording(times=TIMES, values={"stretch": y}, noise=0.01, start=start)
    train = {"mass": transforms.positive(), "stiffness": transforms.positive()}
    found = nsjax.identify(problem(stiffness=19.0), SCHEME, data, train, dt=DT)
    assert found["mass"] < 3e-4
    assert any(m.startswith("at a bound: mass") for m in found.messages)


def test_an_increment_of_the_start() -> None:
    known = recording(0.1, 0.7)
    wrong = State(t=0.0, q=np.array([0.35]), v=np.array([0.7]))
    data = Recording(times=TIMES, values=known.values, noise=0.01, start=wrong)
    found = nsjax.identify(problem(), SCHEME, data, {"state.xi": transforms.free()}, dt=DT)
    # 3e-4 of the amplitude of 0.3 m is the scheme's error of the phase
    assert found["state.xi[0]"] == pytest.approx(-0.25, abs=1e-4)
    np.testing.assert_allclose(found.problem.state.q, [0.1], atol=1e-4)
