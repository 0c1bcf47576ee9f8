"""Event-driven reference of the rigid slider-crank with clearance, and of the bilateral one.

Written from the mechanics (two absolute angles, slider parallel to the guide) without any use of
nsjax: flights and closed phases are integrated by DOP853 at its tightest tolerance between located
events, impacts are solved exactly by cases.

Why the two corners of a wall are one contact here: with the slider parallel to the guide they have
the same gap and the same slip. The slider keeps its attitude if the normal forces N1, N2 of the pair
balance the moment of friction, |N1 - N2| = (b / a) |T1 + T2| <= mu (b / a) (N1 + N2); as
mu b / a < 1 both stay positive, and only the sums N = N1 + N2, T = T1 + T2 enter crank and rod.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

# DOP853 accepts no relative tolerance below 100 machine epsilons = 2.3e-14.
RTOL, ATOL = 3e-14, 1e-15
# Bound on the integrator's step [s]: the motion changes within 1/150 s, so a step cannot skip a contact
# with a wall; `Reference.gap_min`, taken over all steps, would show it.
MAX_STEP = 5e-5
# Events are polished from a node at least this time [s] before them, unless the phase is shorter.
POLISH = 1e-6
# A rebound slower than this [m/s] ends the accumulation: that impact is taken as plastic, the contact
# closes, and the remaining bounces enter as their geometric sum. Impulses are linear in the velocity,
# so the error is of second order in this speed (a test varies it).
CLOSING_SPEED = 1e-5

State = tuple[float, float, float, float]
Rate = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Data:
    """Table 1 of Flores, Leine, Glocker (2010), without torque on the crank; SI units."""

    l1: float = 0.153
    l2: float = 0.306
    m1: float = 0.038
    m2: float = 0.038
    m3: float = 0.076
    j1: float = 7.4e-5
    j2: float = 5.9e-4
    clearance: float = 0.001
    gravity: float = 9.81
    restitution: float = 0.4
    friction: float = 0.01
    torque: float = 0.0


TABLE_2 = Data(clearance=0.0005, restitution=0.1, friction=0.1, torque=1.0)
"""The driven mechanism of [R&S Table 2]; it starts at rest (`AT_REST`)."""


@dataclasses.dataclass(frozen=True)
class Event:
    """``kind``: impact, closure, reversal or release; ``wall``: +1 upper, -1 lower; ``time`` [s], of
    a closure the end of the accumulation; ``before``, ``after``: gap rates [m/s]; ``impulse``: normal,
    of both corners together [N s].
    """

    kind: str
    wall: int
    time: float
    before: float = 0.0
    after: float = 0.0
    impulse: float = 0.0


@dataclasses.dataclass(frozen=True)
class Reference:
    """States (theta1, theta2, omega1, omega2) in the rows of ``x`` at the instants ``t`` [s], all
    events, and the least gap [m] over all steps of the integration.
    """

    t: np.ndarray
    x: np.ndarray
    events: tuple[Event, ...]
    gap_min: float

    def first(self, kind: str) -> Event:
        return next(event for event in self.events if event.kind == kind)


class _Mechanism:
    """Mechanics of crank, rod and a slider that does not turn, in plain floats."""

    def __init__(self, data: Data) -> None:
        self.d = d = data
        self.m11 = d.j1 + d.l1**2 * (d.m1 / 4 + d.m2 + d.m3)
        self.m22 = d.j2 + d.l2**2 * (d.m2 / 4 + d.m3)
        self.coupling = d.l1 * d.l2 * (d.m2 / 2 + d.m3)
        self.weight1 = d.gravity * d.l1 * (d.m1 / 2 + d.m2 + d.m3)
        self.weight2 = d.gravity * d.l2 * (d.m2 / 2 + d.m3)

    def accelerate(self, x: State, f1: float, f2: float) -> tuple[float, float]:
        """Angular accelerations (or velocity jumps) by generalised forces (or impulses)."""
        m12 = self.coupling * math.cos(x[0] - x[1])
        det = self.m11 * self.m22 - m12 * m12
        return (self.m22 * f1 - m12 * f2) / det, (self.m11 * f2 - m12 * f1) / det

    def free(self, x: State) -> tuple[float, float]:
        """Angular accelerations without contact."""
        s = self.coupling * math.sin(x[0] - x[1])
        return self.accelerate(
            x,
            -s * x[3] ** 2 - self.weight1 * math.cos(x[0]) + self.d.torque,
            s * x[2] ** 2 - self.weight2 * math.cos(x[1]),
        )

    def height_row(self, x: State) -> tuple[float, float]:
        """Derivatives of the slider's height with respect to the angles."""
        return self.d.l1 * math.cos(x[0]), self.d.l2 * math.cos(x[1])

    def along_row(self, x: State) -> tuple[float, float]:
        """Derivatives of the slider's position along the guide."""
        return -self.d.l1 * math.sin(x[0]), -self.d.l2 * math.sin(x[1])

    def height_curvature(self, x: State) -> float:
        """Acceleration of the slider's height at constant angular velocities."""
        a, b = self.along_row(x)
        return a * x[2] ** 2 + b * x[3] ** 2

    def along_curvature(self, x: State) -> float:
        a, b = self.height_row(x)
        return -a * x[2] ** 2 - b * x[3] ** 2

    def height(self, x: State) -> float:
        return self.d.l1 * math.sin(x[0]) + self.d.l2 * math.sin(x[1])

    def gap(self, x: State, wall: int) -> float:
        return self.d.clearance - wall * self.height(x)

    def gap_rate(self, x: State, wall: int) -> float:
        return -wall * _dot(self.height_row(x), x[2:])

    def slip(self, x: State) -> float:
        return _dot(self.along_row(x), x[2:])

    def gap_acceleration(self, x: State, wall: int) -> float:
        """Without contact force."""
        return -wall * (_dot(self.height_row(x), self.free(x)) + self.height_curvature(x))

    def flight(self, t: float, x: State) -> tuple[float, float, float, float]:
        return (x[2], x[3], *self.free(x))

    def held(self, x: State, wall: int, sign: float) -> tuple[float, float, float]:
        """Accelerations with the slider held at its wall, and the required normal force (negative: the
        wall would have to pull). ``sign``: direction of sliding. From M a = h - wall N dy' - mu sign N dx'
        and the second derivative of y equal to zero.
        """
        row, along = self.height_row(x), self.along_row(x)
        slope = self.d.friction * sign
        per_newton = self.accelerate(x, *(-wall * n - slope * t for n, t in zip(row, along, strict=True)))
        free = self.free(x)
        normal = -(_dot(row, free) + self.height_curvature(x)) / _dot(row, per_newton)
        return free[0] + per_newton[0] * normal, free[1] + per_newton[1] * normal, normal

    def slip_acceleration(self, x: State, wall: int, sign: float) -> float:
        return _dot(self.along_row(x), self.held(x, wall, sign)[:2]) + self.along_curvature(x)

    def on_wall(self, wall: int, theta1: float, omega1: float) -> State:
        """State with the slider at its wall, from the crank alone (the rod points to +x)."""
        d = self.d
        theta2 = math.asin((wall * d.clearance - d.l1 * math.sin(theta1)) / d.l2)
        return theta1, theta2, omega1, -d.l1 * math.cos(theta1) * omega1 / (d.l2 * math.cos(theta2))

    def impact(self, x: State, wall: int, restitution: float) -> tuple[State, float]:
        """State after the impact and the normal impulse: Newton's law in the normal direction,
        Coulomb's (without tangential restitution) along the wall. Stick and both directions of slip
        are tried; exactly one must fulfil the law.
        """
        n = tuple(-wall * entry for entry in self.height_row(x))
        t = self.along_row(x)
        by_n, by_t = self.accelerate(x, *n), self.accelerate(x, *t)
        gnn, gnt, gtt = _dot(n, by_n), _dot(n, by_t), _dot(t, by_t)
        slip, mu = self.slip(x), self.d.friction
        want = -(1 + restitution) * self.gap_rate(x, wall)
        answers: list[tuple[float, float]] = []
        if mu == 0:
            answers.append((want / gnn, 0.0))
        else:
            det = gnn * gtt - gnt**2
            if det > 1e-14 * gnn * gtt:
                normal, along = (want * gtt + slip * gnt) / det, (-slip * gnn - want * gnt) / det
                if abs(along) <= mu * normal:
                    answers.append((normal, along))
            for sign in (1.0, -1.0):
                normal = want / (gnn - mu * sign * gnt)
                along = -mu * sign * normal
                if normal > 0 and sign * (slip + gnt * normal + gtt * along) > 0:
                    answers.append((normal, along))
        if len(answers) != 1:
            raise ArithmeticError(f"the impact has {len(answers)} answers at {x}")
        normal, along = answers[0]
        omega1 = x[2] + by_n[0] * normal + by_t[0] * along
        omega2 = x[3] + by_n[1] * normal + by_t[1] * along
        return (x[0], x[1], omega1, omega2), normal


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return a[0] * b[0] + a[1] * b[1]


