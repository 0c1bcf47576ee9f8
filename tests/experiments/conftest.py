"""Every figure that a test of an experiment draws is looked at."""

from __future__ import annotations

import pytest

from experiments import tidy as tidying
from tests.plot.faults import faults


@pytest.fixture(autouse=True)
def _figures_without_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    tidy = tidying.tidy

    def looked_at(figure) -> None:
        tidy(figure)
        assert list(faults(figure)) == []

    monkeypatch.setattr(tidying, "tidy", looked_at)
