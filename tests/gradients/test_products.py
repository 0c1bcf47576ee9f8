"""Forward and reverse products agree, for every scheme, with all that a run may have: dry friction, limits,
contacts, a constraint, a motor and drags; derivatives by everything that may be traced.
"""

from __future__ import annotations

import pytest

from nsjax import schemes
from tests.gradients.dry import bounces_at_start, carriage, drawn
from tests.gradients.products import Products, products

QUICK = ("moreau",)
"""One scheme, for time: programs of both derivatives compile for ten seconds and more."""

DT, STEPS = 0.01, 60

AGREE = 1e-10
"""Of the sum of the magnitudes of both."""

SPLIT = {("nsga_coupled", 1): 1e-8, ("nsga_coupled", 2): 1e-8}
"""Of two programs of one motion, where single forces are not unique. Late rounds of the coupled scheme take
them from the contact solver, whose weight of 1e-9 leaves rounding over it, 1e-7, in how rows that depend on
each other share a force. Positions follow through the creep correction, by ``dt/2`` of it over a mass of
about one: 5e-10, and derivatives by some times that. Of sixty motions with one tangent it is one (seed 13,
6e-10); with a weight of 1e-7 its difference is 2e-13.
"""


def audited(scheme: str, nt: int, seeds: range) -> list[Products]:
    """Runs of a scheme, each looked at."""
    made, system, found = schemes.REGISTRY[scheme].factory(), carriage(nt), []
    for seed in seeds:
        params, state = drawn(seed)
        x = products(system, made, params, state, DT, STEPS, seed)
        assert x.finite, (scheme, nt, seed, x)
        assert x.off <= AGREE, (scheme, nt, seed, x)
        agree = SPLIT.get((scheme, nt), AGREE)
        assert x.twice <= agree or bounces_at_start(params, state), (scheme, nt, seed, x)
        assert x.status == 0, (scheme, nt, seed, x)
        found.append(x)
    return found


@pytest.mark.parametrize(
    "scheme", [s if s in QUICK else pytest.param(s, marks=pytest.mark.slow) for s in schemes.REGISTRY]
)
def test_dry_friction_beside_contacts(scheme: str) -> None:
    seeds = range(24 if scheme in QUICK else 60)  # the slow `test_other_tangents` draws sixty of each
    assert sum(x.impacts for x in audited(scheme, 1, seeds)) >= len(seeds)


@pytest.mark.slow
@pytest.mark.parametrize("nt", [0, 2])
@pytest.mark.parametrize("scheme", schemes.REGISTRY)
def test_other_tangents(scheme: str, nt: int) -> None:
    """Contacts without friction get empty tangents for the bounded rows; with two, bounded rows have one
    that is empty.
    """
    assert sum(x.impacts for x in audited(scheme, nt, range(60))) >= 30
