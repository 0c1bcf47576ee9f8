"""Starts from a start: the nearest admissible one, and that after numbers have changed.

The position moves by Newton steps of least norm from the old start, so short that a mechanism stays in the
way in which it is put together (the flow of Newton's method does not cross singular positions). In absolute
coordinates the joint coordinates are read from the poses first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core import InputError, State, System
from nsjax.core.inputs import depends
from nsjax.core.keys import Key, child, put
from nsjax.core.start_checks import CONSTRAINT_TOLERANCE
from nsjax.jaxtools.owned import compiled_for, kept
from nsjax.math import rotations
from nsjax.multibody.coordinates.frames import Scene
from nsjax.multibody.coordinates.spatial_vectors import quaternion
from nsjax.multibody.start import (
    CLOSED,
    Closure,
    Journals,
    StartArguments,
    closing_rates,
    given_coordinates,
    openings,
    poses,
    root,
    with_journals,
)
from nsjax.multibody.topology import ENTRIES, Link
from nsjax.types import Array, PyTree, is_traced, without_values

if TYPE_CHECKING:
    from nsjax.multibody.mechanism import Mechanism

# Nearest admissible start: loops are closed, couplings hold and limits are kept. Contacts are ignored:
# `nsjax.consistent` moves a problem out of penetrations.


@compiled_for("mechanism")
def _gaps(mechanism: Mechanism, p: PyTree, q: Array) -> tuple[Array, Array]:
    """Gaps of the limits and their Jacobian."""
    system, zero = mechanism.system(), jnp.zeros(())

    def gaps(xi: Array) -> Array:
        scene = mechanism.scene(zero, system.retract(q, xi), None, p)
        signs = [(1.0 if which == "lower" else -1.0) for _, which in mechanism.presence.limits]
        found = [
            sign * (scene.coordinates(name)[0] - getattr(p[name], which))
            for sign, (name, which) in zip(signs, mechanism.presence.limits, strict=True)
        ]
        return jnp.stack([jnp.asarray(x, float) for x in found])

    rest = jnp.zeros(system.nv)
    return gaps(rest), jax.jacfwd(gaps)(rest)


def nearest_to(
    wanted: np.ndarray, equal: tuple[np.ndarray, ...], least: tuple[np.ndarray, ...]
) -> np.ndarray:
    """The vector nearest to ``wanted`` with ``J x = b`` and ``G x >= c``, by an active set of rows.
    ``wanted``: (n,); ``equal``: ``J`` (m, n) and ``b`` (m,); ``least``: ``G`` (k, n) and ``c`` (k,).

    Example:
        >>> import numpy as np
        >>> from nsjax.multibody.kept_start import nearest_to
        >>> none = np.zeros((0, 2)), np.zeros(0)
        >>> nearest_to(np.array([1.0, -2.0]), none, (np.eye(2), np.zeros(2))).tolist()
        [1.0, 0.0]
    """
    (J, b), (G, c) = equal, least
    acting: list[int] = []
    x = wanted
    turns = 50  # largest number of changes of the set of active rows in a step
    for _ in range(turns):
        rows, right = np.concatenate([J, G[acting]]), np.concatenate([b, c[acting]])
        forces = np.linalg.pinv(rows @ rows.T, rcond=1e-12) @ (right - rows @ wanted)
        x = wanted + rows.T @ forces
        pulls = forces[len(b) :]
        if len(acting) and np.min(pulls) < -1e-12:
            acting.pop(int(np.argmin(pulls)))
            continue
        miss = np.where(np.isin(np.arange(len(c)), acting), 0.0, c - G @ x)
        if not len(c) or np.max(miss) <= 1e-13:
            break
        acting.append(int(np.argmax(miss)))
    return x


def nearest_start(
    mechanism: Mechanism, p: PyTree, near: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Admissible position and velocity nearest to given ones. ``mechanism``: in joint coordinates; ``p``:
    its params; ``near``: in the form of ``start`` of `nsjax.multibody.assemble`. Raises `InputError` for
    traced numbers, and where no admissible start is found.
    """
    if without_values((p, dict(near))):
        raise InputError(
            "assemble: near with traced numbers or inside jax.jit, and the search has no derivatives; give "
            "start, and guess for what it leaves open"
        )
    q0, v0, *_ = given_coordinates(mechanism, near, "near")
    system = mechanism.system()
    p = jax.tree.map(lambda x: jnp.asarray(x, float), p)
    bound = bool(mechanism.topology.closures or mechanism.presence.motions or mechanism.presence.couplings)
    stopped, none = bool(mechanism.presence.limits), (np.zeros((0, system.nv)), np.zeros(0))
    q, rest = np.asarray(q0, float), jnp.zeros(system.nv)

    def rows(q: np.ndarray) -> tuple[Any, Any]:
        at = jnp.asarray(q)
        left, each = map(np.asarray, openings(mechanism, p, at, rest)[:2] if bound else none[::-1])
        equal = each[: len(left)], left
        least = tuple(map(np.asarray, _gaps(mechanism, p, at)))[::-1] if stopped else none
        return equal, least

    # largest number of steps of the search; each goes to the nearest point of the linearised constraints
    passes = 100
    settled = 1e-11  # step below which the search has converged [m, rad]
    for _ in range(passes):
        (J, r), (G, g) = rows(q)
        xi = nearest_to(np.asarray(system.difference(q, q0)), (J, -r), (G, -g))
        largest = float(np.max(np.abs(xi), initial=0.0))
        if largest <= settled and (not len(r) or np.max(np.abs(r)) <= CLOSED):
            break
        q = np.asarray(system.retract(jnp.asarray(q), jnp.asarray(xi * min(1.0, 0.5 / max(largest, 0.5)))))
    else:
        raise InputError(_refusal(mechanism, r, g))
    if not bound:
        return q, np.asarray(v0, float)
    v, _ = closing_rates(mechanism, 0.0, p, jnp.asarray(q), jnp.asarray(v0), jnp.eye(system.nv))
    return q, np.asarray(v)


