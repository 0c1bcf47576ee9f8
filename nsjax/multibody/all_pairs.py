"""All pairs of shapes that meet at closest points."""

from __future__ import annotations

from nsjax.multibody import beam_pairs, cylinders, pairs

HELD = {**pairs.HELD, **beam_pairs.HELD, **cylinders.HELD}
"""Functions ``(scene, part, numbers)``: what is held fixed during a step."""

PAIRS = {**pairs.PAIRS, **beam_pairs.PAIRS, **cylinders.PAIRS}
"""Functions ``(scene, part, numbers, near) -> Met``; ``near``: what is held, None: it is looked for."""

COUNTS = {
    ("capsule", "plane"): 2, ("cylinder", "plane"): 10, ("capsule", "capsule"): 3, ("capsule", "box"): 3,
    ("capsule", "hole"): 2, ("cylinder", "hole"): 2, ("capsule", "cylinder"): 3, ("cylinder", "box"): 14,
    ("cylinder", "cylinder"): 15,
}  # fmt: skip
"""Contacts of pairs that have several, whatever their numbers; beams have one around each node."""
