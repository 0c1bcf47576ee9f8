"""``nsjax sweep``: a model over ranges of its parameters, of the scheme's numbers, or of the step size."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import itertools
import math
import pathlib
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

import nsjax
from nsjax import io, models, reductions
from nsjax.cli.inputs import (
    build,
    check_files,
    read_problem,
    read_scheme,
    read_settings,
    read_steps,
    scheme_name,
)
from nsjax.cli.report import Progress
from nsjax.core import InputError, Problem, Scheme, System, nearest
from nsjax.core.keys import above, names, parse_parameter
from nsjax.core.memory import refuse_more
from nsjax.figures import new_figure
from nsjax.forms import form_of
from nsjax.plot.style import QUANTITIES, RC, math_label, print_unit, save_figure, scale
from nsjax.sweep.result import LANE_BYTES, check_form
from nsjax.trajectory import RunError, label_names, quantity_unit

# The figure of ``nsjax sweep``: a curve over one axis, a map over two.


def draw(
    axes: Mapping[str, np.ndarray], values: np.ndarray, name: str, unit: str, title: str = "",
    units: Mapping[str, str] | None = None,
) -> Any:  # fmt: skip
    """Matplotlib figure of a sweep, without a window.

    Args:
        axes: values by name; for a curve the first is the axis, the others vary with it.
        values: one number per lane, (n,) or (n, m); gaps where it is not a number.
        name, unit: name and unit of the quantity.
        title: description of the run.
        units: known units of the axes, by name.
    """
    from matplotlib import rc_context

    known = units or {}

    def axis(name: str) -> str:
        return math_label(name) + print_unit(known.get(name, ""))

    factor, printed = scale(values, unit)
    label = math_label(name) + print_unit(printed)
    with rc_context(RC):
        figure = new_figure(
            figsize=(7.0, 3.2) if values.ndim == 1 else (5.2, 4.0), dpi=200, layout="constrained"
        )
        ax = figure.subplots()
        if values.ndim == 1:
            first, x = next(iter(axes.items()))
            ax.plot(x, factor * values, color=QUANTITIES[0], marker=".", markersize=3.0)
            ax.set(xlabel=axis(first), ylabel=label)
            _log(ax.set_xscale, x)
        else:
            (down, y), (across, x) = axes.items()
            mesh = ax.pcolormesh(x, y, factor * values, shading="nearest", cmap="viridis", rasterized=True)
            ax.set(xlabel=axis(across), ylabel=axis(down))
            ax.grid(False)
            _log(ax.set_xscale, x)
            _log(ax.set_yscale, y)
            figure.colorbar(mesh, ax=ax, label=label)
        ax.set_title(title, fontsize=RC["axes.labelsize"])
    return figure


def _log(set_scale: Any, values: np.ndarray) -> None:
    """Makes an axis logarithmic for logarithmically spaced values."""
    if len(values) > 2 and np.all(values > 0.0):
        ratio = values[1:] / values[:-1]
        if np.ptp(ratio) < 1e-9 * abs(ratio[0]) and abs(ratio[0] - 1.0) > 1e-9:
            set_scale("log")


UNIT = re.compile(r"\[((?:[A-Za-z]+(?:\^[0-9]+)?[ /]?)+)\]")
"""Pattern of units in a docstring, such as ``[kg m^2]`` or ``[m/s]``."""


def documented_units(factory: Callable[..., Any]) -> dict[str, str]:
    """Units of the keywords of a model, from its docstring; keywords without a unit are left out.

    Example:
        >>> from nsjax import models
        >>> from nsjax.cli.sweep import documented_units
        >>> units = documented_units(models.slider_crank)
        >>> units["clearance"], units["rod_inertia"], "friction" in units
        ('m', 'kg m^2', False)
    """
    text = (factory.__doc__ or "").partition("Args:")[2].partition("\n\n")[0]
    found: dict[str, str] = {}
    # an entry is indented by eight spaces, its further lines by more
    for entry in re.split(r"\n {8}(?=\w)", text):
        names, _, said = entry.partition(":")
        listed = [name.strip() for name in names.split(",")]
        units = UNIT.findall(said)
        units = units if len(units) == len(listed) else units[:1] * len(listed)
        found |= dict(zip(listed, units, strict=False))
    return found


CHAOS = "lyapunov"
"""Quantity that needs a separate sweep: the finite-time Lyapunov exponent [1/s]."""

CONTACT = ("impacts", "penetration", "closed_time")
"""Quantities of lanes of systems with contacts."""


@dataclasses.dataclass(frozen=True)
class SweepPlan:
    """A sweep that has passed all checks before its start."""

    problem: Problem
    scheme: Scheme
    over: dict[str, Any]
    axes: dict[str, np.ndarray]
    shape: tuple[int, ...]
    lengths: dict[str, Any]
    quantities: tuple[str, ...]


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``nsjax sweep`` that ``nsjax simulate`` does not have."""
    add.add_argument(
        "axis", nargs="+", metavar="NAME=VALUES",
        help="what varies: FIRST:LAST:COUNT (evenly), FIRST:LAST:COUNT:log, or A,B,C. NAME is a keyword of "
        "the model (restitution), scheme.NAME, dt, or an entry of the start (state.v[1])",
    )  # fmt: skip
    add.add_argument(
        "--zip", action="store_true", help="take the values of all axes together, not in all combinations"
    )
    add.add_argument(
        "--quantity", help="what --plot draws: impacts, energy_loss, penetration, closed_time, lyapunov (a "
        "measure of chaos, 1/s), or a label such as theta1 at the end (default: impacts, or energy_loss "
        "without contacts)",
    )  # fmt: skip
    add.add_argument("--devices", type=int, help="split the CPU into so many devices (default: one)")
    add.add_argument("--output", metavar="FILE", help="save the results: .npz, or .nc (NetCDF)")
    add.add_argument(
        "--checkpoint", metavar="FILE", help="add finished lanes to this file while the sweep goes on; the "
        "same command goes on after a stop",
    )  # fmt: skip
    add.add_argument("--plot", metavar="FILE.png", help="draw one quantity over one or two axes")