def _refusal(mechanism: Mechanism, r: np.ndarray, g: np.ndarray) -> str:
    """The error sentence about the loop, coupling or limit with the largest violation."""
    names = [f"the loop or coupling at {x!r}" for x in mechanism.labels().constraints]
    names += [repr(".".join(x)) for x in mechanism.presence.limits]
    left = np.concatenate([np.abs(r), np.where(g < 0.0, -g, 0.0)])
    worst = int(np.argmax(left)) if len(left) else 0
    which = names[worst] if worst < len(names) else "the search"
    return (
        f"assemble: no admissible start near the given one is found: {which} misses by {left[worst]:.3g}; "
        "check lengths and limits, or give near closer to a place that the mechanism can have"
    )


# Start of a mechanism whose numbers change: given coordinates stay, and the others close the loops anew.


START = (("state",), ("state", "q"), ("state", "xi"), ("state", "v"))
"""Keys of the start, which stays where it is given as a whole; ``xi``: increments of the position."""


@dataclasses.dataclass(frozen=True)
class KeptStart:
    """Coordinates that the start of a mechanism keeps when its numbers change.

    Args:
        tree: the mechanism in the coordinates in which its start is closed, with all of its constraint
            rows: joint coordinates, or those of a mechanism with beams.
        open_position, open_rate: (nv,) whether the position, and whether the velocity, follows from the
            constraints.
        needed: numbers of independent constraint rows on positions, and on velocities.
        journals: names of bearings with clearance that the tree has as joints, and eccentricities, see
            `nsjax.multibody.start.with_journals`.
    """

    tree: Mechanism
    open_position: tuple[bool, ...]
    open_rate: tuple[bool, ...]
    needed: tuple[int, int]
    journals: Journals = ()

    def restarted(
        self, made: Mechanism, before: dict[str, PyTree], after: dict[str, PyTree], keys: Sequence[Key]
    ) -> State:
        """The start after a change of numbers. Where no position closes the loops, it stays as it is, which
        `nsjax.simulate` refuses; inside transformations it is not a number. ``before``, ``after``: params
        and state; ``keys``: of the changed numbers; a start that is given as a whole stays. Raises
        `InputError` inside transformations, for a number that moves the nodes of beams.
        """
        state: State = after["state"]
        moving = [x for x in keys if self._moves(made, after, x)]
        if not moving:
            return state
        traced = without_values((before, after))
        if traced and made.topology.all_of("beam"):
            raise InputError(
                f"{moving[0].text} enters a constraint of a mechanism with beams, whose start stays as "
                "drawn: derivatives and sweeps would begin with open joints; assemble the mechanism inside "
                "the function, with this number as its argument"
            )
        given = [x for x in moving if x.path in START]
        ways = tuple(tuple(self._open(made, level, given)) for level in (0, 1))
        known = (with_journals(x["params"], self.journals, made.dimension) for x in (before, after))
        numbers = jax.tree.map(lambda x: jnp.asarray(x, float), (*known, state))
        q, v, fits = _closed_again(self.tree, made, ways, *numbers)
        if traced:
            q, v = jnp.where(fits, q, jnp.nan), jnp.where(fits, v, jnp.nan)
        moved: dict[str, Any] = {k: x if traced else np.asarray(x) for k, x in (("q", q), ("v", v))}
        return dataclasses.replace(state, **moved) if traced or fits else state

    def open_directions(self, made: Mechanism) -> tuple[np.ndarray, np.ndarray]:
        """Directions (nv,), 1 or 0, in which constraints move position and velocity of a start."""
        if made.topology.coordinates == "absolute":
            return np.ones(made.topology.sizes[1]), np.ones(made.topology.sizes[1])
        return 1.0 * self._open(made, 0, ()), 1.0 * self._open(made, 1, ())

    def _open(self, made: Mechanism, level: int, keys: Sequence[Key]) -> np.ndarray:
        """Directions (nv,) that are free, of the position or (level 1) of the velocity. Entries that have
        just been given are kept, too; where the constraints then cannot be fulfilled, they are kept in
        place of those that the start gave. Where nothing is left, all coordinates move, but no beams.
        """
        free = np.asarray(self.open_rate if level else self.open_position)
        changed = np.zeros(len(free), bool)
        for key in keys:
            if key.path[1] in ("v", "xi"):
                changed[key.index] |= level == (key.path[1] == "v")
            for link in self.tree.topology.links if key.path[1] == "q" and not level else ():
                if link.q <= key.index < link.entries.stop:  # type: ignore[operator]
                    turns = link.turn_at is not None
                    changed[link.rates if turns else link.v + key.index - link.q] = True  # type: ignore[operator]
        ways = [free & ~changed, ~changed, np.ones(len(free), bool)]
        last = 0 if made.topology.all_of("beam") else 2
        return next(x for k, x in enumerate(ways) if x.sum() >= self.needed[level] or k == last)

    def _moves(self, made: Mechanism, base: dict[str, PyTree], key: Key) -> bool:
        """Whether a changed number moves the start."""
        if key.path in START:
            # poses do not say which joint coordinate has changed
            return key.index is not None and not _read_from_poses(self.tree, made)
        leaves, tree = jax.tree.flatten(base["params"])
        return _enters(self.tree, made, self.journals, key.path, tree, tuple(map(np.shape, leaves)))


