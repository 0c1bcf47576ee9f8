"""Derivatives of a flexible arm that strikes a stop, against secants wider than the teeth of its map."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

import nsjax
from nsjax import schemes
from nsjax.multibody import assemble, beam, contact, hinge, plane, section, sphere

PARAMETERS = ("arm.section.EI", "arm.section.line_mass", "stop.second.at[2]")
"""Stiffness and inertia of the section, and the height of the stop: minus the clearance to it."""

CASES = {
    "moreau": (schemes.moreau(), 2e-3, 2e-4, 0.216, PARAMETERS),
    "generalized_alpha": (schemes.generalized_alpha(0.8), 2e-2, 1e-4, 0.21, (*PARAMETERS, "arm.damping")),
}
"""Scheme, damping, step, end and parameters. The explicit scheme is left without that of damping: it bears
little of it, of which a tenth moves the impact by 0.02 steps, so that no secant is wider than a tooth.
"""


def places(traj):
    """Heights and speeds of all nodes but the first at the end."""
    q, v = traj.q[-1].reshape(-1, 7), traj.v[-1].reshape(-1, 6)
    return jnp.concatenate([q[1:, 2], v[1:, 2]])


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_of_stiffness_inertia_and_clearance(name: str) -> None:
    """A soft arm falls from the horizontal about a hinge and strikes at 0.204 s; the run ends before its
    next impact, 12 to 17 ms later. Its highest frequencies are below 1 kHz.
    """
    scheme, damping, dt, end, parameters = CASES[name]
    soft = section(EA=1e3, GA=1e3, EI=5.0, GJ=5.0, line_mass=1.0, line_inertia=1e-2)
    problem = assemble(
        beam("arm", (0, 0, 0), (1, 0, 0), elements=2, section=soft, damping=damping),
        hinge("pin", "ground", "arm.start", axis=(0, 1, 0)),
        contact("stop", sphere("arm.end", 0.01), plane(at=(0.0, 0.0, -0.3)), restitution=0.5),
        gravity=9.81,
    )  # fmt: skip
    found = nsjax.check_gradient(
        problem, scheme, parameters=parameters, dt=dt, time=end, outputs=places, samples=9
    )
    assert found.impacts == 1
    assert found.agrees, str(found)
