"""Different mechanisms side by side, by one program that belongs to their sizes."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError, Problem, State
from nsjax.core.scheme import QUANTITIES, Scheme
from nsjax.jaxtools.control_flow import map_lanes
from nsjax.jaxtools.owned import compiled_for
from nsjax.loop import LoopProgram, RunState, trajectory
from nsjax.multibody.size_classes.packing import Packing, packed
from nsjax.multibody.size_classes.size_class import SizeClass
from nsjax.simulate import checked, rows_of
from nsjax.trajectory import Trajectory
from nsjax.types import Array, PyTree


@dataclasses.dataclass(frozen=True)
class SideBySide:
    """Mechanisms of one size class, see `side_by_side`.

    Args:
        problems: the mechanisms, lane by lane.
        packings: their parts.
        size_class: the least class that holds them all, with rounded sizes.
    """

    problems: tuple[Problem, ...]
    packings: tuple[Packing, ...]
    size_class: SizeClass

    def __len__(self) -> int:
        return len(self.problems)

    def problem(self, lane: int = 0) -> Problem:
        """A mechanism as a problem of the class, for `nsjax.simulate` and its derivatives: the system is
        that of all mechanisms of the class, params are the topology and the numbers of this one. Its
        coordinates are those of the class, quaternions first; `named` has those of the mechanism.
        """
        system, state = self.size_class.system, self.problems[lane].state
        packing = self.packings[lane]
        q, v = packing.tree.spread(self.size_class, state.q, state.v)
        params = packing.arrays(self.size_class)
        return Problem(system=system, params=params, state=State(t=state.t, q=q, v=v))

    def named(self, traj: Trajectory, lane: int = 0) -> Trajectory:
        """A run of `problem` in the names, coordinates and contacts of the mechanism, without impacts."""
        own, at = self.problems[lane], self.packings[lane].tree.places(self.size_class)
        places = self.packings[lane].contacts(self.size_class)
        rows: dict[str, Any] = {"q": traj.q[..., at[0]], "v": traj.v[..., at[1]]}
        for name, quantity in QUANTITIES.items():
            x, axes = getattr(traj, name), quantity.axes
            if x is None or not axes:
                continue
            if axes[0] == "nc":
                x = (jnp if isinstance(x, jax.Array) else np).take(x, places, axis=x.ndim - len(axes))
            rows[name] = x[..., : getattr(own.system, axes[-1])]
        carry, first, none = traj.carry.carry, traj.first_failure, None
        last = carry.state
        end = State(t=last.t, q=last.q[..., at[0]], v=last.v[..., at[1]])
        found = jnp.asarray(first.contact)[..., None] == places
        contact = jnp.sum(found * np.arange(1, len(places) + 1), axis=-1) - 1  # -1: none
        return dataclasses.replace(
            traj, system=own.system, params=own.params, events=none,
            carry=dataclasses.replace(traj.carry, carry=dataclasses.replace(carry, state=end, memory=())),
            first_failure=dataclasses.replace(first, contact=contact), **rows,
        )  # fmt: skip

    def simulate(
        self, scheme: Scheme, *, dt: float, steps: int | None = None, time: float | None = None,
        every: int = 1,
    ) -> list[Trajectory]:  # fmt: skip
        """Runs all mechanisms, as `nsjax.simulate` runs one, but without its warning of large steps before
        the run and its look at the rows after it.

        Returns:
            A trajectory for each mechanism, see `named`.
        """
        given: dict[str, Any] = {
            "dt": dt, "steps": steps, "time": time, "every": every, "save": None, "gradient": None,
            "events": 0, "notes": False, "carry": None, "progress": None,
        }  # fmt: skip
        problems = [self.problem(lane) for lane in range(len(self))]
        calls = [checked(x.system, x.params, x.state, scheme, **given) for x in problems]
        one = calls[0]
        counts = np.full(one.rows + 1, one.every)
        counts[0] = 0
        params, run = (
            jax.tree.map(lambda *x: jnp.stack(x), *(getattr(x, name) for x in calls))
            for name in ("params", "run")
        )
        found = _run_lanes(one.program, one.scheme, params, run, one.dt, counts)
        lanes = [jax.tree.map(lambda x, k=k: np.asarray(x)[k], found) for k in range(len(self))]
        made = [trajectory(one.program.system, calls[k].params, *lane) for k, lane in enumerate(lanes)]
        return [self.named(traj, lane) for lane, traj in enumerate(made)]


@compiled_for("program")
def _run_lanes(
    program: LoopProgram, scheme: Scheme, params: PyTree, run: RunState, dt: Array, counts: Array
) -> tuple[RunState, dict[str, Array | None]]:
    """State and rows of all lanes."""

    def one(lane: tuple[PyTree, RunState]) -> tuple[RunState, dict[str, Array | None]]:
        return rows_of(program, scheme, lane[0], lane[1], dt, counts)

    return map_lanes(one, (params, run))


def side_by_side(*problems: Problem) -> SideBySide:
    """Different mechanisms in one batch, and one program for all mechanisms of a size.

    `nsjax.simulate` compiles a program for each mechanism. Here parents, joints, axes, shapes and the
    places of springs, motors, limits and contacts are arrays like masses and lengths. One program, plain or
    differentiated, therefore serves all mechanisms of a size class: robots with as many bodies and
    coordinates, chains of one to twelve links, four-bars and slider-cranks. Its sizes are those of the
    largest of the ``problems``, rounded up: 6 or 7 bodies or velocities to 8, 9 to 11 to 12; springs,
    limits and contacts to 4, 6, 8, 12, 16 and so on. Kinds of parts that none of them has are not in it.

    Which program to use: `nsjax.simulate` always runs the program of the mechanism itself. Take that of a
    class for mechanisms of which many are built, for few steps each, or for a first look, also of a single
    problem: ``simulate(side_by_side(problem).problem(), ...)``. A program of one's own pays from some
    million steps (lanes times steps) on.

    Args:
        problems: mechanisms in joint coordinates, planar or spatial, results of
            `nsjax.multibody.assemble`. They may have free bodies, hinges, slides and fixed joints, in space
            ball joints, with limits and dry friction; joints of any kind that close loops, except rolling
            ones; prescribed motions, gears and other couplings of coordinates of the tree; springs, motors,
            servos, tendons, forces and moments, also with laws of a user that read nothing else (a law is
            part of the program); and contacts of points, spheres, capsules, boxes and cylinders with
            planes, and of spheres, capsules and boxes with each other.

    Returns:
        `SideBySide`; its ``simulate`` runs all mechanisms, its ``problem`` is one of them for
        `nsjax.simulate` and its derivatives.

    Raises:
        InputError: without problems; for features that the arrays do not describe, naming the first; for
            planar beside spatial mechanisms.

    Limits: a step takes 1.4 to 4 times as long as with a program of the mechanism's own, since every
    selection of a body is a product with a mask; the first program of a class compiles up to twice as long.
    Spare bodies of much smaller mechanisms cost as much as real ones. Motions agree with those of
    `nsjax.simulate` up to rounding. A start that is varied against the loops of a mechanism may be
    projected onto them in another direction.

    Example:
        >>> import nsjax
        >>> from nsjax import multibody as mb, schemes
        >>> def chain(n):
        ...     links = [mb.body(f"link{k}", mass=1.0, com=(0.0, 0.0, -0.5)) for k in range(n)]
        ...     above = ["ground", *(x.name for x in links)]
        ...     pins = [
        ...         mb.hinge(f"pin{k}", above[k], x.name, at=(0.0, 0.0, -1.0 if k else 0.0), axis=(0, 1, 0))
        ...         for k, x in enumerate(links)
        ...     ]
        ...     return mb.assemble(*links, *pins, gravity=9.81, start={"pin0": 0.1})
        >>> both = nsjax.side_by_side(chain(1), chain(2))
        >>> [x.q.shape for x in both.simulate(schemes.moreau(), dt=1e-3, steps=10)]
        [(11, 1), (11, 2)]
    """
    if not problems:
        raise InputError("side_by_side: no problem; give results of assemble")
    packings = tuple(packed(x.system.parts, x.params) for x in problems)
    classes = [x.size_class() for x in packings]
    return SideBySide(problems, packings, functools.reduce(SizeClass.joined, classes).rounded())
