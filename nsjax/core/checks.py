"""Checks of a problem before any work starts. Every error sentence names the thing, its value, the remedy.

Shapes and types are checked for traced values too; ranges only for concrete ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nsjax.core.arguments import check_signs
from nsjax.core.errors import InputError, check_choice, check_known, check_whole, nones, shapes_of
from nsjax.core.keys import is_number
from nsjax.core.scheme import Scheme
from nsjax.core.start_checks import (
    TOLERANCE,
    check_promises,
    definite,
    examined,
    held,
    overshoot,
    probed,
    violation,
    within,
)
from nsjax.core.system import State, System, gap_units
from nsjax.jaxtools.cache import CONFIG
from nsjax.jaxtools.control_flow import tree_shapes
from nsjax.jaxtools.owned import kept, latest
from nsjax.jaxtools.precision import least_tolerance
from nsjax.renamed import new_field
from nsjax.types import Array, PyTree, is_traced

REMEDY = "let nsjax.consistent(problem) do it"


def check_precision() -> None:
    """Refuses to run in single precision."""
    if not CONFIG.jax_enable_x64:
        raise InputError(
            "64-bit floats are off; contact decisions need them. Call nsjax.configure() before the "
            "first computation (or set JAX_ENABLE_X64=1)"
        )


def refuse_located(what: str) -> None:
    """Refuses ``what`` in programs of single precision if it locates instants."""
    if least_tolerance():
        raise InputError(
            f"{what} in single precision; instants are located to 1e-13 of their functions: take "
            "nsjax.single_precision of a function without it"
        )


def canonical_scheme(scheme: Scheme) -> Scheme:
    """The scheme with its numbers as strong arrays, in programs of single precision with tolerances that it
    can reach. Raises `InputError` for numbers that are none, tolerances below zero, and instants in single
    precision.
    """
    if scheme.traits.locates:
        refuse_located(f"scheme {scheme.name!r}")
    scheme, least = dataclasses.replace(scheme, coef=canonical(scheme.coef, "scheme")), least_tolerance()
    check_tolerances(scheme)

    def reached(path: Any, value: Any) -> Any:
        name = jax.tree_util.keystr(path)
        return jnp.maximum(value, least) if "tolerance" in name and "gap" not in name else value

    raised = jax.tree_util.tree_map_with_path(reached, scheme.coef) if least else scheme.coef
    return dataclasses.replace(scheme, coef=raised)


def canonical(tree: PyTree, what: str) -> PyTree:
    """All numbers of ``tree`` as strong float64 arrays, so that Python floats, numpy scalars and
    arrays share one compiled program. Single precision is refused, not widened.
    """
    leaves, structure = jax.tree.flatten(tree)
    if all(type(x) is float or (type(x) is np.ndarray and x.dtype == np.float64) for x in leaves):
        values = [np.asarray(x) for x in leaves]
        if not values or np.all(np.isfinite(np.concatenate(values, axis=None))):
            return jax.tree.unflatten(structure, values)  # names of leaves take ten times as long

    def convert(path: Any, leaf: Any) -> Any:
        name = what + jax.tree_util.keystr(path)
        if isinstance(leaf, str) or not is_number(leaf):
            raise InputError(f"{name} = {leaf!r}; numbers and arrays of numbers only")
        dtype = np.dtype(getattr(leaf, "dtype", type(leaf)))
        if dtype in (np.float32, np.float16) or dtype.name == "bfloat16":
            raise InputError(f"{name} has type {dtype}; give it in 64 bits, numpy.float64 for instance")
        if dtype.kind not in "biuf":
            raise InputError(f"{name} has type {dtype}; real numbers only")
        if dtype.kind == "b":
            return leaf
        if not isinstance(leaf, jax.core.Tracer):
            try:
                value = np.asarray(leaf, float)
            except OverflowError:  # a whole number beyond float64
                raise InputError(f"{name} is beyond 1.8e308; every number must be finite") from None
            if not np.all(np.isfinite(value)):
                raise InputError(f"{name} = {value.tolist()}; every number must be finite")
            return value  # a numpy array costs a fiftieth of a jax array to make, and serves `jit` as well
        same = leaf.dtype == np.float64 and not jax.typeof(leaf).weak_type
        return leaf if same else jnp.asarray(leaf, jnp.float64)

    return jax.tree_util.tree_map_with_path(convert, tree)


def check_kind(system: Any, scheme: Any) -> None:
    """Refuses a system or scheme of the wrong kind, with a hint for common mistakes."""
    if not isinstance(system, System):
        given = f"a {type(system).__name__}" if isinstance(system, Scheme | State) else repr(system)
        raise InputError(
            f"simulate: system = {given}; it must be an nsjax.System; give the problem, then the scheme: "
            "simulate(problem, scheme, dt=1e-3, time=1.0)"
        )
    if not isinstance(scheme, Scheme):
        name = getattr(scheme, "__name__", repr(scheme))
        hint = f"; did you forget the brackets: {name}()?" if callable(scheme) else ""
        if isinstance(scheme, str) and scheme.isidentifier():
            hint = f", which a function makes: from nsjax import schemes, then schemes.{scheme}()"
        raise InputError(f"simulate: scheme = {name}; it must be an nsjax.Scheme{hint}")


def check_state(state: Any) -> None:
    """Refuses a start that is no `State` of arrays."""
    if not isinstance(state, State):
        raise InputError(
            f"state = {state!r}; it must be an nsjax.State, State(t=0.0, q=np.zeros(2), v=np.zeros(2)) for "
            "instance"
        )
    for name in ("t", "q", "v"):
        value = getattr(state, name)
        if not hasattr(value, "dtype") and not (name == "t" and isinstance(value, int | float)):
            wanted = "a number" if name == "t" else f"an array, np.asarray({value!r}, float)"
            raise InputError(f"state.{name} = {value!r}; give {wanted}")


OPTIONAL = ("gamma", "mass_scale")
"""Numbers of schemes for which None is a choice."""


def check_tolerances(scheme: Scheme) -> None:
    """Refuses None and tolerances below zero; a gap below which contacts act may be negative."""
    for path, value in jax.tree_util.tree_flatten_with_path(scheme.coef, is_leaf=lambda x: x is None)[0]:
        name = jax.tree_util.keystr(path)
        if value is None and name.rpartition(".")[2] not in OPTIONAL:
            raise InputError(f"scheme{name} = None; give a number, or leave it out of {scheme.name}()")
        if "tolerance" in name and "gap" not in name and not is_traced(value) and not np.all(value >= 0.0):
            raise InputError(f"scheme{name} = {np.asarray(value).tolist()}; it must not be negative")


def check_shapes(system: System, params: PyTree, state: State) -> None:
    """Shapes and types of the state and of everything the model's functions return."""
    for name, count in (("q", system.nq), ("v", system.nv)):
        shape = jnp.shape(getattr(state, name))
        if shape != (count,):
            raise InputError(f"state.{name} has shape {shape}; the system needs ({count},)")
    if jnp.shape(state.t) != ():
        raise InputError(f"state.t has shape {jnp.shape(state.t)}; it must be one number")
    _check_functions(system, *tree_shapes((params, state)))


