"""Errors of sensitivities over many step sizes, and the schemes and motions on which they are measured."""

from __future__ import annotations

import numpy as np

from nsjax import schemes
from nsjax.core.scheme import Scheme
from tests.gradients import balls, cases, particle, pendulum
from tests.gradients.program import STEPS, Answer, off, primes_near, sensitivity

Motion = particle.Case | balls.Case | pendulum.Case

SCHEMES: dict[str, Scheme] = {name: entry.factory() for name, entry in schemes.REGISTRY.items()}
# without numerical damping nothing that a scheme remembers wrongly is forgotten
SCHEMES["generalized_alpha(1)"] = schemes.generalized_alpha(rho_inf=1.0)

GRID = STEPS[:7]
"""Step counts from 100 to 11 000: seven octaves of five primes."""
DENSE_GRID = primes_near(100, 7, 20)
"""Twenty primes in each octave: the fitted order scatters half as much."""


def answer(case: Motion, scheme: Scheme, steps: int, gradient: str = "saltation") -> Answer:
    """Final state and the compared columns of its sensitivities."""
    home, p, columns = _home(case)
    found = sensitivity(home.SYSTEM, home.build, scheme, p, case.time, steps, gradient)
    return Answer(x=found.x, jacobian=found.jacobian[:, columns], notes=found.notes)


def _home(case: Motion):
    """Model, parameters and compared columns."""
    if isinstance(case, particle.Case):
        return particle, case.vector(), case.index()
    if isinstance(case, balls.Case):
        return balls, case.vector(), slice(None)
    return pendulum, np.array(case.values), slice(None)


def errors(case: Motion, scheme: Scheme, steps, gradient: str = "saltation") -> np.ndarray:
    """Relative errors of the sensitivities, shaped as ``steps``."""
    exact = _home(case)[0].reference(case)[1]
    found = [off(answer(case, scheme, n, gradient).jacobian, exact) for n in np.ravel(steps)]
    return np.reshape(found, np.shape(steps))


def grid_of(case: Motion, grid: np.ndarray = GRID) -> np.ndarray:
    """For the pendulum without the two octaves in which its impact may not have happened yet."""
    return grid[2:] if isinstance(case, pendulum.Case) else grid


ALL: dict[str, Motion] = {
    case.name: case for case in [*cases.ALL, *balls.CASES, pendulum.SLIP, pendulum.STICK]
}
