"""[C] Sections 3.1, 3.3.2: other schemes for the smooth motion, all of f* in (27), spurious oscillations.

The paper takes the generalized-alpha method for the smooth motion, "although other DAE time integration
schemes could also be considered", and shortens (27), ``M(q) U - G' nu - h^2 f* = 0`` with ``f*`` at the
total velocity, to (28), (29), with ``M`` and velocity of the smooth motion. Here both are a program of
their own, which equals `schemes.nsga_decoupled` where it does the same. A bob on a damped spring in polar
coordinates (mass and forces depend on position and velocity) strikes a wall twice; errors are taken to its
motion integrated from event to event.

Found: before impacts each smooth scheme has the order and error of its own; after them all are of first
order. Those without memory of accelerations (Bathe, Radau) then have 0.87 and 0.6 of the others' error:
they do not carry an acceleration from before the impact into the next step. All of ``f*`` changes errors by
less than a quarter per cent. Where the damper stops the bob within a step, the spring's length, which (29)
hits to 5e-4 m, is wrong by 4.5e-3 m with all of ``f*``: the shortened equation is not the worse one.

Section 3.1 says that constraints on acceleration level remove spurious oscillations of the constraints
after impacts. A pendulum held by one constraint strikes a wall: on velocity level the constraint's force is
wrong after that by the whole jump of the force, with alternating sign, whatever the step size; for ever if
``rho_inf = 1``, else it decays by the filter of the accelerations. On acceleration level
(``smooth="full"``) there is none. Positions and velocities do not see it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

import nsjax
from nsjax import ContactLaw, State, System, schemes
from nsjax.analysis import observed_order

from .. import common

MASS, LENGTH, STIFFNESS, GRAVITY, WALL, RESTITUTION = 1.0, 1.0, 400.0, 9.81, -0.2, 0.8
START = np.array([1.0, 1.2]), np.zeros(2)
"""Length of the spring [m], and angle from the vertical [rad]; at rest."""
EARLY, TIME = 0.3, 2.1
"""Before the first impact, and after the second [s]."""
STEPS = (525, 2100)
"""Numbers of steps, multiples of `PART`; errors are means over `PHASES` of them, since impacts may lie
anywhere in a step."""
PHASES, PART, RHO = 8, 7, 0.8


@dataclass(frozen=True)
class Bob:
    """The bob on its spring; arrays may be complex, for derivatives by complex steps."""

    damping: float = 2.0

    def mass(self, q: Any) -> Any:
        return MASS * np.array([1.0, q[0] ** 2])

    def force(self, q: Any, v: Any) -> Any:
        r, angle = q
        along = r * v[1] ** 2 + GRAVITY * np.cos(angle)
        pull = STIFFNESS * (r - LENGTH) + self.damping * v[0]
        return np.array([MASS * along - pull, -MASS * r * (2 * v[0] * v[1] + GRAVITY * np.sin(angle))])

    def gap(self, q: Any) -> Any:
        return q[0] * np.sin(q[1]) - WALL

    def normal(self, q: Any) -> Any:
        return np.array([np.sin(q[1]), q[0] * np.cos(q[1])])

    def acceleration(self, q: Any, v: Any) -> Any:
        return self.force(q, v) / self.mass(q)


def newton(f: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    """Root of ``f``, with derivatives by complex steps."""
    for _ in range(30):
        slope = np.stack([f(x + 1e-30j * unit).imag / 1e-30 for unit in np.eye(len(x))], axis=1)
        step = np.linalg.solve(slope, f(x))
        x = x - step
        if np.max(np.abs(step)) <= 1e-13 * (1.0 + np.max(np.abs(x))):
            break
    return x


def one_step(alpha_m: float, alpha_f: float, beta: float, gamma: float) -> Callable[..., Any]:
    """A member of the generalized-alpha family; its memory is the algorithmic and the true acceleration."""

    def smooth(bob: Bob, q: Any, v: Any, memory: Any, h: float) -> Any:
        old, true = memory

        def end(a: Any) -> Any:
            new = ((1 - alpha_f) * a + alpha_f * true - alpha_m * old) / (1 - alpha_m)
            position = q + h * v + h * h * ((0.5 - beta) * old + beta * new)
            return position, v + h * ((1 - gamma) * old + gamma * new), new

        a = newton(lambda a: a - bob.acceleration(*end(a)[:2]), true)
        position, velocity, new = end(a)
        return position, velocity, a, (new, a)

    return smooth


def bathe(bob: Bob, q: Any, v: Any, memory: Any, h: float) -> Any:
    """Bathe's method: a trapezoidal half step, then three-point backward differences."""

    def half(w: Any) -> Any:
        x = q + 0.25 * h * (v + w)
        return w - v - 0.25 * h * (memory[1] + bob.acceleration(x, w))

    middle = newton(half, v)
    there = q + 0.25 * h * (v + middle)

    def position(w: Any) -> Any:
        return (4.0 * there - q + h * w) / 3.0

    w = newton(lambda w: w - (4.0 * middle - v + h * bob.acceleration(position(w), w)) / 3.0, middle)
    a = bob.acceleration(position(w), w)
    return position(w), w, a, (a, a)


