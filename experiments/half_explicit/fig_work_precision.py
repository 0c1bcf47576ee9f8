"""Error over CPU time with contact: half-explicit scheme, Moreau's rule and mixed schemes.

[SRKA] claim that the half-explicit schemes reduce the computing time, "for various numerical examples";
the paper's figures are not at hand, the data are ours.

* Bar: `models.elastic_bar` of twenty elements that meets a wall, rests there and leaves (restitution 0).
* Rotor: the rubbing rotor that is thrown against its ring (restitution 0.9, friction 0.1).
* Slider-crank: Table 1 of [R&S] with friction 0.01 and restitution 0.4, up to 0.02 s.

References are integrated from event to event. Errors are means over output times and entries, relative to
the largest value of an entry, see `nsjax.sweep_time_step`; cost is CPU time of one run on one core.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import models, schemes
from nsjax.core.step import mass_matrix

from .. import common
from ..references import one_contact
from ..references.slider_crank import Data, event_driven

SCHEMES: dict[str, Any] = {
    "half-explicit": schemes.half_explicit(),
    "Moreau": schemes.moreau(),
    "theta": schemes.moreau_theta(),
    "generalized-alpha": schemes.generalized_alpha(0.8),
    "Bathe": schemes.bathe(),
    "ED-alpha": schemes.ed_alpha(0.0),
}
QUICK = ("half-explicit", "Moreau")
ACCURACY = {"bar": 1e-3, "rotor": 1e-3, "slider-crank": 1e-4}
"""Error of the position at which costs are compared; the coarsest steps of Moreau's rule miss it."""

Setting = tuple[nsjax.Problem, dict[str, Any]]


def bar() -> Setting:
    """Steps below the stability limit of explicit schemes, ``l / (sqrt(3) c) = 9.6e-3 s``."""
    problem = models.elastic_bar(elements=20, distance=1.0)
    system, params, _ = problem
    rest = np.zeros(system.nq)
    columns = [np.asarray(system.force(0.0, x, rest, params)) for x in np.eye(system.nq)]
    stiffness, mass = -np.array(columns).T, np.asarray(mass_matrix(system, jnp.asarray(rest), params))
    tip = np.zeros(system.nq)
    tip[-1] = -1.0
    m = one_contact.Mechanics(
        mass=lambda q: mass, force=lambda q, v: -stiffness @ q, gap=lambda q: float(1.0 - q[-1]),
        normal=lambda q: tip, tangent=None, restitution=0.0, friction=0.0, holds=True,
    )  # fmt: skip
    return problem, _given(m, problem, 1.0, 50, np.array([3, 7, 13, 29, 59, 113, 229]))


