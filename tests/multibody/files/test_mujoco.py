"""Mass matrices and accelerations of random trees against the package `mujoco`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.core.operators import prepared
from nsjax.multibody import assemble, ball, body, hinge, joint_spring, slide

mujoco = pytest.importorskip("mujoco", reason="the package mujoco is not installed")

KINDS = ("hinge", "slide", "ball", "free")
BODIES = 5
STATES = 100

GRAVITY = (0.3, -0.2, -9.81)


def unit(rng: np.random.Generator, n: int) -> np.ndarray:
    x = rng.normal(size=n)
    return x / np.linalg.norm(x)


def words(*values: Any) -> str:
    return " ".join(repr(float(x)) for x in np.concatenate([np.reshape(v, -1) for v in values]))


def rotation_vector(quaternion: np.ndarray) -> np.ndarray:
    q = quaternion if quaternion[0] > 0 else -quaternion
    s = np.linalg.norm(q[1:])
    return 2.0 * np.arctan2(s, q[0]) * q[1:] / s


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    found = np.zeros(4)
    mujoco.mju_mulQuat(found, a, b)
    return found


class RandomTree:
    """The same tree as parts and as MJCF."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.parts: list[Any] = []
        self.frames: list[tuple[str, np.ndarray]] = []  # kind, turn of the body in its parent
        parents, children = [], {k: [] for k in range(-1, BODIES)}
        text = {}
        for k in range(BODIES):
            parent = -1 if k == 0 else int(rng.integers(-1, k))
            kind = str(rng.choice(KINDS if parent < 0 else KINDS[:3]))
            parents.append(parent)
            children[parent].append(k)
            text[k] = self.one(rng, k, parent, kind)

        def xml(k: int) -> str:
            inner = "".join(xml(c) for c in children[k])
            return f"{text[k]}{inner}</body>"

        roots = "".join(xml(k) for k in children[-1])
        head = f'<mujoco><compiler angle="radian"/><option gravity="{words(GRAVITY)}"/>'
        self.model = mujoco.MjModel.from_xml_string(f"{head}<worldbody>{roots}</worldbody></mujoco>")
        self.problem = assemble(*self.parts, gravity=GRAVITY)
        # MuJoCo numbers bodies depth first; coordinates here stand in the order of the bodies
        self.names = [self.model.body(i).name for i in range(1, self.model.nbody)]

    def one(self, rng: np.random.Generator, k: int, parent: int, kind: str) -> str:
        name, above = f"b{k}", "ground" if parent < 0 else f"b{parent}"
        mass, com = float(rng.uniform(0.5, 2.0)), rng.normal(size=3) * 0.2
        a = rng.uniform(0.05, 0.3, 3)
        moments = np.array([a[1] + a[2], a[0] + a[2], a[0] + a[1]])
        turn = np.zeros(4)
        mujoco.mju_normalize4(q := unit(rng, 4))
        matrix = np.zeros(9)
        mujoco.mju_quat2Mat(matrix, q)
        own = matrix.reshape(3, 3)
        inertia = own @ np.diag(moments) @ own.T
        place, frame, pivot, axis = rng.normal(size=3), unit(rng, 4), rng.normal(size=3) * 0.3, unit(rng, 3)
        mujoco.mju_quat2Mat(matrix, frame)
        turn = matrix.reshape(3, 3).copy()
        full = words(np.diag(inertia), inertia[0, 1], inertia[0, 2], inertia[1, 2])
        head = f'<body name="{name}" pos="{words(place)}" quat="{words(frame)}">'
        head += f'<inertial mass="{mass!r}" pos="{words(com)}" fullinertia="{full}"/>'
        self.parts.append(body(name, mass=mass, inertia=inertia, com=com))
        self.frames.append((kind, frame))
        if kind == "free":
            return head + "<freejoint/>"
        if kind == "ball":
            self.parts.append(ball(f"j{k}", above, name, at=place + turn @ pivot, on=pivot))
            return head + f'<joint type="ball" pos="{words(pivot)}"/>'
        stiffness, rest, damping, armature = (float(x) for x in rng.uniform(0.1, 2.0, 4))
        joint = hinge if kind == "hinge" else slide
        self.parts.append(
            joint(
                f"j{k}", above, name, at=place + turn @ pivot, on=pivot, axis=turn @ axis,
                turned=rotation_vector(frame), armature=armature,
            )
        )  # fmt: skip
        self.parts.append(joint_spring(f"k{k}", f"j{k}", stiffness=stiffness, rest=rest, damping=damping))
        numbers = (
            f'stiffness="{stiffness!r}" springref="{rest!r}" damping="{damping!r}" armature="{armature!r}"'
        )
        return head + f'<joint type="{kind}" pos="{words(pivot)}" axis="{words(axis)}" {numbers}/>'

    def orders(self) -> tuple[np.ndarray, np.ndarray]:
        """Entries of MuJoCo's q and v in the order used here."""
        q, v = [], []
        for k in range(BODIES):
            joint = self.model.joint(self.model.body(f"b{k}").jntadr[0])
            nq, nv = {"free": (7, 6), "ball": (4, 3)}.get(self.frames[k][0], (1, 1))
            q += range(joint.qposadr[0], joint.qposadr[0] + nq)
            v += range(joint.dofadr[0], joint.dofadr[0] + nv)
        return np.array(q), np.array(v)

    def here(self, q: np.ndarray) -> np.ndarray:
        """MuJoCo's position in the coordinates used here: balls are turned against the parent's axes."""
        found, place = q.copy(), 0
        for kind, frame in self.frames:
            if kind == "ball":
                found[place : place + 4] = product(frame, q[place : place + 4])
            place += {"free": 7, "ball": 4}.get(kind, 1)
        return found


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 5))])
def test_random_trees(seed: int) -> None:
    """Mass matrix to 1e-12, acceleration to 1e-10 of its size, at 100 states."""
    tree = RandomTree(seed)
    system, params = tree.problem.system, tree.problem.params
    orders, data, rng = tree.orders(), mujoco.MjData(tree.model), np.random.default_rng(seed + 100)
    p = prepared(system, jax.tree.map(lambda x: jnp.asarray(x, float), params))
    mass = jax.jit(lambda q: system.mass(q, p))
    force = jax.jit(lambda q, v: system.force(jnp.zeros(()), q, v, p))
    for _ in range(STATES):
        data.qpos[:] = rng.normal(size=tree.model.nq)
        data.qvel[:] = rng.normal(size=tree.model.nv)
        mujoco.mj_normalizeQuat(tree.model, data.qpos)
        mujoco.mj_forward(tree.model, data)
        full = np.zeros((tree.model.nv, tree.model.nv))
        for row, unit_vector in zip(full, np.eye(tree.model.nv), strict=True):
            mujoco.mj_mulM(tree.model, data, row, unit_vector)
        wanted = full[np.ix_(orders[1], orders[1])]
        q, v = jnp.asarray(tree.here(data.qpos[orders[0]])), jnp.asarray(data.qvel[orders[1]])
        found = np.asarray(mass(q))
        assert np.max(np.abs(found - wanted)) <= 1e-12 * np.max(np.abs(wanted))
        acceleration = np.linalg.solve(found, np.asarray(force(q, v)))
        there = data.qacc[orders[1]]
        assert np.max(np.abs(acceleration - there)) <= 1e-10 * np.max(np.abs(there))
