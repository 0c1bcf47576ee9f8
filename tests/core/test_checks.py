"""Bad input gets a sentence that names the thing, its value and the remedy, before any work."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, Problem, State, System, models, schemes
from nsjax.core import checks
from tests.points import no_force, unit_mass

BALL = models.bouncing_ball()


def run(problem=BALL, scheme=None, **options):
    options = {"dt": 1e-3, "steps": 10, **options}
    return nsjax.simulate(*problem, schemes.moreau() if scheme is None else scheme, **options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"dt": 0.0}, r"dt = 0\.0; it must be positive and finite"),
        ({"dt": -1e-3}, r"dt = -0\.001; it must be positive"),
        ({"dt": float("nan")}, r"dt = nan; it must be positive and finite"),
        ({"dt": np.float32(1e-3)}, r"dt has type float32; give it in 64 bits"),
        ({"steps": 0}, r"steps = 0; it must be a whole number, at least 1"),
        ({"steps": 2.5}, r"steps = 2\.5; it must be a whole number"),
        ({"every": 0}, r"every = 0; it must be"),
        ({"events": -1}, r"events = -1; it must be"),
        ({"steps": 10, "every": 4}, r"steps = 10 is not a multiple of every = 4; the nearest are 8 and 12"),
        ({"steps": None}, r"give exactly one of steps and time"),
        ({"time": 1.0}, r"give exactly one of steps and time"),
        ({"steps": None, "time": 0.01234}, r"not a whole number of steps .* nearest are 0\.012 and 0\.013"),
        ({"steps": None, "time": -1.0}, r"time = -1\.0; it must be positive"),
        ({"save": ["impact"]}, r"unknown quantity 'impact'; did you mean 'impacts'\?"),
        ({"save": "impacts"}, r"give a list of names"),
        ({"save": 3}, r"save = 3; give a list of names, such as \['gap'\]"),
        ({"save": [1]}, r"save: unknown quantity 1; Known: gap"),
        ({"gradient": 3}, r"gradient = 3; choose one of saltation, discrete"),
        ({"dt": np.array([1e-3, 2e-3])}, r"dt = array.*; it must be one number; nsjax\.sweep and"),
        ({"dt": [1e-3]}, r"dt = \[0\.001\]; it must be one number; nsjax\.sweep"),
        ({"dt": None}, r"dt = None; it must be one number$"),
        ({"dt": "1e-3"}, r"dt = '1e-3'; it must be one number$"),
        ({"steps": None, "time": "1"}, r"time = '1'; it must be one number$"),
        ({"steps": True}, r"steps = True; it must be a whole number"),
        ({"carry": 3}, r"carry is of type int; give traj\.carry of an earlier run"),
        ({"carry": BALL}, r"carry is of type Problem; give traj\.carry"),
        ({"progress": 3}, r"progress = 3; give True, or a function of the steps"),
        (
            {"scheme": schemes.moreau(tolerance=-1e-9)},
            r"scheme\.tolerance = -1e-09; it must not be negative",
        ),
        (
            {"scheme": schemes.bathe(stage_tolerance=-1.0)},
            r"scheme\.tolerances\.stage = -1\.0; it must not",
        ),
        ({"scheme": schemes.moreau(tolerance="a")}, r"scheme\.tolerance = 'a'; numbers"),
        (
            {"gradient": "soltation"},
            r"gradient = 'soltation'; did you mean 'saltation'",
        ),
    ],
)
def test_run_options(options, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        run(**options)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"restitution": 1.5}, r"restitution = 1\.5; it must lie in \[0, 1\]"),
        ({"restitution": -0.1}, r"restitution = -0\.1; it must lie in \[0, 1\]"),
        ({"restitution_tangential": 2}, r"restitution_tangential = 2\.0; it must lie in \[0, 1\]"),
        ({"friction": -0.1}, r"friction = -0\.1; it must not be negative"),
        (
            {"restitution": None},
            r"law returns ContactLaw without restitution; .*; params\.restitution is None",
        ),
        ({"restitution": [0.1, 0.2]}, r"restitution has shape \(2,\); give one number or one per"),
        ({"gravity": np.float32(9.81)}, r"params\.gravity has type float32"),
        ({"gravity": float("inf")}, r"params\.gravity = inf; every number must be finite"),
        ({"mass": "heavy"}, r"params\.mass = 'heavy'; numbers and arrays of numbers only"),
        ({"mass": 1j}, r"params\.mass = 1j; numbers and arrays|params\.mass has type complex128"),
        ({"mass": -1.0}, r"^mass = -1.0; it must not be negative"),
        ({"mass": 0.0}, r"mass is not positive definite at the start: smallest eigenvalue 0"),
        ({"initial_q": np.zeros(2)}, r"state\.q has shape \(2,\); the system needs \(1,\)"),
        ({"initial_v": np.zeros(3)}, r"state\.v has shape \(3,\); the system needs \(1,\)"),
        ({"initial_q": np.ones(1, np.float32)}, r"state\.q has type float32"),
        ({"initial_time": np.zeros(2)}, r"state\.t has shape \(2,\)"),
        (
            {"initial_q": np.zeros(1)},
            r"gap of contact 0 \(ball on table\) = -0\.05 m at the start; the start",
        ),
    ],
)
def test_problem_data(change, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        run(BALL.replace(**change))


def test_violated_constraint() -> None:
    problem = models.slider_crank_bilateral(initial_q=[0.1, 0.0])
    with pytest.raises(InputError, match=r"residual of constraint 0 \(guide\) = 0\.0152745 at the start"):
        run(problem)


def test_unknown_names_get_the_nearest_known_one() -> None:
    with pytest.raises(InputError, match=r"unknown parameter 'fricton'; did you mean 'friction'"):
        models.slider_crank(fricton=0.1)
    with pytest.raises(InputError, match=r"unknown parameter 'inital_v'; did you mean 'initial_v'"):
        BALL.replace(inital_v=1.0)
    with pytest.raises(InputError, match=r"force_velocity = 'mid'; choose one of auto, start, midpoint"):
        schemes.moreau(force_velocity="mid")
    traj = run()
    with pytest.raises(KeyError, match=r"no quantity 'tabel'; did you mean 'table'"):
        traj["tabel"]


def test_wrong_kinds_of_arguments() -> None:
    with pytest.raises(InputError, match=r"scheme = moreau; .*did you forget the brackets: moreau\(\)"):
        nsjax.simulate(*BALL, schemes.moreau, dt=1e-3, steps=1)
    with pytest.raises(InputError, match=r"unpack it with a star: simulate\(\*problem"):
        nsjax.simulate(BALL, None, None, schemes.moreau(), dt=1e-3, steps=1)
    with pytest.raises(InputError, match=r"it must be an nsjax\.System"):
        nsjax.simulate(None, None, None, schemes.moreau(), dt=1e-3, steps=1)


def skew(q, p):
    return jnp.array([[1.0, 0.5], [0.0, 1.0]])


def flat(t, q, v, p):
    return jnp.zeros(3)


def single(t, q, v, p):
    return jnp.zeros(2, jnp.float32)


@pytest.mark.parametrize(
    ("functions", "sentence"),
    [
        ({"mass": unit_mass, "force": flat}, r"force returns shape \(3,\); the system needs shape \(2,\)"),
        ({"mass": unit_mass, "force": single}, r"force returns type float32; it must return float64"),
        (
            {"mass": skew, "force": no_force},
            r"mass is not symmetric at the start: .*; return a symmetric matrix",
        ),
    ],
)
def test_what_model_functions_return(functions, sentence) -> None:
    system = nsjax.System(nq=2, nv=2, **functions)
    state = nsjax.State(t=0.0, q=np.zeros(2), v=np.zeros(2))
    with pytest.raises(InputError, match=sentence):
        nsjax.simulate(system, {}, state, schemes.moreau(), dt=1e-3, steps=1)


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (
            nsjax.State(t=0.0, q=[0.0, 1.0], v=np.zeros(2)),
            r"state\.q = \[0\.0, 1\.0\]; give an array, np\.asarray",
        ),
        (nsjax.State(t=None, q=np.zeros(2), v=np.zeros(2)), r"state\.t = None; give a number"),
        ({"q": 1}, r"state = \{'q': 1\}; it must be an nsjax\.State"),
        (None, r"state = None; it must be an nsjax\.State"),
    ],
)
def test_what_a_start_is_made_of(state, sentence) -> None:
    system = nsjax.System(nq=2, nv=2, mass=unit_mass, force=no_force)
    with pytest.raises(InputError, match=sentence):
        nsjax.simulate(system, {}, state, schemes.moreau(), dt=1e-3, steps=1)


def height(t, q, p):
    return q[:1]


def speed_squared(t, q, v, p):
    return (v[1:] ** 2)[:, None]


def speed(t, q, v, p):
    return (3.0 * v[1:] - 1.0)[:, None]


def test_slip_must_be_affine() -> None:
    state = nsjax.State(t=0.0, q=np.ones(2), v=np.zeros(2))
    parts = {
        "nq": 2,
        "nv": 2,
        "nc": 1,
        "nt": 1,
        "mass": unit_mass,
        "force": no_force,
        "gap": height,
        "law": elastic,
    }
    with pytest.raises(
        InputError, match=r"slip is not affine in v: .* is [12] of its size; return velocities"
    ):
        nsjax.simulate(
            nsjax.System(**parts, slip=speed_squared), {}, state, schemes.moreau(), dt=1e-3, steps=1
        )
    checks.check_values(nsjax.System(**parts, slip=speed), {}, state)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, r"give mass or inertia"),
        ({"mass": unit_mass, "nc": 1}, r"gap is missing with nc = 1"),
        ({"mass": unit_mass, "gap": flat}, r"gap is given but never used with nc = 0"),
        ({"mass": unit_mass, "nt": 3}, r"nt = 3; a contact has 0, 1 or 2 tangents"),
        ({"mass": unit_mass, "nb": -1}, r"nb = -1; it must be a whole number"),
        ({"mass": unit_mass, "choices": (("a", []),)}, r"unhashable type"),
        ({"mass": np.eye(2)}, r"System: mass = ndarray; it must be a function"),
        ({"mass": unit_mass, "force": 3}, r"System: force = 3; it must be a function"),
        ({"mass": unit_mass, "nq": 3}, r"nq = 3 and nv = 2 without retract and difference; give both"),
        ({"mass": unit_mass, "labels": ("a", "b")}, r"labels = \('a', 'b'\); it must be an nsjax\.Labels"),
        ({"mass": unit_mass, "labels": nsjax.Labels(q="ab")}, r"Labels: q = 'ab'; give a tuple of names"),
        (
            {"mass": unit_mass, "labels": nsjax.Labels(q=("a",))},
            r"Labels: q has 1 names; the system has nq = 2",
        ),
        ({"mass": unit_mass, "labels": nsjax.Labels(contacts=("a",))}, r"contacts has 1 names; .* nc = 0"),
        (
            {"mass": unit_mass, "labels": nsjax.Labels(q=("a [m]", "a"))},
            r"'a' is the name of two quantities",
        ),
    ],
)
def test_contradictory_systems(arguments, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        nsjax.System(**{"nq": 2, "nv": 2, "force": no_force, **arguments})


@pytest.mark.parametrize(
    "call",
    [
        "nsjax.simulate(*models.bouncing_ball(), schemes.moreau(), dt=1e-3, steps=1)",
        "nsjax.load('run.npz')",
    ],
)
def test_single_precision_is_refused_in_a_sentence(call: str) -> None:
    code = f"import nsjax; from nsjax import models, schemes\n{call}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "64-bit floats are off" in done.stderr
    assert "nsjax.configure()" in done.stderr


def test_constructors_accept_tracers() -> None:
    import jax

    heights = jnp.array([0.5, 1.0])

    def start(height):
        return models.bouncing_ball(balls=2, dimension=2, height=height, speed=height).state

    states = jax.vmap(start)(heights)
    assert states.q.shape == (2, 6)
    np.testing.assert_allclose(states.q[:, 1], heights + 0.05)


def blow_up(t, q, v, p):
    """Force that is not finite after t = 0.5."""
    return jnp.where(t > 0.5, jnp.log(-jnp.ones(1)), -q)


def hole(t, q, p):
    """Gap that is not finite below one half."""
    return jnp.sqrt(q - 0.5)


def fading(q, p):
    """Mass that becomes singular where q leaves the unit interval."""
    return jnp.where(q[0] < 1.0, 1.0, 0.0) * jnp.eye(1)


def nan_mass(q, p):
    return jnp.where(q[0] < 1.0, 1.0, jnp.nan) * jnp.eye(1)


def pull(t, q, v, p):
    return -jnp.ones(1)


def push(t, q, v, p):
    return jnp.ones(1)


def elastic(p):
    return nsjax.ContactLaw()


@pytest.mark.parametrize(
    ("functions", "sentence"),
    [
        ({"mass": unit_mass, "force": blow_up}, r"step 51, t = 0\.51 s: the force function returned"),
        ({"mass": fading, "force": push}, r"step 142, t = 1\.42 s: the mass matrix is singular"),
        (
            {"mass": nan_mass, "force": push},
            r"step 142, t = 1\.42 s: the mass matrix has an entry",
        ),
        (
            {"mass": unit_mass, "force": pull, "nc": 1, "gap": hole, "law": elastic},
            r"step 101, t = 1\.01 s: the gap function returned",
        ),
    ],
)
def test_what_fails_first_in_a_run_is_named(functions, sentence) -> None:
    """Step and time from the closed forms q = t^2/2 and q = 1 - t^2/2 at the step's midpoint."""
    start = 1.0 if functions["force"] is pull else 0.0
    system = nsjax.System(nq=1, nv=1, **functions)
    state = nsjax.State(t=0.0, q=np.full(1, start), v=np.zeros(1))
    traj = nsjax.simulate(system, {}, state, schemes.moreau(), dt=1e-2, steps=200)
    with pytest.raises(nsjax.RunError, match=sentence):
        traj.raise_for_status()
    assert dataclasses.is_dataclass(traj.first_failure)


