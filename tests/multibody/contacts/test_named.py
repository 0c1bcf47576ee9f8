"""Contacts by name that are alike are evaluated at once, with the results of each by itself."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import Problem, System, schemes
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
    presence,
    sphere,
    walls,
)
from nsjax.multibody.assemble import RowsWarning
from nsjax.multibody.contacts.pieces import AT_ONCE, named

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
    for k in range(2 * AT_ONCE * len(kinds)):
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
    made: System = dataclasses.replace(mechanism, presence=presence).system()
    return made


@pytest.mark.parametrize(
    ("seed", "dimension", "coordinates", "kinds"),
    [
        pytest.param(1, 3, "joint", FEW, id="space"),
        pytest.param(2, 2, "joint", [("sphere", "hole"), FLAT[0]], id="plane"),
        *(
            pytest.param(k, d, c, kinds, marks=pytest.mark.slow)
            for d in (2, 3)
            for c in ("joint", "absolute")
            for k, kinds in enumerate((HELD, MORE, FLAT if d == 2 else SOLID), 3)
        ),
    ],
)
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


def walker(n: int) -> Problem:
    """So many legs with a ball each on a body."""
    parts: list[Any] = [body("trunk", mass=1.0, inertia=(0.1, 0.2, 0.3))]
    for k in range(n):
        at = (np.cos(k), np.sin(k), 0.0)
        parts += [body(f"leg{k}", mass=0.2, inertia=(0.01, 0.01, 0.01), com=(0.0, 0.0, -0.1))]
        parts += [hinge(f"hip{k}", "trunk", f"leg{k}", at=at, axis=(0.0, 1.0, 0.0))]
        parts += [contact(f"foot{k}", sphere(f"leg{k}", 0.05, at=(0.0, 0.0, -0.3)), plane(), friction=0.5)]
    start = {"trunk": ((0.0, 0.0, 0.36), ((0.0, 0.0, 0.0), (0.0, 0.0, -1.0)))}
    return assemble(*parts, gravity=9.81, start=start)


def test_many_contacts_are_told() -> None:
    """Before anything is compiled; not of islands, which are solved one by one, nor up to 60."""

    def boxes(n: int, coordinates: str = "joint") -> Problem:
        parts: list[Any] = [body(f"b{k}", mass=1.0, inertia=(1.0, 1.0, 1.0)) for k in range(n)]
        parts += [contact(f"c{k}", box(f"b{k}", 0.1, 0.1, 0.1), plane()) for k in range(n)]
        return assemble(*parts, gravity=9.81, coordinates=coordinates)

    with pytest.warns(RowsWarning, match="64 contacts between bodies, beyond 60: every step .* some 13 ms"):
        boxes(8)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RowsWarning)
        boxes(7)
        boxes(8, "absolute")


def size(f: Any, *x: Any) -> tuple[int, str]:
    text = jax.jit(f).lower(*x).as_text()
    return text.count("= stablehlo"), text


def test_programs_do_not_grow_with_the_pairs() -> None:
    """Of those alike; up to a size nothing is gathered, so that derivatives do not scatter."""
    counts = {}
    for n in (AT_ONCE, 2 * AT_ONCE, 8 * AT_ONCE):
        system, p, state = walker(n)
        ready, t = jax.jit(lambda p, s=system: prepared(s, p))(p), jnp.zeros(())

        def seen(q: Any, v: Any, p: Any, s: System = system, t: Any = t) -> Any:
            return s.gap(t, q, p), s.slip(t, q, v, p), all_rows(s, t, q, p).wt

        def pulled(q: Any, v: Any, p: Any, seen: Any = seen) -> Any:
            return jax.grad(lambda q: sum(jnp.sum(x) for x in seen(q, v, p)))(q)

        counts[n], _ = size(seen, state.q, state.v, ready)
        if n <= 2 * AT_ONCE:
            _, text = size(pulled, state.q, state.v, ready)
            assert "scatter" not in text
            assert "gather" not in text
    few, some, many = counts.values()
    assert some == many, counts
    assert few <= some, counts


def swinging(at_once: int | None, monkeypatch: Any) -> Problem:
    """A chain of four bodies with spheres above a floor."""
    monkeypatch.setattr(presence, "named", lambda parts, dimension: named(parts, dimension, at_once))
    parts: list[Any] = []
    for k in range(4):
        where = {} if k == 0 else {"at": 0.3}
        parts += [
            body(f"b{k}", mass=1.0 + 0.1 * k, inertia=0.01, com=0.3),
            hinge(f"h{k}", f"b{k - 1}" if k else "ground", f"b{k}", **where),
            contact(
                f"c{k}", sphere(f"b{k}", 0.05, at=0.3), plane(at=(0.0, -0.5)), restitution=0.5, friction=0.3
            ),
        ]
    return assemble(*parts, gravity=(0.0, -9.81), start={f"b{k}": (0.2 - 0.3 * k, 0.3) for k in range(4)})


@pytest.mark.slow
def test_a_run_and_its_derivatives_are_those_of_single_contacts(monkeypatch: Any) -> None:
    """Motion, impacts, and derivatives forward and reverse, through three impacts."""
    found: list[Any] = []
    for at_once in (AT_ONCE, None):
        problem = swinging(at_once, monkeypatch)
        assert bool(problem.system.parts.named.many) == (at_once is not None)
        run = functools.partial(nsjax.simulate, scheme=schemes.moreau(), dt=2e-3, steps=200, every=200)

        def end(p: Any, problem: Problem = problem, run: Any = run) -> Any:
            return run(problem.system, p, problem.state).q[-1]

        rng = np.random.default_rng(0)
        change = jax.tree.map(lambda x, rng=rng: jnp.asarray(rng.normal(size=np.shape(x))), problem.params)
        weights = jnp.asarray(rng.normal(size=problem.system.nq))
        along = jax.jit(lambda p, end=end, d=change: jax.jvp(end, (p,), (d,))[1])(problem.params)
        back = jax.jit(jax.grad(lambda p, end=end, w=weights: jnp.sum(w * end(p))))(problem.params)
        pulled = sum(jnp.sum(x * y) for x, y in zip(*map(jax.tree.leaves, (back, change)), strict=True))
        np.testing.assert_allclose(pulled, jnp.sum(weights * along), rtol=1e-10)
        traj = run(*problem, events=20)
        assert traj.status == 0
        assert traj.events.count == 3
        found.append((traj.q, traj.events.time[:3], traj.events.contact[:3], along))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)
