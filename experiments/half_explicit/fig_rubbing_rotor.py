"""A rubbing rotor with the half-explicit scheme: OUR OWN stand-in.

The rubbing rotor of [SRKA] is known by name only. Model (Jeffcott rotor in a rigid ring, see
`nsjax.models.rubbing_rotor`), data and figure are ours and reproduce nothing of the paper. Shown are the
resonance curve without contact against its closed form; the orbit of a horizontal rotor that rubs; and
dry-friction backward whirl after a hard radial knock, which ends in rolling at a speed that the
conservation of ``J omega - m R v_T`` gives in closed form.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

import nsjax
from nsjax import models, schemes
from nsjax.analysis import energy_balance, observed_order

from .. import common

MASS, STIFFNESS, DAMPING, ECCENTRICITY = 1.0, 4e4, 20.0, 1e-4
RADIUS, INERTIA = 0.05, 1.25e-3
CRITICAL = math.sqrt(STIFFNESS / MASS)
RATIOS = (0.25, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.4, 1.7, 2.0, 2.5)
RUB: dict[str, Any] = {"clearance": 3e-3, "friction": 0.3, "restitution": 0.0}
"""A ring in which the disc may whirl."""
BALANCE = {
    "impacts": ({"initial_v": (0.12, 0.03, 180.0), "restitution": 0.9}, 0.1),
    "rubbing": ({**RUB, "speed": 300.0, "initial_v": (3.0, 0.0, 300.0)}, 0.02),
}
SCHEME = schemes.half_explicit(averaged_force=True)


def amplitude(speed: float) -> complex:
    """Centre of the disc in axes that turn with it, in the circular whirl of the closed form [m]."""
    return MASS * ECCENTRICITY * speed**2 / (STIFFNESS - MASS * speed**2 + 1j * DAMPING * speed)


def whirl(speed: float, dt: float) -> complex:
    """The same by the scheme, 4 s after a start from rest."""
    loss = DAMPING * abs(amplitude(speed)) ** 2 * speed  # what the motor must give
    problem = models.rubbing_rotor(gravity=0.0, speed=speed, torque=loss, clearance=1.0)
    steps = round(4.0 / dt)
    x, y, phi = np.asarray(common.run(problem, SCHEME, dt, steps, every=steps).q)[-1]
    return complex((x + 1j * y) * np.exp(-1j * phi))


def without_contact() -> common.Numbers:
    """Relative errors of the whirl at dt = 1e-4 s, and their order."""
    numbers = {}
    steps = np.array([1.6e-4, 1e-4, 6.4e-5, 4e-5])
    for ratio in (0.5, 0.9, 1.1, 2.0):
        exact = amplitude(ratio * CRITICAL)
        errors = [abs(whirl(ratio * CRITICAL, dt) / exact - 1.0) for dt in steps]
        numbers[f"error of the whirl, {ratio} critical"] = float(errors[1])
        numbers[f"order of the whirl, {ratio} critical"] = observed_order(steps, errors)
    return numbers


def with_contact() -> common.Numbers:
    """Penetration on the ring and at impacts, and the energy balance."""
    counts, depths = np.array([1009, 1423, 2003, 2903, 4201]), []
    for count in counts:
        problem = models.rubbing_rotor(**RUB, initial_q=(3e-3, 0.0, 0.0), initial_v=(0.0, -1.0, 100.0))
        depths.append(float(-common.run(problem, SCHEME, 0.05 / count, int(count)).gap.min()))
    numbers = {
        "order of the penetration on the ring": observed_order(0.05 / counts, depths),
        "penetration on the ring [m]": depths[-1],
    }
    traj = common.run(models.rubbing_rotor(), SCHEME, 1e-5, 100_000)
    step = 1e-5 * float(np.hypot(traj.v[:, 0], traj.v[:, 1]).max())
    numbers["deepest penetration at an impact, in steps"] = float(-np.asarray(traj.gap).min()) / step
    for name, (given, duration) in BALANCE.items():
        steps, left = duration / np.array([1009, 2003, 4001]), []
        for dt in steps:
            books = energy_balance(
                common.run(models.rubbing_rotor(**given), SCHEME, dt, round(duration / dt))
            )
            contact = sum(x.sum() for source, x in books.work.items() if source != "force")
            left.append(float(abs(books.residual.sum()) / abs(contact)))
        numbers[f"energy left over, {name}"] = left[-1]
        numbers[f"order of the energy left over, {name}"] = observed_order(steps, left)
    return numbers


def knock(approach: float) -> nsjax.Trajectory:
    """A rotor without motor, damping and unbalance that is thrown at the ring from the centre."""
    quiet = {"gravity": 0.0, "damping": 0.0, "drive": 0.0, "eccentricity": 0.0}
    problem = models.rubbing_rotor(**RUB, **quiet, initial_v=(approach, 0.0, 300.0))
    return common.run(problem, SCHEME, 1e-6, 40_000, every=10)


def _paint(figure: Any, rub: nsjax.Trajectory, whirls: dict[str, nsjax.Trajectory]) -> None:
    curve, orbit, back = figure.subplots(1, 3)
    fine = np.linspace(0.2, 2.5, 400)
    curve.plot(fine, [1e6 * abs(amplitude(r * CRITICAL)) for r in fine], color="black", linewidth=0.6)
    found = [1e6 * abs(whirl(r * CRITICAL, 1e-4)) for r in RATIOS]
    curve.plot(RATIOS, found, "o", color="#1f4e9c", markersize=3, markerfacecolor="none")
    curve.set_xlabel("speed / critical speed")
    curve.set_ylabel(r"whirl without contact [$\mu$m]")
    turn = np.linspace(0.0, 2.0 * np.pi, 200)
    orbit.plot(300 * np.cos(turn), 300 * np.sin(turn), color="0.5", linewidth=0.8)
    late = np.asarray(rub.t) > 0.8
    orbit.plot(1e6 * rub.q[late, 0], 1e6 * rub.q[late, 1], color="#1f4e9c", linewidth=0.5)
    orbit.set_aspect("equal")
    orbit.set_xlabel(r"$x$ [$\mu$m]")
    orbit.set_ylabel(r"$y$ [$\mu$m]")
    for (name, traj), color in zip(whirls.items(), ("#1f4e9c", "#c4581b"), strict=True):
        moving = np.asarray(traj["deflection"]) > 5e-4
        rate = np.where(moving, traj["whirl"], np.nan)
        back.plot(1e3 * np.asarray(traj.t), rate, color=color, label=name)
    back.set_xlabel("time $t$ [ms]")
    back.set_ylabel("whirl [rad/s]")
    back.set_ylim(-1800.0, 300.0)
    back.legend(loc="lower left")


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` changes nothing, the runs are short."""
    numbers = {**without_contact(), **with_contact()}
    # on its way out the shaft slows the disc down; friction turns mu times the rest into backward whirl
    held = CRITICAL * RUB["clearance"]
    whirls = {
        name: knock(math.hypot(factor * held / RUB["friction"], held))
        for name, factor in (("97 % of the limit", 0.97), ("103 % of the limit", 1.03))
    }
    released, caught = whirls.values()
    numbers["contact after the slow knock"] = float(np.asarray(released.impulse_normal)[-1, 0] > 0)
    numbers["contact after the hard knock"] = float(np.asarray(caught.impulse_normal)[-1, 0] > 0)
    numbers["speed at the end of the hard knock [rad/s]"] = float(caught["omega"][-1])
    numbers["whirl at the end of the hard knock [rad/s]"] = float(caught["whirl"][-1])
    rub = common.run(models.rubbing_rotor(), SCHEME, 1e-5, 100_000, every=10)
    return common.finish(
        __file__, folder, numbers, {"t": rub.t, "q": rub.q, "v": rub.v, "whirl": caught["whirl"]},
        (17.0, 6.0), lambda f: _paint(f, rub, whirls),
    )  # fmt: skip


if __name__ == "__main__":
    common.command(main)
