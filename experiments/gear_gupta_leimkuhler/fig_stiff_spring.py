"""[S&U&S] sections 3.2.2 and 4: does the unified scheme allow larger steps on stiff problems?

The paper expects so ("we gain a stable discretization which allows comparatively larger time step sizes for
stiff problem formulations") and leaves the test to others. Here a pendulum on a stiff spring swings
against a wall: bob of 1 kg, length 1 m, spring with omega = 1000 rad/s, restitution 0.6, three impacts
in 3 s; at the wall the impulse is normal to the spring. The step grows from 0.05 to 60 / omega.

* Moreau's rule and the decoupled scheme take forces explicitly: stable up to omega dt = 2, the limit of
  the linear oscillator, and then lost within a fraction of a second.
* The unified scheme is an implicit midpoint rule: its error stays first order in dt, that of the impact
  times, through that limit and up to omega dt = 20 or so.
* Stable is not accurate for ever: a step that turns the spring by the angle ``v dt / l`` stretches it by
  ``(v dt)^2 / 8 l``, and the spring keeps the energy ``k/2`` times the square of that. Beyond omega dt = 20
  the energy leaves the motion. From about there on the wall still strikes three times, but what the
  spring does to the approach within a step is more than the approach: it is not listed as an impact.

Reference: the motion between impacts by DOP853, impacts by its event location.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import ContactLaw, State, System, schemes

from .. import common
from . import looks

OMEGA, RESTITUTION, GRAVITY, START, DURATION = 1e3, 0.6, 9.81, np.pi / 3, 3.0
COUNTS = (
    60000, 35009, 19997, 12007, 9973, 7001, 5003, 4001, 2803, 2003, 1607, 1511, 1499, 1399, 1009, 701, 503,
    401, 307, 211, 151, 101, 61, 49,
)  # fmt: skip
"""Steps in 3 s, not nested."""

BROKEN = 0.1
"""Stretch of the spring beyond which a run counts as lost [m]; the motion stretches it by 2e-5 m."""

LISTED = 0.5 * (8.0 * OMEGA**2 / GRAVITY) ** 0.25
"""Half the omega dt (15 of 30) up to which an impact is told from what forces do within a step.

