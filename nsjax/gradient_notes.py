"""Notes on the derivative of a run, bits per contact and step, and the sentences that belong to them.

Nothing raises inside a compiled run. A step notes for each contact what its event means for the derivative
of the motion; rows of a `Trajectory` hold the union since the previous row (``traj.notes``, (rows, nc)).
Forces that jump have notes for the whole system (``traj.force_notes``, (rows,)).
There are three kinds: *harmless* (the derivative is right), *one-sided* (the motion has a kink, or
nearly one) and *undefined* (the motion has no derivative there; the one returned is a selection).
`KINK` needs quantities that only derivatives compute, and is noted only with ``gradient="saltation"``.
"""

from __future__ import annotations

# Saved runs hold bits: they keep their values, and new ones follow the last.
SETTLING = 1
COUPLED = 2
GRAZING = 4
KINK = 8
ACCUMULATION = 16
UNLOCATED = 32
TOGETHER = 64
JAMMED = 128
NEAR = 256
JUMP = 512
SWITCHED = 1024

HARMLESS, ONE_SIDED, UNDEFINED = "harmless", "one-sided", "undefined"

SENTENCES: dict[int, tuple[str, str]] = {
    JAMMED: (
        UNDEFINED,
        "friction above the jamming limit: pushed against its sliding, the contact would be pulled into "
        "the other body by its own friction, and where no force holds it, it stops by an impact without "
        "collision; the motion may have several continuations",
    ),
    JUMP: (
        UNDEFINED,
        "a force jumps within a step across no surface that its law declares: the derivative misses that "
        "the instant of the jump moves with the data; give the law its surface, switch=",
    ),
    COUPLED: (
        UNDEFINED,
        "impacts in one step that move each other, or a contact that touches without load: one selection "
        "of several outcomes and derivatives",
    ),
    ACCUMULATION: (
        UNDEFINED,
        "an accumulation of impacts ends: right with order 0.7 to 1 for a single contact, with order 2 "
        "where its changes are located, one selection where several bounce on one body",
    ),
    GRAZING: (
        ONE_SIDED,
        "a contact is grazed: the impact appears or vanishes with small changes of the data, and its "
        "derivative grows without bound near there",
    ),
    NEAR: (
        ONE_SIDED,
        "an impact is nearly a graze: a step of its acceleration is over a twentieth of its speed (a "
        "fortieth where impulses follow on a step), and its part of a derivative known to one part (two) "
        "in `Trajectory.margin`",
    ),
    KINK: (
        ONE_SIDED,
        "sliding turns through rest within a step, or an impact is nearer to the border of sticking and "
        "sliding than a step resolves",
    ),
    SWITCHED: (
        ONE_SIDED,
        "a surface on which a force jumps is crossed more slowly than a step resolves, or in the step of "
        "an impact: its part of the derivative is one selection, or left out",
    ),
    UNLOCATED: (
        HARMLESS,
        "the time of an impact was not located inside its step: the derivative is that of the scheme "
        "inside, of first order",
    ),
    TOGETHER: (
        HARMLESS,
        "contacts strike, or a motion crosses surfaces of its forces, at one instant to rounding: right "
        "for all changes that keep them together, undefined across",
    ),
    SETTLING: (HARMLESS, "an approach too slow to matter: the chatter of a contact at rest"),
}
"""Kind and sentence of every bit, the gravest first."""

SERIOUS = sum(bit for bit, (kind, _) in SENTENCES.items() if kind != HARMLESS)
"""Bits of derivatives that are one-sided or undefined."""


def describe(bits: int) -> list[tuple[str, str]]:
    """Pairs (kind, sentence) for the bits set in ``bits``, the gravest first.

    Example:
        >>> from nsjax import gradient_notes
        >>> gradient_notes.describe(gradient_notes.GRAZING)[0][0]
        'one-sided'
    """
    return [SENTENCES[bit] for bit in SENTENCES if bits & bit]
