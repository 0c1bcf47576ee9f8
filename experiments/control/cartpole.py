"""A cart with a pole and a policy, with the numbers and the reward of dm_control's cartpole, which MuJoCo
Playground has as its smallest task.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import nsjax
from nsjax import schemes
from nsjax.jaxtools.compilation import compiled_once
from nsjax.multibody import actuator, assemble, body, hinge, joint_spring, slide

RADIUS, LENGTH, MASS, FORCE, RAIL = 0.045, 1.0, 0.1, 10.0, 1.8
"""Radius of the pole, a capsule, length between its centres [m], mass [kg]; largest force [N]; end of the
rail [m].
"""
DT, EPISODE = 0.01, 1000
"""Step of the control [s], and steps of an episode."""

FILE = f"""<mujoco><compiler angle="radian"/><option timestep="{DT}"><flag contact="disable"/></option>
<worldbody><body name="cart" pos="0 0 1">
<joint name="slider" type="slide" limited="true" axis="1 0 0" range="-{RAIL} {RAIL}"
damping="5e-4"/>
<geom name="cart" type="box" size="0.2 0.15 0.1" mass="1"/><body name="pole">
<joint name="hinge" axis="0 1 0" damping="2e-6"/>
<geom name="pole" type="capsule" fromto="0 0 0 0 0 {LENGTH}" size="{RADIUS}" mass="{MASS}"/>
</body></body></worldbody><actuator>
<motor name="motor" joint="slider" gear="{FORCE}" ctrllimited="true" ctrlrange="-1 1"/>
</actuator></mujoco>"""
"""The mechanism as a file of MuJoCo, of which angles count from up, positive to the right."""


def pole_inertia() -> float:
    """Moment of inertia of the pole about its middle, of a cylinder and of two half spheres [kg m^2]."""
    r, h = RADIUS, LENGTH
    round_ends = MASS * 4.0 * r / (4.0 * r + 3.0 * h)
    straight = MASS - round_ends
    ends = round_ends * (0.4 * r * r + 0.25 * h * h + 0.375 * h * r)
    return straight * (0.25 * r * r + h * h / 12.0) + ends


def cart_pole() -> nsjax.Problem:
    """The mechanism of nsjax's parts; angles are counter-clockwise from up."""
    return assemble(
        body("cart", mass=1.0, inertia=1.0),
        slide("slider", "ground", "cart", limits=(-RAIL, RAIL)),
        joint_spring("bearing", "slider", damping=5e-4),
        body("pole", mass=MASS, inertia=pole_inertia(), com=(0.0, 0.5 * LENGTH)),
        hinge("pin", "cart", "pole"),
        joint_spring("air", "pin", damping=2e-6),
        actuator("motor", "slider", 0.0),
        gravity=9.81,
    )


# The task.


def reward(q: Any, v: Any, u: Any) -> Any:
    """Of a step in [0, 1]: the product of an upright pole, a centred cart, little control in [-1, 1] and
    slow turning, as in dm_control.
    """
    upright = 0.5 * (1.0 + jnp.cos(q[..., 1]))
    centred = 0.5 * (1.0 + 0.1 ** jnp.square(q[..., 0] / 2.0))
    slow = 0.5 * (1.0 + 0.1 ** jnp.square(v[..., 1] / 5.0))
    return upright * centred * (4.0 + jnp.where(jnp.abs(u) < 1.0, 1.0 - u * u, 0.0)) / 5.0 * slow


Starts = tuple[np.ndarray, np.ndarray]
"""Positions and velocities (lanes, 2)."""


def upright(draw: np.random.Generator, lanes: int, wide: float = 1.0) -> Starts:
    """Starts of the task of balance, or of a neighbourhood wider by a factor."""
    q = draw.uniform(-wide, wide, size=(lanes, 2)) * (0.1, 0.034)
    return q, 0.01 * wide * draw.normal(size=(lanes, 2))


def near_upright(draw: np.random.Generator, lanes: int) -> Starts:
    """Starts from which balance is trained."""
    return upright(draw, lanes, 8.0)


def hanging(draw: np.random.Generator, lanes: int) -> Starts:
    """Starts of the task of swinging up."""
    return (0.0, np.pi) + 0.01 * draw.normal(size=(lanes, 2)), 0.01 * draw.normal(size=(lanes, 2))


