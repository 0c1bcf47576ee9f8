"""Newton's method with the exact Hessian, and the observed information, against closed forms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import vonmises

import nsjax
from nsjax import models, schemes, transforms
from nsjax.identify import losses, search
from nsjax.identify.objective import Objective
from nsjax.identify.plan import make_plan
from nsjax.identify.search import trusted_step
from tests.identify.balls import DT, HEIGHT, PROBLEM, RADIUS, SCHEME, TIMES, recording, stepped
from tests.points import unit_mass

TRAIN = {
    "restitution": transforms.interval(0.0, 1.0), "gravity": transforms.positive(),
    "state.q[0]": transforms.free(),
}  # fmt: skip


def height(x: jax.Array) -> jax.Array:
    """Height of the centre at `TIMES` in closed form; x = (restitution, gravity, height at the start)."""
    e, g, top = x
    drop = top - RADIUS
    down = jnp.sqrt(2.0 * drop / g)

    def at(t: jax.Array) -> jax.Array:
        first = t - down
        second = first - 2.0 * e * down
        low = jnp.where(second < 0.0, e * g * down * first - g / 2 * first**2,
                        e**2 * g * down * second - g / 2 * second**2)  # fmt: skip
        return RADIUS + jnp.where(t < down, drop - g / 2 * t**2, low)

    grid = jnp.asarray(DT * np.arange(int(np.ceil(TIMES[-1] / DT - 1e-9)) + 1))
    return jnp.interp(jnp.asarray(TIMES), grid, at(grid))


def cost(x: jax.Array, y: np.ndarray, noise: float = 1e-3) -> jax.Array:
    return 0.5 * jnp.sum(((height(x) - y) / noise) ** 2)


def start_of(data: nsjax.Recording, loss: str = "squares") -> Objective:
    plan = make_plan(PROBLEM, SCHEME, data, TRAIN, DT, None, None)
    return Objective(plan, losses.read(loss), 1)


@pytest.mark.slow
def test_hessian_is_that_of_the_closed_form_far_from_the_data() -> None:
    """Residuals of hundreds of noise levels: Gauss and Newton's matrix is another one."""
    objective, at = start_of(recording(seed=3)), np.array([0.75, 9.5, 1.1])
    y = recording(seed=3).values["y"]
    np.testing.assert_allclose(
        height(at), stepped(TIMES, restitution=0.75, gravity=9.5, drop=1.05), atol=1e-13
    )
    (point,) = objective.points([objective.to_z(at)], curved=True)
    exact = np.asarray(jax.hessian(cost)(jnp.asarray(at), y))
    slope, bend = objective.slope(point.z), objective.bend(point.z)
    in_z = exact * np.outer(slope, slope) + np.diag(np.asarray(jax.grad(cost)(jnp.asarray(at), y)) * bend)
    size = np.sqrt(np.abs(np.diag(in_z)))
    np.testing.assert_allclose(point.hessian / np.outer(size, size), in_z / np.outer(size, size), atol=1e-7)
    linear = point.matrix.T @ point.matrix
    assert np.max(np.abs((linear - in_z) / np.outer(size, size))) > 0.02


@pytest.fixture(scope="module")
def wrong() -> nsjax.Recording:
    """A model error of thirty noise levels."""
    data = recording(seed=3)
    y = data.values["y"] + 0.03 * np.sin(9.0 * TIMES)
    return nsjax.Recording(times=TIMES, values={"y": y}, noise=1e-3)


@pytest.mark.slow
def test_newton_ends_quadratically_where_the_residuals_are_large(wrong, monkeypatch) -> None:
    monkeypatch.setattr(search.Levenberg, "curved", True)  # both by one program
    run = {"dt": DT, "cost_tolerance": 1e-14}
    newton = nsjax.identify(PROBLEM, SCHEME, wrong, TRAIN, method="newton", **run)
    other = nsjax.identify(PROBLEM, SCHEME, wrong, TRAIN, **run)
    assert newton.success
    assert np.max(np.abs(newton.values - other.values) / other.deviation) < 1e-4
    off = [
        np.max(np.abs(x.runs[0].path[:-1] - newton.values) / newton.deviation, axis=1)
        for x in (newton, other)
    ]
    quick, slow = (x[x < 10.0] for x in off)
    # Newton: 6, 0.08, 1e-5 standard deviations; Gauss and Newton's: each 0.018 of the one before
    assert quick[1] < 0.05 * quick[0]
    assert quick[2] < 1e-2 * quick[1] ** 1.5
    assert slow[2] > 5e-3 * slow[1]


# a table that turns at a known rate, its angle unknown: a classical problem with an exact answer


LENGTH, RATE, NOISE = 0.3, 2.0, 0.3
TURNED = np.linspace(0.1, 0.8, 8)


def _still(t, q, v, p):
    return jnp.zeros(1)


