"""Programs of runs in transformations outlive the process, and a repeated gradient traces nothing."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes
from nsjax.jaxtools import cache, kept_derivatives
from nsjax.jaxtools.kept_derivatives import kept_run
from nsjax.jaxtools.owned import owned

CHILD = """
import json, sys
import jax, jax.numpy as jnp, numpy as np
import nsjax
from nsjax import loop, models, schemes
from nsjax.jaxtools import implicit
traced, take = [], loop._taken_step
loop._taken_step = lambda *given: traced.append(1) or take(*given)
nsjax.configure({options})
{change}
ball = models.bouncing_ball(height=0.1, restitution=0.7)
def run(drop):
    given = ball.replace(initial_q=jnp.stack([drop]))
    return nsjax.simulate(*given, {scheme}, dt=1e-3, steps={steps}, every={steps} // 3)
height = lambda drop: run(drop).q[-1, 0]
both = lambda drop: jnp.sum(run(drop).v ** 2) + run(drop).q[-1, 0]
drop = jnp.asarray(0.1)
found = {{
    "grad": jax.grad(height)(drop), "inside jit": jax.jit(jax.grad(both))(drop),
    "value": jax.jit(height)(drop), "batch": jax.vmap(jax.grad(height))(jnp.array([0.1, 0.2])),
    "values": jax.jit(jax.vmap(height))(jnp.array([0.1, 0.2])),
}}
if {kinds}:
    found["forward"] = jax.jvp(height, (drop,), (jnp.ones(()),))[1]
    found["jacobian"] = jax.jit(jax.jacfwd(lambda x: run(x).q[:, 0]))(drop)
kept = len(traced)
# that of another size needs a trace, of which the same data come
found["larger batch"] = jax.vmap(jax.grad(height))(jnp.array([0.1, 0.2, 0.1]))
if {all}:
    found |= {{
        "forward": jax.jvp(height, (drop,), (jnp.ones(()),))[1],
        "of a batch": jax.grad(lambda x: jnp.sum(jax.vmap(height)(x)))(jnp.array([0.1, 0.2])),
        "rows": jax.jacrev(lambda x: run(x).q[:, 0])(drop),
        "scan": jax.grad(lambda x: jax.lax.scan(lambda c, _: (height(c), None), x, None, 2)[0])(drop),
        "linearize": jax.linearize(height, drop)[1](jnp.ones(())),
        "checkpoint": jax.grad(jax.checkpoint(height))(drop),
    }}
print(json.dumps([kept, {{k: np.asarray(x).tolist() for k, x in found.items()}}]))
"""


KINDS = "implicit.LARGE_WITH_TANGENTS = 0"
"""By kinds of steps: every program counts as a large one, and runs have more than a thousand steps."""


BLOCKS = "from nsjax.jaxtools import control_flow; control_flow.REVERSE_BYTES = 9_000"
"""So few bytes that reverse mode goes by blocks of steps."""


def child(folder: pathlib.Path, scheme: str, options: str = "", every: bool = False) -> tuple[int, Any]:
    """Number of steps that transformations with kept programs traced, and all derivatives."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    environment["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    name, _, change = scheme.partition(", ")
    given = {"kinds": bool(change), "scheme": name, "change": change, "steps": 1002 if change else 300}
    text = CHILD.format(options=options, all=every, **given)
    done = subprocess.run(
        [sys.executable, "-c", text], env=environment, capture_output=True, text=True, cwd=folder.parent
    )
    assert done.returncode == 0, done.stderr
    made, found = json.loads(done.stdout)
    return made, {k: np.asarray(x) for k, x in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [
    "schemes.moreau()", "schemes.generalized_alpha()", "schemes.localized(schemes.moreau())",
    f"schemes.moreau(), {KINDS}", f"schemes.moreau(), {KINDS}; {BLOCKS}",
])  # fmt: skip
def test_a_second_process_traces_nothing(tmp_path: pathlib.Path, scheme: str) -> None:
    """All transformations have the values of a process without kept programs."""
    folder = tmp_path / "kept"
    folder.mkdir()
    plain = child(folder, scheme, "cache=False", True)[1]
    first = child(folder, scheme, every=True)
    second = child(folder, scheme)
    assert first[0] > 0
    assert second[0] == 0
    for name, value in plain.items():
        # one kernel or several round differently
        np.testing.assert_allclose(first[1][name], value, rtol=1e-12, atol=1e-13, err_msg=name)
    for name, value in second[1].items():
        np.testing.assert_array_equal(value, first[1][name], err_msg=name)


def test_a_repeated_gradient_traces_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of another function of an equal mechanism neither."""
    traced, take = [], nsjax.loop._taken_step
    monkeypatch.setattr("nsjax.loop._taken_step", lambda *given: traced.append(1) or take(*given))

    def slope(drop: float) -> float:
        ball = models.bouncing_ball(height=0.1, restitution=0.7, radius=0.0)

        def height(x: Any) -> Any:
            run = nsjax.simulate(
                *ball.replace(initial_q=[x]), schemes.moreau(), dt=1e-3, steps=200, every=200
            )
            return run.q[-1, 0]

        return float(jax.grad(height)(drop))

    first = slope(0.1)
    assert traced
    del traced[:]
    assert slope(0.1) == first
    assert slope(0.11) != first
    assert not traced


# The operation, of small functions.


@dataclasses.dataclass(frozen=True)
class Model:
    """Something that has programs, in place of a system."""

    factor: float


GIVEN = (Model(3.0),)


def cubed(given: tuple[Model], x: Any, y: Any) -> Any:
    """Of floats and an integer, with an integer and an unused float among its results."""
    return {"a": given[0].factor * jnp.sin(x["a"]) * y, "b": jnp.sum(x["a"] ** 3) * x["k"], "k": x["k"] + 1}


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setattr(cache, "_folder", lambda: tmp_path / "lowered")
    monkeypatch.setattr(cache, "fingerprint", lambda function, static, *arguments: f"{function.__name__}")
    monkeypatch.setattr(kept_derivatives, "owned", lambda _: {})  # as in a new process
    return tmp_path / "lowered"


X = {"a": np.array([0.3, -0.7]), "k": np.array(2)}


def results(call: Any) -> list[Any]:
    """Derivatives of all kinds of a function of `cubed`'s arguments."""
    one = lambda a, y: jnp.sum(call({**X, "a": a}, y)["a"] ** 2)  # noqa: E731
    two = lambda a, y: call({**X, "a": a}, y)["b"] + one(a, y)  # noqa: E731
    a, y = X["a"], np.array(0.4)
    many = np.array([0.4, 0.6, -0.1])
    return [
        jax.grad(one)(a, y), jax.grad(two, (0, 1))(a, y), jax.grad(two)(a, y),
        jax.jit(jax.grad(one, 1))(a, y), jax.jvp(two, (a, y), (a, y)),
        jax.vmap(jax.grad(two), (None, 0))(a, many), jax.jacrev(lambda a: call({**X, "a": a}, y)["a"])(a),
        jax.jacfwd(jax.grad(two))(a, y), jax.jacrev(jax.grad(two))(a, y), jax.hessian(one, 1)(a, y),
        jax.grad(lambda y: jnp.sum(jax.vmap(lambda x: two(a, x))(y)))(many), call(X, y),
    ]  # fmt: skip


@pytest.mark.slow
def test_every_derivative_of_a_kept_function(folder: pathlib.Path) -> None:
    """From programs just made, and from their files."""
    wanted = results(lambda x, y: cubed(GIVEN, x, y))
    for _ in range(2):
        found = results(jax.jit(lambda x, y: kept_run(cubed, GIVEN, x, y)))
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-14), found, wanted)
    assert len(list(folder.glob("*"))) > 4


