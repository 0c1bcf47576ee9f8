"""Thresholds by which every scheme detects events, in one record; each is derived, or marked as chosen."""

from __future__ import annotations

import dataclasses

from nsjax.core.scheme import Scheme


@dataclasses.dataclass(frozen=True, kw_only=True)
class Criteria:
    """Thresholds of events: the same for all schemes, and an option of each (``criteria=``).

    With the step ``h``, the rate ``r`` of a gap, and its free acceleration ``a_N`` (all contacts removed,
    the parts from forces and from curvature together)::

        impact      open before, closed now, loaded, and  r < -gate h |a_N|

    Whether an impact is at the border of sticking and sliding is decided by what the motion changes in a
    step, without a threshold: `nsjax.contact.friction_decisions.at_border`.

    Where a number is derived, its reason is given; *chosen* means that it is not derived, and that it has
    not been varied systematically.

    Args:
        gate: 2. A contact that is released for one step comes back with ``h a_N``; a bounce with
            ``r = 2 h a_N`` takes four steps, the fewest that make a flight. Slower approaches are no
            events: their shifts ``dg / r`` vanish with the step (the end of an accumulation), while
            ``1 / r`` does not.
        cancellation: 0.02, chosen. ``|a_N|`` is taken as at least this part of the magnitudes of forces and
            curvature. Where both cancel (a contact about to be released), bounces are rounding.
        floor: 0.05, chosen. The relative acceleration of two bodies is taken as at least this part of the
            accelerations of each: bodies that fall together have none.
        hop: 2. Number of open steps after which a contact at rest has left. Under Moreau's rule a pivot
            hops for one step; curved or lightly loaded contacts were seen to hop for 8 to 30 steps, which
            this does not cover.
        flight: 3. Number of open steps after which an approach can be an impact: a bounce as fast as the
            gate takes four. A contact that comes back sooner has hopped; if it is faster than the gate, it
            rattles: another contact or a correction of positions threw it back. A contact that turns back
            sooner without closing has not grazed: the corner on which a body pivots hops.
        long: 8. An approach below the gate is a graze if the contact was open for more steps than this and
            comes slower than half of the rate that a flight from the surface and back would give it. A
            bounce as slow as the gate is back after four steps; twice that number separates the two.
        turn: 2. Sliding reverses if its velocity would pass zero within this many steps of its
            acceleration. One step is needed. A reversal seen too early does no harm, since its shifts forth
            and back cancel; a reversal that is missed does.
        slow: 3, chosen, above ``turn``. Reversals are looked for only where sliding is slower than this
            many of its last changes, which saves the computation elsewhere.
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
        near: 20. An impact found ``s`` steps from its instant has a rate that is wrong by ``s h |a_N|``.
            With its margin ``m = |r| / (h |a_N|)``, its contribution to a derivative has a relative error
            from ``s / m`` (velocity by gap) to ``(1 + 1/e) s / m`` (velocity by velocity), about
            ``2 s / m``. Where the scheme knows instants to half a step it is ``1 / m``: 5 % at ``m = 20``,
            the tolerance of `nsjax.check_gradient`. Where it finds them up to a step late it is ``2 / m``,
            and the threshold is twice as large. Hits below it that slow down or follow a flight longer than
            ``sequence`` allows are nearly grazing.
        early: 0.25, chosen. For a scheme that finds its contacts at the end of the step, gaps are predicted
            up to what ``a_N`` makes of a step: a contact counts as closing if at most this part of a step's
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
    """The criteria by which a scheme detects events."""
    return scheme.criteria or DEFAULT
