"""Runs and derivatives that are kept: which scheme works on which structure, and what is compared.

No full product: each scheme meets each kind of structure, and each feature that it takes.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import Problem, schemes
from tests.goldens.structures import KINDS, STRUCTURES

FILE = pathlib.Path(__file__).with_name("goldens.json")

CLOSE = 1e-12
"""Largest change, relative to the size of the motion: rounding, not an answer of a different kind."""

LEVELS = {"moreau_theta, arm": 1e-8, "ed_alpha, rotor": 1e-9}
"""Largest changes of cases in which programs without and with optimisation differ by more than `CLOSE`: by
1.3e-9 and 1.0e-10 of the derivative, where rows of contacts depend on each other.
"""

IMPULSES = ("moreau", "moreau_theta", "ggl_decoupled", "ggl_unified")
ONLY = {
    "marbles": ("moreau",), "wheel": IMPULSES, "cube": ("moreau",), "arm": (), "swing": ("moreau", "bathe"),
    "bob": ("half_explicit", "ed_alpha"), "heap": ("ggl_decoupled",), "absolute heap": ("moreau_theta",),
    "rod": ("moreau",), "absolute four bar": ("moreau",), "absolute gate": ("moreau_theta",),
    "absolute seesaw": ("half_explicit",), "absolute bob": ("generalized_alpha", "ggl_decoupled"),
}  # fmt: skip
"""Schemes of structures that do not meet all: others do not take them (pairs of changing bodies, moments
that follow a normal force), or they compile for many seconds. The
arm is differentiated alone: it has more rows than velocities, so that impulses hang on rounding.
"""

TWINS = ("hht", "newmark", "nsga_neglected")
"""Schemes whose program is that of another one, with other numbers: they meet two kinds."""


@functools.cache
def scheme(name: str) -> schemes.Scheme:
    """The scheme, its contact problems solved to rounding: what is compared then does not hang on the way
    of a solver to its answer.
    """
    factory = schemes.REGISTRY[name].factory
    known = inspect.signature(factory).parameters
    return factory(**{x: 1e-14 for x in ("contact_tolerance", "relative_tolerance") if x in known})


@functools.cache
def problem(name: str) -> Problem:
    """The problem of a structure."""
    return STRUCTURES[name].make()


def takes(scheme: str, structure: str) -> bool:
    """Whether the scheme runs the structure."""
    return scheme in ONLY.get(structure, (scheme,))


@functools.cache
def design() -> tuple[tuple[str, str], ...]:
    """Schemes and structures: those that name their schemes, then of each kind the one with most features
    that the scheme has not met, and rather one that few have met; then whatever has a missing feature.
    """
    pairs = [(name, x) for x, names in ONLY.items() for name in names]
    for i, name in enumerate(schemes.REGISTRY):

        def worth(structure: str, name: str = name) -> tuple[bool, float]:
            met = frozenset().union(*(STRUCTURES[x].features for s, x in pairs if s == name))
            new = len(STRUCTURES[structure].features - met)
            return new > 0, new - 0.5 * sum(x == structure for _, x in pairs)

        free = [x for x in STRUCTURES if x not in ONLY]
        done = {STRUCTURES[x].kind for s, x in pairs if s == name}
        for kind in KINDS[i % 2 : 4 : 2] if name in TWINS else [x for x in KINDS if x not in done]:
            pairs.append((name, max((x for x in free if STRUCTURES[x].kind == kind), key=worth)))
        while name not in TWINS and worth(best := max(free, key=worth))[0]:
            pairs.append((name, best))
    return tuple(pairs)


GRADIENTS = (
    ("moreau", "balls"), ("moreau", "four bar"), ("moreau", "gate"), ("moreau", "absolute pole"),
    ("moreau", "wheel"), ("moreau", "rotor"),
    ("moreau_theta", "oscillator"), ("moreau_theta", "arm"), ("moreau_theta", "roll"),
    ("half_explicit", "rotor"), ("half_explicit", "hoist"),
    ("generalized_alpha", "belt"), ("generalized_alpha", "bar"), ("generalized_alpha", "crank"),
    ("hht", "oscillator"), ("newmark", "hoist"),
    ("bathe", "balls"), ("bathe", "stiff chain"), ("ed_alpha", "rotor"),
    ("ggl_decoupled", "belt"), ("ggl_decoupled", "arm"), ("ggl_unified", "balls"),
    ("nsga_decoupled", "rotor"), ("nsga_neglected", "oscillator"), ("nsga_coupled", "hoist"),
)  # fmt: skip
"""Schemes and structures whose runs are differentiated in reverse."""

FORWARD = ("oscillator", "hoist", "roll")
"""Structures whose runs are differentiated forward, too: two programs cost twice as much."""

VARIED = {"gravity", "mass", "friction", "restitution", "stiffness", "drive"}
"""Numbers that a derivative grows, all by the same share, together with the velocity of the start."""

Kept = dict[str, Any]


def title(scheme: str, structure: str) -> str:
    """Name of a case and key of its golden."""
    return f"{scheme}, {structure}"


def run(name: str, structure: str) -> Kept:
    """The kept quantities of a run: status, numbers of impacts, the end, two rows inside, and impulses of
    all contacts and constraints in sum.
    """
    made = STRUCTURES[structure]
    traj = nsjax.simulate(
        *problem(structure), scheme(name), dt=made.dt, steps=made.steps, every=made.steps // 4
    )
    impulses = (
        traj.impulse_normal, traj.impulse_tangential, traj.constraint_impulse, traj.dry_friction_impulse
    )  # fmt: skip
    return {
        "status": int(traj.status), "impacts": np.sum(traj.impacts, axis=0).tolist(),
        "q": np.asarray(traj.q)[[1, 2, 4]].tolist(), "v": np.asarray(traj.v)[[1, 4]].tolist(),
        "impulses": np.concatenate([np.sum(x, axis=0).reshape(-1) for x in impulses]).tolist(),
    }  # fmt: skip


def _varied(given: Problem, share: Any) -> Problem:
    """The problem with numbers that have grown by a share."""

    def grown(path: Any, x: Any) -> Any:
        last = str(getattr(path[-1], "name", getattr(path[-1], "key", "")))
        return x * (1.0 + share) if last in VARIED else x

    return Problem(
        system=given.system,
        params=jax.tree_util.tree_map_with_path(grown, given.params),
        state=dataclasses.replace(given.state, v=jnp.asarray(given.state.v) * (1.0 + share)),
    )


def gradient(name: str, structure: str) -> Kept:
    """Derivative of a weighted sum of the position and velocity at the end."""
    made, given = STRUCTURES[structure], problem(structure)

    def end(share: Any) -> Any:
        traj = nsjax.simulate(
            *_varied(given, share), scheme(name), dt=made.dt, steps=made.steps, every=made.steps
        )
        x = jnp.concatenate([traj.q[-1], traj.v[-1]])
        return jnp.sum(x * jnp.cos(jnp.arange(len(x))))

    zero = jnp.zeros(())
    value, reverse = jax.jit(jax.value_and_grad(end))(zero)
    found = {"value": float(value), "reverse": float(reverse)}
    if structure in FORWARD:
        found["forward"] = float(jax.jit(lambda s: jax.jvp(end, (s,), (jnp.ones(()),))[1])(zero))
    return found


def changes(name: str, found: Kept, kept: Kept) -> dict[str, float]:
    """Changes of the kept quantities of the case ``name``, relative to the largest number of each, that are
    no rounding.
    """
    far, close = {}, LEVELS.get(name, CLOSE)
    for key, old in kept.items():
        new, before = np.asarray(found[key], float), np.asarray(old, float)
        if new.shape != before.shape:
            far[key] = np.inf
        elif new.size:
            size = np.max(np.abs(before))
            change = np.max(np.abs(new - before)) / size if size else np.max(np.abs(new))
            if not change <= close:
                far[key] = float(change)
    return far


def read() -> Mapping[str, Mapping[str, Kept]]:
    """Kept runs and gradients by title."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def write(goldens: Mapping[str, Mapping[str, Kept]]) -> None:
    """Keeps runs and gradients, a case a line."""
    parts = []
    for what, cases in goldens.items():
        lines = [f"{json.dumps(key)}: {json.dumps(x)}" for key, x in cases.items()]
        parts.append(f"{json.dumps(what)}: {{\n" + ",\n".join(lines) + "\n}")
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
