"""Numbers, names and functions of the wrong kind, as a stranger gives them to constructors."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

import nsjax
from nsjax import multibody as mb
from nsjax import schemes
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


def test_one_limit_is_enough() -> None:
    """As of tendons: a hinge stops on one side alone."""
    above = pendulum(limits=(None, 1.1), restitution=0.5)
    assert above.system.labels.contacts == ("h.upper",)
    assert pendulum(limits=(-1.0, None)).system.labels.contacts == ("h.lower",)
    gap = above.system.gap(0.0, np.array([1.0]), above.params)
    assert abs(float(gap[0]) - 0.1) < 1e-15  # rounding of 1.1 - 1.0


def test_rows_name_the_field_that_is_meant() -> None:
    run = nsjax.simulate(*pendulum(), schemes.moreau(), dt=1e-3, steps=2)
    with pytest.raises(AttributeError, match="JointRows has no field 'angle'; did you mean 'position'"):
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


def test_long_lists_name_the_closest_and_where_all_are() -> None:
    """A list without a place that holds all of it is whole."""
    many = [f"rod{k}.mass" for k in range(300)] + ["foot.mass", "foot.force"]
    found = nearest("foot.maas", many, "problem.keys()")
    assert found.startswith("did you mean 'foot.mass'? Known: foot.")
    assert found.endswith(" and 262 more; problem.keys() lists all")
    assert found.count(",") == 39
    assert nearest("foot.maas", many).count(",") == 301
    problem = mb.assemble(*(mb.body(f"b{k}", mass=1.0, inertia=1.0) for k in range(50)))
    with pytest.raises(
        nsjax.InputError, match=r"'b7\.mas'; did you mean 'b\d+.mass'.*problem.keys\(\) lists"
    ):
        problem.replace({"b7.mas": 1.0})
    keys = problem.keys()
    assert "b49.inertia" in keys
    assert all(problem.replace({name: 2.0}) for name in keys if name.startswith("b"))


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
