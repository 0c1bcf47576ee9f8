"""Names under which schemes, parts and structures are saved, in files of all versions."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nsjax
from nsjax import Criteria, InputError, io, linalg, models, schemes
from nsjax import multibody as mb
from nsjax.contact.equations import CarriedTangent, StageTangent
from nsjax.io import codec
from nsjax.io.codec import describe, describe_scheme, rebuild, rebuild_scheme, record_types
from nsjax.linalg import Arrow, BlockTridiagonal, Pattern, Sparse
from nsjax.linalg.dense import Factors, Tridiagonal
from nsjax.linalg.structure import EliminatedTridiagonal
from nsjax.loop import LoopProgram, begin_run
from nsjax.multibody import numbers
from nsjax.multibody.contacts.curves import Curve
from nsjax.trajectory import Continuation
from tests.design import slow_but
from tests.io import keep

# Files name records and schemes by public names; files of earlier versions still load and continue.
FILES = pathlib.Path(__file__).parent / "files"
OLD = ("moreau", "generalized_alpha", "nsga_decoupled")
BALL = models.bouncing_ball()


def begun(scheme):
    """Everything that a run carries, as shapes."""
    program = LoopProgram(system=BALL.system, keep=(), events=2)
    return jax.eval_shape(lambda: begin_run(program, scheme, BALL.params, BALL.state, 1e-3, None))


def by_hand(path: pathlib.Path, like: Continuation) -> Continuation:
    """What continues a file of version 0.1, put together from its arrays without `nsjax.io`."""
    with np.load(path) as file:
        return jax.tree_util.tree_map_with_path(
            lambda place, _: file["carry" + jax.tree_util.keystr(place)], like
        )


@pytest.mark.parametrize("name", slow_but(OLD, "moreau"))
def test_a_file_of_version_0_1_continues_bit_for_bit(name: str) -> None:
    path = FILES / f"version_0_1_{name}.npz"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = io.load(path)
    restarted = any("starts anew" in str(one.message) for one in caught)
    assert int(np.load(path)["nsjax_schema"]) == 1
    assert run.scheme_note == ""
    assert run.scheme == getattr(schemes, name)()
    assert run.traj.notes.shape[0] == run.traj.t.shape[0] == 6
    more = {"dt": 1e-3, "steps": 100, "every": 20}
    rest = nsjax.simulate(*run.problem, run.scheme, **more, carry=run.traj.carry)
    then = run.metadata
    if restarted:  # documented: to the order of the scheme
        np.testing.assert_allclose(rest.q[-1], then["then_q"], atol=1e-4)
        return
    # the same numbers as on the day the file was written, up to another processor's rounding
    np.testing.assert_allclose(rest.q[-1], then["then_q"], atol=1e-10)
    np.testing.assert_allclose(rest.v[-1], then["then_v"], atol=1e-8)
    again = nsjax.simulate(*run.problem, run.scheme, **more, carry=by_hand(path, run.traj.carry))
    for a, b in zip(jax.tree.leaves(again), jax.tree.leaves(rest), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_every_version_keeps_its_files() -> None:
    """Written by ``python -m tests.io.keep`` for a release."""
    version = "_".join(nsjax.__version__.split(".")[:2])
    assert {f"version_{version}_{name}.npz" for name in keep.RUNS} <= {x.name for x in FILES.iterdir()}


LATER = sorted(x.name for x in FILES.glob("version_*.npz") if not x.name.startswith("version_0_1"))


@pytest.mark.parametrize("name", slow_but(LATER, "version_0_2_moreau.npz"))
def test_a_file_of_a_version_continues(name: str) -> None:
    """To rounding; where the scheme remembers more by now it starts anew, to its order, and says so."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mine = keep.mechanism() if name.endswith("_mechanism.npz") else None
        run = io.load(FILES / name, problem=mine)
    restarted = any("starts anew" in str(one.message) for one in caught)
    assert len(caught) == restarted
    assert run.scheme is not None
    rest = nsjax.simulate(*run.problem, run.scheme, **keep.LENGTHS, carry=run.traj.carry)
    close = 1e-4 if restarted else 1e-10
    np.testing.assert_allclose(rest.q[-1], run.metadata["then_q"], atol=close)
    np.testing.assert_allclose(rest.v[-1], run.metadata["then_v"], atol=100.0 * close)


def test_every_record_of_the_package_has_a_public_name() -> None:
    found: set[type] = set()
    for entry in models.REGISTRY.values():
        problem = entry.factory()
        found |= set(record_types((problem.params, problem.state, dict(problem.system.choices))).values())
    for scheme in {entry.factory() for entry in schemes.REGISTRY.values()}:
        run = begun(scheme)
        found |= set(record_types((run.next, run.events, run.first_failure)).values())
    assert len(found) >= 15
    nameless = [cls for cls in found if ":" in codec.public_name(cls)]
    assert nameless == [], "give them names in nsjax/io/codec.py"


