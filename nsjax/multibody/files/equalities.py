"""Equality constraints of a model file: joints that close loops, couplings of joints and of tendons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nsjax.multibody.couplings import coupling
from nsjax.multibody.files.source import Source, gathered
from nsjax.multibody.files.tree import HINGE, SLIDE
from nsjax.multibody.joints import ball, fixed
from nsjax.multibody.parts import Part


def equalities(source: Source, lines: set[str]) -> tuple[list[Part], list[str]]:
    """Parts of connect, weld, joint and tendon constraints, and sentences about the others.

    Args:
        source: the model file.
        lines: names of the tendons that are parts.
    """
    said: list[tuple[str, str]] = []
    count = 0 if source.off("equality") else source.model.neq
    return [part for k in range(count) for part in _equality(source, k, lines, said)], gathered(said)


def _equality(source: Source, k: int, lines: set[str], said: list[tuple[str, str]]) -> Iterator[Part]:
    model, mujoco, who = source.model, source.mujoco, source.called("equality", k)
    kind = int(model.eq_type[k])
    if not model.eq_active0[k]:
        said.append(("equality constraints that are not active at the start are left out", who))
        return
    if kind == mujoco.mjtEq.mjEQ_JOINT:
        yield from _of_joints(source, k, said)
        return
    if kind == mujoco.mjtEq.mjEQ_TENDON:
        yield from _of_tendons(source, k, lines, said)
        return
    if kind not in (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD):
        named = mujoco.mjtEq(kind).name.removeprefix("mjEQ_").lower()
        what = f"equality constraints of the kind {named} are left out: take connect, weld, joint or tendon"
        said.append((what, who))
        return
    ends, (at, on, turn) = _ends(source, k), _data(source, k)
    one, other = (source.place(b) for b in ends)
    if one.body == other.body:
        said.append((f"equality constraints that join {one.body!r} to itself are left out", who))
        return
    name, points = source.names["equality", k], {"at": one.point(at), "on": other.point(on)}
    loose = kind == mujoco.mjtEq.mjEQ_WELD and not float(model.eq_data[k][10])  # torquescale
    if kind == mujoco.mjtEq.mjEQ_CONNECT or loose:
        yield ball(name, one.body, other.body, loop=True, **points)
        return
    turned = source.rotation_vector(one.turn @ turn @ other.turn.T)
    yield fixed(name, one.body, other.body, at=points["at"], on=points["on"], turned=turned, loop=True)


def _of_joints(source: Source, k: int, said: list[tuple[str, str]]) -> Iterator[Part]:
    """A polynomial coupling of the coordinates of two hinges or slides, or one coordinate held fixed."""
    model, joints = source.model, _pair(source, k)
    who = " of ".join(source.called("joint", j) for j in joints)
    if any(int(model.jnt_type[j]) not in (HINGE, SLIDE) for j in joints):
        said.append(("couplings of balls or free joints are left out", who))
        return
    at = [float(model.qpos0[model.jnt_qposadr[j]]) for j in joints]
    yield _coupling(source, k, [source.names["joint", j] for j in joints], at)


def _of_tendons(
    source: Source, k: int, lines: set[str], said: list[tuple[str, str]]
) -> Iterator[Part]:  # fmt: skip
    """A polynomial coupling of the lengths of two tendons, or one length held fixed."""
    tendons = _pair(source, k)
    names = [source.names["tendon", j] for j in tendons]
    if not lines.issuperset(names):
        who = " of ".join(source.called("tendon", j) for j in tendons)
        said.append(("couplings of tendons that are left out are left out", who))
        return
    yield _coupling(source, k, names, [float(source.model.tendon_length0[j]) for j in tendons])


def _pair(source: Source, k: int) -> list[int]:
    """Numbers of the one or two joints or tendons that an equality couples."""
    pair = source.model.eq_obj1id[k], source.model.eq_obj2id[k]
    return [int(j) for j in pair if j >= 0]


def _coupling(source: Source, k: int, names: list[str], at: list[float]) -> Part:
    """A coupling from the polynomial of the file."""
    factors = _law(source, k, at).coef if len(names) > 1 else np.array([_law(source, k, at)(0.0)])
    most = int(np.max(np.flatnonzero(factors), initial=0))
    return coupling(source.names["equality", k], *names, polynomial=factors[: most + 1])


def _law(source: Source, k: int, at: list[float]) -> np.polynomial.Polynomial:
    """``y(x)`` from the polynomial of the file, ``y - y0 = P(x - x0)`` from the reference position ``at``,
    which is y0 alone for a coordinate that is held.
    """
    law = np.polynomial.Polynomial(np.array(source.model.eq_data[k][:5], float))
    if len(at) == 1:
        return np.polynomial.Polynomial([law.coef[0] + at[0]])
    return law(np.polynomial.Polynomial([-at[-1], 1.0])) + at[0]


def following(source: Source) -> list[tuple[int, int | None, np.polynomial.Polynomial]]:
    """Joints that follow others, leaders before their followers: number of the joint, that of its leader,
    None for a joint that is held, and its coordinate as a function of the leader's. Joints in a circle, and
    with several leaders, are left out.
    """
    model, joint = source.model, source.mujoco.mjtEq.mjEQ_JOINT
    found, twice = dict[int, Any](), set[int]()
    for k in range(0 if source.off("equality") else model.neq):
        if int(model.eq_type[k]) != joint or not model.eq_active0[k]:
            continue
        pair = _pair(source, k)
        if all(int(model.jnt_type[j]) in (HINGE, SLIDE) for j in pair):
            twice |= {pair[0]} & found.keys()
            at = [float(model.qpos0[model.jnt_qposadr[j]]) for j in pair]
            found[pair[0]] = (pair[0], pair[1] if len(pair) > 1 else None, _law(source, k, at))
    ordered: list[Any] = []
    waiting = [x for j, x in found.items() if j not in twice]
    while waiting:
        later = {x[0] for x in waiting} | twice
        ready = [x for x in waiting if x[1] not in later]
        if not ready:
            break
        ordered += ready
        waiting = [x for x in waiting if x not in ready]
    return ordered


def _ends(source: Source, k: int) -> tuple[int, int]:
    """Numbers of the two bodies of an equality constraint."""
    model = source.model
    pair = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    if int(model.eq_objtype[k]) == source.mujoco.mjtObj.mjOBJ_SITE:
        return int(model.site_bodyid[pair[0]]), int(model.site_bodyid[pair[1]])
    return pair


def _data(source: Source, k: int) -> tuple[Any, Any, np.ndarray]:
    """Points on both bodies, and rotation (3, 3) of the second body relative to the first."""
    model, data = source.model, np.array(source.model.eq_data[k], float)
    if int(model.eq_objtype[k]) == source.mujoco.mjtObj.mjOBJ_SITE:
        pair = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
        one, other = (source.turn(model.site_quat[s]) for s in pair)
        return np.array(model.site_pos[pair[0]]), np.array(model.site_pos[pair[1]]), one @ other.T
    if int(model.eq_type[k]) == source.mujoco.mjtEq.mjEQ_CONNECT:
        return data[:3], data[3:6], np.eye(3)
    return data[3:6], data[:3], source.turn(data[6:10])
