"""Laws of users between a force and the rate that it opposes (`System.dry_friction_law`)."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import lsq_linear

import nsjax
from nsjax import ContactLaw, InputError, State, System, schemes
from nsjax.analysis import linearise
from nsjax.contact import Bounded, ContactProblem, GivenForces, RowGroup, RowGroups, natural_residual, solve
from nsjax.types import record
from tests.design import each_family


@dataclasses.dataclass(frozen=True)
class OneWay:
    """``0 <= u _|_ x >= 0``."""

    def residual(self, x: Any, u: Any, r: Any, numbers: Any, duration: Any) -> Any:
        return x - jnp.maximum(x - r * u, 0.0)


@dataclasses.dataclass(frozen=True)
class Stribeck:
    """``|x| <= b(u)`` with ``b`` falling from its value at rest to that in fast sliding."""

    def residual(self, x: Any, u: Any, r: Any, numbers: Any, duration: Any) -> Any:
        rest, fast, speed = numbers
        bound = duration * (fast + (rest - fast) / (1.0 + jnp.abs(u) / speed))
        return x - jnp.clip(x - r * u, -bound, bound)


@dataclasses.dataclass(frozen=True)
class Interval:
    """``low <= x <= high``, with one bound where the rate has a sign."""

    def residual(self, x: Any, u: Any, r: Any, numbers: Any, duration: Any) -> Any:
        low, high = numbers
        return x - jnp.clip(x - r * u, low * duration, high * duration)


# the contact problem: laws of intervals are those of a quadratic program with bounds


@pytest.mark.parametrize("contacts", [pytest.param(0, marks=pytest.mark.slow), 3])
def test_intervals_are_bounds_of_a_quadratic_program(contacts: int) -> None:
    """Answer, certificate and derivative, beside frictionless contacts."""
    forces = 4
    rows = RowGroups.of(
        contacts, 1, frictionless=contacts, bounded=RowGroup(Bounded(own=Interval()), forces)
    )

    @jax.jit
    def answer(w: Any, v: Any, bounds: Any) -> tuple[Any, Any, Any]:
        given = GivenForces(normal=jnp.zeros(contacts + forces), numbers=bounds, duration=2.0)
        problem = ContactProblem(
            rows=rows, delassus=w @ w.T, free=w @ v, friction=jnp.ones(contacts + forces),
            mask=jnp.ones(contacts + forces, bool), given=given,
        )  # fmt: skip
        found = solve(problem)
        return found.x, found.residual, natural_residual(problem, found.x * 1.01)

    def reference(w: Any, v: Any, bounds: Any) -> Any:
        low, high = np.full(contacts + forces, 0.0), np.full(contacts + forces, np.inf)
        low[contacts:], high[contacts:] = 2.0 * bounds[0], 2.0 * bounds[1]
        return lsq_linear(w.T, -v, bounds=(low, high), tol=1e-14, method="bvls").x

    slope = jax.jit(lambda w, v, b, db: jax.jvp(lambda b: answer(w, v, b)[0], (b,), (db,))[1])
    kinds, bounds = set(), np.array([-0.2, 0.5])
    for seed in range(12):
        rng = np.random.default_rng(seed)
        w, v, change = rng.normal(size=(contacts + forces, 9)), rng.normal(size=9), rng.normal(size=2)
        x, residual, wrong = answer(w, v, tuple(bounds))
        assert float(residual) <= 1e-11
        np.testing.assert_allclose(x, reference(w, v, bounds), atol=1e-8)
        assert float(wrong) > 1e-4
        forced = np.asarray(x)[contacts:] / 2.0
        kinds |= set(np.sum(forced[:, None] >= bounds - [-1e-9, 1e-9], axis=1).tolist())
        ends = [reference(w, v, bounds + h * change) for h in (1e-6, -1e-6)]
        found = slope(w, v, tuple(bounds), tuple(change))
        np.testing.assert_allclose(found, (ends[0] - ends[1]) / 2e-6, atol=1e-5)
    assert kinds == {0, 1, 2}  # at either bound, and between them


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_bound_is_its_interval_beside_contacts_in_space(lanes: bool) -> None:
    """Contacts with friction in space, more than there are places, frictionless ones and a constraint: the
    answer, its certificate and derivative; also in a batch with a lane of nonsense.
    """
    rough, frictionless, forces, bound = 12, 2, 4, 0.3
    nc, m = rough + frictionless + forces, 3 * rough + frictionless + forces + 1

    def answer(law: Any, w: Any, free: Any, mask: Any) -> tuple[Any, Any]:
        group = RowGroup(Bounded(own=law), forces)
        given = GivenForces(
            normal=jnp.where(np.arange(nc) >= nc - forces, bound, 0.0),
            numbers=(-bound, jnp.full(forces, bound)), duration=1.0,
        )  # fmt: skip
        found = solve(
            ContactProblem(
                rows=RowGroups.of(rough + frictionless, 2, 1, frictionless, group),
                delassus=w @ w.T, free=free,
                friction=jnp.where(np.arange(nc) < rough, 0.4, 1.0), mask=mask, given=given,
            )
        )  # fmt: skip
        return found.x, found.residual

    def moved(law: Any, w: Any, free: Any, mask: Any, change: Any) -> Any:
        (x, residual), (slope, _) = jax.jvp(lambda f: answer(law, w, f, mask), (free,), (change,))
        return x, residual, slope

    data = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        mask = np.concatenate([rng.uniform(size=rough + frictionless) < 0.4, np.ones(forces, bool)])
        w = rng.normal(size=(m, m + 4)) / np.sqrt(m)
        data.append((w, 0.5 * rng.normal(size=m), mask, rng.normal(size=m)))
    if lanes:
        data[3] = (data[3][0], np.full(m, np.nan), *data[3][2:])
    both = []
    for law in (Interval(), None):
        one = jax.jit(functools.partial(moved, law))
        if lanes:
            both.append(
                [np.asarray(x) for x in jax.jit(jax.vmap(one))(*map(np.stack, zip(*data, strict=True)))]
            )
        else:
            both.append([np.stack(x) for x in zip(*(one(*d) for d in data), strict=True)])
    good = [k for k in range(len(data)) if not (lanes and k == 3)]
    (x, residual, slope), (wanted, _, known) = both
    assert np.all(residual[good] <= 1e-11)
    np.testing.assert_allclose(x[good], wanted[good], atol=1e-9)
    np.testing.assert_allclose(slope[good], known[good], atol=1e-8)
    sizes = np.abs(x[good][:, -1 - forces : -1])
    assert np.any(sizes < 0.9 * bound)
    assert np.any(sizes > bound * (1.0 - 1e-9))


# a clutch that turns freely in one sense: an engine with a periodic torque, a wheel with a damper


def _inertia(q: Any, p: Any) -> Any:
    return jnp.diag(jnp.stack([p["engine"], p["wheel"]]))


def _torque(t: Any, q: Any, v: Any, p: Any) -> Any:
    return jnp.stack([p["amplitude"] * jnp.cos(3.0 * t), -p["damping"] * v[1]])


def _lead(t: Any, q: Any, v: Any, p: Any) -> Any:
    return (v[1] - v[0])[None]


def _nothing(p: Any) -> Any:
    return ()


CLUTCH = System(
    nq=2, nv=2, mass=_inertia, force=_torque, nd=1, dry_friction=_lead, dry_friction_bound=_nothing,
    dry_friction_law=OneWay(),
)  # fmt: skip
NUMBERS = {"engine": 1.0, "wheel": 2.0, "amplitude": 3.0, "damping": 0.7}
START = State(t=0.0, q=np.zeros(2), v=np.array([0.0, 0.4]))


def event_driven(p: dict[str, float], time: float = 4.0) -> np.ndarray:
    """Velocities after a time, with the instants at which the clutch locks and opens."""
    t, v, locked = 0.0, np.array([0.0, 0.4]), False
    both = p["engine"] + p["wheel"]

    def push(t: float) -> float:
        return p["amplitude"] * np.cos(3.0 * t)

    def free(t: float, v: np.ndarray) -> list[float]:
        return [push(t) / p["engine"], -p["damping"] * v[1] / p["wheel"]]

    def together(t: float, v: np.ndarray) -> list[float]:
        return [(push(t) - p["damping"] * v[0]) / both] * 2

    while t < time:

        def event(t: float, v: np.ndarray, locked: bool = locked) -> float:
            return push(t) - p["engine"] * together(t, v)[0] if locked else v[1] - v[0]

        event.terminal, event.direction = True, -1  # type: ignore[attr-defined]
        done = solve_ivp(together if locked else free, (t, time), v, events=event, rtol=1e-11, atol=1e-12)
        t, v, locked = done.t[-1], done.y[:, -1], locked ^ (done.status == 1)
    return v


@functools.cache
def wanted() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Velocities of the clutch, and their derivatives by differences of event-driven runs."""
    h, slopes = 1e-5, {}
    for key, x in NUMBERS.items():
        ends = [event_driven(NUMBERS | {key: x + s * h}) for s in (1, -1)]
        slopes[key] = (ends[0] - ends[1]) / (2 * h)
    return event_driven(NUMBERS), slopes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "forward_too"),
    [
        ("moreau", False),
        *(pytest.param(x, True, marks=pytest.mark.slow) for x in ("moreau", "newmark")),
    ],
)
def test_a_one_way_clutch(name: str, forward_too: bool) -> None:
    scheme, (end, slopes) = getattr(schemes, name)(), wanted()
    run = jax.jit(lambda p, dt: nsjax.simulate(CLUTCH, p, START, scheme, dt=dt, steps=1000).v[-1])
    traj = nsjax.simulate(CLUTCH, NUMBERS, START, scheme, dt=1e-2, steps=400)
    assert int(traj.status) == 0
    assert np.all(np.asarray(traj.dry_friction_force) >= 0.0)
    assert np.max(np.abs(np.asarray(traj.v)[-1] - end)) < 3e-4  # Moreau's rule, of first order
    reverse = jax.jit(jax.jacrev(run))(NUMBERS, 0.004)
    for key, slope in slopes.items():
        np.testing.assert_allclose(reverse[key], slope, atol=2e-3)
    forward = jax.jit(jax.jacfwd(run))(NUMBERS, 0.004) if forward_too else reverse
    for key in slopes:
        np.testing.assert_allclose(forward[key], reverse[key], atol=1e-10)


