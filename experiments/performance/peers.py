"""Other codes on the same mechanism in the same run, where they are installed: Exudyn, Siconos.

A chain of eight rods in space, released level, generalized-alpha with rho_inf = 0.8. Exudyn keeps all
coordinates of all bodies (Euler parameters) beside the rows of the hinges; `nsjax` does so with
``coordinates="absolute"`` and keeps the angles alone otherwise. Answers are compared over 0.1 s.

    pip install exudyn
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import nsjax
from nsjax import schemes

from . import scaling
from .side_by_side import Row, per_step, plain_run

LINKS, STEP, RHO = 8, 1e-3, 0.8
AGREE_STEPS = 1_000
"""Steps of 1e-4 s after which both chains are compared."""


def exudyn_chain(exudyn: Any, links: int) -> tuple[Any, Any]:
    """The chain of `scaling.chain` as a system of Exudyn, and its last body."""
    utilities = importlib.import_module("exudyn.utilities")
    system = exudyn.SystemContainer().AddSystem()
    before, half = system.CreateGround(), scaling.LENGTH / 2
    inertia = utilities.RigidBodyInertia(
        mass=1.0, inertiaTensor=np.diag(scaling.INERTIA), com=np.zeros(3)
    )  # about the reference point, which is the mass centre
    for i in range(links):
        body = system.CreateRigidBody(
            referencePosition=[scaling.LENGTH * i + half, 0.0, 0.0],
            inertia=inertia,
            gravity=[0.0, 0.0, -9.81],
        )
        system.CreateRevoluteJoint(
            itemNumbers=[before, body], position=[scaling.LENGTH * i, 0.0, 0.0],
            axis=[0.0, 1.0, 0.0] if i % 2 == 0 else [0.0, 0.0, 1.0], useGlobalFrame=True,
        )  # fmt: skip
        before = body
    system.Assemble()
    return system, before


def exudyn_end(exudyn: Any, links: int, steps: int, dt: float) -> np.ndarray:
    """Position [m] of the last hinge after ``steps`` steps of generalized-alpha by Exudyn."""
    system, last = exudyn_chain(exudyn, links)
    settings = exudyn.SimulationSettings()
    integration = settings.timeIntegration
    integration.numberOfSteps, integration.endTime = steps, steps * dt
    integration.generalizedAlpha.spectralRadius = RHO
    integration.newton.useModifiedNewton = True
    integration.verboseMode = 0
    settings.solutionSettings.writeSolutionToFile = False
    system.SolveDynamic(settings)
    place = exudyn.OutputVariableType.Position
    return np.asarray(system.GetObjectOutputBody(last, place, [-scaling.LENGTH / 2, 0.0, 0.0]))


def our_end(problem: nsjax.Problem, steps: int, dt: float) -> np.ndarray:
    """Position [m] of the last hinge after ``steps`` steps by `nsjax`."""
    traj = plain_run(problem, schemes.generalized_alpha(RHO), dt, steps)
    return np.asarray(traj.body(f"rod{LINKS - 1}").position[-1])


def _exudyn(quick: bool) -> Iterator[Row]:
    try:
        exudyn = importlib.import_module("exudyn")
    except ImportError:
        yield Row("Exudyn", note="skipped: it is not installed (pip install exudyn)")
        return
    problems = {
        kind: scaling.chain(LINKS, kind) for kind in (("joint",) if quick else ("joint", "absolute"))
    }
    calls: dict[str, Callable[[int], Any]] = {
        "Exudyn": lambda count: exudyn_end(exudyn, LINKS, count, STEP),
        **{kind: (lambda n, x=x: our_end(x, n, STEP)) for kind, x in problems.items()},  # type: ignore[misc]
    }
    found = per_step(calls, 200 if quick else 1_000, 3)
    short = 1e-4
    theirs = exudyn_end(exudyn, LINKS, AGREE_STEPS, short)
    for kind, problem in problems.items():
        off = float(np.max(np.abs(our_end(problem, AGREE_STEPS, short) - theirs)))
        note = (
            f"{found[kind]:.1f} over {found['Exudyn']:.1f} us; last hinge after "
            f"{AGREE_STEPS * short:g} s differs by {off:.1e} m"
        )
        yield Row(
            f"chain of {LINKS} rods, {kind}, over Exudyn", found[kind] / found["Exudyn"], 1.0, note=note
        )


def peers(quick: bool) -> Iterator[Row]:
    """Time of a step [us] beside those of other codes, measured in turn."""
    nsjax.configure()
    yield from _exudyn(quick)
    try:
        importlib.import_module("siconos")
    except ImportError:
        yield Row("Siconos", note="skipped: it is not installed (conda install -c conda-forge siconos)")
    else:
        yield Row("Siconos", note="skipped: no mechanism is written for it")
