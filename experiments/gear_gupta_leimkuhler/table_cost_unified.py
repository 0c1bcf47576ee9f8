"""[S&U&S] section 3.2.2: computing time of the unified scheme beside Moreau's rule, same step size.

"Due to the implicit discretization, the computing time increases by a factor of ten". Data of Figure 3,
restitution 0.1, dt = 1e-5 s; process CPU time, interleaved A-B-A-B after one call that compiles, medians.
The abstract says that an implicit right-hand side "improves stability properties without additional cost",
because the rows of the midpoint are implicit anyway: the last row has the forces of the predicted midpoint.
"""

from __future__ import annotations

import functools
from pathlib import Path

from nsjax import models, schemes
from nsjax.analysis import spectral_radius

from .. import common
from ..performance.side_by_side import interleaved

STEP = 1e-5
SCHEMES = {
    "Moreau": schemes.moreau(),
    "decoupled": schemes.ggl_decoupled(),
    "unified": schemes.ggl_unified(),
    "unified, explicit force": schemes.ggl_unified(force="explicit"),
}


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Measures and prints; ``quick``: half of the steps and of the rounds."""
    steps, rounds = (50_000, 5) if quick else (100_000, 9)
    problem = models.slider_crank(restitution=0.1, friction=0.0)
    calls = {
        name: (functools.partial(common.run, problem, scheme, STEP, steps, every=100, save=()), steps)
        for name, scheme in SCHEMES.items()
    }
    found = interleaved(calls, rounds)
    lines = [f"{'scheme':24}{'us/step':>10}{'ratio':>8}"]
    lines += [f"{name:24}{us:>10.3f}{us / found['Moreau']:>8.2f}" for name, us in found.items()]
    ratio = found["unified"] / found["Moreau"]
    lines.append(f"the paper: a factor of ten for the unified scheme; here {ratio:.1f}")
    numbers = {f"{name}: us per step": us for name, us in found.items()} | {"unified / Moreau": ratio}
    for name in ("unified", "unified, explicit force"):
        numbers[f"{name}: radius at omega dt = 3"] = float(spectral_radius(SCHEMES[name], 3.0))
    numbers["implicit / explicit force"] = found["unified"] / found["unified, explicit force"]
    return common.finish(__file__, folder, numbers, table="\n".join(lines))


if __name__ == "__main__":
    common.command(main)
