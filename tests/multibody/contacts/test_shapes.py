"""A shape that the package does not have, by one entry of the registry of shapes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import nsjax
from nsjax import schemes
from nsjax.core import InputError
from nsjax.core.operators import prepared
from nsjax.multibody import assemble, body, contact, plane
from nsjax.multibody.contacts.all_shapes import KINDS
from nsjax.multibody.contacts.closest_points import ShapeContacts
from nsjax.multibody.contacts.shape import PairKind, Shape, ShapeKind, normal_of
from nsjax.multibody.numbers import Points
from nsjax.shapes import Shape as Drawn

HALF = np.array([0.3, 0.2, 0.1])


def ellipsoid(name: str, half: Any) -> Shape:
    """Half axes (3,) along those of the body."""
    return Shape("ellipsoid", name, Points(at=np.asarray(half, float)[None]))


def on_plane(scene: Any, part: Any, numbers: Any, near: Any) -> ShapeContacts:
    """The lowest point of an ellipsoid lies at ``-D^2 n / |D n|`` for the normal n in its axes."""
    a, (first, second) = scene.algebra, part.bodies
    up, half = normal_of(scene, second, numbers.second), jnp.asarray(numbers.first.at)[0]
    seen = a.turned_back(scene.frame(first).turn, a.array(up))
    low = -half * half * seen / jnp.sqrt(jnp.sum((half * seen) ** 2))
    here = scene.position(first, low)
    gap = jnp.sum(a.array(up) * (here - scene.position(second, numbers.second.at)))
    return ShapeContacts(gap, here, here - gap * a.array(up), a.array(up))


def drawn(scene: Any, name: str, where: str, x: Any) -> tuple[Drawn, ...]:
    tips = jnp.concatenate([jnp.diag(x.at[0]), -jnp.diag(x.at[0])])
    return (Drawn(points=jax.vmap(lambda y: scene.position(where, y))(tips), name=name, kind="dots"),)


ELLIPSOID = ShapeKind(
    "ellipsoid", drawn, (PairKind("ellipsoid", "plane", on_plane),),
    instead=((2, "an ellipsoid is spatial; use a disc"),),
)  # fmt: skip


@pytest.mark.slow
def test_a_new_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its gap is that of its lowest point, its derivative by a half axis that of the closed form, forward
    and reverse; it rests on its flat side, and is drawn.
    """
    monkeypatch.setitem(KINDS, ELLIPSOID.name, ELLIPSOID)
    parts = [
        body("egg", mass=1.0, inertia=(0.01, 0.02, 0.03)),
        contact("floor", ellipsoid("egg", HALF), plane(), friction=0.4),
    ]  # fmt: skip
    problem = assemble(*parts, gravity=(0.0, 0.0, -9.81), start={"egg": ((0.0, 0.0, 0.15),)})
    system = problem.system

    @jax.jit
    def both(half: Any, q: Any) -> Any:
        def gap(half: Any) -> Any:
            moved = problem.replace(**{"floor.first.at": half[None]})
            return system.gap(jnp.zeros(()), q, prepared(system, moved.params))[0]

        return gap(half), jax.jacfwd(gap)(half), jax.jacrev(gap)(half)

    for k in range(5):
        turn = Rotation.random(random_state=k)
        q = jnp.asarray([0.1, 0.2, 0.3, *turn.as_quat(scalar_first=True)])
        up = turn.as_matrix()[2]
        wide = np.linalg.norm(HALF * up)
        value, forward, reverse = (np.asarray(x) for x in both(jnp.asarray(HALF), q))
        assert abs(value - (0.3 - wide)) < 1e-14
        np.testing.assert_allclose(forward, -HALF * up * up / wide, rtol=0, atol=1e-13)
        np.testing.assert_allclose(forward, reverse, rtol=0, atol=1e-14)
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=300)
    traj.raise_for_status()
    assert abs(float(traj.body("egg").position[-1, 2]) - HALF[2]) < 1e-3
    picture = system.shapes(0.0, problem.state.q, prepared(system, problem.params))
    assert [x.kind for x in picture.shapes if x.name == ("egg",)] == ["dots"]
    flat = [body("egg", mass=1.0, inertia=1.0), parts[1]]
    with pytest.raises(InputError, match="'floor': an ellipsoid is spatial; use a disc"):
        assemble(*flat, gravity=(0.0, -9.81))
