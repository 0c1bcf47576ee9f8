"""The estimate of the error of runs and derivatives beside the error itself, from closed forms."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes
from nsjax import multibody as mb
from nsjax.sweep.accuracy import _rows
from tests.points import spring

GRAVITY, HEIGHT, RADIUS = 9.81, 1.0, 0.05
TIMES = {"between impacts": 0.8, "after four": 1.9}


def _height(restitution, gravity, time: float):
    """Closed form: the height of a ball that was dropped, at a time in flight."""
    fall = HEIGHT
    hit = jnp.sqrt(2.0 * fall / gravity)
    speed = gravity * hit
    y = RADIUS + fall - 0.5 * gravity * time**2
    for _ in range(12):
        speed = restitution * speed
        since = time - hit
        y = jnp.where(since > 0.0, RADIUS + speed * since - 0.5 * gravity * since**2, y)
        hit = hit + 2.0 * speed / gravity
    return y


def _oscillator():
    """A smooth motion with a closed form."""
    return nsjax.Problem(
        system=OSCILLATOR, params={"k": np.asarray(40.0)},
        state=nsjax.State(t=0.0, q=np.ones(1), v=np.zeros(1)),
    )  # fmt: skip


def _mass(q, p):
    return jnp.ones((1, 1))


OSCILLATOR = nsjax.System(nq=1, nv=1, mass=_mass, force=spring, labels=nsjax.Labels(q=("x",), v=("dx",)))


@functools.cache
def _ratios(scheme: str, time: float) -> tuple[np.ndarray, np.ndarray]:
    """Error over its estimate of height and of its derivative, for forty step sizes."""
    ball = models.bouncing_ball(height=HEIGHT, restitution=0.8, radius=RADIUS, gravity=GRAVITY)
    exact, slope = jax.value_and_grad(_height)(0.8, GRAVITY, time)
    found = []
    for steps in np.unique(np.geomspace(200, 5000, 40).astype(int)):
        check = nsjax.check_accuracy(
            ball, schemes.REGISTRY[scheme].factory(), dt=time / steps, steps=int(steps), outputs=["y"],
            parameters=["restitution"],
        )  # fmt: skip
        found.append([abs(x.value - y) / x.error for x, y in zip(check.table, (exact, slope), strict=True)])
    value, derivative = np.asarray(found).T
    return value, derivative


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "time"), list(zip(("moreau", "generalized_alpha", "nsga_decoupled"), TIMES, strict=False))
)
def test_ball(scheme: str, time: str) -> None:
    """The error is seldom above its estimate, and the estimate seldom far above the error."""
    for ratio in _ratios(scheme, TIMES[time]):
        assert np.quantile(ratio, 0.9) < 2.0
        assert np.max(ratio) < 10.0  # impacts may lie alike in all four runs
        assert np.median(ratio) > 0.05


@pytest.mark.slow
def test_smooth() -> None:
    """Of order two: the four runs say one and a half times the error, for value and derivative."""
    time = 1.0
    exact, slope = jax.value_and_grad(lambda k: jnp.cos(jnp.sqrt(k) * time))(40.0)
    for steps in (100, 101, 400):
        check = nsjax.check_accuracy(
            _oscillator(), schemes.generalized_alpha(), dt=time / steps, steps=steps, outputs=["x"],
            parameters=["k"],
        )  # fmt: skip
        for row, right in zip(check.table, (exact, slope), strict=True):
            assert abs(row.error / abs(row.value - right) - 1.5) < 0.02
        assert check.impacts == (0, 0, 0, 0)
        # errors of the finest runs are of order two, those of the limits of order three or above
        for limit, row, right in zip(check.limits(2), check.table, (exact, slope), strict=True):
            assert abs(limit - right) < 0.02 * abs(row.value - right)


def test_limits_of_lines() -> None:
    """Values that lie on ``x_0 + c dt^order`` have the limit ``x_0``; others have none."""
    steps = np.array([100, 130, 162, 200])
    values = np.stack([3.0 + 7.0 / steps**2, -1.0 + 2.0 / steps, np.array([1.0, np.nan, 1.0, 1.0])], axis=1)
    check = nsjax.AccuracyCheck((), tuple(steps), (0, 0, 0, 0), values)
    assert check.limits(2)[0] == pytest.approx(3.0, abs=1e-14)
    assert check.limits(1)[1] == pytest.approx(-1.0, abs=1e-14)
    assert np.isnan(check.limits(1)[2])
    said = r"limits: order = .*; give a positive number, such as 2"
    for order in (0.0, -1, np.nan, np.ones(2)):
        with pytest.raises(nsjax.InputError, match=said):
            check.limits(order)


def test_table() -> None:
    """All of q and v; entries at rest beside others do not spoil the worst."""
    check = nsjax.check_accuracy(models.slider_crank(), schemes.moreau(), dt=1e-5, steps=500)
    assert [x.output for x in check.table][:3] == ["theta1", "theta2", "theta3"]
    assert check.steps == (500, 650, 809, 1000)
    assert 0.0 < check.worst < 1e-2
    assert "runs of 500, 650, 809, 1000 steps have" in str(check)
    impacts = set(check.impacts)
    assert ("shorter steps meet" in str(check)) == (len(impacts) > 1)


def _two(traj: nsjax.Trajectory) -> jax.Array:
    return jnp.stack([traj.q[-1, 0], traj.v[-1, 0]])


short = functools.partial(nsjax.check_accuracy, models.bouncing_ball(), schemes.moreau(), dt=1e-3, time=0.1)


def test_a_function_has_numbered_outputs() -> None:
    assert [x.output for x in short(outputs=_two).table] == ["_two[0]", "_two[1]"]


@pytest.mark.slow
def test_outputs_of_parts() -> None:
    """Names that `Trajectory.sensor` knows: of bodies, joints and contacts."""
    block = mb.assemble(
        mb.body("block", mass=2.0, inertia=1.0), mb.slide("rail", "ground", "block", axis=(0.0, 1.0)),
        mb.force("push", "block", value=(0.0, 0.0)), mb.contact("foot", mb.point("block"), mb.plane()),
        gravity=9.81, start={"rail": 0.1},
    )  # fmt: skip
    outputs = ["block.position[1]", "rail.speed", "rail.position", "foot.force[0]"]
    run = {"dt": 1e-3, "outputs": outputs}
    check = nsjax.check_accuracy(block, schemes.moreau(), time=0.3, **run)
    found = {x.output: x.value for x in check.table}
    assert abs(found["block.position[1]"]) < 1e-2  # it landed after 0.143 s
    assert found["block.position[1]"] == found["rail.position"]
    assert found["foot.force[0]"] == pytest.approx(2.0 * 9.81, rel=1e-6)
    with pytest.raises(
        nsjax.InputError, match=r"outputs: 'block.position' is an array .*; take an entry of it"
    ):
        nsjax.check_accuracy(block, schemes.moreau(), time=0.1, **(run | {"outputs": ["block.position"]}))
    with pytest.raises(
        nsjax.InputError, match=r"outputs: .* lies outside the array of shape .*; name an entry inside"
    ):
        nsjax.check_accuracy(block, schemes.moreau(), time=0.1, **(run | {"outputs": ["rail.speed[0]"]}))
    with pytest.raises(nsjax.InputError, match="is not set in this problem; what is set beside it: value"):
        nsjax.check_accuracy(block, schemes.moreau(), time=0.1, parameters=["push.own"], **run)


def test_a_motion_that_is_not_resolved_is_said() -> None:
    """A spring beyond the longest stable step of an explicit scheme."""
    chain = models.mass_spring_chain()
    check = nsjax.check_accuracy(chain, schemes.moreau(), dt=10.0, steps=10)
    assert check.worst >= 1.0
    assert "steps of this size do not resolve the motion" in str(check)
    rows = _rows(("x", "y"), "", np.array([[np.nan, 1.0], [1.0, 1.1], [1.0, 1.0], [np.inf, 1.0]]))
    assert rows[0].error == rows[0].relative == np.inf
    assert rows[1].error == pytest.approx(0.2)
    assert rows[1].relative == pytest.approx(0.2 / 1.1)