def _look(t, q, v, output, p):
    angle = q[0] + p["angle"]
    return {"x": p["length"] * jnp.cos(angle), "y": p["length"] * jnp.sin(angle)}


TABLE = nsjax.System(
    nq=1, nv=1, mass=unit_mass, force=_still, observe=_look,
    labels=nsjax.Labels(q=("turn [rad]",), observables=("x", "y")),
)  # fmt: skip


def table(angle: float = 0.0) -> nsjax.Problem:
    state = nsjax.State(t=0.0, q=np.zeros(1), v=np.array([RATE]))
    return nsjax.Problem(system=TABLE, params={"angle": angle, "length": LENGTH}, state=state)


def seen(count: int, seed: int, angle: float = 0.0) -> tuple[list[nsjax.Recording], np.ndarray]:
    """Recordings of a point of the table, and the sum of the data of each, turned back: a complex number,
    whose angle is the best estimate, and whose length times `LENGTH` is the curvature there.
    """
    noise = NOISE * np.random.default_rng(seed).normal(size=(count, 2, len(TURNED)))
    data = LENGTH * np.exp(1j * (angle + RATE * TURNED)) + noise[:, 0] + 1j * noise[:, 1]
    found = [
        nsjax.Recording(times=TURNED, values={"x": z.real, "y": z.imag}, noise=NOISE, name=f"{k}")
        for k, z in enumerate(data)
    ]
    return found, np.sum(data * np.exp(-1j * RATE * TURNED), axis=1)


def of_angles(data: list[nsjax.Recording], **options: object) -> nsjax.Estimate:
    return nsjax.identify(
        table(), schemes.moreau_theta(0.5), data, {"state.q[0]": transforms.free()}, dt=0.01,
        method="newton", curvature="exact", cost_tolerance=1e-14, **options,
    )  # fmt: skip


@pytest.mark.slow
def test_observed_information_covers_where_the_linearised_does_not() -> None:
    """1,200 fits. Of data whose sum is short, the angle is known less well; the exact curvature sees it
    (Fisher's problem of the normal mean on a circle).
    """
    linear, inside, theory = len(TURNED) * LENGTH**2 / NOISE**2, [], []
    for seed in (11, 12, 13):
        data, sums = seen(400, seed=seed)
        found = of_angles(data, max_runs=200)
        np.testing.assert_allclose(np.exp(1j * found.values), sums / np.abs(sums), atol=1e-6)
        np.testing.assert_allclose(np.diag(found.hessian), LENGTH * np.abs(sums) / NOISE**2, rtol=1e-6)
        np.testing.assert_allclose(np.diag(found.linear_covariance), 1.0 / linear, rtol=1e-9)
        off = np.abs(np.angle(np.exp(1j * found.values)))
        short = np.abs(sums) < np.quantile(np.abs(sums), 1.0 / 3.0)
        narrow = LENGTH * np.abs(sums[short]) / NOISE**2
        half = [1.959964 / np.sqrt(x) for x in (narrow, linear)]
        inside.append([np.mean(off[short] < x) for x in half])
        # given the length of the sum, the angle has von Mises' distribution
        theory.append([np.mean(1.0 - 2.0 * vonmises.cdf(-x, narrow)) for x in half])
        np.testing.assert_allclose(0.5 * np.diff(found.interval[short])[:, 0], half[0], rtol=1e-6)
    # 400 intervals: their share is uncertain by 1.5 %, two of which are allowed
    np.testing.assert_allclose(np.mean(inside, axis=0), np.mean(theory, axis=0), atol=0.03)
    exact, other = np.mean(inside, axis=0)
    assert exact > 0.92
    assert other < 0.89


def test_a_profile_ends_where_the_cost_has_risen() -> None:
    """The cost of an angle is a cosine; where the mean is too short, it never rises to the level."""
    for seed in range(3):
        data, sums = seen(1, seed=seed)
        narrow = LENGTH * abs(sums[0]) / NOISE**2
        found = of_angles(data, intervals="profile")
        half = np.arccos(1.0 - 1.959964**2 / 2.0 / narrow)
        np.testing.assert_allclose(found.interval[0] - found.values[0], [-half, half], rtol=3e-3)
        assert found.intervals == "profile"
    data, sums = seen(1, seed=0)
    values = {"x": np.full(8, 1e-3), "y": np.zeros(8)}
    lost = of_angles([nsjax.Recording(times=TURNED, values=values, noise=NOISE)], intervals="profile")
    assert not lost.holds
    assert np.all(np.isinf(lost.interval))
    assert any("the cost does not rise to the level on a side of state.q[0]" in m for m in lost.messages)
    with pytest.raises(
        nsjax.InputError, match="identify: intervals = 'profile' with loss = 'huber', whose rise"
    ):
        of_angles(data, intervals="profile", loss="huber")


