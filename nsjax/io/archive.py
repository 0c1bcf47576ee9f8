"""A run as one .npz file: `save` and `load`, and what continues the run."""

from __future__ import annotations

import dataclasses
import json
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import jax
import numpy as np

from nsjax import models
from nsjax.core import Carry, InputError, Problem, Scheme, State, System, nearest
from nsjax.core.arguments import check_is, check_one_run
from nsjax.core.checks import check_precision
from nsjax.core.inputs import Inputs
from nsjax.io.codec import (
    ChangedRecordError,
    UnsavedSchemeError,
    describe,
    describe_scheme,
    rebuild,
    rebuild_scheme,
    record_types,
)
from nsjax.io.files import SCHEMA, SMALL, PathLike, check_rows, check_state, read_arrays, reading, replacing
from nsjax.jaxtools.control_flow import tree_shapes
from nsjax.loop import LoopProgram, begin_run
from nsjax.trajectory import Continuation, Trajectory
from nsjax.types import PyTree, is_traced
from nsjax.version import __version__

# Continuation of a saved run, also by a scheme whose memory has grown since the file was written.


def as_run(params: PyTree) -> PyTree:
    """Parameters as `simulate` holds them: numbers in 64 bits, booleans unchanged."""
    return jax.tree.map(lambda x: x if np.asarray(x).dtype.kind == "b" else np.asarray(x, float), params)


def continuation(
    path: PathLike,
    described: dict[str, Any],
    arrays: Mapping[str, np.ndarray],
    problem: Problem,
    scheme: Scheme | None,
    note: str,
) -> Continuation:
    """The saved continuation; where the saved memory does not fit, a new memory, with a warning.

    Args:
        path: path of the file, for messages.
        described, arrays: from the file.
        problem: the saved problem.
        scheme: scheme that starts a new memory; None: a memory that does not fit is refused.
        note: why there is no scheme.

    Raises:
        InputError: for a memory that does not fit, without a scheme.
        KeyError: for a missing array.

    Warns:
        RuntimeWarning: if the scheme starts a new memory.
    """
    known = record_types(problem.params)
    state: State = rebuild(described["fields"]["carry"]["fields"]["state"], arrays, known)
    numbers: dict[str, Any] = {
        name: arrays[part["array"]] for name, part in described["fields"].items() if "array" in (part or ())
    }

    def start() -> Carry:
        """The carry of a run that begins in the saved state."""
        program = LoopProgram(system=problem.system, keep=(), events=0)
        assert scheme is not None
        return begin_run(program, scheme, as_run(problem.params), state, numbers["dt"], None).next.carry

    try:
        saved: Continuation = rebuild(described, arrays, known)
        if not saved.scheme and scheme is not None:  # file of an earlier version
            saved = dataclasses.replace(saved, scheme=scheme.name, impulses=scheme.traits.impulses)
        if str(arrays["nsjax_version"]) == __version__ or scheme is None:
            return saved
        if tree_shapes(jax.eval_shape(start)) == tree_shapes(saved.carry):
            return saved
        fault = "the saved memory has other shapes than this version's"
    except ChangedRecordError as error:
        fault = str(error)
    if scheme is None:
        raise InputError(
            f"{fault}. The memory can be started anew from the saved state: pass the scheme, "
            f"load(path, scheme=...); it is not in the file ({note})"
        )
    warnings.warn(
        f"{path} was written by nsjax {arrays['nsjax_version']}: {fault}. The memory of {scheme.name} "
        f"starts anew at t = {float(state.t):g} s, so that a continuation is not bit for bit",
        RuntimeWarning,
        stacklevel=3,
    )
    fresh = dataclasses.replace(start(), state=state)
    return Continuation(carry=fresh, scheme=scheme.name, impulses=scheme.traits.impulses, **numbers)


# A run as one .npz file: `save` and `load`.


SIZES = ("nq", "nv", "nc", "nt", "nb", "nd")
CONTENT = tuple(f.name for f in dataclasses.fields(Trajectory) if f.name not in ("system", "params"))
PARTS = ("choices", "params", "state", *CONTENT)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Saved:
    """Result of `load`; ``problem, traj = load(path)`` unpacks the first two fields.

    Args:
        problem: the saved system, parameters and initial state.
        traj: the trajectory, with numpy arrays.
        scheme: scheme of the run; None if it was not saved or is not one of the package.
        scheme_note: why there is no scheme, "" if there is one.
        metadata: metadata given to `save`.
    """

    problem: Problem
    traj: Trajectory
    scheme: Scheme | None
    scheme_note: str
    metadata: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.problem, self.traj))


