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
    kept |= {name: np.zeros((4, 0)) for name in ("constraint_impulse", "drag_force", "drag_impulse")}
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

MODELS: dict[str, tuple[Callable[[], Any], str]] = {
    "block": (lambda: models.block(dimension=4), "block: dimension = 4; choose 2 or 3"),
    "form of a block": (
        lambda: models.block(dimension=2, formulation="euler"),
        "block: formulation = 'euler' with dimension = 2; choose one of rotation",
    ),
    "balls": (
        lambda: models.bouncing_ball(balls=0),
        "bouncing_ball: balls = 0, dimension = 1; at least one ball, dimension 1 or 2",
    ),
    "parameter": (
        lambda: models.bouncing_ball(heigth=1.0),
        "bouncing_ball: unknown parameter 'heigth'; did",
    ),
    "bar": (lambda: models.elastic_bar(elements=0), "elastic_bar: elements = 0; it must be a whole number"),
    "mass of a bar": (lambda: models.elastic_bar(mass="thin"), "elastic_bar: mass = 'thin'; "),
    "cube": (
        lambda: models.flexible_cube(elements=(1, 0, 1)),
        r"flexible_cube: elements = \(1, 0, 1\); give one whole number above zero, or one per edge",
    ),
    "edges of a cube": (
        lambda: models.flexible_cube(elements=(1, 2)),
        r"flexible_cube: elements = \(1, 2\); give one whole number",
    ),
    "element": (
        lambda: models.flexible_cube(element="hexa"),
        "flexible_cube: element = 'hexa'; ",
    ),
    "held": (lambda: models.flexible_cube(held="left"), "flexible_cube: held = 'left'; choose one of"),
    "material": (lambda: models.flexible_cube(material="glue"), "flexible_cube: material = 'glue'; "),
    "solver": (
        lambda: models.flexible_cube(solver="none"),
        "flexible_cube: solver = 'none'; choose one of",
    ),
    "pendulum": (
        lambda: models.flexible_pendulum(elements=0),
        "flexible_pendulum: elements = 0; it must be a whole number",
    ),
    "pin": (
        lambda: models.flexible_pendulum(pin="glued"),
        "flexible_pendulum: pin = 'glued'; choose one of",
    ),
    "normal": (
        lambda: models.flexible_solid(fem.SolidMesh(PLACES, ELEMENTS), contact={"z_min": (0.0, 0.0, 0.0)}),
        r"flexible_solid: contact with normal \(0.0, 0.0, 0.0\); give three numbers, not all zero",
    ),
    "support": (
        lambda: models.mass_spring_chain(support="glue"),
        "mass_spring_chain: support = 'glue'; choose one of spring, constraint",
    ),
    "rod": (
        lambda: models.slider_crank_flexible(elements=0),
        "rod: elements = 0; it must be a whole number, at least 1",
    ),
    "modes": (lambda: fem.Modes("glued", 2), "Modes: unknown conditions 'glued'; "),
    "number of modes": (
        lambda: fem.Modes(next(iter(fem.CONDITIONS)), 0),
        "Modes: count = 0; give at least one mode, a whole number",
    ),
    "mesh": (lambda: fem.read_mesh("gone.vtk"), "mesh: no file gone.vtk; give the path of a mesh"),
    "set": (
        lambda: models.flexible_solid(fem.SolidMesh(PLACES, ELEMENTS), contact="feet"),
        "mesh: unknown set 'feet'; ",
    ),
}

