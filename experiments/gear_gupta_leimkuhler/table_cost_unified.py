"""[S&U&S] section 3.2.2: computing time of the unified scheme beside Moreau's rule, same step size.

"Due to the implicit discretization, the computing time increases by a factor of ten". Data of Figure 3,
restitution 0.1, dt = 1e-5 s; process CPU time, interleaved A-B-A-B after one call that compiles, medians.
"""

from __future__ import annotations

import functools
from pathlib import Path

from nsjax import models, schemes

from .. import common
from ..performance.side_by_side import interleaved

STEP = 1e-5
SCHEMES = {
    "Moreau": schemes.moreau(),
    "decoupled": schemes.ggl_decoupled(),
    "unified": schemes.ggl_unified(),
}


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Measures and prints; ``quick``: fewer steps and rounds, rough numbers."""
    steps, rounds = (5_000, 3) if quick else (100_000, 9)
    problem = models.slider_crank(restitution=0.1, friction=0.0)
    calls = {
        name: (functools.partial(common.run, problem, scheme, STEP, steps, every=100, save=()), steps)
        for name, scheme in SCHEMES.items()
    }
    found = interleaved(calls, rounds)
    lines = [f"{'scheme':12}{'us/step':>10}{'ratio':>8}"]
    lines += [f"{name:12}{us:>10.3f}{us / found['Moreau']:>8.2f}" for name, us in found.items()]
    ratio = found["unified"] / found["Moreau"]
    lines.append(f"the paper: a factor of ten for the unified scheme; here {ratio:.1f}")
    numbers = {f"{name}: us per step": us for name, us in found.items()} | {"unified / Moreau": ratio}
    return common.finish(__file__, folder, numbers, table="\n".join(lines))


if __name__ == "__main__":
    common.command(main)
