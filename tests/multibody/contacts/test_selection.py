"""Groups with a capacity: a step looks at the pairs that are near, and nothing else is seen of it. The same
contacts without a capacity are contacts by name, all of which every step looks at.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import Problem, schemes, status
from nsjax.core.operators import contact_rows, prepared, refreshed
from nsjax.core.system import step_system
from nsjax.multibody import (
    assemble,
    body,
    box,
    capsule,
    contact,
    contact_group,
    hinge,
    plane,
    sphere,
)
from nsjax.multibody.assemble import RowsWarning

BALLS = ("b0", "b1", "b2", "b3", "b4")


def hit(
    dimension: int, coordinates: str, capacity: int | None, *, spacing: float = 0.25,
    dry: float | None = None, shapes: Any = (), reach: float | None = None, friction: float | None = 0.3,
) -> Problem:  # fmt: skip
    """An arm with limits falls into a row of balls, beside a contact by name."""
    inertia: tuple[Any, Any] = (0.1, 0.01) if dimension == 2 else ((0.1,) * 3, (0.01, 0.012, 0.014))
    axis = {} if dimension == 2 else {"axis": (0.0, 1.0, 0.0)}
    up = (0.0,) * (dimension - 2)

    def at(x: float, z: float) -> tuple[float, ...]:
        return (x, *up, z)

    parts: list[Any] = [body("arm", mass=1.0, inertia=inertia[0], com=0.3)]
    parts.append(hinge("pin", "ground", "arm", at=at(0.0, 0.9), limits=(-3.0, 3.0), friction=dry, **axis))
    parts += [body(x, mass=1.0, inertia=inertia[1]) for x in BALLS]
    parts.append(contact("side", sphere("b4", 0.1), plane(at=at(0.8, 0.0), normal=at(-1.0, 0.0))))
    balls = [sphere(x, 0.1) for x in BALLS]
    group = contact_group(
        "all", [sphere("arm", 0.1, at=0.6), *balls, plane(), *shapes], friction=friction, restitution=0.3,
        capacity=capacity, reach=reach,
    )  # fmt: skip
    start: dict[str, Any] = {
        x: (*at(spacing * k - 0.4, 0.11 + 0.001 * k), *((0.0,) if dimension == 2 else ()))
        for k, x in enumerate(BALLS)
    }
    start["arm"] = -0.2 if dimension == 2 else 0.2
    return assemble(*parts, group, gravity=9.81, coordinates=coordinates, start=start)


def run(problem: Problem, scheme: str = "moreau", steps: int = 300, **given: Any) -> Any:
    made = getattr(schemes, scheme)()
    return nsjax.simulate(*problem, made, dt=1e-3, steps=steps, every=50, events=12, **given)


def check_same(few: Any, every: Any, tolerance: float = 1e-9) -> None:
    for traj in (few, every):
        traj.raise_for_status()
    assert np.sum(every.impacts) > 4
    assert few.system.labels == every.system.labels
    names = (
        "q", "v", "gap", "force_normal", "impulse_normal", "impulse_tangential", "closed_time", "impacts",
    )  # fmt: skip
    for name in names:
        np.testing.assert_allclose(getattr(few, name), getattr(every, name), atol=tolerance, err_msg=name)
    for name in ("count", "time", "contact", "impulse_normal"):
        np.testing.assert_allclose(getattr(few.events, name), getattr(every.events, name), atol=tolerance)


CASES = [
    (2, "joint", "moreau", None), (3, "absolute", "moreau", 0.05), (3, "joint", "generalized_alpha", 0.05),
    (2, "absolute", "nsga_decoupled", None),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "coordinates", "scheme", "dry"), CASES)
def test_as_all_by_name(dimension: int, coordinates: str, scheme: str, dry: float | None) -> None:
    """Beside a joint with limits and dry friction and a contact by name, impacts listed."""
    few, every = (hit(dimension, coordinates, k, dry=dry) for k in (5, None))
    assert step_system(few.system).nc < few.system.nc == every.system.nc
    check_same(run(few, scheme), run(every, scheme))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("coordinates", "scheme"), [("joint", "generalized_alpha"), ("absolute", "moreau")]
)
def test_derivatives(coordinates: str, scheme: str) -> None:
    """Forward, reverse, and those of all contacts by name, through impacts."""
    found = []
    for capacity in (5, None):
        problem = hit(2, coordinates, capacity)

        def end(x: Any, problem: Problem = problem) -> Any:
            p = {
                name: dataclasses.replace(y, friction=y.friction + x[0])
                if getattr(y, "friction", None) is not None and hasattr(y, "first")
                else y
                for name, y in problem.params.items()
            }
            v = jnp.asarray(problem.state.v).at[-3].add(x[1])  # of the last ball, along the floor
            state = dataclasses.replace(problem.state, v=v)
            made = getattr(schemes, scheme)()
            traj = nsjax.simulate(problem.system, p, state, made, dt=1e-3, steps=300, every=300)
            last = (traj.q[-1], traj.v[-1], traj.impulse_normal[-1], traj.closed_time[-1])
            return jnp.concatenate(last)

        x = jnp.zeros(2)
        forward = jax.jit(jax.jacfwd(end))(x)
        weights = jnp.cos(jnp.arange(float(forward.shape[0])))
        reverse = jax.jit(jax.grad(lambda x, end=end, weights=weights: end(x) @ weights))(x)
        assert float(jnp.max(jnp.abs(forward))) > 0.1
        np.testing.assert_allclose(weights @ forward, reverse, atol=1e-10)
        found.append(forward)
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)


SOLIDS = [
    sphere("arm", 0.1, at=0.6), *(capsule(x, 0.05, 0.1, axis=(0.6, 0.0, 0.8)) for x in BALLS[:3]),
    box("b3", 0.1, 0.07, 0.12, turned=(0.1, 0.2, 0.3)), box("b4", 0.08, 0.07, 0.1), plane(),
    *(sphere(x, 0.12, at=(0.0, 0.05, 0.0)) for x in BALLS),
]  # fmt: skip


def scattered(capacity: int | None, reach: float | None = None, coordinates: str = "joint") -> Problem:
    """Solids of all kinds on free bodies and an arm."""
    parts: list[Any] = [body(x, mass=1.0, inertia=(0.01, 0.012, 0.014)) for x in ("arm", *BALLS)]
    parts.append(hinge("pin", "ground", "arm", axis=(0.0, 1.0, 0.0)))
    group = contact_group("all", SOLIDS, friction=0.3, capacity=capacity, reach=reach)
    return assemble(*parts, group, gravity=9.81, coordinates=coordinates)


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_the_pairs_that_are_near(coordinates: str) -> None:
    """No pair nearer than the reach is missed, and what is evaluated of those chosen is that of all."""
    problem = scattered(10, 0.05, coordinates)
    system, t = problem.system, jnp.zeros(())
    few, p = step_system(system), prepared(system, problem.params)

    @jax.jit
    def seen(q: Any, v: Any) -> Any:
        now = refreshed(system, t, q, p)
        chosen: Any = system.contact_set
        slots = chosen.slots(now, None).contacts
        own = few.gap(t, q, now), few.slip(t, q, v, now), contact_rows(few, t, q, now).wt
        every = system.gap(t, q, now), system.slip(t, q, v, now), contact_rows(system, t, q, now).wt
        return own, every, slots.which, slots.used, slots.place, chosen.overflow(now)

    rng, met = np.random.default_rng(0), 0
    for _ in range(5):
        xi = jnp.asarray(0.35 * rng.normal(size=system.nv))
        q = system.retract(jnp.asarray(problem.state.q), xi)
        own, every, which, used, places, lost = seen(q, jnp.asarray(rng.normal(size=system.nv)))
        assert not lost
        near = np.asarray(every[0]) < 0.05
        has = np.asarray(places) < len(which)
        assert np.all(has[near])
        assert np.array_equal(np.sort(which[used]), np.flatnonzero(has))
        assert np.array_equal(np.asarray(places)[np.asarray(which[used])], np.flatnonzero(used))
        met += int(np.sum(near))
        for one, other, rows in zip(own, every, (1, 1, 3), strict=True):
            one, other = (np.asarray(x).reshape(-1, rows, *x.shape[1:]) for x in (one, other))
            np.testing.assert_allclose(one[used], other[which[used]], atol=1e-12)
    assert met > 20


@pytest.mark.slow
def test_overflow() -> None:
    """Is a bit of the run, and a sentence that names the capacity that would have held."""
    traj = run(hit(2, "joint", 3, friction=None), steps=50)
    assert int(traj.status) == status.CANDIDATES_LOST
    with pytest.raises(nsjax.RunError, match=r"raise capacity.*capacity = 5 of 'all' would have held"):
        traj.raise_for_status()


@pytest.mark.slow
def test_overflow_of_a_capacity_that_nobody_asked() -> None:
    """Is told as well: a run never misses contacts silently."""
    low = [sphere(x, 0.05, at=(0.03 * k, -0.045)) for k in range(3) for x in BALLS]
    with pytest.warns(RowsWarning):
        problem = hit(2, "joint", None, shapes=low)
    traj = run(problem, steps=50)
    assert int(traj.status) == status.CANDIDATES_LOST
    with pytest.raises(nsjax.RunError, match=r"raise capacity.*capacity = 20 of 'all' would have held"):
        traj.raise_for_status()


@pytest.mark.slow
def test_goes_on_and_travels(tmp_path: Any) -> None:
    """A run continues bit for bit, also from a file, with impacts, names and pictures."""
    problem = hit(2, "joint", 5)
    whole, first = run(problem), run(problem, steps=150)
    nsjax.save(tmp_path / "run.npz", problem, first, scheme=schemes.moreau())
    again = nsjax.load(tmp_path / "run.npz", problem).traj
    for carry in (first.carry, again.carry):
        last = run(problem, steps=150, carry=carry)
        assert np.array_equal(last.q[-1], whole.q[-1])
        assert np.array_equal(last.impulse_normal[-1], whole.impulse_normal[-1])
    rows = whole.contact("b0_ground")
    assert float(rows.impulse[-1, 0]) == pytest.approx(0.05 * 9.81, rel=0.2)
    drawn = problem.system.shapes(
        0.0, jnp.asarray(problem.state.q), prepared(problem.system, problem.params)
    )
    assert drawn.contacts.points.shape == (problem.system.nc, 2)


def test_beyond_sixty_contacts_a_step_chooses() -> None:
    """And says so; not where it is asked, nor up to sixty."""
    more = [sphere(x, 0.05, at=(0.02 * k, 0.0)) for k in range(3) for x in BALLS]
    with pytest.warns(RowsWarning, match=r"contacts between bodies, beyond 60: a step solves for the"):
        problem = hit(2, "joint", None, shapes=more)
    assert problem.system.contact_set is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error", RowsWarning)
        assert hit(2, "joint", 500, shapes=more).system.contact_set is None
        assert hit(2, "joint", None).system.contact_set is None


@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_thousands_of_contacts_have_no_names(coordinates: str) -> None:
    """Thirty boxes between five walls have 585 pairs and 4,680 contacts: slots in absolute coordinates,
    else a warning, also if a capacity is asked.
    """
    names = [f"b{k}" for k in range(30)]
    ways = ((0, 0, 1), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0))
    walls = [plane(at=-9.0 * np.array(way), normal=way) for way in np.array(ways, float)]
    parts = [
        *(body(x, mass=1.0, inertia=(4e-3, 5e-3, 6e-3)) for x in names),
        contact_group("all", [*(box(x, 0.08, 0.08, 0.08) for x in names), *walls], capacity=60),
    ]
    start = {x: (0.3 * k - 4.5, 0.0, 0.0) for k, x in enumerate(names)}
    given: dict[str, Any] = {"gravity": 9.81, "coordinates": coordinates, "start": start}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", RowsWarning)
        system = assemble(*parts, **given).system
    if coordinates == "joint":
        assert system.nc == 4680
        (one,) = (str(x.message) for x in said)
        assert "4680 contacts" in one
        assert "a step solves for 960; free bodies step many times faster with coordinates=" in one
    else:
        assert not said
        assert system.changing_contacts
        assert system.nc == 2 * 60 * 8
