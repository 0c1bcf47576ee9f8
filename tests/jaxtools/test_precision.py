"""Programs of single precision: values and derivatives against closed forms and double precision."""

from __future__ import annotations

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, multibody, schemes
from nsjax.multibody.coordinates import spatial_vectors as space

BALL = models.bouncing_ball(restitution=0.8)
RADIUS, TIME = 0.05, 0.6


def height(params: object, scheme: nsjax.Scheme | None = None, **options: object) -> jax.Array:
    """Height of the ball after one impact."""
    scheme = schemes.moreau() if scheme is None else scheme
    run = nsjax.simulate(
        BALL.system, params, BALL.state, scheme, dt=1e-3, steps=600, every=600, **options
    )  # fmt: skip
    return run.q[-1, 0]


def closed_form(e: float, g: float, drop: float) -> tuple[float, float]:
    """The height, and its derivative by the restitution."""
    fall = np.sqrt(2.0 * drop / g)
    slope = g * fall * (TIME - fall)
    return RADIUS + e * slope - 0.5 * g * (TIME - fall) ** 2, slope


@pytest.mark.slow
def test_value_and_gradient() -> None:
    found, slopes = nsjax.single_precision(jax.value_and_grad(height))(BALL.params)
    wide, exact = jax.jit(lambda p: (height(p), jax.jacfwd(height)(p)))(BALL.params)
    assert found.dtype == slopes.restitution.dtype == jnp.float32
    # velocities of 4 m/s are rounded to 2e-7, six hundred times
    assert abs(found - wide) < 6e-5
    for narrow, other in zip(jax.tree.leaves(slopes), jax.tree.leaves(exact), strict=True):
        assert abs(narrow - other) < 1e-4
    value, slope = closed_form(0.8, float(BALL.params.gravity), float(BALL.state.q[0]) - RADIUS)
    # Moreau's rule moves the impact by up to a step of 1e-3 s
    assert abs(found - value) < 2e-2
    assert abs(slopes.restitution - slope) < 2e-2


def test_cross_products_forward_and_reverse() -> None:
    """Whose components are moved around by an operation of the package."""
    x, w = np.random.default_rng(2).normal(size=(2, 5, 3, 4))

    def volume(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.sum(space.cross(x, x[:, ::-1]) * w)

    for derivative in (jax.grad(volume), jax.jacfwd(volume)):
        lanes = jax.vmap(derivative)
        found = nsjax.single_precision(lanes)(x, w)
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(found, lanes(x, w), atol=1e-5)


def test_a_program_has_no_wide_numbers_and_lanes_are_its_own() -> None:
    over = jnp.linspace(0.1, 0.9, 5, dtype=jnp.float32)
    lanes = nsjax.single_precision(jax.vmap(lambda e: height(BALL.replace(restitution=e).params)))
    alone = nsjax.single_precision(lambda e: height(BALL.replace(restitution=e).params))
    np.testing.assert_allclose(lanes(over), [alone(e) for e in over], rtol=0, atol=2e-6)
    text = jax.jit(lanes).lower(over).as_text()
    assert "f32" in text
    assert "f64" not in text


def test_constants_beyond_the_range() -> None:
    @nsjax.single_precision
    def scaled(x: jax.Array) -> tuple[jax.Array, ...]:
        tiny, large = jnp.finfo(float).tiny, np.array([1e300, -1e300, 0.0, np.inf])
        return x / jnp.maximum(jnp.abs(x), tiny), jnp.minimum(x, large), jnp.float64(x)

    ratio, least, same = scaled(0.0)
    assert ratio == 0.0
    assert np.all(np.isfinite(least))
    assert same.dtype == jnp.float32


def test_refusals() -> None:
    localized = nsjax.single_precision(lambda p: height(p, schemes.localized(schemes.moreau())))
    with pytest.raises(nsjax.InputError, match=r"localized\(moreau\)' in single precision"):
        localized(BALL.params)
    stopped = nsjax.single_precision(lambda p: height(p, stop=lambda t, q, v, p: v[0]))
    with pytest.raises(nsjax.InputError, match="stop and resets in single precision"):
        stopped(BALL.params)
    with pytest.raises(NotImplementedError, match=r"take it inside, single_precision\(jax.grad"):
        jax.grad(nsjax.single_precision(height))(BALL.params)
    # runs outside keep their tolerances and their precision
    assert height(BALL.params, schemes.localized(schemes.moreau())).dtype == jnp.float64


@pytest.mark.slow
@pytest.mark.parametrize(("name", "up"), [("hopper", 1), ("ant", 2), ("go1_feet", 2)])
def test_robots_for_thousands_of_steps(name: str, up: int, reference_data: pathlib.Path) -> None:
    """Robots that fall onto the floor with random velocities."""
    file = reference_data / "robots" / f"{name}.xml"
    if not file.exists():
        pytest.skip(f"no {file}; set NSJAX_DATA to the folder above it")
    problem = multibody.assemble(*multibody.read_mjcf(file))
    q = np.array(problem.state.q)
    q[up] += 0.2
    v = 0.3 * np.random.default_rng(0).standard_normal(problem.system.nv)
    start = nsjax.consistent(problem.replace(initial_q=q, initial_v=v)).problem

    def run(params: object, state: nsjax.State) -> tuple[jax.Array, ...]:
        found = nsjax.simulate(
            start.system,
            params,
            state,
            schemes.moreau(),
            dt=1e-3,
            steps=5_000,
            every=50,
            gradient="discrete",
        )
        return found.q, found.status

    wide, status = jax.jit(run)(start.params, start.state)
    found, bits = nsjax.single_precision(run)(start.params, start.state)
    assert status == bits == 0
    # impacts part motions: roundings of 1e-7 grow to 1e-4 in 5 s
    assert np.max(np.abs(found[:20] - wide[:20])) < 1e-4
    assert np.max(np.abs(found - wide)) < 5e-3
