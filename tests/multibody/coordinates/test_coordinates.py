"""Joint and absolute coordinates of one mechanism: the same energies, contacts, accelerations, motion."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.core.operators import prepared
from nsjax.multibody import assemble, ball, body, contact, hinge, joint_spring, plane, point, spring

BOTH = ("joint", "absolute")


def planar(coordinates, angles=(-0.3, -0.6, -0.9, -1.2), rates=(0.4, -0.7, 0.2, 0.9)):
    """Four links over a floor, which the end of each may hit."""
    parts = []
    for k in range(4):
        above = "ground" if k == 0 else f"b{k - 1}"
        parts += [
            body(f"b{k}", mass=1.0 + 0.2 * k, inertia=0.1, com=(0.5, 0.05)),
            hinge(f"h{k}", above, f"b{k}", at=None if k == 0 else (1.0, 0.1)),
            joint_spring(f"k{k}", f"h{k}", stiffness=2.0, damping=0.1, rest=-0.1),
            contact(f"c{k}", point(f"b{k}", 1.0), plane(at=(0.0, -3.0)), restitution=0.5, friction=0.2),
        ]
    parts.append(spring("s", ("ground", (2.0, 1.0)), ("b3", 0.5), stiffness=5.0, length=0.5, damping=0.2))
    start = {f"b{k}": x for k, x in enumerate(zip(angles, rates, strict=True))}
    return assemble(*parts, gravity=9.81, coordinates=coordinates, start=start)


def spatial(
    coordinates, angles=(0.2, -0.4, 0.9), turn=(0.3, -0.2, 0.5), rates=(1.0, -2.0, 0.5), spin=(1.0, 2, 3)
):
    """Three hinges about different axes and a ball."""
    axes = np.array([[0.0, 0, 1], [0.0, 0.6, 0.8], [1.0, 0, 0]])
    parts, start = [], {"b3": (np.array(turn), np.array(spin))}
    for k in range(4):
        above, at = ("ground", None) if k == 0 else (f"b{k - 1}", (0.8, 0.1, -0.2))
        parts.append(body(f"b{k}", mass=1.0 + 0.3 * k, inertia=(0.2, 0.3, 0.4), com=(0.4, 0.1, 0.05)))
        if k == 3:
            parts.append(ball("h3", above, "b3", at=at, on=(-0.1, 0.0, 0.1)))
            continue
        parts.append(hinge(f"h{k}", above, f"b{k}", at=at, axis=axes[k], turned=(0.1 * k, 0.2, -0.1)))
        parts.append(joint_spring(f"k{k}", f"h{k}", stiffness=2.0, damping=0.3))
        start[f"h{k}"] = angles[k], rates[k]
    parts.append(spring("s", ("ground", (1.0, 1.0, 1.0)), ("b3", 0.3), stiffness=5.0, length=0.5))
    return assemble(*parts, gravity=9.81, coordinates=coordinates, start=start)


def random_planar(rng):
    angles, rates = rng.uniform(-3, 3, 4), rng.normal(size=4)
    return {c: planar(c, angles, rates) for c in BOTH}


def random_spatial(rng):
    angles, rates = rng.uniform(-2, 2, 3), rng.normal(size=3)
    turn, spin = rng.normal(size=3), rng.normal(size=3)
    return {c: spatial(c, angles, turn, rates, spin) for c in BOTH}


def looked_at(system):
    """Energies, contacts and accelerations of the bodies' centres."""
    mechanism = system.force.__self__
    names = [x.name for x in mechanism.topology.all_of("body")]

    def found(q, v, params):
        p = prepared(system, params)
        t, rest = jnp.zeros(()), jnp.zeros(system.nv)
        mass, force = system.mass(q, p) if system.mass else None, system.force(t, q, v, p)
        if mass is None:
            mass = jax.vmap(lambda w: system.inertia(q, w, p))(jnp.eye(system.nv))

        def motion(q, v):
            scene = mechanism.scene(t, q, v, p)
            coms = [scene.velocity(x, params[x].com) for x in names]
            return jnp.concatenate([*coms, *(jnp.reshape(scene.spin(x), -1) for x in names)])

        def along(f, q, v):
            """Rate of ``f(q)`` along the motion."""
            return jax.jvp(lambda s: f(system.retract(q, s * v)), (0.0,), (1.0,))[1]

        if system.nb:
            rows = jax.jacfwd(lambda xi: system.constraint(t, system.retract(q, xi), p))(rest)
            bent = along(lambda q: along(lambda r: system.constraint(t, r, p), q, v), q, v)
            n = system.nb
            saddle = jnp.block([[mass, rows.T], [rows, jnp.zeros((n, n))]])
            a = jnp.linalg.solve(saddle, jnp.concatenate([force, -bent]))[: system.nv]
        else:
            a = jnp.linalg.solve(mass, force)
        change = along(lambda r: motion(r, v), q, v) + jax.jvp(lambda w: motion(q, w), (v,), (a,))[1]
        seen = {
            "velocity": motion(q, v), "acceleration": change,
            "kinetic": 0.5 * v @ mass @ v, "potential": system.potential(t, q, p),
        }  # fmt: skip
        if system.nc:
            seen |= {"gap": system.gap(t, q, p), "slip": system.slip(t, q, v, p)}
        return seen

    return jax.jit(found)


@pytest.mark.parametrize("make", [random_planar, pytest.param(random_spatial, marks=pytest.mark.slow)])
def test_functions_agree(make) -> None:
    """At random consistent states: accelerations to 1e-9, the others to 1e-12 of their size."""
    rng = np.random.default_rng(2)
    compiled = {}
    for _ in range(5):
        problems = make(rng)
        seen = {}
        for name, problem in problems.items():
            if name not in compiled:
                compiled[name] = looked_at(problem.system)
            params = jax.tree.map(lambda x: jnp.asarray(x, float), problem.params)
            seen[name] = compiled[name](jnp.asarray(problem.state.q), jnp.asarray(problem.state.v), params)
        for what, wanted in seen["joint"].items():
            limit = 1e-9 if what == "acceleration" else 1e-12
            size = max(1.0, float(np.max(np.abs(wanted))))
            assert np.max(np.abs(seen["absolute"][what] - wanted)) <= limit * size, what
