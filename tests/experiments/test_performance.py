"""The programs that the timings compare compute the same motion. Timings are never tests."""

from __future__ import annotations

import builtins
import sys
from typing import Any

import numpy as np
import pytest

from experiments.performance import side_by_side, steps

STEPS, EVERY = 3000, 100
# Rounding differences grow along the impacts of this stretch by a factor of about a thousand.
AGREEMENT = 1e-8


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    traj = steps.simulate(STEPS, EVERY)
    traj.raise_for_status()
    assert np.sum(np.asarray(traj.impacts)) > 4
    return np.concatenate([np.asarray(traj.q), np.asarray(traj.v)], axis=1)


def check(found: np.ndarray, rows: np.ndarray) -> None:
    assert found.shape == rows.shape
    assert np.max(np.abs(found - rows) / np.maximum(1.0, np.abs(rows))) < AGREEMENT


@pytest.mark.slow
def test_numpy_loop_agrees(rows: np.ndarray) -> None:
    check(steps.run_numpy(STEPS, EVERY), rows)


def test_numba_loop_agrees(rows: np.ndarray) -> None:
    compact = False
    pytest.importorskip("numba")
    check(steps.run_numba(STEPS, EVERY, compact), rows)


def test_missing_numba_is_answered_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    present = builtins.__import__

    def absent(name: str, *rest: Any, **more: Any) -> Any:
        if name == "numba":
            raise ImportError(name)
        return present(name, *rest, **more)

    monkeypatch.delitem(sys.modules, "experiments.performance.numba_loop", raising=False)
    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ImportError, match=r"pip install 'nsjax\[bench\]'"):
        steps.numba_loop()


def test_interleaved_measures_every_call_equally_often() -> None:
    seen: list[str] = []
    calls = {name: (lambda name=name: seen.append(name), 1) for name in "ab"}
    found = side_by_side.interleaved(calls, 7)
    assert seen == list("ab") * 8
    assert set(found) == {"a", "b"}
    assert all(x >= 0.0 for x in found.values())
