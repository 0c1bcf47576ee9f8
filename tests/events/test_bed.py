"""Derivatives at events on random motions: a bed of 300, of which each scheme takes a quarter in turn."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.design import slow_but
from tests.events import draws, mechanisms, statistics, topologies
from tests.events.measure import SCHEMES, STEPS, compare, derivative
from tests.events.reference import motion
from tests.events.truth import placed, truth
from tests.gradients import cases, particle

CLOSED_FORMS = (
    "corner, 3 impacts", pytest.param("slope, slip impacts", marks=pytest.mark.slow),
    pytest.param("Zeno, sliding", marks=pytest.mark.slow),
    pytest.param("slip reversal uphill", marks=pytest.mark.slow), "slip to stick",
)  # fmt: skip


def _particle(name: str) -> tuple[draws.Motion, particle.Case]:
    """A motion of `tests.gradients` with a closed form as one of the bed."""
    case = cases.BY_NAME[name]
    values = dict(zip(particle.NAMES, case.vector(), strict=True))
    values = {**values, "e": values["restitution"], "mu": values["friction"], "g": values["gravity"]}
    p = tuple(float(values.get(n, 0.0)) for n in mechanisms.Point2.names)
    fixed = ("z", "vz", "belt") if values["z"] == 0.0 else ("belt",)
    return draws.Motion("point2", -1, "generic", p, case.time, fixed), case


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_the_reference_agrees_with_closed_forms(name):
    m, case = _particle(name)
    found = truth(m, move=False)
    x, jacobian = particle.reference(case)
    same = {"e": "restitution", "mu": "friction", "g": "gravity"}
    pairs = [(k, case.columns.index(same.get(c, c))) for k, c in enumerate(found.columns[:-1])
             if same.get(c, c) in case.columns]  # fmt: skip
    assert len(pairs) >= 4
    assert found.kind == "smooth"
    np.testing.assert_allclose(found.x, x, atol=1e-9)
    mine = np.array(found.jacobian)[:, [k for k, _ in pairs]]
    assert np.max(np.abs(mine - jacobian[:, [k for _, k in pairs]])) < 1e-5 * np.max(np.abs(jacobian))


QUICK_MODELS = "point3", "sphere", "box2", "discs", "chain3", "pendulum2"


@pytest.mark.parametrize("name", slow_but(mechanisms.ALL, *QUICK_MODELS))
def test_the_mechanism_of_the_reference_is_the_model(name):
    """Gaps, slips, joints and their first and second rates, at a state off the motion."""
    m, rng = draws.draw(name, 2), np.random.default_rng(7)
    mech, system = mechanisms.ALL[name](m.p), topologies.MODELS[name][0]
    p, state = topologies.build(name, [jnp.asarray(x) for x in m.p])
    q0, v0 = mech.start()
    n, t = mech.nv, 0.37
    q, v, a = q0 + 0.1 * rng.normal(size=n), v0 + rng.normal(size=n), rng.normal(size=n)

    def place(t, q, v):
        parts = [system.gap(t, q, p)] + ([system.constraint(t, q, p)] if system.nb else [])
        return jnp.concatenate(parts)

    def slip(t, q, v):
        return jnp.ravel(system.slip(t, q, v, p))

    def rate(f):
        return lambda t, q, v: jax.jvp(f, (t, q, v), (1.0, v, a))[1]

    @jax.jit
    def model(t, q, v):
        values = [place(t, q, v), rate(place)(t, q, v), rate(rate(place))(t, q, v), slip(t, q, v),
                  rate(slip)(t, q, v), system.force(t, q, v, p), jnp.diag(system.mass(q, p))]  # fmt: skip
        return jnp.concatenate([state.q, state.v, *values])

    c, (residual, b, k) = mech.contacts(t, q, v), mech.joints(q, v)
    hand = [q0, v0, c.gap, residual, c.n @ v + c.cn, b @ v, c.n @ a + c.kn, b @ a + k,
            np.ravel(c.t @ v + c.ct), np.ravel(c.t @ a + c.kt), mech.force(t, q, v), mech.mass]  # fmt: skip
    np.testing.assert_allclose(model(t, q, v), np.concatenate(hand), rtol=1e-11, atol=1e-11)


def test_a_bouncing_point_comes_to_rest_at_its_time():
    """Drop from h: ``sqrt(2 h / g) (1 + e) / (1 - e)``."""
    numbers = dict.fromkeys(mechanisms.Point2.names, 0.0) | {"z": 0.5, "e": 0.5, "g": 9.81, "wall": 9.0}
    found = motion(mechanisms.Point2, list(numbers.values()), 1.2)
    assert abs(found.events[-1][0] - 3.0 * math.sqrt(1.0 / 9.81)) < 1e-6
    assert np.max(np.abs([found.q[1], *found.v])) < 1e-12


@pytest.mark.parametrize("key", [("point3", 6), ("point2", 0), ("box2", 1)])
def test_the_rate_at_the_end_is_that_of_the_motion(key):
    """In space sliding has turned since its phase began."""
    m, _ = placed(draws.draw(*key))
    ends = [motion(mechanisms.ALL[m.name], m.p, m.end + s) for s in (-1e-4, 0.0, 1e-4)]
    before, _, after = (np.concatenate([x.q, x.v]) for x in ends)
    np.testing.assert_allclose(ends[1].rate, (after - before) / 2e-4, rtol=1e-5, atol=1e-6)


QUICK = 0, 1, 4
QUICK_STEPS = (239, 863, 2053)


@pytest.fixture(scope="module")
def quick():
    """Motions whose derivatives are right today, and their references."""
    return [(m, truth(m)) for m in (draws.draw("point2", k) for k in QUICK)]


# the second-order scheme takes half a minute to compile
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["moreau", pytest.param("generalized_alpha", marks=pytest.mark.slow)])
def test_quick_part(quick, scheme):
    records = [compare(m, t, scheme, QUICK_STEPS) for m, t in quick]
    s = statistics.summarise(records)
    assert s.derivatives > 0.9 * len(QUICK_STEPS) * len(quick)
    assert (s.wrong, s.gross, s.not_converging, s.not_finite, s.refused) == ([], [], [], [], 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "key"),
    [("moreau", ("point2", 1)), ("generalized_alpha", ("box2", 0)), ("nsga_decoupled", ("rod", 2))],
)
def test_forward_equals_reverse(scheme, key):
    m = draws.draw(*key)
    one, other = (derivative(m, scheme, 239, mode).jacobian for mode in ("forward", "reverse"))
    assert np.max(np.abs(one - other)) < 1e-10 * np.max(np.abs(one))


@pytest.mark.slow
@pytest.mark.parametrize("key", [0, 17, 20])
def test_located_impacts_of_bodies_on_constraints(key):
    """Moreau's rule holds constraints at the midpoint: rates that it leaves are no part of the approach."""
    m = draws.draw("rod", key)
    t = truth(m)
    coarse, fine = (np.linalg.norm(x) for x in compare(m, t, "localized", (307, 3907)).error)
    assert fine < 0.02
    assert fine < 0.2 * coarse  # first order: a thirteenth


