"""What programs depend on, told by one digest: what differs has another, what cannot be told has none."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import inspect
import math
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes
from nsjax.contact import newton
from nsjax.core.system import add
from nsjax.fem import beam
from nsjax.jaxtools import fingerprint as module
from nsjax.jaxtools.fingerprint import UnknownValueError, fingerprint, package_held
from nsjax.linalg import BlockDiagonal
from nsjax.loop import LoopProgram
from nsjax.multibody import assemble, joints
from nsjax.simulate import rows_of


def program(**options: object) -> LoopProgram:
    return LoopProgram(system=models.bouncing_ball(**options).system, keep=("gap",), events=0)


def test_different_values_differ() -> None:
    values = [
        None, False, 0, 0.0, -0.0, 0j, "0", b"0", (), [], {}, (0,), ((),), [0], {"a": 0}, {"b": 0},
        {"a": 1},
        frozenset(), frozenset({1}), frozenset({1, 2}), np.zeros(2), np.zeros(3), np.zeros((2, 1)),
        np.zeros(2, np.float32), np.array([0.0, 1e-300]), jnp.zeros(2), np.float64(0.0), np.dtype(float),
        add, functools.partial(add, 1.0), functools.partial(add, 2.0), BlockDiagonal(3),
        BlockDiagonal(2), BlockDiagonal(3).times, BlockDiagonal(2).times, math.sin, jnp.sin,
        jnp.cos, np.sin, float, jnp.float64,
    ]  # fmt: skip
    found = [module._Digest().alone(x) for x in values]
    assert len(set(found)) == len(values)
    assert found == [module._Digest().alone(x) for x in values]
    assert fingerprint((1, 2), 3) != fingerprint((1, 2, 3))


def test_models_and_schemes_differ_by_their_choices() -> None:
    choices = [program(), program(balls=2), program(dimension=2)]
    made = [module._Digest().alone((x, schemes.moreau())) for x in choices]
    made += [module._Digest().alone((choices[0], entry.factory())) for entry in schemes.REGISTRY.values()]
    made += [module._Digest().alone((dataclasses.replace(choices[0], keep=()), schemes.moreau()))]
    assert len(set(made)) == len(made) - 1  # moreau stands there twice
    assert fingerprint(program()) == fingerprint(program())


def test_every_model_and_scheme_has_one() -> None:
    for name, entry in models.REGISTRY.items():
        found = module._Digest().alone(LoopProgram(system=entry.factory().system, keep=(), events=0))
        assert len(found) == 64, name


def test_settings_of_jax_count() -> None:
    with jax.default_matmul_precision("highest"):
        inside = fingerprint(1)
    assert inside != fingerprint(1)


def mine(t, q, v, p):
    return -q


class Mine:
    pass


@pytest.mark.parametrize(
    ("stranger", "says"),
    [
        (mine, "the function mine of"),
        (lambda q: q, "the function .*lambda"),
        (Mine, "the class Mine"),
        (Mine(), "an object of .*Mine"),
        (functools.partial(mine, 1.0), "the function mine"),
        (jax.jit(mine), "the function mine"),
        (functools.wraps(add)(lambda q, xi: q), "the function add of nsjax"),
        ({"a": [mine]}, "the function mine"),
        (np.array([mine], dtype=object), "an object of numpy.ndarray"),
        (np.random.default_rng(), "an object of numpy.random"),
    ],
)
def test_what_belongs_to_others_is_unknown(stranger: object, says: str) -> None:
    with pytest.raises(UnknownValueError, match=says):
        fingerprint(stranger)


def test_what_holds_itself_is_unknown() -> None:
    x: list[object] = []
    x.append(x)
    with pytest.raises(UnknownValueError, match="a list that holds itself"):
        fingerprint(x)


def test_what_is_hung_on_a_record_is_unknown() -> None:
    structure = BlockDiagonal(3)
    object.__setattr__(structure, "times", mine)
    with pytest.raises(UnknownValueError, match="times of a BlockDiagonal, which is no field of it"):
        fingerprint(structure)


def test_a_users_system_is_unknown() -> None:
    system = dataclasses.replace(models.bouncing_ball().system, force=mine)
    with pytest.raises(UnknownValueError, match="the function mine"):
        fingerprint(LoopProgram(system=system, keep=(), events=0))


def test_the_package_counts_as_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(program())
    name = next(k for k, x in vars(newton).items() if type(x) in (int, float) and k.isupper())
    with monkeypatch.context() as patch:
        patch.setattr(newton, name, 2 * getattr(newton, name) + 1)
        assert fingerprint(program()) != before
    function = next(k for k, x in vars(newton).items() if getattr(x, "__module__", "") == newton.__name__)
    with monkeypatch.context() as patch:
        patch.setattr(newton, function, add)
        assert fingerprint(program()) != before
        patch.setattr(newton, function, mine)
        with pytest.raises(UnknownValueError, match=r"the function mine of .*, put into the package"):
            fingerprint(program())
        # a decorated function of ours that goes by its name
        patch.setattr(newton, function, functools.wraps(add)(lambda q, xi: q))
        with pytest.raises(UnknownValueError, match=r"the function add of .*, put into the package"):
            fingerprint(program())
    with monkeypatch.context() as patch:
        patch.setattr(BlockDiagonal, "times", lambda *_: None)
        with pytest.raises(UnknownValueError, match="put into the package"):
            fingerprint(program())
    assert fingerprint(program()) == before
    # what the program does not use
    monkeypatch.setattr(beam, "_OTHER", 1.0, raising=False)
    assert fingerprint(program()) == before


def test_the_package_may_be_held_for_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    with package_held():
        before = fingerprint(program())
        monkeypatch.setattr(newton, "_OTHER", 1.0, raising=False)
        with package_held():
            assert fingerprint(program()) == before
            assert fingerprint(2, program()) != before
    assert fingerprint(program()) != before


def test_registered_functions_of_others_make_everything_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    for stranger, says in (
        (mine, "the function mine"),
        (Mine(), "an object of .*Mine"),
        (Mine, "the class"),
    ):
        monkeypatch.setitem(joints.KINDS, "mine", stranger)
        with package_held():
            for _ in range(2):  # what was refused is not held
                with pytest.raises(UnknownValueError, match=says):
                    fingerprint(assemble)


RUN = """
import nsjax
from nsjax import models
from nsjax.jaxtools.fingerprint import fingerprint
nsjax.configure(cache=False)
print(fingerprint(models.slider_crank().system, {'a', 'b', 'c'}))
"""


def test_it_is_the_same_in_every_process() -> None:
    """Whatever the order of sets, and whatever else is loaded."""
    everything = "import nsjax.cli, nsjax.fem.rod, nsjax.multibody.assemble, nsjax.models.registry"
    found = {
        subprocess.run(
            [sys.executable, "-c", loaded + RUN], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed, loaded in ((1, ""), (2, everything))
    }  # fmt: skip
    assert len(found) == 1


PARTS = [
    name
    for name in (x.name for x in pkgutil.walk_packages(nsjax.__path__, "nsjax."))
    if module._ours(name) and not name.endswith("__main__")
]
"""Modules that a program may use."""


def imported(file: ast.Module) -> Iterator[ast.ImportFrom | ast.Import]:
    """Imports of a module that are executed, wherever they stand."""
    waiting: list[ast.AST] = [file]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        if not (isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"):
            waiting += ast.iter_child_nodes(node)


@pytest.mark.parametrize("package", ["contact", "core", "linalg", "loop", "multibody", "schemes"])
def test_a_module_stands_for_all_that_it_imports(package: str) -> None:
    """Functions and classes by their modules, constants by value, so that none is missing in a digest."""
    for name in (x for x in PARTS if x.split(".")[1] == package):
        digest = module._Digest()
        digest.add_module(name)
        for line in imported(ast.parse(inspect.getsource(importlib.import_module(name)))):
            home = getattr(line, "module", None) or line.names[0].name
            if not home.startswith("nsjax."):
                continue
            assert line.col_offset == 0, f"{name} imports {home} inside a function, which no digest sees"
            things = [getattr(importlib.import_module(home), x.name) for x in line.names]
            homes = {getattr(x, "__module__", None) or getattr(x, "__name__", None) for x in things}
            assert {x for x in homes if module._ours(x)} <= digest.modules | {name}, (name, home)


def test_parts_apart_are_not_of_runs() -> None:
    digest = module._Digest()
    digest.add((rows_of, program()))
    names = set(list(module._modules(digest.modules))[::2])
    assert {"nsjax.loop", "nsjax.simulate", "nsjax.contact.newton", "nsjax.core.system"} <= names
    assert not {name for name in names if name.startswith(tuple(f"nsjax.{part}" for part in module.APART))}
