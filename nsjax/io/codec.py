"""Trees of records and numbers, and schemes, in files: without pickles, by public names."""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from nsjax import schemes
from nsjax.contact import Criteria
from nsjax.core import InputError, Scheme, nearest
from nsjax.jaxtools.control_flow import tree_shapes
from nsjax.renamed import OLD_FIELDS
from nsjax.types import PyTree

# Public names of the records in files: a file has public names instead of class paths, so that classes
# may move.
#
# A name that a file has used never changes; where its class moves or is renamed, the class path here
# changes.


PLACES = {
    "state": "nsjax.core.system:State", "carry": "nsjax.core.scheme:Carry",
    "continuation": "nsjax.trajectory:Continuation", "first_failure": "nsjax.trajectory:FirstFailure",
    "impacts": "nsjax.trajectory:Impacts", "model.block": "nsjax.models.block:Block",
    "model.bouncing_ball": "nsjax.models.bouncing_ball:BouncingBall",
    "model.elastic_bar": "nsjax.models.elastic_bar:ElasticBar",
    "model.flexible_cube": "nsjax.models.flexible_cube:FlexibleCube",
    "model.flexible_pendulum": "nsjax.models.flexible_pendulum:FlexiblePendulum",
    "model.mass_spring_chain": "nsjax.models.mass_spring_chain:MassSpringChain",
    "model.rubbing_rotor": "nsjax.models.rubbing_rotor:RubbingRotor",
    "model.slider_crank": "nsjax.models.slider_crank:SliderCrank",
    "model.slider_crank_bilateral": "nsjax.models.slider_crank:SliderCrankBilateral",
    "model.slider_crank_flexible": "nsjax.models.slider_crank_flexible:SliderCrankFlexible",
    "fem.modes": "nsjax.fem.rod:Modes", "multibody.body": "nsjax.multibody.numbers:Body",
    "multibody.joint": "nsjax.multibody.numbers:Joint",
    "multibody.spring": "nsjax.multibody.numbers:Spring", "multibody.load": "nsjax.multibody.numbers:Load",
    "multibody.tendon": "nsjax.multibody.loads.load_kind:Tendon",
    "multibody.coupling": "nsjax.multibody.numbers:Coupling",
    "multibody.pitch": "nsjax.multibody.joints.screw:Pitch",
    "multibody.wheel": "nsjax.multibody.joints.rolling:Wheel",
    "multibody.contact": "nsjax.multibody.numbers:Contact",
    "multibody.points": "nsjax.multibody.numbers:Points",
    "multibody.corners": "nsjax.multibody.numbers:Corners",
    "multibody.ball": "nsjax.multibody.numbers:Ball", "multibody.walls": "nsjax.multibody.numbers:Walls",
    "multibody.plane": "nsjax.multibody.numbers:Plane", "multibody.round": "nsjax.multibody.numbers:Round",
    "multibody.profile": "nsjax.multibody.numbers:Profile",
    "multibody.tube": "nsjax.multibody.numbers:Tube", "multibody.hull": "nsjax.multibody.numbers:Hull",
    "multibody.heightfield": "nsjax.multibody.contacts.heightfields:Heightfield",
    "multibody.distance_field": "nsjax.multibody.contacts.distance_fields:DistanceField",
    "multibody.curve": "nsjax.multibody.contacts.curves:Curve",
    "multibody.section": "nsjax.multibody.numbers:Section",
    "multibody.beam": "nsjax.multibody.numbers:Beam",
    "multibody.group_reach": "nsjax.multibody.numbers:GroupReach",
    "multibody.contact_group": "nsjax.multibody.numbers:ContactGroup",
    "memory.impulsive": "nsjax.contact.events:Touch",
    "memory.mixed": "nsjax.schemes.mixed.base_step:Memory",
    "memory.nsga": "nsjax.schemes.nsga.step:NsgaMemory", "input.driven": "nsjax.core.inputs:DrivenParams",
    "input.table": "nsjax.core.signals:SampledSignal", "input.segment": "nsjax.core.signals:Segment",
    "input.guards": "nsjax.core.guards:GuardMemory", "input.filtered": "nsjax.core.filters:FilteredParams",
    "multibody.actuator": "nsjax.multibody.files.actuators:Servo",
    "multibody.muscle": "nsjax.multibody.files.muscles:Muscle",
    "multibody.excitation": "nsjax.multibody.files.muscles:Excitation",
    "multibody.servo": "nsjax.multibody.joint_forces:ServoNumbers",
    "multibody.thruster": "nsjax.multibody.numbers:Thruster",
    "multibody.ellipsoid_drag": "nsjax.multibody.loads.ellipsoid_drag:Ellipsoid",
    "multibody.spheres": "nsjax.multibody.contacts.spheres:SphereNumbers",
    "memory.whole": "nsjax.contact.contact_set:ContactMemory",
    "memory.pairs": "nsjax.contact.contact_set:ContactMemory",
    "memory.remembered": "nsjax.schemes.impulses.impulse_step:ImpulseMemory",
    "memory.carried": "nsjax.contact.equations:CarriedTangent",
    "memory.tangent": "nsjax.contact.equations:StageTangent",
    "linalg.inverse": "nsjax.linalg.structure:Inverse",
    "linalg.triangles": "nsjax.linalg.structure:Triangles",
    "linalg.eliminated": "nsjax.linalg.structure:EliminatedTridiagonal",
    "linalg.tridiagonal": "nsjax.linalg.dense:Tridiagonal", "linalg.factors": "nsjax.linalg.dense:Factors",
    "linalg.block_tridiagonal": "nsjax.linalg.structure:BlockTridiagonal",
    "linalg.dense": "nsjax.linalg.structure:Dense", "linalg.sparse": "nsjax.linalg.structure:Sparse",
    "linalg.pattern": "nsjax.linalg.elimination:Pattern", "linalg.blocks": "nsjax.linalg.blocks:Blocks",
    "linalg.paired": "nsjax.linalg.blocks:Paired",
    "linalg.block_diagonal": "nsjax.linalg.block_structures:BlockDiagonal",
    "linalg.block_inverse": "nsjax.linalg.block_structures:BlockInverse",
    "linalg.saddle": "nsjax.linalg.block_structures:Saddle",
    "linalg.interleaved": "nsjax.linalg.block_structures:Interleaved",
    "linalg.lattice": "nsjax.linalg.block_structures:Lattice",
    "linalg.arrow": "nsjax.linalg.block_structures:Arrow",
    "linalg.eliminated_arrow": "nsjax.linalg.block_structures:EliminatedArrow",
}  # fmt: skip
"""Public name of every record, and the present path of its class."""

