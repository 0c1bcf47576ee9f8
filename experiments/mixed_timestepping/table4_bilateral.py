"""[R&S] Table 4: errors of the base schemes on the slider-crank with an ideal guide, no clearance.

Data of Table 1, rigid, frictionless, T = 0.05 s. The reference has the crank angle as its only
coordinate and is integrated by DOP853. The paper measures the Euclidean norm of the relative error of
theta2 over sample times (92), which it does not state: 500 samples reproduce its numbers for Moreau's
rule, 50 those of the other schemes (tried in [P]); its 1.6e-5 for Bathe and ED-alpha at
1e-6 s is the accuracy of its own reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nsjax import models, schemes

from .. import common

DURATION = 0.05
SAMPLES = 500
TRANSIENT = 2e-3  # [s], left out of the comparison of forces as in the source
STEPS = (500, 5000, 50000)
QUANTITIES = ("500 samples", "50 samples", "theta2", "v", "force")
SCHEMES: dict[str, Callable[[], Any]] = {
    "Moreau": schemes.moreau,
    "HETS": schemes.half_explicit,
    "gen-alpha 0.8": lambda: schemes.generalized_alpha(0.8),
    "gen-alpha 0": lambda: schemes.generalized_alpha(0.0),
    "Bathe": schemes.bathe,
    "ED-alpha 0": lambda: schemes.ed_alpha(0.0),
}


@dataclass(frozen=True)
class Reference:
    """Angles and angular velocities (times, 4) at ``t`` [s], and the force of the guide [N]."""

    t: np.ndarray
    x: np.ndarray
    force: np.ndarray


def _lift(p: Any, theta1: float, omega1: float) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Angles, velocities, ``dtheta2/dtheta1`` and its derivative, with the slider on the axis."""
    theta2 = -np.arcsin(p.crank_length * np.sin(theta1) / p.rod_length)
    ratio = -p.crank_length * np.cos(theta1) / (p.rod_length * np.cos(theta2))
    change = p.crank_length * np.sin(theta1) / (p.rod_length * np.cos(theta2)) + ratio**2 * np.tan(theta2)
    return np.array([theta1, theta2]), np.array([omega1, ratio * omega1]), ratio, change


