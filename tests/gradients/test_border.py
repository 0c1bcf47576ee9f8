"""Impacts near the border of sticking and sliding: noted where a step does not resolve which it is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nsjax import gradient_notes, schemes
from tests.design import each_family
from tests.gradients import particle
from tests.gradients.cases import case
from tests.gradients.program import primes_near, sensitivity

COUNTS = primes_near(101, 5, 4).ravel()
"""Twenty step counts."""

SLOPE, FRICTION, RESTITUTION, GRAVITY, END = math.radians(12.0), 0.3, 0.8, 9.81, 0.71
FALL = math.sqrt(2.0 / (GRAVITY * math.cos(SLOPE)))
"""Time from 1 m above the slope; it is hit once until `END`."""

ALONG, DOWN = GRAVITY * math.sin(SLOPE), GRAVITY * math.cos(SLOPE)
GRIP = FRICTION * (1.0 + RESTITUTION)
BORDER = (GRIP * DOWN - ALONG) * FALL
"""Speed along the slope at the start with which the impact just sticks."""

REACH = GRIP * DOWN + ALONG
"""Rate at which the motion before the impact moves it towards the border, at most [m/s^2]."""

OFFSETS = (1e-3, 7e-3, 3e-2, 0.1, 0.5)


LOCATED = "localized"


@each_family("name", beside=("localized",))
def test_an_impact_at_the_border_is_noted(name: str) -> None:
    """Notes wherever the derivative is wrong, none where two steps resolve the impact.

    A scheme knows its margin to the border to a step, and notes it up to a step: what is noted lies
    within two.
    """
    located = schemes.localized(schemes.moreau())
    scheme = located if name == LOCATED else schemes.REGISTRY[name].factory()
    wrong = 0
    for offset in (*OFFSETS, *(-x for x in OFFSETS)):
        kind = "slip floor" if offset > 0.0 else "stick floor"
        motion = case("border", END, kind, vx=BORDER + offset, slope=SLOPE, friction=FRICTION,
                      restitution=RESTITUTION)  # fmt: skip
        exact = particle.reference(motion)[1]
        for n in COUNTS:
            found = sensitivity(particle.SYSTEM, particle.build, scheme, motion.vector(), END, n)
            off = found.jacobian[:, motion.index()] - exact
            error = np.linalg.norm(off) / np.linalg.norm(exact)
            noted = bool(found.notes & gradient_notes.KINK)
            wrong += error * n > 10.0
            assert noted or error * n < 10.0, (offset, n, error)
            assert not noted or abs(offset) < 2.0 * REACH * END / n, (offset, n, error)
    # a located impact of a parabola is met as it is
    assert wrong > 5 or name == LOCATED


def bounced(seed: int, lossy: bool = False) -> tuple[particle.Case, np.ndarray]:
    """A slide of bounces whose second or third is near the border, passed by 0.1 to 10 %, and its
    derivative; ``lossy``: the third after bounces that lose much.
    """
    rng = np.random.default_rng([5 if lossy else 4, seed])
    while True:
        k = 3 if lossy else int(rng.integers(2, 4))
        # of two bounces `sliding.unsure` counts the last one, which is enough unless they lose much
        e = rng.uniform(0.2, 0.35) if lossy else rng.uniform(0.2 if k == 2 else 0.35, 0.9)
        friction, slope = rng.uniform(0.1, 0.5), rng.uniform(0.0, 0.4)
        down, passed = GRAVITY * math.cos(slope), rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-3.0, -1.0)
        hits = math.sqrt(2.0 * down) * e ** np.arange(k)  # speeds, from 1 m
        flight = 2.0 * hits[1:] / down
        times = hits[0] / down + np.concatenate([[0.0], np.cumsum(e * hits[:-1] * 2.0 / down)])
        assert np.allclose(np.diff(times), flight)
        lost = friction * (1.0 + e) * np.concatenate([[0.0], np.cumsum(hits[:-1])])
        gained = GRAVITY * math.sin(slope) * times - lost
        vx = friction * (1.0 + e) * hits[-1] * (1.0 + passed) - gained[-1]
        along = vx + gained
        if vx > 0.0 and np.all(along[:-1] > 1.1 * friction * (1.0 + e) * hits[:-1]):
            break
    end = times[-1] + 0.8 * hits[-1] * e / down
    kinds = ("slip floor",) * (k - 1) + ("slip floor" if passed > 0.0 else "stick floor",)
    values = {"vx": vx, "slope": slope, "friction": friction, "restitution": e, "z": 1.0}
    motion = particle.Case("bounces", tuple(values.items()), end, kinds)
    return motion, particle.reference(motion)[1]


AFTER = range(15, 23)
"""Motions of `bounced`; some are wrong without a note if only one step of the instant is unsure."""


@each_family("name", beside=("localized",))
def test_a_border_after_bounces_is_noted(name: str) -> None:
    """The instants of bounces add up: what is wrong by more than a trend of first order is noted.

    As below, nobody asks for a note where the run ends before its last impact, late by several steps.
    """
    located = schemes.localized(schemes.moreau())
    scheme = located if name == LOCATED else schemes.REGISTRY[name].factory()
    missed = 0
    for seed in AFTER:
        motion, exact = bounced(seed)
        error, noted, counts = [], [], []
        values = dict(motion.values)
        first = math.sqrt(2.0 * GRAVITY * math.cos(values["slope"]))
        last = first * values["restitution"] ** (len(motion.events) - 1)
        for n in COUNTS:
            found = sensitivity(particle.SYSTEM, particle.build, scheme, motion.vector(), motion.time, n)
            if found.x[3] < -0.5 * last:
                missed += 1
                continue
            counts.append(n)
            off = found.jacobian[:, motion.index()] - exact
            error.append(np.linalg.norm(off) / np.linalg.norm(exact))
            noted.append(bool(found.notes & gradient_notes.KINK))
        error, noted, counts = np.array(error), np.array(noted), np.array(counts)
        # the finest steps are right or noted, too, and give the trend
        trend = np.median((error * counts)[error < 0.1]) if np.any(error < 0.1) else 60.0
        assert np.all(noted | (error * counts < 6.0 * trend)), (seed, error * counts, trend)
    assert missed <= 8, missed  # of 160


@pytest.mark.parametrize("name", [pytest.param(LOCATED, marks=pytest.mark.slow)])
def test_a_border_after_bounces_that_lose_much_is_noted(name: str) -> None:
    """As an accumulation of impacts, where not as the border.

    Of a run that ends before its last impact, which is late by several steps, nobody asks for a note: the
    impact is no part of it.
    """
    scheme = schemes.localized(schemes.moreau()) if name == LOCATED else schemes.moreau()
    wrong = missed = 0
    for seed in range(12):
        motion, exact = bounced(seed, lossy=True)
        e = dict(motion.values)["restitution"]
        last = math.sqrt(2.0 * GRAVITY * math.cos(dict(motion.values)["slope"])) * e**2
        for n in COUNTS:
            found = sensitivity(particle.SYSTEM, particle.build, scheme, motion.vector(), motion.time, n)
            off = found.jacobian[:, motion.index()] - exact
            error = np.linalg.norm(off) / np.linalg.norm(exact)
            # a fifth of this speed is left four fifths of a flight after the impact
            before = found.x[3] < -0.5 * last
            missed += before
            wrong += error * n > 60.0
            assert before or found.notes & gradient_notes.SERIOUS or error * n < 60.0, (seed, n, error)
    # impacts of the located scheme are not late, and all its derivatives are right
    assert wrong == 0 if name == LOCATED else wrong > 5
    assert missed <= 12  # at most one of the counts of each draw
