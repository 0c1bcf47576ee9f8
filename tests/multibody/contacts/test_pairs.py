"""The guide's table of pairs says what `contact` takes, and how many contacts there are."""

from __future__ import annotations

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax.core import InputError
from nsjax.core.operators import contact_rows, prepared
from nsjax.multibody import (
    assemble,
    beam,
    body,
    box,
    capsule,
    circular,
    contact,
    contact_group,
    corners,
    cylinder,
    distance_field,
    heightfield,
    hole,
    hull,
    plane,
    point,
    points,
    profile,
    sphere,
    tube,
    walls,
)
from nsjax.multibody.contacts.all_shapes import PAIRS
from nsjax.multibody.contacts.closest_points import ShapeContacts
from nsjax.multibody.contacts.shape import PairKind, solid
from tests.design import slow_but

GUIDE = pathlib.Path(nsjax.__file__).parent / "documentation" / "guide" / "contact_pairs.md"
ROWS = [line.strip("| ").split(" | ") for line in GUIDE.read_text().splitlines() if line.startswith("| ")]
SECOND, TABLE = ROWS[0][1:], {row[0]: row[1:] for row in ROWS[1:]}
ROUND = [(np.cos(a), np.sin(a)) for a in 2.0 * np.pi * np.arange(8) / 8]
TETRAHEDRON = [(0.0, 0.0, 0.0), (0.2, 0.0, 0.0), (0.0, 0.2, 0.0), (0.0, 0.0, 0.2)]
NUMBERS = {
    3: {"k": 3, "c": 8, "b": 8, "n": 4, "2 k": 6, "v": 4, "m": 4},
    2: {"k": 3, "c": 4, "b": 2, "2 k": 6},
}  # fmt: skip


def distance(x: np.ndarray) -> np.ndarray:
    """Signed distances of points from a ball."""
    return np.linalg.norm(x, axis=1) - 0.5


def shape(kind: str, name: str, dimension: int) -> Any:
    """Of a kind on a body."""
    half = (0.1,) * dimension
    made = {
        "sphere": lambda: sphere(name, 0.1), "points": lambda: points(name, 0.1 * np.ones((3, dimension))),
        "corners": lambda: corners(name, *half), "box": lambda: box(name, *half),
        "capsule": lambda: capsule(name, 0.1, 0.2), "cylinder": lambda: cylinder(name, 0.1, 0.2),
        "hole": lambda: hole(name, 3.0, axis=(1.0, 0.0, 0.0)[:dimension]), "plane": lambda: plane(name),
        "walls": lambda: walls(-1.0, 1.0, name), "profile": lambda: profile(name, ROUND),
        "tube": lambda: tube(f"{name}_beam", 0.1), "hull": lambda: hull(name, TETRAHEDRON),
        "heightfield": lambda: heightfield(name, np.zeros((3, 4)), 1.0, 1.0),
        "distance_field": lambda: distance_field(name, distance, region=np.outer((-10, 10), half)),
    }  # fmt: skip
    return made[kind]()


def parts(dimension: int) -> list[Any]:
    inertia: Any = 1.0 if dimension == 2 else (1.0, 1.0, 1.0)
    found = [body(x, mass=1.0, inertia=inertia) for x in ("a", "b")]
    if dimension == 3:
        section = circular(0.1, E=1e6, rho=1e3)
        found += [
            beam(f"{x}_beam", (y, 0, 0), (y, 0, 2.0), elements=3, section=section)
            for x, y in (("a", 0.0), ("b", 5.0))
        ]
    return found


@pytest.mark.parametrize(
    "first", slow_but(TABLE, *(TABLE.keys() - {"capsule", "cylinder", "sphere", "tube"}))
)
def test_the_table_of_pairs(first: str) -> None:
    assert len(TABLE[first]) == len(SECOND)
    for second, number in zip(SECOND, TABLE[first], strict=True):
        flat = {first, second} & {"walls", "profile"}
        solid = {first, second} & {"cylinder", "tube", "hull", "heightfield"}
        for dimension in () if flat and solid and number != "-" else (2, 3):
            if number != "-" and ((flat and dimension == 3) or (solid and dimension == 2)):
                continue
            one, other = shape(first, "a", dimension), shape(second, "b", dimension)
            if number == "-":
                with pytest.raises(
                    InputError, match=r"no pair of .* and .*, in this order; (exchange them|.* meets )"
                ):
                    contact("c", one, other)
                continue
            gravity = np.zeros(dimension)
            system = assemble(*parts(dimension), contact("c", one, other), gravity=gravity).system
            wanted = NUMBERS[dimension].get(number)
            assert system.nc == (int(number) if wanted is None else wanted), (first, second)


def points_on_box(scene: Any, part: Any, numbers: Any, near: Any) -> ShapeContacts:
    """Corners of a mesh, for instance, against the faces of a box."""
    body, other = part.bodies
    places = jnp.stack([scene.position(body, x) for x in numbers.first.at], axis=1)
    distance, unit = jax.vmap(solid(scene, other, "box", numbers.second).at, 1, (0, 1))(places)
    return ShapeContacts(distance, places, places - distance * unit, unit)


@pytest.mark.slow
def test_a_pair_of_known_shapes_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points against a box, which nothing else in the package knows: as single points against it."""
    with pytest.raises(InputError, match="no pair of points and box, in this order; points meets plane"):
        contact("c", shape("points", "a", 3), shape("box", "b", 3))
    new = PairKind("points", "box", points_on_box, lambda part, numbers, dimension: len(numbers.first.at))
    monkeypatch.setitem(PAIRS, new.kinds, new)
    rng = np.random.default_rng(3)
    at, half = 0.3 * rng.normal(size=(3, 3)), (0.2, 0.3, 0.1)
    law = {"friction": 0.3, "restitution": 0.5}
    together = [contact("c", points("a", at), box("b", *half), **law)]
    single = [contact(f"c{k}", point("a", x), box("b", *half), **law) for k, x in enumerate(at)]
    bodies = [body(x, mass=1.0, inertia=(0.2, 0.3, 0.4)) for x in ("a", "b")]
    found, wanted = (assemble(*bodies, *x, gravity=9.81) for x in (together, single))
    assert found.system.labels.contacts == ("c.0", "c.1", "c.2")
    group = contact_group("all", [points("a", at), box("b", *half)])
    assert assemble(*bodies, group, gravity=9.81).system.nc == 3

    @jax.jit
    def seen(q: Any, v: Any) -> Any:
        def of(problem: Any) -> Any:
            system, p = problem.system, prepared(problem.system, problem.params)
            t = jnp.zeros(())
            return system.gap(t, q, p), system.slip(t, q, v, p), contact_rows(system, t, q, p).wt

        return of(found), of(wanted)

    turned = found.system.retract(found.state.q, rng.normal(size=12))
    for one, other in zip(*seen(turned, rng.normal(size=12)), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)
