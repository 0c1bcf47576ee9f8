"""Functions and labels of a system: their checks, their form in notebooks, energies in their place."""

from __future__ import annotations

import base64
import collections
import dataclasses
import functools
import html
import importlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.errors import InputError, check_whole
from nsjax.core.keys import child, dotted
from nsjax.core.slots import ContactSet
from nsjax.linalg import BlockDiagonal
from nsjax.renamed import renamed_fields
from nsjax.types import Array, Fn, PyTree, as_html, short


@renamed_fields
@dataclasses.dataclass(frozen=True, kw_only=True)
class Labels:
    """Names and units, each entry written ``"name [unit]"``.

    Args:
        q, v: one entry per component of ``q`` and ``v``.
        contacts, constraints, dry_frictions: one name per contact, per bilateral constraint, and per
            bounded row.
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
    dry_frictions: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()


# Checks of the functions and labels that make a `nsjax.System`.


FUNCTIONS = (
    "mass", "inertia", "force", "potential", "gap", "slip", "rows", "constraint", "velocity_constraint",
    "law", "dry_friction", "dry_friction_bound", "retract", "difference", "prepare", "refresh", "allowed",
    "observe", "shapes", "damping", "switch",
)  # fmt: skip


def check_functions(system: Any) -> None:
    """Refuses fields that are no functions."""
    for name in FUNCTIONS:
        value = getattr(system, name)
        if value is None and name not in ("force", "retract", "difference"):
            continue
        if not callable(value):
            shown = type(value).__name__ if hasattr(value, "shape") else repr(value)
            raise InputError(
                f"System: {name} = {shown}; it must be a function, also where what it returns is constant"
            )


def part_unit(parts: Any, name: str, field: str) -> str:
    """Unit of a quantity of a part of `nsjax.System.parts`, empty where these do not give it."""
    find = getattr(parts, "part_unit", None)
    return "" if find is None else str(find(name, field))


def check_labels(system: Any) -> None:
    """Refuses a wrong number of labels, and names that occur twice."""
    labels: Any = system.labels
    if not hasattr(labels, "contacts"):
        raise InputError(f"System: labels = {labels!r}; it must be an nsjax.Labels")
    counts = {
        "q": "nq", "v": "nv", "contacts": "nc", "gaps": "nc", "constraints": "nb", "dry_frictions": "nd",
    }  # fmt: skip
    for field, entries in vars(labels).items():
        if not isinstance(entries, tuple) or not all(isinstance(x, str) for x in entries):
            raise InputError(
                f"Labels: {field} = {entries!r}; give a tuple of names, ('x [m]',) for instance"
            )
        size = counts.get(field)
        if size and entries and len(entries) != getattr(system, size):
            raise InputError(
                f"Labels: {field} has {len(entries)} names; the system has {size} = "
                f"{getattr(system, size)}. Give one each, or none"
            )
    for names in ((*labels.q, *labels.v, *labels.observables), labels.contacts, labels.constraints):
        plain = [x.split(" [")[0] for x in names]
        found = collections.Counter(plain)
        double = next((x for x in plain if found[x] > 1), None)
        if double is not None:
            raise InputError(
                f"Labels: {double!r} is the name of two quantities; traj[{double!r}] needs one"
            )


def check_islands(system: Any) -> None:
    """Refuses islands that do not divide the sizes, or that constraints, bounded rows or inertia may
    couple.
    """
    n = system.islands
    check_whole("System: islands", n, 0)
    if not n:
        return
    for size in ("nv", "nc"):
        if getattr(system, size) % n or not getattr(system, size):
            raise InputError(
                f"System: {size} = {getattr(system, size)} with islands = {n}; each part must have equally "
                "many: add contacts to the smaller parts that the function allowed never lets act"
            )
    for size, what in (("nb", "constraints"), ("nd", "bounded rows")):
        if getattr(system, size):
            raise InputError(
                f"System: {size} = {getattr(system, size)} with islands = {n}; {what} couple parts: leave "
                "islands out"
            )
    if system.structure != BlockDiagonal(system.nv // n, constant=system.structure.constant):
        raise InputError(
            f"System: islands = {n} with structure = {system.structure}; give structure = "
            f"BlockDiagonal({system.nv // n})"
        )


def check_followed(system: Any) -> None:
    """Refuses bounded rows that follow contacts that do not exist, and discs of other than two rows that
    follow one contact.
    """
    which, discs = system.dry_friction_contact, system.dry_friction_discs
    law = system.dry_friction_law
    fits = system.nd and not which and not discs and callable(getattr(law, "residual", None))
    if law is not None and not fits:
        raise InputError(
            f"System: dry_friction_law = {law!r} with nd = {system.nd}, dry_friction_contact = {which}; "
            "give a record with a function residual, as nsjax.contact.RateLaw, for nd rows without "
            "dry_friction_contact"
        )
    for k in discs:
        one: tuple[int, ...] = which[k : k + 2] if 0 <= k < system.nd else ()
        if len(one) < 2 or one[0] != one[1] or one[0] < 0 or discs.count(k) > 1 or k + 1 in discs:
            raise InputError(
                f"System: dry_friction_discs = {discs} with dry_friction_contact = {which}; give the "
                "numbers of the first of two neighbouring rows that follow the same contact, each row once"
            )
    if not which:
        return
    if len(which) != system.nd or not all(-1 <= k < system.nc for k in which):
        raise InputError(
            f"System: dry_friction_contact = {which} for nd = {system.nd} bounded rows and nc = "
            f"{system.nc} contacts; give for each row the number of a contact, or -1"
        )


def check_follower(system: Any, scheme: Any) -> None:
    """Refuses schemes that do not take bounds that follow contacts, or laws of users."""
    if system.dry_friction_law is not None and scheme.traits.impulses == "contacts":
        raise InputError(
            f"scheme {scheme.name!r} does not work with dry_friction_law = {system.dry_friction_law!r}: "
            "its jumps have Coulomb's law alone; take schemes.moreau() or schemes.generalized_alpha()"
        )
    if any(k >= 0 for k in system.dry_friction_contact) and (
        scheme.traits.impulses != "step" or scheme.traits.locates
    ):
        raise InputError(
            f"scheme {scheme.name!r} does not work with dry_friction_contact = "
            f"{system.dry_friction_contact} (rolling resistance, friction against spinning); take "
            "schemes.moreau(), or give contacts a coefficient of sliding friction alone"
        )


def check_damping(system: Any, scheme: Any) -> None:
    """Refuses systems whose damping a scheme that takes it implicitly does not know."""
    who = f'scheme {scheme.name!r} with joint_damping="implicit"'
    if system.damping is None:
        raise InputError(
            f'{who}: the system has no damping. Assemble a mechanism with coordinates="joint", or give a '
            'System of your own damping=; else take joint_damping="explicit", or '
            "schemes.generalized_alpha()"
        )
    if not system.structure.dense:
        raise InputError(
            f"{who}: it needs a dense mass matrix, but structure = {system.structure}; leave structure "
            'out, or take joint_damping="explicit", or schemes.generalized_alpha()'
        )


def check_contact_set(system: Any) -> None:
    """Refuses what is no set of contacts, and properties that contacts between changing bodies exclude."""
    if not isinstance(system.contact_set, ContactSet | None):
        raise InputError(
            f"System: contact_set = {system.contact_set!r}; give a frozen record that inherits from "
            "nsjax.core.slots.ContactSet"
        )
    if not system.changing_contacts:
        return
    for size, what in (("nb", "constraints"), ("nd", "bounded rows"), ("islands", "islands")):
        if getattr(system, size):
            raise InputError(
                f"System: {size} = {getattr(system, size)} with contacts between changing "
                f"bodies, which do not work with {what}; leave contact_set out"
            )
    if not system.nc or system.refresh is None:
        lack = "nc = 0" if not system.nc else "no refresh"
        raise InputError(
            f"System: {lack} with contacts between changing bodies; give both, or leave contact_set out"
        )
    if not isinstance(system.structure, BlockDiagonal):
        raise InputError(
            f"System: structure = {system.structure} with contacts between changing bodies; give "
            "structure = BlockDiagonal(k) with the number k of velocities of a body"
        )


# Problems and runs as a notebook shows them: a table of numbers, and a picture.


PICTURES = "nsjax.plot"
"""Package of the drawing functions, which stands above this module and is imported at the first picture."""


def problem_rows(problem: Any) -> list[tuple[str, str]]:
    """Names and values of the numbers of a problem, after its system; none inside transformations."""
    if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves((problem.params, problem.state))):
        return []
    rows = [("", repr(problem.system))]
    for root, node in (("", problem.params), ("state.", problem.state)):
        for name in dotted(node):
            value = node
            for word in name.split("."):
                value = child(value, word)
            rows.append((root + name, short(np.asarray(value))))
    return rows


def problem_text(problem: Any) -> str:
    """A problem as lines of its numbers by their names."""
    rows = problem_rows(problem)
    if not rows:
        return repr(problem)
    most, start = 60, rows[-len(dotted(problem.state)) :]  # lines
    shown = rows if len(rows) <= most else [*rows[: most - len(start)], ("...", ""), *start]
    wide = max(len(name) for name, _ in shown[1:])
    return "\n".join([shown[0][1], *(f"{name:<{wide}}  {value}".rstrip() for name, value in shown[1:])])


def problem_html(problem: Any) -> str:
    """A problem as a table of its numbers by their names, beside a picture of its start."""
    rows = problem_rows(problem)
    if not rows:
        return as_html(problem)
    cells = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in rows)
    return beside(f"<table>{cells}</table>", problem)


def beside(shown: str, problem: Any) -> str:
    """HTML beside a picture of the state of a problem, where the system has shapes that can be drawn."""
    tall = 260  # height of a table beside its picture [px]; longer ones are scrolled
    box = f'<div style="max-height:{tall}px;overflow:auto">{shown}</div>'
    if problem.system.shapes is None:
        return box
    try:
        drawn = importlib.import_module(PICTURES).still(problem)
    except InputError:  # a package is missing, or the state is not finite
        return box
    source = base64.b64encode(drawn).decode()
    picture = f'<img style="height:{tall}px" src="data:image/png;base64,{source}"/>'
    return f'<div style="display:flex;gap:1em">{box}{picture}</div>'


# Equations of motion from a kinetic and a potential energy.


@dataclasses.dataclass(frozen=True)
class Lagrangian:
    """Mass matrix, force and potential derived from energies; made by `from_lagrangian`."""

    kinetic: Fn
    energy: Fn | None
    generalized: Fn | None

    def mass(self, q: Array, p: PyTree) -> Array:
        """``d2T/dv2`` (nv, nv); T is quadratic in v, so the value of v does not matter."""
        return jax.jacfwd(jax.grad(self.kinetic, argnums=1), argnums=1)(q, 0.0 * q, p)

    def force(self, t: Array, q: Array, v: Array, p: PyTree) -> Array:
        """``h = dT/dq - d/dq(dT/dv) v - dU/dq + Q``."""
        momentum = lambda q: jax.grad(self.kinetic, argnums=1)(q, v, p)  # noqa: E731
        h = jax.grad(self.kinetic)(q, v, p) - jax.jvp(momentum, (q,), (v,))[1]
        if self.energy is not None:
            h = h - jax.grad(self.energy, argnums=1)(t, q, p)
        if self.generalized is not None:
            h = h + self.generalized(t, q, v, p)
        return h

    def potential(self, t: Array, q: Array, p: PyTree) -> Array:
        """The potential energy, zero if none was given."""
        return 0.0 * q[0] if self.energy is None else self.energy(t, q, p)


@functools.cache
def from_lagrangian(kinetic: Fn, potential: Fn | None = None, force: Fn | None = None) -> Lagrangian:
    """The functions of a `System` from energies: ``d/dt dT/dv - dT/dq + dU/dq = Q``.

    Args:
        kinetic: ``T(q, v, p)`` [J], quadratic in ``v``.
        potential: ``U(t, q, p)`` [J].
        force: ``Q(t, q, v, p)`` (nv,), everything that has no potential.

    Returns:
        A record with methods ``mass``, ``force`` and ``potential`` for `System`. The same arguments
        give the same record, so a system built twice compiles once.

    Limits: coordinates form a vector space (``dq/dt = v``). Rotations by `System.retract` need
    bracket terms that energies alone do not give.

    Example:
        >>> import jax.numpy as jnp
        >>> from nsjax import System, from_lagrangian
        >>> def T(q, v, p):
        ...     return 0.5 * p["m"] * p["l"] ** 2 * v[0] ** 2
        >>> def U(t, q, p):
        ...     return -p["m"] * 9.81 * p["l"] * jnp.cos(q[0])
        >>> pendulum = from_lagrangian(T, U)
        >>> system = System(
        ...     nq=1, nv=1, mass=pendulum.mass, force=pendulum.force, potential=pendulum.potential
        ... )
        >>> pendulum.mass(jnp.zeros(1), {"m": 2.0, "l": 3.0}).tolist()
        [[18.0]]
    """
    return Lagrangian(kinetic, potential, force)


def forces_across(params: PyTree, name: str, tangential: Array) -> Array:
    """Tangential forces (..., nt) of a part's contacts, unscaled by the ratio of a grain's coefficients."""
    known, part = getattr(params, "model", params), name.split(".")[0]
    known = getattr(known, "params", known)  # of prepared ones
    x: Any = known[part] if isinstance(known, Mapping) and part in known else None
    if getattr(x, "friction_across", None) is None:
        return tangential
    ratio = jnp.asarray(x.friction_across) / jnp.asarray(x.friction)
    ratio = ratio.reshape(ratio.shape + (1,) * (jnp.ndim(tangential) - 1 - ratio.ndim))
    return jnp.concatenate([tangential[..., :1], ratio[..., None] * tangential[..., 1:]], axis=-1)
