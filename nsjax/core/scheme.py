"""Records of a time-stepping scheme, and the row quantities of its output in one table."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core.system import State, System
from nsjax.jaxtools.owned import kept
from nsjax.renamed import renamed_fields
from nsjax.types import Array, PyTree, record, short

# The row quantities in one table: shape, unit, and accumulation between rows of each.
#
# A new quantity needs a line here, and a scheme that fills it.


FOLDS: dict[str, tuple[float, Callable[[Any, Any], Array]]] = {
    "end": (0.0, lambda old, new: new), "sum": (0.0, operator.add), "min": (jnp.inf, jnp.minimum),
    "max": (0.0, jnp.maximum), "any": (0.0, operator.or_),
}  # fmt: skip
"""Accumulations: the value before any step, and the function of the value so far and that of one more step.
``"max"`` is for quantities that are never negative, ``"any"`` for bits.
"""


@dataclasses.dataclass(frozen=True)
class Quantity:
    """Shape, unit and accumulation of a row quantity.

    Args:
        axes: names of its sizes in `System`.
        unit: quantities with a unit change with the motion and have a derivative; counts, bits and ratios
            have neither.
        fold: one of `FOLDS`; ``"state"``: a function of the row's state, nothing accumulates.
        kind: type of its numbers.
    """

    axes: tuple[str, ...]
    unit: str
    fold: str
    kind: type = float

    def shape(self, system: System) -> tuple[int, ...]:
        """Its shape in a row."""
        return tuple(getattr(system, axis) for axis in self.axes)

    def start(self, system: System) -> Array:
        """Its value before any step."""
        return jnp.full(self.shape(system), FOLDS[self.fold][0], self.kind)


def _row(axes: str, unit: str, fold: str, kind: type = float) -> Any:
    made = Quantity(axes=tuple(axes.split()), unit=unit, fold=fold, kind=kind)
    return dataclasses.field(default=None, metadata={"quantity": made})


@renamed_fields
@record()
class RowQuantities:
    """Quantities of a step, or of the time between two saved rows; None: not known, or not saved.

    Args:
        gap (nc,): at the row's state [m].
        force_normal (nc,), force_tangential (nc, nt), constraint_force (nb,): at the end of the (last)
            step, left limit [N]. Schemes that know impulses alone give impulses over the step: a contact
            that stays closed on a curved motion is loaded in few steps and by much, see the means.
        impulse_normal (nc,), impulse_tangential (nc, nt), constraint_impulse (nb,): time integrals of the
            forces with the scheme's own weights, and impulses of impacts, so that momentum balances in
            every step [N s].
        impacts (nc,): number of impacts.
        gap_min (nc,): least gap that the scheme tested [m].
        closed_time (nc,): time in which the contact takes part [s], a whole number of steps; steps in which
            a penetrated contact opens without load count. Its derivative is that of the time at rest
            under load, from landing to release, to first order in the step; after an accumulation of
            bounces it is only as good as the last bounces are known. For schemes without a memory of
            rest it is the derivative of the count, zero except by the step size.
        iterations: of the contact solver.
        residual: largest relative natural-map residual of the contact problem, the certificate.
        notes (nc,): bits on what the events of each contact mean for derivatives (`nsjax.gradient_notes`):
            harmless, one-sided (grazing, a kink), undefined (impacts that move each other, an
            accumulation, friction above the jamming limit). Kept with ``simulate(notes=True)``, as are:
        force_notes: bits of the same kind on forces that jump inside a step, for the whole system.
        margin (nc,): how near a contact has come to grazing, in steps: the rate with which it closed, or
            would have had to come to close, over the change of this rate in a step by its acceleration;
            hits below the gate of `nsjax.Criteria` count if they are noted as grazing. Infinite if the
            contact did not come near. Changes of the data that change the rate by so much lose or add an
            impact, and the derivative of an impact is known to about 1 / margin.
        dry_friction_force, dry_friction_impulse (nd,): forces and impulses of bounded rows, like those of
            constraints [N], [N s].
    """

    gap: Array = _row("nc", "m", "state")
    force_normal: Array = _row("nc", "N", "end")
    force_tangential: Array = _row("nc nt", "N", "end")
    constraint_force: Array = _row("nb", "N", "end")
    impulse_normal: Array = _row("nc", "N s", "sum")
    impulse_tangential: Array = _row("nc nt", "N s", "sum")
    constraint_impulse: Array = _row("nb", "N s", "sum")
    impacts: Array = _row("nc", "", "sum", int)
    gap_min: Array = _row("nc", "m", "min")
    closed_time: Array = _row("nc", "s", "sum")
    iterations: Array = _row("", "", "sum", int)
    residual: Array = _row("", "", "max")
    notes: Array = _row("nc", "", "any", int)
    force_notes: Array = _row("", "", "any", int)
    margin: Array = _row("nc", "", "min")
    dry_friction_force: Array = _row("nd", "N", "end")
    dry_friction_impulse: Array = _row("nd", "N s", "sum")


QUANTITIES: dict[str, Quantity] = {
    f.name: f.metadata["quantity"] for f in dataclasses.fields(RowQuantities)
}

ROWS = tuple(QUANTITIES)
"""Row quantities that `simulate` saves in addition to ``t, q, v``."""

NOTES = ("notes", "force_notes", "margin")
"""Row quantities about derivatives. A run keeps them if asked: they are a third of its program."""


def all_notes(rows: Mapping[str, Any]) -> Array:
    """Union () of all notes of the saved ``rows`` of a run, on contacts and on forces."""
    found = [jnp.ravel(rows[name]) for name in ("notes", "force_notes")]
    return lax.reduce(jnp.concatenate(found), np.asarray(0), lax.bitwise_or, (0,))


LOADS = tuple(name for name, x in QUANTITIES.items() if x.unit in ("N", "N s"))
"""Row quantities that are forces or impulses."""


def accumulated(so_far: Mapping[str, Array], new: RowQuantities) -> dict[str, Array]:
    """Values since the last row after one more step; quantities that the step leaves out keep theirs."""
    found = {name: (old, getattr(new, name)) for name, old in so_far.items()}
    return {k: old if x is None else FOLDS[QUANTITIES[k].fold][1](old, x) for k, (old, x) in found.items()}


@kept
def row_numbers(system: System, keep: Iterable[str] = ROWS) -> int:
    """Count of the numbers in a row that holds the quantities ``keep``."""
    shapes = (QUANTITIES[name].shape(system) for name in keep)
    return 1 + system.nq + system.nv + sum(math.prod(shape) for shape in shapes)


# Records of a time-stepping scheme: `Scheme`, the carry between steps and the output of a step.


@record()
class Carry:
    """State and memory that a scheme hands from one step to the next.

    Args:
        state: at the end of the step.
        memory: whatever else the scheme remembers.

    Example:
        >>> import numpy as np
        >>> from nsjax import Carry, State
        >>> Carry(state=State(t=0.0, q=np.zeros(1), v=np.zeros(1))).memory
        ()
    """

    state: State
    memory: PyTree = ()


@record()
class Event:
    """The contact decision of a step.

    Args:
        gap: (nc,) the gap that the scheme tested [m].
        active: (nc,) bool, contacts that took part.
        impact: (nc,) bool, contacts that were open, approached and got an impulse; `nsjax.Criteria`
            separates them from closed contacts that chatter. A contact that only passes on the
            impulse of another one is not counted.
        rate_before, rate_after: (nc,) normal gap rates around the step [m/s], zero where not active.
        shift: (nc,) with the derivative of the time of each impact; its value is zero, or where that time
            was located inside the step, the time from the end of the step to the impact, negative [s].
        timed: (nc,) bool, impacts with such a derivative; those too slow for the gate have none.
        moves: () bool, whether events add to the derivative of the step; None: nobody asks.
        unheld: (nc,) bool, contacts that no force holds, whose impact is one without collision; None:
            there are none.
        begun, ended: (nc,) gaps at the start and at the end of the step, with the features (closest points,
            faces) that it holds fixed; None: it holds none, or nobody asked. The time loop fills them.
    """

    gap: Array
    active: Array
    impact: Array
    rate_before: Array
    rate_after: Array
    shift: Array | float = 0.0
    timed: Array | bool = False
    moves: Array | None = None
    unheld: Array | None = None
    begun: Array | None = None
    ended: Array | None = None


@renamed_fields
@record()
class Output(RowQuantities):
    """Output of one step: the row quantities that the scheme knows, and:

    Args:
        event: the contact decision.
        status: (), bits of `nsjax.status`.
        contact: index of the contact that fulfils its law worst, -1 if all do to the tolerance.

    A scheme fills forces and impulses of contacts and constraints, ``iterations``, ``residual`` and
    ``notes``; the time loop fills quantities that follow from ``event``, and the loads of bounded rows,
    since schemes treat these rows as contacts (`nsjax.contact.bounded`).
    """

    event: Event
    status: Array
    contact: Array


@dataclasses.dataclass(frozen=True)
class Accelerations:
    """Fields of the memory of a scheme that hold accelerations, and which of them its linear map carries.

    Args:
        carries: ``"algorithmic"`` (the true one follows from position and velocity), ``"true"``, or
            ``"none"``: a step starts from position and velocity alone.
        true, algorithmic: names of the fields of the memory.
    """

    carries: str
    true: str = "a"
    algorithmic: str = "algorithmic"


@record()
class PartEnd:
    """State at the end of a part of a step without an impulse.

    Args:
        q, v, a: position, velocity, acceleration.
        force, impulse: (rows,) forces [N] and impulses [N s] of all rows, contacts first.
    """

    q: Array
    v: Array
    a: Array
    force: Array
    impulse: Array


Answer = Callable[[Array, Array], Array]
"""``(delassus, free) -> impulses`` of the rows whose velocities are ``free + delassus impulses``."""


@dataclasses.dataclass(frozen=True)
class InModes:
    """Steps of a scheme in fixed contact modes (open, sticking, sliding): equations of the caller replace
    the contact laws.

    Args:
        fits: ``scheme -> bool``, whether its options allow it.
        advance: ``(step, held, answer) -> PartEnd`` with the closed contacts ``held`` (nc,) bool; None:
            all are open.
        held: ``memory -> (nc,), (nc,)`` bool, contacts that are closed and at rest, and of these those
            that slide.
        flown: ``memory -> (nc,)`` int, steps since the last bounce of contacts that have not come to rest
            since; large where there is none.
        remembered: ``(memory, end, held, stuck, active, impact) -> memory`` after a step.
    """

    fits: Callable[[Any], bool]
    advance: Callable[[Any, Array | None, Answer], PartEnd]
    held: Callable[[Any], tuple[Array, Array]]
    flown: Callable[[Any], Array]
    remembered: Callable[[Any, PartEnd, Array, Array, Array, Array], Any]


@dataclasses.dataclass(frozen=True)
class Traits:
    """What a scheme takes, and what others must know of it.

    Args:
        impulses: where impulses act, for `nsjax.analysis.energy_balance`. ``"end"``: at the end of a step,
            beside time integrals of forces. ``"contacts"``: at its end, for contacts including their
            forces. ``"step"``: one over the whole step.
        accelerations: what `nsjax.analysis.amplification_matrix` must know of the memory; None: unknown.
        in_modes: its steps in fixed contact modes; None: it has none.
        one_step: ``(coef, memory) -> (coef, memory)``, numbers and memory with which a step depends on the
            state alone, so that its length may differ from that of the step before; None: as they are.
        singular_mass: whether it takes velocities without inertia that constraints hold.
        joints_inside: whether it leaves joints to a structure that eliminates them with the velocities
            (`nsjax.linalg.Interleaved`); other schemes treat them as rows of the border.
        node_contacts: whether it takes contacts of single nodes into the iteration of an iterative
            structure (`nsjax.linalg.ConjugateGradients`).
        pair_contacts: whether it takes contacts between changing bodies (`System.contact_set`).
        locates: whether it finds the times of impacts inside its steps.
        implicit_damping: whether it takes `System.damping` implicitly.
        stores_solutions: whether reverse mode, where it stores every step, stores the solutions of its
            equations, too; false where solving again costs less.

    Example:
        >>> from nsjax import schemes
        >>> schemes.moreau().traits.impulses, schemes.localized(schemes.moreau()).traits.locates
        ('step', True)
    """

    impulses: str = "end"
    accelerations: Accelerations | None = None
    in_modes: InModes | None = None
    one_step: Callable[[Any, Any], tuple[Any, Any]] | None = None
    singular_mass: bool = False
    joints_inside: bool = False
    node_contacts: bool = False
    pair_contacts: bool = False
    locates: bool = False
    implicit_damping: bool = False
    stores_solutions: bool = True


@record(static=("name", "options", "prepare", "init", "step", "gradient", "criteria", "traits"))
class Scheme:
    """A time-stepping scheme: three pure functions, numbers as data, options as static record.

    Args:
        name: registered name.
        coef: the user's numbers only (tolerances, spectral radius, ...): sweepable.
        options: frozen, hashable record of choices without numbers.
        prepare: ``(scheme, system, params, dt) -> constants``, once per run.
        init: ``(scheme, system, params, constants, state) -> Carry``.
        step: ``(scheme, system, params, constants, carry, dt) -> (Carry, Output)``.
        gradient: which derivative a step carries through impacts. ``"saltation"``: that of the motion,
            to first order in the step. ``"discrete"``: the derivative of the discrete map with its
            contact decisions frozen, which does *not* converge to the sensitivity of the motion once
            impacts occur.
        criteria: thresholds by which events are classified, `nsjax.Criteria`; None for its defaults.
        traits: what it takes, and what others must know of it.
    """

    name: str
    coef: PyTree
    options: Any
    prepare: Callable[[Scheme, System, PyTree, Array], PyTree]
    init: Callable[[Scheme, System, PyTree, PyTree, State], Carry]
    step: Callable[[Scheme, System, PyTree, PyTree, Carry, Array], tuple[Carry, Output]]
    gradient: str = "discrete"
    criteria: Any = None
    traits: Traits = Traits()

    def __repr__(self) -> str:
        given = [x for x in (self.coef, self.options) if dataclasses.is_dataclass(x)]
        fields = {f.name: getattr(x, f.name) for x in given for f in dataclasses.fields(x)}
        nested = lambda x: callable(x) or dataclasses.is_dataclass(x)  # noqa: E731
        told = [f"{k}={short(x)}" for k, x in fields.items() if x is not None and not nested(x)]
        return f"{self.name}({', '.join(told)})"

    @property
    def unsure(self) -> float:
        """Uncertainty of the instants of impacts, in steps. One where the impulse follows the step in which
        a contact has closed, and comes late; one half where the impulse acts in that step, and comes late
        as often as early.
        """
        return 1.0 if self.traits.impulses == "end" else 0.5

    @property
    def holds_velocities(self) -> bool:
        """Whether steps end with velocities that fulfil constraints and the laws of held contacts, so that
        `in_modes` serves with the options of this scheme.
        """
        modes = self.traits.in_modes
        return modes is not None and modes.fits(self)
