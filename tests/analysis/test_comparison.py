"""Orders, the paper's error, and the distance of graphs with jumps."""

from __future__ import annotations

import numpy as np
import pytest

from nsjax.analysis import hausdorff, observed_order, paper_error


def test_observed_order() -> None:
    steps = np.geomspace(1e-4, 1e-1, 12)
    assert observed_order(steps, 3.0 * steps**1.5) == pytest.approx(1.5, abs=1e-12)
    wobble = np.where(np.arange(12) % 2, 1.1, 0.9)
    assert observed_order(steps, steps**2 * wobble) == pytest.approx(
        np.polyfit(np.log(steps), np.log(steps**2 * wobble), 1)[0], abs=1e-12
    )


def test_paper_error() -> None:
    reference = np.array([0.0, 1.0, -2.0, 4.0])
    assert paper_error(reference * 1.01, reference) == pytest.approx(0.01 * np.sqrt(3.0))
    # not normalised: twice the samples give sqrt(2) of the error
    twice = np.concatenate([reference, reference[1:]])
    assert paper_error(twice * 1.01, twice) == pytest.approx(0.01 * np.sqrt(6.0))
    with pytest.raises(ValueError, match=r"have shapes \(4,\) and \(3,\); give two"):
        paper_error(reference, reference[1:])


JUMP = np.array([-1.0, -1.0, 1.0, 1.0])


def step_at(t: float) -> np.ndarray:
    return np.array([0.0, t, t, 1.0])


def test_shifted_jump_counts_by_its_time() -> None:
    for shift in (0.1, 1e-3, 1e-7):
        found = hausdorff(step_at(0.5 + shift), JUMP, step_at(0.5), JUMP, value_scale=1.0)
        assert found == pytest.approx(shift, rel=1e-8)


def test_scales() -> None:
    one, two = step_at(0.5), step_at(0.52)
    assert hausdorff(one, JUMP, two, JUMP, time_scale=10.0) == pytest.approx(0.002)
    assert hausdorff([0.0, 2.0], [1.0, 1.0], [0.0, 2.0], [1.5, 1.5]) == pytest.approx(0.5)
    assert hausdorff([0.0, 2.0], [0.0, 4.3], [0.0, 2.0], [0.0, 4.0], value_scale=4.0) > 0.04


def test_most_distant_point_inside_a_segment() -> None:
    # a straight line and a peak: the far point is the peak; from the line, the middle of the segment
    line, peak = ([0.0, 2.0], [0.0, 0.0]), ([0.0, 0.0, 2.0, 2.0], [0.0, 3.0, 3.0, 0.0])
    found = hausdorff(*line, *peak, time_scale=1.0, value_scale=1.0)
    assert found == pytest.approx(3.0)
    # symmetric roles: the line's middle is 1 from both walls, less than the peak's height
    notch = ([0.0, 0.0, 2.0, 2.0], [0.0, 0.5, 0.5, 0.0])
    assert hausdorff(*line, *notch, time_scale=1.0, value_scale=1.0) == pytest.approx(0.5)


def test_bisection_finds_the_inner_maximum() -> None:
    # from inside the V's flat lid, both flanks are nearest in turn: maximum on the axis of symmetry
    lid = ([-1.0, 1.0], [0.0, 0.0])
    vee = ([-1.0, 0.0, 1.0], [0.0, -1.0, 0.0])
    found = hausdorff(*lid, *vee, time_scale=1.0, value_scale=1.0)
    assert found == pytest.approx(1.0)
    deep = ([-1.0, -0.0, 0.0, 1.0], [0.0, -4.0, -4.0, 0.0])
    comb = ([-1.0, -1.0, 1.0, 1.0], [0.0, -4.0, -4.0, 0.0])
    found = hausdorff(*deep, *comb, time_scale=1.0, value_scale=1.0)
    grid = brute(deep, comb)
    assert found == pytest.approx(grid, abs=2e-2)


def brute(one: tuple[list[float], list[float]], two: tuple[list[float], list[float]]) -> float:
    """Distance of the densely sampled polylines."""

    def dense(graph: tuple[list[float], list[float]]) -> np.ndarray:
        points = np.stack(graph, axis=1)
        s = np.linspace(0.0, len(points) - 1, 200 * len(points))
        return np.stack([np.interp(s, np.arange(len(points)), points[:, k]) for k in (0, 1)], axis=1)

    a, b = dense(one), dense(two)
    d = np.linalg.norm(a[:, None] - b[None], axis=2)
    return float(max(d.min(axis=0).max(), d.min(axis=1).max()))


@pytest.mark.parametrize("seed", range(6))
def test_random_graphs(seed: int) -> None:
    random = np.random.default_rng(seed)
    graphs = []
    for n in (7, 9):
        t = np.sort(random.uniform(0.0, 1.0, n))
        t[3] = t[4]
        graphs.append((list(t), list(random.normal(size=n))))
    found = hausdorff(*graphs[0], *graphs[1], time_scale=1.0, value_scale=1.0)
    assert found == pytest.approx(brute(*graphs), abs=2e-2)
    back = hausdorff(*graphs[1], *graphs[0], time_scale=1.0, value_scale=1.0)
    assert back == pytest.approx(found, rel=1e-8)


def test_long_runs() -> None:
    t = np.linspace(0.1, 9.9, 9_801)
    saw = t % 0.5
    late = (t - 0.013) % 0.5
    found = hausdorff(t, late, t, saw, time_scale=1.0, value_scale=1.0)
    assert 0.008 < found < 0.02
    assert hausdorff(t, saw, t, saw) == pytest.approx(0.0, abs=1e-12)
