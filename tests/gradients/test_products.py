"""Forward and reverse products agree, for every scheme, with all that a run may have: dry friction, limits,
contacts, a constraint, a motor and brakes; derivatives by everything that may be traced.
"""

from __future__ import annotations

import pytest

from nsjax import schemes
from tests import design
from tests.gradients.dry import bounces_at_start, carriage, drawn
from tests.gradients.products import Products, products

QUICK = ("moreau",)
"""One scheme, for time: programs of both derivatives compile for ten seconds and more."""

DT, STEPS = 0.01, 60

AGREE = 1e-10
"""Of the sum of the magnitudes of both."""


def audited(scheme: str, nt: int, seeds: range) -> list[Products]:
    """Runs of a scheme, each looked at."""
    made, system, found = schemes.REGISTRY[scheme].factory(), carriage(nt), []
    for seed in seeds:
        params, state = drawn(seed)
        x = products(system, made, params, state, DT, STEPS, seed)
        assert x.finite, (scheme, nt, seed, x)
        assert x.off <= AGREE, (scheme, nt, seed, x)
        assert x.twice <= AGREE or bounces_at_start(params, state), (scheme, nt, seed, x)
        assert x.status == 0, (scheme, nt, seed, x)
        found.append(x)
    return found


@design.each_family("scheme")
def test_dry_friction_beside_contacts(scheme: str) -> None:
    seeds = range(24 if scheme in QUICK else 60)  # the slow `test_other_tangents` draws sixty of each
    assert sum(x.impacts for x in audited(scheme, 1, seeds)) >= len(seeds)


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "nt"), design.in_turn(design.drawn("other tangents"), (0, 2)))
def test_other_tangents(scheme: str, nt: int) -> None:
    """Contacts without friction get empty tangents for the bounded rows; with two, bounded rows have one
    that is empty.
    """
    assert sum(x.impacts for x in audited(scheme, nt, range(60))) >= 30
