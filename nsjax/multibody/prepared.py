"""Constants of a mechanism in a run, and the features of its contacts that a step holds fixed."""

from __future__ import annotations

import dataclasses
from typing import Any

from nsjax.core.prepared import Prepared
from nsjax.types import PyTree, record


@record()
class MechanismConstants:
    """Numbers of the parts in arrays, derived once for a run; None: read from the params where needed.

    Args:
        tree: of bodies and joints.
        joints: of loads, limits and dry friction on coordinates, `coordinates.tree_joints.JointNumbers`.
        contacts: of batches of contacts.
    """

    tree: Any = None
    joints: Any = None
    contacts: Any = None


@record()
class HeldFeatures:
    """What a step holds fixed of its contacts; None: nothing.

    Args:
        chosen: pairs that the step evaluates (`contacts.named_contacts.Choice`), by the first name of a
            batch.
        features: closest points and features, by the name of a contact or the first name of a batch.
        candidates: pairs and features of groups of free bodies, batch by batch.
    """

    chosen: Any = None
    features: Any = None
    candidates: Any = None


def constants(p: PyTree) -> MechanismConstants:
    """Derived constants of params; none of params that are not prepared."""
    return p.constants if isinstance(p, Prepared) else MechanismConstants()


def held(p: PyTree) -> HeldFeatures:
    """What the step holds fixed; nothing of params that are not refreshed."""
    found = p.held if isinstance(p, Prepared) else None
    return HeldFeatures() if found is None else found


def holding(p: PyTree, **features: Any) -> Prepared:
    """Params with features that the step holds fixed."""
    ready = p if isinstance(p, Prepared) else Prepared(params=p, constants=MechanismConstants())
    return dataclasses.replace(ready, held=dataclasses.replace(held(p), **features))
