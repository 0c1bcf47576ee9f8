"""Records of a mechanical system and of a scheme, and the operators derived from them."""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.core.errors import InputError, nearest
    from nsjax.core.scheme import Carry, Event, Output, Scheme
    from nsjax.core.system import Problem, State, System, add, subtract
    from nsjax.core.system_parts import Labels, from_lagrangian

__all__ = [
    "Carry", "Event", "InputError", "Labels", "Output", "Problem", "Scheme", "State", "System", "add",
    "from_lagrangian", "nearest", "subtract",
]  # fmt: skip

lazily(__name__)
