"""The time loop: one kernel, one compilation, continuation, saving, impact list, transformations."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, models, schemes
from nsjax.loop import LoopProgram, begin_run
from nsjax.simulate import _advance, begin_eager_run
from nsjax.trajectory import ROWS

CRANK = models.slider_crank()
# From just before the first impact, so that short runs see contacts, friction and flight.
DT = 2e-5


def run(**options):
    return nsjax.simulate(*CRANK, schemes.moreau(), dt=DT, **options)


def test_a_problem_stands_for_its_three_values() -> None:
    options = {"dt": DT, "steps": 300, "every": 100}
    assert same(nsjax.simulate(CRANK, schemes.moreau(), **options), run(steps=300, every=100))


def same(a, b) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def test_rows_and_times() -> None:
    traj = run(steps=300, every=100)
    assert traj.t.tolist() == [0.0, 100 * DT, 200 * DT, 300 * DT]  # t0 + k dt, not accumulated
    assert traj.q.shape == traj.v.shape == (4, 3)
    assert traj.gap.shape == traj.impulse_normal.shape == (4, 4)
    assert traj.impulse_tangential.shape == (4, 4, 1)
    assert traj.constraint_impulse.shape == (4, 0)
    assert np.array_equal(traj.q[0], CRANK.state.q)
    assert not traj.impulse_normal[0].any()
    assert traj.status == 0
    traj.raise_for_status()


def test_time_instead_of_steps() -> None:
    assert same(run(steps=300, every=100).q, run(time=300 * DT, every=100).q)


def test_saving_less_often_accumulates_the_same_books() -> None:
    fine, coarse = run(steps=1000), run(steps=1000, every=250)
    assert same(fine.q[::250], coarse.q)
    for name in ("impulse_normal", "impulse_tangential", "impacts", "closed_time", "iterations"):
        whole = getattr(fine, name)[1:].reshape(4, 250, *getattr(fine, name).shape[1:])
        # sums in another order differ by rounding
        np.testing.assert_allclose(whole.sum(1), getattr(coarse, name)[1:], rtol=1e-12, atol=1e-18)
    np.testing.assert_array_equal(fine.gap_min[1:].reshape(4, 250, 4).min(1), coarse.gap_min[1:])
    assert fine.impacts.sum() > 0


def test_continuation_is_bit_identical() -> None:
    whole = run(steps=1000, every=100)
    first = run(steps=400, every=100)
    second = run(steps=600, every=100, carry=first.carry)
    assert same(whole.q[4:], second.q)
    assert same(whole.t[4:], second.t)
    assert same(whole.carry, second.carry)


def test_a_carry_of_another_scheme_is_refused() -> None:
    ball = models.bouncing_ball()
    first = nsjax.simulate(*ball, schemes.moreau(), dt=1e-3, steps=10)
    with pytest.raises(
        InputError, match=r"carry: it belongs to a run of moreau, not of bathe; continue with"
    ):
        nsjax.simulate(*ball, schemes.bathe(), dt=1e-3, steps=10, carry=first.carry)
    # these two remember the same
    alpha = nsjax.simulate(*ball, schemes.generalized_alpha(), dt=1e-3, steps=10)
    with pytest.raises(InputError, match=r"a run of generalized_alpha, not of bathe"):
        nsjax.simulate(*ball, schemes.bathe(), dt=1e-3, steps=10, carry=alpha.carry)
    other = models.block(dimension=2)
    with pytest.raises(
        InputError, match=r"state.q has shape \(1,\)|its memory does not fit moreau and this system"
    ):
        nsjax.simulate(*other, schemes.moreau(), dt=1e-3, steps=10, carry=first.carry)
    state = first.carry.carry.state  # as the sentence says
    more = nsjax.simulate(ball.system, ball.params, state, schemes.bathe(), dt=1e-3, steps=10)
    np.testing.assert_allclose(more.t[[0, -1]], [1e-2, 2e-2])
    np.testing.assert_allclose(more.v[-1, 0], -9.81 * 2e-2)


def test_continuation_with_another_step_restarts_the_count() -> None:
    first = run(steps=400, every=100)
    second = nsjax.simulate(*CRANK, schemes.moreau(), dt=DT / 2, steps=100, every=50, carry=first.carry)
    np.testing.assert_array_equal(second.t, first.t[-1] + np.array([0, 50, 100]) * (DT / 2))


def test_eager_start_is_that_of_an_optimised_program() -> None:
    """Operations of both programs are the same, so that starts differ by their rounding alone."""
    make = schemes.generalized_alpha
    system, params, state = CRANK
    program, dt = LoopProgram(system=system, keep=("gap",), events=0), np.asarray(DT)
    one, two = (begin(program, make(), params, state, dt, None) for begin in (begin_eager_run, begin_run))
    assert jax.tree.structure(one) == jax.tree.structure(two)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_another_length_or_number_does_not_compile_again() -> None:
    run(steps=10)
    programs = _advance._cache_size(), begin_eager_run._cache_size()
    run(steps=20_000, every=2)  # several chunks of rows
    run(steps=37)
    nsjax.simulate(*CRANK, schemes.moreau(contact_tolerance=1e-9), dt=np.float64(1e-4), steps=10)
    changed = models.slider_crank(friction=np.float64(0.3), clearance=jnp.asarray(2e-3), torque=1)
    nsjax.simulate(*changed, schemes.moreau(), dt=1e-4, steps=10)
    assert (_advance._cache_size(), begin_eager_run._cache_size()) == programs


def test_save_keeps_what_was_asked_for() -> None:
    traj = run(steps=300, every=100, save=["impacts", "gap_min"])
    assert traj.impacts.shape == (4, 4)
    assert traj.gap_min.shape == (4, 4)
    assert all(getattr(traj, name) is None for name in ROWS if name not in ("impacts", "gap_min"))
    assert traj["energy"].shape == (4,)


@pytest.mark.slow
def test_impact_list_agrees_with_the_rows() -> None:
    traj = run(steps=1000, events=12)
    rows, contacts = np.nonzero(traj.impacts)
    count = int(traj.events.count)
    assert 4 <= count == traj.impacts.sum() <= 12
    # the instant lies inside the step, or before it, where the midpoint saw the gap late
    late = np.asarray(traj.t)[rows] - np.asarray(traj.events.time[:count])
    assert np.all((late >= 0.0) & (late <= 2.0 * DT))
    np.testing.assert_array_equal(traj.events.contact[:count], contacts)
    assert np.all(traj.events.contact[count:] == -1)
    np.testing.assert_array_equal(traj.events.impulse_normal[:count], traj.impulse_normal[rows, contacts])
    # Newton's law with restitution 0.4, to the solver's tolerance
    np.testing.assert_allclose(
        traj.events.rate_after[:count], -0.4 * np.asarray(traj.events.rate_before[:count]), rtol=1e-8
    )
    few = run(steps=1000, events=3)
    assert int(few.events.count) == count
    np.testing.assert_array_equal(few.events.time, traj.events.time[:3])


@pytest.mark.slow
def test_mean_forces_belong_to_the_time_since_the_previous_row():
    problem = models.slider_crank()

    def run(v):
        start = dataclasses.replace(problem.state, v=v)
        return nsjax.simulate(
            problem.system, problem.params, start, schemes.moreau(), dt=1e-4, steps=60, every=3,
            gradient="discrete",
        )  # fmt: skip

    speeds = jnp.asarray([[150.0, -75.0, 0.0], [140.0, -70.0, 0.0]])
    batch = jax.vmap(run)(speeds)
    assert batch.mean_force_normal.shape == (2, 21, 4)
    assert batch.mean_force_tangential.shape == (2, 21, 4, 1)
    assert batch.mean_constraint_force.shape == (2, 21, 0)
    np.testing.assert_allclose(batch.mean_force_normal * 3e-4, batch.impulse_normal, rtol=1e-9)
    assert batch.impulse_normal.any()
    one = run(speeds[1])
    np.testing.assert_allclose(batch.mean_force_tangential[1], one.mean_force_tangential, atol=1e-9)
    bare = nsjax.simulate(*problem, schemes.moreau(), dt=1e-4, steps=60, save=["gap"])
    with pytest.raises(InputError, match="mean forces need impulse_normal, which is not saved"):
        bare.mean_force_normal  # noqa: B018
