"""Shooting through contacts: a hopper and a gripper, forces over time, and both motions by other means."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

import nsjax
from nsjax import schemes
from nsjax.jaxtools.compilation import compiled_once
from nsjax.multibody import actuator, assemble, body, box, contact, plane, slide, sphere

G, UP, TRUNK, LEG, FOOT = 9.81, (0.0, 1.0), 3.0, 0.5, 0.05
"""Gravity [m/s^2]; masses of the hopper [kg], radius of its foot [m]."""
HAND, FINGER, CRATE, FRICTION, PAD = 0.4, 0.06, 0.3, 0.5, 0.01
"""Masses of the gripper and its box [kg], friction of the pads and their radius [m]."""


def hopper() -> nsjax.Problem:
    """A trunk on a vertical guide, and a leg that a motor pushes out of it; the foot stands."""
    return assemble(
        body("trunk", mass=TRUNK, inertia=0.1), slide("guide", "ground", "trunk", axis=UP),
        body("leg", mass=LEG, inertia=0.01), slide("thigh", "trunk", "leg", axis=(0.0, -1.0)),
        actuator("motor", "thigh", 0.0), contact("foot", sphere("leg", FOOT), plane()), gravity=G,
        start={"trunk": 0.35 + FOOT, "thigh": 0.35},
    )  # fmt: skip


def gripper() -> nsjax.Problem:
    """A hand on a vertical guide whose two fingers touch a box on the ground."""
    half, sides = 0.04, (("left", -1.0), ("right", 1.0))
    fingers = [
        x for name, way in sides for x in (
            body(name, mass=FINGER, inertia=1e-4), slide(f"{name}_slide", "hand", name, axis=(-way, 0.0)),
            actuator(name + "_grip", f"{name}_slide", 0.0),
            contact(f"{name}_pad", sphere(name, PAD), box("box", half, half), friction=FRICTION),
        )
    ]  # fmt: skip
    return assemble(
        body("hand", mass=HAND, inertia=0.01), slide("lift", "ground", "hand", axis=UP),
        actuator("lifting", "lift", 0.0), body("box", mass=CRATE, inertia=0.01),
        slide("height", "ground", "box", axis=UP), contact("floor", sphere("box", half), plane()), *fingers,
        gravity=G, start={"hand": half, "box": half, "left": -half - PAD, "right": -half - PAD},
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Shot:
    """Forces over time that bring a mechanism where it is wanted, with little effort.

    Args:
        problem: makes the mechanism.
        inputs: names of the forces that follow the same values, one row of knots for each.
        knots: number of values of each row, evenly spaced in time, straight between them.
        end: duration [s]; ``steps``: of the scheme.
        seen: function of the last ``q, v`` with the values that are wanted; ``want``, ``miss``: these, and
            the misses that cost as much as all forces of the size ``effort`` [N].
        standing: time before which forces are at least ``least`` [s], [N].
    """

    problem: Callable[[], nsjax.Problem]
    inputs: tuple[tuple[str, ...], ...]
    knots: int
    end: float
    steps: int
    seen: Callable[[Any, Any], jax.Array]
    want: tuple[float, ...]
    miss: tuple[float, ...]
    effort: float
    standing: float = 0.0
    least: float = 0.0

    @property
    def times(self) -> np.ndarray:
        """Instants of the knots."""
        return np.linspace(0.0, self.end, self.knots)

    def run(self, forces: Any, every: int = 1) -> nsjax.Trajectory:
        """The motion under forces, all rows in one vector."""
        rows = jnp.reshape(forces, (len(self.inputs), self.knots))
        given = {
            x: nsjax.signal(self.times, row, kind="linear")
            for row, names in zip(rows, self.inputs, strict=True)
            for x in names
        }
        system, params, state = self.problem()
        return nsjax.simulate(
            system, params, state, schemes.moreau(), dt=self.end / self.steps, steps=self.steps,
            every=every, inputs=given,
        )  # fmt: skip

    def ends(self, forces: Any) -> jax.Array:
        """What is wanted, at the end of the motion."""
        run = self.run(forces, self.steps)
        return self.seen(run.q[-1], run.v[-1])

    def _least(self, size: int) -> np.ndarray:
        """Lower bounds of all forces."""
        early = np.tile(self.times < self.standing, size // self.knots)
        return np.where(early, self.least, -np.inf)

    def curve(self, forces: Any) -> tuple[np.ndarray, np.ndarray]:
        """The ends, and their derivatives by all forces through all contacts."""
        ends, slopes = _curve(jnp.asarray(forces), self)
        return np.asarray(ends), np.asarray(slopes)

    def solve(self, guess: np.ndarray, most: int) -> Any:
        """Least squares of misses and forces by scipy: Gauss and Newton's method in a region of trust."""
        want, miss, weight = np.array(self.want), np.array(self.miss), self.effort * np.sqrt(guess.size)
        at = functools.lru_cache(1)(lambda x: self.curve(np.frombuffer(x)))
        return least_squares(
            lambda x: np.concatenate([(at(x.tobytes())[0] - want) / miss, x / weight]), guess,
            lambda x: np.concatenate([at(x.tobytes())[1] / miss[:, None], np.eye(x.size) / weight]),
            x_scale=self.effort, ftol=1e-6, max_nfev=most, bounds=(self._least(guess.size), np.inf),
        )  # fmt: skip