def test_all_numbers_of_parts_and_kept_tangents_have_public_names() -> None:
    """Of parts that no model is made of, and what the carry of a beam holds."""
    found = [x for x in vars(numbers).values() if dataclasses.is_dataclass(x)]
    assert len(found) >= 15
    found += [
        Curve,
        CarriedTangent,
        StageTangent,
        EliminatedTridiagonal,
        Factors,
        Tridiagonal,
        BlockTridiagonal,
    ]
    assert [cls for cls in found if ":" in codec.public_name(cls)] == []


def test_every_name_is_found_and_the_history_is_complete() -> None:
    for name in codec.PLACES:
        found = codec.find_record(name)  # two names may mean one record; the first is written
        assert codec.find_record(codec.public_name(found)) is found
    for path, name in codec.VERSION_0_1.items():
        assert codec.find_record(path) is codec.find_record(name)
    for path in FILES.glob("version_0_1_*.npz"):
        header = str(np.load(path)["nsjax_header"])
        assert set(part.split('"')[0] for part in header.split('"record": "')[1:]) <= set(codec.VERSION_0_1)


CHOSEN = {
    "moreau": schemes.moreau(force_velocity="midpoint", gap_tolerance=1e-9),
    "half_explicit": schemes.half_explicit(impact_step="drop", averaged_force=True),
    "hht": schemes.hht(alpha_f=0.21),
    "newmark": schemes.newmark(beta=0.3, gamma=0.6),
    "ed_alpha": schemes.ed_alpha(rho_inf=0.3),
    "nsga_coupled": schemes.nsga_coupled(rho_inf=0.1),
    "localized": schemes.localized(
        schemes.generalized_alpha(rho_inf=0.5), contact_tolerance=1e-9, max_roots=33
    ),
    "criteria": schemes.bathe(criteria=Criteria(gate=3.0)),
    "criteria inside": schemes.localized(schemes.moreau(criteria=Criteria(flight=3.0))),
    "plain": dataclasses.replace(schemes.moreau(), gradient="saltation"),
}


@pytest.mark.parametrize("scheme", [*CHOSEN.values(), *(e.factory() for e in schemes.REGISTRY.values())])
def test_a_scheme_comes_back(scheme) -> None:
    described = json.loads(json.dumps(describe_scheme(scheme)))
    assert described["restorable"]
    back = rebuild_scheme(described)
    assert jax.tree.structure(back) == jax.tree.structure(scheme)  # options and functions
    assert jax.tree.leaves(back) == jax.tree.leaves(scheme)


def test_a_scheme_of_ones_own_is_noted_and_must_be_passed(tmp_path: pathlib.Path) -> None:
    mine = dataclasses.replace(schemes.moreau(), name="mine")
    traj = nsjax.simulate(*BALL, mine, dt=1e-3, steps=20)
    io.save(tmp_path / "run.npz", BALL, traj, scheme=mine)
    run = io.load(tmp_path / "run.npz")
    assert run.scheme is None
    assert "'mine'" in run.scheme_note
    assert io.header(tmp_path / "run.npz")["scheme"]["name"] == "mine"
    assert io.load(tmp_path / "run.npz", scheme=mine).scheme is mine
    with pytest.raises(InputError, match=r"scheme = 'moreau'; it must be an nsjax\.Scheme"):
        io.load(tmp_path / "run.npz", scheme="moreau")  # type: ignore[arg-type]
    io.save(tmp_path / "none.npz", BALL, traj)
    assert "was not given" in io.load(tmp_path / "none.npz").scheme_note


def edited(path: pathlib.Path, target: pathlib.Path, change) -> pathlib.Path:
    """The file with another header."""
    with np.load(path) as file:
        content = {name: file[name] for name in file.files}
    header = json.loads(str(content["nsjax_header"]))
    change(header)
    np.savez(target, **{**content, "nsjax_header": np.asarray(json.dumps(header))})
    return target


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> pathlib.Path:
    """A file of this version: a run of 0.1 s."""
    path = tmp_path_factory.mktemp("saved") / "run.npz"
    traj = nsjax.simulate(*BALL, schemes.moreau(), dt=1e-3, steps=100, every=20, notes=True)
    io.save(path, BALL, traj, scheme=schemes.moreau())
    return path