@kept
def _check_functions(system: System, tree: Any, leaves: tuple[tuple[Any, Any], ...]) -> None:
    params, state = jax.tree.unflatten(tree, [jax.ShapeDtypeStruct(*x) for x in leaves])
    if system.prepare is not None:
        params = shapes_of("prepare", system.prepare, params)
    if system.refresh is not None:
        params = shapes_of("refresh", system.refresh, state.t, state.q, params)
    t, q, v, p = state.t, state.q, state.v, params
    s = system
    wanted = {
        "mass": ((q, p), (s.nv, s.nv)), "inertia": ((q, v, p), (s.nv,)), "force": ((t, q, v, p), (s.nv,)),
        "potential": ((t, q, p), ()), "gap": ((t, q, p), (s.nc,)), "slip": ((t, q, v, p), (s.nc, s.nt)),
        "constraint": ((t, q, p), (s.nb - s.nh,)), "velocity_constraint": ((t, q, v, p), (s.nh,)),
        "dry_friction": ((t, q, v, p), (s.nd,)), "retract": ((q, v), (s.nq,)),
        "difference": ((q, q), (s.nv,)),
    }  # fmt: skip
    for name, (arguments, shape) in wanted.items():
        function = getattr(system, name)
        if function is None:
            continue
        result = shapes_of(name, function, *arguments)
        if getattr(result, "shape", None) != shape:
            found = f"shape {result.shape}" if hasattr(result, "shape") else type(result).__name__
            raise InputError(f"{name} returns {found}; the system needs shape {shape}")
        if result.dtype != np.float64:
            raise InputError(f"{name} returns type {result.dtype}; it must return float64")
    if system.allowed is not None:
        _check_allowed(shapes_of("allowed", system.allowed, t, q, p), s.nc)
    if system.switch is not None:
        found = shapes_of("switch", system.switch, t, q, v, p)
        if np.ndim(found) != 1 or getattr(found, "dtype", None) != np.float64:
            what = f"shape {np.shape(found)}" if hasattr(found, "shape") else type(found).__name__
            raise InputError(f"switch returns {what}; it must return (ns,) float64, one number per surface")
    if system.dry_friction_bound is not None and system.dry_friction_law is None:
        bound = shapes_of("dry_friction_bound", system.dry_friction_bound, params)
        if jnp.shape(bound) not in ((), (s.nd,)):
            raise InputError(
                f"dry_friction_bound has shape {jnp.shape(bound)}; give one number or ({s.nd},)"
            )
    if system.law is not None:
        _check_law_shapes(system, shapes_of("law", system.law, params), params)


