"""Records of a mechanical system: `System`, `State` and `Problem`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from nsjax.core.errors import InputError, check_choice, check_whole
from nsjax.core.keys import START, dotted, replaced
from nsjax.core.row_groups import RowGroup, RowGroups
from nsjax.core.slots import ContactSet
from nsjax.core.system_parts import (
    Labels,
    check_contact_set,
    check_followed,
    check_functions,
    check_islands,
    check_labels,
    problem_html,
    problem_text,
)
from nsjax.jaxtools.owned import kept
from nsjax.linalg import Dense, Structure, interleaving
from nsjax.renamed import renamed_fields
from nsjax.types import Array, Fn, Promised, PyTree, identity, record

TANGENTS = ("full", "mass", "kept")
"""Tangents with which implicit schemes iterate."""


def add(q: Array, xi: Array) -> Array:
    """Default `System.retract`: positions form a vector space."""
    return q + xi


def subtract(q0: Array, q1: Array) -> Array:
    """Default `System.difference`: the increment that leads from ``q0`` to ``q1``."""
    return q1 - q0


@renamed_fields
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class System:
    """A mechanical system with contacts and constraints as a set of pure functions.

    ``M(q) dv = h dt + W_B dP_B + W_N dP_N + W_T dP_T + W_D lambda_D dt`` with ``dq = v dt`` (in general:
    ``q`` moves along ``retract``). All directions ``W`` are derived from the functions below.

    Args:
        nq, nv: number of position entries and of velocities.
        nc: number of contacts; all are always present, activity is a mask.
        nt: tangential directions per contact: 0 frictionless, 1 planar, 2 spatial.
        nb: number of bilateral constraints.
        nd: number of bounded rows.
        nh: number of bilateral constraints on velocities alone, the last of ``nb``.
        frictionless: number of contacts, the last ones, that have no friction whatever the parameters are,
            such as limits of joints. Optional: steps are faster, with one row a contact instead of
            ``1 + nt``.
        mass: ``(q, p) -> (nv, nv)`` symmetric positive definite. Mass or inertia must be given.
        inertia: ``(q, w, p) -> M(q) w``, for large models; in addition to the mass, if the product is
            cheaper than the matrix.
        force: ``(t, q, v, p) -> (nv,)`` everything on the right-hand side, gyroscopic terms included.
        potential: ``(t, q, p) -> scalar`` [J] of the conservative part of the force, for energies.
        gap: ``(t, q, p) -> (nc,)`` [m], positive when open.
        slip: ``(t, q, v, p) -> (nc, nt)`` [m/s] tangential velocity, affine in ``v``.
        rows: ``(t, q, p) -> (W, w)`` with ``W`` (nc, 1 + nt, nv) and ``w`` (nc, 1 + nt), for mechanisms
            that know them: ``W v + w`` are rates of gap and slip. None: gap and slip are differentiated.
            Checked before a run.
        constraint: ``(t, q, p) -> (nb - nh,)``, zero when fulfilled.
        velocity_constraint: ``(t, q, v, p) -> (nh,)`` rates that vanish, affine in ``v``: wheels that roll.
            Positions do not show whether they hold (nonholonomic constraints); where schemes correct
            positions, the corrections do not slip either.
        law: ``(p) -> ContactLaw`` with restitution and friction.
        dry_friction: ``(t, q, v, p) -> (nd,)`` rates that set-valued forces of given bounds oppose, affine
            in ``v``: dry friction of joints, brakes, clutches, motors that stall (with the wanted speed as
            offset). Units of a velocity, or [rad/s] where the force is a torque.
        dry_friction_bound: ``(p) -> (nd,)`` their bounds [N] or [N m]: ``|lambda| <= bound`` at rest, and
            ``lambda = -bound sign(rate)`` else. Impacts cannot be answered by bounded forces.
        dry_friction_law: another set-valued law of these rows, a `nsjax.contact.RateLaw`, whose numbers
            ``dry_friction_bound`` then returns, in any form. None: the bounds.
        dry_friction_contact: for every bounded row the number of the contact that it follows; -1: none; ():
            no row follows any. Its bound is ``dry_friction_bound`` times the normal force of the contact,
            and in impacts times the normal impulse: rolling resistance and friction against spinning, with
            the relative angular velocity as ``dry_friction`` and a lever arm [m] as ``dry_friction_bound``.
            Schemes whose unknown of a step is an impulse take them (Moreau, theta, Gear-Gupta-Leimkuhler).
        dry_friction_discs: numbers of bounded rows that share a bound with the row behind them: of two
            rates ``u`` about perpendicular axes, ``|lambda| <= bound`` is a disc, and
            ``lambda = -bound u / |u|`` in motion. Both follow the same contact; the bound is that of the
            first.
        damping: ``(t, q, v, p) -> (nv,)``, diagonal of ``D``, or ``(nv, nv)``: ``-dh/dv`` of dampers, which
            stand in ``force``, to be taken implicitly (``joint_damping`` of `nsjax.schemes.moreau`).
            Symmetric, and ``v D v`` never negative; neither is checked.
        switch: ``(t, q, v, p) -> (ns,)``, surfaces ``s = 0`` on which the force jumps: it has one law where
            ``s > 0`` and another elsewhere. They change no value of a run; its derivative gets the shift of
            the instants at which they are crossed.
        retract: ``(q, xi) -> q`` moves ``q`` along an increment ``xi`` (nv,).
        difference: ``(q0, q1) -> xi``, inverse of `retract`.
        prepare: ``(p) -> p`` derived constants, evaluated once per run inside the trace.
        refresh: ``(t, q, p) -> p`` values that a step holds fixed (closest points, candidate pairs,
            geometry of the configuration), evaluated at the start of every step; the functions of the
            system get its result. Derivatives at events evaluate it again, on its own result.
        allowed: ``(t, q, p) -> (nc,)`` bool, contacts that may act; None: all. The others count as open,
            whatever their gaps.
        observe: ``(t, q, v, output, p) -> dict`` of named quantities.
        shapes: ``(t, q, p) -> nsjax.shapes.Picture``, what `nsjax.animate` and `nsjax.to_paraview` draw;
            None: they refuse.
        labels: names and units.
        parts: parts for `Trajectory.body`, `joint` and `load`, a frozen record with the methods
            ``part_names(kind)`` and ``part_row(kind, name, t, q, v, output, p) -> dict``, with ``kind``
            ``"body"``, ``"joint"`` or ``"load"``, and, if units depend on the part, ``part_unit(name,
            quantity)``; None for a system that is not made of parts.
        tangent_hint: tangent with which implicit schemes iterate by default, see
            ``tangent`` of `nsjax.schemes.mixed.framework.mixed_scheme`: ``"mass"`` pays for mechanisms of
            many bodies, whose mass and gyroscopic forces are costly to differentiate; ``"kept"`` for stiff
            ones with many directional derivatives (beams); ``"full"`` else.
        structure: promise about the sparsity of the tangent, checked before a run: `nsjax.linalg.Dense`
            (up to 2000 velocities), `BlockDiagonal` (free bodies), `BlockTridiagonal`, `Sparse`, `Arrow`,
            `Interleaved` (chains with their joints), or any record of yours with the functions of
            `nsjax.linalg.Structure`; all but `Dense` need `inertia`. Rows of contacts and (other)
            constraints form a border and need not fit into the pattern. Where their directions change with
            the position, the derivatives of their forces must fit.
        islands: number of equal parts into which velocities and contacts fall, part by part, such as free
            bodies on the ground: gap and slip of a contact depend on the velocities of its part
            alone. Rows, responses and contact problems are then those of the parts, and memory and time are
            in proportion to their number. Needs ``BlockDiagonal(nv // islands)`` as structure, and neither
            constraints nor bounded rows; fill up parts of fewer contacts with some that ``allowed`` never
            lets act. Checked before a run. Schemes without islands (those that correct positions, the
            half-explicit one, nsga) treat all contacts together. 0: contacts may depend on everything.
        contact_set: the few contacts that a step evaluates, an `nsjax.core.slots.ContactSet`; None: all. If
            it is ``changing``, contacts are between two bodies each, and their rows, responses and problems
            have two blocks each, at a cost in proportion to their number: this needs ``refresh``, which
            finds them, ``BlockDiagonal``, no constraints, bounded rows nor islands, and has no derivatives.
        bounded: bounded forces among the contacts, the last ones: made of ``dry_friction`` by
            `nsjax.contact.bounded`, not given by users.
        stiff: whether it has springs or dampers with periods or decay times that may be below the step.
            Implicit mixed schemes then look at contacts that change, see
            `nsjax.schemes.mixed.base_step`; their program is larger by this.
        name, choices: how the model was made (registered name and its static options), so that a
            saved run can build it again.

    Functions are hashed by identity: write them at module level or as methods of a frozen, hashable
    record, so that a system made twice does not compile twice.

    Raises:
        InputError: for contradictory sizes or missing functions.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax import System
        >>> def mass(q, p):
        ...     return jnp.eye(1)
        >>> def force(t, q, v, p):
        ...     return -p["k"] * q
        >>> System(nq=1, nv=1, mass=mass, force=force).nc
        0
    """

    nq: int
    nv: int
    nc: int = 0
    nt: int = 0
    nb: int = 0
    nd: int = 0
    nh: int = 0
    frictionless: int = 0
    mass: Promised = None
    inertia: Fn | None = None
    force: Fn
    potential: Fn | None = None
    gap: Promised = None
    slip: Promised = None
    rows: Fn | None = None
    constraint: Promised = None
    velocity_constraint: Fn | None = None
    law: Promised = None
    dry_friction: Promised = None
    dry_friction_bound: Promised = None
    dry_friction_law: Any = None
    dry_friction_contact: tuple[int, ...] = ()
    dry_friction_discs: tuple[int, ...] = ()
    damping: Fn | None = None
    switch: Fn | None = None
    retract: Fn = add
    difference: Fn = subtract
    prepare: Fn | None = None
    refresh: Fn | None = None
    allowed: Promised = None
    observe: Fn | None = None
    shapes: Fn | None = None
    labels: Labels = Labels()
    parts: Any = None
    structure: Structure = Dense()
    islands: int = 0
    contact_set: ContactSet | None = None
    bounded: RowGroup | None = None
    tangent_hint: str = "full"
    stiff: bool = False
    name: str = ""
    choices: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        self._check()
        try:
            hash(self)
        except TypeError as error:
            raise InputError(
                f"System: {error}; functions must be at module level or methods of a frozen, "
                "hashable record, and choices must be hashable"
            ) from None

    @functools.cached_property
    def _values(self) -> tuple[Any, ...]:
        return tuple(identity(getattr(self, f.name)) for f in dataclasses.fields(self))

    @functools.cached_property
    def _hash(self) -> int:
        return hash(self._values)

    def __repr__(self) -> str:
        every = ("nq", "nv", "nc", "nt", "nb", "nd", "nh")
        sizes = [f"{x}={getattr(self, x)}" for x in every if getattr(self, x)]
        return f"System({', '.join([*([repr(self.name)] if self.name else []), *sizes])})"

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, System):
            return NotImplemented
        return bool(self._values == other._values)

    @property
    def changing_contacts(self) -> bool:
        """Whether contacts are between bodies that change from step to step, see `contact_set`."""
        return self.contact_set is not None and self.contact_set.changing

    @property
    def inside(self) -> int:
        """Number of constraints, the first ones, that the structure eliminates with the velocities."""
        structure = interleaving(self.structure)
        return structure.inside(self.nv) if self.nb and structure is not None else 0

    def _check(self) -> None:
        if self.mass is None and self.inertia is None:
            raise InputError("System: give mass or inertia")
        for size in ("nq", "nv", "nc", "nt", "nb", "nd", "nh", "frictionless"):
            value = getattr(self, size)
            check_whole(f"System: {size}", value, 1 if size in ("nq", "nv") else 0)
        if self.frictionless > self.nc:
            raise InputError(
                f"System: frictionless = {self.frictionless} of nc = {self.nc} contacts; give fewer"
            )
        if self.nh > self.nb:
            raise InputError(
                f"System: nh = {self.nh} of nb = {self.nb} constraints on velocities; count them in nb, too"
            )
        if self.nt > 2:
            raise InputError(f"System: nt = {self.nt}; a contact has 0, 1 or 2 tangents")
        check_functions(self)
        if self.nq != self.nv and (self.retract is add or self.difference is subtract):
            raise InputError(
                f"System: nq = {self.nq} and nv = {self.nv} without retract and difference; give both, or "
                "as many positions as velocities"
            )
        check_labels(self)
        check_followed(self)
        misfit = self.structure.misfit(self.nv)
        if misfit is None and self.inertia is None and not self.structure.dense:
            misfit = "mass, a dense matrix, with a structure; give inertia"
        if misfit is not None:
            raise InputError(f"System: {misfit}")
        if self.inside > self.nb - self.nh:
            raise InputError(
                f"System: nb = {self.nb - self.nh} with a structure that interleaves {self.inside} "
                "constraints; give constraint that many rows, node by node, or grounded=False"
            )
        check_islands(self)
        check_contact_set(self)
        if self.refresh is not None and self.structure.constant:
            raise InputError(
                "System: refresh with a structure that promises to be constant; drop one of them"
            )
        for name in ("allowed", "rows"):
            if getattr(self, name) is not None and not self.nc:
                raise InputError(f"System: {name} is given but never used with nc = 0")
        check_choice("System: tangent_hint", self.tangent_hint, TANGENTS)
        self._check_given()

    def _check_given(self) -> None:
        """Refuses functions that are missing, or never used, with the given sizes."""
        needed = {
            "gap": self.nc > 0, "law": self.nc > 0, "slip": self.nc > 0 and self.nt > 0,
            "constraint": self.nb > self.nh, "velocity_constraint": self.nh > 0,
            "dry_friction": self.nd > 0, "dry_friction_bound": self.nd > 0,
        }  # fmt: skip
        for function, wanted in needed.items():
            given = getattr(self, function) is not None
            if given != wanted:
                verb = "is missing" if wanted else "is given but never used"
                sizes = f"nc = {self.nc}, nt = {self.nt}, nb = {self.nb}, nd = {self.nd}, nh = {self.nh}"
                raise InputError(f"System: {function} {verb} with {sizes}")


def contact_names(system: System) -> tuple[str, ...]:
    """Names of the contacts: their labels, or ``"contact 0"`` and so on."""
    return system.labels.contacts or tuple(f"contact {k}" for k in range(system.nc))


def gap_units(system: System) -> tuple[str, ...]:
    """Units of the gaps: their labels, or metres."""
    return system.labels.gaps or ("m",) * system.nc


@kept
def joined(system: System) -> System:
    """The system with all contacts in one problem."""
    return dataclasses.replace(system, islands=0) if system.islands else system


def step_system(system: System) -> System:
    """The system that a step sees, of the contacts in its slots."""
    return system if system.contact_set is None else system.contact_set.of_step(system)


@kept
def bordered(system: System) -> System:
    """The system with all constraints in the border of its structure, which every scheme takes."""
    system = joined(system)
    if not system.inside:
        return system
    return dataclasses.replace(system, structure=interleaving(system.structure).free)


@kept
def at_nodes_alone(system: System) -> System:
    """The system with rows of contacts at their nodes alone (`nsjax.linalg.Local`), if its structure
    promises that contacts depend on nothing else, and the border has no other rows.
    """
    touched = getattr(system.structure, "touched", ())
    if not touched or len(touched) != system.nc or system.nb or system.nd or system.retract is not add:
        return system
    structure: Any = system.structure
    return dataclasses.replace(system, structure=dataclasses.replace(structure, local=True))


def is_local(system: System) -> bool:
    """Whether rows of contacts are formed at their nodes alone."""
    return bool(getattr(system.structure, "local", False))


@kept
def row_groups(system: System, contacts: bool = True) -> RowGroups:
    """The rows of a system by their laws; without ``contacts`` those of the constraints alone."""
    if not contacts or not system.nc:
        return RowGroups(system.nt, nb=system.nb)
    alike = not system.nt or system.islands or system.changing_contacts or is_local(system)
    forces = system.nc - system.bounded.count if system.bounded else system.nc
    return RowGroups.of(forces, system.nt, system.nb, 0 if alike else system.frictionless, system.bounded)


@record()
class State:
    """Time, position and velocity.

    Args:
        t: time [s].
        q: position (nq,).
        v: velocity (nv,).

    Example:
        >>> import numpy as np
        >>> from nsjax import State
        >>> State(t=0.0, q=np.zeros(2), v=np.array([1.0, 0.0])).v.shape
        (2,)
    """

    t: Array | float
    q: Array
    v: Array


@record(static=("system",))
class Problem:
    """A system with parameters and a start: everything `simulate` needs of a model.

    It iterates as ``(system, params, state)``, and is a pytree whose leaves are the numbers of ``params``
    and ``state``.

    Example:
        >>> from nsjax import models
        >>> problem = models.bouncing_ball().replace(restitution=0.5)
        >>> problem.params.restitution
        0.5
    """

    system: System
    params: PyTree
    state: State

    def __iter__(self) -> Iterator[Any]:
        return iter((self.system, self.params, self.state))

    def __str__(self) -> str:
        return problem_text(self)

    def _repr_html_(self) -> str:
        return problem_html(self)

    def keys(self) -> tuple[str, ...]:
        """Names of all numbers that `replace` takes.

        Example:
            >>> from nsjax import models
            >>> models.bouncing_ball().keys()[-3:]
            ('state.t', 'state.q', 'state.v')
        """
        return (*dotted(self.params), *START.values())

    def replace(self, numbers: Mapping[str, Any] | None = None, /, **changes: Any) -> Problem:
        """The same problem with other numbers.

        A number that enters the constraints of a mechanism of parts moves its start: the coordinates that
        `nsjax.multibody.assemble` was given stay, the others close the loops again, also with derivatives.

        Args:
            numbers: values by name: a parameter (``"friction"``), one inside a record, mapping or named
                tuple (``"rod.mass"``), an entry of an array (``"friction[2]"``), or the start
                (``"state.q"``, ``"state.v"``, ``"state.t"``). The keys of sweeps and of identification
                are understood as well: ``"params.rod.mass"``. ``"params"`` and ``"state"`` take a whole
                record or mapping, as a gradient with respect to all numbers needs it.
            changes: the same by keyword; the start is ``initial_q``, ``initial_v``, ``initial_time``.

        Raises:
            InputError: for an unknown name, with the nearest known one; for a number given twice; for a
                record or mapping that is to be replaced without giving all of its numbers; for an array in
                place of one number of a part. Negative masses and lengths, and loops that do not close, are
            refused where a run begins.

        Example:
            >>> from nsjax import models
            >>> ball = models.bouncing_ball().replace({"params.restitution": 0.5}, gravity=1.62)
            >>> ball.params.restitution, ball.params.gravity
            (0.5, 1.62)
        """
        return dataclasses.replace(self, **replaced(self, numbers, changes))


# Constraints on velocities alone, `System.velocity_constraint`, in checks and corrections of positions.


@kept
def positioned(system: System) -> System:
    """The system without its constraints on velocities alone."""
    if not system.nh:
        return system
    labels = dataclasses.replace(system.labels, constraints=system.labels.constraints[: -system.nh])
    return dataclasses.replace(
        system, nb=system.nb - system.nh, nh=0, velocity_constraint=None, labels=labels
    )


def residuals(system: System, t: Array, q: Array, p: PyTree) -> Array:
    """Residuals of all constraints (nb,); zero for constraints on velocities alone."""
    found = [] if system.constraint is None else [system.constraint(t, q, p)]
    found += [jnp.zeros(system.nh)] if system.nh else []
    return found[0] if len(found) == 1 else jnp.concatenate(found)


def slip_of(system: System, t: Array, q: Array, xi: Array, p: PyTree) -> Array:
    """Slip (nh,) [m] of an increment ``xi`` (nv,) along the constraints on velocities alone."""
    rate: Any = system.velocity_constraint
    return rate(t, q, xi, p) - rate(t, q, jnp.zeros_like(xi), p)


_EVALUATED = (
    "mass", "inertia", "force", "gap", "slip", "rows", "constraint", "velocity_constraint", "dry_friction",
    "damping",
)  # fmt: skip
"""Functions that a step evaluates and differentiates in many places."""


@kept
def traced_once(system: System) -> System:
    """The system with functions that are traced once for arguments of the same shapes, wherever a program
    evaluates or differentiates them; the program has the same operations as before.

    If the program is stored from an earlier process, the first step spends most of its time on tracing.
    Without this function, tracing the functions of models takes up to a third of this time.

    Example:
        >>> from nsjax import models
        >>> from nsjax.core.system import traced_once
        >>> system = models.bouncing_ball().system
        >>> traced_once(system) is traced_once(system)
        True
    """
    found = {name: getattr(system, name) for name in _EVALUATED}
    once: dict[str, Any] = {name: jax.jit(f, inline=True) for name, f in found.items() if f is not None}
    return dataclasses.replace(system, **once)
