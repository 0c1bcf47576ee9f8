"""Wrong systems, schemes and options, refused before anything is compiled for long."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import ContactLaw, InputError, Problem, State, System, models, schemes
from nsjax.contact import active_set
from nsjax.contact.solvers import solve
from nsjax.core import Labels, memory, start_checks
from nsjax.linalg import BlockDiagonal, BlockTridiagonal
from nsjax.multibody import spheres
from nsjax.schemes import common
from tests.points import no_force, unit_mass

BALL, MOREAU = models.bouncing_ball(), schemes.moreau()
PILE = spheres(0.1, 1.0, np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))


def times(q, w, p):
    return w


def scalar(t, q, p):
    return q[:1]


def few(t, q):
    return q


def no_law(p):
    return ContactLaw(restitution=None, friction=0.0)  # type: ignore[arg-type]


def endless(q, p):
    return jnp.full((2, 2), jnp.inf)


def two_by_two(t, q, p):
    return jnp.zeros((2, 2), int)


def elastic(p):
    return ContactLaw(restitution=1.0)


def system(**given: Any) -> System:
    return System(**{"nq": 2, "nv": 2, "mass": unit_mass, "force": no_force, **given})


def falling(**given: Any) -> Any:
    """A run of two unknowns."""
    return run(Problem(system=system(**given), params={}, state=State(t=0.0, q=np.ones(2), v=np.ones(2))))


def run(problem: Problem = BALL, scheme: Any = MOREAU, **options: Any) -> Any:
    return nsjax.simulate(*problem, scheme, **{"dt": 1e-3, "steps": 2, **options})


def traced(call: Callable[[Any], Any]) -> None:
    jax.make_jaxpr(call)(1e-3)


PAIRS: dict[str, Any] = {"pairs": two_by_two, "nc": 1, "gap": scalar, "law": elastic}
PARTS: dict[str, Any] = {"mass": None, "inertia": times, "structure": BlockDiagonal(1)}

CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "sizes": (lambda: system(nq=0), "System: nq = 0; it must be a whole number, at least 1"),
    "islands": (
        lambda: system(islands=-1),
        "System: islands = -1; it must be a whole number, at least 0",
    ),
    "coupled islands": (
        lambda: system(islands=2, **PARTS, nc=2, gap=scalar, law=elastic, nb=1, constraint=scalar),
        "System: nb = 1 with islands = 2; constraints couple parts: leave islands out",
    ),
    "pairs and constraints": (
        lambda: system(**PAIRS, **PARTS, nb=1, constraint=scalar),
        "System: nb = 1 with pairs, which do not work with constraints; leave pairs out",
    ),
    "pairs alone": (
        lambda: system(**PAIRS, **PARTS),
        "System: no refresh with pairs; give both, or leave pairs out",
    ),
    "hint": (lambda: system(tangent_hint="none"), "System: tangent_hint = 'none'; choose"),
    "no hash": (
        lambda: system(choices=(("mesh", []),)),
        "System: .*; functions must be at module level or methods of a frozen, hashable record",
    ),
    "never used": (lambda: system(gap=scalar), "System: gap is given but never used with nc = 0, nt = 0"),
    "missing": (
        lambda: system(nc=1, gap=scalar),
        "System: law is missing with nc = 1, nt = 0, nb = 0, nd = 0",
    ),
    "dense": (
        lambda: system(structure=BlockTridiagonal(1)),
        "System: mass, a dense matrix, with a structure; give inertia",
    ),
    "labels": (
        lambda: system(labels=Labels(q=("x [m]",))),
        "Labels: q has 1 names; the system has nq = 2. Give one each, or none",
    ),
    "arguments": (
        lambda: falling(nb=1, constraint=few),
        r"constraint: it takes \(t, q\), and is called as constraint\(t, q, p\)",
    ),
    "switch": (
        lambda: falling(switch=lambda t, q, v, p: jnp.sum(q)),
        r"switch returns shape \(\); it must return \(ns,\) float64, one number per surface",
    ),
    "mass": (
        lambda: falling(mass=endless),
        "mass has entries that are not finite at the start; check params and state",
    ),
    "law": (
        lambda: falling(nc=1, gap=scalar, law=no_law),
        "law returns ContactLaw without restitution; return a ContactLaw",
    ),
    "friction": (
        lambda: run(models.bouncing_ball(dimension=2, friction=-0.1)),
        r"friction = -0.1; it must not be negative",
    ),
    "constraint at the start": (
        lambda: run(models.slider_crank_bilateral(initial_q=[0.1, 0.0])),
        "residual of constraint 0 .* at the start; .*, or pass carry= to continue a run",
    ),
    "text": (
        lambda: run(BALL.replace(params=dataclasses.replace(BALL.params, gravity=np.array(1j)))),
        "params.gravity has type complex128; real numbers only",
    ),
    "state": (
        lambda: run(dataclasses.replace(BALL, state=State(t=0.0, q=[1.0], v=np.zeros(1)))),
        r"state.q = \[1.0\]; give an array, np.asarray\(\[1.0\], float\)",
    ),
    "tolerance": (
        lambda: run(scheme=schemes.moreau(tolerance=-1.0)),
        "scheme.tolerance = -1.0; it must not be negative",
    ),
    "gradient": (lambda: run(gradient="saltatoin"), "gradient = 'saltatoin'; did you mean 'saltation'"),
    "gradient of a scheme": (
        lambda: run(scheme=dataclasses.replace(MOREAU, gradient="discrete"), gradient="saltation"),
        "gradient = 'saltation'; the scheme 'moreau' provides 'discrete' only",
    ),
    "one number": (lambda: run(dt=[1e-3]), r"dt = \[0.001\]; it must be one number"),
    "traced array": (
        lambda: traced(lambda x: run(dt=jnp.stack([x, x])).q),
        r"dt has shape \(2,\); it must be one number",
    ),
    "traced step": (
        lambda: traced(lambda x: run(dt=x, steps=None, time=1.0).q),
        "time needs a concrete dt; give steps when dt is traced",
    ),
    "quantity": (lambda: run(save=["impact"]), "save: unknown quantity 'impact'; did you mean 'impacts'"),
    "every": (lambda: run(every=0), "every = 0; it must be a whole number, at least 1"),
    "steps": (lambda: run(steps=0), "steps = 0; it must be a whole number, at least 1"),
    "events": (lambda: run(events=-1), "events = -1; it must be a whole number, at least 0"),
    "memory": (
        lambda: memory.refuse_more("rows", 2.0**31, "save fewer", limit=2.0**30),
        "rows would take 2 GiB, of 1 GiB of memory; save fewer",
    ),
    "scheme of pairs": (
        lambda: active_set.check_run(PILE.system, schemes.bathe(), 0, None),
        r"scheme 'bathe' does not work with pairs \(contacts of many bodies\); take schemes.moreau\(\)",
    ),
    "events of pairs": (
        lambda: active_set.check_run(PILE.system, MOREAU, 3, None),
        "events = 3: with pairs impacts are counted in traj.impacts, but not listed; leave events out",
    ),
    "gradient of pairs": (
        lambda: active_set.check_run(PILE.system, MOREAU, 0, "saltation"),
        r"gradient: runs with pairs \(contacts of many bodies\) have no derivatives; take differences",
    ),
    "promise of pairs": (
        lambda: start_checks.check_promises(PILE.system, {"pairs: contacts": np.array(0.5)}),
        "pairs: rates of the contacts by the directions differ from those of gap and slip by 0.5 of",
    ),
    "change": (lambda: BALL.replace({"params.hight": 1.0}), "replace: unknown parameter 'params.hight'; "),
    "key": (
        lambda: nsjax.sweep(BALL, MOREAU, {"params.hight": [1.0]}, dt=1e-3, steps=2, every=2),
        "sweep: params.hight: params has no 'hight'; ",
    ),
    "outputs": (
        lambda: nsjax.check_gradient(
            BALL, MOREAU, parameters=["gravity"], dt=1e-3, steps=2, outputs=["hight"]
        ),
        "outputs: unknown quantity 'hight'; ",
    ),
    "method": (
        lambda: solve(None, method="guess"),  # type: ignore[arg-type]
        "solve: unknown method 'guess'; ",
    ),
    "one of": (
        lambda: common.choose("hht", "form", "own", ("a", "b")),
        "hht: form = 'own'; choose one of a, b",
    ),
    "option": (lambda: schemes.bathe(colour=1), "bathe: unknown option 'colour'; "),
    "range": (lambda: schemes.hht(alpha_f=0.9), r"hht: alpha_f = 0.9; it must lie in \[0, "),
    "alphas": (
        lambda: schemes.generalized_alpha(alpha_m=0.1),
        "generalized_alpha: alpha_m = 0.1, alpha_f = None; give both, or rho_inf",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused(name: str) -> None:
    make, words = CASES[name]
    with pytest.raises((InputError, TypeError), match=words):
        make()


@pytest.mark.parametrize("count", [0, "two"])
def test_numbers_of_devices(count: int | str) -> None:
    with pytest.raises(ValueError, match=f"configure: host_devices = {count!r}; give a whole number"):
        nsjax.configure(host_devices=count)  # type: ignore[arg-type]