PICTURES: dict[str, tuple[Callable[[], Any], str]] = {
    "problem": (lambda: nsjax.animate(3, FALL), "animate: problem = 3; it must be an nsjax.Problem"),
    "batch": (
        lambda: nsjax.animate(BALL, batch(FALL)),
        r"animate: t has shape \(2, 4\); pass one run, not a",
    ),
    "other": (
        lambda: nsjax.animate(CRANK, FALL),
        "animate: traj is not a run of this problem's system; pass the problem it ran",
    ),
    "no start": (
        lambda: nsjax.animate(BALL, rows(4, q=np.full((4, 1), np.nan))),
        "pictures: the start of the run is not finite; nothing can be drawn: check the state",
    ),
    "kind": (
        lambda: drawn(round_thing),
        "animate: shape 'mass' has kind = 'ball', role = 'body'; choose from line, .* and from body",
    ),
    "points": (
        lambda: drawn(flat_points),
        r"animate: shape 'mass' has points \(2,\); give \(n, 2\) or \(n, 3\)",
    ),
    "dimensions": (
        lambda: drawn(plane_and_space),
        r"animate: shapes have points of \[2, 3\] coordinates; draw all in the plane, or all in space",
    ),
    "nowhere": (
        lambda: drawn(nowhere),
        "animate: shapes returns no finite point; nothing can be drawn: check params",
    ),
    "overview of a batch": (
        lambda: plot.overview(BALL, batch(FALL)),
        r"overview: t has shape \(2, 4\); pass one run, not a batch",
    ),
    "overview of another": (
        lambda: plot.overview(CRANK, FALL),
        "overview: traj is not a run of this problem's system; pass the problem it ran",
    ),
    "figure of a batch": (
        lambda: plot.named(batch(FALL), ("y",)),
        r"plot: t has shape \(2, 4\); pass one run, not a batch",
    ),
    "figure of arrays": (
        lambda: plot.named(looked_at(), ("place",)),
        r"plot: place has \(4,\) numbers a row; plot its entries yourself",
    ),
}


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
ANALYSIS: dict[str, tuple[Callable[[], Any], str]] = {
    "two arrays": (
        lambda: analysis.observed_order([0.1], [0.1]),
        r"observed_order: steps and errors have shapes \(1,\) and \(1,\); give two \(n,\) arrays, n >= 2",
    ),
    "positive": (
        lambda: analysis.observed_order(H, [0.0, 1.0]),
        "observed_order: steps and errors must be positive and finite; leave the other ones out",
    ),
    "graph": (
        lambda: analysis.hausdorff([0.0], [1.0], H, E),
        r"hausdorff: times and values have shapes \(1,\) and \(1,\); give two \(n,\) arrays, n >= 2",
    ),
    "times": (
        lambda: analysis.hausdorff(H, E, H, E),
        "hausdorff: times must not decrease and all values must be finite; cut the run before it fails",
    ),
    "scales": (
        lambda: analysis.hausdorff([0.0, 1.0], E, [0.0, 1.0], E, time_scale=-1.0),
        r"hausdorff: scales must be positive, and are \[-1\.0, .*\]; give other ones",
    ),
    "growth": (
        lambda: analysis.growth(np.arange(500.0), np.full(500, np.nan)),
        "growth: t and residual must be finite; look at raise_for_status of the run",
    ),
    "forces": (
        lambda: analysis.energy_books(FALL, forces="own"),
        "energy_books: forces = 'own'; choose one of auto",
    ),
    "batch": (
        lambda: analysis.energy_books(batch(FALL)),
        r"energy_books: t has shape \(2, 4\); pass one run, not a",
    ),
    "one row": (
        lambda: analysis.energy_books(rows(1)),
        "energy_books: the run has 1 row; at least one step is needed",
    ),
    "not of parts": (
        lambda: FALL.body("rod"),
        r"is not made of parts and has no body 'rod'; see traj\['energy'\] and so on",
    ),
    "part": (lambda: coasting(OWN).body("rood"), "trajectory has no body 'rood'; did you mean 'rod'"),
    "part of a batch": (
        lambda: batch(coasting(OWN)).body("rod"),
        r"body 'rod' of a batch; take one run, jax.tree.map\(lambda x: x\[k\], traj\)",
    ),
    "no rest": (
        lambda: path(no_rest),
        "load_path: no equilibrium at the start; begin from one, see equilibrium",
    ),
    "end of a path": (
        lambda: path(only_so_far),
        "load_path: at the level .* an arc of .* finds no equilibrium; give a shorter arc from the start",
    ),
    "old file": (
        lambda: analysis.energy_books(
            dataclasses.replace(
                every_row(), carry=dataclasses.replace(FALL.carry, dt=1e-3, impulses="", scheme="")
            )
        ),
        "energy_books: the run does not say where its impulses act: it is of an earlier version's",
    ),
    "quantity": (lambda: FALL["hight"], "trajectory has no quantity 'hight'; "),
    "derived": (
        lambda: batch(FALL)["energy"],
        r"derived quantities need a single run; take one, jax.tree.map\(lambda x: x\[k\], traj\)",
    ),
}

CASES = {
    **{f"model: {k}": x for k, x in MODELS.items()},
    **{f"picture: {k}": x for k, x in PICTURES.items()},
}
CASES |= {f"analysis: {k}": x for k, x in ANALYSIS.items()}


@pytest.mark.parametrize("name", CASES)
def test_refused(name: str) -> None:
    make, words = CASES[name]
    with pytest.raises((InputError, ValueError, KeyError), match=words):
        make()


@pytest.mark.parametrize(
    ("module", "call", "words"),
    [
        ("xarray", FALL.to_xarray, r"to_xarray needs xarray; install it with: pip install 'nsjax\[data\]'"),
        ("pandas", FALL.to_pandas, r"to_pandas needs pandas; install it with: pip install 'nsjax\[data\]'"),
        ("plotly", lambda: plot.check_animation("a.html"), "animations need plotly; install it with: pip"),
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
