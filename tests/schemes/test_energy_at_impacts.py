"""Contacts never add energy to stiff and damped models, whatever the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nsjax
from nsjax import models, schemes
from nsjax.multibody import (
    assemble,
    beam,
    body,
    contact,
    fixed,
    hinge,
    joint_spring,
    plane,
    point,
    rectangular,
)

MAKERS: dict[str, Callable[[], Any]] = {
    "generalized_alpha(0.5)": lambda: schemes.generalized_alpha(0.5), "newmark": schemes.newmark,
    "bathe": schemes.bathe, "ed_alpha": schemes.ed_alpha,
}  # fmt: skip

SOLVED = 1e-9
"""Share of the energy by which it may rise: a step has the errors of its stages, 1e-12 of a speed with
accelerations of ``omega dt`` (up to 1,000) times as much. Nothing drives these models, and gravity is off:
the exact energy never rises."""


CURVED = 1e-5
"""The same for motion that is not linear: energy of undamped turning is kept to order two in the step."""


BENT = 1e-3
"""The same for undamped beams in space whose fastest motion no step resolves: rotations of their nodes are
not linear, and schemes keep energies of such motion to their order only. Newmark's has a rise of 3e-5,
generalized-alpha(0.5) one of 9e-5 with steps of 1e-4 s; the faults were 2,000 and more."""


def worst(problem: nsjax.Problem, scheme: Any, dt: float, steps: int) -> tuple[float, int]:
    """Largest energy after the first impact over the largest before it, and the number of impacts."""
    traj = nsjax.simulate(*problem, scheme, dt=dt, steps=steps)
    traj.raise_for_status()
    energy, hits = np.asarray(traj["energy"]), np.sum(np.asarray(traj.impacts), axis=1)
    if not np.any(hits):
        return 1.0, 0
    first = int(np.argmax(hits > 0))
    return float(np.max(energy[first:]) / np.max(energy[:first])), int(np.sum(hits))


def test_growth_of_the_printed_rule_in_closed_form() -> None:
    """Why: a node of mass 1 on a damper ``c`` and a spring ``k`` begins with a velocity of 1, as an impact
    leaves it. Generalized-alpha(0) takes the acceleration ``-c`` and gains energy without bound; the
    implicit Euler rule never does.
    """
    for seed in range(200):
        k, c = 10.0 ** np.random.default_rng(seed).uniform(-2, 8, size=2)  # with dt = 1
        # alpha_m = -1, alpha_f = 0, gamma = 3/2, beta = 1: A = (a + a0)/2 (start: A0 = a0 = -c)
        # v = 1 - A0/2 + 3/2 A, q = 1 - A0/2 + A, a + c v + k q = 0
        free_v, free_q = 1.0 + 0.5 * c - 0.75 * c, 1.0 + 0.5 * c - 0.5 * c
        a = -(c * free_v + k * free_q) / (1.0 + 0.75 * c + 0.5 * k)
        alpha = (free_v + 0.75 * a) ** 2 + k * (free_q + 0.5 * a) ** 2
        v = 1.0 / (1.0 + c + k)
        assert v**2 + k * v**2 <= 1.0
        if c > 1e5 and 1.0 < k < 0.1 * c:
            assert alpha > 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_an_elastic_bar_gains_nothing(name: str) -> None:
    """Steps of 0.03 to 30 times the shortest period over 2 pi, damping up to ten times critical."""
    scheme, rng = MAKERS[name](), np.random.default_rng(7)
    problem = models.elastic_bar(elements=8, distance=3.3)
    hits = 0
    for e in (0.0, 0.5, 1.0):
        for decade in (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5):
            step = 10.0 ** (decade + rng.uniform(-0.25, 0.25))  # omega dt
            shortest = np.sqrt(12.0) * 30.0 / 1.25  # rad/s, a chain of elements of 1.25 m with c = 30 m/s
            damping, dt = rng.choice([0.0, 0.2, 2.0, 20.0]) / shortest, step / shortest
            case = problem.replace(restitution=e, damping=damping, distance=10.0 * dt * rng.uniform(3, 9))
            ratio, count = worst(case, scheme, dt, 2000)
            assert ratio <= 1.0 + SOLVED, (e, step, damping)
            hits += count
    assert hits > 20


def arm(e: float, damping: float) -> nsjax.Problem:
    """A clamped steel beam in space whose tip moves towards a stop."""
    problem = assemble(
        beam(
            "arm", (0, 0, 0), (0.5, 0, 0), elements=3, damping=damping,
            section=rectangular(0.02, 0.005, E=2.1e11, rho=7850.0),
        ),
        fixed("clamp", "ground", "arm.start"),
        contact("stop", point("arm.end"), plane(at=(0, 0, -0.002)), restitution=e),
    )  # fmt: skip
    v = np.zeros((4, 6))
    v[:, 2] = -0.5 * np.linspace(0.0, 1.0, 4) ** 2
    return problem.replace(initial_v=v.reshape(-1))


def chain(e: float, damping: float) -> nsjax.Problem:
    """Three hinged rods with dampers in the plane; the tip of the last one strikes a floor."""
    parts, before = [], "ground"
    for k in range(3):
        parts += [body(f"rod{k}", mass=1.0, inertia=1 / 12)]
        parts += [hinge(f"pin{k}", before, f"rod{k}", at=(0.5 if k else 0.0, 0.0), on=(-0.5, 0.0))]
        parts += [joint_spring(f"damper{k}", f"pin{k}", damping=damping)] if k else []
        before = f"rod{k}"
    stop = contact("stop", point("rod2", (0.5, 0.0)), plane(at=(0.0, -0.3)), restitution=e)
    return assemble(*parts, stop).replace(initial_v=(-1.0, -1.0, -1.0))


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_a_chain_with_dampers_gains_nothing(name: str) -> None:
    """Dampers that stop their joints within a hundredth of a step to a hundred steps."""
    scheme, rng, problem = MAKERS[name](), np.random.default_rng(3), chain(0.0, 1.0)
    for e in (0.0, 0.5, 1.0):
        for _ in range(4):
            damping = 10.0 ** rng.uniform(-1, 4)
            case = problem.replace({"damper1.damping": damping, "damper2.damping": damping})
            case = case.replace({"stop.restitution": e})
            ratio, count = worst(case, scheme, 10.0 ** rng.uniform(-2.5, -1.5), 400)
            assert ratio <= 1.0 + CURVED, (e, damping)
            assert count > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_a_steel_beam_gains_nothing(name: str) -> None:
    """Steps a hundred times above the shortest periods; dampers up to hundred times the critical one."""
    scheme, problem = MAKERS[name](), arm(0.0, 1e-5)
    for e in (0.0, 0.5, 1.0):
        for damping in (0.0, 1e-6, 1e-5, 1e-4):
            case = problem.replace({"stop.restitution": e, "arm.damping": damping})
            for dt in (1e-5, 3e-5, 1e-4):
                ratio, count = worst(case, scheme, dt, 800)
                assert ratio <= 1.0 + (CURVED if damping else BENT), (e, damping, dt)
                assert count > 0
