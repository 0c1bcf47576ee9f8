"""The event-driven slider-crank, which experiments use as well."""

from experiments.references.slider_crank import (
    AT_REST,
    START,
    TABLE_2,
    Data,
    Event,
    Reference,
    _Mechanism,
    bilateral,
    event_driven,
    wall_force,
)

__all__ = [
    "AT_REST", "START", "TABLE_2", "Data", "Event", "Reference", "_Mechanism", "bilateral", "event_driven",
    "wall_force",
]  # fmt: skip
