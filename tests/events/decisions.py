"""Which contacts stay closed, stick or slip, and what an impact does: by trying all cases.

Planar contacts are enumerated, so that problems with no solution or with several are found; spatial ones
are solved contact by contact until nothing changes.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from tests.events.mechanisms import Contacts, Mechanism

STILL = 2e-9
"""A slip below this [m/s] is none."""

FEASIBLE = 1e-8
"""Tolerance of the inequalities, relative to the forces at hand."""


class UndecidedError(RuntimeError):
    """No solution of the contact problem, or several with different motions."""


@dataclasses.dataclass(frozen=True)
class Mode:
    """Closed contacts, each with ``None`` (sticks) or the direction in which it slides."""

    closed: tuple[int, ...] = ()
    slide: tuple[tuple[float, ...] | None, ...] = ()

    def label(self) -> str:
        """Short name."""
        parts = []
        for i, d in zip(self.closed, self.slide, strict=True):
            kind = "stick" if d is None else "slip"
            parts.append(kind + str(i) + ("+-"[int(d[0] < 0)] if d is not None and len(d) == 1 else ""))
        return " ".join(parts) or "free"


@dataclasses.dataclass
class Forces:
    """Accelerations, and normal (nc,) and tangential (nc, nt) forces."""

    a: np.ndarray
    normal: np.ndarray
    tangential: np.ndarray


def solve_linear(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Least squares where the rows depend on each other."""
    if len(right) == 0:
        return right
    if len(right) == 1 and matrix[0, 0] != 0.0:
        return right / matrix[0, 0]
    try:
        x = np.linalg.solve(matrix, right)
        rough = float(np.abs(x).max())
        if rough < 1e7 * (1.0 + float(np.abs(right).max())) / float(np.abs(matrix).max()):
            return x
    except np.linalg.LinAlgError:
        pass
    return np.linalg.lstsq(matrix, right, rcond=1e-10)[0]


def constrained(
    mech: Mechanism, y: Contacts, base: np.ndarray, joints, mode: Mode, mu: float, rates, offset: bool
) -> Forces:  # fmt: skip
    """``base + M^-1 (forces)`` that keeps normals (and sticking tangents) at ``rates``.

    Args:
        base: (nv,) without contact forces; acceleration, or velocity before an impact.
        joints: rows and offsets.
        rates: (nc, 1 + nt) wanted normal and tangential values.
        offset: whether to count ``kn, kt`` (accelerations) or ``cn, ct`` (velocities).
    """
    rows_b, k_b = joints
    kn, kt = (y.kn, y.kt) if offset else (y.cn, y.ct)
    rows, columns, right = [*rows_b], [*rows_b], [-k for k in k_b]
    for i, d in zip(mode.closed, mode.slide, strict=True):
        rows.append(y.n[i])
        right.append(rates[i, 0] - kn[i])
        columns.append(y.n[i] if d is None else y.n[i] - mu * np.asarray(d) @ y.t[i])
        if d is None:
            for j in range(mech.nt):
                rows.append(y.t[i, j])
                columns.append(y.t[i, j])
                right.append(rates[i, 1 + j] - kt[i, j])
    normal, tangential = np.zeros(mech.nc), np.zeros((mech.nc, mech.nt))
    if not rows:
        return Forces(base, normal, tangential)
    w, c = np.array(rows), np.array(columns)
    x = solve_linear(w @ (c / mech.mass).T, np.array(right) - w @ base)
    k = len(rows_b)
    for i, d in zip(mode.closed, mode.slide, strict=True):
        normal[i] = x[k]
        tangential[i] = x[k + 1 : k + 1 + mech.nt] if d is None else -mu * np.asarray(d) * x[k]
        k += 1 if d is not None else 1 + mech.nt
    return Forces(base + (x @ c) / mech.mass, normal, tangential)


def acceleration(mech: Mechanism, t, q, v, y: Contacts, mode: Mode) -> Forces:
    """Forces of a mode."""
    base = mech.force(t, q, v) / mech.mass
    if not mode.closed and not mech.nb:
        return Forces(base, np.zeros(mech.nc), np.zeros((mech.nc, mech.nt)))
    joints = mech.joints(q, v)[1:]
    return constrained(mech, y, base, joints, mode, mech.mu, np.zeros((mech.nc, 1 + mech.nt)), True)


