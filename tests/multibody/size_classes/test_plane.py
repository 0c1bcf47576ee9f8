"""Functions of a class of planar mechanisms, and of loops, against those of the mechanism's own program."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import multibody as mb
from nsjax.core import Problem
from tests.multibody.size_classes.test_functions import compared, drawn, values


def plane_tree(seed: int, bodies: int) -> Problem:
    """A random planar tree with joints of all kinds, some given from the body to its parent, a loop,
    loads in joints and on bodies, couplings, contacts and limits.
    """
    draw, names = np.random.default_rng(seed), ["ground"]
    point = lambda: tuple(draw.normal(scale=0.3, size=2))  # noqa: E731
    parts: list[Any] = []
    for k in range(bodies):
        name, above = f"b{k}", names[draw.integers(0, len(names))]
        armature = 0.02 if k == 0 else None
        parts.append(mb.body(name, mass=draw.uniform(0.5, 2), inertia=draw.uniform(0.1, 0.2), com=point(),
                             armature=armature))  # fmt: skip
        names.append(name)
        if k == 0:
            continue
        ends = (above, name) if draw.random() < 0.6 else (name, above)
        given: dict[str, Any] = {"at": point(), "on": point()}
        kind = ("hinge", "slide", "hinge", "fixed")[int(draw.integers(0, 4))] if k > 1 else "hinge"
        if kind in ("slide", "fixed"):
            given["turned"] = draw.normal()
        if kind in ("hinge", "slide"):
            given |= {"limits": (-4.0, 4.5), "friction": 0.1}
            given["armature"] = 0.03 if draw.random() < 0.5 else None
            parts.append(mb.joint_spring(f"s{k}", f"j{k}", stiffness=3.0, damping=0.1, cubic=0.5))
        if kind == "slide":
            angle = draw.normal()
            given["axis"] = (np.cos(angle), np.sin(angle))
        parts.append(getattr(mb, kind)(f"j{k}", *ends, **given))
    floor, far = mb.plane(at=(0.0, -9.0)), f"b{bodies - 1}"
    parts += [
        mb.spring("cord", ("b1", (0.1, 0.2)), (far, (0.3, 0.0)), stiffness=2.0, damping=0.3, length=0.2),
        mb.spring("rope", ("ground", (0.1, 3.0)), ("b0", (0.3, 0.0)), stiffness=4.0),
        mb.force("push", (far, (0.2, 0.1)), (1.0, -2.0)),
        mb.torque("turn", "b1", 0.3),
        mb.force("jet", ("b1", 0.3), (0.5, 0.2), follower=True),
        mb.tendon(
            "cable",
            ("ground", (0.1, 2.0)),
            mb.sphere("b0", 0.2, (0.0, 0.5)),
            ("b1", 0.1),
            2.0,
            (far, 0.2),
            ("b0", 0.3),
            stiffness=3.0,
            damping=0.1,
            length=0.5,
        ),
        mb.joint_tendon("belt", {"j1": 0.5}, stiffness=2.0, length=0.1, limits=(-3.0, 3.0), friction=0.2),
        mb.actuator("pull", "belt", 0.7),
        mb.contact("ball", mb.sphere("b1", 0.1, at=point()), floor, friction=0.4, restitution=0.3),
        mb.contact("rod", mb.capsule(far, 0.1, 0.3, at=point()), floor, friction=0.2),
        mb.contact("case", mb.corners("b1", 0.3, 0.2), floor, friction=0.2),
        mb.contact("both", mb.sphere("b1", 0.1), mb.sphere("b0", 0.05, at=(2.0, 0.0)), friction=0.1),
    ]
    return mb.assemble(*parts, gravity=9.81, start={"b0": (0.0, 1.0, 0.3)})


def four_bar(lengths: tuple[float, ...] = (0.2, 0.5, 0.4), rocker: bool = True) -> Problem:
    """A crank with a motor, a coupler and a rocker or slider, which close a loop, above a stop."""
    crank, rod, swing = lengths
    parts = [
        mb.body("crank", mass=0.5, inertia=0.01, com=crank / 2), mb.hinge("O", "ground", "crank"),
        mb.body("rod", mass=0.8, inertia=0.02, com=rod / 2), mb.hinge("A", "crank", "rod", at=crank),
        mb.body("end", mass=0.6, inertia=0.015, com=swing / 2 if rocker else None),
    ]  # fmt: skip
    if rocker:
        parts += [mb.hinge("B", "ground", "end", at=0.6, limits=(0.5, 2.0)),
                  mb.hinge("C", "rod", "end", at=rod, on=swing, loop=True)]  # fmt: skip
    else:
        parts += [mb.slide("B", "ground", "end", limits=(0.45, 0.68)), mb.hinge("C", "rod", "end", at=rod)]
    parts += [
        mb.joint_spring("motor", "O", damping=0.05),
        mb.joint_spring("bend", "A", stiffness=0.5),
        mb.contact("tip", mb.sphere("rod", 0.02, at=rod / 2), mb.plane(at=(0.0, -0.2)), friction=0.3),
    ]
    return mb.assemble(*parts, gravity=9.81, start={"O": (1.0, 8.0)})


def constraints(system: Any, params: Any, q: Any, v: Any) -> dict[str, Any]:
    """Values of all functions, and of the constraint rows with their rates."""
    found = values(system, params, q, v)
    if system.nb:
        p, t = system.prepare(params) if system.prepare else params, jnp.zeros(())
        x, rate = jax.jvp(lambda s: system.constraint(t, system.retract(q, s * v), p), (0.0,), (1.0,))
        found |= {"constraint": np.asarray(x), "rate": np.asarray(rate)}
    return found


def same(problem: Problem, *others: Problem, seed: int = 0) -> None:
    compared(nsjax.side_by_side(problem, *others), *drawn(problem, seed), constraints)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_functions_of_a_planar_tree(seed: int) -> None:
    same(plane_tree(seed, 5 + seed), seed=seed)


@pytest.mark.slow
def test_functions_of_spatial_parts() -> None:
    """Loops, a gear, a motion, a tendon, springs between points, and shapes with features held."""
    up, rod = (0.0, 0.0, 1.0), {"mass": 1.0, "inertia": (0.1, 0.12, 0.15)}
    same(mb.assemble(
        mb.body("a", **rod, com=(0.2, 0.0, 0.1)), mb.hinge("A", "ground", "a", axis=up),
        mb.body("b", **rod), mb.ball("B", "a", "b", at=(0.5, 0.0, 0.0)),
        mb.body("c", **rod), mb.slide("C", "ground", "c", at=(0.0, 1.0, 0.0), axis=(1, 0, 0)),
        mb.ball("D", "b", "c", at=(0.0, 0.6, 0.0), loop=True),
        mb.body("d", **rod), mb.hinge("E", "ground", "d", axis=(0, 1, 0)),
        mb.gear("mesh", "E", "A", ratio=2.0),
        mb.body("e", **rod), mb.hinge("F", "d", "e", axis=(0, 1, 0), motion=lambda t: 0.1 + t),
        mb.body("box", **rod), mb.body("bar", **rod),
        mb.spring("cord", ("a", (0.1, 0.0, 0.2)), "box", stiffness=2.0, length=0.1),
        mb.tendon("rope", "ground", ("e", (0.0, 0.2, 0.1)),
                  (mb.cylinder("d", 0.2, 0.1, axis=up), ("d", (0.5, 0.5, 0.0))), ("d", up), stiffness=3.0),
        mb.torque("twist", "b", (0.1, 0.2, 0.3), follower=True),
        mb.contact("on", mb.box("box", 0.2, 0.2, 0.1), mb.box("e", 0.3, 0.3, 0.1), friction=0.3),
        mb.contact("over", mb.capsule("bar", 0.1, 0.3), mb.box("box", 0.2, 0.2, 0.1)),
        gravity=9.81, start={"box": (0.0, 0.0, 3.0), "bar": (0.0, 3.0, 3.0)},
    ), seed=4)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("rocker", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_functions_of_a_loop_beside_a_slider_and_a_chain(rocker: bool) -> None:
    same(four_bar(rocker=rocker), four_bar(rocker=not rocker))
