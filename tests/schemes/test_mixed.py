"""Mixed framework on the slider-crank against minimal coordinates and event-driven runs."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import nsjax
from nsjax import models, schemes
from nsjax.analysis import impulse_steps
from nsjax.simulate import _advance
from tests.references import slope
from tests.references.slider_crank import Data, bilateral, event_driven
from tests.schemes.mixed_runs import CRANK_ROWS, MAKE, run

# ---------------------------------------------------------------------- slider-crank, ideal guide

DURATION = 0.05


@functools.cache
def bilateral_errors(name: str, steps: int, samples: int = 500) -> dict[str, float]:
    t = DURATION / samples * np.arange(1, samples + 1)
    x, force = bilateral(Data(), tuple(t))
    traj = run(
        models.slider_crank_bilateral(), MAKE[name](), DURATION / steps, steps,
        every=steps // samples, save=["constraint_force"],
    )  # fmt: skip
    q, v = traj.q[1:], traj.v[1:]
    off = np.abs(traj.constraint_force[1:, 0] - force)[t > 1.999e-3].max()
    relative = q[:, 1] / x[:, 1] - 1
    return {
        "500": float(np.linalg.norm(relative)),
        "50": float(np.linalg.norm(relative[samples // 50 - 1 :: samples // 50])),
        "theta2": float(np.abs(q[:, 1] - x[:, 1]).max()),
        "v": float(np.abs(v - x[:, 2:]).max()),
        "force": float(off / np.abs(force).max()),
        "g": float(np.abs(Data.l1 * np.sin(q[:, 0]) + Data.l2 * np.sin(q[:, 1])).max()),
    }


# slider_crank.md section 5: norms over 500 and 50 samples, largest errors of theta2, v and the force
TABLE_4 = {
    "half_explicit": (
        (1.84e-1, 1.49e-1, 4.0e-4, 5.8e-2, 4.6e-2),
        (1.89e-3, 1.53e-3, 4.1e-6, 6.0e-4, 4.7e-3),
        (1.89e-5, 1.54e-5, 4.1e-8, 6.0e-6, 4.7e-4),
    ),
    "generalized_alpha 0.8": (
        (1.76e-1, 1.43e-1, 3.8e-4, 5.5e-2, 1.4e-3),
        (1.76e-3, 1.43e-3, 3.8e-6, 5.5e-4, 1.4e-5),
        (1.76e-5, 1.43e-5, 3.8e-8, 5.5e-6, 1.4e-7),
    ),
    "generalized_alpha 0": (
        (1.92e-1, 1.56e-1, 4.1e-4, 1.0e-1, 2.3e-3),
        (1.80e-3, 1.46e-3, 3.9e-6, 1.3e-3, 2.3e-5),
        (1.79e-5, 1.46e-5, 3.9e-8, 1.3e-5, 2.3e-7),
    ),
    "bathe": (
        (8.79e-2, 7.14e-2, 1.9e-4, 2.7e-2, 7.3e-4),
        (8.80e-4, 7.14e-4, 1.9e-6, 2.7e-4, 7.3e-6),
        (8.80e-6, 7.14e-6, 1.9e-8, 2.7e-6, 7.3e-8),
    ),
    "ed_alpha 0": (
        (1.66e-1, 1.35e-1, 3.6e-4, 5.2e-2, 4.6e-2),
        (1.66e-3, 1.35e-3, 3.6e-6, 5.2e-4, 4.7e-3),
        (1.66e-5, 1.35e-5, 3.6e-8, 5.2e-6, 4.7e-4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("steps", [500, 5000, pytest.param(50_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TABLE_4)
def test_table_4(name, steps):
    found = bilateral_errors(name, steps)
    expected = TABLE_4[name][{500: 0, 5000: 1, 50_000: 2}[steps]]
    measured = [found[key] for key in ("500", "50", "theta2", "v", "force")]
    np.testing.assert_allclose(measured, expected, rtol=0.05)


@pytest.mark.parametrize(
    ("name", "drift"),
    [("half_explicit", 2.3e-6), ("generalized_alpha 0.8", 1.2e-6), ("bathe", 6e-7), ("ed_alpha 0", 1e-6)],
)
def test_drift_of_the_guide(name, drift):
    assert bilateral_errors(name, 500)["g"] == pytest.approx(drift, rel=0.05)


@pytest.mark.parametrize(
    ("name", "order"),
    [("half_explicit", 1), ("generalized_alpha 0.8", 2), ("generalized_alpha 0", 2), ("hht", 2),
     ("bathe", 2), ("ed_alpha 0", 1)],
)  # fmt: skip
def test_orders_on_the_bilateral_slider_crank(name, order):
    # All errors are over 50 instants; 150 rad/s ask for small steps before the asymptotic range.
    per_instant = (40, 57, 79, 113, 159, 227, 317, 453)
    errors = [bilateral_errors(name, 50 * n, 50) for n in per_instant]
    orders = {key: slope(1 / np.array(per_instant), [e[key] for e in errors]) for key in errors[0]}
    assert orders["theta2"] == pytest.approx(2, abs=0.05)
    assert orders["v"] == pytest.approx(2, abs=0.05)
    assert orders["force"] == pytest.approx(order, abs=0.05)


def test_one_program_sweeps_rho_inf():
    problem = models.slider_crank_bilateral()
    run(problem, schemes.generalized_alpha(0.3), 1e-4, 100, every=10, save=[])
    before = _advance._cache_size()
    ends = [
        run(problem, schemes.generalized_alpha(rho), 1e-4, 100, every=10, save=[]).q[-1, 1]
        for rho in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    assert _advance._cache_size() == before
    assert len(set(ends)) == 5


# ---------------------------------------------------- slider-crank with clearance, friction, impacts


@functools.cache
def crank_run(name: str, memory: str, steps: int) -> nsjax.Trajectory:
    options = {} if name == "half_explicit" else {"acceleration_after_change": memory}
    scheme = MAKE[name](**options)
    return run(models.slider_crank(), scheme, DURATION / steps, 2 * steps, save=CRANK_ROWS)


def crank_errors(name: str, memory: str, steps: int) -> tuple[float, float]:
    """Largest error of theta2, and norm of the relative one over 5 samples, up to 0.05 s."""
    exact = event_driven(Data(), tuple(1e-4 * np.arange(1, 501))).x[:, 1]
    found = crank_run(name, memory, steps).q[steps // 500 : steps + 1 : steps // 500, 1]
    relative = (found / exact - 1)[99::100]
    return float(np.abs(found - exact).max()), float(np.linalg.norm(relative))


# slider_crank.md section 6 (Bathe and generalized-alpha: "keep"), mixed_framework.md section 4 (reset)
TABLE_6 = [
    ("half_explicit", "", (7.8e-4, 2.2e-3), (2.6e-5, 3.9e-5)),
    pytest.param("ed_alpha 0", "recompute", (7.6e-4, 2.1e-3), (2.6e-5, 3.9e-5), marks=pytest.mark.slow),
    ("generalized_alpha 0.8", "recompute", (7.8e-4, None), (2.6e-5, None)),
    pytest.param(
        "generalized_alpha 1", "recompute", (7.8e-4, None), (2.6e-5, None), marks=pytest.mark.slow
    ),
    ("generalized_alpha 0.8", "keep", (9.9e-4, 2.9e-3), (5.7e-5, 1.8e-4)),
    pytest.param("generalized_alpha 0", "keep", (9.9e-4, 2.9e-3), (5.7e-5, 1.8e-4), marks=pytest.mark.slow),
    ("bathe", "recompute", (5.9e-4, None), (3.8e-5, None)),
    pytest.param("bathe", "keep", (5.9e-4, 1.7e-3), (3.8e-5, 1.1e-4), marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "memory", "coarse", "fine"), TABLE_6)
def test_table_6(name, memory, coarse, fine):
    for steps, expected, moreau in ((500, coarse, 2.4e-2), (5000, fine, 2.3e-3)):
        found = crank_errors(name, memory, steps)
        for value, asked in zip(found, expected, strict=True):
            assert asked is None or asked / 1.5 <= value <= asked * 1.5
        assert 20 * found[0] <= moreau


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "memory", "expected"),
    [("half_explicit", "", 2.6e-6), ("ed_alpha 0", "recompute", 2.6e-6),
     ("generalized_alpha 0.8", "keep", 8.0e-6), ("bathe", "keep", 6.1e-6)],
)  # fmt: skip
def test_table_6_at_the_smallest_step(name, memory, expected):
    found = crank_errors(name, memory, 50_000)[0]
    assert expected / 1.5 <= found <= expected * 1.5
    assert 20 * found <= 2.3e-4


def test_unknown_choice_is_refused():
    with pytest.raises(nsjax.InputError, match="choose one of recompute, keep"):
        schemes.bathe(acceleration_after_change="reset")


def test_reset_of_the_acceleration_is_more_accurate():
    # figures of mixed_framework.md section 4, to their printed digits
    for memory, expected in (("keep", (9.9e-4, 5.7e-5)), ("recompute", (7.8e-4, 2.6e-5))):
        found = [crank_errors("generalized_alpha 0.8", memory, steps)[0] for steps in (500, 5000)]
        np.testing.assert_allclose(found, expected, rtol=0.02)


@pytest.mark.parametrize("name", ["half_explicit", "ed_alpha 0", "generalized_alpha 0.8", "bathe"])
def test_slider_crank_at_a_tenth_of_a_second(name):
    traj = crank_run(name, "" if name == "half_explicit" else "recompute", 5000)
    assert traj.q[-1, 1] == pytest.approx(-0.2106, abs=1e-4)
    assert traj.gap_min.min() == pytest.approx(-6.3e-6, rel=0.02)
    assert np.abs(traj.q[:, 2]).max() < 1e-10
    jumps = impulse_steps(traj)
    assert 32 <= jumps.sum() <= 36
