"""The one record of thresholds by which every scheme tells events, each derived or said to be chosen."""

from __future__ import annotations

import dataclasses

from nsjax.core.scheme import Scheme


@dataclasses.dataclass(frozen=True, kw_only=True)
class Criteria:
    """By which numbers events are told; the same for all schemes, an option of each (``criteria=``).

    With the step ``h``, the rate ``r`` of a gap, and its free acceleration ``a_N`` (all contacts removed,
    the parts from forces and from curvature together)::

        impact      open before, closed now, loaded, and  r < -gate h |a_N|

    Whether an impact sticks or slides is known to a step of the motion before it, without a number of its
    own: `nsjax.contact.friction_decisions.at_border`.

    Where a number is derived, its reason is given; *chosen* says that it is not, and that it has not been
    varied systematically.

    Args:
        gate: 2. A contact that is let go for a step comes back with ``h a_N``; a bounce with
            ``r = 2 h a_N`` takes four steps, the fewest in which its flight is one. Slower ones are no
            events: their shifts ``dg / r`` vanish with the step (the end of an accumulation), while
            ``1 / r`` does not.
        cancellation: 0.02, chosen. ``|a_N|`` is taken as at least this part of the magnitudes of forces and
            curvature. Where both cancel (a contact about to be released), bounces are rounding.
        floor: 0.05, chosen. The relative acceleration of two bodies is taken as at least this part of the
            accelerations of each: bodies that fall together have none.
        hop: 2. Steps that a contact at rest must have been off before it has left. Hops of one step are
            those of a pivot under Moreau's rule; of curved or lightly loaded contacts hops of 8 to 30 steps
            were seen, which this does not cover.
        flight: 3. Steps that a contact must have been off before an approach is an impact: those between
            the first and the last of the four that a bounce as fast as the gate takes. A contact that
            comes back sooner has hopped; if it is faster than the gate, it rattles: another contact or a
            correction of positions threw it back. A contact that turns sooner without closing has not
            grazed: the corner on which a body pivots hops.
        long: 8. An approach below the gate is a graze if the contact was off for more steps than this and
            comes slower than half of the rate that a flight from the surface and back would give it. A
            bounce as slow as the gate is back after four steps; twice that number separates the two.
        turn: 2. Sliding reverses if its velocity would pass zero within this many steps of its
            acceleration. One step is needed. A reversal seen too early does no harm, since its shifts forth
            and back cancel; a reversal that is missed does.
        slow: 3, chosen, above ``turn``. Reversals are looked for only where sliding is slower than this
            many of its last changes, which saves the look elsewhere.
        slide: 1e-9, chosen. Contacts with tangential velocities up to this, relative to ``1 + |v|``, stick.
        rest: 1e-11, the tolerance of the contact solvers. Closed contacts whose gap rate is up to this,
            relative to ``1 + |v|``, rest. At 1e-6 derivatives were wrong by 300 % at single step sizes.
        coupling: 1e-9, chosen between rounding and any mechanical coupling. Contacts are coupled if the
            impulse of one moves the other by more than this part of what it moves itself.
        together: 1e-7, chosen between rounding and the parts of a step by which unrelated impacts differ.
            Impacts whose instants differ by less than this part of a step, and whose rates by less than
            this part of themselves, belong to a symmetric motion.
        sequence: 4. A bounce that comes as fast as it left flies for twice as many steps as its margin to
            grazing, ``|r| / (h |a_N|)``. Hits whose flight took more than twice that, or that come ever
            more slowly, are near a graze.
        near: 20. An impact met ``s`` steps off its instant has a rate that is off by ``s h |a_N|``. With
            its margin ``m = |r| / (h |a_N|)``, what it contributes to a derivative is off by ``s / m``
            (velocity by gap) to ``(1 + 1/e) s / m`` (velocity by velocity) of itself, about ``2 s / m``.
            Where the scheme knows instants to half a step this is one part in the margin: 5 % at this one,
            the tolerance of `nsjax.check_gradient`; where it meets them up to a step late, two. Hits with
            less, or less than twice as much, below those of a sequence of bounces, are nearly grazing.
        early: 0.25, chosen. A scheme that finds its contacts at the end of the step is looked at ahead, at
            gaps known to a step of ``a_N``: a contact counts as closing if at most this part of a step's
            approach is left. A contact seen too early does no harm.

    Example:
        >>> from nsjax import Criteria, schemes
        >>> schemes.moreau(criteria=Criteria(gate=3.0)).criteria.gate
        3.0
    """

    gate: float = 2.0
    cancellation: float = 0.02
    floor: float = 0.05
    hop: int = 2
    flight: int = 3
    long: int = 8
    turn: float = 2.0
    slow: float = 3.0
    slide: float = 1e-9
    rest: float = 1e-11
    coupling: float = 1e-9
    together: float = 1e-7
    sequence: float = 4.0
    near: float = 20.0
    early: float = 0.25


DEFAULT = Criteria()


def criteria_of(scheme: Scheme) -> Criteria:
    """The criteria by which a scheme tells events."""
    return scheme.criteria or DEFAULT
