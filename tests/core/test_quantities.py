"""The table of row quantities: what it says of shapes and folds is what a run does."""

from __future__ import annotations

import numpy as np

import nsjax
from nsjax import models, schemes
from nsjax.core.scheme import QUANTITIES, ROWS, Scheme, row_numbers
from nsjax.trajectory import Trajectory

FOLD = {
    "end": lambda x: x[-1], "sum": lambda x: x.sum(axis=0), "min": lambda x: x.min(axis=0),
    "max": lambda x: x.max(axis=0), "any": lambda x: np.bitwise_or.reduce(x, axis=0),
    "state": lambda x: x[-1],
}  # fmt: skip


def crank(every: int, scheme: Scheme | None = None) -> Trajectory:
    scheme = scheme or schemes.moreau()
    return nsjax.simulate(*models.slider_crank(), scheme, dt=1e-4, steps=600, every=every, notes=True)


def test_rows_are_folds_of_steps() -> None:
    """Sums to the rounding of their order; all else bit for bit."""
    fine, coarse = crank(1), crank(20)
    assert np.any(coarse.impacts)
    assert np.any(np.isfinite(coarse.margin))
    for name, kind in QUANTITIES.items():
        steps, rows = np.asarray(getattr(fine, name)), np.asarray(getattr(coarse, name))
        folded = np.stack([FOLD[kind.fold](steps[k - 19 : k + 1]) for k in range(20, 601, 20)])
        np.testing.assert_allclose(rows[1:], folded, rtol=1e-13 * (kind.fold == "sum"), err_msg=name)


def test_shapes_and_types_are_those_of_the_table() -> None:
    traj = crank(20)
    for name, kind in QUANTITIES.items():
        rows = np.asarray(getattr(traj, name))
        assert rows.shape[1:] == kind.shape(traj.system), name
        assert rows.dtype == np.dtype(kind.kind), name
        assert traj.unit(name) == kind.unit
    saved = [traj.t, traj.q, traj.v, *(getattr(traj, name) for name in ROWS)]
    assert row_numbers(traj.system) == sum(np.asarray(x)[0].size for x in saved)
