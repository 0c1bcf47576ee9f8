"""Independent references: event-driven integrations and closed forms in numpy and scipy alone."""

from __future__ import annotations

import numpy as np


def slope(steps, errors) -> float:
    """Least-squares slope of log(error) over log(step size): the observed order."""
    return float(np.polyfit(np.log(np.asarray(steps)), np.log(np.asarray(errors)), 1)[0])