Half a step ahead of the wall the bob, straight on with ``v^2 = g l`` of the first impact, is ``x = v dt/2``
aside of the lowest point and has stretched the spring by ``x^2/2``; that pulls it sideways by
``a = omega^2 x^3/2``. An approach counts as an impact where it is faster than ``2 a dt``: up to
``(omega dt)^4 = 8 (omega/v)^2``. Later impacts are slower and stretch less.
"""

SCHEMES: dict[str, Any] = {
    "Moreau": schemes.moreau(),
    "decoupled": schemes.ggl_decoupled(),
    "unified": schemes.ggl_unified(),
}
MARKERS = {"Moreau": "s", "decoupled": "^", "unified": "o"}


def unit_mass(q: Any, p: Any) -> Any:
    """1 kg in both directions."""
    return jnp.eye(2)


def spring(t: Any, q: Any, v: Any, p: Any) -> Any:
    """Pull of the spring, unstretched at 1 m from the origin, and the weight."""
    r = jnp.sqrt(q[0] * q[0] + q[1] * q[1])
    pull = -(p["omega"] ** 2) * (r - 1.0) / r
    return jnp.stack([pull * q[0], pull * q[1] - p["gravity"]])


def wall(t: Any, q: Any, p: Any) -> Any:
    """Distance of the bob from the wall below the pivot."""
    return q[:1]


def law(p: Any) -> ContactLaw:
    """Frictionless."""
    return ContactLaw(restitution=p["restitution"])


PENDULUM = System(nq=2, nv=2, nc=1, mass=unit_mass, force=spring, gap=wall, law=law)


def energy(y: np.ndarray) -> float:
    """Energy of bob, spring and weight in the state ``y`` (position, velocity) [J]."""
    stretch = np.hypot(y[0], y[1]) - 1.0
    return float(0.5 * (y[2] ** 2 + y[3] ** 2 + (OMEGA * stretch) ** 2) + GRAVITY * y[1])


def start() -> np.ndarray:
    """Position from which the bob starts at rest, the spring in balance with the weight."""
    length = 1.0 + GRAVITY * np.cos(START) / OMEGA**2
    return length * np.array([np.sin(START), -np.cos(START)])


def reference() -> tuple[np.ndarray, np.ndarray]:
    """Position and velocity (4,) at the end, and the impact times.

    Raises:
        ImportError: naming the extra, if scipy is not installed.
    """
    try:
        from scipy.integrate import solve_ivp
    except ImportError as error:
        raise ImportError("the reference needs scipy: pip install 'nsjax[test]'") from error

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        r = np.hypot(y[0], y[1])
        pull = -(OMEGA**2) * (r - 1.0) / r
        return np.array([y[2], y[3], pull * y[0], pull * y[1] - GRAVITY])

    def touch(t: float, y: np.ndarray) -> float:
        return float(y[0])

    touch.terminal, touch.direction = True, -1  # type: ignore[attr-defined]
    t, y, impacts = 0.0, np.concatenate([start(), np.zeros(2)]), []
    while t < DURATION:
        piece = solve_ivp(rate, (t, DURATION), y, method="DOP853", rtol=1e-12, atol=1e-13, events=touch)
        t, y = float(piece.t[-1]), piece.y[:, -1]
        if piece.status == 1:
            impacts.append(t)
            y[2] *= -RESTITUTION
    return y, np.array(impacts)


def run(scheme: Any, count: int, exact: np.ndarray) -> dict[str, float]:
    """Largest stretch of the spring, error of the position and change of energy at the end."""
    p = {"omega": OMEGA, "gravity": GRAVITY, "restitution": RESTITUTION}
    state = State(t=0.0, q=jnp.asarray(start()), v=jnp.zeros(2))
    traj = nsjax.simulate(PENDULUM, p, state, scheme, dt=DURATION / count, steps=count)
    q, end = np.asarray(traj.q), np.concatenate([traj.q[-1], traj.v[-1]])
    stretch = float(np.abs(np.hypot(q[:, 0], q[:, 1]) - 1.0).max())
    lost = int(traj.status) != 0 or not stretch < BROKEN
    return {
        "stable": float(not lost),
        "error": np.inf if lost else float(np.abs(q[-1] - exact[:2]).max()),
        "energy": np.inf if lost else abs(energy(end) - energy(exact)),
        "impacts": float(np.asarray(traj.impacts).sum()),
        "impulses": float((np.asarray(traj.impulse_normal) > 0.0).sum()),
    }


def _numbers(omega_dt: np.ndarray, found: dict[str, dict[str, np.ndarray]]) -> common.Numbers:
    numbers: common.Numbers = {}
    for name, columns in found.items():
        stable = columns["stable"] > 0
        numbers[f"{name}: largest stable omega dt"] = float(omega_dt[stable].max())
        if name != "unified":
            numbers[f"{name}: least unstable omega dt"] = float(omega_dt[~stable].min())
    unified = found["unified"]
    part = omega_dt < 20.0
    fit = np.polyfit(np.log(omega_dt[part]), np.log(unified["error"][part]), 1)
    numbers["unified: order of the error up to omega dt = 20"] = float(fit[0])
    numbers["unified: error up to omega dt = 2 [m]"] = float(unified["error"][omega_dt <= 2].max())
    numbers["unified: error up to omega dt = 10 [m]"] = float(unified["error"][omega_dt <= 10].max())
    numbers["unified: |E - E_motion| up to omega dt = 10 [J]"] = float(
        unified["energy"][omega_dt <= 10].max()
    )
    numbers["unified: |E - E_motion| at the largest step [J]"] = float(unified["energy"][-1])
    numbers["unified: impacts, omega dt < 15"] = float(unified["impacts"][omega_dt < LISTED].mean())
    numbers["unified: impulses, all steps"] = float(unified["impulses"].mean())
    return numbers


def _paint(figure: Any, omega_dt: np.ndarray, found: dict[str, dict[str, np.ndarray]]) -> None:
    axes = figure.subplots(1, 2)
    for name, columns in found.items():
        colour, marker = looks.COLOURS[name], MARKERS[name]
        keep = columns["stable"] > 0
        for axis, what in zip(axes, ("error", "energy"), strict=True):
            axis.loglog(
                omega_dt[keep], columns[what][keep], color=colour, marker=marker, markersize=3.0,
                markerfacecolor="none", markeredgewidth=0.7, linewidth=0.5, label=name,
            )  # fmt: skip
    lost = {name: (looks.COLOURS[name], omega_dt[c["stable"] == 0]) for name, c in found.items()}
    for axis in axes:
        common.mark_failures(axis, lost)
        axis.axvline(2.0, color="0.55", linewidth=0.6, linestyle=(0, (5, 3)))
        axis.set_xlabel(r"$\omega\,\Delta t$")
    axes[0].set(ylabel="error of the position at 3 s [m]", title="(a)")
    axes[1].set(ylabel="error of the energy at 3 s [J]", title="(b)")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` changes nothing, the runs are short."""
    exact, impacts = reference()
    omega_dt = OMEGA * DURATION / np.array(COUNTS)
    found: dict[str, dict[str, np.ndarray]] = {}
    for name, scheme in SCHEMES.items():
        rows = [run(scheme, count, exact) for count in COUNTS]
        found[name] = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    numbers = {"impacts of the motion": float(len(impacts)), **_numbers(omega_dt, found)}
    arrays = {f"{what}, {name}": x for name, columns in found.items() for what, x in columns.items()}
    return common.finish(
        __file__, folder, numbers, {"omega_dt": omega_dt, **arrays}, (16.0, 7.0),
        lambda f: _paint(f, omega_dt, found),
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
