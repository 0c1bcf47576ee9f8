"""Transforms, losses, quantiles; what is refused, and in which words."""

from __future__ import annotations

import types

import numpy as np
import pytest

import nsjax
from nsjax import Recording, State, losses, schemes, transforms
from nsjax.identify import objective
from nsjax.identify.losses import read
from nsjax.identify.statistics import quantile
from tests.gradients.root import ROOT
from tests.identify.balls import DT, PROBLEM, SCHEME, recording

ALL = [transforms.free(), transforms.positive(), transforms.positive(low=-1.0),
       transforms.interval(-2.0, 3.0),
       transforms.box(0.0, 2.0)]  # fmt: skip


@pytest.mark.parametrize("transform", ALL)
def test_transforms_and_back(transform: transforms.Transform) -> None:
    x = np.array([1e-3, 0.5, 1.7])
    z = transform.inverse(x)
    np.testing.assert_allclose(transform.forward(z), x, rtol=1e-12)  # rounding of exp and log
    h = 1e-6
    slope = (transform.forward(z + h) - transform.forward(z - h)) / (2 * h)
    np.testing.assert_allclose(transform.slope(z), slope, rtol=1e-6)  # h^2 / 6 and rounding / h
    low, high = transform.walls(z)
    assert np.all((z >= low) & (z <= high))
    rng = np.random.default_rng(0)
    drawn = [transform.sample(np.asarray(0.5), 0.5, rng) for _ in range(100)]
    assert transform.holds(np.array(drawn))
    assert np.ptp(drawn) > 0.4


def test_bounds_are_seen() -> None:
    assert transforms.interval(0.0, 1.0).bound(0.9995, 0.5) == 1.0
    assert transforms.interval(0.0, 1.0).bound(0.99, 0.5) is None
    assert transforms.box(0.0, 1.0).bound(0.0, 0.5) == 0.0
    assert transforms.box(0.0, 1.0).bound(1e-9, 0.5) is None
    assert transforms.positive().bound(1e-4, 0.5) == 0.0
    assert transforms.positive().bound(1e-4, 1e-3) is None


