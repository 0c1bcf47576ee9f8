"""Contacts of mechanisms from parts against closed forms: rolling, row of spheres, stack, drop."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

import nsjax
from nsjax import InputError, schemes
from nsjax.multibody import (
    assemble,
    body,
    box,
    contact,
    plane,
    points,
    read_mjcf,
    slide,
    sphere,
)
from nsjax.multibody.assemble import RowsWarning
from nsjax.schemes.impulses import moreau as moreau_module


def test_from_sliding_to_rolling() -> None:
    """A sphere that starts sliding rolls with 5/7 of its speed, whatever the friction and the step."""
    radius, mass = 0.1, 2.0
    problem = assemble(
        body("ball", mass=mass, inertia=np.full(3, 0.4 * mass * radius**2)),
        contact("floor", sphere("ball", radius), plane(), friction=0.3),
        gravity=9.81,
        start={"ball": ((0.0, 0.0, radius), (3.0, 4.0, 0.0))},
    )
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=2e-3, time=1.0, every=10)
    speed = traj.body("ball").velocity
    assert np.allclose(speed[-1], np.array([3.0, 4.0, 0.0]) * 5.0 / 7.0, atol=1e-10)
    sliding = traj.t < 2.0 / 7.0 * 5.0 / (0.3 * 9.81)
    wanted = 5.0 - 0.3 * 9.81 * traj.t[sliding]
    assert np.max(np.abs(np.linalg.norm(speed[sliding], axis=1) - wanted)) <= 1e-9


def collided(x: np.ndarray, v: np.ndarray, size: float, restitution: float, until: float) -> np.ndarray:
    """Velocities of equal spheres in a row after their impacts one by one."""
    t, x, v = 0.0, x.copy(), v.copy()
    while True:
        closing = v[:-1] - v[1:]
        room = np.where(closing > 1e-12, np.diff(x) - size, np.inf) / np.where(
            closing > 1e-12, closing, 1.0
        )
        k = int(np.argmin(room))
        if t + room[k] > until:
            return v
        t, x = t + room[k], x + room[k] * v
        change = (1.0 + restitution) * closing[k] / 2.0
        v[k], v[k + 1] = v[k] - change, v[k + 1] + change


@pytest.mark.parametrize("restitution", [1.0, 0.7])
def test_row_of_spheres(restitution: float) -> None:
    """Four equal spheres with room between them: velocities after all impacts, and momentum."""
    names, places = "abcd", np.array([0.0, 0.35, 0.68, 1.03])
    problem = assemble(
        *(body(x, mass=1.5) for x in names),
        *(slide(f"rail_{x}", "ground", x) for x in names),
        *(
            contact(f"{x}{y}", sphere(x, 0.1), sphere(y, 0.1), restitution=restitution)
            for x, y in itertools.pairwise(names)
        ),
        start={f"rail_{x}": (float(s), 2.0 * (x == "a")) for x, s in zip(names, places, strict=True)},
    )
    problem = problem.replace({f"{x}{y}.restitution": restitution for x, y in ("ab", "bc", "cd")})
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-4, time=1.0, every=1000)
    found = collided(places, np.array([2.0, 0.0, 0.0, 0.0]), 0.2, restitution, 1.0)
    assert np.allclose(traj.v[-1], found, atol=1e-12)
    assert np.allclose(np.sum(traj.v, axis=1), 2.0, atol=1e-13)
    if restitution == 1.0:
        assert np.allclose(found, [0.0, 0.0, 0.0, 2.0], atol=1e-13)


def stack(n: int) -> Any:
    """Boxes on one another: the lower corners of each against the top of the one below."""
    half, parts = 0.05, []
    feet = np.array([[-half, -half], [half, -half]])
    for k in range(n):
        parts.append(body(f"box{k}", mass=1.0, inertia=2.0 / 3.0 * half**2))
        below = plane() if k == 0 else plane(f"box{k - 1}", at=(0.0, half))
        parts.append(contact(f"on{k}", points(f"box{k}", feet), below, friction=0.5))
    start = {f"box{k}": (0.0, half * (2 * k + 1), 0.0) for k in range(n)}
    return assemble(*parts, gravity=9.81, start=start)


@pytest.mark.slow
def test_stack_at_rest() -> None:
    """Nothing moves, and every pair of feet carries the weight above it."""
    n, steps = 3, 1000
    problem = stack(n)
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=steps, every=steps // 10)
    traj.raise_for_status()
    assert np.max(np.abs(traj.v)) <= 1e-9
    # rest of the solver's tolerance, which may add up over the steps
    assert np.max(np.abs(traj.q - problem.state.q)) <= 1e-12 * steps
    for k in range(n):
        load = np.sum(np.asarray(traj.contact(f"on{k}").force)[-1].reshape(2, -1)[:, 0])
        assert abs(load - (n - k) * 9.81) <= 1e-6


DROP = """<mujoco><option gravity="0 0 -9.81" timestep="1e-3"/><worldbody>
<geom name="floor" type="plane" size="1 1 1"/>
<body name="ball" pos="0 0 0.3"><freejoint/><geom name="skin" type="sphere" size="0.1" mass="1"/></body>
</worldbody></mujoco>"""


def fallen(t: np.ndarray) -> np.ndarray:
    """Height of the ball that falls by 0.2 m and stays."""
    return np.where(t < np.sqrt(0.4 / 9.81), 0.3 - 9.81 / 2.0 * t**2, 0.1)


@pytest.mark.slow
def test_a_drop_converges_here_and_not_there() -> None:
    """Errors of the height stay below a bound that falls with the step, the way of one step at impact;
    those of the library, whose contact is soft, do not.
    """
    mujoco = pytest.importorskip("mujoco")
    file = read_mjcf(DROP, restitution=0.0, friction=0.5)
    problem = assemble(*file, gravity=file.gravity, start=file.start)
    assert [part.name for part in file] == ["ball", "floor_skin"]
    here, there = [], []
    for dt in (4e-3, 1e-3, 2.5e-4):
        traj = nsjax.simulate(*problem, schemes.moreau(), dt=dt, time=0.4)
        here.append(np.max(np.abs(np.asarray(traj["ball.z"]) - fallen(np.asarray(traj.t)))))
        model = mujoco.MjModel.from_xml_string(DROP)
        model.opt.timestep, data = dt, mujoco.MjData(model)
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        heights = [data.qpos[2]]
        for _ in range(round(0.4 / dt)):
            mujoco.mj_step(model, data)
            heights.append(data.qpos[2])
        there.append(np.max(np.abs(heights - fallen(dt * np.arange(len(heights))))))
        assert here[-1] <= dt * np.sqrt(0.4 * 9.81) * (1.0 + 1e-6)  # the impact noticed a step late
    assert there[2] >= there[0] / 2.0
    assert there[2] >= 10.0 * here[2]
    low = problem.replace(initial_q=[0.0, 0.0, 0.05, 1.0, 0.0, 0.0, 0.0])
    with pytest.raises(InputError, match=r"floor_skin\) = -0.05.*penetrates"):
        nsjax.simulate(*low, schemes.moreau(), dt=1e-3, steps=1)


def boxes_on_each_other(n: int) -> Any:
    """Boxes of 0.1 m and 1 kg on each other."""
    half, parts = 0.05, []
    for k in range(n):
        below = box(f"b{k - 1}", half, half, half) if k else plane()
        parts += [
            body(f"b{k}", mass=1.0, inertia=np.full(3, 0.01 / 6.0)),
            contact(f"c{k}", box(f"b{k}", half, half, half), below, friction=0.5),
        ]
    start = {f"b{k}": (0.0, 0.0, half + 2.0 * half * k) for k in range(n)}
    return assemble(*parts, gravity=9.81, start=start)


def test_boxes_on_each_other_need_no_iteration() -> None:
    """The first step finds the impulses: weights that pass through the faces. The others begin with them,
    and a push that makes the upper box slide is answered as ever.
    """
    problem = boxes_on_each_other(2)
    given: dict[str, Any] = {"dt": 1e-3, "steps": 20, "save": ["iterations", "impulse_normal"]}
    traj = nsjax.simulate(*problem, schemes.moreau(), **given)
    assert traj.iterations[1] > 0
    assert np.all(traj.iterations[2:] == 0)
    assert np.max(np.abs(traj.q - traj.q[0])) <= 1e-13  # rounding of 20 steps
    forces = traj.impulse_normal[1:].reshape(20, 2, -1).sum(axis=2) / 1e-3
    assert np.allclose(forces, [2.0 * 9.81, 9.81], rtol=1e-10)
    pushed = dataclasses.replace(problem.state, v=problem.state.v + np.eye(12)[6])  # 1 m/s along x
    traj = nsjax.simulate(problem.system, problem.params, pushed, schemes.moreau(), **given)
    assert abs(traj.body("b1").velocity[-1, 0] - (1.0 - 0.5 * 9.81 * 0.02)) <= 1e-9


def tumbling(seed: int, friction: float | None) -> Any:
    """A box of eight contacts that falls on an edge or a corner."""
    rng = np.random.default_rng(seed)
    x, turn, v, spin = (0.0, 0.0, 0.15), *(s * rng.normal(size=3) for s in (0.7, 0.3, 1.0))
    return assemble(
        body("b", mass=1.0, inertia=(1e-3, 2e-3, 3e-3)),
        contact("floor", box("b", 0.05, 0.06, 0.07), plane(), friction=friction, restitution=0.2),
        gravity=9.81, start={"b": ((x, turn), (v, spin))},
    )  # fmt: skip


@pytest.mark.parametrize("friction", [None, 0.3])
def test_where_the_solver_begins(friction: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tumbling boxes, begun with the last impulses and with none: the same motion without friction. With it
    corners that slide in different directions have a family of answers, of which another one may be found:
    the motion stays near. Runs go on bit for bit.
    """
    problem, ends = tumbling(0, friction), []
    given: dict[str, Any] = {"dt": 1e-3, "every": 100}
    for rows in (4, 1000):
        monkeypatch.setattr(moreau_module, "MANY_ROWS", rows)
        scheme = schemes.moreau(max_iterations=50 + rows)  # a program of its own
        whole = [
            nsjax.simulate(
                problem.system, problem.params, tumbling(k, friction).state, scheme, steps=600, **given
            )
            for k in range(6)
        ]
        for run in whole:
            assert int(run.status) == 0
            assert run["energy"][-1] < run["energy"][0]
        ends.append(np.array([x.q[-1] for x in whole]))
        half = nsjax.simulate(*problem, scheme, steps=300, **given)
        last = nsjax.simulate(*problem, scheme, steps=300, carry=half.carry, **given)
        assert np.array_equal(last.q[-1], whole[0].q[-1])
    # without friction what 600 steps make of the tolerance 1e-11; with it, ends that were drawn differ by
    # at most 1e-3 of a box of 0.1 m
    assert np.max(np.abs(ends[0] - ends[1])) <= (1e-8 if friction is None else 1e-2)


@pytest.mark.slow
def test_ten_boxes_stand_for_a_hundred_seconds() -> None:
    with pytest.warns(RowsWarning, match=r"80 contacts between bodies, beyond 60"):
        problem = boxes_on_each_other(10)
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=100_000, every=1000)
    assert int(traj.status) == 0
    assert np.max(np.abs(traj.q - traj.q[0])) <= 1e-9
