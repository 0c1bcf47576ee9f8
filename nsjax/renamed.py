"""Names that changed in version 0.3: the old ones still work and say the new ones."""

from __future__ import annotations

import dataclasses
import functools
import operator
import sys
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

OLD_NAMES = {
    "nsjax": {
        "driven": "with_inputs", "filtered": "with_actuator_dynamics", "nonlinear": "jaxtools",
        "notes": "gradient_notes", "run": "simulate_to_file", "startup": "jaxtools", "table": "signal",
    },
    "nsjax.analysis": {"EnergyBooks": "EnergyBalance", "energy_books": "energy_balance"},
    "nsjax.io": {"run": "simulate_to_file"},
    "nsjax.multibody.joints.joint_kind": {"apart": "separation"},
    "nsjax.schemes.building": {"Numbers": "ImpulseCoefficients"},
}  # fmt: skip
"""By package: names until version 0.3, and those since."""

OTHER_WORDS = {
    "nsjax.multibody": {
        "cable": "tendon", "circle": "sphere", "damper": "spring", "disc": "sphere", "disk": "sphere",
        "motor": "actuator", "prismatic": "slide", "revolute": "hinge", "rigid_body": "body",
        "rope": "tendon", "slider": "slide", "spherical": "ball", "weld": "fixed",
    },
    "nsjax.schemes": {"moreau_jean": "moreau", "theta": "moreau_theta"},
}  # fmt: skip
"""By package: words of the field for something that has another name here; errors say it."""

OLD_FIELDS = {
    "System": {
        "drag": "dry_friction", "drag_bound": "dry_friction_bound", "drag_law": "dry_friction_law",
        "drag_contact": "dry_friction_contact", "drag_discs": "dry_friction_discs",
        "smooth": "frictionless", "chosen": "contact_set", "pairs": "contact_set",
    },
    "ContactMemory": {"pairs": "identity"},
    "Labels": {"drags": "dry_frictions"},
    "RowQuantities": {"drag_force": "dry_friction_force", "drag_impulse": "dry_friction_impulse"},
    "Trajectory": {"mean_drag_force": "mean_dry_friction_force"},
    "JointRows": {"coordinate": "position"},
    "EnergyBalance": {"drag": "dry_friction"},
    "ImpulseCoefficients": {"tolerance": "contact_tolerance"},
    "MoreauCoefficients": {"tolerance": "contact_tolerance"},
    "ThetaCoefficients": {"tolerance": "contact_tolerance"},
    "LocalizedCoefficients": {"tolerance": "contact_tolerance"},
    "NsgaCoefficients": {"tolerance": "relative_tolerance"},
}  # fmt: skip
"""By record: names of fields until version 0.3, and those since; also those of records made from them."""


def new_name(package: str, name: str) -> str | None:
    """The present name of something in a package that is asked for by its old one; None if it has none.

    Warns:
        DeprecationWarning: with the new name.

    Example:
        >>> import warnings
        >>> import nsjax
        >>> with warnings.catch_warnings(record=True, action="always") as said:
        ...     nsjax.table is nsjax.signal, str(said[0].message)
        (True, 'nsjax.table is called nsjax.signal since version 0.3')
    """
    new = OLD_NAMES.get(package, {}).get(name)
    if new is not None:
        say_new_name(f"{package}.{name}", f"{package}.{new}", 4)
    return new


def old_names(module: dict[str, Any]) -> Callable[[str], Any]:
    """``__getattr__`` of a module whose names changed, from its ``globals()``; see `new_name`."""

    def get(name: str) -> Any:
        new = new_name(module["__name__"], name)
        if new is None:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        return module[new]

    return get


def renamed_options(**names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorator of a function that takes options by their old names as well. ``names``: new names by the
    old ones.

    Warns:
        DeprecationWarning: with the new name, in a call with an old one.

    Example:
        >>> import warnings
        >>> from nsjax.renamed import renamed_options
        >>> @renamed_options(size="length")
        ... def ruler(*, length):
        ...     return length
        >>> with warnings.catch_warnings(record=True, action="always") as said:
        ...     ruler(size=0.3), str(said[0].message)
        (0.3, 'ruler: size is called length since version 0.3')
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def call(*arguments: P.args, **options: P.kwargs) -> T:
            given: dict[str, Any] = options
            for old in names.keys() & given.keys():
                if names[old] not in given:  # else the function refuses the old name
                    say_new_name(f"{function.__name__}: {old}", names[old], 3)
                    given[names[old]] = given.pop(old)
            return function(*arguments, **options)

        call.renamed = names  # type: ignore[attr-defined]
        return call

    return decorate


def renamed_fields(cls: type[T]) -> type[T]:
    """Decorator of a record that is made, changed by `dataclasses.replace` and read by the names of
    `OLD_FIELDS` as well. By the present names, reading costs nothing more.

    Warns:
        DeprecationWarning: with the new name, for an old one.

    Example:
        >>> import warnings
        >>> from nsjax import Labels
        >>> with warnings.catch_warnings(record=True, action="always") as said:
        ...     Labels(drags=("brake",)).dry_frictions, str(said[0].message)
        (('brake',), 'Labels: drags is called dry_frictions since version 0.3')
    """
    own = {old: new for base in cls.__mro__ for old, new in OLD_FIELDS.get(base.__name__, {}).items()}
    init: Any = cls.__init__

    @functools.wraps(init)
    def make(self: Any, *arguments: Any, **fields: Any) -> None:
        for old in own.keys() & fields.keys():
            level = 3
            while sys._getframe(level - 2).f_code.co_filename == dataclasses.__file__:
                level += 1  # the caller of `dataclasses.replace`
            say_new_name(f"{cls.__name__}: {old}", own[old], level)
            fields[own[old]] = fields.pop(old)  # over the present value, which `replace` gives as well
        init(self, *arguments, **fields)

    cls.__init__ = make  # type: ignore[method-assign]
    for old, new in own.items():
        setattr(cls, old, _read_as(old, new))
    return cls


def read_by(record: T, **names: str) -> T:
    """A record of a user that is read by the new names of fields that it has under old ones. ``record``: of
    any class, which gets properties for them; ``names``: new names by the old ones.

    Warns:
        DeprecationWarning: with the new name, for an old one.
    """
    for old, new in names.items():
        if not hasattr(record, new) and hasattr(record, old):
            say_new_name(f"{type(record).__name__}.{old}", new, 4)
            setattr(type(record), new, property(operator.attrgetter(old)))
    return record


def _read_as(old: str, new: str) -> property:
    def read(self: Any) -> Any:
        say_new_name(f"{type(self).__name__}.{old}", new, 3)
        return getattr(self, new)

    return property(read, doc=f"Name of `{new}` until version 0.3.")


def new_field(record: str, name: Any) -> Any:
    """The present name of a field that is asked for by an old one of `OLD_FIELDS`; else ``name``.

    Warns:
        DeprecationWarning: with the new name.

    Example:
        >>> from nsjax.renamed import new_field
        >>> new_field("RowQuantities", "impulse_normal")
        'impulse_normal'
    """
    new = OLD_FIELDS.get(record, {}).get(name) if isinstance(name, str) else None
    if new is not None:
        say_new_name(name, new, 4)
    return new or name


def say_new_name(old: str, new: str, level: int) -> None:
    """Warns that ``old`` is called ``new``, in the line of the caller that many calls above."""
    warnings.warn(f"{old} is called {new} since version 0.3", DeprecationWarning, stacklevel=level)
