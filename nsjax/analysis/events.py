"""Impacts and contact phases of a run as tables: plain records, printed or written as CSV."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
import pathlib
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import jax.numpy as jnp
import numpy as np

from nsjax.analysis.energy import NEEDED, energy_balance
from nsjax.analysis.rows import by_rows, check_run, row_distance
from nsjax.contact.events import Criteria
from nsjax.contact.friction import sliding
from nsjax.core.errors import InputError
from nsjax.core.operators import refreshed
from nsjax.core.system import System, contact_names
from nsjax.trajectory import Trajectory
from nsjax.types import Array, PyTree

R = TypeVar("R")


@dataclasses.dataclass(frozen=True)
class Impact:
    """One contact in one impact.

    Args:
        time: time at which the gap closes, from its rate inside the step [s].
        contact: name of the contact, or ``"contact 0"`` if the model gives none.
        rate_before, rate_after: gap rates before and after the impact [m/s].
        impulse_normal, impulse_tangential: impulses over the step [N s]; the latter has nt entries.
        lost_normal, lost_tangential: energy lost in the contact [J], see `impact_table`.
    """

    time: float
    contact: str
    rate_before: float
    rate_after: float
    impulse_normal: float
    impulse_tangential: tuple[float, ...]
    lost_normal: float
    lost_tangential: float


@dataclasses.dataclass(frozen=True)
class Phase:
    """An interval in which a contact was closed at every saved row; see `contact_phases`.

    Args:
        contact: name of the contact, or ``"contact 0"`` if the model gives none.
        start, end: times of the last row before the phase and of its last row [s].
        closed_time: time in which the contact was in the contact problem [s], at most ``end - start``.
        force: mean normal force over the rows without an impact [N]; not-a-number if there are none.
        impulse: normal impulse from start to end, impacts included [N s].
        impacts: number of impacts of the contact.
        stick, slip: shares of rows in which the friction force is below its limit, or at its limit, among
            the rows with a normal force and without an impact. Both are not-a-number if there are no such
            rows, or for models without tangents.
    """

    contact: str
    start: float
    end: float
    closed_time: float
    force: float
    impulse: float
    impacts: int
    stick: float
    slip: float


@dataclasses.dataclass(frozen=True)
class Table(Generic[R]):
    """Records of one kind; iterates over them, prints aligned, writes CSV.

    Args:
        records: the rows.
        note: remark printed below the table, or empty.
        kind: class of the records, for the headings of an empty table.

    Example:
        >>> from nsjax.analysis.events import Phase, Table
        >>> one = Phase("floor", 0.0, 0.5, 0.5, 9.81, 4.905, 0, 1.0, 0.0)
        >>> print(Table(records=(one,), note="", kind=Phase).csv().splitlines()[1])
        floor,0.0,0.5,0.5,9.81,4.905,0,1.0,0.0
    """

    records: tuple[R, ...]
    note: str
    kind: type[Any]

    def __iter__(self) -> Iterator[R]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> R:
        return self.records[index]

    def column(self, name: str) -> np.ndarray:
        """One field of all records, for instance ``table.column("time")``."""
        return np.array([getattr(record, name) for record in self.records])

    def _cells(self) -> list[list[Any]]:
        """Headings and rows; a field of several numbers takes several columns."""
        names = [f.name for f in dataclasses.fields(self.kind)]
        head: list[Any] = []
        rows: list[list[Any]] = [[] for _ in self.records]
        for name in names:
            values = [getattr(record, name) for record in self.records]
            if values and isinstance(values[0], tuple):
                count = len(values[0])
                head += [name if count == 1 else f"{name}_{k + 1}" for k in range(count)]
            else:
                head.append(name)
                values = [(value,) for value in values]
            for row, value in zip(rows, values, strict=True):
                row += value
        return [head, *rows]

    def csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """The table as comma-separated values, numbers in full precision; also written to ``path``."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(self._cells())
        if path is not None:
            pathlib.Path(path).write_text(text.getvalue())
        return text.getvalue()

    def __str__(self) -> str:
        cells = [[f"{x:.6g}" if isinstance(x, float) else str(x) for x in row] for row in self._cells()]
        widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
        lines = ["  ".join(x.rjust(w) for x, w in zip(row, widths, strict=True)) for row in cells]
        return "\n".join([*lines, *([self.note] if self.note else [])])