def two_walls(t, q, p):
    """A wall that the ball can meet, and one that runs through it whatever it does."""
    return jnp.stack([q[0] + 10.0, 0.055 - t])


def test_an_unsolved_contact_problem_is_named_with_its_contact() -> None:
    """No impulse acts on the second gap, which closes at t = 0.055: first tested negative at 0.0555."""
    labels = nsjax.Labels(contacts=("floor", "press"))
    system = nsjax.System(
        nq=1, nv=1, nc=2, mass=unit_mass, force=pull, gap=two_walls, law=elastic, labels=labels
    )
    state = nsjax.State(t=0.0, q=np.zeros(1), v=np.zeros(1))
    traj = nsjax.simulate(system, {}, state, schemes.moreau(), dt=1e-3, steps=100)
    where = r"step 56, t = 0\.056 s: no impulses fulfil the contact laws"
    with pytest.raises(nsjax.RunError, match=where + r".* \(contact 1: press\)"):
        traj.raise_for_status()


def test_of_many_numbers_that_are_absent_few_are_listed() -> None:
    params = {f"k{i}": None for i in range(20)}
    system = System(nq=1, nv=1, mass=unit_mass, force=lambda t, q, v, p: -p["k3"] * q, name="springs")
    problem = Problem(system=system, params=params, state=State(t=0.0, q=np.zeros(1), v=np.zeros(1)))
    with pytest.raises(
        InputError, match=r"params\['k0'\], .* and 14 more is None: give a number"
    ) as failed:
        run(problem)
    assert len(str(failed.value)) < 400