def _check_allowed(result: Any, nc: int) -> None:
    shape, dtype = getattr(result, "shape", type(result).__name__), getattr(result, "dtype", None)
    if shape != (nc,) or dtype != np.dtype(bool):
        raise InputError(f"allowed returns shape {shape} of type {dtype}; it must return ({nc},) bool")


def _check_law_shapes(system: System, law: Any, params: PyTree) -> None:
    for name in ("restitution", "restitution_tangential", "friction"):
        value = getattr(law, name, None)
        if value is None:
            none = "".join(f"; params{x} is None: give a number" for x in nones(params))
            kind = "an array" if hasattr(law, "shape") else type(law).__name__
            raise InputError(f"law returns {kind} without {name}; return a ContactLaw{none}")
        if not is_number(value):
            raise InputError(f"law: {name} = {value!r}; give one number or one per contact ({system.nc},)")
        if jnp.shape(value) not in ((), (system.nc,)):
            raise InputError(
                f"law: {name} has shape {jnp.shape(value)}; give one number or one per contact "
                f"({system.nc},)"
            )


def examined_start(
    system: System, params: PyTree, state: State, scheme: Scheme, dt: Array, traced: bool
) -> tuple[State, Array | None]:
    """The start of a run; inside transformations with status bits, see `nsjax.core.start_checks.examined`.
    Raises `InputError` outside of them for numbers out of range.
    """
    if traced:
        check_signs(params)
        return examined(system, params, state, scheme, dt)
    check_values(system, params, state, scheme, dt)
    return state, None


