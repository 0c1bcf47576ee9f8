"""Instants, friction and event-driven motion that tests of the slider-crank share."""

from __future__ import annotations

import pytest

from tests.references.slider_crank import Data, event_driven

INSTANTS = tuple(0.005 * k for k in range(1, 11))

FRICTION = pytest.mark.parametrize("friction", [pytest.param(0.0, marks=pytest.mark.slow), 0.01])


def reference(friction: float, restitution: float = 0.4, times=INSTANTS):
    return event_driven(Data(friction=friction, restitution=restitution), times)