def read_axis(entry: str) -> tuple[str, np.ndarray]:
    """Name and values of an axis. Raises `InputError` for text that is not an axis.

    Example:
        >>> from nsjax.cli.sweep import read_axis
        >>> read_axis("restitution=0:1:5")
        ('restitution', array([0.  , 0.25, 0.5 , 0.75, 1.  ]))
        >>> read_axis("dt=1e-4:1e-2:3:log")[1].tolist()
        [0.0001, 0.001, 0.01]
    """
    name, _, text = (part.strip() for part in entry.partition("="))
    hint = f"{entry}: write it as NAME=FIRST:LAST:COUNT, friction=0.1:0.9:50 for instance, or NAME=A,B,C"
    parts = text.split(":")
    try:
        if len(parts) == 1:
            values = np.asarray([float(x) for x in text.split(",")])
        else:
            first, last, count = float(parts[0]), float(parts[1]), _whole(parts[2])
            if parts[3:] not in ([], ["log"]) or count < 1 or (parts[3:] and not first * last > 0):
                raise InputError(hint)
            refuse_more(f"{entry}: {count} values", 8.0 * count, "give fewer")
            values = (np.geomspace if parts[3:] else np.linspace)(first, last, count)
    except InputError:
        raise
    except (ValueError, IndexError):
        raise InputError(hint) from None
    if not name:
        raise InputError(hint)
    return name if name.startswith("scheme.") else name.replace("-", "_"), values


def _whole(text: str) -> int:
    """Whole number from text, also in the form ``1e3``."""
    number = float(text)
    if not number.is_integer():
        raise ValueError(text)
    return int(number)


def make_plan(args: argparse.Namespace) -> SweepPlan:
    """The plan of a sweep from the arguments of ``nsjax sweep``. Raises `InputError` for input that can be
    refused before the sweep, paths of files included.
    """
    for_model, for_scheme = read_settings(args.set)
    problem, step, duration = read_problem(args.model, for_model)
    scheme = read_scheme(scheme_name(args), for_scheme)
    pairs = [read_axis(entry) for entry in args.axis]
    axes = dict(pairs)
    if len(axes) < len(pairs):
        double = next(name for name in axes if [x for x, _ in pairs].count(name) > 1)
        raise InputError(f"--axis {double}: an axis is given twice; write all its values in one")
    counts = tuple(len(x) for x in axes.values())
    if args.zip and len(set(counts)) > 1:
        raise InputError(f"--zip: the axes have {', '.join(map(str, counts))} values; give equally many")
    shape = counts[:1] if args.zip else counts
    lanes = math.prod(shape)
    refuse_more(f"sweep: {lanes} lanes", float(LANE_BYTES * lanes), "give fewer values")
    places = (
        (np.arange(counts[0]),) * len(counts) if args.zip else np.indices(counts).reshape(len(counts), -1)
    )
    given = {name: values[k] for (name, values), k in zip(axes.items(), places, strict=True)}
    over = _leaves(args.model, problem, for_model, given)
    quantities = ("energy_loss", *(CONTACT if problem.system.nc else ()))
    plan = SweepPlan(problem, scheme, over, axes, shape, _lengths(args, axes, step, duration), quantities)
    known = (*plan.quantities, CHAOS, *label_names(plan.problem.system))
    if args.quantity is not None and args.quantity not in known:
        raise InputError(f"--quantity {args.quantity}: {nearest(args.quantity, known)}")
    check_files(args.output, args.plot, args.model, checkpoint=args.checkpoint)
    if args.output is not None:
        check_form(pathlib.Path(args.output).suffix.removeprefix("."))
    if args.plot is not None and len(plan.shape) > 2:
        raise InputError(f"--plot: a figure shows one or two axes, not {len(plan.shape)}")
    return plan


