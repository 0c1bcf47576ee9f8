"""Random planar trees, and their equations of motion by d'Alembert's principle: the kinematics is written
out here, everything else is differentiation.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import Problem
from nsjax.multibody import Part, assemble, body, fixed, hinge, joint_spring, slide, spring
from nsjax.types import Array

GRAVITY = (0.7, -9.81)
DECK = [(kind, backwards) for kind in ("hinge", "slide", "fixed") for backwards in (False, True)]


def turn(angle: Any) -> Array:
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([jnp.stack([c, -s]), jnp.stack([s, c])])


def vec(x: Any) -> Array:
    """None is zero, a number lies on the x axis."""
    if x is None:
        return jnp.zeros(2)
    return jnp.asarray([x, 0.0]) if np.ndim(x) == 0 else jnp.asarray(x)


class RandomTree:
    """Parts of a tree, its problem, its energies and equations.

    A free body, and a hinge, a slide and a fixed joint given from the parent to the body and from the body
    to its parent, in a random order on random parents, with random numbers; springs of all kinds.
    """

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.parts: list[Part] = []
        self.hung: list[tuple[str, str, str, bool, dict[str, Any]]] = []
        deck = [*DECK, ("free", False)]
        for k, which in enumerate(rng.permutation(len(deck))):
            self._add(rng, k, *deck[which])
        self._springs(rng)
        free = next(name for name, _, kind, _, _ in self.hung if kind == "free")
        # of bodies that hang together freely the first one has the coordinates x, y and angle
        order = sorted(rng.permutation(len(self.parts)), key=lambda k: self.parts[k].name != free)
        self.problem: Problem = assemble(*(self.parts[k] for k in order), gravity=GRAVITY)
        self.place = {x.split(" [")[0]: k for k, x in enumerate(self.problem.system.labels.q)}

    def _point(self, rng: np.random.Generator) -> Any:
        """None, a number on the x axis, or a vector."""
        return [None, float(rng.normal()), rng.normal(size=2)][int(rng.integers(3))]

    def _add(self, rng: np.random.Generator, k: int, kind: str, backwards: bool) -> None:
        name, parent = f"b{k}", "ground" if k == 0 or kind == "free" else f"b{int(rng.integers(-1, k))}"
        parent = "ground" if parent == "b-1" else parent
        inertia = None if kind in ("slide", "fixed") and rng.uniform() < 0.3 else float(rng.uniform(0.1, 1))
        self.parts.append(
            body(name, mass=float(rng.uniform(0.5, 2)), inertia=inertia, com=self._point(rng))
        )
        given: dict[str, Any] = {"at": self._point(rng), "on": self._point(rng)}
        if kind == "slide":
            angle = rng.uniform(-3, 3)
            given["axis"] = None if rng.uniform() < 0.3 else np.array([np.cos(angle), np.sin(angle)])
        if kind in ("slide", "fixed"):
            given["turned"] = None if rng.uniform() < 0.3 else float(rng.uniform(-3, 3))
        if kind in ("slide", "hinge"):
            given["armature"] = None if rng.uniform() < 0.5 else float(rng.uniform(0.1, 1))
        self.hung.append((name, parent, kind, backwards, given))
        if kind == "free":
            return
        ends = (name, parent) if backwards else (parent, name)
        self.parts.append({"hinge": hinge, "slide": slide, "fixed": fixed}[kind](f"j{k}", *ends, **given))

    def _springs(self, rng: np.random.Generator) -> None:
        def some(*names: str) -> dict[str, float]:
            return {x: float(rng.uniform(0.5, 3)) for x in names if rng.uniform() < 0.7}

        for k, (_, _, kind, _, _) in enumerate(self.hung):
            if kind in ("hinge", "slide"):
                numbers = some("stiffness", "rest", "quadratic", "cubic", "damping", "quadratic_damping")
                self.parts.append(joint_spring(f"k{k}", f"j{k}", **numbers))
        for k in range(3):
            one, other = (f"b{x}" for x in rng.choice(len(self.hung), 2, replace=False))
            ends = ("ground" if k == 0 else one, rng.normal(size=2)), (other, self._point(rng))
            numbers = some("length", "quadratic", "cubic", "damping", "quadratic_damping")
            self.parts.append(spring(f"s{k}", *ends, stiffness=3.0, **({} if k == 1 else numbers)))

    def poses(self, q: Array) -> dict[str, tuple[Array, Array]]:
        """Origin and angle of every body."""
        found = {"ground": (jnp.zeros(2), jnp.zeros(()))}
        for k, (name, parent, kind, backwards, given) in enumerate(self.hung):
            (origin, angle), x = found[parent], self.place
            at, on = vec(given["at"]), vec(given["on"])
            if kind == "free":
                found[name] = jnp.stack([q[x[f"{name}.x"]], q[x[f"{name}.y"]]]), q[x[f"{name}.angle"]]
                continue
            tilt = given.get("turned") or 0.0
            axis = jnp.asarray([1.0, 0.0]) if given.get("axis") is None else vec(given["axis"])
            gone = q[x[f"j{k}.position"]] * axis if kind == "slide" else jnp.zeros(2)
            own = q[x[f"{name}.angle"]] if kind == "hinge" else angle + (-tilt if backwards else tilt)
            if backwards:  # the body carries `at` and the axis
                found[name] = origin + turn(angle) @ on - turn(own) @ (at + gone), own
            else:
                found[name] = origin + turn(angle) @ (at + gone) - turn(own) @ on, own
        return found

    def coordinates(self, q: Array) -> dict[str, Array]:
        """Angle or displacement of every hinge and slide, second body against first."""
        poses, found = self.poses(q), {}
        for k, (name, parent, kind, backwards, _) in enumerate(self.hung):
            if kind == "slide":
                found[f"j{k}"] = q[self.place[f"j{k}.position"]]
            elif kind == "hinge":
                angle = poses[name][1] - poses[parent][1]
                found[f"j{k}"] = -angle if backwards else angle
        return found

    def lengths(self, q: Array) -> dict[str, Array]:
        """Of every spring what it acts on."""
        poses, joints, found = self.poses(q), self.coordinates(q), {}
        for part in self.parts:
            if part.kind == "joint_spring":
                found[part.name] = joints[part.option("joint")]
            elif part.kind == "spring":
                ends = [
                    poses[b][0] + turn(poses[b][1]) @ vec(x)
                    for b, x in zip(part.bodies, (part.numbers.at, part.numbers.on), strict=True)
                ]
                found[part.name] = jnp.sqrt(jnp.sum((ends[1] - ends[0]) ** 2))
        return found

    def _masses(self, q: Array) -> Array:
        """What has inertia: square roots of it times positions, angles and coordinates of joints."""
        poses, joints, found = self.poses(q), self.coordinates(q), []
        for part in self.parts:
            x = part.numbers
            if part.kind == "body":
                origin, angle = poses[part.name]
                found += [jnp.sqrt(x.mass) * (origin + turn(angle) @ vec(x.com))]
                found += [] if x.inertia is None else [jnp.sqrt(x.inertia) * angle[None]]
            elif part.name in joints and x.armature is not None:
                found.append(jnp.sqrt(x.armature) * joints[part.name][None])
        return jnp.concatenate(found)

    def potential(self, q: Array) -> Array:
        total, poses, lengths = jnp.zeros(()), self.poses(q), self.lengths(q)
        for part in self.parts:
            x = part.numbers
            if part.kind == "body":
                origin, angle = poses[part.name]
                total -= x.mass * jnp.dot(jnp.asarray(GRAVITY), origin + turn(angle) @ vec(x.com))
            elif part.name in lengths:
                e = lengths[part.name] - (x.rest or 0.0)
                total += (x.stiffness or 0.0) * e**2 / 2 + (x.quadratic or 0.0) * jnp.abs(e) ** 3 / 3
                total += (x.cubic or 0.0) * e**4 / 4
        return total

    def lost(self, q: Array, v: Array) -> Array:
        """Dissipation function: ``-c e'^2 / 2 - c2 |e'|^3 / 3`` gives the damping by its gradient."""
        rates, total = jax.jvp(self.lengths, (q,), (v,))[1], jnp.zeros(())
        for part in self.parts:
            if part.name in rates:
                x, rate = part.numbers, rates[part.name]
                total -= (x.damping or 0.0) * rate**2 / 2
                total -= (x.quadratic_damping or 0.0) * jnp.abs(rate) ** 3 / 3
        return total

    def equations(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Mass matrix and everything else, ``M dv/dt = h``."""
        rows = jax.jacfwd(self._masses)(q)
        bent = jax.jvp(lambda q: jax.jvp(self._masses, (q,), (v,))[1], (q,), (v,))[1]
        return rows.T @ rows, jax.grad(self.lost, 1)(q, v) - jax.grad(self.potential)(q) - rows.T @ bent
