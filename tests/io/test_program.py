"""Runs, sweeps and gradients as files: exported here, called in another process that has no model."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import io, models, schemes
from nsjax.multibody import assemble, body, hinge, joint_spring
from nsjax.types import record

SLIDER = models.slider_crank()


def _end(params, torque_scale):
    system, state = SLIDER.system, SLIDER.state
    params = dataclasses.replace(params, torque=params.torque * torque_scale)
    run = nsjax.simulate(system, params, state, schemes.moreau(), dt=1e-5, steps=200, every=100)
    return run.q[-1, 0], run


CALL = """
import json, sys
import numpy as np
import nsjax
nsjax.configure()
def refused(*_, **__):
    raise AssertionError("the model is asked for")
nsjax.models.slider_crank = nsjax.simulate = refused
program = nsjax.load_program(sys.argv[1])
np.savez(sys.argv[2], **{k: v for k, v in program(*program.arguments).items()})
"""


@pytest.mark.slow
def test_another_process(tmp_path: pathlib.Path) -> None:
    """A reverse gradient through impacts, called where neither model nor time loop can be had."""
    path, out = tmp_path / "gradient.nsjax", tmp_path / "out.npz"
    problem = models.bouncing_ball(height=0.05)

    def height(params):
        run = nsjax.simulate(problem.system, params, problem.state, schemes.moreau(), dt=1e-3, steps=150)
        return run.q[-1, 0]

    gradient = jax.grad(height)
    nsjax.export_program(path, gradient, problem.params)
    ended = subprocess.run(
        [sys.executable, "-c", CALL, str(path), str(out)], capture_output=True, check=False
    )
    assert ended.returncode == 0, ended.stderr.decode()[-2000:]
    here = jax.jit(gradient)(problem.params)
    with np.load(out) as there:
        assert set(there.files) == {f.name for f in dataclasses.fields(here)}
        assert float(there["restitution"]) != 0.0
        for name in there.files:  # another compilation of the same operations
            np.testing.assert_allclose(there[name], getattr(here, name), rtol=1e-12, atol=1e-15)


def test_mechanism(tmp_path: pathlib.Path) -> None:
    """Its parameters are a dict of records: another inertia is another run."""
    pendulum = assemble(
        body("rod", mass=1.0, inertia=0.01), hinge("pivot", "ground", "rod"),
        joint_spring("coil", "pivot", stiffness=2.0), start={"pivot": 0.3},
    )  # fmt: skip

    def end(params):
        run = nsjax.simulate(
            pendulum.system, params, pendulum.state, schemes.moreau(), dt=1e-3, steps=40, every=40, save=()
        )
        return run.v[-1]

    path = tmp_path / "pendulum.nsjax"
    nsjax.export_program(path, end, pendulum.params)
    program = nsjax.load_program(path)
    heavy = pendulum.replace({"rod.inertia": 0.1}).params
    found = [np.asarray(program(x)) for x in (pendulum.params, heavy)]
    assert np.abs(found[0] - found[1]) > 1e-3
    np.testing.assert_allclose(found[1], end(heavy), rtol=0, atol=1e-12)


def test_for_an_accelerator(tmp_path: pathlib.Path) -> None:
    """Lowered for CUDA without one: refused here with a sentence; for both it runs here."""

    def angle(params):
        return _end(params, 1.0)[0]

    path = tmp_path / "cuda.nsjax"
    nsjax.export_program(path, angle, SLIDER.params, platforms=["cuda"])
    with pytest.raises(nsjax.InputError, match=r"program for cuda, and this process computes on cpu"):
        nsjax.load_program(path)
    nsjax.export_program(path, angle, SLIDER.params, platforms=["cpu", "cuda"])
    program = nsjax.load_program(path)
    np.testing.assert_allclose(program(*program.arguments), angle(SLIDER.params), rtol=0, atol=1e-12)


@record()
class _Pair:
    one: object
    other: object


def test_structures(tmp_path: pathlib.Path) -> None:
    """Lists, tuples, None, empty ones, a bare array, several results."""
    path = tmp_path / "x.nsjax"
    given = _Pair(one=[1.0, (2.0, None)], other={"b": np.arange(3), "a": {}})
    nsjax.export_program(path, lambda x: (x, [x.one[0]], None), given)
    pair, (first,) = nsjax.load_program(path)(given)
    assert (float(pair["one"][0]), float(pair["one"][1][0]), float(first)) == (1.0, 2.0, 1.0)
    assert pair["other"]["b"].tolist() == [0, 1, 2]
    nsjax.export_program(path, lambda: jnp.arange(3.0))
    assert nsjax.load_program(path)().tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda p: {k: x for k, x in p.items() if k != "friction"},
            "program: 0.friction missing; give arguments like program.arguments",
        ),
        (lambda p: {**p, "colour": 1.0}, "0.colour unknown"),
        (
            lambda p: {**p, "friction": np.ones(7)},
            r"program: 0.friction has shape \(7,\) and type float64; give \(\) and float64",
        ),
        (lambda p: {**p, "friction": np.float32(p["friction"])}, "type float32; give"),
    ],
)
def test_other_arguments(change, said: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.nsjax"
    nsjax.export_program(path, lambda p: p.friction * 2.0, SLIDER.params)
    program = nsjax.load_program(path)
    (params,) = program.arguments
    with pytest.raises(nsjax.InputError, match=said):
        program(change(params))


def test_refusals(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.nsjax"

    def twice(x):
        return 2.0 * x

    for wrong in (["gpu"], "cpu"):
        with pytest.raises(
            nsjax.InputError, match=r"export_program: platforms = .*; give a list of .*, or None"
        ):
            nsjax.export_program(path, twice, 1.0, platforms=wrong)
    with pytest.raises(
        nsjax.InputError, match=r"export_program: argument 0 = .* is no number; leave it out"
    ):
        nsjax.export_program(path, twice, "one")
    with pytest.raises(nsjax.InputError, match=r"export_program: metadata: .*; note numbers and strings"):
        nsjax.export_program(path, twice, 1.0, note=object())
    with pytest.raises(nsjax.InputError, match="an argument is traced; export outside jit, vmap and grad"):
        jax.jit(lambda x: nsjax.export_program(path, twice, x))(1.0)
    with pytest.raises(nsjax.InputError, match="does not exist"):
        nsjax.export_program(tmp_path / "none" / "x", twice, 1.0)
    assert not list(tmp_path.iterdir())
    path.write_text("no program")
    with pytest.raises(nsjax.InputError, match="no program of"):
        nsjax.load_program(path)
    nsjax.export_program(path, twice, 1.0)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(nsjax.InputError, match="damaged"):
        nsjax.load_program(path)
    path.write_bytes(data)
    with np.load(path) as file:
        arrays = dict(file)
    content = json.loads(str(arrays["content"]))
    content |= {"form": 99, "releases": {"nsjax": "9.0", "jax": "9.9"}}
    np.savez(tmp_path / "later", **{**arrays, "content": np.asarray(json.dumps(content))})
    with pytest.raises(nsjax.InputError, match=r"exported by nsjax 9\.0 with JAX 9\.9"):
        nsjax.load_program(tmp_path / "later.npz")
    monkeypatch.setitem(sys.modules, "flatbuffers", None)
    with pytest.raises(nsjax.InputError, match=r"nsjax\[cache\]"):
        io.load_program(path)
