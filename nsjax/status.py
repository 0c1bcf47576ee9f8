"""Status bits of a step and the sentences that belong to them.

Nothing raises inside a compiled run. Each step reports an integer whose bits say what went wrong;
the time loop keeps the union and the first failure, and `describe` turns bits into sentences.
"""

from __future__ import annotations

CONTACT_UNSOLVED = 1
MASS_NOT_FINITE = 2
FORCE_NOT_FINITE = 4
GAP_NOT_FINITE = 8
MASS_SINGULAR = 16
STATE_NOT_FINITE = 32

# In the order in which a cause produces the next one: the first set bit is what failed first.
SENTENCES: dict[int, tuple[str, str]] = {
    GAP_NOT_FINITE: (
        "the gap function returned a value that is not finite",
        "check `gap` (and `prepare`) at the state before this step",
    ),
    MASS_NOT_FINITE: (
        "the mass matrix has an entry that is not finite",
        "check `mass` (and `prepare`) at the state before this step",
    ),
    FORCE_NOT_FINITE: (
        "the force function returned a value that is not finite",
        "check `force` at the state before this step; a divergence is often cured by a smaller dt",
    ),
    MASS_SINGULAR: (
        "the mass matrix is singular or indefinite",
        "check masses and inertias, and that every velocity carries inertia",
    ),
    CONTACT_UNSOLVED: (
        "the contact problem was not solved to its tolerance",
        "reduce dt, raise max_iterations of the scheme, or check that the contacts are compatible",
    ),
    STATE_NOT_FINITE: (
        "the state stopped being finite",
        "check slip, constraint and law, or reduce dt",
    ),
}


def describe(status: int) -> list[tuple[str, str]]:
    """Pairs (what happened, what to do) for the bits set in ``status``, first cause first.

    Example:
        >>> from nsjax import status
        >>> status.describe(status.CONTACT_UNSOLVED)[0][0]
        'the contact problem was not solved to its tolerance'
    """
    return [SENTENCES[bit] for bit in SENTENCES if status & bit]
