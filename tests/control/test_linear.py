"""Linear motions against transfer functions, differences of the nonlinear motion, and a regulator."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest
import scipy.linalg

import nsjax
from nsjax import InputError, schemes
from nsjax.analysis import equilibrium, linearise
from nsjax.multibody import assemble, body, contact, force, joint_spring, plane, slide, sphere
from tests.control.mechanisms import CART, GRAVITY, LENGTH, POLE, cart_pole
from tests.design import slow_but

PUSH = "push.value[0]"


@pytest.mark.parametrize("coordinates", slow_but(["joint", "absolute"], "joint"))
def test_the_transfer_function_of_a_cart_pole(coordinates: str) -> None:
    J = 0.02
    linear = linearise(
        cart_pole(coordinates, inertia=J), inputs=[PUSH], outputs=["cart.position", "pole.rotation"]
    )
    A, B, C, D = linear
    assert A.shape == (4, 4)
    assert np.max(np.abs(linear.rate)) < 1e-12
    for s in (1.7j, 0.3 + 0.5j, 10.0):
        # (J + m l^2) th'' = m g l th + m l x'', (M + m) x'' - m l th'' = F
        arm, both = POLE * LENGTH, CART + POLE
        turn = (J + POLE * LENGTH**2) * s * s - arm * GRAVITY
        x, angle = np.linalg.solve([[both * s * s, -arm * s * s], [-arm * s * s, turn]], [1.0, 0.0])
        found = (C @ np.linalg.solve(s * np.eye(4) - A, B) + D)[:, 0]
        assert found[[0, 2]] == pytest.approx([x, angle], rel=1e-9)
        assert abs(found[1]) < 1e-12  # the rail holds its height


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_a_moving_state_against_differences(coordinates: str) -> None:
    problem = cart_pole(coordinates, 1.2, 0.02).replace({"push.value": (0.7, 0.1)})
    linear = linearise(problem, inputs=[PUSH], outputs=["pole.velocity", "pin.force"])
    system, state = problem.system, problem.state
    A, B, C, D = linear

    def seen(q: Any, v: Any, u: float) -> tuple[Any, Any]:
        """Outputs by sensors of a run of no duration, at a state that holds its constraints."""
        given = problem.replace({"push.value[0]": u, "state.q": q, "state.v": v})
        run = nsjax.simulate(*given, schemes.moreau(), dt=1e-3, steps=1)
        made = [run.sensor("pole.velocity")[0], run.sensor("pin.force")[0]]
        return np.concatenate(made), linear.deviation(q, v)

    h = 1e-5
    columns = []
    for k in range(linear.velocities.shape[1]):
        ends = [seen(state.q, state.v + s * h * linear.velocities[:, k], 0.7)[0] for s in (1.0, -1.0)]
        columns.append((ends[0] - ends[1]) / (2 * h))
    n = linear.positions.shape[1]
    assert np.max(np.abs(C[:, n:] - np.array(columns).T)) < 1e-7
    ends = [seen(state.q, state.v, 0.7 + s * h)[0] for s in (1.0, -1.0)]
    assert np.max(np.abs(D[:, 0] - (ends[0] - ends[1]) / (2 * h))) < 1e-7
    if coordinates == "joint":  # positions move freely there
        ends = [
            seen(system.retract(state.q, s * h * linear.positions[:, k]), state.v, 0.7)[0]
            for k in range(n) for s in (1.0, -1.0)
        ]  # fmt: skip
        found = np.array([(a - b) / (2 * h) for a, b in zip(ends[::2], ends[1::2], strict=True)]).T
        assert np.max(np.abs(C[:, :n] - found)) < 1e-7
        assert A.shape == (4, 4)
        assert B.shape == (4, 1)


@pytest.mark.slow
def test_a_regulator_balances_the_nonlinear_pole() -> None:
    problem = cart_pole(inertia=0.02)
    linear = linearise(problem, inputs=[PUSH])
    cost = scipy.linalg.solve_continuous_are(linear.A, linear.B, np.eye(4), np.eye(1))
    gain = linear.B.T @ cost
    assert np.max(np.linalg.eigvals(linear.A - linear.B @ gain).real) < 0.0
    off = cart_pole(inertia=0.02, angle=np.pi / 2 + 0.3)
    stepper = nsjax.stepper(off, schemes.moreau(), 5e-3, inputs=[PUSH], substeps=5)

    def loop(carry: Any, _: Any) -> Any:
        u = -gain @ linear.deviation(carry.state.q, carry.state.v)
        return stepper.step(carry, u)

    _, steps = jax.lax.scan(loop, stepper.reset(), None, length=2400)
    rows = linear.deviation(steps.q, steps.v)
    ends = rows[-1]
    np.testing.assert_array_equal(ends, linear.deviation(steps.q[-1], steps.v[-1]))
    assert rows.shape == (2400, 4)
    assert np.max(np.abs(steps.q[:, 1] - np.pi / 2)) < 0.5  # it never falls
    # the slowest of the poles decays at 0.7 / s, over 12 s
    assert np.max(np.abs(ends)) < 1e-2


def block(push: float = 0.0) -> nsjax.Problem:
    """A sphere that hangs on a spring, pressed onto the ground."""
    return assemble(
        body("block", mass=2.0, inertia=0.1), slide("rail", "ground", "block", axis=(0.0, 1.0)),
        joint_spring("spring", "rail", stiffness=100.0, rest=0.3),
        force("push", "block", (0.0, push)), contact("foot", sphere("block", 0.1), plane()),
        gravity=GRAVITY, start={"block": 0.1},
    )  # fmt: skip


def test_closed_contacts_hold() -> None:
    pressed = linearise(block(-30.0), inputs=["push.value[1]"], outputs=["foot.force"])
    assert pressed.held == ("foot",)
    assert pressed.A.shape == (0, 0)
    # weight and push less what the spring lifts
    assert pressed.outputs == pytest.approx([2.0 * GRAVITY + 30.0 - 100.0 * 0.2], rel=1e-12)
    assert pytest.approx(np.array([[-1.0]]), rel=1e-12) == pressed.D
    free = linearise(block(-30.0), contacts=[])
    assert pytest.approx(np.array([[0.0, 1.0], [-50.0, 0.0]]), abs=1e-12) == free.A
    with pytest.raises(
        InputError, match=r"linearise: contact .* N to stay closed; .* the loads that press it"
    ):
        linearise(block(10.0))
    with pytest.raises(InputError, match="'foot'"):
        linearise(block(), contacts=["fot"])


def test_the_discrete_form_is_exact_for_held_inputs() -> None:
    w = np.sqrt(100.0 / 2.0)
    step, push, _, _ = linearise(block(), inputs=["push.value[1]"], contacts=[]).discrete(0.03)
    c, s = np.cos(0.03 * w), np.sin(0.03 * w)
    assert step == pytest.approx(np.array([[c, s / w], [-w * s, c]]), rel=1e-12)
    assert push[:, 0] == pytest.approx([(1.0 - c) / 100.0, s / w / 2.0], rel=1e-12)


def test_an_equilibrium_on_a_contact() -> None:
    found = equilibrium(dataclasses.replace(block(-30.0)), contacts=["foot"])
    assert found.problem.state.q == pytest.approx([0.1], abs=1e-12)
    assert found.multipliers[-1] == pytest.approx([2.0 * GRAVITY + 10.0], rel=1e-9)
    with pytest.raises(
        InputError, match=r"equilibrium: contact .* would have to pull with .* N; leave it out"
    ):
        equilibrium(block(10.0), contacts=["foot"])
    with pytest.raises(InputError, match="no contact"):
        equilibrium(block(), contacts=["heel"])