def radau(bob: Bob, q: Any, v: Any, memory: Any, h: float) -> Any:
    """Radau IIA of two stages, of order three."""
    weights = np.array([[5.0, -1.0], [9.0, 3.0]]) / 12.0

    def stages(x: Any) -> Any:
        a = x.reshape(2, 2)
        velocities = v + h * weights @ a
        return q + h * weights @ velocities, velocities, a

    def residual(x: Any) -> Any:
        p, w, a = stages(x)
        return np.concatenate([a[k] - bob.acceleration(p[k], w[k]) for k in (0, 1)])

    p, w, a = stages(newton(residual, np.concatenate([memory[1], memory[1]])))
    return p[1], w[1], a[1], (a[1], a[1])


def chung_hulbert(rho: float) -> tuple[float, float, float, float]:
    """``alpha_m, alpha_f, beta, gamma`` of [C (35)]."""
    alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    gamma = 0.5 + alpha_f - alpha_m
    return alpha_m, alpha_f, 0.25 * (gamma + 0.5) ** 2, gamma


SMOOTH: dict[str, Callable[..., Any]] = {
    "generalized alpha": one_step(*chung_hulbert(RHO)),
    "Newmark": one_step(0.0, 0.0, 0.25, 0.5),
    "HHT 0.1": one_step(0.0, 0.1, 0.25 * 1.1**2, 0.6),
    "Bathe": bathe,
    "Radau": radau,
}


def corrected(bob: Bob, before: Any, smooth: Any, h: float, full: bool) -> tuple[Any, Any]:
    """Position and velocity after (30), or with (27) in place of (28)."""
    (q, v), (sq, sv, sa) = before, smooth
    if bob.gap(sq) >= 0.0:
        return sq, sv
    known = bob.force(sq, sv)

    def residual(x: Any, acts: bool) -> Any:
        u, nu, w, impulse = x[:2], x[2], x[3:5], x[5]
        p, total = sq + u, sv + w
        change = bob.force(p, total) - known - (bob.mass(p) - bob.mass(sq)) * sa
        short = bob.mass(sq) * u - h * h * (bob.force(p, sv) - known)
        whole = bob.mass(p) * u - h * h * change
        law = bob.normal(p) @ total + RESTITUTION * (bob.normal(q) @ v) if acts else impulse
        return np.concatenate([
            (whole if full else short) - bob.normal(p) * nu, [bob.gap(p)],
            bob.mass(p) * w - h * change - bob.normal(p) * impulse, [law],
        ])  # fmt: skip

    x = newton(lambda x: residual(x, True), np.zeros(6))
    if x[5] < 0.0:
        x = newton(lambda x: residual(x, False), np.zeros(6))
    return sq + x[:2], sv + x[3:5]


def motion(bob: Bob, name: str, n: int, full: bool = False) -> np.ndarray:
    """Positions and velocities (n, 4) of the run with ``n`` steps."""
    (q, v), rows, h = START, [], TIME / n
    a = bob.acceleration(q, v)
    memory = a, a
    for _ in range(n):
        *smooth, memory = SMOOTH[name](bob, q, v, memory, h)
        q, v = corrected(bob, (q, v), smooth, h, full)
        rows.append(np.concatenate([q, v]))
    return np.array(rows)


