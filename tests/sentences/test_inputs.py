"""Wrong words of the command line and of files: kinds, names, numbers that are none."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import nsjax
from nsjax import ContactLaw, InputError, Problem, State, System, io, models, schemes
from nsjax.cli.identify import read_config


def test_a_number_where_a_word_stands(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "fit.toml"
    file.write_text("model = 3\n")
    with pytest.raises(InputError, match="model = 3; write it in quotes"):
        read_config(file)


def test_a_list_as_restitution() -> None:
    system = System(
        nq=1, nv=1, nc=1, mass=lambda q, p: np.eye(1), force=lambda t, q, v, p: -q,
        gap=lambda t, q, p: q, law=lambda p: ContactLaw(restitution=[0.5]),
    )  # fmt: skip
    problem = Problem(system=system, params={}, state=State(t=0.0, q=np.ones(1), v=np.ones(1)))
    with pytest.raises(InputError, match=r"restitution = .*; give one number or one per contact"):
        nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=1)


def test_complex_numbers_in_a_file(tmp_path: pathlib.Path) -> None:
    ball, path = models.bouncing_ball(), tmp_path / "run.npz"
    io.save(path, ball, nsjax.simulate(*ball, schemes.moreau(), dt=1e-3, steps=2))
    with np.load(path) as file:
        content = {key: file[key] for key in file.files}
    content["state.q"] = content["state.q"] + 1j
    np.savez(tmp_path / "bad", **content)
    words = "it is damaged: the entry .* of parameters, start and run holds no real numbers"
    with pytest.raises(InputError, match=words):
        io.load(tmp_path / "bad.npz")
