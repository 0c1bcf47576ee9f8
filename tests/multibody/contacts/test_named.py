"""Contacts by name that are alike are evaluated at once, with the results of each by itself."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import Problem, System
from nsjax.core.operators import all_rows, prepared, refreshed
from nsjax.multibody import (
    assemble,
    body,
    box,
    capsule,
    contact,
    corners,
    cylinder,
    hinge,
    hole,
    plane,
    points,
    sphere,
    walls,
)
from nsjax.multibody.assemble import RowsWarning
from nsjax.multibody.presence import named

FEW = [("sphere", "plane"), ("capsule", "plane")]
MORE = [("sphere", "sphere"), ("points", "plane"), ("sphere", "hole")]
HELD = [("capsule", "box")]
FLAT, SOLID = [("corners", "walls"), ("sphere", "walls")], [("capsule", "capsule"), ("cylinder", "plane")]


def drawn(seed: int, dimension: int, coordinates: str, kinds: list[tuple[str, str]]) -> Problem:
    """A tree of five bodies with contacts of each kind in turn, with the ground and with each other."""
    rng = np.random.default_rng(seed)

    def vector(size: float = 0.3) -> Any:
        return size * rng.normal(size=dimension)

    def unit() -> Any:
        x = rng.normal(size=dimension)
        return x / np.linalg.norm(x)

    shapes = {
        "sphere": lambda x: sphere(x, rng.uniform(0.1, 0.2), at=vector()),
        "capsule": lambda x: capsule(x, 0.1, 0.2, at=vector(), axis=unit()),
        "box": lambda x: box(x, *rng.uniform(0.1, 0.3, dimension), at=vector()),
        "plane": lambda x: plane(x, at=vector(), normal=unit()),
        "corners": lambda x: corners(x, *rng.uniform(0.1, 0.3, dimension)),
        "points": lambda x: points(x, rng.normal(size=(2, dimension))),
        "walls": lambda x: walls(-1.0, rng.uniform(1.0, 2.0), x),
        "cylinder": lambda x: cylinder(x, rng.uniform(0.1, 0.2), 0.2, axis=unit()),
        "hole": lambda x: hole(x, 2.0, axis=unit(), at=vector()),
    }
    inertia: Any = 0.2 if dimension == 2 else (0.2, 0.3, 0.4)
    parts: list[Any] = [body(f"b{k}", mass=1.0, inertia=inertia) for k in range(5)]
    for k in range(1, 5):
        axis = {} if dimension == 2 else {"axis": unit()}
        above = f"b{int(rng.integers(k))}"
        parts.append(hinge(f"h{k}", above, f"b{k}", at=vector(), on=vector(), **axis))
    for k in range(8 * len(kinds)):
        (one, other), (a, b) = kinds[k % len(kinds)], rng.permutation(5)[:2]
        ground = k // len(kinds) % 2
        law = {"friction": rng.uniform(), "restitution": rng.uniform()}
        first, second = shapes[one](f"b{a}"), shapes[other]("ground" if ground else f"b{b}")
        parts.append(contact(f"c{k}", first, second, **law))
    gravity = -9.81 * np.eye(dimension)[-1]
    return assemble(*parts, gravity=gravity, coordinates=coordinates)


def with_limit(problem: Problem, at_once: int | None) -> System:
    """The system with those together of which there are so many."""
    mechanism = problem.system.force.__self__
    own = mechanism.topology.parts
    parts = tuple(dataclasses.replace(x, numbers=problem.params.get(x.name)) for x in own)
    found = named(parts, mechanism.dimension, at_once)
    presence = dataclasses.replace(mechanism.presence, named=found)
    return dataclasses.replace(mechanism, presence=presence).system()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "dimension", "coordinates", "kinds"),
    [
        (1, 3, "joint", FEW), (2, 2, "joint", [("sphere", "hole"), FLAT[0]]),
        (3, 3, "absolute", HELD + MORE), (4, 3, "joint", SOLID), (5, 2, "absolute", FLAT),
    ],
)  # fmt: skip
def test_at_once_as_one_by_one(
    seed: int, dimension: int, coordinates: str, kinds: list[tuple[str, str]]
) -> None:
    """Gaps, slips, laws, rows, how gaps change, and where contacts are drawn; names and order stay."""
    problem = drawn(seed, dimension, coordinates, kinds)
    system, p, t = problem.system, problem.params, jnp.zeros(())
    single, many = with_limit(problem, None), system
    assert not single.force.__self__.named.many
    batches = many.force.__self__.named.many
    assert {x.part.option("shapes") for x in batches} == set(kinds)
    assert {all(b == "ground" for _, b in x.bodies) for x in batches} == {True, False}
    assert many.force.__self__.named.order is not None
    assert single.labels == many.labels

    @jax.jit
    def seen(q: Any, v: Any, p: Any) -> Any:
        def of(s: System) -> Any:
            ready = refreshed(s, t, q, prepared(s, p))
            gap = lambda xi: s.gap(t, s.retract(q, xi), ready)  # noqa: E731
            value, rate = jax.jvp(gap, (jnp.zeros(s.nv),), (v,))
            made = value, rate, s.slip(t, q, v, ready), s.law(ready), all_rows(s, t, q, ready).wt
            drawn = None if kinds is FEW else s.shapes(t, q, ready).contacts
            pulled = jax.grad(lambda xi: jnp.sum(jnp.sin(gap(xi))))(jnp.zeros(s.nv))
            return *made, drawn, pulled

        return of(single), of(many)

    rng = np.random.default_rng(seed)
    for _ in range(3):
        q, v = system.retract(problem.state.q, rng.normal(size=system.nv)), rng.normal(size=system.nv)
        wanted, found = (jax.tree.leaves(x) for x in seen(q, v, p))
        for one, other in zip(wanted, found, strict=True):
            np.testing.assert_allclose(other, one, rtol=0.0, atol=1e-12)


def test_many_contacts_are_told() -> None:
    """Before anything is compiled; not of islands, which are solved one by one, nor up to 60."""

    def boxes(n: int, coordinates: str = "joint") -> Problem:
        parts: list[Any] = [body(f"b{k}", mass=1.0, inertia=(1.0, 1.0, 1.0)) for k in range(n)]
        parts += [contact(f"c{k}", box(f"b{k}", 0.1, 0.1, 0.1), plane()) for k in range(n)]
        return assemble(*parts, gravity=9.81, coordinates=coordinates)

    with pytest.warns(
        RowsWarning, match="64 contacts between bodies, beyond 60: every step solves for all"
    ):
        boxes(8)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RowsWarning)
        boxes(7)
        boxes(8, "absolute")


def size(f: Any, *x: Any) -> tuple[int, str]:
    text = jax.jit(f).lower(*x).as_text()
    return text.count("= stablehlo"), text