def save(
    path: PathLike, problem: Problem, traj: Trajectory, *, scheme: Scheme | None = None, **metadata: Any
) -> None:
    """Writes a complete run to one ``.npz`` file: `load` returns the same problem and trajectory bit for
    bit, and the run can be continued from it bit for bit.

    The file can be read with numpy alone; there are no pickles in it. ``numpy.load(path)`` has the
    rows under their names in `Trajectory` (those that were saved), ``params.<name>``, ``state.<name>``,
    ``carry.<...>``, ``status``, the column names ``labels.q``, ``labels.v``, ``labels.contacts``, and
    ``dt``, ``model``, ``scheme``, ``nsjax_schema``, ``nsjax_version``.

    Args:
        path: path of the file, usually ``*.npz``; an existing file is replaced. It is written whole or not
            at all.
        problem: problem of the run; its system and parameters must be those of ``traj``.
        traj: one run, from `simulate`.
        scheme: scheme of the run; `load` returns it. For a scheme with functions of the user only its
            name, numbers and options are noted (`header`).
        metadata: further notes: numbers, strings, lists and dicts of them.

    Raises:
        InputError: for a path that cannot be written, for a batch, for a trajectory of another
            problem, and for content that cannot be saved without pickles.

    Example:
        >>> import tempfile
        >>> import nsjax
        >>> from nsjax import io, models, schemes
        >>> problem = models.bouncing_ball()
        >>> traj = nsjax.simulate(problem, schemes.moreau(), dt=1e-3, steps=500)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     io.save(f"{folder}/ball.npz", problem, traj, scheme=schemes.moreau(), note="first try")
        ...     problem, traj = io.load(f"{folder}/ball.npz")
        >>> traj["y"].shape
        (501,)
    """
    write_run(path, problem, traj, scheme, metadata)


def write_run(
    path: PathLike, problem: Problem, traj: Trajectory, scheme: Scheme | None, metadata: dict[str, Any],
    unfinished: dict[str, Any] | None = None,
) -> None:  # fmt: skip
    """Writes a run as `save` does; an incomplete run with the data to resume it, see `read_unfinished`."""
    traj = _as_started(traj)
    _check(problem, traj, scheme)
    arrays = _arrays(problem, traj, scheme, _plain("metadata", metadata), unfinished)
    with replacing(path) as file:
        _write(file, arrays)


def _as_started(traj: Any) -> Any:
    """A run with the system and numbers of its problem, where `resets` have changed numbers."""
    owner = getattr(getattr(getattr(traj, "system", None), "prepare", None), "__self__", None)
    changed = () if owner is None or traj.carry.guards is None else traj.carry.guards.numbers
    if not changed or not isinstance(owner, Inputs) or {name for name, _ in owner.keys} != {*changed}:
        return traj
    return dataclasses.replace(traj, system=owner.system, params=traj.params.model)


def read_unfinished(path: PathLike) -> dict[str, Any] | None:
    """Data to resume the run of a file, as given to `write_run`; None for a finished run. Raises
    `InputError` as `load`.
    """
    arrays, content = read_arrays(path, ("unfinished",))
    with reading(path):
        found: dict[str, Any] | None = rebuild(content.get("unfinished"), arrays, {})
    return found


