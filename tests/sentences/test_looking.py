"""Wrong input of models, pictures, and of what looks at runs, which were never simulated here."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import InputError, Problem, State, System, analysis, fem, models, plot, shapes
from nsjax.core import Labels
from nsjax.multibody import assemble, body
from tests.plot.coasting import coasting
from tests.points import unit_mass

BALL, CRANK = models.bouncing_ball(), models.slider_crank()
FALL = coasting(BALL)
OWN = assemble(body("rod", mass=1.0, inertia=0.1), gravity=9.81)


def batch(traj: Any) -> Any:
    """Two runs in one."""
    return jax.tree.map(lambda x: np.stack([x, x]), traj)


def rows(count: int, **change: Any) -> Any:
    """The first rows of the fall."""
    names = ("t", "q", "v", "impulse_normal", "impulse_tangential")
    cut = {name: getattr(FALL, name)[:count] for name in names}
    return dataclasses.replace(FALL, **{**cut, **change})


def every_row() -> Any:
    """The fall with all that books look at."""
    sliding = np.zeros((4, 1, BALL.system.nt))
    kept = {name: np.zeros((4, 1)) for name in ("force_normal", "impacts", "closed_time")}
    kept |= {
        name: np.zeros((4, 0))
        for name in ("constraint_impulse", "dry_friction_force", "dry_friction_impulse")
    }
    kept |= {"constraint_force": np.zeros((4, 0)), "force_tangential": sliding}
    return dataclasses.replace(FALL, **kept)


def nothing(t, q, v, p):
    return np.zeros(2)


def both(t, q, v, output, p):
    return {"place": jnp.concatenate([q, q])}


def looked_at():
    """A run with an array among its observables."""
    labels = Labels(observables=("place [m]",))
    system = System(nq=2, nv=2, mass=unit_mass, force=nothing, observe=both, labels=labels)
    problem = Problem(system=system, params=np.array(1.0), state=State(t=0.0, q=np.ones(2), v=np.ones(2)))
    return coasting(problem)


def drawn(picture: Callable[..., Any]) -> Any:
    """What becomes of shapes."""
    system = System(nq=2, nv=2, mass=unit_mass, force=nothing, shapes=picture)
    problem = Problem(system=system, params=np.array(1.0), state=State(t=0.0, q=np.ones(2), v=np.ones(2)))
    return nsjax.animate(problem, coasting(problem))


def shape(points: Any, **given: Any) -> Any:
    return shapes.Shape(points=points, name="mass", **given)


def round_thing(t, q, p):
    return shapes.Picture(shapes=(shape(q[None], kind="ball"),))


def flat_points(t, q, p):
    return shapes.Picture(shapes=(shape(q),))


def plane_and_space(t, q, p):
    return shapes.Picture(shapes=(shape(q[None]), shape(np.zeros((2, 3)))))


def nowhere(t, q, p):
    return shapes.Picture(shapes=(shape(np.nan * q[None]),))


PLACES = np.indices((2, 2, 2)).reshape(3, -1).T.astype(float)
ELEMENTS = np.array([[0, 4, 6, 2, 1, 5, 7, 3]])


def no_rest(t, q, v, p):
    return -(1.0 + q + q * q)


def only_so_far(t, q, v, p):
    return jnp.where(q < 0.5, p["load"] - q, jnp.nan)


def path(force: Callable[..., Any]) -> Any:
    """The load path of a spring of one's own to a force of one."""
    system = System(nq=1, nv=1, mass=unit_mass, force=force)
    start = State(t=0.0, q=np.zeros(1), v=np.zeros(1))
    problem = Problem(system=system, params={"load": np.array(0.0)}, state=start)
    return analysis.load_path(problem, {"load": 1.0}, arc=0.1)


H, E = [0.1, 0.05], [4e-2, 1e-2]


@pytest.mark.parametrize(
    ("module", "call", "words"),
    [
        ("xarray", FALL.to_xarray, r"to_xarray needs xarray; install it with: pip install 'nsjax\[data\]'"),
        ("pandas", FALL.to_pandas, r"to_pandas needs pandas; install it with: pip install 'nsjax\[data\]'"),
        ("matplotlib", lambda: plot.check_format("a.png"), "figures need matplotlib; install it with: pip"),
    ],
)
def test_missing_packages_are_named(
    module: str, call: Callable[[], Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=words):
        call()


def test_meshes_need_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "meshio", None)
    with pytest.raises(ImportError, match=r"reading meshes needs meshio; .* pip install 'nsjax\[mesh\]'"):
        fem.read_mesh(__file__)