@pytest.mark.slow
def test_the_worst_of_twenty_step_sizes_falls_with_the_step() -> None:
    end, _ = wanted()

    def worst(smallest: int) -> float:
        errors = []
        for steps in range(smallest, smallest + 100, 5):
            traj = nsjax.simulate(CLUTCH, NUMBERS, START, schemes.moreau(), dt=4.0 / steps, steps=steps)
            errors.append(np.abs(np.asarray(traj.v)[-1] - end).max())
        return max(errors)

    coarse, fine = worst(400), worst(1600)
    assert coarse < 3e-4
    assert fine < 0.4 * coarse


# a bound as a law of a user: the same run as with ``dry_friction_bound``, beside a contact with friction


def _mass(q: Any, p: Any) -> Any:
    return jnp.diag(jnp.array([1.0, 2.0, 0.5]))


def _push(t: Any, q: Any, v: Any, p: Any) -> Any:
    return jnp.stack([2.0 * jnp.sin(5.0 * t) - 1.0 * q[0], -9.81 * 2.0, 0.5 * jnp.cos(4.0 * t)])


def _gap(t: Any, q: Any, p: Any) -> Any:
    return q[1:2]


def _slip(t: Any, q: Any, v: Any, p: Any) -> Any:
    return v[:1, None]