def impact_table(traj: Trajectory) -> Table[Impact]:
    """The impacts of a run made with ``events=K``, in the order of time.

    The loss ``-Lambda (u^- + u^+)/2`` of a contact is taken with its rates relative to a moving obstacle:
    it is the dissipated energy, without the work of a moving table. Its normal part follows from the rates
    of the impact list. The tangential part needs all saved quantities in every step: run with
    ``every=1``, else it is not-a-number.

    Args:
        traj: one run with ``events=K``.

    Returns:
        `Table` of `Impact`; its note says if there were more impacts than K.

    Raises:
        InputError: for a batch, or a run without an impact list.

    Limits: the table lists only contacts that count as impacts (`Event.impact`), not a closed contact that
        transmits the impulse of another contact; the losses of a multiple impact therefore need not sum to
        the whole loss, which `energy_balance` has. In Moreau-type schemes impulses contain the forces of
        the step.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> from nsjax.analysis import impact_table
        >>> problem = models.bouncing_ball(restitution=0.5)
        >>> traj = nsjax.simulate(problem, schemes.moreau(), dt=1e-3, steps=500, events=4)
        >>> print(impact_table(traj).records[0].contact)
        ball on table
    """
    check_run(traj, "impact_table")
    if traj.events is None:
        raise InputError("impact_table: the run kept no impact list; run simulate with events=100")
    events, system = traj.events, traj.system
    seen, kept = int(events.count), len(np.asarray(events.time))
    count = min(seen, kept)
    contacts = np.asarray(events.contact)[:count]
    before, after = (np.asarray(x)[:count] for x in (events.rate_before, events.rate_after))
    normal, tangential = (np.asarray(x)[:count] for x in (events.impulse_normal, events.impulse_tangential))
    times = np.asarray(events.time)[:count]
    # within a step the list is not sorted by time
    order = np.argsort(times, kind="stable")
    times, contacts, before, after, normal, tangential = (
        x[order] for x in (times, contacts, before, after, normal, tangential)
    )
    lost = _tangential_loss(traj, times, contacts)
    records = tuple(
        Impact(
            time=float(times[k]), contact=contact_names(system)[contacts[k]], rate_before=float(before[k]),
            rate_after=float(after[k]), impulse_normal=float(normal[k]),
            impulse_tangential=tuple(tangential[k].tolist()),
            lost_normal=float(-0.5 * normal[k] * (before[k] + after[k])), lost_tangential=float(lost[k]),
        )
        for k in range(count)
    )  # fmt: skip
    note = f"the first {kept} of {seen} impacts; events={seen} keeps all" if seen > kept else ""
    return Table(records=records, note=note, kind=Impact)


def _tangential_loss(traj: Trajectory, times: np.ndarray, contacts: np.ndarray) -> np.ndarray:
    """Loss by friction in listed impacts, from the energy balance where the run has the data for them."""
    if not traj.system.nt:
        return np.zeros(len(times))
    if row_distance(traj) != 1 or any(getattr(traj, name) is None for name in NEEDED):
        return np.full(len(times), np.nan)
    if not len(times):
        return np.zeros(0)
    return energy_balance(traj).lost_friction[_rows(traj, times, contacts), contacts]


def _rows(traj: Trajectory, times: np.ndarray, contacts: np.ndarray) -> np.ndarray:
    """Rows of listed impacts in a run with a row per step: the first row with an impact of the contact
    whose step ends, up to rounding, at or after the time of the impact.
    """
    impacts, t = np.asarray(traj.impacts) > 0, np.asarray(traj.t)
    early = 1e-6 * float(traj.carry.dt)
    return np.array(
        [np.argmax(impacts[:, c] & (t > s - early)) for s, c in zip(times, contacts, strict=True)], int
    )


