"""The cam and follower of the specification [P], M6: mechanisms from parts and their closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import integrate, optimize

import nsjax
from nsjax import schemes
from nsjax.multibody import assemble, body, contact, hinge, joint_spring, plane, profile, slide, sphere

from .. import common

RADIUS, ECCENTRICITY, ROLLER = 0.04, 0.012, 0.01
MASS, STIFFNESS, PRELOAD, GRAVITY = 0.5, 2000.0, 20.0, 9.81
REACH = RADIUS + ROLLER
LIFT_OFF, FLAT_LIFT_OFF = 98.990, 110.231
"""Speeds [rad/s] above which the follower leaves the cam at top dead centre."""

DRIVE = 1e4
"""Moment of inertia of the cam's drive [kg m^2]; the follower, with some 10 J, slows it by 1e-6."""

STEPS = 1000
"""Number of steps per turn."""


def eccentric(angle: Any) -> tuple[Any, Any]:
    """Points of the cam about its shaft."""
    return ECCENTRICITY + RADIUS * np.cos(angle), RADIUS * np.sin(angle)


def lift(theta: np.ndarray) -> np.ndarray:
    """Height of the roller at the angle ``theta`` from top dead centre."""
    return ECCENTRICITY * np.cos(theta) + np.sqrt(REACH**2 - (ECCENTRICITY * np.sin(theta)) ** 2)


def flat_lift(theta: np.ndarray) -> np.ndarray:
    """Height of a flat face at the angle ``theta`` from top dead centre."""
    return RADIUS + ECCENTRICITY * np.cos(theta)


def axial(height: Any, theta: np.ndarray, speed: float) -> np.ndarray:
    """Force along the guide of a follower in contact with the cam; its acceleration by differences."""
    h = 1e-4
    bend = (height(theta + h) - 2.0 * height(theta) + height(theta - h)) / h**2
    return MASS * (bend * speed**2 + GRAVITY) + PRELOAD + STIFFNESS * (height(theta) - height(np.pi))


def along_normal(theta: np.ndarray) -> np.ndarray:
    """Cosine of the angle between the guide and the normal of the roller's contact."""
    return np.sqrt(1.0 - (ECCENTRICITY * np.sin(theta) / REACH) ** 2)


def cam(flat: bool = False, disc: bool = False) -> Any:
    """The cam, a disc or a spline through points of its profile, and a roller or a flat face on it."""
    height: Any = flat_lift if flat else lift
    parts = (
        body("cam", mass=1.0, inertia=DRIVE),
        body("follower", mass=MASS),
        hinge("shaft", "ground", "cam"),
        slide("guide", "ground", "follower", axis=(0.0, 1.0)),
        joint_spring(
            "spring", "guide", stiffness=STIFFNESS, rest=float(height(np.pi)) - PRELOAD / STIFFNESS
        ),
    )
    outline = sphere("cam", RADIUS, at=ECCENTRICITY) if disc else profile("cam", eccentric)
    if flat:
        touch = contact("nose", outline, plane("follower", normal=(0.0, -1.0)))
    else:
        touch = contact("nose", sphere("follower", ROLLER), outline)
    return assemble(*parts, touch, gravity=GRAVITY)


def turning(problem: Any, height: Any, speed: float, turns: float = 1.0) -> nsjax.Trajectory:
    """A run from the middle of the rise, with the same number of steps per turn at every speed."""
    start = float(height(np.array(-np.pi / 2)))
    problem = problem.replace(initial_q=[0.0, start], initial_v=[speed, ECCENTRICITY * speed])
    dt = 2.0 * np.pi / speed / STEPS
    return common.run(problem, schemes.nsga_decoupled(), dt, round(turns * STEPS))


def angle(traj: nsjax.Trajectory) -> np.ndarray:
    """The angle of the cam from top dead centre."""
    return np.asarray(traj["cam.angle"]) - np.pi / 2


def leaves(traj: nsjax.Trajectory) -> bool:
    """Whether the contact opens after the first steps, in which the force builds up."""
    return bool(np.min(np.asarray(traj.contact("nose").force)[5:]) <= 0.0)


def bisected(run: Any, low: float, high: float, halvings: int) -> float:
    """The least speed between ``low`` and ``high`` at which ``run(speed)`` opens its contact.

    Raises:
        ValueError: where the contact opens at the lower speed or does not at the higher one.
    """
    if leaves(run(low)) or not leaves(run(high)):
        raise ValueError(f"lift-off is not between {low} and {high} rad/s")
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if leaves(run(middle)) else (middle, high)
    return 0.5 * (low + high)


def flight(height: Any, speed: float) -> tuple[float, float, float]:
    """Angles from top dead centre at which a follower leaves the cam and meets it again, and the largest
    distance along the guide [m], by event location in the free motion.
    """

    def pull(theta: float) -> float:
        return float(axial(height, np.array(theta), speed))

    def above(theta: float, y: np.ndarray) -> float:
        return float(y[0] - height(np.array(theta)))

    def rates(theta: float, y: np.ndarray) -> list[float]:
        force = -MASS * GRAVITY - PRELOAD - STIFFNESS * (y[0] - float(height(np.array(np.pi))))
        return [y[1], force / MASS / speed**2]

    leave = float(optimize.brentq(pull, -np.pi / 2, 0.0))
    h = 1e-5
    slope = float(height(np.array(leave + h)) - height(np.array(leave - h))) / (2.0 * h)
    above.terminal, above.direction = True, -1.0  # type: ignore[attr-defined]
    found = integrate.solve_ivp(
        rates, (leave, leave + 2.0 * np.pi), [float(height(np.array(leave))), slope], events=above,
        rtol=1e-10, atol=1e-14, max_step=0.01,
    )  # fmt: skip
    return leave, float(found.t[-1]), float(np.max(found.y[0] - height(found.t)))