def slips(y: Contacts, v: np.ndarray) -> np.ndarray:
    """Slip velocities (nc, nt)."""
    return y.t @ v + y.ct


def _choices(mech: Mechanism, slip: np.ndarray, spatial: bool):
    """Candidates of one contact: open is "open"."""
    speed = float(np.linalg.norm(slip))
    if mech.mu == 0.0:
        return ["open", (0.0,) * mech.nt]
    if speed > STILL:
        return ["open", tuple(slip / speed)]
    return ["open", None] + ([] if spatial else [(1.0,), (-1.0,)])


def _mode_of(candidates, chosen) -> Mode:
    pairs = [(i, c) for i, c in zip(candidates, chosen, strict=True) if c != "open"]
    return Mode(tuple(i for i, _ in pairs), tuple(c for _, c in pairs))


def _fits(mech, y, f: Forces, mode: Mode, candidates, slip, tolerance) -> bool:
    """Whether a case of the acceleration problem fulfils its inequalities."""
    gap = y.n @ f.a + y.kn
    side = y.t @ f.a + y.kt
    for i in candidates:
        if i not in mode.closed:
            if gap[i] < -tolerance:
                return False
            continue
        if abs(gap[i]) > 10 * tolerance or f.normal[i] < -tolerance:
            return False
        d = mode.slide[mode.closed.index(i)]
        if d is None:
            if np.linalg.norm(f.tangential[i]) > mech.mu * f.normal[i] + tolerance:
                return False
            if np.max(np.abs(side[i])) > 10 * tolerance:
                return False
        elif np.linalg.norm(slip[i]) <= STILL and side[i] @ np.asarray(d) < -tolerance:
            return False
    return True


def choose(mech: Mechanism, t, q, v, candidates, avoid=()) -> Mode:
    """Mode in which the motion goes on.

    Args:
        candidates: contacts with zero gap and zero rate.
        avoid: pairs (contact, "closed" or "stick") that have just become impossible.
    """
    candidates = tuple(candidates)
    if not candidates:
        return Mode()
    y = mech.contacts(t, q, v)
    slip = slips(y, v)
    spatial = mech.nt == 2
    options = [_choices(mech, slip[i], spatial) for i in candidates]
    if spatial:
        options = [
            [*o, _breakaway(mech, t, q, v, y, candidates, i)] if o[-1] is None else o
            for o, i in zip(options, candidates, strict=True)
        ]
    tolerance = FEASIBLE * (1.0 + np.max(np.abs(mech.force(t, q, v))))
    found = []
    for chosen in itertools.product(*options):
        mode = _mode_of(candidates, chosen)
        f = acceleration(mech, t, q, v, y, mode)
        if _fits(mech, y, f, mode, candidates, slip, tolerance):
            barred = sum(_barred(mode, *a) for a in avoid)
            found.append((barred, -len(mode.closed), sum(d is not None for d in mode.slide), mode, f.a))
    if not found:
        raise UndecidedError(f"no acceleration for contacts {candidates}")
    found.sort(key=lambda x: x[:3])
    apart = max(float(np.max(np.abs(x[4] - found[0][4]))) for x in found)
    if apart > 1e3 * tolerance:
        raise UndecidedError(f"several accelerations for contacts {candidates}")
    return found[0][3]


def _barred(mode: Mode, contact: int, kind: str) -> bool:
    if contact not in mode.closed:
        return False
    return kind == "closed" or mode.slide[mode.closed.index(contact)] is None


def _breakaway(mech, t, q, v, y, candidates, i) -> tuple[float, float]:
    """Direction in which a spatial contact at rest starts to slide: parallel to its acceleration."""
    stick = Mode(tuple(candidates), (None,) * len(candidates))
    pull = -acceleration(mech, t, q, v, y, stick).tangential[i]
    d = pull / (np.linalg.norm(pull) or 1.0)
    for _ in range(100):
        slide = tuple(tuple(d) if c == i else None for c in candidates)
        f = acceleration(mech, t, q, v, y, Mode(tuple(candidates), slide))
        side = y.t[i] @ f.a + y.kt[i]
        size = np.linalg.norm(side)
        if size == 0.0 or np.linalg.norm(side / size - d) < 1e-14:
            break
        d = side / size
    return float(d[0]), float(d[1])


