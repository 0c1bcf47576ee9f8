"""Derivatives of the schemes beside those of the reference: errors, notes, signs and trends."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from nsjax import gradient_notes, schemes
from nsjax.core.scheme import Scheme
from nsjax.loop import LoopProgram, begin_run, prepare_run, run_row
from tests.events import draws, mechanisms, topologies
from tests.events.truth import Truth
from tests.gradients.program import floats

SCHEMES: dict[str, Scheme] = {
    "moreau": schemes.moreau(), "moreau_theta": schemes.moreau_theta(),
    "half_explicit": schemes.half_explicit(), "generalized_alpha": schemes.generalized_alpha(),
    "bathe": schemes.bathe(), "ed_alpha": schemes.ed_alpha(), "ggl_decoupled": schemes.ggl_decoupled(),
    "ggl_unified": schemes.ggl_unified(), "nsga_decoupled": schemes.nsga_decoupled(),
    "nsga_coupled": schemes.nsga_coupled(), "localized": schemes.localized(schemes.moreau()),
}  # fmt: skip

NAMES = {
    gradient_notes.SETTLING: "too slow to matter", gradient_notes.COUPLED: "simultaneous impacts",
    gradient_notes.GRAZING: "grazing", gradient_notes.KINK: "kink",
    gradient_notes.ACCUMULATION: "accumulation", gradient_notes.UNLOCATED: "not located",
    gradient_notes.TOGETHER: "together",
}  # fmt: skip

ALLOWED = 3.0
"""Times the trend within which a derivative lies."""

FLOOR = 1e-7
"""Relative error below which rounding decides."""


def _primes(count: int, low: float, high: float) -> tuple[int, ...]:
    """Primes at equal ratios."""
    found = []
    for n in np.geomspace(low, high, count):
        k = round(n)
        while any(k % j == 0 for j in range(2, int(k**0.5) + 1)):
            k += 1
        found.append(k)
    return tuple(found)


STEPS = _primes(20, 100, 6000)
"""Step counts, no grid inside another."""


def note_bits(row) -> int:
    """All bits of a row's notes, one number or one per contact."""
    return int(np.bitwise_or.reduce(np.ravel(np.asarray(row, int)), initial=0))


def serious(bits: int) -> bool:
    """Whether a derivative carries a note that it is one-sided or undefined."""
    return bool(bits & gradient_notes.SERIOUS)


def names_the_reason(bits: int) -> bool:
    """Whether notes say why a motion has no derivative: a serious one, or that contacts strike together,
    by which a motion is a kink across its symmetry and smooth along it.
    """
    return bool(bits & (gradient_notes.SERIOUS | gradient_notes.TOGETHER))


def _final(name: str, static: tuple, keep: LoopProgram, p, x, coef, steps):
    """End of a run as a function of the columns and the end time ``x``, and what it says beside."""
    scheme_name, options, prepare, init, step = static
    scheme = Scheme(
        name=scheme_name, coef=coef, options=options, prepare=prepare, init=init, step=step,
        gradient="saltation",
    )  # fmt: skip
    names = mechanisms.ALL[name].names
    at = np.array([names.index(c) for c in draws.COLUMNS[name]])
    params, state = floats(topologies.build(name, list(p.at[at].set(x[:-1]))))
    dt = x[-1] / steps
    run = begin_run(keep, scheme, params, state, dt, None)
    run, row = run_row(prepare_run(keep, scheme, params, dt), run, steps)
    end = jnp.concatenate([row["q"], row["v"]])
    return end, (end, run.status, row["notes"])


@functools.cache
def _program(name: str, scheme: str, mode: str):
    """``(p, x, coef, steps) -> (Jacobian, (end, status, notes))``: one program for all step counts; in
    reverse mode one for each.
    """
    s = SCHEMES[scheme]
    keep = LoopProgram(system=topologies.MODELS[name][0], keep=("notes",), events=0)
    static = (s.name, s.options, s.prepare, s.init, s.step)
    final = functools.partial(_final, name, static, keep)
    if mode == "reverse":
        return jax.jit(jax.jacrev(final, argnums=1, has_aux=True), static_argnums=3)
    return jax.jit(jax.jacfwd(final, argnums=1, has_aux=True))


@dataclasses.dataclass
class Derivative:
    """A derivative of a scheme: end, Jacobian to all columns and the end time, status and notes."""

    x: np.ndarray
    jacobian: np.ndarray
    status: int
    notes: int


