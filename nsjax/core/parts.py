"""What a `nsjax.System` is made of: functions, and labels that fit."""

from __future__ import annotations

from typing import Any

from nsjax.core.errors import InputError

FUNCTIONS = (
    "mass", "inertia", "force", "potential", "gap", "slip", "constraint", "law", "drag", "drag_bound",
    "retract", "difference", "prepare", "refresh", "allowed", "observe",
)  # fmt: skip


def check_functions(system: Any) -> None:
    """Refuses fields that are no functions.

    Raises:
        InputError: naming the first one.
    """
    for name in FUNCTIONS:
        value = getattr(system, name)
        if value is None and name not in ("force", "retract", "difference"):
            continue
        if not callable(value):
            shown = type(value).__name__ if hasattr(value, "shape") else repr(value)
            raise InputError(
                f"System: {name} = {shown}; it must be a function, also where what it returns is constant"
            )


def check_labels(system: Any) -> None:
    """Refuses labels of a wrong number, and names that stand twice.

    Raises:
        InputError: naming the first one.
    """
    labels: Any = system.labels
    if not hasattr(labels, "contacts"):
        raise InputError(f"System: labels = {labels!r}; it must be an nsjax.Labels")
    counts = {"q": "nq", "v": "nv", "contacts": "nc", "constraints": "nb", "drags": "nd"}
    for field, entries in vars(labels).items():
        if not isinstance(entries, tuple) or not all(isinstance(x, str) for x in entries):
            raise InputError(
                f"Labels: {field} = {entries!r}; give a tuple of names, ('x [m]',) for instance"
            )
        size = counts.get(field)
        if size and entries and len(entries) != getattr(system, size):
            raise InputError(
                f"Labels: {field} has {len(entries)} names; the system has {size} = "
                f"{getattr(system, size)}. Give one each, or none"
            )
    for names in ((*labels.q, *labels.v, *labels.observables), labels.contacts, labels.constraints):
        plain = [x.split(" [")[0] for x in names]
        double = next((x for x in plain if plain.count(x) > 1), None)
        if double is not None:
            raise InputError(
                f"Labels: {double!r} is the name of two quantities; traj[{double!r}] needs one"
            )