def rotor() -> Setting:
    """Some impacts with friction in 0.1 s."""
    problem = models.rubbing_rotor(initial_v=(0.12, 0.03, 180.0), restitution=0.9)
    p = problem.params

    def mass(q: np.ndarray) -> np.ndarray:
        a = p.mass * p.eccentricity * np.array([-np.sin(q[2]), np.cos(q[2])])
        turning = p.inertia + p.mass * p.eccentricity**2
        return np.array([[p.mass, 0.0, a[0]], [0.0, p.mass, a[1]], [a[0], a[1], turning]])

    def force(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        c, s = np.cos(q[2]), np.sin(q[2])
        pull = p.mass * p.eccentricity * v[2] ** 2
        return np.array([
            pull * c - p.stiffness * q[0] - p.damping * v[0],
            pull * s - p.stiffness * q[1] - p.damping * v[1] - p.mass * p.gravity,
            p.torque + p.drive * (p.speed - v[2]) - p.mass * p.gravity * p.eccentricity * c,
        ])  # fmt: skip

    def outward(q: np.ndarray) -> np.ndarray:
        return np.asarray(q[:2] / np.hypot(*q[:2]))

    m = one_contact.Mechanics(
        mass=mass, force=force, gap=lambda q: float(p.clearance - np.hypot(q[0], q[1])),
        normal=lambda q: np.array([*-outward(q), 0.0]),
        tangent=lambda q: np.array([-outward(q)[1], outward(q)[0], p.radius]),
        restitution=p.restitution, friction=p.friction, holds=False,
    )  # fmt: skip
    return problem, _given(m, problem, 0.02, 40, np.array([3, 7, 13, 29, 59, 113, 229, 457]))


def _given(m: Any, problem: nsjax.Problem, time: float, rows: int, parts: np.ndarray) -> dict[str, Any]:
    """What a sweep over step sizes needs; ``parts``: steps between output times, primes, so that grids do
    not nest.
    """
    q, v = (np.asarray(x, float) for x in (problem.state.q, problem.state.v))
    q, v, _ = one_contact.motion(m, q, v, np.linspace(0.0, time, rows + 1))
    return {"dts": time / rows / parts, "time": time, "samples": rows, "reference": (q, v)}


def crank() -> Setting:
    """The slider stays parallel to its guide between the located events."""
    time, rows = 0.02, 40
    x = event_driven(Data(), tuple(np.linspace(0.0, time, rows + 1)[1:])).x
    x = np.vstack([[0.0, 0.0, 150.0, -75.0], x])
    zero = np.zeros((rows + 1, 1))
    reference = np.hstack([x[:, :2], zero]), np.hstack([x[:, 2:], zero])
    problem = models.slider_crank(friction=0.01, restitution=0.4)
    dts = time / rows / np.array([5, 11, 23, 47, 97, 197, 397])
    return problem, {"dts": dts, "time": time, "samples": rows, "reference": reference}


PROBLEMS = {"bar": bar, "rotor": rotor, "slider-crank": crank}


def cost(found: nsjax.WorkPrecision, scheme: str, accuracy: float) -> float:
    """CPU seconds of the steps of the cheapest run at least so accurate, without what a call costs; nan if
    there is none.
    """
    rows = found.of(scheme)
    fine = rows.steps[rows.error_q <= accuracy]
    return float(fine.min()) * found.cost(scheme)[1] if len(fine) else float("nan")


def _numbers(name: str, found: nsjax.WorkPrecision) -> common.Numbers:
    numbers: common.Numbers = {}
    base = cost(found, "half-explicit", ACCURACY[name])
    for scheme in dict.fromkeys(found.scheme):
        rows = found.of(scheme)
        numbers[f"{name}, {scheme}: order of q"] = found.slope(scheme, "error_q", 3e-2, 1e-9)
        numbers[f"{name}, {scheme}: least error of q"] = float(np.nanmin(rows.error_q))
        numbers[f"{name}, {scheme}: least error of v"] = float(np.nanmin(rows.error_v))
        share = cost(found, scheme, ACCURACY[name]) / base
        numbers[f"{name}, {scheme}: CPU time over half-explicit"] = share
    return numbers


def table(numbers: common.Numbers, names: tuple[str, ...]) -> str:
    """CPU time to a given error over that of the half-explicit scheme, a line a scheme."""
    lines = [f"{'CPU time to an error of':24}" + "".join(f"{f'{n} {ACCURACY[n]:g}':>20}" for n in names)]
    for scheme in SCHEMES:
        keys = [f"{n}, {scheme}: CPU time over half-explicit" for n in names]
        if keys[0] in numbers:
            lines.append(f"{scheme:24}" + "".join(f"{numbers[key]:>20.2f}" for key in keys))
    return "\n".join(lines)


def _paint(figure: Any, tables: dict[str, nsjax.WorkPrecision]) -> None:
    axes = np.atleast_1d(figure.subplots(1, len(tables)))
    for axis, (name, found) in zip(axes, tables.items(), strict=True):
        for k, scheme in enumerate(dict.fromkeys(found.scheme)):
            rows = found.of(scheme)
            error = np.where(rows.error_q < 1.0, rows.error_q, np.nan)
            axis.loglog(
                1e3 * rows.seconds, error, color=f"C{k}", marker="osD^v<"[k], markersize=2.5, label=scheme
            )
        axis.set(xlabel="CPU time [ms]", title=name)
    axes[0].set_ylabel("error of $q$")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=6.0)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves table and figure, compares; ``quick``: two schemes, five step sizes."""
    path = common.results(__file__, folder)
    tables: dict[str, nsjax.WorkPrecision] = {}
    numbers: common.Numbers = {}
    references: dict[str, Any] = {}
    for name, setting in PROBLEMS.items():
        problem, given = setting()
        if quick:
            given["dts"] = given["dts"][:5]
        named = {n: x for n, x in SCHEMES.items() if not quick or n in QUICK}
        tables[name] = nsjax.sweep_time_step(problem, named, repeats=1 if quick else 3, **given)
        references[f"{name}: reference"] = np.hstack(given["reference"])
        tables[name].save(path.with_name(f"{path.name}_{name}.csv"))
        numbers |= _numbers(name, tables[name])
    arrays = references | {f"{n}: table": t.csv() for n, t in tables.items()}
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 7.0), lambda f: _paint(f, tables),
        table=table(numbers, tuple(tables)), quick=quick,
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
