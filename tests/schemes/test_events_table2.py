"""Contact events of the driven slider-crank (Table 2) in every registered scheme with friction, against an
event-driven integration: first impact, closure by accumulation of bounces, release, impact on the other
wall.

What a scheme on a grid can say about the time of an event, in steps ``dt`` behind the exact one. Events are
read from the load of the wall, see `experiments.mixed_timestepping.rigid.Events`.

* Impact: noticed at the first test of the gap behind it. Schemes that test the gap at the end of a step
  report the end of the step that holds the impact: (0, 1]. Schemes that test it at the predicted midpoint:
  (1/2, 3/2].
* Release: the force leaves through zero, without a jump: [-3/2, 1/2], the forces of first order first.
  Schemes whose impulses are integrals over a step with the forces of both of its ends are loaded in one
  step more, which starts with a force and ends without: [-1/2, 3/2].
* Impact on the other wall: as the first one, shifted by what the earlier events left in the state, O(dt).
* Closure: each impact is noticed a fraction c <= 1 of a step late, c |dg/dt| dt inside the wall. The
  rebound needs c dt / e to come out, so its flight ends c dt (1/e - 1) early, and all later ones are
  shorter by 2 c dt / (1 - e) together: early by c dt (1/e + 2/(1 - e) - 1) per impact, 11.2 steps for
  e = 0.1. The first rebound that does not come out, of speed at most 2 c dt a / e, a being the
  acceleration, ends at its apex and cuts off the rest: at most 2/e (1 + e)/(1 - e) steps, 24.4. The number
  of impacts before grows with log(1/dt): O(dt log(1/dt)). Schemes that move the slider back onto the wall
  lose nothing of this: late by the 3/2 steps of each impact at most. They are early by the last flight
  that counts as none, `UNRESOLVED` + 1 steps, and those behind it, together 1/(1 - e) times as long; and
  by 2 e/(1 - e) per impact where its law takes the gap rate of the start of the step.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

from experiments.mixed_timestepping import rigid
from nsjax import schemes
from tests.design import each_family
from tests.references.slider_crank import AT_REST, TABLE_2, Event, _Mechanism, event_driven, wall_force

# Not nested, so that the events fall on other fractions of a step in each.
STEPS = (7.3e-5, 3.1e-5, 1.7e-5, 7.9e-6, 4.3e-6, 2.1e-6, 1e-6)
DURATION = 0.0335
MIDPOINT = ("moreau", "moreau_theta", "ggl_decoupled", "ggl_unified")


@functools.cache
def exact() -> dict[str, Event]:
    """The four events; the lower wall is -1."""
    found = event_driven(TABLE_2, (DURATION,), 1e-6, AT_REST).events
    below = [event for event in found if event.wall == -1]
    first = {kind: next(e for e in below if e.kind == kind) for kind in ("impact", "closure", "release")}
    return {**first, "upper": next(e for e in found if e.wall == 1)}


@functools.cache
def late(name: str, dt: float) -> tuple[dict[str, float], int]:
    """How many steps late every event is, and the number of visits of the lower wall."""
    scheme = schemes.REGISTRY[name].factory()
    found = rigid.events(rigid.run(rigid.table2(), scheme, dt, round(DURATION / dt)), dt)
    return {kind: (getattr(found, kind) - e.time) / dt for kind, e in exact().items()}, found.visits


# ------------------------------------------------------------------------------- the reference


def test_reference_figures():
    # Printed figures of another event-driven integration [ms], to their last digit.
    asked = {"impact": 7.5201144, "closure": 9.331048, "release": 17.302553, "upper": 33.056477}
    for kind, time in asked.items():
        digit = 10.0 ** -len(str(time).split(".")[1])
        assert 1e3 * exact()[kind].time == pytest.approx(time, abs=0.51 * digit)
    assert [exact()[kind].kind for kind in asked] == ["impact", "closure", "release", "impact"]


def test_reference_does_not_depend_on_its_closing_speed():
    coarse, fine = (event_driven(TABLE_2, (0.02, 0.08), speed, AT_REST) for speed in (1e-4, 1e-6))
    np.testing.assert_allclose(coarse.x, fine.x, rtol=0, atol=1e-9)
    assert coarse.first("closure").time == pytest.approx(fine.first("closure").time, abs=1e-10)


def test_work_of_the_torque():
    x = event_driven(TABLE_2, (0.0075,), start=AT_REST).x[0]
    m, g = _Mechanism(TABLE_2), 9.81
    m12 = m.coupling * np.cos(x[0] - x[1])
    kinetic = (m.m11 * x[2] ** 2 + m.m22 * x[3] ** 2) / 2 + m12 * x[2] * x[3]
    weights = 0.153 * np.sin(x[0]) * (0.019 + 0.038 + 0.076) + 0.306 * np.sin(x[1]) * (0.019 + 0.076)
    assert kinetic + g * weights == pytest.approx(1.0 * x[0], abs=1e-13)


def test_force_in_the_closed_contact():
    # Corners share the force so that it balances the moment of friction: N/2 (1 +- mu b/a).
    total = wall_force(TABLE_2, event_driven(TABLE_2, (0.05,), start=AT_REST).x[0], 1)
    share = 0.5 * (1 + np.array([1.0, -1.0]) * 0.1 * 0.025 / 0.05)
    np.testing.assert_allclose(total * share, [0.84968, 0.76876], atol=6e-6)


# --------------------------------------------------------------------------------- the schemes


@each_family("name")
def test_impacts(name):
    lead = 0.5 if name in MIDPOINT else 0.0
    for dt in STEPS:
        steps, _ = late(name, dt)
        # the state's own error moves the first impact by less than a twentieth of a step
        assert lead - 0.05 < steps["impact"] <= lead + 1.05
        assert lead - 0.5 < steps["upper"] <= lead + 1.7


@each_family("name", "moreau")
def test_closure(name):
    e = TABLE_2.restitution
    per_impact, last = 1 / e + 2 / (1 - e) - 1, 2 / e * (1 + e) / (1 - e)
    counts = []
    for dt in STEPS:
        steps, visits = late(name, dt)
        counts.append(visits)
        if schemes.REGISTRY[name].position_level:
            early = (rigid.UNRESOLVED + 1 + 2 * e * visits) / (1 - e)
            assert -early <= steps["closure"] <= 1.5 * visits
        else:
            # up to `UNRESOLVED` steps of flight before the closed phase belong to it
            assert -per_impact * (visits - 1) - last - rigid.UNRESOLVED <= steps["closure"] <= 1
    # one resolved bounce more for every tenth of the step, as speeds and flights shrink by e each time
    assert counts[0] == 2
    assert counts[-1] == 4
