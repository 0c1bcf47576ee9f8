"""Time loops of assembled mechanisms are one kernel, as those of hand-written models."""

import contextlib
from typing import Any

import pytest

from nsjax import Problem, schemes
from nsjax.multibody import (
    assemble,
    ball,
    body,
    box,
    capsule,
    contact,
    cylinder,
    hinge,
    plane,
    point,
    sphere,
    walls,
)
from nsjax.multibody.start import RedundantConstraintsWarning
from tests.common.kernel import BLOCKERS, is_one_kernel, loop_text
from tests.multibody.slider_crank_parts import FROM_PARTS

Z = (0.0, 0.0, 1.0)


def four_bar(spatial: bool, **options: Any) -> Problem:
    """In space with three rows that follow from others."""
    inertia = (lambda j: (1e-4, j, j)) if spatial else lambda j: j
    axis: Any = {"axis": Z} if spatial else {}
    with pytest.warns(RedundantConstraintsWarning) if spatial else contextlib.nullcontext():
        return assemble(
            body("crank", mass=0.1, inertia=inertia(1e-3), com=0.05),
            body("coupler", mass=0.4, inertia=inertia(5e-3), com=0.2),
            body("rocker", mass=0.3, inertia=inertia(2e-3), com=0.15),
            hinge("o", "ground", "crank", **axis),
            hinge("a", "crank", "coupler", at=0.1, **axis),
            hinge("c", "ground", "rocker", at=0.4, **axis),
            hinge("b", "coupler", "rocker", at=0.4, on=0.3, **axis),
            gravity=(0.0, -9.81, 0.0) if spatial else 9.81,
            start={"o" if spatial else "crank": (0.3, 5.0)},
            guess={"c" if spatial else "rocker": 1.5, "a" if spatial else "coupler": 0.5},
            **options,
        )  # fmt: skip


def arm() -> Problem:
    return assemble(
        body("upper", mass=2.0, inertia=(0.01, 0.06, 0.06), com=0.3),
        body("lower", mass=1.0, inertia=(0.005, 0.03, 0.03), com=0.25),
        ball("shoulder", "ground", "upper", at=(0.0, 0.0, 0.8)),
        hinge("elbow", "upper", "lower", at=0.6, axis=(0.0, 1.0, 0.0), limits=(-2.5, 0.1)),
        contact("floor", point("lower", at=0.5), plane(), restitution=0.5, friction=0.3),
        gravity=9.81,
        start={"upper": ((0.0, 0.2, 0.0), (0.0, 0.0, 1.0)), "elbow": -0.5},
    )


def chain(order: list[int]) -> Problem:
    """Absolute coordinates; joints given in another order than the bodies."""
    names = ["ground", *(f"b{k}" for k in range(5))]
    return assemble(
        *(body(name, mass=1.0, inertia=0.1, com=0.5) for name in names[1:]),
        *(hinge(f"h{k}", names[k], names[k + 1], at=1.0 if k else None) for k in order),
        gravity=9.81, coordinates="absolute", start={f"b{k}": (-0.3 * k, 0.1 * k) for k in range(5)},
    )  # fmt: skip


def pile(spatial: bool) -> Problem:
    """A crate on a crate of the ground, in the plane with a bar beside it: closest features are held during
    a step. In space eight contacts have 24 rows, the most that are solved inline.
    """
    inertia: Any = (0.01, 0.01, 0.01) if spatial else 0.01
    half = (0.1, 0.1, 0.1) if spatial else (0.1, 0.1)
    ground = box("ground", 1.0, *half[1:])
    parts = [
        body("crate", mass=1.0, inertia=inertia),
        contact("on", box("crate", *half), ground, friction=0.3),
    ]
    start: dict[str, Any] = {"crate": ((0.0, 0.2, 0.0), (0.1, 0.0, 0.0))}
    if not spatial:
        parts.append(body("bar", mass=1.0, inertia=inertia))
        parts.append(contact("beside", capsule("bar", 0.02, 0.05), ground, friction=0.3))
        start["bar"] = (0.5, 0.13, 0.0)
    return assemble(*parts, gravity=(0.0, -9.81, 0.0) if spatial else 9.81, start=start)


def bar_on_drum() -> Problem:
    """A capsule on the end of a cylinder: directions of a solid, held points."""
    return assemble(
        body("bar", mass=1.0, inertia=(0.01, 0.01, 0.01)),
        contact("on", capsule("bar", 0.02, 0.05), cylinder("ground", 0.1, 0.2, axis=Z), friction=0.3),
        gravity=9.81, start={"bar": ((0.0, 0.0, 0.22), (0.1, 0.0, 0.0))},
    )  # fmt: skip


MECHANISMS = {
    "slider_crank": lambda: FROM_PARTS,
    "four_bar": lambda: four_bar(False),
    "spatial_four_bar": lambda: four_bar(True),
    "absolute_four_bar": lambda: four_bar(False, coordinates="absolute"),
    "arm": arm,
    "disc": lambda: assemble(
        body("d", mass=1.0, inertia=0.1), contact("g", sphere("d", 0.1), walls(-0.2, 0.2), friction=0.1),
        gravity=9.81, start={"d": ((0.0, 0.05, 0.0), (1.0, 0.0, 0.0))},
    ),
    "pile": lambda: pile(False),
    "spatial_pile": lambda: pile(True),
    "bar_on_drum": bar_on_drum,
    "chain": lambda: chain([0, 1, 2, 3, 4]),
    "chain_shuffled": lambda: chain([3, 0, 4, 1, 2]),
}  # fmt: skip

OTHERS = {
    "slider_crank": "moreau", "four_bar": "generalized_alpha", "spatial_four_bar": "bathe",
    "absolute_four_bar": "nsga_decoupled", "arm": "moreau", "disc": "bathe", "pile": "moreau",
    "spatial_pile": "moreau", "bar_on_drum": "moreau", "chain": "generalized_alpha",
}  # fmt: skip
"""Steps of other schemes with piles are beyond `nsjax.jaxtools.programs.LARGE_STEP`: several kernels."""
CASES = [("moreau", "chain_shuffled")]
CASES += [pytest.param(scheme, x, marks=pytest.mark.slow) for x, scheme in OTHERS.items()]


@pytest.mark.parametrize(("scheme", "mechanism"), CASES)
def test_the_time_loop_is_one_kernel(scheme: str, mechanism: str) -> None:
    text = loop_text(MECHANISMS[mechanism](), schemes.REGISTRY[scheme].factory(), 1e-4)
    assert not BLOCKERS.findall(text)
    assert is_one_kernel(text)
