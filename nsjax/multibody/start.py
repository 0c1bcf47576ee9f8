"""Start of a mechanism: given coordinates are kept, and the others close the loops."""

from __future__ import annotations

import dataclasses
import functools
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nsjax.core import InputError, Problem, System, nearest
from nsjax.core.keys import Prepared
from nsjax.core.operators import gap_rows, prepared, refreshed
from nsjax.core.system import contact_names
from nsjax.jaxtools import implicit_solution
from nsjax.jaxtools.compilation import compiled_once
from nsjax.jaxtools.owned import compiled_for
from nsjax.linalg.elimination import independent
from nsjax.math import rotations
from nsjax.multibody.coordinates.frames import ALGEBRA, Frame, MechanismConstants, Scene, several
from nsjax.multibody.coordinates.spatial_vectors import quaternion
from nsjax.multibody.numbers import Joint
from nsjax.multibody.parts import POINT, Part, made, number
from nsjax.multibody.topology import Link
from nsjax.statics import rest
from nsjax.types import Array, PyTree, is_traced, without_values

if TYPE_CHECKING:
    from nsjax.multibody.mechanism import Mechanism

# Closure of loops by Newton's method, velocities that keep them closed, and redundant constraint rows.


CLOSED = 1e-11
"""Largest residual of a closed loop [m, rad]: about a thousand roundings of a position of one metre."""


class RedundantConstraintsWarning(UserWarning):
    """Some constraints follow from others: the motion is right, but single reactions are not unique."""


Data = tuple[PyTree, Array, Array, Array]


@dataclasses.dataclass(frozen=True)
class Closure:
    """Equations of the closed positions of a mechanism, for `root`; its data are time and params."""

    mechanism: Mechanism

    @property
    def system(self) -> System:
        """The system whose positions are searched."""
        return self.mechanism.system()

    def residual(self, q: Array, data: tuple[Array, PyTree]) -> Array:
        """Residuals of the constraints on positions."""
        return self.mechanism.constraint(data[0], q, data[1])


