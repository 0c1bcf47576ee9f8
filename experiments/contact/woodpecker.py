"""Woodpecker toy of Glocker: sleeve and bird on a pole, linearised by hand, and from parts."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from nsjax import ContactLaw, Labels, Problem, State, System
from nsjax.multibody import assemble, body, contact, hinge, joint_spring, plane, point, slide
from nsjax.types import Array, record


@record()
class Woodpecker:
    """Masses [kg], inertias [kg m^2], spring [N m/rad] and lengths [m] of sleeve (M) and bird (S);
    the restitution is that of the beak."""

    mass_m: Array | float = 3e-4
    mass_s: Array | float = 4.5e-3
    inertia_m: Array | float = 5e-9
    inertia_s: Array | float = 7e-7
    spring: Array | float = 0.0056
    gravity: Array | float = 9.81
    l_m: Array | float = 0.010
    l_g: Array | float = 0.015
    l_s: Array | float = 0.0201
    h_m: Array | float = 0.0058
    h_s: Array | float = 0.02
    r_m: Array | float = 0.0031
    r_o: Array | float = 0.0025
    restitution: Array | float = 0.5
    friction: Array | float = 0.3


def mass(q: Array, p: Any) -> Array:
    """Mass matrix."""
    s, lm, lg = p.mass_s, p.l_m, p.l_g
    m11, m12, m13 = s + p.mass_m, s * lm, s * lg
    m22, m23, m33 = p.inertia_m + s * lm**2, s * lm * lg, p.inertia_s + s * lg**2
    return jnp.stack([jnp.asarray(m) for m in (m11, m12, m13, m12, m22, m23, m13, m23, m33)]).reshape(3, 3)


def force(t: Array, q: Array, v: Array, p: Any) -> Array:
    """Weights, and the spring between sleeve and bird."""
    weight = p.gravity * p.mass_s
    moment = p.spring * (q[1] - q[2])
    return jnp.stack(
        [-p.gravity * (p.mass_s + p.mass_m), -weight * p.l_m - moment, -weight * p.l_g + moment]
    )


def potential(t: Array, q: Array, p: Any) -> Array:
    """The potential of both bodies [J]."""
    height = (p.mass_s + p.mass_m) * q[0] + p.mass_s * (p.l_m * q[1] + p.l_g * q[2])
    return p.gravity * height + 0.5 * p.spring * (q[1] - q[2]) ** 2


def gap(t: Array, q: Array, p: Any) -> Array:
    """Gaps of the beak, the lower and the upper edge of the sleeve."""
    play = p.r_m - p.r_o
    beak = -p.h_s * q[2] + p.l_m + p.l_g - p.l_s - p.r_o
    return jnp.stack([beak, p.h_m * q[1] + play, -p.h_m * q[1] + play])


def slip(t: Array, q: Array, v: Array, p: Any) -> Array:
    """Slip velocities of the contacts, upwards."""
    beak = v[0] + p.l_m * v[1] + (p.l_g - p.l_s) * v[2]
    edge = v[0] + p.r_m * v[1]
    return jnp.stack([beak, edge, edge])[:, None]


def law(p: Any) -> ContactLaw:
    """Contact law: only the beak rebounds."""
    return ContactLaw(restitution=p.restitution * np.array([1.0, 0.0, 0.0]), friction=p.friction)


SYSTEM = System(
    nq=3, nv=3, nc=3, nt=1, mass=mass, force=force, potential=potential, gap=gap, slip=slip, law=law,
    labels=Labels(
        q=("y [m]", "phi_m [rad]", "phi_s [rad]"), v=("vy [m/s]", "omega_m [rad/s]", "omega_s [rad/s]"),
        contacts=("beak", "lower edge", "upper edge"),
    ),
)  # fmt: skip


def woodpecker() -> Problem:
    """The linearised toy at the time when the lower edge of the sleeve has just closed."""
    q, v = jnp.array([0.0, -0.1036, -0.2788]), jnp.array([-0.3411, 4.8572e-15, -7.4583])
    return Problem(system=SYSTEM, params=Woodpecker(), state=State(t=0.0, q=q, v=v))


def toy(scale: float = 1.0) -> Problem:
    """The linear toy with clearances, deflections and angles scaled by ``scale``."""
    linear = woodpecker()
    p, root = linear.params, np.sqrt(scale)
    beak = p.l_m + p.l_g - p.l_s - p.r_o
    smaller = dataclasses.replace(
        p, spring=p.spring / scale, r_o=p.r_m - scale * (p.r_m - p.r_o),
        l_s=p.l_m + p.l_g - p.r_m + scale * (p.r_m - p.r_o) - scale * beak,
    )  # fmt: skip
    q = jnp.array([0.0, -0.1 * scale, linear.state.q[2] * scale])  # the edge of finite angles is further in
    state = State(t=0.0, q=q, v=linear.state.v * root)
    return Problem(system=linear.system, params=smaller, state=state)


def toy_of_parts(scale: float = 1.0) -> Problem:
    """The toy with finite angles, from parts; the pole is a plane."""
    p, q, v = toy(scale).params, toy(scale).state.q, toy(scale).state.v
    pole, edge = plane(at=(p.r_o, 0.0), normal=(1.0, 0.0)), {"restitution": 0.0, "friction": p.friction}
    beak = {"restitution": p.restitution, "friction": p.friction}
    return assemble(
        body("guide", mass=0.0),
        body("sleeve", mass=p.mass_m, inertia=p.inertia_m),
        body("bird", mass=p.mass_s, inertia=p.inertia_s, com=p.l_g),
        slide("fall", "ground", "guide", axis=(0.0, 1.0), turned=0.0),
        hinge("tilt", "guide", "sleeve"),
        hinge("neck", "sleeve", "bird", at=p.l_m),
        joint_spring("coil", "neck", stiffness=p.spring),
        contact("beak", point("bird", (p.l_g - p.l_s, p.h_s)), pole, **beak),
        contact("lower", point("sleeve", (p.r_m, -p.h_m)), pole, **edge),
        contact("upper", point("sleeve", (p.r_m, p.h_m)), pole, **edge),
        gravity=p.gravity, start={"fall": (q[0], v[0]), "sleeve": (q[1], v[1]), "bird": (q[2], v[2])},
    )  # fmt: skip