def load(path: PathLike, problem: Problem | None = None, *, scheme: Scheme | None = None) -> Saved:
    """Reads a run that `save` wrote, of this version or an earlier one.

    ``simulate(run.problem, run.scheme, dt=..., steps=..., carry=run.traj.carry)`` continues ``run``, bit
    for bit.

    Records are found by public names (`nsjax.io.codec`). Fields that a later version added take their
    default value. If the file lacks a part of the memory that the scheme needs, the scheme starts a new
    memory from the saved state, with a warning: the continuation is then a run from that state, equal to
    the uninterrupted run to the order of the scheme. The column ``notes`` of version 0.1 keeps its shape
    (rows,), the bits of all contacts together.

    Args:
        path: path of the file.
        problem: needed for a system that is not a registered model, because functions are not saved:
            any problem with that system. Its numbers do not matter.
        scheme: needed to get back a scheme that is not one of the package; otherwise it replaces the saved
            scheme.

    Returns:
        A `Saved`: problem, trajectory, scheme and metadata.

    Raises:
        InputError: in single precision, for a missing file, a file that is not a saved run or has another
            schema, for a problem that is missing or does not fit, and for a memory that this version cannot
            continue without a scheme to start a new one.

    Warns:
        RuntimeWarning: if the scheme started a new memory.

    Example:
        >>> import tempfile
        >>> import nsjax
        >>> from nsjax import io, models, schemes
        >>> ball, scheme = models.bouncing_ball(), schemes.hht(alpha_f=0.2)
        >>> traj = nsjax.simulate(ball, scheme, dt=1e-3, steps=500)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     io.save(f"{folder}/ball.npz", ball, traj, scheme=scheme)
        ...     run = io.load(f"{folder}/ball.npz")
        >>> more = nsjax.simulate(run.problem, run.scheme, dt=1e-3, steps=500, carry=run.traj.carry)
        >>> float(more.t[-1])
        1.0
    """
    for name, value, cls in (("problem", problem, Problem), ("scheme", scheme, Scheme)):
        if value is not None:
            check_is("load", name, value, cls)
    check_precision()
    outline, content = read_arrays(path, PARTS, SMALL)
    if any(x.nbytes > SMALL for x in outline.values()):  # refused before anything large is read
        with reading(path), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _rebuilt(path, outline, content, problem, scheme)
        outline, content = read_arrays(path, PARTS)
    with reading(path):
        found = _rebuilt(path, outline, content, problem, scheme)
    return found


