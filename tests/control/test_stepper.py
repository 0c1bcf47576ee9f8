"""Steps one by one and in lanes: they are those of a run."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import schemes
from nsjax.multibody import actuator, assemble, body, slide
from tests.control.mechanisms import arm, hopper

# Steps one by one against runs, their size, and gradients of returns through landings.
STEPS, DT = 200, 1e-3
COMMAND = 0.5 + 0.1 * np.sin(0.05 * np.arange(STEPS))
"""Length of the leg: the hopper lands at about step 170 (0.2 m of fall less its own thrust)."""


CART = assemble(
    body("cart", mass=2.0, inertia=0.1), slide("rail", "ground", "cart"), actuator("push", "rail", 0.0)
)


def rolled(stepper: nsjax.Stepper, u: Any, start: Any = None) -> Any:
    return jax.lax.scan(stepper.step, stepper.reset() if start is None else start, u)


SCHEMES = (schemes.moreau(), schemes.generalized_alpha(), schemes.nsga_decoupled(), schemes.half_explicit())
QUICK = (SCHEMES[0], "joint", 2)
OTHERS = [("absolute", 2), ("absolute", 3), ("joint", 3), ("joint", 2)]
CASES = [
    QUICK,
    *(pytest.param(x, *c, marks=pytest.mark.slow) for x, c in zip(SCHEMES, OTHERS, strict=True)),
]


@pytest.mark.parametrize(("scheme", "coordinates", "dimension"), CASES)
def test_steps_are_those_of_a_run(scheme: nsjax.Scheme, coordinates: str, dimension: int) -> None:
    problem = arm(coordinates, dimension)
    u = np.linspace(-0.5, 0.5, 60)[:, None]
    stepper = nsjax.stepper(problem, scheme, 4e-3, inputs=["servo"], save=["force_normal", "impacts"])
    carry, steps = rolled(stepper, u)
    table = nsjax.signal(4e-3 * np.arange(60), u[:, 0])
    run = nsjax.simulate(*problem, scheme, dt=4e-3, steps=60, inputs={"servo": table}, gradient="saltation")
    assert int(carry.status) == int(run.status) == 0
    # the same operations; a compiler may round them in another order
    assert np.max(np.abs(steps.q - run.q[1:])) < 1e-12
    assert np.max(np.abs(steps.force_normal - run.force_normal[1:])) < 1e-7
    assert np.array_equal(steps.impacts, run.impacts[1:])
    assert float(carry.state.t) == run.t[-1]


@pytest.mark.parametrize(
    ("name", "delay"),
    [
        ("bathe", 1 / 3),
        ("ed_alpha", 0.0),
        pytest.param("generalized_alpha", 0.5, marks=pytest.mark.slow),
        pytest.param("nsga_coupled", 0.5, marks=pytest.mark.slow),
    ],
)
def test_the_first_input_acts_from_the_start(name: str, delay: float) -> None:
    """Schemes that carry an acceleration begin with that of the first input: a cart of 2 kg, without
    contacts, is pushed with 3 N, and with none by default. A jump to 6 N acts late, by the documented part
    of a step.
    """
    stepper = nsjax.stepper(CART, schemes.REGISTRY[name].factory(), 1e-2, inputs=["push"])
    _, steps = rolled(stepper, np.where(np.arange(40)[:, None] < 20, 3.0, 6.0))
    t = np.asarray(steps.t[:20])
    np.testing.assert_allclose(steps.v[:20, 0], 1.5 * t, rtol=1e-12)
    np.testing.assert_allclose(steps.q[:20, 0], 0.75 * t**2, rtol=1e-12)
    # the filter of generalized-alpha forgets by its spectral radius of 0.8 or less in a step
    assert float(steps.v[-1, 0]) == pytest.approx(0.9 - delay * 1e-2 * 1.5, abs=0.8**20 * 1e-2 * 1.5)


def test_linear_inputs_and_several_steps_of_the_scheme() -> None:
    u = np.sin(0.2 * np.arange(1, 31))[:, None]
    stepper = nsjax.stepper(CART, schemes.moreau(), 4e-3, inputs=["push"], hold="linear", substeps=4)
    _, steps = rolled(stepper, u)
    table = nsjax.signal(4e-3 * np.arange(31), np.concatenate([[0.0], u[:, 0]]), "linear")
    run = nsjax.simulate(*CART, schemes.moreau(), dt=1e-3, steps=120, every=4, inputs={"push": table})
    assert np.max(np.abs(steps.q - run.q[1:])) < 1e-11
    assert np.array_equal(steps.t, run.t[1:])


@pytest.mark.slow
def test_the_gradient_of_a_return_through_a_landing() -> None:
    problem, way = hopper(), np.cos(0.03 * np.arange(STEPS))
    stepper = nsjax.stepper(problem, schemes.moreau(), DT, inputs=["motor"], outputs=["foot.force"])

    def value(u: Any) -> Any:
        return DT * jnp.sum(rolled(stepper, u)[1].q[:, 0])

    def by_run(u: Any) -> Any:
        table = nsjax.signal(DT * np.arange(STEPS), u)
        run = nsjax.simulate(
            *problem, schemes.moreau(), dt=DT, steps=STEPS, save=[], inputs={"motor": table}
        )
        return DT * jnp.sum(run.q[1:, 0])

    u = jnp.asarray(COMMAND)
    assert float(jnp.max(rolled(stepper, u)[1].outputs["foot.force"])) > 0.0  # it lands
    one, other = jax.grad(value)(u), jax.grad(by_run)(u)
    assert float(jnp.max(jnp.abs(one - other))) < 1e-12 * float(jnp.max(jnp.abs(other))) + 1e-15
    wide = jax.jit(value)
    secants = [float((wide(u + h * way) - wide(u - h * way)) / (2 * h)) for h in (0.02, 0.05)]
    # first order in the step: 1.3 % here, 0.3 % with steps of DT / 4 (secants -0.00403 to -0.00406)
    for secant in secants:
        assert float(one @ way) == pytest.approx(secant, rel=0.025)


@pytest.mark.slow
def test_a_policy_sees_the_start_and_the_outputs() -> None:
    stepper = nsjax.stepper(
        hopper(), schemes.moreau(), DT, inputs=["motor", "gravity"],
        outputs=["guide.position", "leg.velocity", "foot.gap"],
    )  # fmt: skip
    start = stepper.reset()
    seen = stepper.observe(start)
    assert float(seen.outputs["guide.position"]) == 0.75
    assert stepper.names == ("motor", "gravity")
    assert stepper.input_size == 2

    def policy(state: Any, _: Any) -> Any:
        carry, seen = state
        u = {"motor": 0.5 + 0.1 * seen.outputs["leg.velocity"][1], "gravity": 9.81}
        carry, seen = stepper.step(carry, u)
        return (carry, seen), seen.outputs["foot.gap"]

    (carry, _), gaps = jax.jit(lambda x: jax.lax.scan(policy, x, None, length=50))((start, seen))
    assert gaps.shape == (50,)
    assert int(carry.status) == 0


@pytest.mark.parametrize(
    "outputs",
    [
        [],
        pytest.param(["leg.velocity", "foot.force"], marks=pytest.mark.slow),
        pytest.param(["leg.acceleration"], marks=pytest.mark.slow),
    ],
)
def test_a_loop_of_steps_calls_no_library(outputs: list[str]) -> None:
    """Whatever steps give, but what constraints of mechanisms need a library for."""
    stepper = nsjax.stepper(hopper(), schemes.moreau(), DT, inputs=["motor"], outputs=outputs)
    run = jax.jit(lambda u: jax.lax.scan(stepper.step, stepper.reset(), u))
    text = run.lower(np.full(20, 0.5)).as_text()
    assert "stablehlo.while" in text
    assert not [x for x in ("custom_call", "scatter", "stablehlo.sort", "dot_general") if x in text]


# Batches of a stepper: lanes against single runs, numbers of their own, derivatives, refusals.
LANES = 5
COMMANDS = (0.5 + 0.1 * np.sin(0.05 * np.arange(STEPS)))[:, None] + np.linspace(-0.05, 0.05, LANES)
"""Lengths of the legs (steps, lanes): all land, at steps of their own."""


def stepper(**more: Any) -> nsjax.Stepper:
    return nsjax.stepper(
        hopper(), schemes.moreau(), DT, inputs=["motor"], outputs=["foot.force", "guide.position"], **more
    )


def drops() -> nsjax.State:
    """Starts of their own."""
    q = np.array([0.65, 0.5]) + 0.01 * np.arange(LANES)[:, None] * np.array([1.0, -1.0])
    return nsjax.State(t=0.0, q=q, v=np.zeros(2))


@pytest.mark.slow
def test_lanes_are_single_runs() -> None:
    own, start = stepper(), drops()
    many = own.batch(LANES)
    carry, rows = jax.lax.scan(many.step, many.reset(state=start), COMMANDS)
    assert rows.q.shape == (STEPS, LANES, 2)
    run = jax.jit(lambda first, u: jax.lax.scan(own.step, first, u))
    for k in range(LANES):
        last, alone = run(own.reset(state=dataclasses.replace(start, q=start.q[k])), COMMANDS[:, k])
        assert float(jnp.max(alone.outputs["foot.force"])) > 0.0  # it lands
        # the same operations; a compiler may round them in another order
        np.testing.assert_allclose(rows.q[:, k], alone.q, atol=1e-13)
        np.testing.assert_allclose(
            rows.outputs["foot.force"][:, k], alone.outputs["foot.force"], rtol=1e-9, atol=1e-9
        )
        assert int(carry.status[k]) == int(last.status) == 0


def test_a_policy_answers_all_lanes_and_sees_starts() -> None:
    many = stepper().batch(LANES)
    start = many.reset(state=drops())
    seen = many.observe(start)
    np.testing.assert_allclose(seen.outputs["guide.position"], drops().q[:, 0])

    def policy(state: Any, _: Any) -> Any:
        carry, seen = state
        carry, seen = many.step(carry, {"motor": 0.4 + 0.1 * seen.outputs["guide.position"]})
        return (carry, seen), seen.t

    (carry, _), t = jax.jit(lambda x: jax.lax.scan(policy, x, None, length=30))((start, seen))
    np.testing.assert_allclose(t[-1], np.full(LANES, 30 * DT))
    assert not np.any(carry.status)
