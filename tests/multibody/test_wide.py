"""A mass matrix of 26 rows, beyond `nsjax.linalg.INLINE_LIMIT`: pendulums without couplings."""

import dataclasses

import jax
import numpy as np
import pytest

import nsjax
from nsjax import Problem, schemes
from nsjax.multibody import assemble, body, contact, hinge, plane, point
from tests.common.kernel import BLOCKERS, is_one_kernel, loop_text

COUNT, ALONE = 26, (0, 12, 25)
ANGLES = np.random.default_rng(34).uniform(-1.2, -0.2, COUNT)  # from the x axis


def pendulums(which: tuple[int, ...]) -> Problem:
    """Pendulums on one pivot with dry friction, some of which meet a floor."""
    parts = []
    for k in which:
        parts += [
            body(f"p{k}", mass=1.0 + 0.1 * k, inertia=0.1, com=0.5),
            hinge(f"h{k}", "ground", f"p{k}", friction=0.01 * k),
        ]
        if k in ALONE:
            end = point(f"p{k}", at=1.0)
            parts += [contact(f"c{k}", end, plane(at=(0.0, -0.95)), restitution=0.5, friction=0.3)]
    start = {f"h{k}": (ANGLES[k], -3.0) for k in which}
    return assemble(*parts, gravity=9.81, start=start)


def test_the_time_loop_is_one_kernel() -> None:
    text = loop_text(pendulums(tuple(range(COUNT))), schemes.moreau(), 2e-3)
    assert not BLOCKERS.findall(text)
    assert is_one_kernel(text)


@pytest.mark.parametrize("slopes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_each_moves_as_if_alone(slopes: bool) -> None:
    """Through an impact of each of three; ``slopes``: and its reverse derivative by the start."""
    scheme = schemes.moreau()

    def ends(which: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        problem = pendulums(which)

        def after(q: jax.Array) -> jax.Array:
            state = dataclasses.replace(problem.state, q=q)
            given = problem.system, problem.params, state, scheme
            return nsjax.simulate(*given, dt=2e-3, steps=150, every=150).q[-1]

        q = np.asarray(problem.state.q)
        if not slopes:
            return np.asarray(after(q)), np.zeros(len(q))
        found, back = jax.vjp(after, q)
        return np.asarray(found), np.asarray(back(np.ones(len(q)))[0])

    all_ends, all_slopes = ends(tuple(range(COUNT)))
    for k in ALONE:
        end, slope = ends((k,))
        assert end[0] > -1.26  # the angle at the floor; it would fall to -2
        # rounding of sums in another order
        np.testing.assert_allclose(all_ends[k], end[0], rtol=1e-12)
        # curvatures of gaps are second differences with errors of 1e-7 (1 + |v|)^2, see
        # `nsjax.contact.events._reach`: some others turn at up to 8 rad/s
        np.testing.assert_allclose(all_slopes[k], slope[0], rtol=0, atol=1e-5)
