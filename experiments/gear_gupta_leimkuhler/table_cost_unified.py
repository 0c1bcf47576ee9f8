"""[S&U&S] section 3.2.2: computing time of the unified scheme beside Moreau's rule, same step size.

"Due to the implicit discretization, the computing time increases by a factor of ten". Data of Figure 3,
restitution 0.1, dt = 1e-5 s; process CPU time, interleaved A-B-A-B after one call that compiles, medians.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nsjax
from nsjax import models, schemes

from .. import common
from ..performance.side_by_side import interleaved

STEP = 1e-5
SCHEMES = {
    "Moreau": schemes.moreau(),
    "decoupled": schemes.ggl_decoupled(),
    "unified": schemes.ggl_unified(),
}


def _timed(scheme: Any, steps: int) -> Any:
    system, params, state = models.slider_crank(restitution=0.1, friction=0.0)

    def call() -> None:
        traj = nsjax.simulate(system, params, state, scheme, dt=STEP, steps=steps, every=100, save=())
        traj.raise_for_status()

    return call


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Measures and prints; ``quick``: fewer steps and rounds, rough numbers."""
    place = common.results_folder("gear_gupta_leimkuhler", folder)
    steps, rounds = (5_000, 3) if quick else (100_000, 9)
    found = interleaved({name: (_timed(s, steps), steps) for name, s in SCHEMES.items()}, rounds)
    lines = [f"{'scheme':12}{'us/step':>10}{'ratio':>8}"]
    lines += [f"{name:12}{us:>10.3f}{us / found['Moreau']:>8.2f}" for name, us in found.items()]
    ratio = found["unified"] / found["Moreau"]
    lines.append(f"the paper: a factor of ten for the unified scheme; here {ratio:.1f}")
    table = "\n".join(lines)
    print(table)
    (place / "table_cost_unified.txt").write_text(table + "\n", encoding="utf-8")
    numbers = {f"{name}: us per step": us for name, us in found.items()} | {"unified / Moreau": ratio}
    common.report(common.compare(numbers, common.load_expected(__file__, "table_cost_unified")))
    return numbers


if __name__ == "__main__":
    common.command(main)