PARTS = 4
"""Each scheme takes one motion of so many, the next scheme the next one."""


@pytest.mark.slow
@pytest.mark.parametrize(("part", "scheme"), [(k % PARTS, x) for k, x in enumerate(SCHEMES)])
def test_the_bed_in_turn(part, scheme):
    """Some minutes a scheme. Of the whole bed 99.5 % of the derivatives without a note are right."""
    jammed = [draws.jam("box2" if k % 2 else "box4", k) for k in range(12)]
    every = sorted([*draws.everything(), *jammed], key=lambda m: m.name)[part::PARTS]
    s = statistics.summarise([compare(m, truth(m), scheme, STEPS) for m in every])
    assert s.either >= 1.0 - 0.005 * PARTS  # should all that miss be in one part
    assert (s.wrong, s.silent, s.jammed_silent, s.not_finite) == ([], [], [], [])


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["ggl_unified", "ggl_decoupled", "moreau"])
def test_a_box_that_hops_from_corner_to_corner(scheme):
    """At rest it hops by 1e-7 m in a cycle of six steps; derivatives do not grow with it: first order at
    2539 steps as beside them (about 95 / steps in the first two, 65 in the last).
    """
    m = draws.draw("box2", 1)
    r = compare(m, truth(m), scheme, (2503, 2539, 2551))
    assert all(r.finite)
    assert np.max(np.multiply(r.error, r.steps)) < 200.0


def test_draws_are_the_same_every_time():
    assert dataclasses.asdict(draws.draw("box2", 17)) == dataclasses.asdict(draws.draw("box2", 17))
    assert sum(draws.COUNTS.values()) == len(draws.everything()) == 300
