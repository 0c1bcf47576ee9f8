"""Increments of joint coordinates in space: bodies alike are moved at once, each by its own rotation."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from nsjax.multibody import assemble, ball, body, hinge

MASS = {"mass": 1.0, "inertia": (0.1, 0.2, 0.3)}


def mixed() -> tuple[object, list[str]]:
    """Free bodies, balls that hang beside each other, a hinge between them; and what each is."""
    kinds = ["free", "free", "ball", "ball", "ball", "hinge", "free", "ball"]
    parts: list[object] = []
    for k, kind in enumerate(kinds):
        parts.append(body(f"b{k}", **MASS))
        at = (1.0 * k, 0.0, 0.0)
        if kind == "ball":
            parts.append(ball(f"h{k}", "ground", f"b{k}", at=at))
        if kind == "hinge":
            parts.append(hinge(f"h{k}", "ground", f"b{k}", at=at, axis=(0.0, 0.0, 1.0)))
    return assemble(*parts), kinds


@pytest.mark.slow
def test_every_body_by_its_own_rotation() -> None:
    problem, kinds = mixed()
    system, draw = problem.system, np.random.default_rng(2)
    q, v = np.zeros(system.nq), 0.5 * draw.normal(size=system.nv)  # less than half a turn
    sizes = {"free": (7, 6), "ball": (4, 3), "hinge": (1, 1)}
    wanted, i, j = [], 0, 0
    for kind in kinds:
        n, m = sizes[kind]
        own, step = draw.normal(size=n), v[j : j + m]
        if kind == "hinge":
            wanted.append(own + step)
        else:
            own[-4:] /= np.linalg.norm(own[-4:])
            turned = Rotation.from_quat(own[-4:], scalar_first=True) * Rotation.from_rotvec(step[-3:])
            turned = turned.as_quat(scalar_first=True)
            turned *= np.sign(turned @ own[-4:])
            wanted.append(np.concatenate([own[:-4] + step[:-3], turned]))
        q[i : i + n] = own
        i, j = i + n, j + m
    assert (i, j) == (system.nq, system.nv)
    found = np.asarray(system.retract(q, v))
    wanted = np.concatenate(wanted)
    np.testing.assert_allclose(found, wanted, atol=1e-14)
    np.testing.assert_allclose(system.retract(q, system.difference(q, found)), found, atol=1e-13)


def test_operations_do_not_grow_with_the_bodies() -> None:
    counts = []
    for n in (2, 6):
        system = assemble(*(body(f"b{k}", **MASS) for k in range(n))).system
        made = jax.make_jaxpr(system.retract)(np.zeros(system.nq), np.zeros(system.nv))
        counts.append(len(made.jaxpr.eqns))
    assert counts[0] == counts[1]
