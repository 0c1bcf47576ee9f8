"""Sensitivities of the event-driven reference by differences of two widths, and whether there are any."""

from __future__ import annotations

import dataclasses
import json
import pathlib

import numpy as np

from tests.events import draws, mechanisms
from tests.events.decisions import Undecided
from tests.events.reference import motion

WIDTH = 1e-4
"""Half the wider of the two differences."""


@dataclasses.dataclass
class Truth:
    """End of a motion and its sensitivities.

    Args:
        key: of the motion.
        kind: "smooth"; "kink": a column has no derivative, or not one for both widths; "undecided": the
            contact problem has no or several solutions; "jammed": that was wanted.
        x: end, q and v. columns: names of those compared. jacobian: (2 nv, columns).
        accuracy: estimated error of the Jacobian relative to its size.
        kinks: columns without derivative. events: without times.
        nearest: least gap passed without touching.
    """

    key: str
    kind: str
    x: list[float]
    columns: list[str]
    jacobian: list[list[float]]
    accuracy: float
    kinks: list[str]
    events: list[str]
    nearest: float
    changed: list[str]


def _end(m: draws.Motion, change: dict[str, float]):
    mech = mechanisms.ALL[m.name]
    p = np.array(m.p)
    for name, value in change.items():
        p[mech.names.index(name)] += value
    found = motion(mech, p, m.end)
    return found, np.concatenate([found.q, found.v])


def _column(m: draws.Motion, name: str, middle: np.ndarray):
    """Derivative, its uncertainty, whether it is a kink, and the sequences of events beside it."""
    sides, sequences = {}, set()
    for s in (1.0, -1.0, 0.5, -0.5):
        found, x = _end(m, {name: s * WIDTH})
        sides[s] = (x - middle) / (s * WIDTH)
        sequences.add(found.sequence())
    wide, narrow = 0.5 * (sides[1.0] + sides[-1.0]), 0.5 * (sides[0.5] + sides[-0.5])
    best = (4.0 * narrow - wide) / 3.0
    size = float(np.linalg.norm(best))
    jump = [float(np.linalg.norm(sides[s] - sides[-s])) for s in (1.0, 0.5)]
    kink = jump[1] > 0.75 * jump[0] and jump[1] > 0.01 * size + 1e-4
    error = float(np.linalg.norm(best - narrow))
    return best, error, kink or error > 2e-3 * size + 1e-4, sequences


def truth(m: draws.Motion) -> Truth:
    """The reference of a motion."""
    wanted = [c for c in draws.COLUMNS[m.name] if c not in m.fixed]
    try:
        middle, x = _end(m, {})
        columns = [_column(m, name, x) for name in wanted]
    except Undecided as reason:
        kind = "jammed" if m.kind == "jammed" else "undecided"
        return Truth(m.key, kind, [], [], [], 0.0, [], [str(reason)], 0.0, [])
    jacobian = np.array([c[0] for c in columns] + [middle.rate]).T
    errors = np.linalg.norm([c[1] for c in columns])
    kinks = [n for n, c in zip(wanted, columns, strict=True) if c[2]]
    changed = [n for n, c in zip(wanted, columns, strict=True) if c[3] != {middle.sequence()}]
    size = float(np.linalg.norm(jacobian)) or 1.0
    return Truth(
        m.key, "kink" if kinks else "smooth", x.tolist(), [*wanted, "T"], jacobian.tolist(), float(errors) / size,
        kinks, list(middle.sequence()), middle.nearest[0], changed,
    )  # fmt: skip


def _restored(line: str) -> Truth:
    return Truth(**json.loads(line))


def cached(m: draws.Motion, file: pathlib.Path | None) -> Truth:
    """The reference, kept in a file of JSON lines from run to run if one is given."""
    if file is None:
        return truth(m)
    known = {}
    if file.exists():
        known = {t.key: t for t in map(_restored, file.read_text().splitlines())}
    if m.key not in known:
        found = truth(m)
        with file.open("a") as out:
            out.write(json.dumps(dataclasses.asdict(found)) + "\n")
        return found
    return known[m.key]