def _rebuilt(
    path: PathLike, arrays: dict[str, np.ndarray], content: dict[str, Any], problem: Problem | None,
    scheme: Scheme | None,
) -> Saved:  # fmt: skip
    """Result of `load` from the arrays and the header of a file."""
    note = ""
    try:
        if scheme is None and content["scheme"] is None:
            note = "save(..., scheme=...) was not given one"
        elif scheme is None:
            try:
                scheme = rebuild_scheme(content["scheme"])
            except UnsavedSchemeError as error:
                note = str(error)
        given = _rebuild_problem(content, arrays) if problem is None else problem
        system = given.system
        if system.name != content["model"]:
            raise InputError(f"it holds a run of {content['model']!r}, not of {system.name!r}")
        sizes = {name: getattr(system, name) for name in SIZES}
        saved = {name: content["sizes"].get(name, 0) for name in SIZES}  # older files have no bounded rows
        if sizes != saved:
            raise InputError(f"it was saved with {saved}; the system has {sizes}")
        known = record_types(given.params)
        params = rebuild(content["params"], arrays, known)
        start = rebuild(content["state"], arrays, known)
        made = Problem(system=given.system, params=params, state=start)
        fields = {name: rebuild(content.get(name), arrays, known) for name in CONTENT if name != "carry"}
        if "dry_friction_force" not in content:  # older files: no bounded rows
            fields["dry_friction_force"] = fields["dry_friction_impulse"] = np.zeros((len(fields["t"]), 0))
        check_rows(given.system, fields, old_notes=int(arrays["nsjax_schema"]) == 1)
        carry = continuation(path, content["carry"], arrays, made, scheme, note)
        traj = Trajectory(system=given.system, params=as_run(params), carry=carry, **fields)
        check_state(made, traj)
    except KeyError as error:
        raise InputError(f"{path} is damaged: it lacks {error}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return Saved(problem=made, traj=traj, scheme=scheme, scheme_note=note, metadata=content["metadata"])


def header(path: PathLike) -> dict[str, Any]:
    """Description of a saved run: ``schema``, ``version``, ``model``, ``dt``, ``scheme`` (name, numbers,
    options; None if it was not given to `save`) and ``metadata``.

    Args:
        path: path of the file.

    Raises:
        InputError: as `load`.

    Example:
        >>> import tempfile
        >>> import nsjax
        >>> from nsjax import io, models, schemes
        >>> ball = models.bouncing_ball()
        >>> traj = nsjax.simulate(ball, schemes.moreau(), dt=1e-3, steps=500)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     io.save(f"{folder}/ball.npz", ball, traj)
        ...     io.header(f"{folder}/ball.npz")["model"]
        'bouncing_ball'
    """
    arrays, content = read_arrays(path, ())
    with reading(path):
        found = {
            "schema": int(arrays["nsjax_schema"]),
            "version": str(arrays["nsjax_version"]),
            "model": content["model"],
            "dt": arrays["dt"].item(),
            "scheme": content["scheme"],
            "metadata": content["metadata"],
        }
    return found


def _check(problem: Problem, traj: Trajectory, scheme: Scheme | None) -> None:
    """Refuses a problem, trajectory and scheme that do not belong together, before a file is written."""
    wanted = (("problem", problem, Problem), ("traj", traj, Trajectory))
    for name, value, cls in wanted:
        check_is("save", name, value, cls)
    if np.ndim(traj.t) != 1:
        raise InputError(
            f"save: t has shape {np.shape(traj.t)}; save the runs of a batch one by one, run k is "
            "jax.tree.map(lambda x: x[k], traj)"
        )
    if scheme is not None:
        check_is("save", "scheme", scheme, Scheme)
    check_one_run("save", traj, problem)
    ours, theirs = jax.tree.leaves(problem.params), jax.tree.leaves(traj.params)
    if is_traced((ours, theirs)):
        raise InputError("save: params are traced; save outside jit, vmap and grad")
    if len(ours) != len(theirs) or not all(map(np.array_equal, ours, theirs)):
        raise InputError("save: traj ran with other parameters; pass the problem it ran")


def _arrays(
    problem: Problem, traj: Trajectory, scheme: Scheme | None, metadata: Any,
    unfinished: dict[str, Any] | None = None,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Arrays of the file by name, with a header that describes their structure."""
    system = problem.system
    arrays: dict[str, np.ndarray] = {}
    content: dict[str, Any] = {
        "model": system.name,
        "registered": _is_registered(system),
        "choices": describe("choices", dict(system.choices), arrays) if _is_registered(system) else None,
        "sizes": {name: getattr(system, name) for name in SIZES},
        "params": describe("params", problem.params, arrays),
        "state": describe("state", problem.state, arrays),
        "scheme": None if scheme is None else describe_scheme(scheme),
        "metadata": metadata,
    }
    for name in CONTENT:
        content[name] = describe(name, getattr(traj, name), arrays)
    if unfinished is not None:
        content["unfinished"] = describe("unfinished", unfinished, arrays)
    labels = {f"labels.{f.name}": getattr(system.labels, f.name) for f in dataclasses.fields(system.labels)}
    texts = {
        "nsjax_version": __version__,
        "nsjax_header": json.dumps(content),
        "model": system.name,
        "scheme": "" if scheme is None else scheme.name,
        **labels,
    }
    for name, text in texts.items():
        arrays[name] = np.asarray(text, dtype=np.str_)
    arrays["nsjax_schema"] = np.asarray(SCHEMA)
    arrays["dt"] = np.asarray(traj.carry.dt)
    return arrays


def _is_registered(system: System) -> bool:
    """Whether the registry reproduces the system from its name and choices."""
    entry = models.REGISTRY.get(system.name)
    if entry is None:
        return False
    try:
        return bool(entry.factory(**dict(system.choices)).system == system)
    except (InputError, TypeError):  # another system under a registered name
        return False


def _plain(name: str, value: Any) -> Any:
    """Metadata in types of JSON."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(f"{name}.{key}", part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(f"{name}.{i}", part) for i, part in enumerate(value)]
    if isinstance(value, np.ndarray | np.generic | jax.Array) and np.asarray(value).dtype.kind in "biuf":
        return np.asarray(value).tolist()
    raise InputError(f"save: {name} = {value!r}; numbers, strings, lists and dicts of them only")


def _write(file: BinaryIO, arrays: dict[str, np.ndarray]) -> None:
    """Writes an .npz file without pickles and without dates, so that equal runs give equal files."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            with archive.open(entry, "w", force_zip64=True) as part:
                np.lib.format.write_array(part, array, allow_pickle=False)


def _rebuild_problem(content: dict[str, Any], arrays: dict[str, np.ndarray]) -> Problem:
    """The default problem of the registered model that was saved."""
    name = content["model"]
    if not content["registered"]:
        called = f"the system {name!r}" if name else "a system without a name"
        raise InputError(
            f"it holds a run of {called}, which is no registered model; its functions are not saved, so "
            "pass them: load(path, problem=...)"
        )
    if name not in models.REGISTRY:
        raise InputError(f"the model {name!r} is unknown to this version; {nearest(name, models.REGISTRY)}")
    choices = rebuild(content["choices"], arrays, {})
    return models.REGISTRY[name].factory(**choices)
