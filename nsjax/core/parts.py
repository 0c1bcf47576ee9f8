"""Checks of the functions and labels that make a `nsjax.System`."""

from __future__ import annotations

import collections
from typing import Any

from nsjax.core.errors import InputError, check_whole
from nsjax.linalg import BlockDiagonal

FUNCTIONS = (
    "mass", "inertia", "force", "potential", "gap", "slip", "rows", "constraint", "velocity_constraint",
    "law", "drag", "drag_bound", "retract", "difference", "prepare", "refresh", "allowed", "observe",
    "shapes", "damping", "switch",
)  # fmt: skip


def check_functions(system: Any) -> None:
    """Refuses fields that are no functions.

    Raises:
        InputError: names the first one.
    """
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
    """Refuses a wrong number of labels, and names that occur twice.

    Raises:
        InputError: names the first one.
    """
    labels: Any = system.labels
    if not hasattr(labels, "contacts"):
        raise InputError(f"System: labels = {labels!r}; it must be an nsjax.Labels")
    counts = {"q": "nq", "v": "nv", "contacts": "nc", "gaps": "nc", "constraints": "nb", "drags": "nd"}
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

    Raises:
        InputError: names the size or the structure.
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

    Raises:
        InputError: shows ``drag_contact`` or ``drag_discs``.
    """
    which, discs = system.drag_contact, system.drag_discs
    for k in discs:
        one: tuple[int, ...] = which[k : k + 2] if 0 <= k < system.nd else ()
        if len(one) < 2 or one[0] != one[1] or one[0] < 0 or discs.count(k) > 1 or k + 1 in discs:
            raise InputError(
                f"System: drag_discs = {discs} with drag_contact = {which}; give the numbers of the first "
                "of two neighbouring rows that follow the same contact, each row once"
            )
    if not which:
        return
    if len(which) != system.nd or not all(-1 <= k < system.nc for k in which):
        raise InputError(
            f"System: drag_contact = {which} for nd = {system.nd} bounded rows and nc = {system.nc} "
            "contacts; give for each row the number of a contact, or -1"
        )


def check_follower(system: Any, scheme: Any) -> None:
    """Refuses schemes that do not take bounds that follow contacts.

    Raises:
        InputError: names the scheme.
    """
    if any(k >= 0 for k in system.drag_contact) and (scheme.impulses != "step" or scheme.locates):
        raise InputError(
            f"scheme {scheme.name!r} does not work with drag_contact = {system.drag_contact} (rolling "
            "resistance, friction against spinning); take schemes.moreau(), or give contacts a coefficient "
            "of sliding friction alone"
        )


def check_damping(system: Any, scheme: Any) -> None:
    """Refuses systems whose damping a scheme that takes it implicitly does not know.

    Raises:
        InputError: naming what is missing.
    """
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


def check_pairs(system: Any) -> None:
    """Refuses properties of a system that contacts between changing bodies exclude.

    Raises:
        InputError: names the property.
    """
    if system.pairs is None:
        return
    for size, what in (("nb", "constraints"), ("nd", "bounded rows"), ("islands", "islands")):
        if getattr(system, size):
            raise InputError(
                f"System: {size} = {getattr(system, size)} with pairs, which do not work with {what}; "
                "leave pairs out"
            )
    if not system.nc or system.refresh is None:
        lack = "nc = 0" if not system.nc else "no refresh"
        raise InputError(f"System: {lack} with pairs; give both, or leave pairs out")
    if not isinstance(system.structure, BlockDiagonal):
        raise InputError(
            f"System: structure = {system.structure} with pairs; give structure = BlockDiagonal(k) with "
            "the number k of velocities of a body"
        )