def _integrate(rate: Rate, t0: float, x0: Any, t1: float) -> tuple[float, ...]:
    if t1 == t0:
        return tuple(x0)
    return tuple(solve_ivp(rate, (t0, t1), x0, method="DOP853", rtol=RTOL, atol=ATOL).y[:, -1])


def _falling(f: Any) -> Any:
    f.terminal, f.direction = True, -1
    return f


class _Run:
    """The motion, phase by phase: ``rise`` from a wall, ``flight``, ``closed``."""

    def __init__(self, data: Data, start: State, closing_speed: float) -> None:
        self.mechanism = _Mechanism(data)
        self.data = data
        self.closing_speed = closing_speed
        self.t, self.x = 0.0, start
        self.phase, self.wall, self.sign = "flight", 0, 0.0
        self.events: list[Event] = []
        self.gap_min = math.inf

    def advance(self, end: float) -> None:
        while self.t < end:
            (self._closed if self.phase == "closed" else self._open)(end)

    def _until(
        self, rate: Rate, x0: Any, end: float, functions: list[Rate]
    ) -> tuple[int | None, float, Any, np.ndarray]:
        """Integrates to ``end`` or to the first event; returns the event's index or None, and the
        end. Secant steps polish the root of the dense output (order 7); their function values come from
        integrations, so that the interpolation error does not matter. The first secant point is `POLISH`
        before the root, not at the last node, which may differ from the root by rounding only, so that a
        secant between them would be arbitrary. The first step without improvement ends the iteration.
        """
        events = [_falling(lambda t, x, f=f: f(x)) for f in functions]
        run = solve_ivp(
            rate, (self.t, end), x0, method="DOP853", rtol=RTOL, atol=ATOL,
            max_step=MAX_STEP, events=events,
        )  # fmt: skip
        hit = [k for k, times in enumerate(run.t_events) if len(times)]
        inner = run.y[:, 1:-1] if hit else run.y[:, 1:]
        if not hit:
            return None, end, tuple(run.y[:, -1]), inner
        f = functions[hit[0]]
        t_b = float(run.t[-1])
        node = max(int(np.searchsorted(run.t, t_b - POLISH)) - 1, 0)
        t0, x0 = run.t[node], run.y[:, node]
        t_a = t_b - min(1e-9, 1e-3 * (t_b - t0))
        f_a, x_b = f(_integrate(rate, t0, x0, t_a)), _integrate(rate, t0, x0, t_b)
        f_b = f(x_b)
        for _ in range(4):
            if f_a == f_b:
                break
            t_c = t_b - f_b * (t_b - t_a) / (f_b - f_a)
            x_c = _integrate(rate, t0, x0, t_c)
            f_c = f(x_c)
            if abs(f_c) >= abs(f_b):
                break
            t_a, t_b, f_a, f_b, x_b = t_b, t_c, f_b, f_c, x_c
        return hit[0], t_b, x_b, inner

    def _open(self, end: float) -> None:
        m = self.mechanism
        if self.phase == "rise":  # the gap starts at zero: wait for its rate to fall through zero
            wall = self.wall
            watch = [lambda x: m.gap_rate(x, wall), lambda x: m.gap(x, -wall)]
        else:
            watch = [lambda x: m.gap(x, 1), lambda x: m.gap(x, -1)]
        hit, self.t, self.x, inner = self._until(m.flight, self.x, end, watch)
        for x in inner.T:
            self.gap_min = min(self.gap_min, m.gap(x, 1), m.gap(x, -1))
        if hit is None:
            return
        if self.phase == "rise" and hit == 0:
            self.phase = "flight"
            return
        self._hit(-self.wall if self.phase == "rise" else (1, -1)[hit])

    def _hit(self, wall: int) -> None:
        m, e = self.mechanism, self.data.restitution
        before = m.gap_rate(self.x, wall)
        pull = m.gap_acceleration(self.x, wall)
        self.wall = wall
        if -e * before < self.closing_speed and pull < 0:
            remaining = 2 * -e * before / (-pull * (1 - e))
            self.x, _ = m.impact(self.x, wall, 0.0)
            self.phase, self.sign = "closed", math.copysign(1.0, m.slip(self.x))
            self.events.append(Event("closure", wall, self.t + remaining, before))
            return
        self.x, impulse = m.impact(self.x, wall, e)
        self.phase = "rise"
        self.events.append(Event("impact", wall, self.t, before, m.gap_rate(self.x, wall), impulse))

    def _closed(self, end: float) -> None:
        m, wall, sign = self.mechanism, self.wall, self.sign

        def rate(t: float, z: Any) -> tuple[float, float]:
            return z[1], m.held(m.on_wall(wall, *z), wall, sign)[0]

        watch = [
            lambda z: m.held(m.on_wall(wall, *z), wall, sign)[2],
            lambda z: sign * m.slip(m.on_wall(wall, *z)),
        ]
        # Without friction the direction of sliding does not matter.
        functions = watch if self.data.friction else watch[:1]
        hit, self.t, z, _ = self._until(rate, (self.x[0], self.x[2]), end, functions)
        self.x = m.on_wall(wall, *z)
        if hit == 0:
            self.phase = "rise"
            self.events.append(Event("release", wall, self.t))
        elif hit == 1:
            if -sign * m.slip_acceleration(self.x, wall, -sign) <= 0:
                raise ArithmeticError(f"the slider would stick at t = {self.t}, which is not modelled")
            self.sign = -sign
            self.events.append(Event("reversal", wall, self.t))


