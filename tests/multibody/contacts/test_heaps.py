"""Groups of very many free bodies with a capacity: pairs of mixed shapes that come and go, against all
contacts by name; here with few bodies.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, Problem, schemes, status
from nsjax.core.operators import contact_rows, prepared, refreshed
from nsjax.multibody import (
    assemble,
    body,
    box,
    capsule,
    contact,
    contact_group,
    corners,
    cylinder,
    plane,
    sphere,
)
from nsjax.multibody.contacts import all_shapes, groups


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group with a capacity is told by its places, however few pairs it has."""
    monkeypatch.setattr(groups, "LISTED", -1)


FLOOR = plane()
MASS = {"mass": 1.0, "inertia": (0.004, 0.005, 0.006)}


def run(problem: Problem, steps: int = 400, every: int = 100) -> Any:
    return nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=steps, every=every)


@pytest.mark.slow
def test_too_many_for_their_places() -> None:
    problem = absolute(start={"a": (0.0, 0.0, 0.1), "b": (1.0, 0.0, 0.1)}, capacity=1)
    traj = run(problem, 2, 1)
    assert int(traj.status) == status.CANDIDATES_LOST
    with pytest.raises(nsjax.RunError, match=r"raise capacity.*capacity = 2 of 'x' would have held"):
        traj.raise_for_status()


KINDS = ("sphere", "box", "capsule", "cylinder", "plane", "corners")
ALONG, PLACE = np.array([0.6, 0.0, 0.8]), (0.02, 0.01, 0.03)


def shape(kind: str, name: str) -> Any:
    round_ = {"at": PLACE, "axis": ALONG}
    made = {
        "sphere": lambda: sphere(name, 0.1, at=PLACE),
        "box": lambda: box(name, 0.1, 0.07, 0.12, at=PLACE, turned=(0.1, 0.2, 0.3)),
        "capsule": lambda: capsule(name, 0.05, 0.1, **round_),
        "cylinder": lambda: cylinder(name, 0.05, 0.1, **round_),
        "plane": lambda: plane(name, at=(0.0, 0.01, 0.0), normal=ALONG),
        "corners": lambda: corners(name, 0.1, 0.07, 0.12),
    }
    return made[kind]()


@pytest.mark.slow
def test_directions_are_derivatives() -> None:
    """Of all pairs that are known, at random places, in each other and apart."""
    parts: list[Any] = [body(x, **MASS, com=(0.01, 0.02, -0.03)) for x in ("a", "b")]
    known = [x for x in itertools.product(KINDS, KINDS) if x in all_shapes.PAIRS]
    parts += [contact("_".join(x), shape(x[0], "a"), shape(x[1], "b"), friction=0.3) for x in known]
    found = [shape(kind, name) for name in ("a", "b") for kind in ("sphere", "box")]
    group = contact_group("all", found, capacity=2, reach=10.0)
    problem = assemble(*parts, group, gravity=9.81, coordinates="absolute", start={"a": (0.0, 0.0, 1.0)})
    system, t = problem.system, jnp.zeros(())
    p = prepared(system, problem.params)

    @jax.jit
    def both(q: Any) -> Any:
        now = refreshed(system, t, q, p)
        whole = contact_rows(dataclasses.replace(system, contact_set=None), t, q, now).wt
        return contact_rows(system, t, q, now).wt.dense(), whole

    rng = np.random.default_rng(0)
    for _ in range(4):
        q = rng.normal(size=(2, 7))
        q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1)[:, None]
        q[0, :3] *= 0.25 / np.linalg.norm(q[0, :3])
        q[1, :3] = 0.0
        ours, whole = both(jnp.asarray(q.reshape(-1)))
        np.testing.assert_allclose(ours, whole, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("friction", "tolerance"), [(None, 1e-9), (0.3, 1e-9)])
def test_a_mixed_heap_comes_to_rest(friction: float | None, tolerance: float) -> None:
    """Of boxes, balls and capsules between walls: certified in every step, energy is lost alone, none
    leaves, and closed contacts drift into each other by an amount of first order. With friction wedged
    bodies creep, and the tolerance is that which heaps meet (see the limits).
    """
    rng = np.random.default_rng(0)
    names, shapes, start = [f"b{k}" for k in range(6)], [], {}
    for k, x in enumerate(names):
        made = (sphere(x, 0.1), box(x, 0.08, 0.06, 0.07), capsule(x, 0.06, 0.08))
        shapes.append(made[k % 3])
        place = (0.3 * (k % 2) - 0.15, 0.3 * (k // 2 % 2) - 0.15, 0.2 + 0.3 * (k // 4))
        start[x] = ((place, 0.8 * rng.normal(size=3)), np.zeros(6))
    walls = [
        plane(at=-0.35 * np.array(n), normal=n)
        for n in np.array([(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0.0)])
    ]
    group = contact_group("all", [*shapes, FLOOR, *walls], capacity=16, friction=friction)
    problem = assemble(
        *(body(x, **MASS) for x in names), group, gravity=9.81, coordinates="absolute", start=start
    )
    deepest = []
    for finer in (1, 4):
        step = {"dt": 2e-3 / finer, "steps": 400 * finer, "every": 40 * finer}
        traj = nsjax.simulate(*problem, schemes.moreau(contact_tolerance=tolerance), **step)
        traj.raise_for_status()
        assert traj["energy"][-1] < 0.6 * traj["energy"][0]
        places = np.asarray(traj.q).reshape(-1, 6, 7)[:, :, :3]
        assert np.max(np.abs(places[:, :, :2])) < 0.35
        assert np.min(places[:, :, 2]) > 0.0
        deepest.append(-float(np.min(traj.gap_min)))
    assert deepest[1] < 0.5 * deepest[0]  # a quarter; twice that, since heaps of other steps part


CASES: dict[str, tuple[Any, str]] = {
    "capacity": (
        lambda: contact_group("x", [sphere("a", 0.1), FLOOR], capacity=0),
        "contact_group 'x': capacity = 0; give a number of pairs, or None",
    ),
    "shape": (
        lambda: absolute(first=corners("a", 0.1, 0.1, 0.1)),
        "contact_group 'x': a corners does not work with a capacity; give sphere, box.*, or leave",
    ),
    "scheme": (
        lambda: nsjax.simulate(*absolute(), schemes.moreau_theta(), dt=1e-3, steps=1),
        "scheme 'moreau_theta' does not work with contacts between changing bodies",
    ),
    "body": (lambda: absolute(first=sphere("c", 0.1)), "contact_group 'x': unknown body 'c'"),
}


def absolute(*more: Any, first: Any = None, start: Any = None, capacity: int = 5) -> Problem:
    shapes, group = [first or sphere("a", 0.1), sphere("b", 0.1), FLOOR], {"capacity": capacity}
    start = {"a": (0.0, 0.0, 0.2), "b": (1.0, 0.0, 0.2)} if start is None else start
    return assemble(
        body("a", **MASS), body("b", **MASS), *more, contact_group("x", shapes, **group), gravity=9.81,
        coordinates="absolute", start=start,
    )  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.slow] * (x == "scheme")) for x in CASES]
)
def test_sentences(name: str) -> None:
    make, sentence = CASES[name]
    with pytest.raises(InputError, match=sentence):
        make()
