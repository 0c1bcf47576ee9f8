"""Random trees in space for tests, and their mechanics by matrices and Lagrange's equations."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.multibody import body, cylindrical, fixed, hinge, slide, universal

KINDS = {"hinge": hinge, "slide": slide, "universal": universal, "cylindrical": cylindrical, "fixed": fixed}
GRAVITY = np.array([0.3, -0.2, -9.81])


@dataclasses.dataclass(frozen=True)
class Joint:
    """As it is drawn: the parent, the kind, and its numbers."""

    above: str
    kind: str
    numbers: dict
    back: bool


def unit(rng):
    x = rng.normal(size=3)
    return x / np.linalg.norm(x)


def drawn(seed, n=8):
    """Bodies and joints of a tree: a bush, a chain, and what lies between; every fourth joint is given from
    the body to its parent, some are without numbers.
    """
    rng = np.random.default_rng(seed)
    bodies, joints = {}, {}
    for k in range(n):
        above = ["ground", f"b{k - 1}", f"b{max(0, k // 2 - 1)}"][seed % 3] if k else "ground"
        if rng.uniform() < 0.3 and k:
            above = f"b{rng.integers(k)}"
        kind = rng.choice(list(KINDS), p=[0.45, 0.2, 0.15, 0.1, 0.1]) if k > 1 else "hinge"
        inertia = [
            None, (0.3, 0.3, 0.3), tuple(rng.uniform(0.3, 0.5, 3)),
            np.diag(rng.uniform(0.3, 0.5, 3)) + 0.05,
        ][k % 4]  # fmt: skip
        bodies[f"b{k}"] = {
            "mass": rng.uniform(0.5, 2.0), "com": None if k % 3 == 2 else rng.normal(size=3),
            # a point mass on its own axis has no inertia
            "inertia": (0.2, 0.3, 0.3) if inertia is None and k % 3 == 2 else inertia,
        }  # fmt: skip
        back = k % 4 == 3
        numbers = {"at": rng.normal(size=3)} if k % 5 else {}
        if k % 2:
            numbers["on"] = rng.normal(size=3)
        if kind != "universal" and k % 3:
            numbers["turned"] = rng.normal(size=3)
        if kind in ("hinge", "cylindrical", "universal") or (kind == "slide" and k % 2):
            numbers["axis"] = unit(rng)
        if kind == "universal":
            numbers["second_axis"] = np.cross(numbers["axis"], unit(rng))
            numbers["second_axis"] /= np.linalg.norm(numbers["second_axis"])
        joints[f"b{k}"] = Joint(above, str(kind), numbers, back)
    return bodies, joints


def parts(bodies, joints):
    found = [body(name, **numbers) for name, numbers in bodies.items()]
    for name, x in joints.items():
        ends = (name, x.above) if x.back else (x.above, name)
        found.append(KINDS[x.kind](f"j_{name}", *ends, **x.numbers))
    return found


def rotation(vector):
    """Rodrigues' formula."""
    angle = np.linalg.norm(vector)
    if angle == 0.0:
        return np.eye(3)
    return about(vector / angle, angle)


def about(axis, angle):
    k = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return np.eye(3) + jnp.sin(angle) * k + (1.0 - jnp.cos(angle)) * k @ k


def across(kind, numbers, x):
    """Turn and shift from the first body's axes at the joint to the second's, at the coordinates."""
    axis = np.asarray(numbers.get("axis", (1.0, 0.0, 0.0)))
    frame = rotation(np.asarray(numbers["turned"])) if "turned" in numbers else np.eye(3)
    none = np.zeros(3)
    if kind == "fixed":
        return frame, none
    if kind == "slide":
        return frame, x[0] * axis
    if kind == "cylindrical":
        return about(axis, x[1]) @ frame, x[0] * axis
    if kind == "universal":
        return about(axis, x[0]) @ about(np.asarray(numbers["second_axis"]), x[1]), none
    return about(axis, x[0]) @ frame, none


SIZES = {"hinge": 1, "slide": 1, "universal": 2, "cylindrical": 2, "fixed": 0}


def poses(joints, places, q):
    """Turn and origin of every body, one after the other."""
    found = {"ground": (jnp.eye(3), jnp.zeros(3))}
    for name, x in joints.items():
        at, on = (np.asarray(x.numbers.get(k, np.zeros(3))) for k in ("at", "on"))
        own = q[places[name] : places[name] + SIZES[x.kind]]
        if x.back and x.kind == "universal":  # its angles are counted from the parent on
            own = own[::-1]
        turn, shift = across(x.kind, x.numbers, own)
        above, origin = found[x.above]
        if x.back:  # the body is the first, its parent the second
            own = above @ turn.T
            found[name] = own, origin + above @ on - own @ (at + shift)
        else:
            own = above @ turn
            found[name] = own, origin + above @ (at + shift) - own @ on
    return found


def lagrange(bodies, joints, places):
    """Mass matrix and generalised forces at rates."""

    def motion(q, v):
        def place(q):
            every = poses(joints, places, q)
            return {k: (every[k][0], every[k][1] + every[k][0] @ com(x)) for k, x in bodies.items()}

        at, rate = jax.jvp(place, (q,), (v,))
        return at, rate

    def com(x):
        return np.zeros(3) if x["com"] is None else x["com"]

    def energy(q, v):
        at, rate = motion(q, v)
        total = 0.0
        for k, x in bodies.items():
            (turn, _), (turned, moved) = at[k], rate[k]
            w = turn.T @ turned
            spin = jnp.stack([w[2, 1] - w[1, 2], w[0, 2] - w[2, 0], w[1, 0] - w[0, 1]]) / 2.0
            inertia = np.zeros((3, 3)) if x["inertia"] is None else np.asarray(x["inertia"], float)
            inertia = inertia if inertia.ndim == 2 else np.diag(np.broadcast_to(inertia, 3))
            total += 0.5 * x["mass"] * moved @ moved + 0.5 * spin @ inertia @ spin
        return total

    def height(q):
        return sum(-x["mass"] * GRAVITY @ motion(q, jnp.zeros_like(q))[0][k][1] for k, x in bodies.items())

    def equations(q, v):
        mass = jax.hessian(energy, 1)(q, v)
        turning = jax.jvp(lambda q: jax.grad(energy, 1)(q, v), (q,), (v,))[1]
        return mass, jax.grad(energy)(q, v) - jax.grad(height)(q) - turning

    return jax.jit(equations)


def near(found, wanted, limit=1e-12):
    size = 1.0 + np.max(np.abs(wanted), initial=0.0)
    assert np.max(np.abs(found - wanted), initial=0.0) <= limit * size
