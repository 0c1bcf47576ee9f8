"""Sensitivities of the event-driven reference by differences of two widths, and whether there are any."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from tests.events import draws, mechanisms
from tests.events.decisions import UndecidedError
from tests.events.reference import motion

WIDTH = 1e-4
"""Half the wider of the two differences."""

LONGER, PLACES = 1.1, 41
"""The end of a motion is moved, within this part of its duration, to where no impact is near."""


@dataclasses.dataclass
class Truth:
    """End of a motion and its sensitivities.

    Args:
        key: of the motion. end: its end time, see `LONGER`. impacts: times of its impacts, also beyond.
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
    end: float
    impacts: list[float]


def placed(m: draws.Motion) -> tuple[draws.Motion, list[float]]:
    """The motion with its end as far from impacts as may be, and their times until a little later."""
    found = motion(mechanisms.ALL[m.name], m.p, LONGER * m.end)
    hits = np.array([t for t, text in found.events if text.startswith("impact")])
    places = m.end * np.linspace(2.0 - LONGER, LONGER - 0.04, PLACES)
    away = np.min(np.abs(places[:, None] - np.append(hits, [0.0, LONGER * m.end])), axis=1)
    return dataclasses.replace(m, end=float(places[np.argmax(away)])), hits.tolist()


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


@functools.cache
def truth(m: draws.Motion, move: bool = True) -> Truth:
    """The reference of a motion, its end moved away from impacts."""
    wanted = [c for c in draws.COLUMNS[m.name] if c not in m.fixed]
    try:
        m, impacts = placed(m) if move else (m, [])
        middle, x = _end(m, {})
        columns = [_column(m, name, x) for name in wanted]
    except UndecidedError as reason:
        kind = "jammed" if m.kind == "jammed" else "undecided"
        return Truth(m.key, kind, [], [], [], 0.0, [], [str(reason)], 0.0, [], m.end, [])
    jacobian = np.array([c[0] for c in columns] + [middle.rate]).T
    errors = np.linalg.norm([c[1] for c in columns])
    kinks = [n for n, c in zip(wanted, columns, strict=True) if c[2]]
    changed = [n for n, c in zip(wanted, columns, strict=True) if c[3] != {middle.sequence()}]
    size = float(np.linalg.norm(jacobian)) or 1.0
    return Truth(
        m.key, "kink" if kinks else "smooth", x.tolist(), [*wanted, "T"], jacobian.tolist(),
        float(errors) / size, kinks, list(middle.sequence()), middle.nearest[0], changed, m.end, impacts,
    )  # fmt: skip