@functools.partial(compiled_once, static_argnames=("shot",))
def _curve(forces: jax.Array, shot: Shot) -> tuple[jax.Array, jax.Array]:
    return shot.ends(forces), jax.jacfwd(shot.ends)(forces)


HOP = Shot(
    hopper, (("motor",),), 11, 0.5, 500, lambda q, v: jnp.stack([q[0], v[0], q[1], v[1]]),
    (0.75, 0.0, 0.4, 0.0), (1e-3, 1e-2, 1e-3, 1e-2), 100.0, 0.2, -0.5 * LEG * G,
)  # fmt: skip
"""Trunk 0.35 m higher and leg drawn in, both at rest; the foot stands in the beginning."""
LIFT = Shot(
    gripper, (("lifting",), ("left_grip", "right_grip")), 6, 0.5, 500,
    lambda q, v: jnp.stack([q[1], v[1], q[0] - q[1], v[0]]),
    (0.12, 0.0, 0.0, 0.0), (1e-3, 1e-2, 1e-3, 1e-2), 10.0,
)  # fmt: skip
"""Box 8 cm higher, at rest in the fingers."""


def hopped(forces: np.ndarray) -> np.ndarray:
    """End of the hopper by an event-driven integration: it stands while the ground pushes, then flies."""

    def force(t: float) -> float:
        return float(np.interp(t, HOP.times, forces))

    def moves(t: float, y: np.ndarray) -> list[float]:
        free = 0.0 if t < leaving else -force(t) / LEG - G
        return [y[1], force(t) / TRUNK - G, y[3], free]

    def leaves(t: float, _: np.ndarray) -> float:
        return force(t) + LEG * G

    leaves.terminal, leaves.direction = True, -1.0  # type: ignore[attr-defined]
    leaving, given = np.inf, {"rtol": 1e-10, "atol": 1e-12, "max_step": 2e-3}
    first = solve_ivp(moves, (0.0, HOP.end), [0.35 + FOOT, 0.0, FOOT, 0.0], events=leaves, **given)
    leaving = first.t[-1]
    y = solve_ivp(moves, (leaving, HOP.end), first.y[:, -1], **given).y[:, -1]
    return np.array([y[0], y[1], y[0] - y[2], y[1] - y[3]])


def lifted(forces: np.ndarray) -> np.ndarray:
    """Height and speed of the box that does not slip, by its balance of momentum: it leaves the ground when
    the lifting force exceeds the weight of all.
    """
    whole = HAND + 2.0 * FINGER + CRATE

    def rises(t: float, y: np.ndarray) -> list[float]:
        a = np.interp(t, LIFT.times, forces[: LIFT.knots]) / whole - G
        return [y[1], 0.0 if y[1] <= 0.0 and a < 0.0 else a]

    return solve_ivp(rises, (0.0, LIFT.end), [0.04, 0.0], rtol=1e-8, atol=1e-10, max_step=1e-3).y[:, -1]
