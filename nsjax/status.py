"""Status bits of a step and the sentences that belong to them.

Nothing raises inside a compiled run. Each step reports an integer whose bits say what went wrong;
the time loop keeps the union and the first failure, and `describe` turns bits into sentences.
"""

from __future__ import annotations

# Saved runs hold bits: they keep their values, and new ones follow the last.
CONTACT_UNSOLVED = 1
MASS_NOT_FINITE = 2
FORCE_NOT_FINITE = 4
GAP_NOT_FINITE = 8
MASS_SINGULAR = 16
STATE_NOT_FINITE = 32
DIVERGED = 64
"""Set after a run outside transformations, from its rows: `nsjax.stability`."""

CONTACT_JAMMED = 128
CANDIDATES_LOST = 256
ENERGY_ROSE = 512
"""Set after a run outside transformations, from its rows: `nsjax.report`."""

WALL_PASSED = 1024
"""Set after a run outside transformations, from its rows: `nsjax.stability.passed`."""

REFUSED = 2**20
"""Set at the start of a run that takes no part because its numbers are refused; its rows are not a number.
Outside transformations an error says so instead. Runs inside transformations add one of the bits below."""

REFUSED_NOT_FINITE = 2**21
REFUSED_NEGATIVE = 2**22
REFUSED_LAW = 2**23
REFUSED_MASS = 2**24
REFUSED_START = 2**25

_NAMED = (
    "run it alone, outside of jit and vmap: the error of simulate names the number and its remedy; inside, "
    "limit numbers to their ranges (jnp.clip)"
)

# In the order in which one failure causes the next: the first bit that is set is the first cause.
SENTENCES: dict[int, tuple[str, str]] = {
    REFUSED_NOT_FINITE: ("the run is refused, because one of its numbers is not finite", _NAMED),
    REFUSED_NEGATIVE: (
        "the run is refused, because a mass, a length, a coefficient or a tolerance is negative, moments "
        "of inertia are those of no body, or dt is not positive",
        _NAMED,
    ),
    REFUSED_LAW: (
        "the run is refused, because a restitution is outside [0, 1], a friction or bound is negative, or "
        "a speed of its law is not positive",
        _NAMED,
    ),
    REFUSED_MASS: (
        "the run is refused, because its mass matrix is not positive definite at the start",
        _NAMED,
    ),
    REFUSED_START: (
        "the run is refused, because its start penetrates a wall or violates a constraint",
        _NAMED,
    ),
    WALL_PASSED: (
        "a body passed a wall within a step: it went deeper than all coordinates and gaps of the start",
        "take a smaller dt: a body goes up to dt times its speed deep before its contact acts, and a "
        "hundredth of the time of its flight is a good start",
    ),
    ENERGY_ROSE: (
        "the energy rose at an impact, by more than a tenth of the largest kinetic energy before, and no "
        "drive explains it: contacts move parts that are too stiff for this dt, or friction in an oblique "
        "impact with restitution adds energy",
        "with springs, dampers or flexible parts take a smaller dt, or make the system with stiff=True for "
        "a scheme of the mixed framework; with rigid bodies give restitution_tangential= the value of "
        "restitution=, or less friction",
    ),
    DIVERGED: (
        "the motion diverges or overshoots: it oscillates faster than any scheme follows with this dt, "
        "with far more energy than the loads can have put in",
        "take a smaller dt, or a scheme that damps such motion, schemes.bathe() for instance; if the "
        "scheme is unstable here, a warning at the start of the run names its largest stable dt",
    ),
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
        "most often a run that diverges ends so: try a smaller dt or an implicit scheme; else check "
        "`force`, or the laws given to parts, at the state before this step (a root of a negative number); "
        "elements of a solid that turn inside out have none",
    ),
    MASS_SINGULAR: (
        "the mass matrix is singular or indefinite",
        "check masses and inertias, and that every velocity carries inertia",
    ),
    CANDIDATES_LOST: (
        "more pairs of bodies were near each other than the capacity of the model; contacts may be missing",
        "raise capacity of the model, or lower its reach",
    ),
    CONTACT_JAMMED: (
        "no impulses fulfil the contact laws: something is jammed, or its friction is above the jamming "
        "limit; the impulses of the step are a compromise",
        "check the contact named, prescribed motions and friction there; let a wall or the drive give way "
        "(a spring), or lower the friction: what follows in this run means nothing",
    ),
    CONTACT_UNSOLVED: (
        "the contact problem was not solved to its tolerance",
        "raise contact_tolerance of the scheme (relative_tolerance of nsga schemes) above the residual "
        "that was left (1e-8, for heaps that bounce 1e-5), or reduce dt; check that the contacts are "
        "compatible; in a solid, that no element is about to turn inside out (its observable volume_ratio)",
    ),
    STATE_NOT_FINITE: (
        "the state stopped being finite",
        "most often a run that diverges ends so: try a smaller dt or an implicit scheme; else check slip, "
        "constraint and law",
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
