"""An eccentric cam and its follower on a guide with a preloaded spring: the lift and the force below the
speed of lift-off, that speed, and the flight above it. Benchmark M6 of the specification, with a roller and
with a flat face.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np

from .. import common
from . import cam

SLOW, FAST = 50.0, 120.0
BRACKET, HALVINGS = 0.03, 12
"""Bracket of the speed of lift-off, and its halvings: to 1e-5 of it."""


def follower(flat: bool, disc: bool) -> tuple[common.Numbers, dict[str, np.ndarray]]:
    """Numbers of one follower and what is drawn of it."""
    height = cam.flat_lift if flat else cam.lift
    run = functools.partial(cam.turning, cam.cam(flat, disc), height)
    traj, fast = run(SLOW), run(FAST, 2.0)
    theta, turned = cam.angle(traj), cam.angle(fast)
    off = np.asarray(traj["guide.position"]) - height(theta)
    force = np.asarray(traj.contact("nose").force).reshape(len(theta))
    force = force * (1.0 if flat else cam.along_normal(theta))
    wanted = cam.axial(height, theta, SLOW)
    steps = np.convolve(force[1:], np.full(5, 0.2), "valid") / np.convolve(
        wanted[1:], np.full(5, 0.2), "valid"
    )
    near = cam.FLAT_LIFT_OFF if flat else cam.LIFT_OFF
    limit = cam.bisected(run, (1.0 - BRACKET) * near, (1.0 + BRACKET) * near, HALVINGS)
    above = np.asarray(fast["guide.position"]) - height(turned)
    leave, meet, highest = cam.flight(height, FAST)
    in_air = np.flatnonzero(above > 0.01 * highest)
    landed = in_air[0] + int(np.argmax(above[in_air[0] :] <= 1e-9))
    numbers = {
        "largest error of the lift [m]": float(np.max(np.abs(off))),
        "largest relative error of the force": float(np.max(np.abs(steps - 1.0))),
        "speed of lift-off [rad/s]": limit,
        "120 rad/s: smallest gap [m]": float(np.min(fast.gap)),
        "120 rad/s: height of the flight over its value": float(np.max(above[:landed])) / highest,
        "120 rad/s: angle of the impact less its value [rad]": float(turned[landed]) - meet,
    }
    drawn = {
        "theta": theta, "force": force, "wanted": wanted, "turned": turned,
        "cam": height(turned), "height": np.asarray(fast["guide.position"]),
        "events": np.array([leave, meet]),
    }  # fmt: skip
    return numbers, drawn


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` without the cam that is a spline."""
    numbers: common.Numbers = {}
    arrays: dict[str, Any] = {}
    for kind, disc in (("", True),) if quick else (("", True), (" on a spline", False)):
        for name, flat in (("roller", False), ("flat face", True)):
            found, drawn = follower(flat, disc)
            numbers |= {f"{name}{kind}: {k}": x for k, x in found.items()}
            arrays |= {f"{name}{kind}_{k}".replace(" ", "_"): x for k, x in drawn.items()}

    def paint(figure: Any) -> None:
        load, path = figure.subplots(1, 2)
        for name, color in (("roller", "k"), ("flat_face", "#1f4e9c")):
            theta = np.degrees(arrays[f"{name}_theta"][1:])
            load.plot(theta, arrays[f"{name}_force"][1:], color=color, label=name.replace("_", " "))
            load.plot(theta, arrays[f"{name}_wanted"][1:], "--", color="0.6")
            turned = np.degrees(arrays[f"{name}_turned"])
            path.plot(turned, 1e3 * arrays[f"{name}_height"], color=color)
            path.plot(turned, 1e3 * arrays[f"{name}_cam"], "--", color="0.6")
        load.set(xlabel="angle of the cam [deg]", ylabel=f"force at {SLOW:g} rad/s [N]")
        path.set(xlabel="angle of the cam [deg]", ylabel=f"lift at {FAST:g} rad/s [mm]")
        load.legend()

    return common.finish(__file__, folder, numbers, arrays, (14.0, 6.0), paint, quick=quick)


if __name__ == "__main__":
    common.command(main)
