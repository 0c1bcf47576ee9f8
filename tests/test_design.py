"""Designs of tests cover what they promise."""

from __future__ import annotations

import itertools

from nsjax import schemes
from tests.design import FAMILIES, drawn


def test_every_registered_scheme_belongs_to_one_family() -> None:
    assert sorted(itertools.chain(*FAMILIES)) == sorted(schemes.REGISTRY)


def test_draws_in_turn_meet_every_scheme() -> None:
    assert {x for shift in range(6) for x in drawn("a test", shift)} == set(schemes.REGISTRY)