def test_a_profile_of_two_numbers() -> None:
    """Angle and radius: with the mean ``m`` of the data turned back, the cost least over the radius is
    ``n |m|^2 sin^2(angle - best) / (2 noise^2)``, that least over the angle ``n (radius - |m|)^2 / ...``.
    """
    (data,), (total,) = seen(1, seed=4)
    mean = total / len(TURNED)
    found = nsjax.identify(
        table(), schemes.moreau_theta(0.5), data,
        {"angle": transforms.free(), "length": transforms.free()}, dt=0.01, cost_tolerance=1e-14,
        intervals="profile",
    )  # fmt: skip
    half = 1.959964 * NOISE / np.sqrt(len(TURNED))
    np.testing.assert_allclose(found.values, [np.angle(mean), np.abs(mean)], rtol=1e-6)
    wide = np.array([np.arcsin(half / np.abs(mean)), half])
    np.testing.assert_allclose(found.interval - found.values[:, None], np.outer(wide, [-1, 1]), rtol=3e-3)
    assert wide[0] > 1.02 * half / np.abs(mean)  # that of the linearised model


def test_newton_leaves_a_maximum() -> None:
    """At the opposite angle the gradient is zero and the curvature negative."""
    data = nsjax.Recording(
        times=TURNED, noise=1e-3,
        values={"x": -LENGTH * np.cos(RATE * TURNED), "y": -LENGTH * np.sin(RATE * TURNED)},
    )  # fmt: skip
    found = of_angles([data])
    assert found.success
    np.testing.assert_allclose(np.cos(found.values), -1.0, atol=1e-12)
    exact = np.array([[-2.0, 0.0], [0.0, 1.0]])
    step, inside = trusted_step(np.array([0.0, 0.5]), exact, 2.0)
    assert not inside
    np.testing.assert_allclose(np.abs(step), [np.sqrt(4.0 - (0.5 / 3.0) ** 2), 0.5 / 3.0], rtol=1e-6)


def test_trusted_step_is_the_least_of_its_model() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        half = rng.normal(size=(4, 4))
        hessian, gradient, radius = half + half.T, rng.normal(size=4), rng.uniform(0.1, 3.0)
        step, _ = trusted_step(gradient, hessian, radius)
        assert np.linalg.norm(step) <= radius * (1.0 + 1e-6)

        def model(s: np.ndarray, g: np.ndarray = gradient, h: np.ndarray = hessian) -> np.ndarray:
            return s @ g + 0.5 * np.einsum("...i,ij,...j", s, h, s)

        others = rng.normal(size=(5000, 4))
        others *= (
            radius * rng.uniform(size=(5000, 1)) ** 0.25 / np.linalg.norm(others, axis=1, keepdims=True)
        )
        assert model(step) <= np.min(model(others))


def test_recordings_are_left_out_with_the_exact_curvature() -> None:
    """The angle common to ten recordings; each left out in turn in closed form."""
    data, sums = seen(10, seed=3)
    total = np.sum(sums)
    moves = np.angle((total - sums) / total)
    wanted = np.sqrt(9.0 / 10.0 * np.sum(moves**2))
    spread = []
    for kind in ("exact", "linear"):
        found = nsjax.identify(
            table(), schemes.moreau_theta(0.5), data, {"angle": transforms.free()}, dt=0.01,
            method="newton", curvature=kind, intervals="recordings", cost_tolerance=1e-14,
        )  # fmt: skip
        assert found["angle"] == pytest.approx(np.angle(total), abs=1e-6)
        spread.append(found.deviation[0])
    assert abs(spread[0] / wanted - 1.0) < 0.02
    assert abs(spread[1] / wanted - 1.0) > 0.02
    assert found.hessian is None


@pytest.mark.slow
def test_runs_without_second_derivatives_are_refused() -> None:
    ball, train = models.bouncing_ball(height=HEIGHT, radius=RADIUS), {"gravity": transforms.positive()}
    run = {"dt": DT, "method": "newton"}
    with pytest.raises(nsjax.InputError, match="identify: exact second derivatives: a scheme that holds"):
        nsjax.identify(ball, schemes.moreau(), recording(), train, **run)
    with pytest.raises(
        nsjax.InputError, match="identify: exact second derivatives through impacts: a scheme"
    ):
        nsjax.identify(ball, schemes.moreau(), recording(), train, gradient="discrete", **run)
    t = TIMES / 3.0 - TIMES[0] / 3.0 + 0.01  # before the first impact
    data = nsjax.Recording(times=t, values={"y": HEIGHT + RADIUS - 0.5 * 9.81 * t**2}, noise=1e-4)
    found = nsjax.identify(
        ball.replace(gravity=9.0), schemes.moreau(), data, train, gradient="discrete", **run
    )
    assert found["gravity"] == pytest.approx(9.81, rel=2e-3)  # linear between steps of 0.01 s
    with pytest.raises(nsjax.InputError, match="identify: curvature = 'exakt'; did you mean 'exact'"):
        nsjax.identify(ball, SCHEME, recording(), train, dt=DT, curvature="exakt")
