"""Identification from measured tosses: data, models, designs and nested folds."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.identification import cube, design, elbow, tosses
from nsjax.core.operators import prepared


# Identification of the slider-crank and of the measured cube.
@pytest.fixture
def folder(reference_data, monkeypatch):
    if not (reference_data / "cube_toss" / "cube_tosses.npz").is_file():
        pytest.skip(f"no cube_toss in {reference_data}; set NSJAX_DATA to the folder that holds it")
    monkeypatch.setenv("NSJAX_DATA", str(reference_data))
    return reference_data / "cube_toss"


def test_tosses_are_what_their_description_says(folder):
    measured = tosses.read(folder)
    assert len(measured) == 114
    assert tosses.nominal(folder)["friction"] == 0.18
    falls = []
    for toss in measured:
        n = toss.flight
        assert n >= 3
        parabola = np.polyfit(toss.times[:n], toss.position[:n, 2], 2)
        falls.append(-2 * parabola[0])
        np.testing.assert_allclose(parabola[1], toss.start.v[2], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(toss.attitude, axis=1), 1.0, atol=1e-12)
        assert np.all(np.sum(toss.attitude[1:] * toss.attitude[:-1], axis=1) > 0.0)
    # free fall of 9.61 m/s^2 and rest at 0.978 half sides, printed with three digits
    assert np.median(falls) == pytest.approx(9.61, abs=0.02)
    rest = np.median([toss.position[-1, 2] for toss in measured]) / tosses.HALF
    assert rest == pytest.approx(0.978, abs=0.002)


def test_the_geometry_is_measured_without_impacts(folder):
    """Free fall and rest of the description: scale 9.61 / 9.81, and 0.978 half sides."""
    found = cube.geometry(tosses.read(folder)[::4])
    assert found.scale == pytest.approx(9.61 / 9.81, abs=2e-3)
    assert found.ground == pytest.approx((0.978 - found.scale) * tosses.HALF, abs=2e-4)
    assert 1e-3 < found.radius < 5e-3


def test_corners_of_the_cube():
    """On a corner the middle stands at ``sqrt(3) (half - r) + r``; sliding is that of the lowest points."""
    axis = np.array([1.0, -1.0, 0.0]) / np.sqrt(2.0)  # turns the diagonal upright
    angle = np.arccos(1.0 / np.sqrt(3.0))
    q = np.concatenate([[0.0, 0.0, 1.0, np.cos(angle / 2)], np.sin(angle / 2) * axis])
    radius, offset = 3e-3, np.array([1e-3, 0.0, -6e-3])
    for moved in (np.zeros(3), offset):
        p = cube.prepare(cube.Toss(radius=radius, offset=moved))
        at = q.copy()
        turn = tosses.matrices(q[None, 3:])[0]
        at[:3] -= turn @ moved  # pose of the mass centre
        gaps = np.asarray(cube.SYSTEM.gap(0.0, at, p))
        assert gaps.min() == pytest.approx(1.0 - np.sqrt(3.0) * (tosses.HALF - radius) - radius, abs=1e-12)
        spin = np.array([0.0, 0.0, 0.0, *(turn.T @ [0.0, 2.0, 0.0])])  # about the world's y
        slip = np.asarray(cube.SYSTEM.slip(0.0, at, spin, p))[np.argmin(gaps)]
        lever = -(np.sqrt(3.0) * (tosses.HALF - radius) + radius) + (turn @ moved)[2]
        np.testing.assert_allclose(slip, [2.0 * lever, 0.0], atol=1e-12)


def test_a_design_finds_the_least_value_of_a_quadratic():
    z = design.spread(200, 3)
    for row in z.T:  # evenly spread: 20 in every tenth; random ones scatter by 4, the worst of 30 by 10
        assert np.all(np.abs(np.histogram(row, bins=10, range=(-1.0, 1.0))[0] - 20) <= 5)
    at = np.array([0.3, -0.5, 0.1])
    bend = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]])
    cost = 1.0 + 0.5 * np.einsum("mi,ij,mj->m", z - at, bend, z - at)
    found = design.least(z, cost)
    np.testing.assert_allclose(found.z, at, atol=1e-9)
    assert found.cost == pytest.approx(1.0, abs=1e-9)
    assert found.inside.all()
    # a bowl in the middle of the box: 50 points of deviation 0.4 know their mean to 0.06. Another one is
    # cut off by the box: its middle leans to that of the box, and is no further out than it scatters
    centred = np.einsum("mi,ij,mj->m", z, bend, z)
    np.testing.assert_allclose(design.middle(z, centred).z, 0.0, atol=0.06)
    leaning = design.middle(z, cost).z
    assert np.all(np.abs(leaning) < np.abs(at) + 0.06)
    assert np.all(leaning * at > 0.0)
    beyond = design.least(z, cost + 5.0 * z[:, 0])
    assert beyond.z[0] == -1.0
    assert beyond.inside.tolist() == [False, True, True]


def test_resampled_designs_scatter_as_means_do():
    """Every recording has its own minimum: the fit is their mean, its deviation theirs over sqrt(K)."""
    rng = np.random.default_rng(0)
    own = 0.1 * rng.normal(size=(40, 2))
    z = design.spread(64, 2)
    costs = np.sum((z[:, None] - own) ** 2, axis=2)
    found = design.fit(z, costs, seed=1, resamples=300)
    np.testing.assert_allclose(found.answer.z, own.mean(axis=0), atol=1e-9)
    # 300 resamples know a deviation to 4 %; four of them
    np.testing.assert_allclose(found.deviation, own.std(axis=0) / np.sqrt(40), rtol=0.16)
    np.testing.assert_allclose(found.half / found.deviation, 2.0227, atol=1e-3)  # Student, 39 degrees


# Measured tosses of an elbow: flights, geometry of the model, costs and intervals.
@pytest.fixture
def elbow_folder(reference_data, monkeypatch):
    pytest.importorskip("mujoco", reason="the package mujoco is not installed")
    if not (reference_data / "elbow_toss" / "elbow_tosses.npz").is_file():
        pytest.skip(f"no elbow_toss in {reference_data}; set NSJAX_DATA to the folder that holds it")
    monkeypatch.setenv("NSJAX_DATA", str(reference_data))
    return reference_data / "elbow_toss"


def test_tosses_are_what_their_description_says_of_elbow(elbow_folder):
    measured = elbow.read(elbow_folder)
    assert [toss.number for toss in measured] == list(range(0, 541, 5))
    lowest = [elbow.lowest(x.position, x.attitude, x.angle) for x in measured]
    # the last sample lies on the ground to rounding of single precision, the first 4 to 273 mm above it,
    # the median of all 541 at 153 mm: that of a fifth scatters by 5 mm
    assert max(abs(x[-1]) for x in lowest) < 1e-7
    assert all(0.0035 < x[0] < 0.2735 for x in lowest)
    assert np.median([x[0] for x in lowest]) == pytest.approx(0.153, abs=0.01)
    # gravity of the flights: 9.52 m/s^2 lower quartile, 9.67 median there, with flights of another length
    gravity = elbow.free_fall(measured)
    assert np.linalg.norm(gravity) == pytest.approx(9.6, abs=0.1)
    # the axes lean: five and three deviations of the mean of the flights along x and y
    np.testing.assert_allclose(gravity[:2], [0.247, -0.147], atol=0.05)


GRAVITY = np.array([0.2, -0.1, -9.6])


def flown(samples):
    """An elbow in free flight about the point between its middles, hinge held: spin about the vertical."""
    t = tosses.SAMPLE * np.arange(samples)
    rate, angle, speed = 3.0, 0.4, np.array([0.5, -0.3, 1.0])
    attitude = np.stack([np.cos(rate * t / 2), 0 * t, 0 * t, np.sin(rate * t / 2)], axis=1)
    angles = np.full(samples, angle)
    centre = np.outer(t, speed) + np.outer(0.5 * t**2, GRAVITY) + [0.0, 0.0, 0.3]
    return elbow.Measured(
        0, centre - 0.5 * elbow.apart(attitude, angles), attitude, angles, samples
    ), speed, rate  # fmt: skip


def test_flights_give_the_start_of_elbow():
    toss, speed, rate = flown(18)
    q, v = elbow.start(toss, GRAVITY)
    np.testing.assert_allclose(q, [*toss.position[0], *toss.attitude[0], 0.4], atol=1e-12)
    half = 0.5 * elbow.apart(toss.attitude[:1], toss.angle[:1])[0]
    np.testing.assert_allclose(v[:3], speed - np.cross([0.0, 0.0, rate], half), atol=1e-10)
    np.testing.assert_allclose(v[3:], [0.0, 0.0, rate, 0.0], atol=1e-10)
    np.testing.assert_allclose(elbow.free_fall([toss]), GRAVITY, atol=1e-9)


def test_the_model_stands_where_the_data_do(elbow_folder):
    """Corners of the model on those of the data, mass centres where they are meant to be."""
    toss, (system, there, _) = elbow.read(elbow_folder)[7], elbow.problem(elbow_folder)
    nominal = elbow.params(there, elbow.Elbow(), jnp.zeros(2))
    for one, other in zip(jax.tree.leaves(there), jax.tree.leaves(nominal), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-17)

    @jax.jit
    def looked_at(q, p):
        ready = prepared(system, p)
        return system.gap(jnp.zeros(()), q, ready), system.mass(q, ready)

    heights = elbow.lowest(toss.position, toss.attitude, toss.angle)
    for k in (0, 30, 60, 120):
        q = np.concatenate([toss.position[k], toss.attitude[k], toss.angle[k : k + 1]])
        assert float(looked_at(q, nominal)[0].min()) == pytest.approx(heights[k], abs=1e-12)
    # a floor that leans about its foot: the lowest height becomes a distance along the normal
    foot, slope = jnp.asarray([0.3, 0.1]), np.array([0.03, -0.02])
    leaning = elbow.params(there, elbow.Elbow(slope=slope, ground=2e-3), foot)
    normal = np.array([*-slope, 1.0]) / np.sqrt(1.0 + slope @ slope)
    middle = toss.position[0] - [*foot, 2e-3]
    q = np.concatenate([toss.position[0], toss.attitude[0], [0.7]])
    found = np.asarray(looked_at(q, leaning)[0])
    assert found[:8].mean() == pytest.approx(
        normal @ middle, abs=1e-12
    )  # the first box is around its middle
    np.testing.assert_allclose(leaning["gravity"], -9.81 * normal, atol=1e-12)
    # an angle of the hinge does what its zero does
    turned = elbow.params(there, elbow.Elbow(zero=0.7, second=(1e-3, 0.0, 4e-3)), foot)
    straight = elbow.params(there, elbow.Elbow(second=(1e-3, 0.0, 4e-3)), foot)
    other = np.concatenate([q[:7], [0.0]])
    for one, two in zip(looked_at(other, turned), looked_at(q, straight), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-12)


# Nested folds of the designs: held-out ratios of simulated recordings against their truth.
NOMINAL = np.array([-0.8, -0.8])
FOLDS, POINTS, COUNT, ALL = 5, 48, 80, 1500
"""Folds, points of a design, recordings that are measured, and all that there are."""


class World:
    """Recordings whose errors over two numbers are rough, each with an optimum of its own."""

    def __init__(self, rng: np.random.Generator, count: int) -> None:
        self.own = 0.3 + 0.5 * rng.normal(size=(count, 2))
        self.waves = 6.0 * rng.normal(size=(count, 4, 2))
        self.phase = rng.uniform(0.0, 6.28, size=(count, 4))
        self.size = np.exp(0.5 * rng.normal(size=count))

    def errors(self, z: np.ndarray, who: np.ndarray) -> np.ndarray:
        """Errors (N, 1) of recordings (N,) at points (N, 2)."""
        far = np.sum((z - self.own[who]) ** 2, axis=1)
        rough = np.sin(np.sum(self.waves[who] * z[:, None], axis=2) + self.phase[who]).sum(axis=1)
        return np.asarray((self.size[who] * np.exp(0.25 * far + 0.5 * rough))[:, None])


def median_of(world: World, count: int, z: np.ndarray) -> float:
    return float(np.median(world.errors(np.tile(z, (count, 1)), np.arange(count))))


def designed(world: World, count: int, z: np.ndarray) -> np.ndarray:
    """Errors (M, K, 1) of all runs of a design."""
    return np.stack([world.errors(np.tile(x, (count, 1)), np.arange(count)) for x in z])


def trial(seed: int) -> tuple[float, float, float, bool]:
    """Truth, ratio by nested folds, by the rule that looked best; whether the interval holds the truth."""
    rng = np.random.default_rng(seed)
    some, every = World(rng, COUNT), World(np.random.default_rng(10**6 + seed), ALL)
    z, fold = design.spread(POINTS, 2), np.arange(COUNT) % FOLDS
    errors = designed(some, COUNT, z)
    cost = np.sqrt(errors[:, :, 0])
    found = design.nested(z, cost, FOLDS, splits=5, seed=seed)
    before = some.errors(np.tile(NOMINAL, (COUNT, 1)), np.arange(COUNT))
    ratio, ends, wide = design.held_out(before, errors, found, draws=400)
    assert 1.0 <= wide <= np.sqrt(FOLDS)
    truth = median_of(every, ALL, z[found.best]) / median_of(every, ALL, NOMINAL)
    looked = []
    for rule in design.RULES.values():
        after = np.zeros((COUNT, 1))
        for k in range(FOLDS):
            after[fold == k] = errors[rule(z, cost[:, fold != k].mean(axis=1)), fold == k]
        looked.append(float(np.median(after) / np.median(before)))
    return truth, float(ratio[0]), min(looked), bool(ends[0, 0] <= truth <= ends[1, 0])


def tried(count: int) -> tuple[float, float, float]:
    """Mean bias of the logarithms, nested and in view, and the share of intervals with the truth."""
    rows = np.array([trial(seed) for seed in range(count)], float)
    bias = np.log(rows[:, 1:3] / rows[:, :1]).mean(axis=0)
    return float(bias[0]), float(bias[1]), float(rows[:, 3].mean())


def test_held_out_ratios_are_honest() -> None:
    """Forty sets of recordings: a logarithm scatters by 0.18, its mean by 0.03; the rule that looked best
    promises too much, nested folds do not; of 40 intervals of 95 %, 34 or more hold the truth in 97 of 100
    cases.
    """
    nested, looked, cover = tried(40)
    assert abs(nested) < 0.06
    assert looked < nested - 0.05
    assert cover >= 0.85


@pytest.mark.slow
def test_intervals_cover() -> None:
    """Three hundred sets know a share of 0.95 to 0.0126: three of them below, and above."""
    nested, _, cover = tried(300)
    assert abs(nested) < 0.03
    assert 0.91 <= cover <= 0.99


def test_each_fold_is_left_out_twice() -> None:
    """The outer fold takes no part in the choice of what predicts it."""
    rng, z = np.random.default_rng(2), design.spread(32, 2)
    cost = rng.random((32, 12)) + np.sum(z**2, axis=1)[:, None]
    found = design.nested(z, cost, 3, splits=2)
    outer = found.fold[0] == 0
    heavy = cost.copy()
    heavy[:, outer] += 100.0 * np.abs(z[:, :1] - 0.9)  # one fold wants something else altogether
    other = design.nested(z, heavy, 3, splits=2)
    assert np.array_equal(other.fold, found.fold)
    assert np.array_equal(other.after[0, outer], found.after[0, outer])
    assert np.array_equal(other.inside[0, 0], found.inside[0, 0])
    assert not np.array_equal(other.after[0, ~outer], found.after[0, ~outer])
    for k in range(3):
        assert np.array_equal(found.inside[0, k] == -1, found.fold[0] == k)
    assert sum(found.shares.values()) == pytest.approx(1.0)


def test_the_interval_of_a_ratio() -> None:
    """Medians of normal numbers scatter by 1.2533 deviations over sqrt(K); failures are worse than any."""
    rng, fold = np.random.default_rng(3), np.arange(400)[None] % 5
    before, errors = np.ones((400, 3)), 0.7 + 0.1 * rng.normal(size=(2, 400, 3))
    errors[1] *= 0.5
    mine = np.where(fold == np.arange(5)[:, None], -1, 0)[None]
    found = design.Nested("", 0, {}, fold, np.zeros((1, 400), int), mine)
    ratio, ends, wide = design.held_out(before, errors, found)
    np.testing.assert_allclose(ratio, np.median(errors[0], axis=0), rtol=1e-12)
    assert wide < 1.5  # folds that promise what they show
    # width 2 * 1.96 * 1.2533 * 0.1 / 20 = 0.0246; medians of 400 know their own scatter to a quarter
    np.testing.assert_allclose((ends[1] - ends[0]) / wide, 0.0246, rtol=0.5)
    # a promise that is broken by more than chance widens to the root of the number of folds
    broken = design.Nested("", 0, {}, fold, np.zeros((1, 400), int), np.where(mine == 0, 1, -1))
    assert design.held_out(before, errors, broken)[2] == np.sqrt(5.0)
    errors[0, :210] = np.nan
    assert np.all(design.held_out(before, errors, found)[0] > 0.5 * design.FAILED)