@latest
def check_values(
    system: System, params: PyTree, state: State, scheme: Scheme | None = None, dt: Array | float = 0.0
) -> None:
    """Checks the ranges of law, mass and signed numbers, and that the start respects contacts and
    constraints, or violates them only as far as steps of the size ``dt`` may have left it.

    A singular mass passes if the ``scheme`` takes it.
    """
    _check_own_signs(system, params)
    found = {name: np.asarray(value) for name, value in probed(system, params, state).items()}
    check_numbers(system, found, scheme)
    try:
        check_start(system, found)
    except InputError:
        beyond = overshoot(system, params, state, dt)
        check_start(system, found | {name: np.asarray(value) for name, value in beyond.items()})


@latest
def _check_own_signs(system: System, params: PyTree) -> None:
    """`check_signs`, not repeated for another start."""
    check_signs(params)


def check_found(system: System, found: dict[str, np.ndarray], scheme: Scheme | None = None) -> None:
    """`check_values` for the numbers ``found`` by `probe` and `overshoot`."""
    check_numbers(system, found, scheme)
    check_start(system, found)


def check_numbers(system: System, found: dict[str, np.ndarray], scheme: Scheme | None = None) -> None:
    """Checks the ranges of law and mass, and the promises of the system."""
    for name, words in _RANGES.items():
        if name in found and not np.all(within(name, found)):
            raise InputError(f"{name} = {found[name].tolist()}; {words}")
    for name in ("slip", "dry_friction", "velocity_constraint"):
        if f"{name}: bend" in found and not within(f"{name}: bend", found):
            raise InputError(
                f"{name} is not affine in v: its second difference along v is "
                f"{float(found[f'{name}: bend']):.3g} of its size; return velocities, not squares or norms"
            )
    check_promises(system, found)
    if "mass" in found:
        _check_mass(found["mass"], found.get("constraint_rows"), scheme)


_RANGES = dict.fromkeys(("restitution", "restitution_tangential"), "it must lie in [0, 1]") | {
    "friction": "it must not be negative", "dry_friction_bound": "bounds must not be negative",
    "friction_sliding": "it must not be negative", "friction_speed": "it must be positive",
    "restitution_speed": "it must be positive",
}  # fmt: skip


def check_start(system: System, found: dict[str, np.ndarray]) -> None:
    """Checks that a start respects contacts and constraints, as far as `overshoot` asks."""
    if "gap" in found:
        _check_start(
            system.labels.contacts, "gap", found, "gap of contact",
            f"the start penetrates; move the bodies apart, {REMEDY}", gap_units(system),
        )  # fmt: skip
    if "constraint" in found:
        _check_start(
            system.labels.constraints, "constraint", found, "residual of constraint",
            f"the start violates it; choose initial_q on the constraint, {REMEDY}",
        )  # fmt: skip
        _check_start(
            system.labels.constraints, "rate", found, "rate of constraint",
            f"the start violates it on velocity level; choose initial_v along the constraint, {REMEDY}",
        )  # fmt: skip


def _check_start(
    names: tuple[str, ...], key: str, found: dict[str, np.ndarray], what: str, remedy: str,
    units: tuple[str, ...] = (),
) -> None:  # fmt: skip
    if np.all(within(key, found)):
        return
    value, beyond = found[key], violation(key, found)
    worst = int(np.argmax(np.where(np.isnan(beyond), np.inf, beyond)))
    name = f"{worst} ({names[worst]})" if names else f"{worst}"
    size = f"{value[worst]:.6g} {units[worst]}" if units else f"{value[worst]:.6g}"
    raise InputError(f"{what} {name} = {size} at the start; {remedy}, or pass carry= to continue a run")