def _read_from_poses(tree: Mechanism, made: Mechanism) -> bool:
    """Whether the state of the mechanism is poses of bodies, from which those of joints are read."""
    return tree.topology.coordinates != made.topology.coordinates


@kept
def _enters(
    tree: Mechanism, made: Mechanism, journals: Journals, path: tuple[str, ...], structure: Any, shapes: Any
) -> bool:
    """Whether constraints, or the poses of bodies from joint coordinates, depend on a number."""
    zeros: dict[str, Any] = {"t": np.zeros(())} | {
        k: np.zeros(n) for k, n in zip("qv", tree.topology.sizes, strict=True)
    }
    state = State(**zeros)
    base = {"params": jax.tree.unflatten(structure, [np.zeros(x) for x in shapes]), "state": state}
    node: Any = base
    for name in path:
        node = child(node, name)

    def equations(value: Any) -> Any:
        changed: Any = put(base, Key("", path, None), value)
        p = with_journals(changed["params"], journals, made.dimension)
        t, q, v = (jnp.asarray(getattr(changed["state"], x)) for x in "tqv")
        found = [tree.constraint(t, q, p)] if tree.rows.kept_numbers[0] else []
        found += [tree.velocity_constraint(t, q, v, p)] if tree.rows.kept_numbers[1] else []
        if _read_from_poses(tree, made):
            found += poses(tree, p, q, v, made.tree.names, made.topology.counted)
        return found

    with np.errstate(all="ignore"):  # numbers without a trace are zero
        return any(depends(equations, node))


@compiled_for("tree", "made", "ways")
def _closed_again(
    tree: Mechanism, made: Mechanism, ways: Any, before: PyTree, p: PyTree, state: State
) -> tuple[Array, Array, Array]:
    """Position and velocity of the start with new params in the open ``ways``; whether the loops close."""
    t, q, v = state.t, state.q, state.v
    read, names = _read_from_poses(tree, made), (getattr(made.tree, "names", ()), made.topology.counted)
    fits = jnp.asarray(True)
    if read:
        q, v, distance = Reading(tree, made).coordinates(before, q, v)
        # largest opening of joints at which joint coordinates are read from poses [m, rad]: runs may drift
        # by a tenth of it, and a search that fails is off by far more
        readable = 1e-3
        fits = jnp.max(jnp.abs(distance)) <= readable
        counts = poses(tree, before, q, v, *names)[0]
    if tree.rows.kept_numbers[0]:
        short = 0.1  # largest change of a coordinate in a Newton step from the old start [m, rad]
        q, left = root(Closure(tree), (t, p), q, 1.0 * np.asarray(ways[0]), short)
        fits &= jnp.max(jnp.abs(left)) <= CONSTRAINT_TOLERANCE
    if tree.rows.names:
        v, miss = closing_rates(tree, t, p, q, v, np.diag(1.0 * np.asarray(ways[1])))
        fits &= jnp.max(jnp.abs(miss)) <= CONSTRAINT_TOLERANCE * (1.0 + jnp.max(jnp.abs(v)))
    if read:
        q, v = poses(tree, p, q, v, *names)
        k = q.shape[0] - ENTRIES * len(made.topology.counted)
        q = jnp.concatenate([q[:k], state.q[k:] + (q - counts)[k:]])
    return q, v, fits


