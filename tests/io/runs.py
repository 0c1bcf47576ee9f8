"""A run to be saved, and what it is to be when it comes back."""

from __future__ import annotations

import jax
import numpy as np

import nsjax
from nsjax import models, schemes

SCHEME = schemes.moreau()
CRANK = models.slider_crank()


def crank(steps: int, carry=None):
    return nsjax.simulate(*CRANK, SCHEME, dt=2e-5, steps=steps, every=10, notes=True, carry=carry)


def assert_same(a, b) -> None:
    """Same structure, same types of numbers, same bits."""
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.dtype == y.dtype
        assert x.shape == y.shape
        assert x.tobytes() == y.tobytes()
