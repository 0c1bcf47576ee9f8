"""Ropes that rub on a drum: closed forms, and an event-driven run with stick and slip."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nsjax
from nsjax import analysis, reductions, schemes
from nsjax.multibody import assemble, body, coupling, cylinder, gear, hinge, slide, sphere, spring, tendon

SLOW = pytest.mark.slow
G, R, MU = 9.81, 0.2, 0.3
RATIO = np.exp(MU * np.pi)
SPINNING, STIFF = 0.08, 60.0
"""Inertia of a drum [kg m^2], and stiffness of a spring [N/m]."""


def hung(
    masses: Any, space: str = "", coordinates: str = "joint", drum: str = "ground", mu: Any = MU,
    parts: Any = (), through: Any = None, ropes: Any = (), **more: Any,
) -> nsjax.Problem:  # fmt: skip
    """Two weights on a rope over half a drum, of the ground or of a wheel that turns about its axis.

    Args:
        space: "" in the plane; "sphere" or "cylinder".
        through: height of eyelets of the ground on both sides.
        ropes: parts in place of the rope.
    """
    wide = (lambda x, y: (x, 0.0, y)) if space else (lambda x, y: (x, y))
    axis = {"axis": (0.0, -1.0, 0.0)} if space else {}
    inertia = (SPINNING,) * 3 if space else SPINNING
    made = []
    if drum != "ground":
        made = [body(drum, mass=1.0, inertia=inertia), hinge("axle", "ground", drum, **axis)]
    round_ = cylinder(drum, R, 0.1, axis=(0.0, 1.0, 0.0)) if space == "cylinder" else sphere(drum, R)
    for name, x, m in (("a", -R, masses[0]), ("b", R, masses[1])):
        made += [
            body(name, mass=m, inertia=(0.1,) * 3 if space else 0.1),
            slide(name.upper(), "ground", name, at=wide(x, -1.0), axis=wide(0.0, 1.0)),
        ]
    eyelets = [] if through is None else [("ground", wide(x, through)) for x in (-R, R)]
    rope = tendon(
        "rope", "a", *eyelets[:1], (round_, ("ground", wide(0.0, 1.0))), *eyelets[1:], "b",
        limits=(None, 2.0 + np.pi * R), capstan_friction=mu,
    )  # fmt: skip
    return assemble(*made, *parts, *(ropes or [rope]), gravity=G, coordinates=coordinates, **more)


def falling(masses: Any, ratio: float = RATIO, drag: float = 0.0) -> tuple[float, float, float]:
    """Acceleration of a downwards, and both tensions: a rope that slides if its ratio does not hold it.

    Args:
        drag: mass ``I / r^2`` of a wheel; zero: the drum is fixed.
    """
    m, n = masses
    stuck = (m - n) * G / (m + n + drag) if drag else 0.0
    tight, loose = m * (G - stuck), n * (G + stuck)
    if max(tight / loose, loose / tight) <= ratio:
        return stuck, tight, loose
    e = ratio if m > n else 1.0 / ratio
    a = (m - e * n) / (m + e * n) * G
    return a, m * (G - a), n * (G + a)


CASES = [
    (schemes.moreau, "", "joint", "ground"),
    pytest.param(schemes.generalized_alpha, "cylinder", "absolute", "ground", marks=SLOW),
    pytest.param(schemes.generalized_alpha, "", "absolute", "wheel", marks=SLOW),
    pytest.param(schemes.nsga_decoupled, "", "joint", "ground", marks=SLOW),
    pytest.param(schemes.half_explicit, "sphere", "joint", "ground", marks=SLOW),
    pytest.param(schemes.moreau, "cylinder", "joint", "wheel", marks=SLOW),
    pytest.param(schemes.ggl_decoupled, "sphere", "absolute", "ground", marks=SLOW),
]


@pytest.mark.parametrize(("scheme", "space", "coordinates", "drum"), CASES)
def test_two_weights_hold_up_to_the_ratio(scheme: Any, space: str, coordinates: str, drum: str) -> None:
    """On either side of ``exp(mu pi)``, to both sides: accelerations, tensions, force of friction."""
    drag = 0.0 if drum == "ground" else SPINNING / R**2
    problem = hung((1.0, 1.0), space, coordinates, drum)
    for m, n in ((1.02 * RATIO, 1.0), (0.98 * RATIO, 1.0), (1.0, 1.0), (1.0, 1.5 * RATIO), (12.0, 1.0)):
        run = nsjax.simulate(*problem.replace({"a.mass": m, "b.mass": n}), scheme(), dt=1e-3, steps=50)
        run.raise_for_status()
        a, tight, loose = falling((m, n), drag=drag)
        speeds = [float(run.body(x).velocity[-1][-1]) for x in "ab"]
        np.testing.assert_allclose(speeds, [-0.05 * a, 0.05 * a], rtol=0, atol=1e-9)
        rows, factor = run.contact("rope.upper"), 2.0 * np.tanh(0.5 * MU * np.pi) / MU
        each = [rows.force, rows.impulse / 1e-3]
        pull = each[0] if float(jnp.max(jnp.abs(rows.force))) > 0.0 else each[1]
        mean, rub = np.ravel(pull[-1])[:2]
        assert mean == pytest.approx(0.5 * (tight + loose), rel=1e-8)
        assert -factor * rub == pytest.approx(tight - loose, abs=1e-7 * tight)


def event_driven(mu: float, spin: float, end: float) -> tuple[np.ndarray, list[float], float]:
    """Two weights of 1 kg on a rope over a spinning wheel, one on a spring: by scipy, phase by phase.

    Returns:
        Shift of the rope, its rate and the wheel's spin at the end; instants of the changes; and the work
        that slipping takes.
    """
    e, drag = np.exp(mu * np.pi), SPINNING / R**2

    def pulls(s: float, sense: float) -> tuple[float, float, float]:
        """Acceleration of the rope and both tensions."""
        if sense == 0.0:
            a = -STIFF * s / (2.0 + drag)
            return a, G - a, G + a + STIFF * s
        ratio = e**sense
        a = (G - ratio * (G + STIFF * s)) / (1.0 + ratio)
        return a, G - a, G + a + STIFF * s

    def rates(t: float, y: np.ndarray, sense: float) -> list[float]:
        a, tight, loose = pulls(y[0], sense)
        turned = a / R if sense == 0.0 else R * (tight - loose) / SPINNING
        return [y[1], a, turned, (tight - loose) * (y[1] - R * y[2])]

    def slip(t: float, y: np.ndarray, sense: float) -> float:
        return float(y[1] - R * y[2])

    def upper(t: float, y: np.ndarray, sense: float) -> float:
        _, tight, loose = pulls(y[0], 0.0)
        return loose * e - tight

    def lower(t: float, y: np.ndarray, sense: float) -> float:
        _, tight, loose = pulls(y[0], 0.0)
        return tight * e - loose

    t, y, sense, changes = 0.0, np.array([0.0, 0.0, spin, 0.0]), -1.0, []
    while t < end:
        found = [upper, lower] if sense == 0.0 else [slip]
        for x in found:
            x.terminal, x.direction = True, -1.0 if sense == 0.0 else -sense  # type: ignore[attr-defined]
        run = solve_ivp(rates, (t, end), y, args=(sense,), events=found, rtol=1e-11, atol=1e-13)
        t, y = float(run.t[-1]), run.y[:, -1]
        if run.status == 0:
            break
        changes.append(t)
        if sense == 0.0:
            sense = 1.0 if len(run.t_events[0]) else -1.0
        else:
            y[2], (_, tight, loose) = y[1] / R, pulls(y[0], 0.0)
            held = 1.0 / e <= tight / loose <= e
            sense = 0.0 if held else float(np.sign(np.log(tight / loose)))
    return y[:3], changes, float(y[3])


def braked(**more: Any) -> nsjax.Problem:
    """The same as a mechanism."""
    post = spring("post", ("ground", (R, -2.0)), "b", stiffness=STIFF, length=1.0)
    return hung((1.0, 1.0), drum="wheel", parts=[post], start={"axle": (0.0, SPIN)}, **more)


SPIN, END = 12.0, 2.0
"""Spin of the wheel at the start [rad/s], and end of the runs [s]."""


def test_the_event_driven_run() -> None:
    """It slips, sticks, slips and sticks; energy is lost in slipping alone."""
    y, changes, lost = event_driven(MU, SPIN, END)
    assert len(changes) == 3
    # kinetic energy and that of the spring; the weights balance
    before, after = (v * v + 0.5 * SPINNING * w * w + 0.5 * STIFF * s * s for s, v, w in ((0, 0, SPIN), y))
    assert before - after == pytest.approx(lost, rel=1e-8)


@SLOW
@pytest.mark.parametrize("scheme", [schemes.moreau, schemes.generalized_alpha, schemes.nsga_decoupled])
def test_a_band_on_a_spinning_drum(scheme: Any) -> None:
    """Shift, rates, both instants at which it sticks and slips again, and the energy that is lost."""
    dt = 5e-4
    run = nsjax.simulate(*braked(), scheme(), dt=dt, steps=round(END / dt))
    run.raise_for_status()
    y, changes, lost = event_driven(MU, SPIN, END)
    weight, axle = run.joint("B"), run.joint("axle")
    found = [float(x[-1]) for x in (weight.position, weight.rate, axle.rate)]
    np.testing.assert_allclose(found, y, rtol=0, atol=3e-3)
    slips = np.abs(weight.rate - R * axle.rate) > 1e-6
    times = np.asarray(run.t)[1:][np.diff(slips.astype(int)) != 0]
    np.testing.assert_allclose(times[times > dt], changes, atol=2.0 * dt)
    balance = analysis.energy_balance(run)
    assert float(np.sum(balance.friction)) == pytest.approx(-lost, rel=3e-3)


@SLOW
@pytest.mark.parametrize(
    ("scheme", "mode"),
    [(schemes.moreau, "forward"), (schemes.moreau, "reverse"), (schemes.generalized_alpha, "forward")],
)
def test_derivatives_by_the_coefficient(scheme: Any, mode: str) -> None:
    """Of the shift after slip and stick, against wide secants of the event-driven run."""

    def shift(mu: Any) -> Any:
        problem = braked().replace({"rope.capstan_friction": mu})
        return nsjax.simulate(*problem, scheme(), dt=1e-3, steps=800).q[-1, 2]

    slope = jax.jit(jax.jacfwd(shift) if mode == "forward" else jax.grad(shift))(MU)
    wide = (event_driven(MU + 1e-4, SPIN, 0.8)[0][0] - event_driven(MU - 1e-4, SPIN, 0.8)[0][0]) / 2e-4
    assert float(slope) == pytest.approx(wide, rel=1e-2)


@SLOW
def test_lanes_of_coefficients() -> None:
    """Speeds after 50 ms against the closed form; zero slides freely."""
    problem = hung((3.0, 1.0))
    some = np.array([0.0, 0.1, 0.2, 0.3, 0.5])
    over = {"params.rope.capstan_friction": some}
    swept = nsjax.sweep(problem, schemes.moreau(), over, reduce=reductions.final("v"), dt=1e-3, steps=50)
    wanted = [0.05 * falling((3.0, 1.0), np.exp(mu * np.pi))[0] for mu in some]
    np.testing.assert_allclose(swept.values[:, 1], wanted, rtol=0, atol=1e-9)


@SLOW
def test_without_friction_nothing_changes() -> None:
    """A rope without the coefficient has no row of it; a coefficient of zero gives the same motion."""
    free, zero = hung((3.0, 1.0), mu=None), hung((3.0, 1.0), mu=0.0)
    assert (free.system.nt, free.system.frictionless) == (0, 1)
    assert (zero.system.nt, zero.system.frictionless) == (1, 0)
    ends = [nsjax.simulate(*x, schemes.moreau(), dt=1e-3, steps=50).v[-1] for x in (free, zero)]
    np.testing.assert_allclose(ends[1], ends[0], rtol=0, atol=1e-13)


@SLOW
@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
@pytest.mark.parametrize("held", ["rope", "gear"])
def test_pulleys_in_space(held: str, coordinates: str) -> None:
    """A rope that hardly slips, and two whose lengths follow the hinge: both tensions, and
    ``a = (m - n) g / (m + n + I / r^2)``.
    """
    m, n, drag = 3.0, 2.0, SPINNING / R**2
    ropes = []
    if held == "gear":
        for name, weight, x, ratio in (("left", "a", -R, R), ("right", "b", R, -R)):
            ropes += [
                tendon(name, ("ground", (x, 0.0, 0.0)), weight),
                gear(f"{name}_gear", name, "axle", ratio=ratio, offset=1.0),
            ]
    problem = hung((m, n), "cylinder", coordinates, "wheel", mu=10.0, ropes=ropes)
    run = nsjax.simulate(*problem, schemes.moreau(), dt=5e-3, steps=160)
    run.raise_for_status()
    a = (m - n) * G / (m + n + drag)
    rates = [float(run.joint(x).rate[-1]) for x in ("A", "B", "axle")]
    np.testing.assert_allclose(rates, np.array([-a, a, a / R]) * 0.8, rtol=1e-9)
    tight, loose = m * (G - a), n * (G + a)
    if held == "gear":
        np.testing.assert_allclose(run.constraint_force[-1, -2:], [-tight, -loose], rtol=1e-9)
    else:
        np.testing.assert_allclose(run.impulse_normal[-1] / 5e-3, 0.5 * (tight + loose), rtol=1e-9)


@SLOW
def test_the_load_of_an_axle() -> None:
    """A fixed pulley that a brake holds: its axle bears both tensions, and their moment about it."""
    problem = hung((4.0, 1.0), drum="wheel", parts=[coupling("brake", "axle", polynomial=(0.0,))])
    run = nsjax.simulate(*problem, schemes.generalized_alpha(), dt=1e-3, steps=20)
    run.raise_for_status()
    _, tight, loose = falling((4.0, 1.0))
    np.testing.assert_allclose(run.joint("axle").force[-1], [0.0, tight + loose + G], rtol=0, atol=1e-8)
    np.testing.assert_allclose(run.constraint_force[-1, 0], -R * (tight - loose), rtol=1e-8)


@SLOW
def test_eyelets_beside_a_drum() -> None:
    """Through points of the body of the drum, the motion is the same."""
    ends = []
    for through in (None, -0.3):
        problem = hung((4.0, 1.0), through=through)
        ends.append(np.asarray(nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=50).v[-1]))
    np.testing.assert_allclose(ends[1], ends[0], rtol=0, atol=1e-12)
    assert ends[0][1] > 0.1


@SLOW
def test_a_rope_that_leaves_its_drum() -> None:
    """A bob falls beside a drum, and its rope, which was free, touches and rubs: until then as without
    friction, then the bob falls later. Nothing fails at an angle of zero, nor does the derivative.
    """
    ends = (-1.0, R), (0.8, R + 0.05)
    fall = assemble(
        body("a", mass=1.0, inertia=0.1), slide("A", "ground", "a", at=ends[0], axis=(1.0, 0.0)),
        body("bob", mass=0.5, inertia=1e-3),
        tendon("rope", "a", (sphere("ground", R), ("ground", (0.0, 1.0))), "bob", capstan_friction=MU,
               limits=(None, float(np.hypot(1.8, 0.05)))),
        gravity=G, start={"bob": (*ends[1], 0.0)},
    )  # fmt: skip

    @jax.jit
    def moved(mu: Any) -> Any:
        made = fall.replace({"rope.capstan_friction": mu})
        run = nsjax.simulate(*made, schemes.moreau(), dt=1e-3, steps=500)
        return run.q, run.status

    (free, *ok), (rubbed, *good) = moved(0.0), moved(MU)
    assert not np.any(np.concatenate([np.ravel(x) for x in (*ok, *good)]))
    apart = np.max(np.abs(np.asarray(rubbed) - np.asarray(free)), axis=1)
    assert np.max(apart[:50]) < 1e-12
    assert apart[-1] > 1e-3
    slope = jax.jvp(lambda mu: moved(mu)[0][-1], (MU,), (1.0,))[1]
    assert np.all(np.isfinite(slope))
    # friction holds the bob up
    assert float(rubbed[-1, 2]) > float(free[-1, 2])
