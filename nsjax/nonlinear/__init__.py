"""Derivatives by the implicit function theorem, and derivatives written by hand."""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.nonlinear.implicit import (
        LiveLeaves,
        event_solution,
        implicit_solution,
        keep_solutions,
        lean,
        make_live,
        only_tangent,
        with_lanes,
        with_retract_tangent,
        with_tangent,
        without_derivative,
    )
    from nsjax.nonlinear.programs import trimmed

__all__ = [
    "LiveLeaves",
    "event_solution",
    "implicit_solution",
    "keep_solutions",
    "lean",
    "make_live",
    "only_tangent",
    "trimmed",
    "with_lanes",
    "with_retract_tangent",
    "with_tangent",
    "without_derivative",
]

lazily(__name__)
