"""One exception type for bad input, and the nearest-name hint used in its sentences."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LISTED = 20
"""Most names in a sentence."""


class InputError(ValueError):
    """Input that cannot be simulated. The message names the thing, its value, and the remedy.

    Example:
        >>> from nsjax import InputError, models
        >>> try:
        ...     models.bouncing_ball().replace(restitutoin=0.5)
        ... except InputError as error:
        ...     print("did you mean 'restitution'?" in str(error))
        True
    """


def nearest(name: str, known: Iterable[str]) -> str:
    """``"did you mean 'x'? known: ..."`` for an unknown ``name``.

    Example:
        >>> from nsjax.core import nearest
        >>> nearest("fricton", ["friction", "mass"])
        "did you mean 'friction'? Known: friction, mass"
    """
    names = list(known)
    match = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {match[0]!r}? " if match else ""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"{hint}Known: {', '.join(names[:LISTED]) if names else 'none'}{more}"
