"""Equality constraints of a model file as joints that close loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nsjax.multibody.files.source import Source, gathered
from nsjax.multibody.joints import ball, fixed
from nsjax.multibody.parts import Part


def loops(source: Source) -> tuple[list[Part], list[str]]:
    """Joints of connect and weld, and sentences about the others."""
    said: list[tuple[str, str]] = []
    count = 0 if source.off("equality") else source.model.neq
    return [part for k in range(count) for part in _loop(source, k, said)], gathered(said)


def _loop(source: Source, k: int, said: list[tuple[str, str]]) -> Iterator[Part]:
    model, mujoco, who = source.model, source.mujoco, source.called("equality", k)
    kind = int(model.eq_type[k])
    if kind not in (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD):
        named = mujoco.mjtEq(kind).name.removeprefix("mjEQ_").lower()
        what = f"equality constraints of the kind {named} are left out, only connect and weld are joints"
        said.append((what, _coupled(source, k) if kind == mujoco.mjtEq.mjEQ_JOINT else who))
        return
    if not model.eq_active0[k]:
        said.append(("equality constraints that are not active at the start are left out", who))
        return
    ends, (at, on, turn) = _ends(source, k), _data(source, k)
    one, other = (source.place(b) for b in ends)
    if one.body == other.body:
        said.append((f"equality constraints that join {one.body!r} to itself are left out", who))
        return
    name, points = source.names["equality", k], {"at": one.point(at), "on": other.point(on)}
    if kind == mujoco.mjtEq.mjEQ_CONNECT:
        yield ball(name, one.body, other.body, loop=True, **points)
        return
    turned = source.rotation_vector(one.turn @ turn @ other.turn.T)
    yield fixed(name, one.body, other.body, at=points["at"], on=points["on"], turned=turned, loop=True)


def _coupled(source: Source, k: int) -> str:
    """Which joint follows which."""
    one, other = int(source.model.eq_obj1id[k]), int(source.model.eq_obj2id[k])
    return source.called("joint", one) + (f" of {source.called('joint', other)}" if other >= 0 else "")


def _ends(source: Source, k: int) -> tuple[int, int]:
    """Bodies."""
    model = source.model
    pair = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    if int(model.eq_objtype[k]) == source.mujoco.mjtObj.mjOBJ_SITE:
        return int(model.site_bodyid[pair[0]]), int(model.site_bodyid[pair[1]])
    return pair


def _data(source: Source, k: int) -> tuple[Any, Any, np.ndarray]:
    """Points on both bodies, and how the second is turned against the first."""
    model, data = source.model, np.array(source.model.eq_data[k], float)
    if int(model.eq_objtype[k]) == source.mujoco.mjtObj.mjOBJ_SITE:
        pair = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
        one, other = (source.turn(model.site_quat[s]) for s in pair)
        return np.array(model.site_pos[pair[0]]), np.array(model.site_pos[pair[1]]), one @ other.T
    if int(model.eq_type[k]) == source.mujoco.mjtEq.mjEQ_CONNECT:
        return data[:3], data[3:6], np.eye(3)
    return data[3:6], data[:3], source.turn(data[6:10])
