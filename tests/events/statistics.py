"""What the measured derivatives say, scheme by scheme."""

from __future__ import annotations

import collections
import dataclasses

import numpy as np

from tests.events.measure import NAMES, Record, bounds, names_the_reason, second_order_bounds, serious


@dataclasses.dataclass
class Summary:
    """Of one scheme.

    Args:
        derivatives: compared, without a serious note, the end no impact.
        within: part of them within three times the trend. either: of first or of second order.
        gross: of them, errors above 5 % and ten times the trend: (ratio, key, steps, error).
        worst: largest ratios of error to trend: (ratio, key, steps, error).
        wrong: derivatives without a serious note with a column of the wrong sign: (key, steps, columns).
        not_converging: motions whose errors without notes do not fall: (key, error at finest steps).
        noted: derivatives with a note, by bit; of smooth motions. refused: status not zero.
        silent: derivatives of motions without derivative (kink) that carry no serious note: keys.
        not_finite: keys.
    """

    scheme: str
    derivatives: int = 0
    within: float = 1.0
    either: float = 1.0
    gross: list = dataclasses.field(default_factory=list)
    worst: list = dataclasses.field(default_factory=list)
    wrong: list = dataclasses.field(default_factory=list)
    not_converging: list = dataclasses.field(default_factory=list)
    noted: dict = dataclasses.field(default_factory=dict)
    refused: int = 0
    silent: list = dataclasses.field(default_factory=list)
    jammed_silent: list = dataclasses.field(default_factory=list)
    not_finite: list = dataclasses.field(default_factory=list)


def stagnates(r: Record, quiet: np.ndarray) -> bool:
    """Whether quiet errors at the finest third of the steps are above 3 % and not below the coarsest; of
    three at least, since a single one does not tell.
    """
    e = np.array(r.error)[quiet]
    if len(e) < 3:
        return False
    third = max(1, len(e) // 3)
    fine, coarse = np.median(e[-third:]), np.median(e[:third])
    return bool(fine > 0.03 and fine > 0.5 * coarse)


def summarise(records: list[Record]) -> Summary:
    """Statistic of one scheme."""
    s = Summary(records[0].scheme)
    noted: collections.Counter[int] = collections.Counter()
    inside = either = 0
    for r in records:
        s.not_finite += [r.key] * (len(r.finite) - sum(r.finite))
        s.refused += sum(x != 0 for x in r.status)
        quiet = np.array([x == 0 and not serious(n) for x, n in zip(r.status, r.notes, strict=True)])
        if r.truth != "smooth":
            mute = sum(x == 0 and not names_the_reason(n) for x, n in zip(r.status, r.notes, strict=True))
            if mute:
                target = s.jammed_silent if r.truth == "jammed" else s.silent
                target.append((r.key, r.truth, r.kind, mute))
            continue
        quiet &= ~np.array(r.ends_at_impact)
        noted.update(bit for n in r.notes for bit in NAMES if n & bit)
        e, first, second = np.array(r.error), bounds(r), second_order_bounds(r)
        s.derivatives += int(quiet.sum())
        inside += int((quiet & (e <= first)).sum())
        either += int((quiet & (e <= np.maximum(first, second))).sum())
        ratio = 3.0 * e / first
        rows = [(float(ratio[k]), r.key, r.steps[k], float(e[k])) for k in np.flatnonzero(quiet)]
        s.worst += rows
        s.gross += [row for row in rows if row[0] > 10.0 and row[3] > 0.05]
        s.wrong += [(r.key, r.steps[k], r.sign[k]) for k in np.flatnonzero(quiet) if r.sign[k]]
        if quiet.any() and stagnates(r, quiet):
            s.not_converging.append((r.key, r.kind, float(e[quiet][-1])))
    s.within, s.either = (x / max(1, s.derivatives) for x in (inside, either))
    s.worst = sorted(s.worst, reverse=True)[:10]
    s.gross.sort(reverse=True)
    s.noted = dict(noted)
    return s