def test_a_memory_that_lacks_a_field_starts_anew_or_is_refused(
    tmp_path: pathlib.Path, saved: pathlib.Path
) -> None:
    def forget(header) -> None:
        header["carry"]["fields"]["carry"]["fields"]["memory"]["fields"].pop("held")

    def forget_both(header) -> None:
        forget(header)
        header["scheme"] = None

    lacking = edited(saved, tmp_path / "lacking.npz", forget)
    with pytest.warns(RuntimeWarning, match=r"lacks held.*memory of moreau starts anew at t = 0\.1 s"):
        run = io.load(lacking)
    whole = io.load(saved)
    ends = [
        nsjax.simulate(*r.problem, r.scheme, dt=1e-3, steps=100, every=100, carry=r.traj.carry).q[-1]
        for r in (run, whole)
    ]
    np.testing.assert_allclose(*ends, atol=1e-4)
    bare = edited(saved, tmp_path / "bare.npz", forget_both)
    with pytest.raises(InputError, match=r"lacks held.*pass the scheme, load\(path, scheme=\.\.\.\)"):
        io.load(bare)
    with pytest.warns(RuntimeWarning, match="starts anew"):
        assert io.load(bare, scheme=schemes.moreau()).scheme == schemes.moreau()


@pytest.mark.parametrize(("schema", "version"), [(1, "0.1.0"), (2, "0.1.0"), (2, "0.2.0.dev0")])
def test_other_shapes_of_a_memory_are_seen(
    tmp_path: pathlib.Path, saved: pathlib.Path, schema: int, version: str
) -> None:
    """In files of other versions, whatever their layout; those of this version fit."""
    with np.load(saved) as file:
        content = {name: file[name] for name in file.files}
    content.update(nsjax_schema=np.asarray(schema), nsjax_version=np.asarray(version))
    if schema == 1:
        content["notes"] = content["notes"].max(axis=1)  # of all contacts together
    np.savez(tmp_path / "same.npz", **content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        io.load(tmp_path / "same.npz")
    content["carry.carry.memory.held"] = np.zeros(7, bool)
    np.savez(tmp_path / "other.npz", **content)
    with pytest.warns(RuntimeWarning, match="other shapes.*starts anew"):
        io.load(tmp_path / "other.npz")


def test_options_and_numbers_that_are_gone_are_told() -> None:
    described = describe_scheme(schemes.hht())
    for part, words in (("numbers", "no number 'lost'"), ("options", "no option 'lost'")):
        with pytest.raises(InputError, match=words):
            rebuild_scheme({**described, part: {**described[part], "lost": 1.0}})
    fewer = {name: value for name, value in described["options"].items() if name != "max_passes"}
    assert rebuild_scheme({**described, "options": fewer}) == schemes.hht()  # added later: the default


FILE = """<mujoco><worldbody><body>
<joint name='j' armature='0.1' damping='0.2' frictionloss='0.1'/><geom size='0.1'/>
</body></worldbody><actuator><position joint='j' kp='3'/><motor joint='j' gear='2'/></actuator></mujoco>"""


def arm():
    return mb.assemble(
        mb.body("arm", mass=1.0, inertia=0.1), mb.hinge("h", "ground", "arm"),
        mb.servo("motor", "h", position=0.5, stiffness=8.0, damping=3.0, limit=2.0), gravity=9.81,
    )  # fmt: skip


def from_file():
    model = mb.read_mjcf(FILE)
    return mb.assemble(*model, gravity=model.gravity, start=model.start)


OTHERS = {
    "servo": arm,
    "driven": lambda: nsjax.with_inputs(
        arm(), {"motor": nsjax.signal([0.0, 0.1], [0.5, 0.4], kind="linear")}
    ),
    "filtered": lambda: nsjax.with_actuator_dynamics(arm(), {"motor": 0.05}),
    "file": from_file,
    "spheres": lambda: mb.spheres(0.1, 1.0, [(0.0, 0.0, 0.1)], walls=[((0.0, 0.0, 1.0), 0.0)]),
}


@pytest.mark.parametrize("kind", slow_but(OTHERS, "servo"))
def test_runs_with_inputs_of_files_and_of_spheres_are_loaded_again(kind: str, tmp_path: Any) -> None:
    problem, scheme = OTHERS[kind](), schemes.moreau()
    first = nsjax.simulate(*problem, scheme, dt=1e-3, steps=5)
    nsjax.save(tmp_path / "run.npz", problem, first, scheme=scheme)
    again = nsjax.load(tmp_path / "run.npz", problem)
    rest = [nsjax.simulate(*problem, scheme, dt=1e-3, steps=5, carry=x.carry) for x in (first, again.traj)]
    assert np.array_equal(rest[0].q, rest[1].q)


# Tangents that schemes keep from step to step are read again, whatever the structure of the system.
CHAIN = [(i, i + 1) for i in range(7)]
STRUCTURES = {
    "dense": linalg.Dense(), "block tridiagonal": BlockTridiagonal(2),
    "block diagonal": linalg.BlockDiagonal(1), "sparse": Sparse(Pattern.of_elements(8, CHAIN)),
    "arrow": Arrow((0, 7), BlockTridiagonal(1)),
    "arrow of a sparse one": Arrow((0,), Sparse(Pattern.of_elements(7, CHAIN[:-1]))),
    "lattice": linalg.Lattice((2, 2, 2), 1),
    "velocities and multipliers": linalg.Interleaved(2, joint=2).saddle,
}  # fmt: skip


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
