"""Mechanisms that share one program, one by one or side by side in one run."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError, Problem, State
from nsjax.core.quantities import QUANTITIES
from nsjax.core.scheme import Scheme
from nsjax.multibody.size_classes.packing import Packing, packed
from nsjax.multibody.size_classes.size_class import SizeClass
from nsjax.simulate import simulate
from nsjax.startup.owned import compiled_for
from nsjax.trajectory import Trajectory


@dataclasses.dataclass(frozen=True)
class Shared:
    """Mechanisms of one size class, see `shared`.

    Args:
        problems: the mechanisms.
        packings: their parts.
        size_class: the class that holds them all.
    """

    problems: tuple[Problem, ...]
    packings: tuple[Packing, ...]
    size_class: SizeClass

    def __len__(self) -> int:
        return len(self.problems)

    def problem(self, k: int = 0) -> Problem:
        """Mechanism number ``k`` as a problem of the class: its system is that of all mechanisms of the
        class, its params are the topology and the numbers of this one.
        """
        own, system, state = self.packings[k], self.size_class.system, self.problems[k].state
        spare = system.nq - len(state.q)
        q, v = (jnp.concatenate([jnp.asarray(x), jnp.zeros(spare)]) for x in (state.q, state.v))
        return Problem(system=system, params=own.arrays(self.size_class), state=State(t=state.t, q=q, v=v))

    def batch(self) -> Problem:
        """All mechanisms as one problem, whose params and state have them along a first axis."""
        every = [self.problem(k) for k in range(len(self))]
        params, state = (
            jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]), *(getattr(y, name) for y in every))
            for name in ("params", "state")
        )
        return Problem(system=self.size_class.system, params=params, state=state)

    def named(self, traj: Trajectory, k: int = 0) -> Trajectory:
        """A run of `problem` as a run of mechanism number ``k``, with the names of its parts."""
        problem, places = self.problems[k], self.packings[k].contacts(self.size_class)
        nq, nv = problem.system.nq, problem.system.nv
        rows: dict[str, Any] = {"q": traj.q[..., :nq], "v": traj.v[..., :nv]}
        for name, quantity in QUANTITIES.items():
            x = getattr(traj, name)
            if x is None or not quantity.axes:
                continue
            axis = x.ndim - len(quantity.axes)
            if quantity.axes[0] == "nd":
                x = x[..., : problem.system.nd]
            elif quantity.axes[0] == "nc":
                x = (jnp if isinstance(x, jax.Array) else np).take(x, places, axis=axis)
            rows[name] = x[..., : problem.system.nt] if quantity.axes[-1] == "nt" else x
        return dataclasses.replace(
            traj, system=problem.system, params=problem.params, carry=None, events=None, **rows
        )

    def simulate(self, scheme: Scheme, *, dt: float, steps: int, every: int = 1) -> list[Trajectory]:
        """Runs of all mechanisms side by side, by one program, as trajectories with the names of their
        parts. Arguments as of `nsjax.simulate`.
        """
        batch = self.batch()
        found = _side_by_side(batch.system, steps, every, batch.params, batch.state, scheme, jnp.asarray(dt))
        lanes = [jax.tree.map(lambda x, k=k: np.asarray(x)[k], found) for k in range(len(self))]
        return [self.named(lane, k) for k, lane in enumerate(lanes)]


@compiled_for("system", "steps", "every")
def _side_by_side(
    system: Any, steps: int, every: int, params: Any, state: State, scheme: Scheme, dt: Any
) -> Trajectory:
    def one(params: Any, state: State) -> Trajectory:
        return simulate(system, params, state, scheme, dt=dt, steps=steps, every=every)

    return jax.vmap(one)(params, state)


def shared(*problems: Problem) -> Shared:
    """Mechanisms in space by a program that belongs to their sizes, not to one of them.

    `nsjax.simulate` compiles a program for each mechanism. Here parents, joints, axes, shapes and the
    places of springs, motors, limits and contacts are arrays like masses and lengths: one program, plain,
    forward or reverse, serves all mechanisms whose sizes are those of the largest, and one batch may hold
    different ones.

    Args:
        problems: results of `nsjax.multibody.assemble` in joint coordinates.

    Raises:
        InputError: without problems, and for mechanisms with features that arrays do not describe, naming
            the first: the plane, loops, couplings, prescribed motions, tendons, loads on bodies, laws that
            jump, friction against turning, groups with a capacity, shapes whose features are searched
            for (boxes on boxes, hulls, terrain), joints other than free, ball, hinge, slide and fixed.

    Returns:
        `Shared`.

    Limits: a step takes two to four times as long as by the mechanism's own program, the first program as
    long to compile. Motions are those of the own program up to rounding. Sizes are those of the largest of
    the ``problems``; spare bodies, coordinates and contacts of the others cost as much as real ones. Runs by
    `Shared.simulate` have no list of impacts and cannot be continued.

    Example:
        >>> from nsjax import schemes
        >>> from nsjax.multibody import assemble, body, hinge, shared
        >>> def chain(n):
        ...     links = [body(f"link{k}", mass=1.0, inertia=0.01, com=(0.0, 0.0, -0.5)) for k in range(n)]
        ...     over = ["ground", *(x.name for x in links)]
        ...     at = [None, *[(0.0, 0.0, -1.0)] * n]
        ...     pins = [hinge(f"pin{k}", over[k], over[k + 1], at=at[k], axis=(0, 1, 0)) for k in range(n)]
        ...     return assemble(*links, *pins, gravity=9.81, start={"pin0": 0.1})
        >>> runs = shared(chain(1), chain(2)).simulate(schemes.moreau(), dt=1e-3, steps=10)
        >>> [x.q.shape for x in runs]
        [(11, 1), (11, 2)]
    """
    if not problems:
        raise InputError("shared: no problem; give results of assemble")
    packings = tuple(packed(x.system.parts, x.params) for x in problems)
    classes = [x.size_class() for x in packings]
    return Shared(problems, packings, functools.reduce(SizeClass.joined, classes))
