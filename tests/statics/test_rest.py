"""`start="equilibrium"`: stable positions of rest against closed forms, in all coordinates."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.analysis import equilibrium
from nsjax.multibody import (
    actuator,
    assemble,
    ball,
    body,
    coupling,
    hinge,
    joint_spring,
    read_mjcf,
    slide,
    spring,
)
from tests.multibody.test_start import linkage

SLOW = pytest.mark.slow
BOTH = ("joint", pytest.param("absolute", marks=SLOW))


def pendulum(**given: Any) -> Any:
    return assemble(
        body("rod", mass=2.0, inertia=0.1, com=0.5), hinge("pin", "ground", "rod"), gravity=9.81, **given
    )


@pytest.mark.parametrize("coordinates", BOTH)
@pytest.mark.parametrize("angle", [0.0, np.pi / 2.0, 2.0])
def test_a_pendulum_hangs(coordinates: str, angle: float) -> None:
    """Without stiffness at the horizontal, and from the top, which is no stable one."""
    problem = pendulum(start="equilibrium", guess={"rod": angle}, coordinates=coordinates)
    place = problem.system.labels.q.index("rod.angle [rad]")
    assert abs(np.cos(problem.state.q[place])) < 1e-9
    assert np.sin(problem.state.q[place]) == pytest.approx(-1.0, abs=1e-12)
    assert not np.any(problem.state.v)


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", BOTH)
def test_a_loaded_spring_in_space(coordinates: str) -> None:
    """``x = m g / k`` of a slide, and a ball that hangs below its point."""
    problem = assemble(
        body("weight", mass=2.0, inertia=(0.1, 0.1, 0.1)),
        slide("rail", "ground", "weight", axis=(0.0, 0.0, 1.0)),
        joint_spring("k", "rail", stiffness=50.0),
        body("bob", mass=1.0, inertia=(0.1, 0.2, 0.1), com=(0.3, 0.2, 0.1)), ball("b", "weight", "bob"),
        gravity=(0.0, 0.0, -9.81), coordinates=coordinates, start="equilibrium",
    )  # fmt: skip
    mechanism, q = problem.system.parts, jnp.asarray(problem.state.q)
    scene = mechanism.scene(jnp.zeros(()), q, jnp.zeros(problem.system.nv), problem.params)
    np.testing.assert_allclose(scene.position("weight"), (0.0, 0.0, -3.0 * 9.81 / 50.0), atol=1e-9)
    below = np.asarray(scene.position("bob", np.array((0.3, 0.2, 0.1))) - scene.position("weight"))
    np.testing.assert_allclose(below, (0.0, 0.0, -np.sqrt(0.14)), atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", BOTH)
def test_a_loop_and_a_coupling(coordinates: str) -> None:
    """A four-bar linkage: the lowest of its energies, by a search over the crank; and a coupled slide."""
    cord = spring("k", ("ground", (0.0, 0.5)), ("rocker", 0.5), stiffness=30.0, length=0.2)
    upper = {"coupler": 0.3, "rocker": 1.8}
    guess = {"crank": 1.0, **upper}
    problem = linkage(cord, coordinates=coordinates, start="equilibrium", guess=guess)
    again = equilibrium(problem).problem
    np.testing.assert_allclose(problem.state.q, again.state.q, atol=1e-8)
    tree = linkage(cord, start={"crank": 1.0}, guess=upper)
    energy = jax.jit(lambda q: tree.system.potential(jnp.zeros(()), q, tree.params))
    own = problem.system.potential(jnp.zeros(()), jnp.asarray(problem.state.q), problem.params)
    angle = float(problem.state.q[problem.system.labels.q.index("crank.angle [rad]")])
    for shift in (-0.3, 0.3):
        other = linkage(cord, start={"crank": angle + shift}, guess=upper)
        assert float(energy(jnp.asarray(other.state.q))) > float(own)


def test_a_coupled_slide_follows() -> None:
    problem = assemble(
        body("arm", mass=1.0, inertia=0.1, com=0.5), hinge("A", "ground", "arm"), actuator("m", "A", 0.4),
        body("bar", mass=1.0, inertia=0.1), slide("S", "ground", "bar"),
        coupling("law", "S", "A", polynomial=(0.1, 0.2)), gravity=9.81, start="equilibrium",
    )  # fmt: skip
    angle, place = (float(x) for x in problem.state.q[:2])
    assert np.cos(angle) * 0.5 * 9.81 == pytest.approx(0.4, abs=1e-8)
    assert np.sin(angle) < 0.0
    assert place == pytest.approx(0.1 + 0.2 * angle, abs=1e-10)


def falling(**given: Any) -> Any:
    parts = body("b", mass=1.0, inertia=0.1), *given.pop("more", ())
    return assemble(*parts, gravity=9.81, start="equilibrium", **given)


@SLOW
def test_a_file_at_rest() -> None:
    """Two coupled hinges with a spring hang under gravity: ``problem("equilibrium")``."""
    pytest.importorskip("mujoco", reason="the package mujoco is not installed")
    text = """<mujoco><worldbody><body name="a"><joint name="A" axis="0 1 0" stiffness="2"/>
    <geom size="0.1" pos="0.4 0 0" mass="1"/><body name="b" pos="0.8 0 0"><joint name="B" axis="0 1 0"/>
    <geom size="0.1" pos="0.3 0 0" mass="0.5"/></body></body></worldbody>
    <equality><joint joint1="B" joint2="A" polycoef="0.1 0.5 0 0 0"/></equality></mujoco>"""
    problem = read_mjcf(text, contact=False).problem("equilibrium")
    x = float(problem.state.q[0])
    assert float(problem.state.q[1]) == pytest.approx(0.1 + 0.5 * x, abs=1e-10)

    def energy(x: float) -> float:
        """Heights of both masses, and the spring; angles turn downwards."""
        other = x + 0.1 + 0.5 * x
        heights = -0.4 * np.sin(x) + 0.5 * (-0.8 * np.sin(x) - 0.3 * np.sin(other))
        return float(9.81 * heights + x * x)

    h = 1e-4
    assert abs(energy(x + h) - energy(x - h)) / (2.0 * h) < 1e-6
    assert energy(x + h) + energy(x - h) > 2.0 * energy(x)