def _law(p: Any) -> ContactLaw:
    return ContactLaw(restitution=0.3, friction=0.02)


def _rate(t: Any, q: Any, v: Any, p: Any) -> Any:
    return v[::2]


def _bound(p: Any) -> Any:
    return p["bound"] * jnp.array([1.0, 0.2])


def _ends(p: Any) -> Any:
    return -_bound(p), _bound(p)


BOUNDED = System(
    nq=3, nv=3, nc=1, nt=1, mass=_mass, force=_push, gap=_gap, slip=_slip, law=_law, nd=2,
    dry_friction=_rate, dry_friction_bound=_bound,
)  # fmt: skip
BEGIN = State(t=0.0, q=np.array([0.2, 0.1, 0.0]), v=np.zeros(3))


@each_family("name")
def test_a_bound_is_the_law_of_its_interval(name: str) -> None:
    """Motion, force and derivative, beside a contact that bounces, rests and rubs."""
    if name.startswith("nsga"):
        pytest.skip("refuses laws of users")
    scheme, found = getattr(schemes, name)(contact_tolerance=1e-13), []
    for system in (
        BOUNDED,
        dataclasses.replace(BOUNDED, dry_friction_law=Interval(), dry_friction_bound=_ends),
    ):

        def run(bound: Any, system: System = system) -> Any:
            traj = nsjax.simulate(system, {"bound": bound}, BEGIN, scheme, dt=5e-3, steps=300)
            return traj.q, traj.dry_friction_force, traj.status

        (q, force, status), slope = jax.jit(lambda x, run=run: jax.jvp(run, (x,), (1.0,)))(0.7)
        assert int(status) == 0
        found.append((q, force, slope[0]))
    for own, plain in zip(*found, strict=True):
        np.testing.assert_allclose(own, plain, atol=1e-9)
    assert np.ptp(np.asarray(found[0][1])[:, 0]) > 1.0  # it slides in both senses