def test_kept_programs_are_not_traced(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slope() -> Any:
        call = jax.jit(lambda x, y: kept_run(cubed, GIVEN, x, y))
        return jax.grad(lambda y: jnp.sum(call(X, y)["a"]))(0.4)

    first = slope()

    def refused(*_: Any) -> Any:
        raise AssertionError("traced")

    monkeypatch.setattr(kept_derivatives._Run, "_traced", property(refused))
    assert slope() == first


def test_the_digest_of_a_trace_knows_no_names() -> None:
    """JAX names the variables of a function anew or as those of an equal one, by what it has traced."""
    less = lambda: jax.jit(lambda x, y: x - y)  # noqa: E731
    made = jax.make_jaxpr(lambda x, y: less()(x, y) * less()(jnp.sin(y), x))(1.0, 2.0)
    first = next(x.params["jaxpr"] for x in made.eqns if "jaxpr" in x.params)

    def with_last(inner: Any) -> Any:
        last = [x for x in made.eqns if "jaxpr" in x.params][-1]
        lines = [x.replace(params=x.params | {"jaxpr": inner}) if x is last else x for x in made.eqns]
        return made.replace(jaxpr=made.jaxpr.replace(eqns=lines))

    same = with_last(first.replace(jaxpr=first.jaxpr.replace(eqns=[*first.eqns])))
    other = with_last(jax.make_jaxpr(lambda x, y: y - x)(1.0, 2.0))
    assert str(same) != str(made)
    assert cache.operations_digest(same) == cache.operations_digest(made)
    assert cache.operations_digest(other) != cache.operations_digest(made)


def test_data_of_a_function_traced_in_another_order_are_refused(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They might be taken for others. A derivative whose program is kept needs no trace."""
    call = lambda: jax.jit(lambda x, y: kept_run(cubed, GIVEN, x, y))  # noqa: E731
    slope = lambda name: jax.grad(lambda y: jnp.sum(call()(X, y)[name]))(0.4)  # noqa: E731
    first = slope("a")
    monkeypatch.setattr(kept_derivatives, "operations_digest", lambda _: "another")
    assert slope("a") == first
    with pytest.raises(RuntimeError, match="another order"):
        slope("b")


def test_without_the_extra_for_files(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is exported, and all derivatives are traced."""

    def missing(*_: Any) -> Any:
        raise ModuleNotFoundError("flatbuffers")

    monkeypatch.setattr(cache.export, "export", missing)
    found = results(jax.jit(lambda x, y: kept_run(cubed, GIVEN, x, y)))
    wanted = results(lambda x, y: cubed(GIVEN, x, y))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-14), found, wanted)