@compiled_for("equations")
def root(equations: Any, data: PyTree, q: Array, free: Array, largest: Any = 0.5) -> tuple[Array, Array]:
    """Position at which ``equations.residual(q, data)`` vanishes, by Newton steps of least norm in the free
    directions, no entry above ``largest`` [m, rad], and the residual there.

    The position is differentiable by the data and by the coordinates that are kept.
    """
    system, residual = equations.system, equations.residual
    rest = np.zeros(system.nv)  # a numpy constant, since rules for derivatives must not capture tracers

    def change(q: Array, data: PyTree, free: Array) -> Callable[[Array], Array]:
        rows = jax.jacfwd(lambda xi: residual(system.retract(q, xi), data))(rest) * free
        # least norm: what need not move stays; dependent rows have no pivot
        inverse = jnp.linalg.pinv(rows, rtol=1e-10)
        return lambda found: -inverse @ found

    def solver(given: Data) -> tuple[Array, Array]:
        data, q, free, largest = given

        def step(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            q, found, k = carry
            xi = change(q, data, free)(found)
            most = jnp.max(jnp.abs(xi))
            # a long step leaves the branch of the loop on which the search begins
            q = system.retract(q, xi * jnp.where(most > largest, largest / most, 1.0))
            return q, residual(q, data), k + 1

        def unfinished(carry: tuple[Array, Array, Array]) -> Array:
            _, found, k = carry
            passes = 60  # largest number of Newton steps of a search
            return (k < passes) & ~(jnp.max(jnp.abs(found)) <= CLOSED / 10.0)

        q, _, k = lax.while_loop(unfinished, step, (q, residual(q, data), jnp.zeros((), int)))
        return q, k

    def live_step(closed: Array, given: Data) -> Callable[[Data], Array]:
        data, before, free, _ = given
        back = change(closed, data, free)

        def step(given: Data) -> Array:
            data, q, free, _ = given
            moved = system.retract(closed, system.difference(before, q) * (1.0 - free))
            return system.retract(moved, back(residual(moved, data)))

        return step

    given = data, q, jnp.asarray(free, float), jnp.asarray(largest, float)
    closed, _ = implicit_solution(solver, live_step)(given)
    return closed, residual(closed, data)


@compiled_for("mechanism")
def closing_rates(
    mechanism: Mechanism, t: Any, p: PyTree, q: Array, v: Array, ways: Array
) -> tuple[Array, Array]:
    """Velocities that close the loops, changed along free ``ways`` (nv, k), and the residual rates."""
    system = mechanism.system()
    found = gap_rows(system, "constraint", jnp.asarray(t, float), q, p)
    rows, offset = found.jacobian(), found.offset
    moved = v - ways @ (jnp.linalg.pinv(rows @ ways, rtol=1e-10) @ (rows @ v + offset))
    return moved, rows @ moved + offset


def closed_position(mechanism: Mechanism, p: PyTree, near: Any, free: np.ndarray) -> tuple[Array, Array]:
    """The first position with closed loops that the trials find, and the residuals of the loops."""
    seeded, system = np.random.default_rng(0), mechanism.system()
    if system.constraint is None:  # all rows are of velocities
        return jnp.asarray(near), jnp.zeros(1)
    # searches for a closed position: the first from the guess, the others from random ones (fixed seed)
    trials = 24
    for trial in range(trials):
        xi = seeded.uniform(-1.5, 1.5, len(free)) * free * (trial > 0)
        begun = near if trial == 0 else system.retract(jnp.asarray(near), jnp.asarray(xi))
        closed, left = root(Closure(mechanism), (jnp.zeros(()), p), jnp.asarray(begun), free)
        if is_traced((closed, left)) or float(jnp.max(jnp.abs(left))) <= CLOSED:
            break
    return closed, left


def drop_with_warning(names: tuple[str, ...], kept: tuple[int, ...], where: str) -> tuple[str, ...]:
    """Names of the rows whose numbers are not ``kept``, with a warning if there are any, which says
    ``where`` they follow from the others, ``" at the start"`` for instance.
    """
    dropped = tuple(name for k, name in enumerate(names) if k not in kept)
    if dropped:
        warnings.warn(
            f"{len(dropped)} of {len(names)} constraints follow from the others{where} and are left out "
            f"({', '.join(dropped)}); the motion is right, but single reactions are not unique: those of "
            "these rows are given as zero",
            RedundantConstraintsWarning,
            stacklevel=5,
        )
    return dropped


@compiled_for("mechanism")
def openings(mechanism: Mechanism, p: PyTree, q: Array, v: Array) -> tuple[Array, Array, Array]:
    """Residuals (nb - nh,) of the constraints at the start, Jacobian (nb, nv) of all, rates (nb,)."""
    system, t = mechanism.system(), jnp.zeros(())
    found = gap_rows(system, "constraint", t, q, p)
    left = jnp.zeros(0) if system.constraint is None else system.constraint(t, q, p)
    return left, found.jacobian(), found.rate(v)


TURN = 2.0 * math.pi
"""Angle of a start [rad] beyond which a warning asks for its unit."""

Start = Mapping[str, Any]

_exponential = jax.jit(rotations.exponential)


def given_coordinates(mechanism: Mechanism, start: Start, who: str) -> tuple[Any, Any, Any, Any]:
    """Position and velocity with the given values, else zeros, and masks (nv,) of the coordinates whose
    position, and whose velocity, is given. Raises `InputError` for unknown names and shapes that do not
    fit.
    """
    topology = mechanism.topology
    nv = topology.sizes[1]
    xp = jnp if without_values(dict(start)) else np
    q, v = [xp.zeros(0)] * len(topology.links), [xp.zeros(0)] * len(topology.links)
    held, driven = np.zeros(nv, bool), np.zeros(nv, bool)
    links = sorted(topology.links, key=lambda x: (x.q, x.v))
    known = {x.body: k for k, x in enumerate(links)} | {x.joint: k for k, x in enumerate(links) if x.joint}
    for k, link in enumerate(links):
        q[k], v[k] = np.zeros(link.size[0]), np.zeros(link.size[1])
        if link.turn_at is not None:
            q[k][link.turn_at] = 1.0
    for name, value in start.items():
        if name not in known:
            loop = name in topology.of and name in topology.closures
            why = "it closes a loop; give bodies or other joints" if loop else nearest(name, list(known))
            raise InputError(f"{who}: {name!r} has no coordinates; {why}")
        k = known[name]
        link, own = links[k], links[k].rates
        if held[own].any():
            raise InputError(f"{who}: {link.body!r} is given twice, as body and as joint; give it once")
        position, rate = pair_of(value, link)
        q[k], held[own] = position_of(link, position, who, xp), True
        if rate is not None:
            v[k], driven[own] = rate_of(link, rate, who, xp), True
    return xp.concatenate([*q, np.zeros(0)]), xp.concatenate([*v, np.zeros(0)]), held, driven


def pair_of(value: Any, link: Link) -> tuple[Any, Any]:
    """Position and velocity of a start; a single value is a position, with None as velocity."""
    two = isinstance(value, tuple | list) and len(value) == 2
    scalars = two and not any(map(_wide, value))
    if two and (not scalars or link.size[1] == 1):
        return value[0], value[1]
    return value, None


def _wide(x: Any) -> bool:
    """Whether a value is no scalar; a pose may be a ragged pair, of which numpy makes no array."""
    return isinstance(x, tuple | list) or np.ndim(x) > 0


def _entries(value: Any, what: str, xp: Any) -> Any:
    """Entries of a vector, or of several vectors, as one array (n,)."""
    parts = value if isinstance(value, tuple | list) and any(map(_wide, value)) else [value]
    try:
        if any(np.asarray(x).dtype.kind not in "biuf" for x in parts if not is_traced(x)):
            raise TypeError
        return xp.concatenate([xp.asarray(x, float).reshape(-1) for x in parts])
    except (TypeError, ValueError):
        raise InputError(
            f"{what} = {value!r}; give numbers, as a position or as a pair (position, velocity)"
        ) from None


def _check_entries(link: Link, what: str, flat: Any, size: int, who: str) -> None:
    """Refuses positions and velocities of another length; a body on a joint has those of the joint."""
    if flat.shape[0] != size:
        hangs = "" if link.free else f", since it hangs on {link.kind.name} {link.joint!r}"
        raise InputError(
            f"{who}: {what} of {link.body!r} has {flat.shape[0]} entries; it needs {size}{hangs}"
        )


def position_of(link: Link, value: Any, who: str, xp: Any) -> Any:
    """A given position as entries of ``q``; rotation vectors become quaternions."""
    flat = _entries(value, f"{who}: position of {link.body!r}", xp)
    size, first = link.size[0], link.turn_at
    if first is not None:
        place, turn = flat[:first], flat[first:]
        if flat.shape[0] not in ((3, 6, 7) if first else (3, 4)):
            turning = "a rotation vector or quaternion"
            pose = f"(x, y, z) and {turning}" if first else turning
            nested = "((x, y, z), turn), ((vx, vy, vz), (wx, wy, wz))" if first else "turn, (wx, wy, wz)"
            raise InputError(
                f"{who}: position of {link.body!r} has {flat.shape[0]} entries; give {pose}, with "
                f"velocities as the pair ({nested})"
            )
        if turn.shape[0] == 3:
            turn = xp.asarray(_exponential(xp.asarray(turn)))
        if turn.shape[0] == 0:
            turn = np.array([1.0, 0, 0, 0])
        turn = turn / xp.sqrt(xp.sum(turn * turn))
        return xp.concatenate([place, xp.asarray(turn)])
    _check_entries(link, "position", flat, size, who)
    angles = flat[link.kind.slides :]
    if not is_traced(angles) and np.any(np.abs(angles) > TURN):
        largest = float(np.asarray(angles)[np.argmax(np.abs(angles))])
        warnings.warn(
            f"{who}: the angle of {link.body!r} is {largest:g} rad, {largest / TURN:.3g} turns; for "
            f"degrees, give np.radians({largest:g})",
            stacklevel=2,
        )
    return flat


def rate_of(link: Link, value: Any, who: str, xp: Any) -> Any:
    """A given velocity as entries of ``v``; for a free body, the translational velocity suffices."""
    flat = _entries(value, f"{who}: velocity of {link.body!r}", xp)
    size = link.size[1]
    if link.free and size == 6 and flat.shape[0] == 3:
        flat = xp.concatenate([flat, np.zeros(3)])
    _check_entries(link, "velocity", flat, size, who)
    return flat


@dataclasses.dataclass(frozen=True)
class StartArguments:
    """Arguments of `nsjax.multibody.assemble` for the start of a mechanism."""

    start: Start = dataclasses.field(default_factory=dict)
    guess: Start = dataclasses.field(default_factory=dict)
    near: Start | None = None


# Bearings with clearance: at the start they are joints through the centre of the journal.

Journals = tuple[tuple[str, Any], ...]
"""Contacts of a sphere in a round hole by name, and the vectors from the centres of the holes [m]."""


def journals_of(parts: Sequence[Part], start: Start, dimension: int) -> tuple[Start, Journals]:
    """The start without the bearings with clearance that it names, and the eccentricities in these. Raises
    `InputError` for a contact that is no bearing, and eccentricities beyond the clearance.
    """
    contacts = {x.name: x for x in parts if x.kind == "contact" and x.name in start}
    found = []
    for name, x in contacts.items():
        who = f"start: contact {name!r}"
        if x.option("shapes") != ("sphere", "hole") or x.numbers.second.axis is not None:
            raise InputError(
                f"{who} is one of {' and '.join(x.option('shapes'))}; a start places a sphere in a round "
                "hole, without axis; give positions of bodies in place of this one"
            )
        if any(y.kind == "beam" for y in parts):
            raise InputError(f"{who} has no start in a mechanism with beams; give positions of bodies")
        given = number("start", name, "eccentricity", start[name], form=POINT)
        flat = jnp.asarray(given) if is_traced(given) else np.asarray(0.0 if given is None else given)
        if flat.shape not in ((), (dimension,)):
            raise InputError(f"{who}: eccentricity has shape {flat.shape}; give {dimension} numbers [m]")
        off = tuple(flat if flat.ndim else (flat, *(0.0,) * (dimension - 1)))
        most = x.numbers.second.radius - (0.0 if x.numbers.first.radius is None else x.numbers.first.radius)
        if not is_traced((off, most)):
            off = tuple(map(float, off))
            if math.hypot(*off) > most * (1.0 + 1e-9):  # rounding
                raise InputError(
                    f"{who}: the eccentricity is {math.hypot(*off):.3g} m, beyond its clearance of "
                    f"{most:.3g} m; give a smaller one"
                )
        found.append((name, off))
    return {k: x for k, x in start.items() if k not in contacts}, tuple(found)


def with_journals(p: PyTree, journals: Journals, dimension: int) -> PyTree:
    """Params with numbers of ideal joints in place of those of bearings with clearance."""
    a, own = ALGEBRA[dimension], {}
    for name, off in journals:
        at = a.array(a.add(a.vector(p[name].second.at), a.vector(jnp.stack(off))))
        own[name] = Joint(at=at, on=a.array(a.vector(p[name].first.at)))
    return {**p, **own} if own else p


def as_joint(part: Part, dimension: int) -> Part:
    """The joint, without its numbers, in place of a bearing with clearance; it closes a loop."""
    kind = "hinge" if dimension == 2 else "ball"
    return made(kind, part.name, part.bodies[::-1], Joint(), loop=True)


def close(mechanism: Mechanism, p: PyTree, start: Start, guess: Start) -> tuple[Any, Any]:
    """Position and velocity at the start in joint coordinates, with closed loops. Raises `InputError` if
    the loops do not close with the given coordinates.
    """
    q, v, held, driven = given_coordinates(mechanism, start, "start")
    presence = mechanism.presence
    if not (mechanism.topology.closures or presence.motions or presence.couplings):
        return q, v
    near = given_coordinates(mechanism, {**guess, **start}, "guess")[0]
    free, names = ~held, mechanism.labels().constraints
    p = jax.tree.map(lambda x: jnp.asarray(x, float), p)
    closed, left = closed_position(mechanism, p, near, free)
    if not is_traced((closed, left)) and not float(jnp.max(jnp.abs(left))) <= CLOSED:
        worst = int(np.argmax(np.abs(left)))
        if names[worst] in presence.couplings:
            part = mechanism.topology.of[names[worst]]
            raise InputError(
                f"assemble: {part.kind} {part.name!r} has an error of {float(left[worst]):.3g} in every "
                "position that is found: it contradicts a loop, another coupling or the start; check its "
                "numbers, or leave the start of one more body open"
            )
        raise InputError(
            f"assemble: the loop at {names[worst]!r} does not close, by {float(left[worst]):.3g}; check "
            "lengths, leave the start of one more body open, or give guess= for those that are open"
        )
    v, miss = closing_rates(mechanism, 0.0, p, closed, jnp.asarray(v), np.diag(1.0 * ~driven))
    if is_traced((v, miss)):
        return closed, v
    if not float(jnp.max(jnp.abs(miss))) <= 1e-9 * max(1.0, float(jnp.max(jnp.abs(v)))):
        worst = int(np.argmax(np.abs(miss)))
        if not np.any(driven):
            raise InputError(
                f"assemble: prescribed motions and couplings contradict each other: no velocities fulfil "
                f"{names[worst]!r}, {float(miss[worst]):.3g} is missing; leave one of them out"
            )
        raise InputError(
            f"assemble: the given velocities open the loop at {names[worst]!r} with "
            f"{float(miss[worst]):.3g}; leave the velocity of one of its bodies out"
        )
    return np.asarray(closed), np.asarray(v)


def at_rest(problem: Problem) -> Problem:
    """A mechanism in a stable equilibrium, with the velocities of prescribed motions there. Raises
    `InputError` for traced numbers, without an equilibrium, and if it violates a contact or limit.
    """
    who, mechanism = "assemble(start='equilibrium')", problem.system.parts
    if without_values((problem.params, problem.state)):
        raise InputError(
            f"{who}: numbers are traced, and the search has no derivatives; assemble with plain numbers "
            "outside of jax.jit, and give the position as start"
        )
    found = rest(problem, who)
    system, q = found.system, jnp.asarray(found.state.q)
    p = jax.tree.map(lambda x: jnp.asarray(x, float), found.params)
    if system.nc:
        t = jnp.asarray(found.state.t, float)
        gaps = np.asarray(system.gap(t, q, refreshed(system, t, q, prepared(system, p))))
        worst = int(np.argmin(gaps))
        inside = 1e-9  # largest violation of a contact or limit that an equilibrium may have [m, rad]
        if gaps[worst] < -inside:
            name = contact_names(system)[worst]
            raise InputError(
                f"{who}: the equilibrium without contacts and limits violates {name!r} by "
                f"{-gaps[worst]:.3g}; find one in which it is closed with "
                f"nsjax.analysis.equilibrium(problem, contacts=[{name!r}]), or give positions as start"
            )
    if not mechanism.presence.motions:
        return found
    v = closing_rates(mechanism, 0.0, p, q, jnp.zeros(system.nv), jnp.eye(system.nv))[0]
    return found.replace(initial_v=np.asarray(v))


def dependent_rows(mechanism: Mechanism, p: PyTree, q: Any) -> tuple[str, ...]:
    """Names of the constraint rows that follow from others in every closed position, to be left out. In
    singular positions (a dead centre) more rows are dependent; therefore other positions near the start are
    examined, too.
    """
    bare = dataclasses.replace(mechanism.presence, motions=(), dropped=())
    loops, still = dataclasses.replace(mechanism, presence=bare), jnp.zeros(mechanism.topology.sizes[1])
    rows = mechanism.topology.closures or bare.couplings
    if not rows or without_values((p, q)):
        return ()
    p = jax.tree.map(lambda x: jnp.asarray(x, float), p)
    seeded, system = np.random.default_rng(1), loops.system()
    kept: tuple[int, ...] = ()
    # in four closed positions, whose coordinates differ from the start by at most 0.3 [rad, m]
    samples, aside = 4, 0.3
    for trial in range(samples):
        xi = seeded.uniform(-aside, aside, still.shape[0]) * (trial > 0)
        moved, left = system.retract(jnp.asarray(q), jnp.asarray(xi)), jnp.zeros(1)
        if system.constraint is not None:
            moved, left = root(Closure(loops), (jnp.zeros(()), p), moved, np.ones(still.shape[0]))
        if trial and not float(jnp.max(jnp.abs(left))) <= CLOSED:
            continue
        found = independent(np.asarray(openings(loops, p, moved, still)[1]))
        kept = max(kept, found, key=len)
    return drop_with_warning(loops.labels().constraints, kept, "")


def poses(
    mechanism: Mechanism, p: PyTree, q: Any, v: Any, names: tuple[str, ...], counted: tuple[str, ...]
) -> tuple[Any, Any]:  # fmt: skip
    """Poses and velocities of the centres of mass, and turn counts of hinges, from joint coordinates."""
    if mechanism.dimension == 3:
        p = Prepared(params=p, constants=MechanismConstants(tree=mechanism.tree.folded(p)))
    a, xp = ALGEBRA[mechanism.dimension], jnp if without_values(p) else np
    com = xp.stack([xp.asarray(a.array(a.vector(p[name].com))) for name in names], axis=-1)
    at = functools.partial(_poses_at, mechanism, names, counted)
    if without_values((p, q, v)):
        return at(p, jnp.asarray(q), jnp.asarray(v), jnp.asarray(com))
    places, rates = compiled_once(at)(p, q, v, com)
    return np.asarray(places), np.asarray(rates)


def _poses_at(
    mechanism: Mechanism, names: tuple[str, ...], counted: tuple[str, ...], p: PyTree, q: Array, v: Array,
    com: Array,
) -> tuple[Array, Array]:  # fmt: skip
    """`poses` as arrays."""
    scene, d = mechanism.scene(jnp.zeros(()), q, v, p), mechanism.dimension
    bodies = several(scene.frames, names)
    assert bodies is not None, "the ground has no coordinates"

    def pose(frame: Frame, com: Array) -> tuple[Array, Array]:
        body = Scene(d, scene.time, {"body": frame})
        turn, spin = body.rotation("body"), body.spin("body")
        if d == 2:
            turn, spin = turn[None], spin[None]
        else:
            turn, spin = quaternion(turn), jnp.sum(turn * spin[:, None], axis=0)
        place, rate = body.position("body", com), body.velocity("body", com)
        return jnp.concatenate([place, turn]), jnp.concatenate([rate, spin])

    places, rates = jax.vmap(pose, -1)(bodies, com)
    return jnp.concatenate([places.reshape(-1), *turned_at(scene, p, counted)]), rates.reshape(-1)


def turned_at(scene: Scene, p: PyTree, names: tuple[str, ...]) -> list[Array]:
    """Rotation vectors (3,) of the angles of hinges in a scene: the start of their turn counts."""
    found = []
    for name in names:
        along = jnp.asarray(p[name].axis, float)
        found.append(jnp.asarray(scene.coordinate(name), float) * along)
    return found