VERSION_0_1 = {
    "nsjax.core.system:State": "state", "nsjax.core.scheme:Carry": "carry",
    "nsjax.trajectory:Continuation": "continuation", "nsjax.trajectory:FirstFailure": "first_failure",
    "nsjax.trajectory:Impacts": "impacts", "nsjax.models.box:Block": "model.block",
    "nsjax.models.bouncing_ball:BouncingBall": "model.bouncing_ball",
    "nsjax.models.elastic_bar:ElasticBar": "model.elastic_bar",
    "nsjax.models.mass_spring_chain:MassSpringChain": "model.mass_spring_chain",
    "nsjax.models.rubbing_rotor:RubbingRotor": "model.rubbing_rotor",
    "nsjax.models.slider_crank:SliderCrank": "model.slider_crank",
    "nsjax.models.slider_crank:SliderCrankBilateral": "model.slider_crank_bilateral",
    "nsjax.models.slider_crank_flexible:SliderCrankFlexible": "model.slider_crank_flexible",
    "nsjax.fem.modes:Modes": "fem.modes", "nsjax.schemes.impulsive:Resting": "memory.impulsive",
    "nsjax.schemes.base_step:Memory": "memory.mixed", "nsjax.schemes.nsga_step:Memory": "memory.nsga",
}  # fmt: skip
"""Class paths in files of version 0.1, with their public names; the table does not change any more."""


