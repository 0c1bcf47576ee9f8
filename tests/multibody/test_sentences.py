"""Wrong models get a sentence that names the part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nsjax
from nsjax import InputError, schemes
from nsjax.multibody import (
    assemble,
    ball,
    body,
    contact,
    corners,
    distance,
    fixed,
    force,
    hinge,
    joint_spring,
    plane,
    slide,
    sphere,
    spring,
    universal,
    walls,
)


def bar(name: str = "rod", **given: Any) -> Any:
    return body(name, **({"mass": 1.0, "inertia": 0.1} | given))


def space(name: str = "rod") -> Any:
    return bar(name, inertia=(1.0, 1.0, 1.0))


def made(*parts: Any, **given: Any) -> Any:
    return assemble(bar(), *parts, **({"gravity": 9.81} | given))


PIN = hinge("pin", "ground", "rod")
LEG = {"stiffness": 1.0, "length": 0.1}


def triangle(third: float) -> list[Any]:
    """Two bars between bearings."""
    return [
        bar("a"), bar("b"), hinge("h1", "ground", "a"), hinge("h2", "a", "b", at=1.0),
        hinge("h3", "ground", "b", at=third, on=1.0),
    ]  # fmt: skip


CASES: dict[str, tuple[Any, str]] = {
    # names
    "unknown body": (
        lambda: made(hinge("pin", "ground", "rood")),
        "hinge 'pin': unknown body 'rood'.*'rod'",
    ),
    "unknown joint": (
        lambda: made(PIN, joint_spring("k", "pinn", stiffness=1.0)),
        "joint_spring 'k': unknown joint 'pinn'.*'pin'",
    ),
    "doubled body": (lambda: made(bar()), "body 'rod': a body has that name"),
    "joint named as a body": (lambda: made(hinge("rod", "ground", "rod")), "hinge 'rod': a body has that"),
    "ground": (lambda: bar("ground"), "body: name = 'ground'"),
    "no word": (lambda: bar("my rod"), "body: name = 'my rod'"),
    "no part": (lambda: assemble([bar()]), r"is no part; write assemble\(\*parts\)"),
    "itself": (lambda: hinge("pin", "rod", "rod"), "hinge 'pin': joins 'rod' to itself"),
    "load on the ground": (lambda: force("f", "ground", (1.0, 0.0)), "force 'f': acts on the ground"),
    # numbers
    "axis": (lambda: slide("s", "ground", "rod", axis=(0.0, 2.0)), r"slide 's': axis = .*\[0.0, 1.0\] is"),
    "second axis": (
        lambda: universal("u", "a", "b", axis=(1.0, 0, 0), second_axis=(0.0, 1, 1)),
        "universal 'u': second_axis = .* no unit vector",
    ),
    "normal": (lambda: plane(normal=(0.0, 2.0)), "plane 'ground': normal = .* no unit vector"),
    "negative mass": (lambda: bar(mass=-1.0), "body 'rod': mass = -1.0"),
    "negative inertia": (lambda: bar(inertia=-0.1), "body 'rod': inertia = -0.1"),
    "negative moment": (
        lambda: bar(inertia=np.array([[1.0, 2, 0], [2, 1, 0], [0, 0, 3]])),
        "body 'rod': inertia = .* not be negative",
    ),
    "triangle": (lambda: bar(inertia=(1.0, 1.0, 2.1)), "body 'rod': moments .* triangle inequality"),
    "triangle of a matrix": (lambda: bar(inertia=np.diag([1.0, 2.1, 1.0])), "body 'rod': .* triangle"),
    "skew inertia": (lambda: bar(inertia=np.eye(3) + 0.1 * np.eye(3, k=1)), "body 'rod': .* not symmetric"),
    "not finite": (lambda: bar(mass=np.nan), "body 'rod': mass = nan"),
    "limits": (lambda: hinge("h", "ground", "a", limits=(1.0, -1.0)), "hinge 'h': limits = .*below"),
    "walls upside down": (lambda: walls(1.0, -1.0), "walls of 'ground': lower = 1.0"),
    "length": (lambda: distance("d", "a", "b", length=0.0), "distance 'd': length = 0.0"),
    # plane and space
    "walls in space": (
        lambda: assemble(space(), contact("g", corners("rod", 0.1, 0.1, 0.1), walls(-1.0, 1.0))),
        "contact 'g': walls are planar",
    ),
    "hinge without axis": (lambda: assemble(space(), PIN), "hinge 'pin': .* axis="),
    "planar body in space": (
        lambda: made(hinge("pin", "ground", "rod", axis=(0, 0, 1.0))),
        "body 'rod': inert",
    ),
    "ball in the plane": (
        lambda: assemble(space(), ball("b", "ground", "rod"), gravity=(0.0, -9.81)),
        "ball 'b': is a joint of space",
    ),
    "turned hinge in the plane": (
        lambda: made(hinge("pin", "ground", "rod", turned=0.3)),
        "'pin': turned = 0.3",
    ),
    "point of the plane in space": (
        lambda: assemble(space(), hinge("pin", "ground", "rod", axis=(0, 0, 1.0), at=(1.0, 2.0))),
        "hinge 'pin': at has 2 components",
    ),
    # springs
    "ends coincide": (
        lambda: made(PIN, spring("leg", "ground", "rod", **LEG)),
        "spring 'leg': its ends coinc",
    ),
    "ends coincide with damping": (
        lambda: made(PIN, spring("leg", "ground", "rod", stiffness=1.0, damping=0.1)),
        "spring 'leg': its ends coincide",
    ),
    # loops and starts
    "loop": (lambda: assemble(*triangle(5.0)), "the loop at 'h.*' does not close"),
    "contradicting hinges": (
        lambda: made(PIN, hinge("pin2", "ground", "rod", at=1.0)),
        "'pin2.x' does not close",
    ),
    "contradicting slides": (
        lambda: made(slide("s", "ground", "rod"), slide("s2", "ground", "rod", turned=0.3)),
        "'s2.* does not close",
    ),
    "axes of a universal joint": (
        lambda: universal("u", "a", "b", axis=(1.0, 0, 0), second_axis=(0.6, 0.8, 0)),
        "universal 'u': .* 53.1301 degrees",
    ),
    "nothing moves": (lambda: made(fixed("weld", "ground", "rod")), r"nothing can move.*\('weld'\)"),
    "velocities": (
        lambda: assemble(*triangle(1.5), start={"a": (float(np.arccos(0.75)), 1.0)}),
        "the given velocities open the loop at 'h2",
    ),
    "motion against start": (
        lambda: made(hinge("pin", "ground", "rod", motion=lambda t: t), start={"rod": 1.0}),
        "'pin.motion' does not close",
    ),
    "start twice": (lambda: made(PIN, start={"rod": 1.0, "pin": 2.0}), "start: 'rod' is given twice"),
    "start unknown": (
        lambda: made(PIN, start={"rood": 1.0}),
        "start: 'rood' has no coord.*did you mean 'rod'",
    ),
    "start of a loop": (
        lambda: assemble(*triangle(1.5), start={"h2": 1.0}),
        "start: 'h2' .* closes a loop",
    ),
    "start of another size": (
        lambda: made(start={"rod": (1.0, 2.0)}),
        "start: position of 'rod' has 2 entries",
    ),
    # mass
    "massless leaf": (
        lambda: made(PIN, bar("tip", mass=0.0, inertia=None), hinge("h", "rod", "tip", at=1.0)),
        "body 'tip': mass = 0.0 and nothing",
    ),
    "massless body in absolute coordinates": (
        lambda: assemble(
            body("guide", mass=0.0),
            body("bob", mass=1.0, inertia=0.1),
            slide("s", "ground", "guide"),
            hinge("h", "guide", "bob", at=1.0),
            coordinates="absolute",
        ),
        "body 'guide': mass = 0.0, and in absolute",
    ),
    "point on its hinge": (
        lambda: assemble(body("bob", mass=1.0), hinge("h", "ground", "bob")),
        "body 'bob': inertia = None, but it turns",
    ),
    "free point": (
        lambda: assemble(body("bob", mass=1.0)),
        "body 'bob': inertia = None, but it turns about its centre of mass; give a value",
    ),
    # contacts
    "order of shapes": (lambda: contact("c", plane(), sphere("rod", 0.1)), "contact 'c': .*exchange them"),
    "one body": (
        lambda: contact("c", sphere("rod", 0.1), plane("rod")),
        "contact 'c': both shapes .* 'rod'",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_sentences(name: str) -> None:
    make, words = CASES[name]
    with pytest.raises(InputError, match=words):
        make()


PENETRATING = {
    "floor": (
        made(contact("floor", sphere("rod", 0.1), plane()), start={"rod": (0.0, 0.05, 0.0)}),
        r"\(floor\) = -0.05 .* penetrates",
    ),
    "pin.upper": (
        made(hinge("pin", "ground", "rod", limits=(0.0, 1.0)), start={"rod": 1.5}),
        r"\(pin.upper\)",
    ),
}


@pytest.mark.parametrize("name", PENETRATING)
def test_penetrating_start(name: str) -> None:
    problem, words = PENETRATING[name]
    with pytest.raises(InputError, match=words):
        nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=10)


def test_what_is_legal() -> None:
    """A spring of free length zero whose ends coincide, a massless body that carries one with mass, a plate
    whose moments fulfil the triangle inequality with equality, a point mass away from its hinge.
    """
    made(PIN, spring("leg", "ground", "rod", stiffness=1.0))
    assemble(
        bar("a", mass=0.0, inertia=None), bar("tip", com=0.2), hinge("h", "ground", "a"),
        hinge("h2", "a", "tip", at=1.0),
    )  # fmt: skip
    bar(inertia=(1.0, 2.0, 3.0))
    problem = assemble(body("bob", mass=2.0, com=0.5), hinge("h", "ground", "bob"))
    assert float(problem.system.mass(problem.state.q, problem.params)[0, 0]) == 0.5


def test_redundant_constraints_are_reported() -> None:
    """A parallelogram with three equal cranks: its reactions are said not to be unique."""
    parts = [bar("coupler")]
    for k in range(3):
        parts += [
            bar(f"crank{k}"), hinge(f"o{k}", "ground", f"crank{k}", at=0.5 * k),
            hinge(f"a{k}", f"crank{k}", "coupler", at=1.0, on=0.5 * k),
        ]  # fmt: skip
    start = {f"crank{k}": (1.0, 2.0) if k == 0 else 1.0 for k in range(3)}
    with pytest.warns(UserWarning, match="1 of 4 constraints follow from the others"):
        problem = assemble(*parts, start=start)
    labels = problem.system.labels.v
    rates = [problem.state.v[labels.index(f"crank{k}.omega [rad/s]")] for k in range(3)]
    np.testing.assert_allclose(rates, 2.0, rtol=1e-12)
    assert abs(problem.state.v[labels.index("coupler.omega [rad/s]")]) <= 1e-12
