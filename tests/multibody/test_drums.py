"""Ropes that rub on several drums of a body, and with whole turns: closed forms of the sum of angles."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.multibody import assemble, body, cylinder, slide, sphere, tendon

SLOW = pytest.mark.slow
G, R, APART, MU, LIFT = 9.81, 0.2, 0.5, 0.1, 0.5
"""Gravity, radius of the drums and distance of their centres, friction, speed of a lifted block."""

BENT = float(np.arcsin(2.0 * R / APART))
"""Angle between the line through the centres and the rope, which crosses it in the middle of two drums."""


def angle_of(turns: int) -> float:
    """About all three drums: over the first, below the second, over the third."""
    return np.pi + 4.0 * BENT + 2.0 * np.pi * turns


def hung(
    masses: Any, space: str = "", coordinates: str = "joint", holder: str = "ground", turns: int = 0
) -> nsjax.Problem:
    """Two weights on a rope over three drums of the ground, or of a block that is lifted at constant speed.

    Args:
        space: "" in the plane; "sphere" or "cylinder".
        turns: whole turns about the drum in the middle.
    """
    wide = (lambda x, y: (x, 0.0, y)) if space else (lambda x, y: (x, y))
    inertia, up = (0.1,) * 3 if space else 0.1, wide(0.0, 1.0)
    parts, lifted = [], 0.0 if holder == "ground" else LIFT
    if lifted:
        parts = [
            body(holder, mass=3.0, inertia=inertia),
            slide("lift", "ground", holder, axis=up, motion=lambda t: LIFT * t),
        ]
    for name, x, m in (("a", -R, masses[0]), ("b", 2.0 * APART + R, masses[1])):
        parts += [
            body(name, mass=m, inertia=inertia),
            slide(name.upper(), "ground", name, at=wide(x, -1.0), axis=up),
        ]
    path: list[Any] = []
    for k, side in enumerate((1.0, -1.0, 1.0)):
        at = wide(APART * k, 0.0)
        drum = sphere(holder, R, at=at)
        if space == "cylinder":
            drum = cylinder(holder, R, 0.1, at=at, axis=(0.0, 1.0, 0.0))
        path += [
            (drum, (holder, wide(APART * k, side)), turns * (k == 1)),
            (holder, wide(APART * (k + 0.5), 0.0)),
        ]
    length = 2.0 + R * angle_of(turns) + 4.0 * np.sqrt(0.25 * APART**2 - R**2)
    rope = tendon("rope", "a", *path[:-1], "b", limits=(None, length), capstan_friction=MU)
    start = {x: (0.0, lifted) for x in "AB"}
    return assemble(*parts, rope, gravity=G, start=start, coordinates=coordinates)


def falling(masses: Any, ratio: Any) -> Any:
    """Acceleration of a downwards against the drums, over that of gravity there."""
    m, n = masses
    if m <= ratio * n:
        return 0.0
    return (m - ratio * n) / (m + ratio * n)


CASES = [
    *(pytest.param(*x, marks=SLOW) for x in (
        (schemes.moreau, "", "joint", "ground", 0),
        (schemes.moreau, "", "absolute", "block", 1),
        (schemes.moreau, "cylinder", "joint", "block", 2),
        (schemes.generalized_alpha, "cylinder", "absolute", "ground", 0),
        (schemes.nsga_decoupled, "", "joint", "ground", 1),
        (schemes.half_explicit, "", "joint", "ground", 3),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("scheme", "space", "coordinates", "holder", "turns"), CASES)
def test_weights_hold_up_to_the_ratio_of_all_drums(
    scheme: Any, space: str, coordinates: str, holder: str, turns: int
) -> None:
    """On either side of ``exp(mu sum phi)``: speeds, the mean tension and the force of friction."""
    ratio, lifted = np.exp(MU * angle_of(turns)), LIFT * (holder != "ground")
    problem = hung((1.0, 1.0), space, coordinates, holder, turns)
    for share in (1.02, 0.98, 3.0):
        m, n = share * ratio, 1.0
        run = nsjax.simulate(*problem.replace({"a.mass": m, "b.mass": n}), scheme(), dt=1e-3, steps=50)
        run.raise_for_status()
        a = G * falling((m, n), ratio)
        speeds = [float(run.body(x).velocity[-1][-1]) for x in "ab"]
        np.testing.assert_allclose(speeds, [lifted - 0.05 * a, lifted + 0.05 * a], rtol=0, atol=1e-8)
        rows, tight, loose = run.contact("rope.upper"), m * (G - a), n * (G + a)
        each = rows.force if float(np.max(np.abs(rows.force))) > 0.0 else rows.impulse / 1e-3
        mean, rub = np.ravel(each[-1])[:2]
        factor = 2.0 * np.tanh(0.5 * MU * angle_of(turns)) / MU
        assert mean == pytest.approx(0.5 * (tight + loose), rel=1e-8)
        assert -factor * rub == pytest.approx(tight - loose, rel=1e-7)


@SLOW
@pytest.mark.parametrize("derivative", [jax.jacfwd, jax.jacrev])
def test_derivatives_by_the_coefficient(derivative: Any) -> None:
    """Of the speed of a weight that slides, with whole turns, against the closed form."""
    problem = hung((8.0, 1.0), turns=1)

    def speed(mu: Any) -> Any:
        made = problem.replace({"rope.capstan_friction": mu})
        return nsjax.simulate(*made, schemes.moreau(), dt=1e-3, steps=50).v[-1, 1]

    exact = jax.grad(lambda mu: 0.05 * G * falling((8.0, 1.0), jax.numpy.exp(mu * angle_of(1))))
    assert float(jax.jit(derivative(speed))(MU)) == pytest.approx(float(exact(MU)), rel=1e-8)


def length_of(problem: nsjax.Problem, q: Any = None) -> float:
    """Length of the rope at the start, or at a position."""
    place = jax.jit(
        lambda q: problem.system.parts.scene(0.0, q, None, problem.params).coordinates("rope")[0]
    )
    return float(place(np.asarray(problem.state.q if q is None else q)))


@pytest.mark.parametrize(
    "space", [pytest.param("cylinder", marks=SLOW), pytest.param("sphere", marks=SLOW), ""]
)
def test_lengths_and_pictures_with_whole_turns(space: str) -> None:
    """Each turn adds its circumference, and the drawn rope is as long."""
    problem, turned = (hung((1.0, 1.0), space, turns=turns) for turns in (0, 2))
    lengths = [length_of(problem), length_of(turned)]
    picture = jax.jit(lambda q: turned.system.shapes(0.0, q, turned.params).shapes)
    (rope,) = [x for x in picture(turned.state.q) if x.role == "spring"]
    steps = np.linalg.norm(np.diff(np.asarray(rope.points), axis=0), axis=1)
    # the chord of a twelfth of a turn is shorter than its arc by a hundredth
    assert np.sum(steps) == pytest.approx(lengths[1], rel=2e-2)
    assert lengths[1] - lengths[0] == pytest.approx(4.0 * np.pi * R, rel=1e-12)


@SLOW
@pytest.mark.parametrize("height", [0.2, -0.2])
def test_a_helix_on_a_cylinder(height: float) -> None:
    """With ends at two heights of its axis, the rope is the straight line of the unrolled cylinder."""
    drum = cylinder("ground", R, 1.0, axis=(0.0, 1.0, 0.0)), ("ground", (0.0, 0.0, 1.0)), 3
    made = assemble(
        body("a", mass=1.0, inertia=(0.1,) * 3), slide("A", "ground", "a", axis=(0.0, 1.0, 0.0)),
        tendon("rope", ("a", (-R, 0.0, -1.0)), drum, ("ground", (R, 0.5, -1.0)), stiffness=1.0),
        gravity=G,
    )  # fmt: skip
    assert length_of(made, [height]) == pytest.approx(
        np.hypot(2.0 + 7.0 * np.pi * R, 0.5 - height), rel=1e-12
    )