def anywhere(draw: np.random.Generator, lanes: int) -> Starts:
    """Starts from which swinging up is trained: half of them hang, half have any angle."""
    q = draw.uniform(-1.0, 1.0, size=(lanes, 2)) * (0.5, np.pi)
    q[: lanes // 2, 1] = np.pi + 0.2 * draw.normal(size=lanes // 2)
    return q, 0.5 * draw.normal(size=(lanes, 2))


@functools.cache
def machine() -> nsjax.Stepper:
    """Steps of the mechanism by the force of its motor."""
    return nsjax.stepper(cart_pole(), schemes.moreau(), DT, inputs=["motor"])


Weights = dict[str, Any]


def first_weights(seed: int, hidden: int = 32) -> Weights:
    """Of a policy with a layer of ``hidden`` units."""
    draw = np.random.default_rng(seed)
    return {
        "into": draw.normal(size=(5, hidden)) / np.sqrt(5.0), "bias": np.zeros(hidden),
        "out": 0.1 * draw.normal(size=hidden) / np.sqrt(hidden),
    }  # fmt: skip


def policy(weights: Weights, q: Any, v: Any) -> Any:
    """Control in [-1, 1] by what dm_control observes: position, cosine and sine, velocities."""
    seen = jnp.stack([q[..., 0], jnp.cos(q[..., 1]), jnp.sin(q[..., 1]), v[..., 0], v[..., 1]], axis=-1)
    layer = jnp.tanh(jnp.sum(seen[..., None] * weights["into"], axis=-2) + weights["bias"])
    return jnp.tanh(jnp.sum(layer * weights["out"], axis=-1))


def rewards(machine: nsjax.Stepper, weights: Weights, q: Any, v: Any, steps: int) -> Any:
    """Rewards (steps, lanes) of runs from positions and velocities (lanes, 2)."""
    many = machine.batch(q.shape[0])
    state = nsjax.State(t=jnp.zeros(q.shape[0]), q=jnp.asarray(q), v=jnp.asarray(v))

    def step(carry: Any, _: None) -> tuple[Any, Any]:
        u = policy(weights, carry.state.q, carry.state.v)
        carry, row = many.step(carry, FORCE * u[:, None])
        return carry, reward(row.q, row.v, u)

    return jax.lax.scan(step, many.reset(state=state), None, length=steps)[1]


def returns(weights: Weights, q: Any, v: Any) -> np.ndarray:
    """Sums of the rewards of episodes (lanes,), `EPISODE` at most."""
    return np.asarray(_returns(weights, q, v, machine()))


@functools.partial(compiled_once, static_argnames=("machine",))
def _returns(weights: Weights, q: Any, v: Any, machine: nsjax.Stepper) -> Any:
    return jnp.sum(rewards(machine, weights, q, v, EPISODE), axis=0)


# Training.


@dataclasses.dataclass(frozen=True)
class Training:
    """Adam on the mean reward of short runs, by derivatives through all steps.

    Args:
        updates: number of gradients.
        lanes, steps: runs of a gradient, and their steps.
        starts: draws the starts of so many runs.
        rate: first step of Adam, which falls to a tenth; gradients are at most 1.
    """

    updates: int = 200
    lanes: int = 16
    steps: int = 150
    starts: Callable[[np.random.Generator, int], Starts] = near_upright
    rate: float = 0.02

    @functools.cached_property
    def rule(self) -> Any:
        """The optimiser."""
        falling = optax.exponential_decay(self.rate, self.updates, 0.1)
        return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(falling))

    def run(self, seed: int) -> tuple[Weights, np.ndarray]:
        """Weights, and the mean reward of each update."""
        weights, draw, told = first_weights(seed), np.random.default_rng(seed), []
        memory = self.rule.init(weights)
        for _ in range(self.updates):
            given = self.starts(draw, self.lanes)
            value, weights, memory = _update(weights, memory, *given, self, machine())
            told.append(value)
        return weights, np.array(told)


@functools.partial(compiled_once, static_argnames=("training", "machine"))
def _update(
    weights: Weights, memory: Any, q: Any, v: Any, training: Training, machine: nsjax.Stepper
) -> tuple[Any, Weights, Any]:
    def cost(x: Weights) -> Any:
        return -jnp.mean(rewards(machine, x, q, v, training.steps))

    value, slopes = jax.value_and_grad(cost)(weights)
    change, memory = training.rule.update(slopes, memory, weights)
    return -value, optax.apply_updates(weights, change), memory


BALANCE, SWING_UP = Training(), Training(updates=400, lanes=32, steps=250, starts=anywhere)