def _lengths(
    args: argparse.Namespace, axes: Mapping[str, Any], step: float | None, duration: float | None
) -> dict[str, Any]:
    """Arguments ``dt``, ``steps``, ``time``, ``every`` of the sweep, which needs the last row only."""
    if "dt" in axes:
        duration = duration if args.time is None else args.time
        if args.dt is not None:
            raise InputError("dt is an axis; leave --dt out")
        if args.steps is not None:
            return {"steps": args.steps, "every": args.steps}
        if duration is None:
            raise InputError(f"{args.model} has no default duration; give --time")
        return {"time": duration, "samples": 1}
    step, steps = read_steps(args, step, duration)
    return {"dt": step, "steps": steps, "every": steps}


def _leaves(
    model: str, problem: Problem, fixed: Mapping[str, Any], lanes: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """Values of every lane by key of `nsjax.sweep`; keywords of the model through its constructor."""
    direct = {
        name: values
        for name, values in lanes.items()
        if name == "dt" or name.partition(".")[0] in ("scheme", "state", "params")
    }
    words = [name for name in lanes if name not in direct]
    if not words:
        return direct
    table = np.stack([lanes[name] for name in words], axis=1)
    unique, where = np.unique(table, axis=0, return_inverse=True)
    made = [_lane(model, problem, {**fixed, **dict(zip(words, row, strict=True))}, words) for row in unique]
    if any(x.system != problem.system for x in made):
        raise InputError(f"{', '.join(words)}: one of them changes the system itself; give it by --set")
    over = dict(direct)
    flat = [jax.tree_util.tree_flatten_with_path((x.params, x.state))[0] for x in made]
    for column in zip(*flat, strict=True):
        values = [np.asarray(leaf, float) for _, leaf in column]
        if any(not np.array_equal(x, values[0]) for x in values):
            root, *below = column[0][0]
            names_of = [str(getattr(x, "name", getattr(x, "key", getattr(x, "idx", "")))) for x in below]
            key = ".".join([("params", "state")[root.idx], *names_of])
            over[key] = np.stack(values)[where.reshape(-1)]
    if len(over) == len(direct):  # a range of one value
        name = next((w for w in words if w in names(problem.params)), None)
        if name is None:
            raise InputError(f"{', '.join(words)}: nothing varies; give at least two values")
        over[f"params.{name}"] = lanes[name]
    return over


def _lane(model: str, problem: Problem, values: dict[str, Any], words: list[str]) -> Problem:
    known = model.replace("-", "_")
    if known in models.REGISTRY:
        plain = inspect.signature(models.REGISTRY[known].factory).parameters
        for name in words:  # a number of balls, for instance, is an integer
            whole = name in plain and type(plain[name].default) is int and values[name].is_integer()
            values[name] = int(values[name]) if whole else float(values[name])
        return build(known, values)
    return problem.replace(**{name: values[name] for name in words})


def _reductions(system: System) -> dict[str, Any]:
    """Reductions of a lane; the last row covers the whole run, since it is the only row."""
    kept: dict[str, Any] = {name: reductions.final(name) for name in label_names(system)}
    kept |= {"energy": reductions.final("energy"), "energy_start": reductions.initial("energy")}
    if system.nc:
        kept |= {name: reductions.total(name) for name in ("impacts", "closed_time")}
        kept |= {"gap_min": reductions.minimum("gap_min")}
    return kept


def quantity(result: nsjax.SweepResult, name: str) -> np.ndarray:
    """A quantity of every lane from its reduced results; nan where the lane failed."""
    if name == "energy_loss":
        values = result["energy_start"] - result["energy"]
    elif name == "penetration":
        values = np.maximum(0.0, -np.min(result["gap_min"], axis=-1))
    elif name in CONTACT:
        values = np.sum(result[name], axis=-1)
    else:
        values = result[name]
    return np.where(result.ok, values, np.nan)


def run(args: argparse.Namespace) -> int:
    """Runs the command ``nsjax sweep``."""
    if args.devices is not None:
        if args.devices < 1:
            raise InputError(f"--devices {args.devices}; it must be at least 1")
        nsjax.configure(host_devices=args.devices)
    plan = make_plan(args)
    progress = Progress(shown=not args.quiet, unit="lanes")
    begin = time.perf_counter()
    progress.say("compiling")
    try:
        # results of the lanes; Lyapunov exponents first, since their lengths may be refused
        chaos = {}
        if args.quantity == CHAOS:
            lengths = {name: x for name, x in plan.lengths.items() if name not in ("every", "samples")}
            chaos[CHAOS] = nsjax.sweep_lyapunov(
                plan.problem, plan.scheme, plan.over, progress=progress, **lengths
            )
        found = nsjax.sweep(
            plan.problem, plan.scheme, plan.over, reduce=_reductions(plan.problem.system),
            progress=progress, checkpoint=args.checkpoint, **plan.lengths,
        )  # fmt: skip
        found = dataclasses.replace(found, values={**found.values, **chaos})
    finally:
        progress.clear()
    seconds = time.perf_counter() - begin
    failures = list(found.failures().values())
    if len(failures) == int(np.prod(plan.shape)):
        raise RunError(f"all lanes failed; {failures[0]}")
    result = _on_axes(found, plan)
    _write(args, plan, result)
    if args.quiet:
        for sentence in failures:
            print(f"nsjax: {sentence}", file=progress.stream)
    else:
        print(_summary(args, plan, result, failures, seconds), end="")
    return 0


def _on_axes(found: nsjax.SweepResult, plan: SweepPlan) -> nsjax.SweepResult:
    """The result with the user's names of the axes."""
    laid = jax.tree.map(
        lambda x: x.reshape(*plan.shape, *x.shape[1:]), (found.values, found.status, found.first_failure)
    )
    mode = "product" if len(plan.shape) > 1 else "zip"
    return dataclasses.replace(
        found, mode=mode, shape=plan.shape, over=plan.axes, values=laid[0], status=laid[1],
        first_failure=laid[2],
    )  # fmt: skip


def _write(args: argparse.Namespace, plan: SweepPlan, result: nsjax.SweepResult) -> None:
    if args.output is not None:
        with io.replacing(args.output) as file:
            result.save(file, pathlib.Path(args.output).suffix.removeprefix("."))
    if args.plot is not None:
        name = args.quantity or ("impacts" if plan.problem.system.nc else "energy_loss")
        entry = models.REGISTRY.get(args.model.replace("-", "_"))
        known = _units(plan) if entry is None else documented_units(entry.factory)
        units = {**known, "dt": "s"}
        title = f"{plan.problem.system.name or args.model}, {plan.scheme.name}"
        values, of = quantity(result, name), unit(plan.problem.system, name)
        figure = draw(plan.axes, values, name, of, title, units)
        save_figure(figure, args.plot)


def _units(plan: SweepPlan) -> dict[str, str]:
    """Units of the varied numbers of a mechanism, which stand with the fields of its parts."""
    keys = {name: parse_parameter(name, "sweep") for name in plan.axes}
    base = {"params": plan.problem.params}
    return {
        name: form_of(type(above(base, key)), key.path[-1]).unit
        for name, key in keys.items()
        if key.path[0] == "params"
    }


def unit(system: System, name: str) -> str:
    """Unit of a quantity of the command, empty for a number without unit."""
    own = {"energy_loss": "J", "penetration": "m", CHAOS: "1/s"}
    return own.get(name) or quantity_unit(system, name)


def _summary(
    args: argparse.Namespace, plan: SweepPlan, result: nsjax.SweepResult, failures: list[str],
    seconds: float,
) -> str:  # fmt: skip
    """Summary of a sweep for a reader."""
    count = int(np.prod(plan.shape))
    lines = [
        f"model            {plan.problem.system.name or 'without a name'}",
        f"scheme           {plan.scheme.name}",
        f"lanes            {' x '.join(map(str, plan.shape))} = {count}" if len(plan.shape) > 1 else
        f"lanes            {count}",
    ]  # fmt: skip
    most = 8  # largest number of listed values of a varied number in the summary
    for name, values in plan.axes.items():
        shown = ", ".join(f"{x:g}" for x in itertools.islice(values, most))
        more = f", ..., {values[-1]:g}" if len(values) > most else ""
        lines.append(f"  {name:<14} {shown}{more}")
    lines += ["", f"{'quantity':<16} {'least':>12} {'mean':>12} {'largest':>12}"]
    for name in (*plan.quantities, *((CHAOS,) if args.quantity == CHAOS else ())):
        values = quantity(result, name)
        numbers = [np.nanmin(values), np.nanmean(values), np.nanmax(values)]
        lines.append(
            f"{name:<16} " + " ".join(f"{x:12.5g}" for x in numbers) + f" {unit(plan.problem.system, name)}"
        )
    if failures:
        lines += ["", f"failed           {len(failures)} of {count} lanes; the first: {failures[0]}"]
    lines += ["", f"time             {seconds:.3g} s, compilation included"]
    lines += [f"wrote            {path}" for path in (args.output, args.plot) if path is not None]
    return "\n".join(line.rstrip() for line in lines) + "\n"
