"""Reverse mode in bounded memory: blocks, padding, sizes, warnings."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, models, schemes
from nsjax.core import memory
from nsjax.core.memory import check_rows
from nsjax.jaxtools.control_flow import lanes_around, plan_blocks, scan_blocks, tree_bytes
from nsjax.loop import LoopProgram
from nsjax.simulate import row_bytes
from nsjax.trajectory import ROWS

AT = jnp.array([0.8, 9.81])


def objective(x: jax.Array, steps: int, every: int) -> jax.Array:
    """Of all rows and of accumulated quantities, with a bounce about every 300 steps."""
    problem = models.bouncing_ball(height=0.05, restitution=x[0], gravity=x[1])
    traj = nsjax.simulate(
        *problem, schemes.moreau(), dt=7e-4, steps=steps, every=every, save=["impulse_normal", "gap_min"]
    )
    return jnp.sum(traj.q**2) + jnp.sum(traj.impulse_normal**2) + jnp.sum(traj.gap_min**2)


@pytest.mark.parametrize(("length", "budget"), [(1, 8), (30, 10**9), (37, 8), (37, 4096)])
def test_blocks_are_a_scan(length: int, budget: int) -> None:
    """Also for a prime length, whose last block is padded, and for rows of nothing (no joints)."""

    def body(x: jax.Array, _: None) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        x = jnp.sin(1.3 * x) + 0.1
        return x, (x * x, x[:0])

    def total(scan, x):
        last, (rows, nothing) = scan(x)
        assert rows.shape == (length, 2)
        assert nothing.shape == (length, 0)
        return jnp.sum(last * jnp.array([1.0, 2.0])) + jnp.sum(rows * jnp.arange(length)[:, None])

    at = jnp.array([0.3, 0.7])
    plain = jax.value_and_grad(lambda x: total(lambda c: jax.lax.scan(body, c, None, length=length), x))
    size = plan_blocks(length, tree_bytes(at), 0, budget).size
    cut = jax.value_and_grad(lambda x: total(lambda c: scan_blocks(body, c, length, size), x))
    # sums in the same order: only fusion may differ
    np.testing.assert_allclose(cut(at)[0], plain(at)[0], rtol=1e-14)
    np.testing.assert_allclose(cut(at)[1], plain(at)[1], rtol=1e-13)


def stored(f, *arguments) -> int:
    """Bytes of temporary memory of the compiled program."""
    return jax.jit(f).lower(*arguments).compile().memory_analysis().temp_size_in_bytes


def test_blocks_bound_the_memory() -> None:
    """1e6 steps of 8 bytes: twice 1000 carries, not 1e6."""

    def last(x, size):
        return scan_blocks(jax.checkpoint(lambda c, _: (jnp.sin(c), None)), x, 10**6, size)[0]

    assert plan_blocks(10**6, 8, 0).size == 1000
    assert stored(jax.grad(lambda x: last(x, 1000)), 0.5) < 10 * 8 * 1000
    assert stored(jax.grad(lambda x: last(x, 10**6)), 0.5) >= 8 * 10**6


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "every"), [(998, 499), (1000, 1)])
def test_runs_in_blocks_have_the_same_derivative(
    steps: int, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of a row (of a prime number of steps), and groups of rows, against one block."""
    gradient = [jax.jit(jax.grad(objective), static_argnums=(1, 2))(AT, steps, every)]
    monkeypatch.setattr(memory, "REVERSE_BYTES", 1000)
    cut = jax.jit(jax.grad(lambda x: objective(x, steps, every)))(AT)
    assert np.all(np.isfinite(cut))
    # the same operations in the same order, in another program
    np.testing.assert_allclose(cut, gradient[0], rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 100_000])
def test_a_hundred_thousand_steps_take_little_memory(every: int) -> None:
    def last(x):
        problem = models.slider_crank(friction=x[0], restitution=x[1])
        traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-6, steps=10**5, every=every, save=[])
        return traj.q[-1, 0]

    rows = 10**5 // every * 7 * 8  # t, q, v and, in reverse, their cotangents
    assert stored(jax.grad(last), jnp.array([0.1, 0.4])) < 2**20 + 3 * rows


def test_rows_that_do_not_fit_are_refused_or_warned_of() -> None:
    """A gigabyte is 2^30 bytes: 2000 rows of 1000 bytes, twice, are 0.00373 GiB."""
    with pytest.warns(
        UserWarning, match=r"2000 rows of 1000 bytes and .* 0.00373 GiB.*raise every.*jacfwd"
    ):
        check_rows(2000, 1000, traced=True, limit=10**6)
    with pytest.raises(InputError, match=r"2000 rows of 1000 bytes: their times alone would take"):
        check_rows(2000, 1000, traced=True, limit=10**4)
    with pytest.raises(
        InputError, match=r"bytes, while they are joined, would take 0.00373 GiB.*save=\[...\]$"
    ):
        check_rows(2000, 1000, traced=False, limit=10**6)
    with pytest.raises(
        InputError, match=r"simulate: 1000000000000 rows of .* alone would take 7.45e\+03 GiB"
    ):
        jax.eval_shape(lambda x: objective(x, 10**12, 1), AT)


def test_rows_are_counted_before_a_run() -> None:
    problem = models.bouncing_ball()
    run = functools.partial(nsjax.simulate, *problem, schemes.moreau(), dt=1e-6)
    with pytest.raises(InputError, match=r"1000000000000 rows of 24 bytes, while"):  # t, q, v
        run(steps=10**12, save=[])
    with pytest.raises(InputError, match=r"events = 10000000000 would take 373 GiB, of .* ask for fewer"):
        run(steps=10, events=10**10)
    for save in (ROWS, ["gap"], ["margin", "notes"]):
        traj = run(steps=10, save=save)
        kept = [
            x for x in (traj.t, traj.q, traj.v, *(getattr(traj, name) for name in ROWS)) if x is not None
        ]
        program = LoopProgram(system=problem.system, keep=tuple(save), events=0)
        assert row_bytes(program) == sum(np.asarray(x)[0].nbytes for x in kept)


def test_what_stands_around_a_run_is_seen() -> None:
    seen = []

    def f(x):
        lanes, moving = lanes_around({"x": x, "y": 1.0, "z": jax.lax.stop_gradient(x)})
        seen.append((lanes, [y is x for y in moving]))
        return jnp.sum(x * x)

    many = jnp.ones((3, 7, 2))
    jax.vmap(jax.vmap(jax.grad(f)))(many)
    jax.vmap(f)(many)
    f(many)
    assert seen == [(21, [True]), (3, []), (1, [])]


@pytest.mark.filterwarnings("error")
def test_rows_that_fit_are_not() -> None:
    for traced in (True, False):
        check_rows(2000, 1000, traced=traced, limit=4 * 10**6)
    jax.eval_shape(lambda x: objective(x, 1000, 1), AT)
