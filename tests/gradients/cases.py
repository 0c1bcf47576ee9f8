"""The motions of a particle on which all schemes are tried, by name."""

from __future__ import annotations

import math

from tests.gradients.particle import Case

DEG = math.pi / 180


def case(name: str, time: float, events: str, **values: float) -> Case:
    """Events separated by commas; ``columns`` by name."""
    extra = {k: values.pop(k) for k in ("columns", "order", "discrete") if k in values}
    if "columns" in extra:
        extra["columns"] = tuple(extra["columns"].split())
    plain = tuple(sorted(values.items()))
    return Case(name=name, values=plain, time=time, events=tuple(events.split(", ")), **extra)


def ball(e: float, impacts: int) -> Case:
    """Dropped from 1 m; the end is inside the flight after the last impact."""
    first = math.sqrt(2 / 9.81)
    times = [first]
    for k in range(1, impacts + 1):
        times.append(times[-1] + 2 * first * e**k)
    end = times[-2] + 0.37 * (times[-1] - times[-2])
    events = ", ".join(["slip floor"] * impacts)
    return case(f"ball e={e} impacts={impacts}", end, events, restitution=e, friction=0.0, columns=BALL)


BALL = "z vz restitution gravity"
ONFLOOR = "x vx friction gravity slope"
BALLS = [ball(e, n) for e in (1.0, 0.8, 0.5) for n in (1, 2, 3, 4)]
DAMPED = case("damped ball, 3 impacts", 1.55, "slip floor, slip floor, slip floor", drag=1.0, columns=BALL)
CORNERS = [
    case("corner, no friction", 0.83, "slip wall, slip floor", vx=1.9, wall=0.6,
         columns=f"x vx wall {BALL}"),
    case("corner, friction", 0.83, "slip wall, slip floor", vx=1.9, wall=0.6, friction=0.1,
         columns=f"x vx wall friction {BALL}"),
    case("corner, 3 impacts", 1.43, "slip floor, slip wall, slip floor", vx=2.2, wall=1.62, friction=0.1,
         columns=f"x vx wall friction {BALL}"),
]  # fmt: skip
SLOPES = [
    case("slope, slip impacts", 1.37, "slip floor, slip floor", slope=20 * DEG, friction=0.2, vx=2.0),
    case("slope, damped slip impacts", 2.11, "slip floor, slip floor, slip floor", slope=20 * DEG,
         friction=0.2, vx=4.0, restitution=1.0, drag=1.0),
    case("slope, stick impacts", 1.37, "stick floor, stick floor", slope=20 * DEG, friction=0.6, vx=-1.0,
         order=0.7),
    case("plastic landing, sliding", 0.79, "slip floor, rest", slope=30 * DEG, friction=0.2, vx=1.0, z=0.5,
         restitution=0.0, columns="x z vx vz friction gravity slope"),
    case("Zeno, sliding", 1.37, "..., rest", slope=30 * DEG, friction=0.2, vx=2.5, z=0.5, restitution=0.5,
         order=0.7),
]  # fmt: skip
REVERSAL = case("slip reversal uphill", 0.71, "turn", slope=30 * DEG, friction=0.2, vx=-2.0, z=0.0,
                columns=ONFLOOR)  # fmt: skip
HALT = case("slip to stick", 0.51, "stick", slope=20 * DEG, friction=0.7, vx=1.0, z=0.0, columns=ONFLOOR,
            discrete=None)  # fmt: skip
ALL = [*BALLS, DAMPED, *CORNERS, *SLOPES, REVERSAL, HALT]
BY_NAME = {c.name: c for c in ALL}
