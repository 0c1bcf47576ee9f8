"""Small problems whose runs are kept: what each is made of, and what happens in it.

Written as users write them. Masses differ, and nothing is symmetric, so that each number of a run depends
on each number of the problem.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import ContactLaw, Problem, State, System, models
from nsjax.multibody import (
    actuator,
    assemble,
    ball,
    beam,
    body,
    capsule,
    contact,
    contact_group,
    hinge,
    joint_spring,
    plane,
    point,
    rectangular,
    rolling,
    sphere,
    spheres,
    spring,
)

KINDS = ("point", "corners", "constraint", "flexible", "joint", "absolute")
"""What a step works on: hand-written systems of few rows, with several corners, with constraints, with an
inertia that is no small dense matrix; mechanisms of parts in joint and in absolute coordinates.
"""


@dataclasses.dataclass(frozen=True)
class Structure:
    """A problem, and a step in which its run shows something.

    Args:
        make: the problem.
        kind: of `KINDS`.
        features: what its steps meet, words of the design.
        dt: step size [s].
        steps: their number, a multiple of four.
    """

    make: Callable[[], Problem]
    kind: str
    features: frozenset[str]
    dt: float
    steps: int = 100


def _start(q: Any, v: Any) -> State:
    """A state at the time zero."""
    q, v = np.array(q), np.array(v)
    return State(t=0.0, q=q, v=v)


def _oscillator() -> Problem:
    """A driven mass on a spring beside a wall: impacts without friction."""
    return Problem(
        system=OSCILLATOR,
        params={"stiffness": 40.0, "drive": 6.0, "restitution": 0.6, "mass": 1.3},
        state=_start([0.05], [1.0]),
    )


OSCILLATOR = System(
    nq=1, nv=1, nc=1,
    mass=lambda q, p: jnp.reshape(p["mass"], (1, 1)),
    force=lambda t, q, v, p: -p["stiffness"] * q - 0.2 * v + p["drive"] * jnp.cos(9.0 * t),
    gap=lambda t, q, p: 0.1 - q,
    law=lambda p: ContactLaw(restitution=p["restitution"]),
)  # fmt: skip


def _belt() -> Problem:
    """A point on a spring and on a belt, dragged by a brake that lets go at half the way: impact, sliding,
    sticking, a bounded row and a force that jumps.
    """
    numbers = {"mass": 0.7, "stiffness": 30.0, "friction": 0.5, "restitution": 0.3, "bound": 0.8}
    state = _start([0.0, 0.01], [0.6, -0.4])
    return Problem(system=BELT, params=numbers, state=state)


def _belt_force(t: Any, q: Any, v: Any, p: Any) -> Any:
    pull = -p["stiffness"] * q[0] + jnp.where(q[0] > 0.02, -2.0, 1.0)
    return jnp.stack([pull, -9.81 * p["mass"]])


BELT = System(
    nq=2, nv=2, nc=1, nt=1, nd=1,
    mass=lambda q, p: p["mass"] * jnp.eye(2),
    force=_belt_force,
    gap=lambda t, q, p: q[1:],
    slip=lambda t, q, v, p: jnp.reshape(v[0] - 0.1, (1, 1)),
    law=lambda p: ContactLaw(friction=p["friction"], restitution=p["restitution"]),
    dry_friction=lambda t, q, v, p: v[:1],
    dry_friction_bound=lambda p: jnp.reshape(p["bound"], (1,)),
    switch=lambda t, q, v, p: q[:1] - 0.02,
)  # fmt: skip


def _hoist() -> Problem:
    """A mass on a lift that moves as prescribed, and one that hangs on it and hits the floor."""
    state = _start([0.3, 0.02], [-0.5, -0.7])
    return Problem(system=HOIST, params={"mass": 2.0, "stiffness": 90.0, "restitution": 0.4}, state=state)


HOIST = System(
    nq=2, nv=2, nc=1, nb=1,
    mass=lambda q, p: jnp.diag(jnp.stack([p["mass"], 0.4 * p["mass"]])),
    force=lambda t, q, v, p: p["stiffness"] * (q[0] - q[1] - 0.25) * jnp.array([-1.0, 1.0]) - 9.81,
    gap=lambda t, q, p: q[1:],
    constraint=lambda t, q, p: q[:1] - 0.3 + 0.05 * jnp.sin(10.0 * t),
    law=lambda p: ContactLaw(restitution=p["restitution"]),
)  # fmt: skip


def _model(name: str, **numbers: Any) -> Callable[[], Problem]:
    return lambda: getattr(models, name)(**numbers)


def _arm() -> Problem:
    """Two links in the plane whose tip lands on a rough floor; a limit, dry friction and a spring in the
    elbow.
    """
    return assemble(
        body("upper", mass=1.5, inertia=0.02, com=0.25), body("lower", mass=0.6, inertia=0.008, com=0.2),
        hinge("shoulder", "ground", "upper"),
        hinge("elbow", "upper", "lower", at=0.5, limits=(-0.9, -0.2), restitution=0.3, friction=0.2),
        joint_spring("stiff", "elbow", stiffness=3.0, damping=0.02),
        contact("floor", point("lower", at=0.4), plane(at=(0.0, -0.5)), friction=0.4, restitution=0.2),
        gravity=9.81, start={"upper": (-0.3, -2.0), "lower": (-0.6, 2.0)},
    )  # fmt: skip


def _pole(coordinates: str) -> Problem:
    """A link in the plane that falls on a rough edge and is thrown back to its limit."""
    return assemble(
        body("pole", mass=1.5, inertia=0.02, com=0.25),
        hinge("pin", "ground", "pole", limits=(-1.0, 0.35), restitution=0.6, friction=0.2),
        contact("edge", sphere("pole", 0.02, at=0.4), sphere("ground", 0.02, at=(0.41, -0.03)),
                friction=0.4, restitution=0.7),
        gravity=9.81, coordinates=coordinates, start={"pole": (0.12, -5.0)},
    )  # fmt: skip


def _four_bar(coordinates: str) -> Problem:
    """A loop with a motor, whose rocker strikes a wall, and a limit of its crank."""
    return assemble(
        body("crank", mass=0.3, inertia=1e-3, com=0.05), body("coupler", mass=0.4, inertia=5e-3, com=0.2),
        body("rocker", mass=0.3, inertia=2e-3, com=0.15),
        hinge("o", "ground", "crank", limits=(0.0, 0.6), restitution=0.5),
        hinge("a", "crank", "coupler", at=0.1), hinge("c", "ground", "rocker", at=0.4),
        hinge("b", "coupler", "rocker", at=0.4, on=0.3), actuator("motor", "o", effort=0.7),
        contact("wall", sphere("rocker", 0.02, at=0.3), plane(at=0.52, normal=(-1.0, 0.0)), friction=0.3,
                restitution=0.3),
        gravity=9.81, coordinates=coordinates, start={"crank": (0.3, 5.0)},
        guess={"rocker": 1.5, "coupler": 0.5},
    )  # fmt: skip


def _die(coordinates: str) -> Problem:
    """A crate with a group of round corners over the floor, of which a step looks at two."""
    corners = [
        sphere("die", 0.02, at=x) for x in ((0.15, 0.08), (-0.15, 0.08), (-0.15, -0.08), (0.15, -0.08))
    ]
    return assemble(
        body("die", mass=1.0, inertia=0.02),
        contact_group("all", corners, [plane()], friction=0.3, restitution=0.2, capacity=2, reach=0.05),
        gravity=9.81, coordinates=coordinates, start={"die": ((0.0, 0.13, 0.15), (0.8, -0.5, -1.0))},
    )  # fmt: skip


def _seesaw(coordinates: str) -> Problem:
    """A ball that falls on a bar on a hinge: both move, and the place of the contact on both."""
    return assemble(
        body("ball", mass=0.5, inertia=0.002), body("bar", mass=1.0, inertia=0.02),
        hinge("pivot", "ground", "bar", at=(1.0, 0.3)),
        contact("on", sphere("ball", 0.05), capsule("bar", 0.05, 0.3), friction=0.3, restitution=0.4),
        gravity=9.81, coordinates=coordinates, start={"ball": ((1.1, 0.42, 0.0), (0.5, -1.0, 3.0))},
    )  # fmt: skip


def _roll() -> Problem:
    """A wheel in the plane that rolls without slip on a slope and pulls a weight on a spring."""
    return assemble(
        body("wheel", mass=1.0, inertia=0.3), rolling("roll", "ground", "wheel", radius=0.5),
        spring("cord", "wheel", ("ground", (0.3, 0.6)), stiffness=20.0, length=0.2),
        gravity=(1.0, -9.0), start={"wheel": ((0.0, 0.5, 0.1), None)},
    )  # fmt: skip


def _swing() -> Problem:
    """A ball joint and a hinge with a limit and dry friction in space, whose tip scrapes over the floor."""
    return assemble(
        body("upper", mass=2.0, inertia=(0.01, 0.06, 0.07), com=0.3),
        body("lower", mass=1.0, inertia=(0.005, 0.03, 0.028), com=0.25),
        ball("shoulder", "ground", "upper", at=(0.0, 0.0, 0.8)),
        hinge("elbow", "upper", "lower", at=0.6, axis=(0.0, 1.0, 0.0), limits=(0.2, 1.5), friction=0.3,
              restitution=0.4),
        spring("cord", ("lower", (0.4, 0.0, 0.0)), "ground", stiffness=20.0, damping=0.3, length=0.5),
        contact("floor", point("lower", at=0.5), plane(), restitution=0.5, friction=0.3),
        gravity=9.81,
        start={"upper": ((0.1, 0.7, 0.05), (0.3, 0.5, 1.0)), "elbow": (0.25, -2.0)},
    )  # fmt: skip


def _wheel() -> Problem:
    """A ball with friction against spinning and rolling that lands on a floor."""
    return assemble(
        body("stone", mass=0.5, inertia=(2e-3, 2.2e-3, 2.4e-3)),
        contact("floor", sphere("stone", 0.1), plane(), friction=(0.3, 0.02, 0.01), restitution=0.3),
        gravity=9.81,
        start={"stone": (((0.0, 0.0, 0.105), (0.1, 0.2, 0.0)), ((0.5, 0.2, -0.6), (4.0, 6.0, 9.0)))},
    )  # fmt: skip


def _bob(coordinates: str) -> Problem:
    """A body on a ball joint whose tip scrapes over the floor."""
    return assemble(
        body("bob", mass=1.0, inertia=(0.01, 0.03, 0.025), com=0.25),
        ball("joint", "ground", "bob", at=(0.0, 0.0, 0.4)),
        contact("floor", point("bob", at=(0.5, 0.02, 0.0)), plane(), restitution=0.5, friction=0.3),
        gravity=9.81, coordinates=coordinates,
        start={"bob": ((0.1, 0.9, 0.05), (0.3, 1.5, 2.0))},
    )  # fmt: skip


def _gate(coordinates: str) -> Problem:
    """A body on an inclined hinge with dry friction, a motor and limits, and its heel on the floor."""
    return assemble(
        body("gate", mass=1.0, inertia=(0.01, 0.03, 0.025), com=0.25),
        hinge("pin", "ground", "gate", at=(0.0, 0.0, 0.1), axis=(0.0, 0.6, 0.8), limits=(-0.02, 0.5),
              friction=0.2, restitution=0.5),
        actuator("motor", "pin", effort=-2.0),
        contact("heel", sphere("gate", 0.02, at=(0.2, 0.0, 0.0)), plane(at=(0.0, 0.0, 0.07)), friction=0.3,
                restitution=0.2),
        gravity=9.81, coordinates=coordinates, start={"gate": (0.03, 2.0)},
    )  # fmt: skip


def _heap(coordinates: str) -> Problem:
    """Four balls in space on the floor: pairs of changing bodies, in places of a fixed number. In joint
    coordinates one hangs on a hinge.
    """
    radii = {"a": 0.05, "b": 0.06, "c": 0.04, "d": 0.03}
    hung = [hinge("pin", "ground", "d", at=(-0.4, 0.0, 0.06), on=(-0.25, 0.0, 0.0), axis=(0.0, 1.0, 0.0))]
    start: dict[str, Any] = {
        "a": ((0.0, 0.0, 0.051), (0.3, 0.0, -0.2)), "b": ((0.112, 0.01, 0.07), (-0.4, 0.0, -0.5)),
        "c": ((0.05, 0.05, 0.2), (0.0, 0.1, -1.0)), "d": ((0.1, 0.11, 0.05), (0.0, -0.5, 0.0)),
    }  # fmt: skip
    if coordinates == "joint":
        start["d"] = (-0.05, 1.5)
    return assemble(
        *(body(x, mass=4.0 * r, inertia=(1e-3, 1.2e-3, 9e-4)) for x, r in radii.items()),
        *(hung if coordinates == "joint" else []),
        contact_group("all", [*(sphere(x, r) for x, r in radii.items()), plane()], friction=0.3,
                      restitution=0.1, capacity=4, reach=0.01),
        gravity=9.81, coordinates=coordinates, start=start,
    )  # fmt: skip


def _rod() -> Problem:
    """A flexible rod on a hinge with a limit, whose end strikes the floor."""
    return assemble(
        beam("rod", (0.0, 0.0, 0.2), (0.6, 0.0, 0.2), elements=2, damping=1e-3,
             section=rectangular(0.05, 0.04, E=2e5, nu=0.3, rho=900.0)),
        hinge("pin", "ground", "rod.start", at=(0.0, 0.0, 0.2), axis=(0.0, 1.0, 0.0)),
        contact("floor", point("rod.end"), plane(at=(0.0, 0.0, 0.199)), friction=0.3, restitution=0.3),
        gravity=9.81,
    )  # fmt: skip


def _marbles() -> Problem:
    """Free spheres whose pairs change from step to step."""
    at = ((0.0, 0.0, 0.11), (0.185, 0.02, 0.1), (0.08, 0.1, 0.25))
    v = ((0.2, 0.0, -1.0), (-0.5, 0.1, 0.0), (0.0, 0.0, -1.5))
    return spheres(
        (0.1, 0.08, 0.06), (0.5, 0.3, 0.2), np.array(at), np.array(v),
        walls=[((0.0, 0.0, 1.0), 0.0)], friction=0.3, restitution=0.2, capacity=6,
    )  # fmt: skip


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split(", "))


STRUCTURES = {
    "oscillator": Structure(
        _oscillator,
        "point", _words("frictionless, restitution, moving"), 0.002, 200,
    ),
    "belt": Structure(_belt, "point", _words("friction, restitution, dry friction, switch"), 0.002),
    "balls": Structure(
        _model("bouncing_ball", balls=2, dimension=2, friction=0.3, height=0.02, restitution=0.5),
        "point", _words("friction, restitution, pairs"), 0.001,
    ),
    "crank": Structure(
        _model("slider_crank", initial_q=(0.85, -0.38, 0.001), initial_v=(70.0, -25.0, -30.0)),
        "corners", _words("friction, restitution"), 2e-05, 200,
    ),
    "block": Structure(
        _model("block", dimension=2, slope=0.2, friction=0.3, height=0.002, restitution=0.3,
               initial_v=(0.5, 0.0, 1.0)),
        "corners", _words("friction, restitution"), 0.001,
    ),
    "rotor": Structure(
        _model("rubbing_rotor", clearance=0.5, radius=0.5, eccentricity=0.05, stiffness=10.0,
               damping=0.1, drive=1.0, speed=10.0, initial_q=(0.45, 0.1, 0.0),
               initial_v=(1.0, 0.5, 10.0)),
        "corners", _words("friction, restitution, moving"), 0.002,
    ),
    "hoist": Structure(
        _hoist,
        "constraint", _words("frictionless, restitution, constraint, moving"), 0.001,
    ),
    "guide": Structure(
        _model("slider_crank_bilateral", rough=True),
        "constraint", _words("constraint, dry friction"), 2e-05,
    ),
    "stiff chain": Structure(
        _model("mass_spring_chain", support="constraint"),
        "constraint", _words("constraint, moving"), 0.001,
    ),
    "bar": Structure(
        _model("elastic_bar", elements=4, distance=0.02, restitution=0.5),
        "flexible", _words("frictionless"), 0.00025,
    ),
    "pendulum": Structure(
        _model("flexible_pendulum", elements=2, area=0.01, second_moment=8.33e-06, young=1000000.0,
               density=1000.0, restitution=0.5, angle=-0.7, speed=-5.0),
        "flexible", _words("frictionless, restitution"), 0.0001, 200,
    ),
    "cube": Structure(
        _model("flexible_cube", elements=1, size=4.0, young=10000.0, height=0.01,
               velocity=(1.0, 0.0, -0.5), rough=True, friction=0.3, restitution=0.5),
        "flexible", _words("spatial friction, restitution"), 0.001,
    ),
    "arm": Structure(_arm, "joint", _words("friction, restitution, limit, dry friction"), 0.002),
    "pole": Structure(
        lambda: _pole("joint"),
        "joint", _words("friction, restitution, limit, dry friction"), 0.001,
    ),
    "four bar": Structure(
        lambda: _four_bar("joint"),
        "joint", _words("friction, restitution, limit, loop, constraint"), 0.001,
    ),
    "die": Structure(lambda: _die("joint"), "joint", _words("friction, restitution, capacity"), 0.001),
    "seesaw": Structure(
        lambda: _seesaw("joint"),
        "joint", _words("friction, restitution, pairs"), 0.001,
    ),
    "roll": Structure(_roll, "joint", _words("rolling, constraint"), 0.002),
    "absolute pole": Structure(
        lambda: _pole("absolute"),
        "absolute", _words("friction, restitution, limit, dry friction, constraint"), 0.001,
    ),
    "absolute four bar": Structure(
        lambda: _four_bar("absolute"),
        "absolute", _words("friction, restitution, limit, loop, constraint"), 0.001,
    ),
    "absolute seesaw": Structure(
        lambda: _seesaw("absolute"),
        "absolute", _words("friction, restitution, pairs, constraint"), 0.001,
    ),
    "swing": Structure(
        _swing,
        "joint", _words("spatial friction, restitution, limit, dry friction"), 0.001,
    ),
    "wheel": Structure(
        _wheel,
        "joint", _words("spatial friction, restitution, rolling moments"), 0.001,
    ),
    "bob": Structure(lambda: _bob("joint"), "joint", _words("spatial friction, restitution"), 0.001),
    "gate": Structure(
        lambda: _gate("joint"),
        "joint", _words("spatial friction, restitution, limit, dry friction"), 0.001,
    ),
    "heap": Structure(
        lambda: _heap("joint"),
        "joint", _words("spatial friction, restitution, capacity, pairs"), 0.001,
    ),
    "absolute bob": Structure(
        lambda: _bob("absolute"),
        "absolute", _words("spatial friction, restitution, constraint"), 0.001,
    ),
    "absolute gate": Structure(
        lambda: _gate("absolute"),
        "absolute", _words("spatial friction, restitution, limit, dry friction, constraint"), 0.001,
    ),
    "absolute heap": Structure(
        lambda: _heap("absolute"),
        "absolute", _words("spatial friction, restitution, capacity, pairs"), 0.001,
    ),
    "rod": Structure(
        _rod,
        "absolute", _words("spatial friction, restitution, constraint"), 0.00025, 120,
    ),
    "marbles": Structure(
        _marbles,
        "absolute", _words("spatial friction, restitution, capacity, pairs"), 0.001,
    ),
}  # fmt: skip
"""Structures by name."""