@dataclasses.dataclass(frozen=True)
class Reading:
    """Equations (`root`) of the joint coordinates of a tree for given poses of its bodies."""

    tree: Mechanism
    bodies: Mechanism

    @property
    def system(self) -> System:
        """The system whose positions are searched."""
        return self.tree.system()

    def residual(self, q: Array, data: tuple[PyTree, Array]) -> Array:
        """Differences of places and rotations, link by link."""
        p, t = data[0], jnp.zeros(())
        own, given = self.tree.scene(t, q, None, p), self.bodies.scene(t, data[1], None, p)
        return jnp.concatenate([y for x in self.tree.topology.links for y in _apart(x, own, given, p)])

    def coordinates(self, p: PyTree, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """Position and velocity of the tree from those of the bodies, and the differences that are left."""
        # long steps: the coordinates may be far from zero, where the search begins [m, rad]
        nv, far = self.tree.topology.sizes[1], 500.0
        none = given_coordinates(self.tree, {}, "start")[0]
        found, distance = root(self, (p, q), jnp.asarray(none), np.ones(nv), far)
        names = self.bodies.tree.names

        def rates(v: Array) -> Array:
            return poses(self.tree, p, found, v, names, ())[1]

        return found, jnp.linalg.pinv(jax.jacfwd(rates)(jnp.zeros(nv))) @ v, distance


def _apart(link: Link, own: Scene, given: Scene, p: PyTree) -> list[Array]:
    """Differences of the joint point and of the rotation of a body, seen from its parent, in two scenes."""
    x, a = None if link.joint is None else p[link.joint], own.algebra
    at, on = (None, None) if x is None else (x.on, x.at) if link.reversed else (x.at, x.on)

    def seen(scene: Scene) -> tuple[Array, Any]:
        arm = a.subtract(scene.point(link.body, on), scene.point(link.parent, at))
        place = a.array(a.turned_back(scene.frame(link.parent).turn, arm))
        turn = scene.rotation(link.body)
        return place, turn if own.dimension == 2 else quaternion(scene.rotation(link.parent).T @ turn)

    (place, turn), (wanted, turned) = seen(own), seen(given)
    twist = (
        jnp.reshape(turn - turned, 1) if own.dimension == 2 else rotations.rotation_between(turned, turn)
    )
    return [place - wanted, twist]


def kept_start(
    tree: Mechanism, begin: StartArguments, dropped: Sequence[str], absolute: bool, journals: Journals
) -> KeptStart | None:
    """What the start of a mechanism keeps; None where no number moves it.

    Args:
        tree: the mechanism in joint coordinates.
        begin: given coordinates.
        dropped: names of its redundant constraint rows.
        absolute: whether it is made in absolute coordinates.
        journals: see `KeptStart`.
    """
    if (not tree.rows.names and not absolute) or is_traced(journals):
        return None
    _, _, held, driven = given_coordinates(tree, begin.start if begin.near is None else {}, "start")
    for name in tree.presence.motions:  # they follow their motion
        link = tree.topology.link_of_joint.get(name)
        if link is not None:
            held[link.rates] = driven[link.rates] = False
    present = [x for x in tree.rows.names if x not in dropped]
    needed = len([x for x in present if x not in tree.rows.rates]), len(present)
    return KeptStart(tree, tuple(map(bool, ~held)), tuple(map(bool, ~driven)), needed, journals)


def kept_beams(made: Mechanism, start: Mapping[str, Any]) -> KeptStart | None:
    """What the start of a mechanism with beams keeps: nodes, and the rigid bodies that are given."""
    if not made.rows.names:
        return None
    free = np.zeros(made.topology.sizes[1], bool)
    for link in made.topology.links:
        free[link.rates] = made.topology.of[link.body].kind == "body" and link.body not in start
    rows = made.rows.kept_numbers
    return KeptStart(made, tuple(map(bool, free)), (True,) * len(free), (len(rows[0]), sum(map(len, rows))))