@dataclasses.dataclass
class Blow:
    """Velocity after an impact, and what the contacts did: "open", "stick" or "slip"."""

    v: np.ndarray
    normal: np.ndarray
    kinds: tuple[str, ...]


def impact(mech: Mechanism, t, q, v, candidates, restitution) -> Blow:
    """Newton and Coulomb: ``0 <= u_N^+ + e u_N^- _|_ P_N >= 0``, tangential impulse in the disk."""
    candidates = tuple(candidates)
    y = mech.contacts(t, q, v)
    if mech.nt == 2 and mech.mu > 0.0:
        return _impact_spatial(mech, y, q, v, candidates, restitution)
    before = y.n @ v + y.cn
    rates = np.zeros((mech.nc, 1 + mech.nt))
    rates[:, 0] = -restitution * before
    joints = mech.joints(q, v)[1]
    joints = joints, np.zeros(len(joints))
    size = 1e-11 * (1.0 + np.max(np.abs(v)))
    closed = [None, (1.0,), (-1.0,)] if mech.mu > 0.0 else [(0.0,) * mech.nt]
    options = [["open", *closed]] * len(candidates)
    found = []
    for chosen in itertools.product(*options):
        mode = _mode_of(candidates, chosen)
        f = constrained(mech, y, v, joints, mode, mech.mu, rates, False)
        if _blow_fits(mech, y, f, mode, candidates, rates, size):
            found.append((mode, f))
    if not found:
        raise UndecidedError(f"no impulse for contacts {candidates}")
    found.sort(key=lambda x: (-len(x[0].closed), sum(d is not None for d in x[0].slide)))
    if max(np.max(np.abs(f.a - found[0][1].a)) for _, f in found) > 1e4 * size:
        raise UndecidedError(f"several impulses for contacts {candidates}")
    mode, f = found[0]
    kinds = []
    for i in candidates:
        here = mode.slide[mode.closed.index(i)] if i in mode.closed else "open"
        kinds.append("stick" if here is None else here if here == "open" else "slip")
    return Blow(f.a, f.normal, tuple(kinds))


def _blow_fits(mech, y, f: Forces, mode: Mode, candidates, rates, size) -> bool:
    normal = y.n @ f.a + y.cn
    side = slips(y, f.a)
    for i in candidates:
        if i not in mode.closed:
            if normal[i] < rates[i, 0] - size:
                return False
            continue
        if f.normal[i] < -size or abs(normal[i] - rates[i, 0]) > 10 * size:
            return False
        d = mode.slide[mode.closed.index(i)]
        if d is None:
            outside = np.linalg.norm(f.tangential[i]) > mech.mu * f.normal[i] + size
            if outside or abs(side[i, 0]) > 10 * size:
                return False
        elif side[i] @ np.asarray(d) < -size:
            return False
    return True


def _impact_spatial(mech, y, q, v, candidates, restitution) -> Blow:
    """One contact after the other until nothing changes; their own blocks are isotropic here."""
    u, n, p = v.copy(), np.zeros(mech.nc), np.zeros((mech.nc, mech.nt))
    wanted = -restitution * (y.n @ v + y.cn)
    for _ in range(20000):
        before = u.copy()
        for i in candidates:
            g = y.n[i] @ (y.n[i] / mech.mass)
            new = max(0.0, n[i] - (y.n[i] @ u + y.cn[i] - wanted[i]) / g)
            u = u + y.n[i] / mech.mass * (new - n[i])
            n[i] = new
            g = y.t[i, 0] @ (y.t[i, 0] / mech.mass)
            trial = p[i] - (y.t[i] @ u + y.ct[i]) / g
            size = np.linalg.norm(trial)
            if size > mech.mu * n[i]:
                trial *= mech.mu * n[i] / size
            u = u + ((trial - p[i]) @ y.t[i]) / mech.mass
            p[i] = trial
        if np.max(np.abs(u - before)) < 2e-15 * (1.0 + np.max(np.abs(u))):
            break
    else:
        raise UndecidedError(f"impulse of contacts {candidates} not found")
    kinds = []
    for i in candidates:
        inside = np.linalg.norm(p[i]) < mech.mu * n[i] * (1.0 - 1e-12)
        kinds.append("open" if n[i] == 0.0 else "stick" if inside else "slip")
    return Blow(u, n, tuple(kinds))
