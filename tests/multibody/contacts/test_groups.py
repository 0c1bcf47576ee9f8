"""Contacts of groups: which pairs there are, what they are called, and the same motion as by hand."""

from __future__ import annotations

from typing import Any

from nsjax.multibody import (
    assemble,
    body,
    box,
    capsule,
    contact_group,
    fixed,
    hinge,
    plane,
    sphere,
)

X = (1.0, 0.0, 0.0)


def bodies(*names: str) -> list[Any]:
    return [body(x, mass=1.0, inertia=(0.01, 0.01, 0.01)) for x in names]


def contacts(*parts: Any) -> dict[str, Any]:
    problem = assemble(*parts, gravity=(0.0, 0.0, -9.81))
    return {x.name: x for x in problem.system.parts.topology.all_of("contact")}


def test_pairs_of_mixed_kinds() -> None:
    """In the order in which they are known, the law of each that of the group."""
    things = [box("crate", 0.1, 0.1, 0.1), sphere("ball", 0.1), capsule("pill", 0.1, 0.2), plane()]
    parts = [*bodies("crate", "ball", "pill"), contact_group("all", things, friction=0.3, restitution=0.5)]
    found = contacts(*parts)
    assert {name: part.bodies for name, part in found.items()} == {
        "crate_ball": ("ball", "crate"),
        "crate_pill": ("pill", "crate"),
        "crate_ground": ("crate", "ground"),
        "ball_pill": ("ball", "pill"),
        "ball_ground": ("ball", "ground"),
        "pill_ground": ("pill", "ground"),
    }
    params = assemble(*parts, gravity=(0.0, 0.0, -9.81)).params
    assert {(params[x].friction, params[x].restitution) for x in found} == {(0.3, 0.5)}
    assert "all" not in params


def test_between_two_groups_and_with_shapes_of_one_body() -> None:
    balls = [sphere("a", 0.1), sphere("a", 0.1, at=0.3), sphere("b", 0.1)]
    walls = [plane(), box("c", 0.1, 0.1, 0.1)]
    parts = [*bodies("a", "b", "c"), contact_group("x", balls, walls, exclude=[("b", "c")])]
    assert list(contacts(*parts)) == ["a_ground", "a_c", "a_ground_2", "a_c_2", "b_ground"]


def test_names_that_are_taken() -> None:
    parts = [*bodies("a", "b", "a_b"), contact_group("x", [sphere("a", 0.1), sphere("b", 0.1)])]
    assert list(contacts(*parts)) == ["a_b_2"]


def test_joints_keep_bodies_from_touching() -> None:
    """Neighbours of a chain, and what is fixed to them; the ground, with what is fixed to it, does not."""
    things = [sphere(x, 0.1) for x in ("a", "b", "c", "d")]
    parts = [
        *bodies("a", "b", "c", "d"), hinge("first", "ground", "a", axis=X),
        hinge("second", "a", "b", axis=X, at=1.0), hinge("third", "b", "c", axis=X, at=1.0),
        fixed("weld", "c", "d", at=1.0), contact_group("all", [*things, plane()]),
    ]  # fmt: skip
    grounded = ["a_ground", "b_ground", "c_ground", "d_ground"]
    assert sorted(contacts(*parts)) == ["a_c", "a_d", *grounded]
    foot = [fixed("foot", "ground", "a"), *parts[:4], *parts[5:]]
    assert sorted(contacts(*foot)) == ["a_b", "a_c", "a_d", *grounded[1:]]


SPHERES = [sphere("a", 0.1), sphere("b", 0.1)]