# First derivatives, whose programs are compiled without optimisation.


def test_first_derivatives_of_every_kind(folder: pathlib.Path) -> None:
    """Those that are none of reverse mode alone are left to others."""
    taken = []

    def soon(x: Any, y: Any) -> Any:
        found = kept_derivatives.kept_soon(9, cubed, GIVEN, x, y)
        taken.append(found is not None)
        return cubed(GIVEN, x, y) if found is None else found

    found, wanted = results(soon), results(lambda x, y: cubed(GIVEN, x, y))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-14), found, wanted)
    assert any(taken)
    assert not all(taken)
    del taken[:]
    for call in (jax.jit(soon), soon):
        call(X, 0.4)
    jax.jit(jax.grad(lambda y: soon(X, y)["b"]))(0.4)
    jax.jvp(lambda y: soon(X, y)["b"], (0.4,), (1.0,))
    jax.vmap(jax.grad(lambda y: soon(X, y)["b"]))(np.array([0.4, 0.6]))
    assert not any(taken)


@pytest.mark.slow
def test_few_steps_are_compiled_once_and_many_with_optimisation(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number is that of gradients outside `jax.jit`; both programs have the same derivative."""
    soon = kept_derivatives.compiled_once
    made: list[Any] = []
    monkeypatch.setattr(kept_derivatives, "compiled_once", lambda f: made.append(f) or soon(f))
    monkeypatch.setattr(kept_derivatives, "owned", owned)
    monkeypatch.setenv("NSJAX_FEW_STEPS", "500")
    ball = models.bouncing_ball(height=0.1, restitution=0.7)
    seen: list[int] = []
    whole = nsjax.simulate.__globals__["_whole_run"]
    monkeypatch.setitem(
        nsjax.simulate.__globals__, "_whole_run", lambda *given: seen.append(1) or whole(*given)
    )

    def height(x: Any) -> Any:
        # other rows than in other tests, which would count
        given = {"dt": 1e-3, "steps": 200, "every": 200, "save": ("gap_min",)}
        return nsjax.simulate(*ball.replace(initial_q=[x]), schemes.moreau(), **given).q[-1, 0]

    whole_found = float(jax.jit(jax.grad(height))(0.1))  # does not count
    del seen[:]
    found = [float(jax.grad(height)(0.1)) for _ in range(3)]
    assert len(made) == 2  # the function with its data, and the derivative
    assert len(seen) == 1
    assert found[0] == found[1]
    assert abs(found[2] / found[0] - 1.0) < 1e-12
    assert abs(whole_found / found[0] - 1.0) < 1e-12


def test_batches_of_a_kept_derivative_are_compiled_once(folder: pathlib.Path) -> None:
    """`jax.jacrev` outside `jax.jit` transposes a batch."""
    held: dict[Any, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_derivatives, "owned", lambda _: held)
        rows = jax.jacrev(lambda y: kept_derivatives.kept_soon(9, cubed, GIVEN, X, y)["a"])
        first = rows(0.4)
        for _ in range(3):
            np.testing.assert_array_equal(rows(0.4), first)
    runs = [x for x in held.values() if isinstance(x, kept_derivatives._Run)]
    held = [x for run in runs for x in run._held.values()]
    programs = [x for x in held if isinstance(x, kept_derivatives._Program)]
    assert [len(p._lanes) for p in programs] == [0, 1]
    assert all("soon" in vars(x) for x, _ in programs[1]._lanes.values())  # holds the compiled function
