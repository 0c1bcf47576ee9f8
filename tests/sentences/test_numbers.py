"""Numbers, names and functions of the wrong kind, as a stranger gives them to constructors."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nsjax
from nsjax import InputError, models, schemes
from nsjax import multibody as mb
from nsjax.core.errors import nearest

BALL = mb.sphere("ball", 0.1)


def pendulum(**more: Any) -> nsjax.Problem:
    return mb.assemble(
        mb.body("rod", mass=1.0, inertia=0.1, com=0.5), mb.hinge("h", "ground", "rod", **more),
        mb.actuator("drive", "h", law=lambda t, x, rate, own: own["control"], own={"control": 0.1}),
        gravity=9.81,
    )  # fmt: skip


def hinge(**more: Any) -> Any:
    return mb.hinge("h", "ground", "rod", **more)


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "restitution": (
        lambda: mb.contact("c", BALL, mb.plane(), restitution=1.5),
        r"contact 'c': restitution = 1.5; it must be at most 1",
    ),
    "restitution of a stop": (
        lambda: hinge(limits=(0.0, 1.0), restitution=1.5),
        "hinge 'h': restitution = 1.5; it must be at most 1",
    ),
    "restitution of a tendon": (
        lambda: mb.tendon("t", "ground", "rod", limits=(0.0, 1.0), restitution=2),
        "tendon 't': restitution = 2.0; it must be at most 1",
    ),
    "no mass": (lambda: mb.body("rod", mass=None), "body 'rod': mass = None; it must be given: one number"),
    "no radius": (
        lambda: mb.sphere("ball", None),
        "sphere 'ball': radius = None; it must be given: one number",
    ),
    "masses": (
        lambda: mb.body("rod", mass=[1.0, 2.0]),
        r"body 'rod': mass has shape \(2,\); give one number",
    ),
    "words": (lambda: mb.body("rod", mass=["a"]), r"mass = \['a'\]; give a number or an array of numbers"),
    "ragged": (
        lambda: mb.points("rod", [[0.0, 1.0], [2.0]]),
        r"points 'rod': at = \[\[0.0, 1.0\], \[2.0\]\]; give a number or an array of numbers",
    ),
    "complex": (
        lambda: mb.body("rod", mass=np.array(1j)),
        "mass = .*; give a number or an array of numbers",
    ),
    "truth": (
        lambda: mb.body("rod", mass=np.array(True)),
        "mass = .*; give a number or an array of numbers",
    ),
    "nothing": (lambda: mb.body("rod", mass=1.0, com=[]), r"com has shape \(0,\); give a number on the x"),
    "point": (
        lambda: hinge(at=(1.0, 2.0, 3.0, 4.0)),
        r"hinge 'h': at has shape \(4,\); give a number on the x axis, or a vector of 2 or 3",
    ),
    "turn": (
        lambda: mb.box("ball", 1.0, 1.0, turned=(0.0, 1.0)),
        r"box 'ball': turned has shape \(2,\); give an angle, or a rotation vector \(3,\)",
    ),
    "friction": (
        lambda: hinge(friction=np.eye(2)),
        r"hinge 'h': friction has shape \(2, 2\); give one number",
    ),
    "axis": (lambda: hinge(axis=2.0), "hinge 'h': axis = 2.0 is no unit vector"),
    "axis of a universal joint": (
        lambda: mb.universal("u", "ground", "rod", axis=None, second_axis=(0, 0, 1)),
        "universal 'u': axis = None; it must be given: a vector of 3",
    ),
    "limits that are no pair": (
        lambda: hinge(limits=1.1),
        "hinge 'h': limits = 1.1; give the lower and the upper one, None for none",
    ),
    "limits that are no numbers": (
        lambda: hinge(limits=("a", 1.1)),
        "hinge 'h': lower = 'a'; give a number or an array of numbers",
    ),
    "limits of a tendon": (
        lambda: mb.tendon("t", "ground", "rod", limits=2.0),
        "tendon 't': limits = 2.0; give the lower and the upper one, None for none",
    ),
    "points of a tendon": (
        lambda: mb.tendon("t", ["ground", "rod"]),  # type: ignore[arg-type]
        r"tendon 't': a list in its path; give its points one by one, \*points",
    ),
    "motion": (
        lambda: hinge(motion=3.0),
        "hinge 'h': motion = 3.0; it must be a function",
    ),
    "law of a motor": (
        lambda: mb.actuator("drive", "h", law=3.0),  # type: ignore[arg-type]
        "actuator 'drive': law = 3.0; it must be a function",
    ),
    "name of a joint": (
        lambda: mb.joint_spring("coil", 3, stiffness=1.0),  # type: ignore[arg-type]
        "joint_spring 'coil': 3 is no name of a joint; give its name",
    ),
    "names of joints": (
        lambda: mb.gear("g", "h", hinge(), ratio=2.0),  # type: ignore[arg-type]
        "gear 'g': hinge.* is no name of a joint; give its name",
    ),
    "limit of a servo": (
        lambda: mb.servo("s", "h", stiffness=1.0, limit="a"),
        "servo 's': limit = 'a'; give a number or an array of numbers",
    ),
    "density": (
        lambda: mb.circular(0.1, E=1e9, rho="steel"),
        "circular 'of a beam': rho = 'steel'; give a number or an array of numbers",
    ),
    "Poisson's ratio": (
        lambda: mb.rectangular(0.1, 0.1, E=1e9, nu=-1.0),
        r"1 \+ nu = 0.0; it must be positive",
    ),
    "edge of a terrain": (
        lambda: mb.heightfield("ground", np.zeros((2, 2)), None, 1.0),
        "heightfield 'ground': half_length = None; it must be given: one number",
    ),
    "stations": (
        lambda: mb.beam(
            "arm",
            (0, 0, 0),
            (1, 0, 0),
            elements=2,
            section=mb.circular(0.1, E=1e9, rho=1.0),
            stations=["mid"],  # type: ignore[arg-type]
        ),
        r"beam 'arm': stations = \['mid'\]; give a dict of arc lengths \[m\]",
    ),
    "polynomial": (
        lambda: mb.coupling("k", "h", polynomial=[[1.0], [1.0, 2.0]]),
        "coupling 'k': polynomial = .*; give a number or an array of numbers",
    ),
    "kind of a sensor": (
        lambda: mb.sensor("tip", ["position"], "rod"),  # type: ignore[arg-type]
        r"sensor 'tip': unknown kind \['position'\]; ",
    ),
    "whose sensor": (
        lambda: mb.sensor("tip", "position", 3),  # type: ignore[arg-type]
        "sensor 'tip': position of 3; give the names of 1 parts, each a body",
    ),
    "scale of a sensor": (
        lambda: mb.sensor("tip", "position", "rod", scale=None),  # type: ignore[arg-type]
        "sensor 'tip': scale = None; it must be given: one number",
    ),
    "what a law replaces": (
        lambda: pendulum().replace({"drive.value": 1.0}),
        "replace: drive.value is not set, and nothing reads it; give it where the part is made, or change "
        "one of drive.own.control",
    ),
    "a number that is not there": (
        lambda: pendulum().replace({"h.friction": 1.0}),
        "replace: h.friction is not set, and nothing reads it; give it where the part is made, or change",
    ),
    "a number taken away": (
        lambda: pendulum().replace({"rod.mass": None}),
        "replace: rod.mass = None; its equations read it: give a number",
    ),
    "changes": (
        lambda: models.bouncing_ball().replace(["restitution"]),  # type: ignore[arg-type]
        r"replace: \['restitution'\] is no mapping; give \{name: value\}, or name=value",
    ),
    "parameter of a scheme": (
        lambda: schemes.moreau_theta(theta="half"),
        "moreau_theta: theta = 'half' is no number; give one",
    ),
    "rows of a parameter": (
        lambda: schemes.generalized_alpha(rho_inf=[[0.5], [0.5, 0.6]]),
        "generalized_alpha: rho_inf = .* is no number; give one",
    ),
    "tolerance": (
        lambda: nsjax.simulate(*models.bouncing_ball(), schemes.moreau(tolerance=None), dt=1e-3, steps=2),
        r"scheme.tolerance = None; give a number, or leave it out of moreau\(\)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refusals(name: str) -> None:
    make, words = CASES[name]
    with pytest.raises(InputError, match=words):
        make()


def test_one_limit_is_enough() -> None:
    """As of tendons: a hinge stops on one side alone."""
    above = pendulum(limits=(None, 1.1), restitution=0.5)
    assert above.system.labels.contacts == ("h.upper",)
    assert pendulum(limits=(-1.0, None)).system.labels.contacts == ("h.lower",)
    gap = above.system.gap(0.0, np.array([1.0]), above.params)
    assert abs(float(gap[0]) - 0.1) < 1e-15  # rounding of 1.1 - 1.0


def test_rows_name_the_field_that_is_meant() -> None:
    run = nsjax.simulate(*pendulum(), schemes.moreau(), dt=1e-3, steps=2)
    with pytest.raises(AttributeError, match="JointRows has no field 'angle'; did you mean 'coordinate'"):
        _ = run.joint("h").angle
    with pytest.raises(AttributeError, match="has no field 'omega'"):
        _ = run.body("rod").omega
    with pytest.raises(
        AttributeError, match=r"JointRows has no field .forse.; did you mean .force.\? Known: force"
    ):
        _ = run.joint("h").forse
    assert not hasattr(run.joint("h"), "__array__")


def test_a_name_of_several_words_resembles_one_whose_every_word_does() -> None:
    known = ["rod.friction", "rod.mass", "floor_foot.friction"]
    assert nearest("floor.friction", known).startswith("did you mean 'floor_foot.friction'? Known")
    # names that share a word come first
    assert nearest("wall.friction", known) == "Known: rod.friction, floor_foot.friction, rod.mass"
    assert nearest("rod.fricton", known).startswith("did you mean 'rod.friction'?")
    assert nearest("o.friction", known).startswith("Known")
    assert nearest("friction", known).startswith("did you mean 'rod.friction'?")
    many = [f"rod{k}.mass" for k in range(30)] + ["floor.friction"]
    assert "Known: floor.friction, rod0.mass," in nearest("wall.friction", many)


def test_numbers_that_are_not_set_are_not_suggested() -> None:
    joint = pendulum(limits=(None, 1.1), restitution=0.5)
    with pytest.raises(
        nsjax.InputError, match=r"unknown parameter 'h\.uper'; did you mean 'h\.upper'"
    ) as e:
        joint.replace({"h.uper": 1.0})
    assert "h.lower" not in str(e.value)


def test_names_that_are_none_have_no_neighbour() -> None:
    assert nearest(3, ["mass"]) == "Known: mass"
    assert nearest(types, [1]) == "Known: 1"