def contact_phases(traj: Trajectory, *, shortest: float = 0.0, bridge: float = 0.0) -> Table[Phase]:
    """The intervals in which each contact is closed, with mean force and shares of stick and slip.

    A phase is an unbroken sequence of saved rows such that the contact took part in the scheme's contact
    problem for some time between each row and the previous row. A bounce is a phase of one step.

    Args:
        traj: one run with any ``every``; the rows limit the resolution of the phases.
        shortest: shorter phases are left out [s].
        bridge: openings up to this duration are part of the phase around them [s]; Moreau-type schemes
            open and close a pressed contact from step to step.

    Returns:
        `Table` of `Phase`, contact by contact, in the order of time.

    Raises:
        InputError: for a batch, a system without contacts, or quantities not saved.

    Limits: stick and slip are evaluated at the saved rows. Where redundant contacts support a body, their
        friction forces are not unique, nor is the choice of the contacts that stick.

    Example:
        >>> import nsjax
        >>> from nsjax import models, schemes
        >>> from nsjax.analysis import contact_phases
        >>> problem = models.block(dimension=2, slope=0.2, friction=0.5)
        >>> traj = nsjax.simulate(problem, schemes.moreau(gap_tolerance=1e-9), dt=1e-3, steps=50)
        >>> phases = contact_phases(traj)
        >>> [(phase.contact, phase.start, phase.end, phase.stick) for phase in phases]
        [('corner +-', 0.0, 0.05, 1.0), ('corner --', 0.0, 0.05, 1.0)]
    """
    check_run(traj, "contact_phases")
    if not traj.system.nc:
        raise InputError("contact_phases: the system has no contacts; pass a run of one that has")
    needed = "closed_time", "force_normal", "force_tangential", "impulse_normal", "impacts"
    check_run(traj, "contact_phases", needed)
    limit = by_rows(_holding, traj, traj.t, traj.q, traj.v) * np.asarray(traj.force_normal)
    friction = np.linalg.norm(np.asarray(traj.force_tangential), axis=2)
    quiet = ~np.any(np.asarray(traj.impacts), axis=1)
    loaded = (np.asarray(traj.force_normal) > 0.0) & quiet[:, None]
    # relative distance of the friction force below its limit from which a contact counts as sticking
    sticking = 1e-6
    sticks = loaded & (friction < (1.0 - sticking) * limit)
    records = []
    for contact in range(traj.system.nc):
        closed = np.asarray(traj.closed_time)[1:, contact] > 0.0
        for first, last in _intervals(np.asarray(traj.t), closed, bridge):
            if traj.t[last] - traj.t[first] >= shortest:
                part = np.s_[first + 1 : last + 1], contact
                records.append(_phase(traj, part, first, last, loaded[part], sticks[part]))
    return Table(records=tuple(records), note="", kind=Phase)


def _intervals(t: np.ndarray, closed: np.ndarray, bridge: float) -> list[tuple[int, int]]:
    """Rows before the first and at the last entry of every sequence of ``closed`` (rows - 1,)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], closed, [False]]).astype(int)))
    found: list[tuple[int, int]] = []
    for first, last in edges.reshape(-1, 2).tolist():
        if found and t[first] - t[found[-1][1]] <= bridge:
            found[-1] = found[-1][0], last
        else:
            found.append((first, last))
    return found


def _holding(system: System, p: PyTree, t: Array, q: Array, v: Array) -> Array:
    """Friction force below which each contact sticks, over its normal force; zero where a contact slides
    whose law depends on the speed: its force may be smaller than the one that would hold it.
    """
    ready = refreshed(system, t, q, p)
    law = system.law(ready)
    found: Array = law.friction_of(system.nc)
    if not law.by_speed or not system.nt:
        return found
    return jnp.where(sliding(Criteria(), system.slip(t, q, v, ready), v), 0.0, found)


def _phase(
    traj: Trajectory, part: Any, first: int, last: int, loaded: np.ndarray, sticks: np.ndarray
) -> Phase:
    """The record of one phase: rows ``part`` of one contact, from row ``first`` to row ``last``."""
    quiet = ~np.any(np.asarray(traj.impacts)[part[0]], axis=1)
    force = np.asarray(traj.force_normal)[part][quiet]
    known = bool(traj.system.nt) and bool(loaded.any())
    stick = float(sticks.sum() / loaded.sum()) if known else float("nan")
    return Phase(
        contact=contact_names(traj.system)[part[1]], start=float(traj.t[first]), end=float(traj.t[last]),
        closed_time=float(np.asarray(traj.closed_time)[part].sum()),
        force=float(force.mean()) if len(force) else float("nan"),
        impulse=float(np.asarray(traj.impulse_normal)[part].sum()),
        impacts=int(np.asarray(traj.impacts)[part].sum()), stick=stick, slip=1.0 - stick,
    )  # fmt: skip
