"""Functions that users give to parts are called with a sentence for what goes wrong."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.multibody import (
    assemble,
    body,
    couplings,
    force,
    hinge,
    joints,
    loads,
)
from nsjax.multibody.joints.joint_kind import JointKind, joint
from nsjax.multibody.parts import registered

BOB = body("bob", mass=1.3, inertia=0.2)
PIN = hinge("pin", "ground", "bob", at=(0.0, 1.0))
TOP = body("bob", mass=1.3, inertia=(0.2, 0.2, 0.2))


def starts(*parts: Any) -> None:
    nsjax.simulate(*assemble(*parts), schemes.moreau(), dt=1e-3, steps=1)


def pushed(law: Any) -> None:
    starts(BOB, PIN, force("f", "bob", law=law))


def two(*given: Any) -> Any:
    return jnp.ones(2)


def test_lists_of_numbers_are_arrays() -> None:
    """A law may return a tuple: the same motion as with an array."""
    ends = []
    for law in (lambda t, s, own: (1.0, t), lambda t, s, own: jnp.stack([1.0, t])):
        problem = assemble(BOB, force("f", "bob", law=law))
        ends.append(nsjax.simulate(*problem, schemes.moreau(), dt=1e-2, steps=3).v[-1])
    np.testing.assert_array_equal(*ends)


@pytest.mark.parametrize(
    ("residuals", "words"),
    [
        (lambda scene, part, numbers: 1.0, "returns 1.0; return a list of 1, one for each row"),
        (lambda scene, part, numbers: [], "returns a list of 0; return a list of 1, one for each row"),
        (lambda scene, part: [0.0], "it takes .scene, part., and is called as .scene, part, numbers."),
    ],
)
def test_rows_of_a_joint_of_ones_own_are_checked(monkeypatch, residuals, words) -> None:
    rail = JointKind(name="rail", rows={2: ("across",)}, residuals=residuals)
    monkeypatch.setitem(joints.KINDS, "rail", rail)
    bob = body("bob", mass=1.0, inertia=0.1)
    with pytest.raises(nsjax.InputError, match=f"residuals of rail 'guide'.*{words}"):
        assemble(bob, joint("rail", "guide", "ground", "bob", None, False))


@pytest.mark.parametrize("table", [joints.KINDS, loads.KINDS, couplings.KINDS])
def test_a_kind_has_its_own_name_in_the_table(monkeypatch, table) -> None:
    """Parts are of the kind under which they are found, and other tables go by the name of the kind."""
    first = next(iter(table.values()))
    monkeypatch.setitem(table, "rail", first)
    with pytest.raises(
        nsjax.InputError,
        match=rf"KINDS\['rail'\] is the kind '{first.name}'; put it into the table under its own name",
    ):
        registered(table, "rail")


def test_a_joint_under_another_name_is_refused(monkeypatch) -> None:
    rail = JointKind(name="rails", rows={2: ("across",)}, residuals=lambda s, p, n: [0.0])
    monkeypatch.setitem(joints.KINDS, "rail", rail)
    with pytest.raises(nsjax.InputError, match=r"KINDS\['rail'\] is the kind 'rails'"):
        assemble(body("bob", mass=1.0), joint("rail", "guide", "ground", "bob", None, False))


def test_sizes_of_a_joint_of_ones_own_are_its_displacements_and_angles() -> None:
    with pytest.raises(
        nsjax.InputError,
        match=r"kind of joint 'rail': sizes = \{2: \(2, 2\)\}, with slides = 1 and turns = \(\); give the "
        "number of displacements and angles, 1",
    ):
        JointKind(name="rail", rows={}, residuals=lambda s, p, n: [], sizes={2: (2, 2)}, slides=1)
