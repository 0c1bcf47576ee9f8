"""The one-body cases of the folder ``joints`` of the reference data, from parts as its README says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nsjax import Problem
from nsjax import multibody as mb

GRAVITY = 9.80665
POINT = (1.0, 2.0, 3.0)
ARM = (-2.0, 0.0, 0.0)
TILTED = np.array([0.0, 1.0, 1.0]) / np.sqrt(2.0)
X, Y, Z = np.eye(3)


def about(axis: np.ndarray, degrees: float) -> np.ndarray:
    """Rotation vector."""
    return axis * np.radians(degrees)


def bob(moments: tuple[float, float, float] = (0.04, 0.1, 0.1)) -> Any:
    return mb.body("bob", mass=1.0, inertia=moments)


def made(*parts: Any, **start: Any) -> Problem:
    return mb.assemble(bob(), *parts, gravity=GRAVITY, **start)


def still(place: Any) -> dict[str, Any]:
    return {"start": {"bob": (place, None)}}


TO_BODY = {"first": "ground", "second": "bob"}


def revolute() -> Problem:
    return made(mb.hinge("j", **TO_BODY, at=POINT, on=ARM, axis=TILTED, turned=about(X, -45)))


def spherical() -> Problem:
    return made(mb.ball("j", **TO_BODY, at=POINT, on=ARM), **still(about(X, -45)))


def cylindrical1() -> Problem:
    return made(mb.cylindrical("j", **TO_BODY, on=ARM, axis=Z))


def cylindrical3() -> Problem:
    return made(mb.cylindrical("j", **TO_BODY, at=POINT, on=ARM, axis=TILTED, turned=about(X, -45)))


def prismatic1() -> Problem:
    return made(mb.slide("j", **TO_BODY, on=ARM, axis=Z))


def prismatic3() -> Problem:
    return made(mb.slide("j", **TO_BODY, at=POINT, on=ARM, axis=Y, turned=about(X, -90)))


def hooke() -> Problem:
    joint = mb.universal("j", **TO_BODY, on=(0.0, 0.0, 2.0), axis=-Z, second_axis=Y, turned=about(Y, 90))
    return mb.assemble(bob((0.1, 0.1, 0.04)), joint, gravity=GRAVITY)


def rod() -> Problem:
    parts = mb.distance("j", **TO_BODY, length=2.0, at=POINT, on=(2.0, 0.0, 0.0))
    return made(parts, **still((-1.0, 4.0, 3.0)))


def link() -> Problem:
    joint = mb.revolute_spherical("j", **TO_BODY, length=2.0, axis=TILTED, at=POINT, on=(0.0, -2.0, 0.0))
    return mb.assemble(bob((0.1, 0.04, 0.1)), joint, gravity=GRAVITY, **still((3.0, 4.0, 3.0)))


def torsion() -> Problem:
    joint = mb.hinge("j", **TO_BODY, on=ARM, axis=Y, turned=about(X, -90))
    return made(joint, mb.joint_spring("k", "j", stiffness=50.0, quadratic=10.0, damping=10.0))


def leg() -> Problem:
    k = mb.spring("k", "ground", "bob", stiffness=100.0, damping=5.0, length=2.0)
    return made(k, **still((0.0, 2.0, 0.0)))


def own_leg() -> Problem:
    k = mb.spring("k", "ground", "bob", length=2.0, law=lambda e, rate, own: 100.0 * e + 5.0 * rate)
    return made(k, **still((0.0, 2.0, 0.0)))


def elastic_link() -> Problem:
    k = mb.spring(
        "k", "ground", ("bob", (2.0, 0.0, 0.0)), length=2.0,
        law=lambda e, rate, own: own["k"] * e + own["k2"] * abs(e) * e + own["c"] * rate,
        own={"k": 50.0, "k2": 10.0, "c": 5.0},
    )  # fmt: skip
    return made(k, **still(((0.0, 4.0, 0.0), about(Z, -90))))


def lift() -> Problem:
    joint = mb.slide("j", **TO_BODY, axis=Z, motion=lambda t: t)
    return mb.assemble(bob((1.0, 1.0, 1.0)), joint, gravity=GRAVITY)


CASES: dict[str, Callable[[], Problem]] = {
    "Revolute_Case02": revolute, "Spherical_Case02": spherical, "Cylindrical_Case01": cylindrical1,
    "Cylindrical_Case03": cylindrical3, "Prismatic_Case01": prismatic1, "Prismatic_Case03": prismatic3,
    "Universal_Case02": hooke, "Distance_Case02": rod, "RevSpherical_Case02": link,
    "RotSpring_Case02": torsion, "TranSpring_Case02": leg, "TranSpringCB_Case02": own_leg,
    "TranSpringCB_Case04": elastic_link, "LinActuator_Case01": lift,
}  # fmt: skip
