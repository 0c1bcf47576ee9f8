"""Identification: estimates of a model's parameters and initial state from measured data."""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.identify import losses, transforms
    from nsjax.identify.records import Estimate, Fit, Recording
    from nsjax.identify.run import identify

__all__ = ["Estimate", "Fit", "Recording", "identify", "losses", "transforms"]

lazily(__name__)
