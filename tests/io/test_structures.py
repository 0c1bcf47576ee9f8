"""Tangents that schemes keep from step to step are read again, whatever the structure of the system."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax import linalg, models, schemes
from nsjax.io import codec
from nsjax.io.codec import describe, rebuild, record_types
from nsjax.linalg import Arrow, BlockTridiagonal, Pattern, Sparse
from nsjax.loop import LoopProgram, begin_run
from tests.design import slow_but

CHAIN = [(i, i + 1) for i in range(7)]
STRUCTURES = {
    "dense": linalg.Dense(),
    "block tridiagonal": BlockTridiagonal(2),
    "block diagonal": linalg.BlockDiagonal(1),
    "sparse": Sparse(Pattern.of_elements(8, CHAIN)),
    "arrow": Arrow((0, 7), BlockTridiagonal(1)),
    "arrow of a sparse one": Arrow((0,), Sparse(Pattern.of_elements(7, CHAIN[:-1]))),
    "lattice": linalg.Lattice((2, 2, 2), 1),
    "velocities and multipliers": linalg.Interleaved(2, joint=2).saddle,
}


@pytest.mark.parametrize("name", slow_but(STRUCTURES, "block diagonal"))
def test_an_eliminated_tangent_comes_back(name: str) -> None:
    structure = STRUCTURES[name]
    n = 16 if name == "velocities and multipliers" else 8
    done, _ = structure.eliminate(structure.tangent(lambda x: 2.0 * x, jnp.zeros(n)), jnp.eye(n, 2))
    arrays: dict[str, np.ndarray] = {}
    description = json.loads(json.dumps(describe("memory", done, arrays)))
    again = rebuild(description, arrays, {})
    assert jax.tree.structure(again) == jax.tree.structure(done)
    np.testing.assert_array_equal(again.solve(jnp.arange(float(n))), done.solve(jnp.arange(float(n))))
    assert [x for x in map(codec.public_name, record_types(done).values()) if ":" in x] == []


def test_what_a_run_of_the_flexible_crank_carries_has_public_names() -> None:
    problem, scheme = models.slider_crank_flexible(), schemes.moreau_theta()
    program = LoopProgram(system=problem.system, keep=(), events=2)
    run = jax.eval_shape(lambda: begin_run(program, scheme, problem.params, problem.state, 1e-5, None))
    found = {codec.public_name(cls) for cls in record_types(run.next).values()}
    assert "linalg.arrow" in found
    assert [name for name in found if ":" in name] == []


def test_a_class_path_is_found_where_the_class_has_a_name() -> None:
    """Files written before the class had a name hold its path of then."""
    assert codec.find_record("nsjax.linalg.arrow:Arrow") is Arrow
