"""Decisions about events, and the thresholds by which every scheme makes them.

Impacts, landings, releases and rest are detected here for every scheme. A decision is made on values alone
and has no derivative; what follows from it for derivatives is in `nsjax.contact.jump` and
`nsjax.contact.sensitivity`.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax import gradient_notes
from nsjax.contact.problem import over_links, pairs
from nsjax.core.operators import touching
from nsjax.core.row_groups import RowGroups
from nsjax.core.scheme import Scheme
from nsjax.core.system import System
from nsjax.jaxtools import value_with_derivative_of
from nsjax.jaxtools.control_flow import repeat
from nsjax.linalg import Blocks, Paired, magnitude, matmul, matvec
from nsjax.types import Array, PyTree, record

if TYPE_CHECKING:
    from nsjax.core.step import Formed, Step, SystemState

# Thresholds by which every scheme detects events, in one record; each is derived, or marked as chosen.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Criteria:
    """Thresholds of events: the same for all schemes, and an option of each (``criteria=``).

    With the step ``h``, the rate ``r`` of a gap, and its free acceleration ``a_N`` (all contacts removed,
    the parts from forces and from curvature together)::

        impact      open before, closed now, loaded, and  r < -gate h |a_N|

    Whether an impact is at the border of sticking and sliding is decided by what the motion changes in a
    step, without a threshold: `nsjax.contact.friction.at_border`.

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


# Decisions about events, by the thresholds of `nsjax.Criteria`.


@record()
class Touch:
    """Memory of the contacts between steps.

    Args:
        held: (nc,) bool, closed, under load and at rest after the step.
        off: (nc,) int, steps since the contact last touched.
        bounced: (nc,) bool, there was an impact, and the contact has not come to rest since.
        slide: (nc, nt) sliding velocities at the start of the step [m/s]; mixed schemes: infinite where
            they are not known.
        stuck: (nc,) bool, the friction of the step was inside its cone. Tangential velocities do not tell
            this: they are zero with the contact directions of the scheme, else of the order of the step.
    """

    held: Array
    off: Array
    bounced: Array
    slide: Array
    stuck: Array


NEVER = 1 << 20
"""`Touch.off` of a contact that has not touched yet."""


def no_touch(system: System) -> Touch:
    """`Touch` at the start of a run, when nothing is known of the contacts."""
    none = jnp.zeros(system.nc, bool)
    slide = jnp.zeros((system.nc, system.nt))
    return Touch(held=none, off=jnp.full(system.nc, NEVER), bounced=none, slide=slide, stuck=none)


def set_touching(touch: Touch, closed: Array) -> Touch:
    """``touch`` with zero open steps for the contacts ``closed`` (nc,) bool."""
    return dataclasses.replace(touch, off=jnp.where(closed, 0, touch.off))


def fly(criteria: Criteria, touch: Touch) -> Touch:
    """`Touch` after a step in which no contact took part; held contacts may hop."""
    off = touch.off + 1
    held = touch.held & (off < criteria.hop)
    return dataclasses.replace(touch, held=held, off=off)


def held_or_hopping(criteria: Criteria, touch: Touch, active: Array) -> Array:
    """Held contacts (nc,) bool that take part in the step or hop, see `Criteria.hop`."""
    return touch.held & (active | (touch.off + 1 < criteria.hop))


