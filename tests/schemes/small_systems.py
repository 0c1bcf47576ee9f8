"""Small systems with closed forms: a mass on a lift, a point mass and one obstacle; runs of them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

import nsjax
from nsjax import ContactLaw, State, System, schemes

G = 9.81


def run(system, params, q, v, dt, steps, *, scheme=None, t=0.0, **options) -> nsjax.Trajectory:
    state = State(t=t, q=np.array(q, float), v=np.array(v, float))
    # closed forms are compared to rounding, so the contact solver is asked for it
    scheme = schemes.moreau(contact_tolerance=1e-14) if scheme is None else scheme
    traj = nsjax.simulate(system, params, state, scheme, dt=dt, steps=steps, **options)
    traj.raise_for_status()
    return traj


def unit_mass(q, p):
    return p["mass"] * np.eye(q.shape[0])


def weight(t, q, v, p):
    return jnp.full(q.shape, -G) * p["mass"]


def lift(t, q, p):
    return q - p["amplitude"] * jnp.sin(p["frequency"] * t)


LIFT = System(nq=1, nv=1, nb=1, mass=unit_mass, force=weight, constraint=lift)


# ------------------------------------------------------------- a point mass and one obstacle
# Planar: q = (x, y), the obstacle below y = 0, gravity turned by the slope. The obstacle moves with
# heave(t) in y, its surface with belt(t) in x.


def sloped_force(t, q, v, p):
    spring = -p["stiffness"] * q[0]
    return jnp.stack(
        [p["mass"] * G * jnp.sin(p["slope"]) + spring, -p["mass"] * G * jnp.cos(p["slope"]) + 0.0 * q[1]]
    )


def floor_gap(t, q, p):
    return jnp.stack([q[1] - p["heave"] * t * t / 2])


def belt_slip(t, q, v, p):
    belt = p["belt"] + p["belt_amplitude"] * jnp.sin(p["belt_frequency"] * t)
    return jnp.stack([v[0] - belt])[:, None]


def floor_law(p):
    return ContactLaw(restitution=p["restitution"], friction=p["friction"])


def floor_gap_twice(t, q, p):
    return jnp.concatenate([floor_gap(t, q, p)] * 2)


def belt_slip_twice(t, q, v, p):
    return jnp.concatenate([belt_slip(t, q, v, p)] * 2)


BLOCK = System(
    nq=2, nv=2, nc=1, nt=1, mass=unit_mass, force=sloped_force, gap=floor_gap, slip=belt_slip, law=floor_law
)
TWICE = System(
    nq=2, nv=2, nc=2, nt=1, mass=unit_mass, force=sloped_force,
    gap=floor_gap_twice, slip=belt_slip_twice, law=floor_law,
)  # fmt: skip


def block(**numbers):
    base = dict.fromkeys(
        (
            "slope", "stiffness", "heave", "belt", "belt_amplitude", "belt_frequency", "restitution",
            "friction",
        ),
        0.0,
    )  # fmt: skip
    return {**base, "mass": 1.0, **numbers}