def derivative(m: draws.Motion, scheme: str, steps: int, mode: str = "forward") -> Derivative:
    """What a scheme says about a motion."""
    columns = [m.number(c) for c in draws.COLUMNS[m.name]]
    f = _program(m.name, scheme, mode)
    x = jnp.array([*columns, m.end])
    jacobian, (end, status, notes) = f(jnp.array(m.p), x, floats(SCHEMES[scheme].coef), int(steps))
    return Derivative(np.asarray(end), np.asarray(jacobian), int(status), note_bits(notes))


@dataclasses.dataclass
class Record:
    """A motion under a scheme.

    Args:
        key, scheme, kind, truth: the motion, what it was drawn as, and what the reference says of it.
        steps, dt: step counts and sizes.
        error: relative Frobenius errors of the Jacobian; of the end: ``state``.
        notes, status: of the runs. sign: columns of the wrong sign. finite: no NaN.
        column: errors of the columns relative to the whole Jacobian, by name.
        accuracy: of the reference. ends_at_impact: whether an impact is within `NEAR` steps of the end.
    """

    key: str
    scheme: str
    kind: str
    truth: str
    steps: list[int]
    dt: list[float]
    error: list[float]
    state: list[float]
    notes: list[int]
    status: list[int]
    sign: list[list[str]]
    finite: list[bool]
    column: dict[str, list[float]]
    accuracy: float
    ends_at_impact: list[bool]


SMALL = 0.1
"""A Jacobian below this counts as one of this size: of a body that has come to rest."""

NEAR = 3.0
"""Steps around an impact of the motion in which the end of a run may lie on the other side of it."""


def compare(m: draws.Motion, t: Truth, scheme: str, steps=STEPS) -> Record:
    """All step counts of one motion and scheme."""
    m = dataclasses.replace(m, end=t.end)
    near = np.min(np.abs(np.append(t.impacts, np.inf) - t.end))
    every = [*draws.COLUMNS[m.name], "T"]
    places = [every.index(c) for c in t.columns]
    exact = np.array(t.jacobian) if t.columns else np.zeros((1, 0))
    sizes = np.linalg.norm(exact, axis=0)
    whole = max(float(np.linalg.norm(exact)), SMALL)
    r = Record(
        m.key, scheme, m.kind, t.kind, [int(n) for n in steps], [m.end / n for n in steps], [], [], [], [],
        [], [], {c: [] for c in t.columns}, t.accuracy,
        [bool(near < NEAR * m.end / n) for n in steps],
    )  # fmt: skip
    for n in steps:
        d = derivative(m, scheme, n)
        r.status.append(d.status)
        r.notes.append(d.notes)
        r.finite.append(bool(np.all(np.isfinite(d.jacobian))))
        found = np.nan_to_num(d.jacobian[:, places], nan=1e300, posinf=1e300, neginf=-1e300)
        if t.columns:
            r.error.append(float(np.linalg.norm(found - exact)) / whole)
            r.state.append(float(np.linalg.norm(d.x - t.x)) / (1.0 + float(np.linalg.norm(t.x))))
        inner = np.sum(found * exact, axis=0)
        wrong = (inner <= 0.0) & (sizes > 0.02 * np.max(sizes, initial=SMALL))
        r.sign.append([c for c, w in zip(t.columns, wrong, strict=True) if w])
        for k, c in enumerate(t.columns):
            r.column[c].append(float(np.linalg.norm(found[:, k] - exact[:, k])) / whole)
    return r


def bounds(r: Record) -> np.ndarray:
    """Allowed errors of a record: three times the trend ``median(error / dt) dt``, with a floor."""
    e, dt, use = np.array(r.error), np.array(r.dt), ~np.array(r.ends_at_impact)
    if not use.any():
        return np.full(len(e), np.inf)
    return ALLOWED * np.median((e / dt)[use]) * dt + FLOOR + 3.0 * r.accuracy


def second_order_bounds(r: Record) -> np.ndarray:
    """The same for errors of second order, ``median(error / dt^2) dt^2``."""
    e, dt, use = np.array(r.error), np.array(r.dt), ~np.array(r.ends_at_impact)
    if not use.any():
        return np.full(len(e), np.inf)
    return ALLOWED * np.median((e / dt**2)[use]) * dt**2 + FLOOR + 3.0 * r.accuracy