def exact(bob: Bob) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """States at `EARLY` and `TIME`, and the impacts between, from event to event."""

    def hit(t: float, x: Any) -> Any:
        return bob.gap(x[:2])

    hit.terminal, hit.direction = True, -1  # type: ignore[attr-defined]

    def rate(t: float, x: Any) -> Any:
        return np.concatenate([x[2:], bob.acceleration(x[:2], x[2:])])

    t, x, impacts, states = 0.0, np.concatenate(START), [], []
    for stop in (EARLY, TIME):
        while t < stop:
            found = solve_ivp(rate, (t, stop), x, events=hit, rtol=1e-12, atol=1e-13, method="DOP853")
            t, x = found.t[-1], found.y[:, -1]
            if t < stop:
                g, m = bob.normal(x[:2]), bob.mass(x[:2])
                x[2:] -= (1 + RESTITUTION) * (g @ x[2:]) / (g @ (g / m)) * g / m
                impacts.append(t)
        states.append(x.copy())
    return states[0], states[1], impacts


def errors(bob: Bob, name: str, n: int, phases: int, full: bool) -> np.ndarray:
    """Errors of the position before the impacts, after them, and of the length alone after them."""
    early, late, _ = exact(bob)
    found = []
    for k in range(phases):
        rows = motion(bob, name, n + PART * k, full)
        before, after = rows[len(rows) // PART - 1] - early, rows[-1] - late
        found.append([np.abs(before[:2]).max(), np.abs(after[:2]).max(), abs(after[0])])
    return np.mean(found, axis=0)


def package(n: int) -> np.ndarray:
    """Positions of the same motion by the package."""
    bob, (q, v) = Bob(), START

    def force(t: Any, q: Any, v: Any, p: Any) -> Any:
        along = q[0] * v[1] ** 2 + GRAVITY * jnp.cos(q[1])
        pull = STIFFNESS * (q[0] - LENGTH) + bob.damping * v[0]
        turn = -MASS * q[0] * (2 * v[0] * v[1] + GRAVITY * jnp.sin(q[1]))
        return jnp.stack([MASS * along - pull, turn])

    system = System(
        nq=2, nv=2, nc=1, mass=lambda q, p: MASS * jnp.diag(jnp.stack([1.0 + 0.0 * q[0], q[0] ** 2])),
        force=force, gap=lambda t, q, p: (q[0] * jnp.sin(q[1]) - WALL)[None],
        law=lambda p: ContactLaw(restitution=RESTITUTION),
    )  # fmt: skip
    start: Any = State(t=0.0, q=q, v=v)  # type: ignore[arg-type]
    traj = nsjax.simulate(system, None, start, schemes.nsga_decoupled(RHO), dt=TIME / n, steps=n)
    return np.asarray(traj.q)[1:]


PIN = System(
    nq=2, nv=2, nb=1, nc=1, mass=lambda q, p: np.eye(2),
    force=lambda t, q, v, p: jnp.array([0.0, -GRAVITY]),
    constraint=lambda t, q, p: 0.5 * (jnp.sum(q * q) - 1.0)[None],
    gap=lambda t, q, p: (q[0] + 0.3)[None], law=lambda p: ContactLaw(restitution=RESTITUTION),
)  # fmt: skip
"""A pendulum in its two coordinates, held by a constraint, and a wall."""
LEVEL: Any = State(t=0.0, q=np.array([1.0, 0.0]), v=np.zeros(2))  # type: ignore[arg-type]
JUMP = (1.0 - RESTITUTION**2) * 2.0 * GRAVITY * np.sqrt(1.0 - 0.3**2)
"""Jump of the constraint's force at the impact [N], by the energy of the fall."""
WATCHED = 12


def force_errors(scheme: Any, h: float) -> np.ndarray:
    """Error of the constraint's force [N] in the steps from that of the first impact on."""
    traj = nsjax.simulate(PIN, None, LEVEL, scheme, dt=h, steps=round(0.85 / h))
    traj.raise_for_status()
    q, v, force = (np.asarray(x) for x in (traj.q, traj.v, traj.constraint_force))
    first = np.flatnonzero(np.asarray(traj.impulse_normal)[:, 0] > 0.0)[0]
    # the radius is one: its second derivative q'' . q + v . v vanishes
    return (force[:, 0] + np.sum(v * v, axis=1) - GRAVITY * q[:, 1])[first : first + WATCHED]


def filtered_jump(rho: float) -> np.ndarray:
    """What the accelerations' filter makes of a jump where velocities are held: errors over the jump.

    ``(1 - gamma) e + gamma e_new = 0`` for algorithmic accelerations, [C (34b)], and (34c) for true ones.
    """
    alpha_m, alpha_f, _, gamma = chung_hulbert(rho)
    old = true = -1.0
    rows = np.full(WATCHED, -1.0)
    for k in range(1, WATCHED):
        new = -(1 - gamma) / gamma * old
        true = ((1 - alpha_m) * new + alpha_m * old - alpha_f * true) / (1 - alpha_f)
        rows[k], old = true, new
    return rows


def oscillations(quick: bool) -> tuple[common.Numbers, dict[str, np.ndarray]]:
    """Numbers and curves of the pendulum."""
    numbers: common.Numbers = {}
    curves = {}
    for rho in (1.0,) if quick else (1.0, 0.8, 0.5):
        for h in (2e-3,) if quick else (4e-3, 1e-3):
            found = force_errors(schemes.nsga_decoupled(rho), h)
            key = f"rho {rho:g}, {h:g} s"
            numbers[f"{key}: error of the force at the impact [N]"] = -float(found[0])
            numbers[f"{key}: difference from the filter's answer to a jump"] = float(
                np.abs(found / -found[0] - filtered_jump(rho)).max()
            )
            curves[key] = found
    found = force_errors(schemes.nsga_coupled(RHO, iteration="monolithic", smooth="full"), 2e-3)
    numbers["acceleration level: largest error of the force [N]"] = float(np.abs(found).max())
    return numbers, curves | {"acceleration level": found}


def _paint(figure: Any, numbers: common.Numbers, curves: dict[str, np.ndarray]) -> None:
    left, right = figure.subplots(1, 2)
    for k, name in enumerate(SMOOTH):
        for when, style in (("before", ":"), ("after", "-")):
            found = [numbers.get(f"{name}: error {when} impacts, {n} steps", np.nan) for n in STEPS]
            label = name if when == "after" else None
            left.loglog(
                [TIME / n for n in STEPS], found, "osDv^"[k] + style, ms=3, color=f"C{k}", label=label
            )
    left.set(xlabel=r"time step $h$ [s]", ylabel="error of the position (dotted: before impacts)")
    for k, (name, force) in enumerate(curves.items()):
        right.plot(np.arange(WATCHED), force, "osDv^<>"[k] + "-", ms=3, label=name)
    right.set(xlabel="steps since the impact", ylabel="error of the constraint's force [N]")
    for axis in (left, right):
        axis.legend(fontsize=5)


@common.experiment
def main(quick: bool = False, folder: str | Path | None = None) -> common.Numbers:
    """Computes, saves, draws and compares; ``quick`` takes the larger step and two pendulums."""
    numbers: common.Numbers = {}
    difference = motion(Bob(), "generalized alpha", STEPS[0])[:, :2] - package(STEPS[0])
    numbers["own program: difference from nsga_decoupled"] = float(np.abs(difference).max())
    sizes, phases = (STEPS[:1], 2) if quick else (STEPS, PHASES)
    usual = {n: errors(Bob(), "generalized alpha", n, phases, False) for n in sizes}
    for name in SMOOTH:
        short = {n: errors(Bob(), name, n, phases, False) for n in sizes}
        for n, x in short.items():
            whole = errors(Bob(), name, n, phases, True)
            numbers[f"{name}: error before impacts, {n} steps"] = float(x[0])
            numbers[f"{name}: error after impacts, {n} steps"] = float(x[1])
            numbers[f"{name}: error after impacts over the usual one, {n} steps"] = float(
                x[1] / usual[n][1]
            )
            numbers[f"{name}: change of the error by all of f*, {n} steps"] = float(
                abs(whole[1] / x[1] - 1)
            )
        for k, when in ((0, "before"), (1, "after")) if len(sizes) > 1 else ():
            order = observed_order([1.0 / n for n in sizes], [x[k] for x in short.values()])
            numbers[f"{name}: order {when} impacts"] = order
    for full, what in ((False, "(29)"), (True, "all of f*")):
        found = errors(Bob(1e3), "generalized alpha", STEPS[0], phases, full)
        numbers[f"damper of 1,000 N s/m, {what}: error of the length [m]"] = float(found[2])
    more, curves = oscillations(quick)
    numbers |= more
    arrays = {name: np.array(x) for name, x in numbers.items()}
    return common.finish(
        __file__, folder, numbers, arrays, (16.0, 7.0), lambda f: _paint(f, numbers, curves), quick=quick
    )


if __name__ == "__main__":
    common.command(main)