def public_name(cls: type[Any]) -> str:
    """The name of a record in a file: from the table, or ``module:Class`` for a user's own.

    Example:
        >>> from nsjax.core import State
        >>> from nsjax.io.codec import public_name
        >>> public_name(State)
        'state'
    """
    place = f"{cls.__module__}:{cls.__qualname__}"
    return next((name for name, known in PLACES.items() if known == place), place)


def find_record(name: str) -> type[Any]:
    """The record type of a name in a file. Only modules of the table are imported, since a file must not
    run code; the module of a user's record must be imported already.

    Args:
        name: from `public_name`, or a class path: of version 0.1, or of a class that got its name later.

    Raises:
        InputError: for a record type that does not exist (any more).

    Example:
        >>> from nsjax.io.codec import find_record
        >>> find_record("state").__name__, find_record("nsjax.core.system:State").__name__
        ('State', 'State')
    """
    place = PLACES.get(VERSION_0_1.get(name, name), name)
    if name.startswith("nsjax.") and place not in PLACES.values():  # modules move, names of classes stay
        called = [x for x in PLACES.values() if x.partition(":")[2] == name.partition(":")[2]]
        place = called[0] if len(called) == 1 else place
    if place not in PLACES.values():
        raise InputError(
            f"the saved record {name} does not exist in this version; read it with the "
            "version that wrote it"
        )
    module_name, _, qualified = place.partition(":")
    return getattr(importlib.import_module(module_name), qualified)


def is_record(value: Any) -> bool:
    """Whether a class is a dataclass or a named tuple."""
    return isinstance(value, type) and (dataclasses.is_dataclass(value) or hasattr(value, "_fields"))


# Trees of records and numbers, encoded without pickles as named arrays and a description.


Description = dict[str, Any] | None