START: State = (0.0, 0.0, 150.0, -75.0)
AT_REST: State = (0.0, 0.0, 0.0, 0.0)


@functools.lru_cache(maxsize=32)
def event_driven(
    data: Data, times: tuple[float, ...], closing_speed: float = CLOSING_SPEED, start: State = START
) -> Reference:
    """Motion of the mechanism with clearance from ``start`` at t = 0, at increasing ``times`` [s]."""
    run = _Run(data, start, closing_speed)
    rows = []
    for time in times:
        run.advance(time)
        rows.append(run.x)
    return Reference(t=np.array(times), x=np.array(rows), events=tuple(run.events), gap_min=run.gap_min)


def wall_force(data: Data, x: np.ndarray, wall: int) -> float:
    """Normal force [N] by which the wall holds a slider that touches it at rest normal to it; negative
    if it would have to pull.
    """
    m = _Mechanism(data)
    state: Any = tuple(float(entry) for entry in x)
    return m.held(state, wall, math.copysign(1.0, m.slip(state)))[2]


@functools.lru_cache(maxsize=32)
def bilateral(data: Data, times: tuple[float, ...], start: State = START) -> tuple[np.ndarray, np.ndarray]:
    """The mechanism with its slider on the guide's axis: states at ``times`` and the constraint force
    along +y [N], by the crank angle as the only coordinate.
    """
    m = _Mechanism(dataclasses.replace(data, clearance=0.0, friction=0.0))
    run = solve_ivp(
        lambda t, z: (z[1], m.held(m.on_wall(1, *z), 1, 0.0)[0]),
        (0.0, times[-1]), (start[0], start[2]),
        method="DOP853", rtol=RTOL, atol=ATOL, max_step=MAX_STEP, t_eval=times,
    )  # fmt: skip
    x = np.array([m.on_wall(1, *z) for z in run.y.T])
    return x, np.array([-m.held(row, 1, 0.0)[2] for row in x])