def _dynamics(p: Any, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mass matrix and generalised forces of crank and rod with the slider's mass, [S&U&S (19), (20)]."""
    beyond = p.rod_mass / 2 + p.slider_mass
    m11 = p.crank_inertia + p.crank_length**2 * (p.crank_mass / 4 + p.rod_mass + p.slider_mass)
    m22 = p.rod_inertia + p.rod_length**2 * (p.rod_mass / 4 + p.slider_mass)
    coupling = p.crank_length * p.rod_length * beyond
    m12, s = coupling * np.cos(q[0] - q[1]), coupling * np.sin(q[0] - q[1])
    weight1 = p.gravity * p.crank_length * (p.crank_mass / 2 + p.rod_mass + p.slider_mass)
    load = [
        -s * v[1] ** 2 - weight1 * np.cos(q[0]) + p.torque,
        s * v[0] ** 2 - p.gravity * p.rod_length * beyond * np.cos(q[1]),
    ]
    return np.array([[m11, m12], [m12, m22]]), np.array(load)


def _balance(p: Any, theta1: float, omega1: float) -> tuple[float, float]:
    """Angular acceleration of the crank, and the force of the guide."""
    q, v, ratio, change = _lift(p, theta1, omega1)
    mass, load = _dynamics(p, q, v)
    along, bend = np.array([1.0, ratio]), np.array([0.0, change * omega1**2])
    acceleration = float(along @ (load - mass @ bend) / (along @ mass @ along))
    missing = mass @ (along * acceleration + bend) - load
    return acceleration, float(missing[1] / (p.rod_length * np.cos(q[1])))


def reference(samples: int = SAMPLES) -> Reference:
    """The motion in its minimal coordinate at ``samples`` equal instants after the start.

    Raises:
        ImportError: naming the extra, if scipy is not installed.
    """
    try:
        from scipy.integrate import solve_ivp
    except ImportError as error:
        raise ImportError("the reference needs scipy: pip install 'nsjax[test]'") from error
    _, p, state = models.slider_crank_bilateral()
    t = DURATION / samples * np.arange(1, samples + 1)
    run = solve_ivp(
        lambda _, z: (z[1], _balance(p, *z)[0]),
        (0.0, t[-1]), (state.q[0], state.v[0]), method="DOP853", rtol=3e-14, atol=1e-15, t_eval=t,
    )  # fmt: skip
    rows = [_lift(p, *z) for z in run.y.T]
    x = np.array([np.concatenate([q, v]) for q, v, _, _ in rows])
    return Reference(t=t, x=x, force=np.array([_balance(p, *z)[1] for z in run.y.T]))


def errors(scheme: Any, steps: int, exact: Reference) -> common.Numbers:
    """All error measures of the table for one scheme and number of steps."""
    every = steps // len(exact.t)
    problem = models.slider_crank_bilateral()
    traj = common.run(problem, scheme, DURATION / steps, steps, every, save=["constraint_force"])
    q, v = np.asarray(traj.q)[1:], np.asarray(traj.v)[1:]
    force = np.asarray(traj.constraint_force)[1:, 0]
    late = exact.t >= TRANSIENT * (1 - 1e-9)
    relative = q[:, 1] / exact.x[:, 1] - 1.0
    return {
        "500 samples": float(np.linalg.norm(relative)),
        "50 samples": float(np.linalg.norm(relative[len(relative) // 50 - 1 :: len(relative) // 50])),
        "theta2": float(np.abs(q[:, 1] - exact.x[:, 1]).max()),
        "v": float(np.abs(v - exact.x[:, 2:]).max()),
        "force": float(np.abs(force - exact.force)[late].max() / np.abs(exact.force).max()),
    }


def met(ours: float, printed: float) -> float:
    """1 if ``ours`` rounds to the printed number, to as many digits as this has, else 0."""
    digits = len(f"{printed:.9e}".partition("e")[0].replace(".", "").rstrip("0"))
    return float(float(f"{ours:.{digits - 1}e}") == printed)


def side_by_side(numbers: common.Numbers, expected: dict[str, dict[str, Any]]) -> str:
    """The paper's norm, the computed columns and ours, each as computed / ours."""
    head = "".join(f"{name:>22}" for name in QUANTITIES)
    lines = [f"{'scheme':14}{'dt [s]':>8}{'paper':>9}{head}"]
    for name in SCHEMES:
        for steps in STEPS:
            keys = [f"{name}, {DURATION / steps:.0e}: {quantity}" for quantity in QUANTITIES]
            if keys[0] not in numbers:
                continue
            prints = [expected[key]["print"] for key in keys if "print" in expected[key]]
            printed = f"{prints[0]:.1e}" if prints else "-"
            cells = "".join(f"{expected[k]['value']:>11.2e} /{numbers[k]:9.2e}" for k in keys)
            lines.append(f"{name:14}{DURATION / steps:>8.0e}{printed:>9}{cells}")
    return "\n".join(lines)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes and compares Table 4; ``quick`` leaves out the smallest step."""
    exact = reference()
    numbers: common.Numbers = {}
    for name, make in SCHEMES.items():
        for steps in STEPS[:2] if quick else STEPS:
            for quantity, value in errors(make(), steps, exact).items():
                numbers[f"{name}, {DURATION / steps:.0e}: {quantity}"] = value
    expected = common.load_expected(__file__, without=", 1e-06:" if quick else None)
    for key, entry in expected.items():
        if "print" in entry:
            numbers[f"{key.partition(':')[0]}: meets the digits"] = met(numbers[key], entry["print"])
    table = side_by_side(numbers, expected)
    return common.finish(__file__, folder, numbers, table=table, expected=expected)


if __name__ == "__main__":
    common.command(main)