@pytest.mark.parametrize("name", ["squares", "huber", "soft_l1", "cauchy"])
def test_losses_fit_together(name: str) -> None:
    loss = read(name)
    r = np.array([-60.0, -2.0, -0.3, 1e-4, 0.9, 5.0])
    h = 1e-6
    slope = (loss.rho(r + h) - loss.rho(r - h)) / (2 * h)
    # d rho(r^2) / dr = 2 r rho'; central differences keep nine digits or so
    np.testing.assert_allclose(2 * r * loss.weight(r), slope, rtol=1e-6, atol=1e-8)
    pull = [(x * loss.weight(x)) for x in (r + h, r - h)]
    np.testing.assert_allclose(loss.slope_of_pull(r), (pull[0] - pull[1]) / (2 * h), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(loss.weight(np.zeros(1)), 1.0)


def test_losses_are_those_of_scipy() -> None:
    from scipy.optimize._lsq.least_squares import construct_loss_function  # the same definitions

    r = np.array([0.2, 1.0, 3.0, 40.0])
    for name in ("huber", "soft_l1", "cauchy"):
        scale = read(name).scale
        rho = construct_loss_function(r.size, name, scale)(r)[0]
        np.testing.assert_allclose(losses.Loss(name, scale).rho(r), rho, rtol=1e-12)


def test_quantiles_of_student() -> None:
    """A table of the distribution, to its print."""
    printed = {1: 12.7062, 3: 3.1824, 22: 2.0739, 120: 1.9799, None: 1.9600}
    for freedom, half in printed.items():
        assert quantile(0.95, freedom) == pytest.approx(half, abs=5e-5)
    assert quantile(0.9, 1) == pytest.approx(np.tan(0.45 * np.pi), rel=1e-12)  # Cauchy's distribution


Y = {"y": [1.0, 0.9]}
RECORDINGS = [
    ({"times": [0.0, 0.0], "values": Y}, r"times\[1\] = 0 does not increase"),
    ({"times": [[0.0]], "values": Y}, r"times has shape \(1, 1\)"),
    ({"times": [0.0, 1.0], "values": {"y": [1.0]}}, r"y has shape \(1,\); there are 2 times"),
    ({"times": [0.0, 1.0], "values": {}}, "give a mapping of labels"),
    ({"times": [0.0, 1.0], "values": {"y": [1.0, np.nan]}}, r"y\[1\] is not finite; mask"),
    ({"times": [0.0, 1.0], "values": Y, "noise": 0.0}, "must be positive"),
    ({"times": [0.0, 1.0], "values": Y, "noise": {"z": 1.0}}, "did you mean|Known: y"),
    ({"times": [0.0, 1.0], "values": {**Y, "x": [0, 1]}, "noise": {"y": 1.0}}, "noise of 'x' is missing"),
    ({"times": [0.0, 1.0], "values": Y, "mask": [True]}, "must hold 2 booleans"),
    ({"times": [0.0, 1.0], "values": Y, "mask": [False, False]}, "every value is masked"),
]


@pytest.mark.parametrize(("given", "sentence"), RECORDINGS)
def test_recordings_are_checked(given: dict, sentence: str) -> None:
    with pytest.raises(nsjax.InputError, match=sentence):
        Recording(**given)


POSITIVE = transforms.positive()
REFUSED = [
    ({"train": {}}, "give names with their ranges, {'friction'"),
    ({"train": {"gravty": POSITIVE}}, "did you mean 'gravity'"),
    ({"train": {"gravity": 1.0}}, "no transform; give transforms.interval"),
    ({"train": {"gravity": transforms.fixed()}}, "every number is fixed"),
    ({"train": {"gravity": transforms.interval(0.0, 5.0)}}, "starts at 9.81, outside its range 0 to 5"),
    ({"train": {"gravity": POSITIVE, "params.gravity": POSITIVE}}, "the same number"),
    ({"train": {"state.t": transforms.free()}}, "state.t cannot be trained"),
    ({"train": {"scheme.contact_tolerance": POSITIVE}}, "no parameters of the model"),
    ({"train": {"state.v[3]": transforms.free()}}, "no such entry"),
    ({"data": []}, "data is empty"),
    ({"data": 3.0}, "data holds float; give nsjax.Recording"),
    ({"data": Recording(times=[0.1], values={"z": [1.0]})}, "observable 'z'"),
    ({"data": Recording(times=[-0.1, 0.1], values=Y)}, "before its start at 0 s; shift its times, "
     "or leave these rows out"),
    ({"data": [Recording(times=[0.1, 0.2], values=Y, noise=1.0), Recording(times=[0.1, 0.2], values=Y)]},
     "some have none"),
    ({"data": Recording(times=[0.1], values={"y": [1.0]}, noise=1.0)}, "2 numbers cannot be found from 1"),
    ({"data": Recording(times=[0.1, 0.2], values=Y, start=State(t=0.0, q=np.zeros(1), v=np.zeros(1)))},
     "overlap|penetrat|gap"),
    ({"dt": 0.0}, "dt = 0"),
    ({"method": "gauss_newten"}, "did you mean 'gauss_newton'"),
    ({"method": 3}, "optax"),
    ({"loss": "hubert"}, "did you mean 'huber'"),
    ({"loss": losses.Loss("cauchy", -1.0)}, "positive scale"),
    ({"starts": 0}, "starts = 0"),
    ({"max_runs": 0}, "max_runs = 0"),
    ({"level": 95}, "between 0 and 1"),
    ({"spread": 0.0}, "must be positive"),
    ({"gradient": "saltations"}, "did you mean 'saltation'"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "sentence"), REFUSED)
def test_input_is_checked_before_any_run(given: dict, sentence: str) -> None:
    usual = {"train": {"gravity": POSITIVE, "restitution": transforms.interval(0, 1)}, "dt": DT}
    usual |= {"data": recording(seed=1)}
    call = {**usual, **given}
    with pytest.raises(nsjax.InputError, match=sentence):
        nsjax.identify(PROBLEM, SCHEME, call.pop("data"), call.pop("train"), **call)


ROOT_TIMES = np.linspace(2.1, 3.0, 10)


def of_root(k: float) -> nsjax.Estimate:
    """A fit of the stiffness from ``k``; the spring is slack from 2.46 s on."""
    problem = ROOT.replace(k=k)
    data = Recording(times=ROOT_TIMES, values={"x": np.full(10, 0.7)}, noise=1e-3)
    return nsjax.identify(problem, schemes.moreau(), data, {"k": transforms.positive()}, dt=1e-2)


def test_a_derivative_that_is_not_finite_is_not_blamed_on_the_start() -> None:
    with pytest.raises(nsjax.InputError) as caught:
        of_root(1.0)
    words = str(caught.value)
    assert "the derivative of x by k is not finite from t = 2.5 s on, though the run itself is" in words
    assert words.endswith("at zero, also inside jnp.where")
    assert "another initial value" not in words


def test_faults_in_words() -> None:
    """Which comes first: a run that failed, a value, a derivative; by recording where there are several."""
    recordings = (Recording(times=ROOT_TIMES, values={"x": ROOT_TIMES}, name=n) for n in ("one", "two"))
    program = types.SimpleNamespace(names=("x", "y"))
    plan = types.SimpleNamespace(recordings=tuple(recordings), program=program, fitted=2)
    trained = [types.SimpleNamespace(name=n) for n in ("k", "m")]
    status, residual, jacobian = np.zeros(2, int), np.zeros((2, 10, 2)), np.zeros((2, 10, 2, 2))

    def told() -> str:
        return objective.fault_of(plan, trained, status, residual, jacobian)

    assert told() == ""
    jacobian[1, 3, 1, 1] = np.nan
    jacobian[0, 5, 0, 0] = np.inf
    assert told().startswith("the derivative of y by m is not finite from t = 2.4 s on of two, though")
    residual[1, 4, 0] = np.nan
    assert told() == "x of the model is not finite from t = 2.5 s on of two"
    assert objective.remedy(told()) == "give another initial value or a smaller dt"
    status[0] = 4
    assert told() == "the run failed"