def _check_mass(mass: np.ndarray, rows: np.ndarray | None, scheme: Scheme | None) -> None:
    if not np.all(np.isfinite(mass)):
        raise InputError("mass has entries that are not finite at the start; check params and state")
    size = np.max(np.abs(mass))
    skew = np.max(np.abs(mass - mass.T))
    if skew > TOLERANCE * size:
        raise InputError(
            f"mass is not symmetric at the start: |M - M'| = {skew:.3g}; return a symmetric matrix"
        )
    if definite(mass):
        return
    by_rows = rows is not None and bool(held(mass, rows))
    if by_rows and scheme is not None and scheme.traits.singular_mass:
        return
    remedy = "every velocity needs inertia (check masses, lengths and their signs)"
    if by_rows and scheme is not None:
        remedy = (
            f"the scheme {scheme.name!r} needs inertia for every velocity; the nsga schemes take "
            "velocities without inertia that constraints hold, as here"
        )
    smallest = np.linalg.eigvalsh(mass)[0]
    raise InputError(
        f"mass is not positive definite at the start: smallest eigenvalue {smallest:.6g}; {remedy}"
    )


def check_gradient(scheme: Scheme, gradient: str | None) -> None:
    """Refuses a derivative that does not exist or that the scheme does not provide."""
    if gradient is not None:
        check_choice("gradient", gradient, ("saltation", "discrete"))
    if gradient == "saltation" and scheme.gradient != "saltation":
        raise InputError(
            f"gradient = {gradient!r}; the scheme {scheme.name!r} provides {scheme.gradient!r} only"
        )


def concrete_number(value: Array | float, name: str) -> float:
    """A finite positive number, such as a step size [s]; ``name`` is the argument."""
    plain = value if isinstance(value, str | bytes | bool | list | tuple) else np.asarray(value)
    if not isinstance(plain, np.ndarray) or plain.shape != () or plain.dtype.kind not in "iuf":
        hint = (
            "; nsjax.sweep and nsjax.sweep_time_step run several" if name == "dt" and np.ndim(value) else ""
        )
        raise InputError(f"{name} = {value!r}; it must be one number{hint}")
    number = float(plain)
    if not np.isfinite(number) or number <= 0:
        raise InputError(f"{name} = {number}; it must be positive and finite")
    return number


def check_lengths(dt: Array | float, steps: int | None, time: float | None, every: int, events: int) -> int:
    """Number of steps; durations are refused unless they are whole numbers of steps and rows."""
    if not isinstance(dt, jax.core.Tracer):
        dt = concrete_number(dt, "dt")
    elif jnp.shape(dt) != ():
        raise InputError(f"dt has shape {jnp.shape(dt)}; it must be one number")
    if (steps is None) == (time is None):
        raise InputError(f"give exactly one of steps and time; got steps = {steps}, time = {time}")
    check_whole("every", every, 1)
    check_whole("events", events, 0)
    if time is not None:
        if isinstance(dt, jax.core.Tracer):
            raise InputError("time needs a concrete dt; give steps when dt is traced")
        duration = concrete_number(time, "time")
        steps = round(duration / dt)
        # dt and time are decimal numbers rounded to binary: their ratio is off by a few ulp of itself
        if abs(steps * dt - duration) > 1e-9 * duration or steps < 1:
            below = int(duration / dt)
            raise InputError(
                f"time = {duration:g} is not a whole number of steps of dt = {dt:g}; the nearest are "
                f"{below * dt:.12g} and {(below + 1) * dt:.12g}"
            )
    steps = check_whole("steps", steps, 1)
    if steps % every:
        lower = steps - steps % every
        choices = [str(n) for n in (lower, lower + every) if n > 0]
        raise InputError(
            f"steps = {steps} is not a multiple of every = {every}; the nearest are {' and '.join(choices)}"
        )
    return steps


def check_save(save: Sequence[str] | None, known: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the row quantities to keep, in the order of ``known``."""
    if save is None:
        return known
    if isinstance(save, str) or not isinstance(save, Iterable):
        one = save if isinstance(save, str) else known[0]
        raise InputError(f"save = {save!r}; give a list of names, such as [{one!r}]")
    save = [new_field("RowQuantities", name) for name in save]
    for name in save:
        check_known("save: unknown quantity", name, known)
    return tuple(name for name in known if name in save)
