"""Short runs and derivatives over schemes, structures and features, as they were when last kept.

They find what changes, not what is wrong: other tests compare with independent sources. Contact problems
are solved to rounding, so that a program that computes the same in another way passes. Where a change is
wanted, ``python -m tests.goldens --write`` keeps new numbers and prints which cases they belong to.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest

from nsjax import schemes
from tests.goldens import cases
from tests.goldens.structures import KINDS, STRUCTURES

DESIGN = cases.design()
QUICK = {
    ("moreau", "belt"), ("moreau", "four bar"),
    ("moreau_theta", "block"), ("half_explicit", "oscillator"), ("hht", "hoist"),
    ("bathe", "stiff chain"), ("ed_alpha", "oscillator"), ("ggl_decoupled", "roll"),
    ("ggl_unified", "hoist"), ("nsga_decoupled", "stiff chain"), ("nsga_coupled", "oscillator"),
}  # fmt: skip


QUICK_GRADIENTS = {("bathe", "stiff chain")}


def marked(pairs, quick):
    return [pytest.param(*x, marks=[] if x in quick else pytest.mark.slow, id="-".join(x)) for x in pairs]


@pytest.mark.parametrize(("scheme", "structure"), marked(DESIGN, QUICK))
def test_a_run_is_as_it_was(scheme: str, structure: str) -> None:
    name = cases.title(scheme, structure)
    assert cases.changes(name, cases.run(scheme, structure), cases.read()["runs"][name]) == {}


@pytest.mark.parametrize(("scheme", "structure"), marked(cases.GRADIENTS, QUICK_GRADIENTS))
def test_a_derivative_is_as_it_was(scheme: str, structure: str) -> None:
    """Where both directions are computed, they are the same: one transposes the other."""
    name, found = cases.title(scheme, structure), cases.gradient(scheme, structure)
    assert cases.changes(name, found, cases.read()["gradients"][name]) == {}
    assert found["reverse"] == pytest.approx(found.get("forward", found["reverse"]), rel=1e-10)


def test_each_scheme_meets_every_kind_of_structure_and_every_feature() -> None:
    every = frozenset().union(*(x.features for x in STRUCTURES.values()))
    for name in schemes.REGISTRY:
        own = [STRUCTURES[structure] for scheme, structure in DESIGN if scheme == name]
        assert len({x.kind for x in own}) >= (2 if name in cases.TWINS else len(KINDS))
        if name not in cases.TWINS:
            missing = every - frozenset().union(*(x.features for x in own))
            assert missing <= {"rolling moments"}
            assert not (missing and cases.takes(name, "wheel"))
    assert {structure for _, structure in (*DESIGN, *cases.GRADIENTS)} == set(STRUCTURES)


def test_something_happens_in_each_run() -> None:
    """No step fails, and what can strike strikes, in some run of each structure."""
    kept = cases.read()["runs"]
    assert list(kept) == [cases.title(*x) for x in DESIGN]
    assert {x["status"] for x in kept.values()} == {0}
    for structure, made in STRUCTURES.items():
        runs = [kept[cases.title(*x)] for x in DESIGN if x[1] == structure]
        assert all(np.any(x["impulses"]) for x in runs), structure
        if runs and "restitution" in made.features:
            assert any(np.any(x["impacts"]) for x in runs), structure


def test_a_change_is_found() -> None:
    kept = cases.read()["runs"]["moreau, belt"]
    assert cases.changes("moreau, belt", kept, kept) == {}
    found = copy.deepcopy(kept)
    found["q"][2][1] += 3e-12 * np.max(np.abs(kept["q"]))
    found["impacts"][0] += 1
    found["impulses"].append(0.0)
    assert set(cases.changes("moreau, belt", found, kept)) == {"q", "impacts", "impulses"}
    found["q"][2][1] = np.nan
    assert "q" in cases.changes("moreau, belt", found, kept)