def gate(
    criteria: Criteria, f: Formed, dt: Array, around: GapsAround | None = None
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Gap rates (nc,) up to which an approach is no impact: ``gate h |a_N|``, see `Criteria`;
    ``h |a_N|`` itself, without a least value; and the `gap_curvature`. ``around``: gaps at the state of
    ``f``, if known.
    """
    wt, a = f.rows.groups.normals_of(f.rows.wt), jnp.asarray(f.free)
    curvature = gap_curvature(f.at) if around is None else around.curvature
    forced = matvec(wt, a)
    # forces and curvature may cancel, and bodies that fall together have no relative acceleration
    least = jnp.abs(forced) + jnp.abs(curvature) + criteria.floor * matvec(magnitude(wt), jnp.abs(a))
    free = jnp.abs(forced + curvature)
    least = criteria.cancellation * least
    return criteria.gate * dt * jnp.where(free > least, free, least), dt * free, curvature


def gap_curvature(at: SystemState) -> Array:
    """Acceleration of the gaps (nc,) at constant velocity, by a difference: a program a fifth as large."""
    return _second_difference(*gaps_beside(at))


def gaps_beside(at: SystemState) -> tuple[Array, Array]:
    """Gaps (3, nc) at a state, and the time ``reach`` [s] before and after it along its velocity."""
    reach = frozen(_reach(at))
    aside = jax.vmap(lambda s: at.moved(t=at.t + s, q=at.system.retract(at.q, s * at.v)).gap())
    return aside(reach * np.array([0.0, -1.0, 1.0])), reach


def _reach(at: SystemState) -> Array:
    """Time () over which bodies move by 1e-4 m or rad, for the curvature of gaps by second differences.

    With coordinates of the size ``L`` rounding makes an error of ``1e-7 L (1 + |v|)^2`` (SI units); the
    curvature of a radius ``r`` has the relative error ``1e-8 m^2 / (12 r^2)``, 0.1 % for 1 mm.
    """
    return 1e-4 / (1.0 + jnp.max(jnp.abs(at.v)))


def _second_difference(gaps: Array, reach: Array) -> Array:
    """Second derivative (nc,) of gaps (3, nc) at the time 0, ``-reach``, ``reach``."""
    return (gaps[1] - 2.0 * gaps[0] + gaps[2]) / (reach * reach)


@record()
class GapsAround:
    """Gaps (nc,) at a state [m], and their acceleration at constant velocity (nc,) as `gap_curvature`."""

    gap: Array
    curvature: Array


def gaps_around(at: SystemState, open_before: Array, limit: Array | float) -> GapsAround:
    """Gaps at a state, and their curvature if a contact touches, with a gap up to ``limit`` [m], that was
    not held before (``open_before``, (nc,) bool), else zero. The program of the gaps is there once: a loop
    evaluates it at one or at three states. Gaps have their derivative, by a program of their own.
    """
    return value_with_derivative_of(_gaps_in_turn, _gaps_at_once)((at, open_before, jnp.asarray(limit)))


def _gaps_in_turn(data: tuple[SystemState, Array, Array]) -> GapsAround:
    at, open_before, limit = data
    reach = _reach(at)

    def look(known: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        k, gaps, _ = known
        s = jnp.where(k == 1, -reach, reach)
        q = jnp.where(k == 0, at.q, at.system.retract(at.q, s * at.v))
        found = at.moved(t=jnp.where(k == 0, at.t, at.t + s), q=q).gap()
        gaps = jnp.where(np.arange(3)[:, None] == k, found, gaps)
        # the curvature decides about impacts alone: without a new contact the other two states are left
        # out
        new = touching(at.system, at.t, at.q, at.params, gaps[0], limit) & open_before
        return k + 1, gaps, jnp.any(new)

    def going(known: tuple[Array, Array, Array]) -> Array:
        k, _, new = known
        return (k < 3) & new

    start = jnp.asarray(0, int), jnp.zeros((3, at.system.nc)), jnp.asarray(True)
    count, gaps, _ = repeat(going, look, start)
    return GapsAround(gap=gaps[0], curvature=jnp.where(count > 1, _second_difference(gaps, reach), 0.0))


def _gaps_at_once(data: tuple[SystemState, Array, Array]) -> GapsAround:
    at, _, _ = data
    return GapsAround(gap=at.gap(), curvature=gap_curvature(frozen(at)))


def gap_rates(at: SystemState) -> Array:
    """Rates of the gaps (nc,) along the velocity of a state."""

    def along(s: Array) -> Array:
        return at.moved(t=at.t + s, q=at.system.retract(at.q, s * at.v)).gap()

    return jax.jvp(along, (jnp.zeros(()),), (jnp.ones(()),))[1]


def normal_rates(f: Formed) -> Array:
    """Rates of the gaps (nc,), by their rows."""
    return f.rows.groups.normals(f.rows.rate(f.at.v))


def at_rest(criteria: Criteria, rates: Array, v: Array) -> Array:
    """Whether gap rates are zero to rounding."""
    return jnp.abs(rates) <= criteria.rest * (1.0 + jnp.max(jnp.abs(v)))


def linked(criteria: Criteria, f: Formed, present: Array) -> Any:
    """Pairs of contacts that move each other, directly, through others that are ``present``, or through
    joints: (nc, nc) bool, true on the diagonal; (islands, k, k) for contacts in islands; None for contacts
    between changing bodies.

    Args:
        f: the system, its rows and their responses; tangents without friction carry no impulse.
        present: (nc,) bool, contacts that strike or are held.
    """
    friction, groups = f.at.friction(), f.rows.groups
    wt, response = f.rows.wt, f.response
    if isinstance(response, Paired):  # not determined among many bodies
        return None
    if response is None:  # contacts at nodes of one body
        return (present[:, None] & present[None, :]) | np.eye(len(present), dtype=bool)
    g = magnitude(matmul(wt, response))
    if not isinstance(g, Blocks):
        return _linked(criteria, groups, g, present, friction)
    n = g.values.shape[0]
    own = [x.reshape(n, -1) for x in (present, friction)]
    part = RowGroups.of(groups.nc // n, groups.nt)
    return jax.vmap(functools.partial(_linked, criteria, part))(g.values, *own)


def _linked(criteria: Criteria, groups: RowGroups, g: Array, present: Array, friction: Array) -> Array:
    """`linked` by the magnitudes of a Delassus operator."""
    nc, nb = groups.nc, groups.nb
    diagonal = jnp.diagonal(g)
    strong = g > criteria.coupling * jnp.sqrt(diagonal[:, None] * diagonal[None, :])
    rough = jnp.where(np.arange(1 + groups.nt) > 0, friction[:, None] > 0.0, True)
    on = groups.stack(present[:, None] & rough, jnp.ones(nb, bool))
    strong = strong & on[:, None] & on[None, :]
    # sums of products would call the library from 24 rows on: contacts by blocks, joints by rows
    of_contacts = jnp.any(groups.contacts(strong), axis=1)  # (nc, rows)
    touch, through = jnp.any(groups.contacts(of_contacts.T), axis=1).T, groups.bilateral(of_contacts.T).T
    joints = groups.bilateral(groups.bilateral(strong).T).T
    reach = jnp.concatenate(
        [jnp.concatenate([touch, through], axis=1), jnp.concatenate([through.T, joints], axis=1)]
    )
    reach = reach | reach.T | np.eye(nc + nb, dtype=bool)
    # each pass doubles the length of the chains through which one contact moves another
    for _ in range(int(np.ceil(np.log2(max(nc + nb, 2))))):
        reach = jnp.any(reach[:, :, None] & reach[None, :, :], axis=1)
    return reach[:nc, :nc]


@record()
class Approach:
    """Approaching contacts, at the state at which a step looks at its contacts.

    Args:
        rates: (nc,) of the gaps [m/s].
        limit: (nc,) see `gate`.
        curvature: (nc,) see `gap_curvature`.
        impacts: (nc,) bool.
        gated: (nc,) bool, approaches that are no impacts.
        links: bool or None, see `linked`.
        notes: (nc,) bits of `nsjax.notes`, without those of `unloaded_partners`.
    """

    rates: Array
    limit: Array
    curvature: Array
    impacts: Array
    gated: Array
    links: Any
    notes: Array

    @property
    def coupled(self) -> Array:
        """() bool, several impacts of which one moves another."""
        return jnp.any(pairs(self.links, self.impacts))


def approach(
    step: Step, f: Formed, touch: Touch, candidates: Array, gap: Array, around: GapsAround | None = None
) -> Approach:  # fmt: skip
    """Approaching contacts of a step, divided into impacts and slow approaches.

    Args:
        candidates: (nc,) bool, contacts that are closed now.
        gap: (nc,) gaps at the state of ``f`` [m].
        around: these gaps and their curvature, if known.
    """
    criteria, dt = criteria_of(step.scheme), step.dt
    rates = normal_rates(f)
    limit, gain, curvature = gate(criteria, f, dt, around)
    coming = candidates & ~touch.held & (rates < 0.0)
    flown = touch.off >= criteria.flight
    # without any normal acceleration the limit is zero, and rounding is no approach
    comes = ~at_rest(criteria, rates, f.at.v)
    impacts = coming & flown & comes & (rates < -limit)
    gated = coming & ~impacts
    links = linked(criteria, f, candidates | touch.held)
    bits = over_links(
        functools.partial(_pair_notes, criteria, dt), links, impacts, gap, jnp.where(impacts, rates, -1.0)
    )
    kind = jnp.where(touch.bounced, gradient_notes.ACCUMULATION, gradient_notes.SETTLING)
    slow = -4.0 * rates < gain * touch.off  # half of what a flight from the surface and back makes
    # a contact that has rested or was released may hop for any time, but has not come from afar
    afar = (touch.off > criteria.long) & (touch.bounced | (touch.off >= NEVER))
    kind = jnp.where(afar & slow, gradient_notes.GRAZING, kind)
    kind = jnp.where(~flown & (rates < -limit) & ~touch.bounced, gradient_notes.COUPLED, kind)
    bits = bits | jnp.where(gated & comes, kind, 0)
    # a bounce of few steps is one of the last of an accumulation
    last = impacts & touch.bounced & (touch.off <= criteria.long)
    bits = bits | jnp.where(last, gradient_notes.ACCUMULATION, 0)
    return Approach(
        rates=rates, limit=limit, curvature=curvature, impacts=impacts, gated=gated, links=links, notes=bits
    )


def _pair_notes(
    criteria: Criteria, dt: Array, links: Array, impacts: Array, gap: Array, rates: Array
) -> Array:
    """Notes (nc,) on impacts of which one moves another."""
    pair = pairs(links, impacts)
    # pairs of impacts (nc, nc) that differ in their instants or rates, see `Criteria.together`
    instant = gap / rates
    later = jnp.abs(instant[:, None] - instant[None, :]) > criteria.together * dt
    size = criteria.together * jnp.abs(rates[:, None] + rates[None, :])
    apart = later | (jnp.abs(rates[:, None] - rates[None, :]) > size)
    bits = jnp.where(jnp.any(pair & apart, axis=1), gradient_notes.COUPLED, 0)
    return bits | jnp.where(jnp.any(pair & ~apart, axis=1), gradient_notes.TOGETHER, 0)


def no_approach(system: System) -> Approach:
    """`Approach` of a step in which no contact approaches."""
    none, still, n = jnp.zeros(system.nc, bool), jnp.zeros(system.nc), system.islands
    shape = (n, system.nc // n, system.nc // n) if n else (system.nc, system.nc)
    return Approach(
        rates=still, limit=jnp.full(system.nc, jnp.inf), curvature=still, impacts=none, gated=none,
        links=None if system.changing_contacts else jnp.zeros(shape, bool),
        notes=jnp.zeros(system.nc, int),
    )  # fmt: skip


def unloaded_partners(found: Approach, under: Array, loaded: Array) -> Array:
    """Notes (nc,) on contacts that touched without load and take part in the impact of another contact.

    Such a contact shares the impulse; if it were open by however little, it would be struck a moment later,
    with another outcome. ``under``, ``loaded``: (nc,) bool, under load before and in the step.
    """
    partners = loaded & ~under & ~found.impacts & ~found.gated

    def either(links: Array, impacts: Array, partners: Array) -> Array:
        passed = links & impacts[:, None] & partners[None, :]
        return jnp.any(passed, axis=0) | jnp.any(passed, axis=1)

    return jnp.where(over_links(either, found.links, found.impacts, partners), gradient_notes.COUPLED, 0)


def touch_after_step(touch: Touch, found: Approach, active: Array, loaded: Array, held: Array) -> Touch:
    """`Touch` after a step, with ``slide`` and ``stuck`` of the step before.

    Args:
        active: (nc,) bool, contacts that took part; receding ones touch without load.
        held: (nc,) bool, at rest under load after it.
    """
    here = active & (loaded | ~(found.impacts | found.gated))
    # an impulse on a receding contact, which forces turn back within the step, leaves ``bounced`` as it is
    bounced = (here & loaded & found.impacts) | touch.bounced
    off = jnp.where(here, 0, touch.off + 1)
    return dataclasses.replace(touch, held=held, off=off, bounced=bounced & ~held)


def settling(touch: Touch, held: Array) -> Array:
    """Notes (nc,) on contacts that bounced and are held now: an accumulation of impacts has ended."""
    return jnp.where(touch.bounced & held, gradient_notes.ACCUMULATION, 0)


def frozen(tree: PyTree) -> PyTree:
    """``tree`` without derivatives: everything that decides or scales a shift."""
    return lax.stop_gradient(tree)
