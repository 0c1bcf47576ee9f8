"""The stage solver on equations from whose start Newton's method diverges."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from nsjax.contact.equations import no_tangent
from nsjax.contact.stage import StageSettings, StageStart, solve_stage
from nsjax.core.row_groups import RowGroups
from nsjax.linalg import Dense


@dataclasses.dataclass(frozen=True)
class Bending:
    """``atan(z - data) = 0``: updates grow where ``|z - data| > 1.392``."""

    structure = Dense()
    rows = RowGroups(0)

    def residual(self, data, z):
        return jnp.arctan(z - data)

    def forces(self, data, z, impulses):
        return jnp.zeros_like(z)


def solved(start: float, again: float | None, kept: bool = True):
    """Of the root 5, and its derivative along the data; ``kept``: as where tangents are."""
    other = None if again is None else jnp.asarray([again])
    settings = StageSettings(tolerance=1e-12, contact_tolerance=1e-11, scale=jnp.ones(()))

    def root(data):
        carried = no_tangent(Bending(), data, 1) if kept else None
        first = StageStart(z=jnp.asarray([start]), carried=carried, again=other)
        found = solve_stage(Bending(), data, jnp.zeros(0, bool), settings, first)
        return found.z, found

    return jax.jvp(root, (jnp.asarray([5.0]),), (jnp.ones(1),))


@pytest.mark.parametrize(
    ("start", "again", "kept", "good"),
    [
        (6.0, None, True, True),
        (7.0, None, False, False),
        (7.0, 4.0, True, True),
        pytest.param(6.0, None, False, True, marks=pytest.mark.slow),
    ],
)
def test_another_start_where_updates_grow(
    start: float, again: float | None, kept: bool, good: bool
) -> None:
    (z, found), (change, _) = solved(start, again, kept)
    assert (abs(float(z[0]) - 5.0) < 1e-12) == good
    assert bool(found.estimate <= 1e-12) == good
    if good:
        assert float(change[0]) == pytest.approx(1.0, abs=1e-12)


def test_a_start_that_converges_is_kept() -> None:
    """To the bit and with as many passes."""
    (z, plain), _ = solved(6.0, None)
    (x, other), _ = solved(6.0, -4.0)
    assert float(z[0]) == float(x[0])
    assert int(plain.passes) == int(other.passes)
