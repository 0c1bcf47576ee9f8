"""Names and units of coordinates, contacts and constraints."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Labels:
    """Names and units, each entry written ``"name [unit]"``.

    Args:
        q, v: one entry per component of ``q`` and ``v``.
        contacts, constraints, drags: one name per contact, per bilateral constraint, and per bounded
            row.
        gaps: units of the contacts' gaps, one each; none given: all are metres. Stops of hinges have
            ``"rad"``.
        observables: the quantities that `System.observe` returns.
        path: names of two observables to be drawn against each other.
        path_limits: names of observables that bound the second one from below and above.

    Example:
        >>> from nsjax import Labels
        >>> Labels(q=("x [m]", "y [m]"), v=("vx [m/s]", "vy [m/s]"), contacts=("belt",)).contacts
        ('belt',)
    """

    q: tuple[str, ...] = ()
    v: tuple[str, ...] = ()
    contacts: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    observables: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    path_limits: tuple[str, ...] = ()
    drags: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