# stick and slip on a belt: the law depends on the rate


BELT, STIFFNESS, LAW = 0.3, 20.0, (2.0, 1.0, 0.2)


def _unit(q: Any, p: Any) -> Any:
    return jnp.eye(1)


def _spring(t: Any, q: Any, v: Any, p: Any) -> Any:
    return -STIFFNESS * q


def _over_belt(t: Any, q: Any, v: Any, p: Any) -> Any:
    return v - BELT


def _numbers(p: Any) -> Any:
    return p["law"]


def limit_cycle(bound: Callable[[float], float], belt: float) -> tuple[float, float]:
    """Amplitude and period of stick and slip of a unit mass by the ``bound`` at a rate, event by event."""

    def slides(t: float, x: np.ndarray) -> list[float]:
        return [x[1], -STIFFNESS * x[0] + bound(x[1] - belt)]  # slower than the belt, which pulls forward

    def catches(t: float, x: np.ndarray) -> float:
        return x[1] - belt

    catches.terminal, catches.direction = True, 1  # type: ignore[attr-defined]
    breaks = bound(0.0) / STIFFNESS
    begin = [breaks + 1e-9, belt - 1e-9]
    done = solve_ivp(slides, (0.0, 5.0), begin, events=catches, rtol=1e-11, atol=1e-13, max_step=1e-3)
    period = done.t[-1] + (begin[0] - done.y[0, -1]) / belt
    return float(np.ptp(done.y[0])), float(period)


def check_cycle(
    t: Any, x: Any, v: Any, belt: float, cycle: tuple[float, float], within: tuple[float, float]
) -> None:
    """Stick and slip, once settled, have the amplitude and the period of a ``cycle``."""
    (amplitude, period), (t, x, v) = cycle, map(np.asarray, (t, x, v))
    assert abs(np.ptp(x[t > 1.5]) - amplitude) < within[0] * amplitude
    sticks = np.abs(v - belt) < 1e-9
    begins = t[1:][~sticks[1:] & sticks[:-1]]
    assert abs(np.mean(np.diff(begins[begins > 0.2])) - period) < within[1] * period


