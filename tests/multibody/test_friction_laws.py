"""Laws of the friction in joints: clutches that turn in one sense, friction that falls with the rate."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import InputError, Problem, schemes
from nsjax import multibody as mb
from tests.design import each_family

BELT, LAW = 0.4, {"rest": 2.0, "speed": 0.15}


def _push(t: Any) -> Any:
    return 3.0 * jnp.cos(3.0 * t)


def ratchet(coordinates: str = "joint", sense: int = 1) -> Problem:
    """A driven arm and a wheel on one axle; the clutch between them turns in one sense."""
    return mb.assemble(
        mb.body("arm", mass=1.0, inertia=1.0), mb.body("wheel", mass=1.0, inertia=2.0),
        mb.hinge("axle", "ground", "arm"),
        mb.hinge("clutch", "arm", "wheel", friction_law=mb.OneWay(sense)),
        mb.torque("drive", "arm", law=lambda t, scene, own: sense * _push(t)),
        mb.torque("damper", "wheel", law=lambda t, scene, own: -own * scene.spin("wheel"), own=0.7),
        start={"arm": (0.0, 0.0), "wheel": (0.0, 0.4 * sense)}, coordinates=coordinates,
    )  # fmt: skip


def event_driven(damping: float = 0.7, time: float = 4.0) -> np.ndarray:
    """Rates of arm and wheel after a time, with the instants at which the clutch locks and opens."""
    t, v, locked = 0.0, np.array([0.0, 0.4]), False

    def push(t: float) -> float:
        return 3.0 * np.cos(3.0 * t)

    def together(t: float, v: np.ndarray) -> list[float]:
        return [(push(t) - damping * v[0]) / 3.0] * 2

    def free(t: float, v: np.ndarray) -> list[float]:
        return [push(t), -damping * v[1] / 2.0]

    while t < time:

        def event(t: float, v: np.ndarray, locked: bool = locked) -> float:
            return push(t) - together(t, v)[0] if locked else v[1] - v[0]

        event.terminal, event.direction = True, -1  # type: ignore[attr-defined]
        motion = together if locked else free
        done = solve_ivp(motion, (t, time), v, events=event, rtol=1e-10, atol=1e-11)
        t, v, locked = done.t[-1], done.y[:, -1], locked ^ (done.status == 1)
    return v


@pytest.mark.parametrize("sense", [1, pytest.param(-1, marks=pytest.mark.slow)])
@each_family("name", "moreau")
def test_a_clutch_turns_in_one_sense(name: str, sense: int) -> None:
    if name.startswith("nsga"):
        pytest.skip("refuses laws of users")
    traj = nsjax.simulate(*ratchet(sense=sense), getattr(schemes, name)(), dt=2e-3, time=4.0)
    assert int(traj.status) == 0
    found = np.array([traj["arm.omega"][-1], traj["wheel.omega"][-1]])
    np.testing.assert_allclose(sense * found, event_driven(), atol=1e-4)


def test_a_clutch_in_absolute_coordinates_and_its_derivative() -> None:
    problem, h = ratchet("absolute"), 1e-4

    def end(damping: Any) -> Any:
        driven = problem.replace({"damper.own": damping})
        traj = nsjax.simulate(*driven, schemes.moreau(), dt=2e-3, time=4.0)
        return jnp.stack([traj["arm.omega"][-1], traj["wheel.omega"][-1]])

    value, slope = jax.jit(lambda x: jax.jvp(end, (x,), (1.0,)))(0.7)
    np.testing.assert_allclose(value, event_driven(), atol=1e-4)
    wanted = (event_driven(0.7 + h) - event_driven(0.7 - h)) / (2 * h)
    np.testing.assert_allclose(slope, wanted, atol=2e-3)


def slider() -> Problem:
    """A block on a spring, in a guide on a belt of steady speed."""
    return mb.assemble(
        mb.body("belt", mass=1.0), mb.slide("moving", "ground", "belt", motion=lambda t: BELT * t),
        mb.body("block", mass=1.0), mb.slide("guide", "ground", "block"),
        mb.slide("rubs", "belt", "block", friction=1.0, own=LAW, friction_law=mb.Stribeck(), loop=True),
        mb.joint_spring("spring", "guide", stiffness=20.0), start={"guide": (0.0, BELT)},
    )  # fmt: skip


def limit_cycle() -> tuple[float, float]:
    """Amplitude and period of stick and slip, event by event."""
    rest, speed = LAW["rest"], LAW["speed"]

    def slides(t: float, x: np.ndarray) -> list[float]:
        bound = 1.0 + (rest - 1.0) * np.exp(-(((x[1] - BELT) / speed) ** 2))
        return [x[1], -20.0 * x[0] + bound]  # slower than the belt, which pulls forward

    def catches(t: float, x: np.ndarray) -> float:
        return x[1] - BELT

    catches.terminal, catches.direction = True, 1  # type: ignore[attr-defined]
    begin = [rest / 20.0 + 1e-9, BELT - 1e-9]
    done = solve_ivp(slides, (0.0, 5.0), begin, events=catches, rtol=1e-11, atol=1e-13, max_step=1e-3)
    period = done.t[-1] + (begin[0] - done.y[0, -1]) / BELT
    return float(np.ptp(done.y[0])), float(period)


def test_stick_and_slip_of_a_block() -> None:
    amplitude, period = limit_cycle()
    traj = nsjax.simulate(*slider(), schemes.moreau(), dt=5e-4, time=4.0)
    assert int(traj.status) == 0
    t, x = np.asarray(traj.t), np.asarray(traj.joint("guide").coordinate)
    late = t > 1.5
    assert abs(np.ptp(x[late]) - amplitude) < 2e-3 * amplitude
    sticks = np.abs(np.asarray(traj.joint("guide").rate) - BELT) < 1e-9
    begins = t[1:][~sticks[1:] & sticks[:-1]]
    assert abs(np.mean(np.diff(begins[begins > 0.2])) - period) < 3e-3 * period


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match=r"hinge 'a': friction_law = 0\.3 has no function residual; give"):
        mb.hinge("a", "ground", "wheel", friction_law=0.3)
    arm, ball = (mb.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1)) for name in ("arm", "ball"))
    clutch = mb.hinge("a", "ground", "arm", axis=(1.0, 0.0, 0.0), friction_law=mb.OneWay())
    floor = mb.contact("floor", mb.sphere("ball", radius=0.1), mb.plane(), friction=(0.5, 0.001, 0.01))
    with pytest.raises(InputError, match="friction_law does not work beside torsional and rolling"):
        mb.assemble(arm, ball, clutch, floor, gravity=9.81)
