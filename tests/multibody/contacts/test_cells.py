"""The broad phase against all pairs: points in cells, and shapes of groups."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

from nsjax.multibody.contacts import candidates
from nsjax.multibody.contacts.all_shapes import PAIRS
from nsjax.multibody.contacts.candidates import Candidates, pair_counts, size_classes
from nsjax.multibody.contacts.gap_functions import Around, gap_bound

from .test_candidates import drawn


def points(what: str, dimension: int, n: int, draw: np.random.Generator) -> np.ndarray:
    """Points anywhere, crowded in places, on a line, on the faces of cells, or at one place."""
    x = draw.uniform(-1.0, 1.0, (n, dimension))
    if what == "crowded":
        x = np.where(draw.uniform(size=(n, 1)) < 0.3, 0.02 * x + 0.5, 4.0 * x)
    if what == "line":
        x = x[:, :1] * np.ones(dimension) / np.sqrt(dimension)
    if what == "faces":
        x = 0.3 * draw.integers(-3, 4, (n, dimension))
    return 0.0 * x + 7.0 if what == "one place" else x


@pytest.mark.parametrize(
    ("what", "dimension"),
    [("anywhere", 3), ("crowded", 2), ("line", 3), ("faces", 2), ("faces", 3), ("one place", 2)],
)
def test_all_near_points_are_found(what: str, dimension: int) -> None:
    """Each pair once, among points and between two sets; the number of all pairs of cells is exact."""
    draw, n, m, within = np.random.default_rng(5), 150, 60, 0.3
    x, y = points(what, dimension, n, draw), points(what, dimension, m, draw)
    among = jax.jit(candidates.pairs_within, static_argnums=2)(x, within, n * n)
    between = jax.jit(candidates.pairs_between, static_argnums=3)(x, y, within, n * m)
    away = np.linalg.norm(x[:, None] - x, axis=2), np.linalg.norm(x[:, None] - y, axis=2)
    for found, near in ((among, np.triu(away[0] < within, 1)), (between, away[1] < within)):
        here = np.asarray(found.here)
        pairs = np.stack([found.first, found.second], axis=1)[here]
        pairs = np.sort(pairs, axis=1) if found is among else pairs
        told = set(map(tuple, pairs.tolist()))
        assert len(told) == len(pairs) == int(found.count)
        assert set(map(tuple, np.argwhere(near).tolist())) <= told
    if what == "anywhere":
        assert int(among.count) < n * n / 8
        few = jax.jit(candidates.pairs_within, static_argnums=2)(x, within, 50)
        assert int(few.count) == int(among.count) > 50  # said, also without the room for them
        np.testing.assert_array_equal(few.first, among.first[:50])


COUNT = 90
EXTENT = {"dense": 0.8, "sparse": 3.0, "line": 3.0, "one place": 0.0, "unequal": 1.0}
"""Places of the shapes, by what they look like: factor on a cube with edges of 1.2."""


def scene(
    what: str, shapes: tuple[str, ...], dimension: int, draw: np.random.Generator
) -> tuple[list[str], list[Around]]:
    """Kinds and bounding volumes of shapes at random places, then two planes."""
    kinds, volumes = list(draw.choice(shapes, COUNT)), []
    for kind in kinds:
        x, _ = drawn(draw, kind, dimension)
        size = 0.3 if what != "unequal" else draw.choice([0.03, 0.2, 1.5], p=[0.75, 0.2, 0.05])
        centre = EXTENT[what] * (x.centre if what != "line" else x.centre[0] * np.eye(dimension)[0])
        half = None if x.half is None else size * x.half
        volumes.append(
            Around(centre=centre, radius=size * x.radius, axes=x.axes, half=half, thick=size * x.thick)
        )
    down = np.eye(dimension)[:, -1:]
    walls = (Around(centre=-0.2 * s * down[:, 0], radius=0.0, axes=s * down) for s in (1.0, -1.0))
    return [*kinds, "plane", "plane"], [*volumes, *walls]


def stacked(own: list[Around]) -> Around:
    return jax.tree.map(lambda *x: np.stack([np.asarray(y, float) for y in x]), *own)


def meeting(bodies: list[str], split: int | None, banned: Any) -> Iterator[tuple[int, int]]:
    """Pairs of shapes that meet, one by one."""
    n, apart_ = len(bodies), {frozenset(x) for x in banned}
    pairs: Any = itertools.combinations(range(n), 2)
    if split is not None:
        pairs = itertools.product(range(split), range(split, n))
    for i, j in pairs:
        if bodies[i] != bodies[j] and frozenset((bodies[i], bodies[j])) not in apart_:
            yield i, j


CASES = [("dense", ("sphere", "box", "capsule"), 3, 50), ("sparse", ("capsule",), 2, 50)]
CASES += [("line", ("sphere",), 3, 50), ("one place", ("sphere",), 2, None)]
CASES += [("unequal", ("sphere",), 3, None)]


@pytest.mark.slow
@pytest.mark.parametrize(("what", "shapes", "dimension", "split"), CASES)
def test_near_shapes(
    what: str, shapes: tuple[str, ...], dimension: int, split: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of mixed kinds and sizes, several on a body, some excluded, in one group or two: those whose gap is
    below the reach, in ascending order, or else it is said that some are lost.
    """
    monkeypatch.setattr(candidates, "DIRECT", 0)
    draw, reach, searched = np.random.default_rng(11), 0.05, 0
    kinds, volumes = scene(what, shapes, dimension, draw)
    bodies = [*(f"b{k // 2 if k % 5 == 1 else k}" for k in range(COUNT)), "ground", "ground"]
    banned = (("b3", "b8"), ("b10", "ground"), ("b4", "b4"), ("b12", "b20"), ("b20", "b22"))
    place = {x: k for k, x in enumerate(["ground", *dict.fromkeys(bodies[:-2])])}
    pairs: dict[Any, list[tuple[int, int]]] = {}
    for i, j in meeting(bodies, split, banned):
        i, j = (i, j) if (kinds[i], kinds[j]) in PAIRS else (j, i)
        pairs.setdefault((kinds[i], kinds[j]), []).append((i, j))
    members = tuple(zip(kinds, bodies, strict=True))
    assert pair_counts(members, split, banned) == {x: len(own) for x, own in pairs.items()}
    for both, own in pairs.items():
        rows = [[k for k in range(COUNT + 2) if kinds[k] == x] for x in both]
        ends = [stacked([volumes[k] for k in x]) for x in zip(*own, strict=True)]
        gap = jax.jit(jax.vmap(functools.partial(gap_bound, both)))(*ends)
        away = np.linalg.norm(ends[0].centre - ends[1].centre, axis=1) - ends[0].radius - ends[1].radius
        may = np.asarray(gap) < reach
        # bounds of cylinders may be below those of the spheres around them
        must = may & ((away < reach) | (both[1] == "plane"))
        for capacity in (max(1, int(np.sum(must)) // 2), int(np.sum(may)) + 3):
            source = Candidates(
                group="all", kinds=both, capacity=min(capacity, len(own)), dimension=dimension,
                places=tuple(tuple(place[bodies[k]] for k in x) for x in rows),
                classes=tuple(size_classes(np.array([volumes[k].radius for k in x])) for x in rows),
                sides=None if split is None else tuple(tuple(k >= split for k in x) for x in rows),
                banned=tuple((place[a], place[b]) for a, b in banned),
            )  # fmt: skip
            slots = jax.jit(source.search)(tuple(stacked([volumes[k] for k in x]) for x in rows), reach)
            used = np.asarray(slots.used)
            assert np.all(np.diff(np.asarray(slots.identity)[used]) > 0)
            found = np.stack([slots.first, slots.second], axis=1)[used].tolist()
            told = {(rows[0][a], rows[1][b]) for a, b in found}
            assert told <= {x for x, near in zip(own, may, strict=True) if near}
            if bool(slots.lost):
                assert capacity < len(own)
                continue
            searched += not source.direct
            assert {x for x, near in zip(own, must, strict=True) if near} <= told
    assert searched or what in ("dense", "one place")


def test_classes_of_size() -> None:
    radii = np.array([0.1, 1.0, 0.09, 0.55, 0.03, 0.5])
    assert size_classes(radii) == ((1, 3, 5), (0, 2), (4,))
    assert size_classes(np.zeros(3)) == ((0, 1, 2),)