def describe(name: str, value: PyTree, arrays: dict[str, np.ndarray]) -> Description:
    """Puts every number of ``value`` into ``arrays`` under a dotted name and returns a description of their
    structure in types of JSON.

    Args:
        name: first part of the dotted names, such as ``"params"``.
        value: numbers, arrays, strings, None, and tuples, lists, dicts and records of them.
        arrays: dict that receives the arrays.

    Raises:
        InputError: for other values, functions for instance.

    Example:
        >>> from nsjax.io.codec import describe
        >>> arrays = {}
        >>> describe("p", {"k": 2.0}, arrays), arrays
        ({'dict': {'k': {'number': 'p.k'}}}, {'p.k': array(2.)})
    """
    if value is None:
        return None
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, bool | int | float):
        return {"number": _put(name, value, arrays)}
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return {"array": _put(name, value, arrays)}
    if isinstance(value, Mapping):
        return {"dict": _describe_all(name, value, arrays)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {"record": public_name(type(value)), "fields": _describe_all(name, fields, arrays)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = {field: getattr(value, field) for field in value._fields}
        return {"record": public_name(type(value)), "fields": _describe_all(name, fields, arrays)}
    if isinstance(value, tuple | list):
        parts = [describe(f"{name}.{i}", part, arrays) for i, part in enumerate(value)]
        return {"tuple" if isinstance(value, tuple) else "list": parts}
    raise InputError(f"{name} = {value!r} cannot be saved; numbers, strings and records of them only")


def _describe_all(
    name: str, values: Mapping[Any, PyTree], arrays: dict[str, np.ndarray]
) -> dict[str, Description]:
    for key in values:
        if not isinstance(key, str):
            raise InputError(f"{name} has the key {key!r}, which cannot be saved; use strings")
    return {key: describe(f"{name}.{key}", part, arrays) for key, part in values.items()}


def _put(name: str, value: Any, arrays: dict[str, np.ndarray]) -> str:
    if isinstance(value, jax.core.Tracer):
        raise InputError(f"{name} is traced; save outside jit, vmap and grad")
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise InputError(f"{name} has type {array.dtype}, which cannot be saved; use plain numbers")
    if name in arrays:
        raise InputError(f"two numbers would be saved as {name}; give their keys names without dots")
    arrays[name] = array
    return name


def entries_of(description: Any) -> Iterator[str]:
    """Names of the arrays of a description."""
    if isinstance(description, list):
        description = dict(enumerate(description))
    for kind, content in description.items() if isinstance(description, dict) else ():
        if kind in ("number", "array") and isinstance(content, str):
            yield content
        else:
            yield from entries_of(content)


class ChangedRecordError(InputError):
    """A saved record lacks fields that this version needs, or has fields that it does not know."""


def rebuild(
    description: Description, arrays: Mapping[str, np.ndarray], known: Mapping[str, type[Any]]
) -> PyTree:
    """The value that `describe` described.

    Args:
        description, arrays: from `describe`.
        known: record types by name, for records that are not nsjax's: the module in which a type was
            defined when it was saved (a script, for instance) need not be importable now.

    Raises:
        InputError: for a record type that does not exist (any more).
        ChangedRecordError: for a record whose fields changed; new fields take their default value.
        KeyError: for a missing array.
    """
    if description is None:
        return None
    (kind, content) = next(iter(description.items()))
    if kind == "text":
        return content
    if kind == "number":
        return arrays[content].item()
    if kind == "array":
        return arrays[content]
    if kind in ("tuple", "list"):
        parts = [rebuild(part, arrays, known) for part in content]
        return tuple(parts) if kind == "tuple" else parts
    if kind == "dict":
        return {key: rebuild(part, arrays, known) for key, part in content.items()}
    fields = {key: rebuild(part, arrays, known) for key, part in description["fields"].items()}
    own = content.startswith("nsjax.") or ":" not in content
    cls = find_record(content) if own else known.get(content.partition(":")[2]) or _find(content)
    renamed = OLD_FIELDS.get(cls.__name__, {}) if own else {}
    fields = {renamed.get(key, key): part for key, part in fields.items()}
    _check_fields(content, cls, fields)
    return cls(**fields)


def _check_fields(name: str, cls: type[Any], fields: Mapping[str, Any]) -> None:
    """Refuses fields that do not fit the record; a field with a default value may be absent."""
    if dataclasses.is_dataclass(cls):
        missing = dataclasses.MISSING
        known = {
            f.name: f.default is missing and f.default_factory is missing for f in dataclasses.fields(cls)
        }
    else:
        known = {field: field not in cls._field_defaults for field in cls._fields}
    faults = [f"lacks {field}" for field, needed in known.items() if needed and field not in fields]
    faults += [f"has {field}, which is unknown now" for field in fields if field not in known]
    if faults:
        raise ChangedRecordError(
            f"the saved record {name} does not fit this version: it {', '.join(faults)}"
        )


def _find(name: str) -> type[Any]:
    """A user's record type by its class path, from a module that is already imported."""
    module_name, _, qualified = name.partition(":")
    found: Any = sys.modules.get(module_name)
    if found is None:
        raise InputError(f"the saved record {name} is unknown; import {module_name} before loading")
    for part in qualified.split("."):
        found = getattr(found, part, None)
    if not is_record(found):
        raise InputError(f"the saved record {name} does not exist in {module_name}; put the class there")
    return found


def record_types(tree: PyTree) -> dict[str, type[Any]]:
    """The record types that occur in a tree, by name."""
    found: dict[str, type[Any]] = {}
    parts: list[PyTree] = []
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        found[type(tree).__qualname__] = type(tree)
        parts = [getattr(tree, f.name) for f in dataclasses.fields(tree)]
    elif isinstance(tree, Mapping):
        parts = list(tree.values())
    elif isinstance(tree, tuple | list):
        if hasattr(tree, "_fields"):
            found[type(tree).__qualname__] = type(tree)
        parts = list(tree)
    for part in parts:
        found |= record_types(part)
    return found


# Schemes in files: registered name, numbers and options.


SchemeDescription = dict[str, Any]

INSIDE = "localized("


class UnsavedSchemeError(InputError):
    """Error for a scheme that the registry cannot rebuild."""


def describe_scheme(scheme: Scheme) -> SchemeDescription:
    """Name, numbers and options of a scheme in types of JSON; functions are not saved. ``scheme``: any
    scheme with concrete numbers.

    Returns:
        ``name``, ``numbers`` (by dotted names), ``options``, ``gradient``, ``criteria``; ``restorable``:
        whether `rebuild_scheme` returns the same scheme. The description of a user's scheme serves human
        readers only.

    Example:
        >>> from nsjax import schemes
        >>> from nsjax.io.codec import describe_scheme
        >>> describe_scheme(schemes.hht(alpha_f=0.1))["numbers"]["alpha_f"]
        0.1
    """
    arrays: dict[str, np.ndarray] = {}
    describe("numbers", scheme.coef, arrays)
    numbers = {name.removeprefix("numbers."): array.tolist() for name, array in arrays.items()}
    criteria = None if scheme.criteria is None else dataclasses.asdict(scheme.criteria)
    made: SchemeDescription = {
        "name": scheme.name, "numbers": numbers, "gradient": scheme.gradient, "criteria": criteria,
    }  # fmt: skip
    try:
        made["options"] = _plain(scheme.options, _default(scheme.name))
        again = rebuild_scheme(made)
        same = tree_shapes(again)[0] == tree_shapes(scheme)[0]
        leaves = jax.tree.leaves(again), jax.tree.leaves(scheme)
        made["restorable"] = bool(same) and all(map(np.array_equal, *leaves))
    except InputError:
        options = scheme.options
        if dataclasses.is_dataclass(options) and not isinstance(options, type):
            options = {f.name: getattr(options, f.name) for f in dataclasses.fields(options)}
        made |= {"options": json.loads(json.dumps(options, default=repr)), "restorable": False}
    return made


def rebuild_scheme(content: Mapping[str, Any]) -> Scheme:
    """The scheme from a description that `describe_scheme` made in this version or version 0.1.

    Numbers and options that were added later take the default of the registered scheme. ``content``:
    description from `describe_scheme`, read from JSON.

    Raises:
        UnsavedSchemeError: for a scheme that is not one of the package, and for unknown numbers or options.

    Example:
        >>> from nsjax import schemes
        >>> from nsjax.io.codec import describe_scheme, rebuild_scheme
        >>> rebuild_scheme(describe_scheme(schemes.bathe())).name
        'bathe'
    """
    name = content["name"]
    if not content.get("restorable", True):
        raise UnsavedSchemeError(f"the scheme {name!r} has functions of its own, which are not saved")
    default = _default(name)
    numbers = dict(content["numbers"])
    coef = _numbers("numbers", default.coef, numbers)
    if numbers:
        raise UnsavedSchemeError(f"{name} has no number {next(iter(numbers))!r} in this version")
    options = _options(default.options, content["options"], default)
    gradient = content.get("gradient", default.gradient)
    criteria = _criteria(name, content.get("criteria"))
    if name.startswith(INSIDE):
        options = dataclasses.replace(options, inner=dataclasses.replace(options.inner, criteria=criteria))
    return dataclasses.replace(default, coef=coef, options=options, gradient=gradient, criteria=criteria)


def _criteria(name: str, saved: dict[str, Any] | None) -> Criteria | None:
    if saved is None:
        return None
    known = {f.name for f in dataclasses.fields(Criteria)}
    for key in saved:
        if key not in known:
            raise UnsavedSchemeError(f"{name}: there is no criterion {key!r} in this version")
    return Criteria(**saved)


def _default(name: str) -> Scheme:
    """The registered scheme of a name, ``localized(name)`` included, with its defaults."""
    if name.startswith(INSIDE) and name.endswith(")"):
        return schemes.localized(_default(name.removeprefix(INSIDE)[:-1]))
    if name not in schemes.REGISTRY:
        raise UnsavedSchemeError(
            f"the scheme {name!r} is none of the package; {nearest(name, schemes.REGISTRY)}"
        )
    return schemes.REGISTRY[name].factory()


def _module(scheme: Scheme) -> Any:
    """Module of the functions in a registered scheme's options."""
    return sys.modules[schemes.REGISTRY[scheme.name].factory.__module__]


def _plain(value: Any, scheme: Scheme) -> Any:
    """Options in types of JSON; the only functions are those of the scheme's module, by their name."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Scheme):  # inside `localized`; its numbers are saved with the outer ones
        return {"scheme": _plain(value.options, _default(value.name))}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name), scheme) for f in dataclasses.fields(value)}
    name = getattr(value, "__name__", "")
    if scheme.name in schemes.REGISTRY and getattr(_module(scheme), name, None) is value:
        return {"function": name}
    raise UnsavedSchemeError(f"{scheme.name} has the option {value!r}, which cannot be saved")


def _options(default: Any, saved: Any, scheme: Scheme) -> Any:
    """Default options updated by the saved ones; text instead of a function comes from version 0.1."""
    if isinstance(saved, dict) and "function" in saved:
        return getattr(_module(scheme), saved["function"])
    if isinstance(default, Scheme):
        if not isinstance(saved, dict):
            raise UnsavedSchemeError(f"{scheme.name}: version 0.1 did not save the scheme inside; pass it")
        return dataclasses.replace(default, options=_options(default.options, saved["scheme"], default))
    if dataclasses.is_dataclass(default) and not isinstance(default, type):
        if isinstance(saved, str):  # the printed form of a record, as version 0.1 wrote it
            if saved == repr(default):
                return default
            raise UnsavedSchemeError(
                f"{scheme.name}: version 0.1 did not save the option {saved}; pass the scheme"
            )
        known = {f.name: getattr(default, f.name) for f in dataclasses.fields(default)}
        for key in saved:
            if key not in known:
                raise UnsavedSchemeError(f"{scheme.name} has no option {key!r} in this version")
        return dataclasses.replace(
            default, **{k: _options(known[k], part, scheme) for k, part in saved.items()}
        )
    if isinstance(saved, str) and saved.startswith("<function "):
        words = saved.split()[1]
        if words != getattr(default, "__qualname__", None):
            raise UnsavedSchemeError(
                f"{scheme.name}: version 0.1 did not save the function {words}; pass the scheme"
            )
        return default
    return saved


def _numbers(name: str, default: PyTree, saved: dict[str, Any]) -> PyTree:
    """Default numbers updated by the saved ones, which are removed from ``saved``."""
    if dataclasses.is_dataclass(default) and not isinstance(default, type):
        place = f"{name}.".removeprefix("numbers.")
        for old, new in OLD_FIELDS.get(type(default).__name__, {}).items():
            if place + old in saved:
                saved[place + new] = saved.pop(place + old)
        fields = {f.name: getattr(default, f.name) for f in dataclasses.fields(default)}
        parts = {key: _numbers(f"{name}.{key}", part, saved) for key, part in fields.items()}
        return dataclasses.replace(default, **parts)
    if isinstance(default, dict):
        return {key: _numbers(f"{name}.{key}", part, saved) for key, part in default.items()}
    if isinstance(default, tuple) and not hasattr(default, "_fields"):
        return tuple(_numbers(f"{name}.{i}", part, saved) for i, part in enumerate(default))
    value = saved.pop(name.removeprefix("numbers."), default)
    return np.asarray(value) if isinstance(value, list) else value