def test_stick_and_slip_by_a_law_of_the_rate() -> None:
    rest, fast, speed = LAW
    belt = System(
        nq=1, nv=1, mass=_unit, force=_spring, nd=1, dry_friction=_over_belt, dry_friction_bound=_numbers,
        dry_friction_law=Stribeck(),
    )  # fmt: skip
    start = State(t=0.0, q=np.array([0.0]), v=np.array([BELT]))
    traj = nsjax.simulate(belt, {"law": LAW}, start, schemes.moreau(), dt=2e-4, time=4.0)
    assert int(traj.status) == 0
    cycle = limit_cycle(lambda u: fast + (rest - fast) / (1.0 + abs(u) / speed), BELT)
    check_cycle(traj.t, traj.q[:, 0], traj.v[:, 0], BELT, cycle, (1e-3, 2e-3))


# restitution that depends on the speed, by a law that inherits from `nsjax.ContactLaw`


@record()
class Slower(ContactLaw):
    """``e(u) = restitution / (1 + |u|)`` for gaps."""

    def rebound(self, rows: RowGroups, before: Any, settling: Any = None) -> Any:
        return super().rebound(rows, before, settling) / (1.0 + jnp.abs(before))


def _falling(t: Any, q: Any, v: Any, p: Any) -> Any:
    return jnp.stack([-9.81, 0.0]) - 0.0 * q


def _one(q: Any, p: Any) -> Any:
    return jnp.eye(2)


def _height(t: Any, q: Any, p: Any) -> Any:
    return q[:1]


def _slower(p: Any) -> Slower:
    return Slower(restitution=p["e"])


def _beside(t: Any, q: Any, v: Any, p: Any) -> Any:
    return v[1:]


def _weak(p: Any) -> Any:
    return jnp.full(1, 0.1)


@pytest.mark.slow
@each_family("name", "moreau")
@pytest.mark.parametrize("forces", [0, 1])
def test_restitution_that_falls_with_the_speed(name: str, forces: int) -> None:
    """Height and its derivatives after a bounce, alone and beside a bounded force."""
    more: dict[str, Any] = {"nd": 1, "dry_friction": _beside, "dry_friction_bound": _weak} if forces else {}
    ball = System(nq=2, nv=2, nc=1, mass=_one, force=_falling, gap=_height, law=_slower, **more)

    def height(p: Any) -> Any:
        start = State(t=0.0, q=jnp.stack([p["drop"], 0.0]), v=jnp.zeros(2))
        return nsjax.simulate(ball, p, start, getattr(schemes, name)(), dt=1e-3, steps=600).q[-1, 0]

    def exact(p: Any) -> Any:
        fall = jnp.sqrt(2.0 * p["drop"] / 9.81)
        speed, left = 9.81 * fall, 0.6 - fall
        return p["e"] * speed / (1.0 + speed) * left - 0.5 * 9.81 * left * left

    numbers = {"e": 0.8, "drop": 1.3}
    found, slope = jax.jit(jax.value_and_grad(height))(numbers)
    wanted, known = jax.value_and_grad(exact)(numbers)
    np.testing.assert_allclose(found, wanted, atol=5e-3)  # half a step at the speed of the impact
    for key in numbers:
        np.testing.assert_allclose(slope[key], known[key], atol=2e-2)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"dry_friction_law = OneWay\(\) with nd = 0, dry_friction_contact = \(\); give a"
    ):
        dataclasses.replace(CLUTCH, nd=0, dry_friction=None, dry_friction_bound=None)
    with pytest.raises(
        InputError, match=r"scheme 'nsga_decoupled' does not work with dry_friction_law = OneWay\(\)"
    ):
        nsjax.simulate(CLUTCH, NUMBERS, START, schemes.nsga_decoupled(), dt=1e-2, steps=1)
    with pytest.raises(InputError, match=r"linearise: which forces of dry_friction_law = OneWay\(\) hold"):
        linearise(nsjax.Problem(system=CLUTCH, params=NUMBERS, state=START))
