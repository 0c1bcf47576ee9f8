"""Wrong models get a sentence that names the part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nsjax.multibody import assemble, body, hinge, spring


def bar(name: str = "rod", **given: Any) -> Any:
    return body(name, **({"mass": 1.0, "inertia": 0.1} | given))


def space(name: str = "rod") -> Any:
    return bar(name, inertia=(1.0, 1.0, 1.0))


def made(*parts: Any, **given: Any) -> Any:
    return assemble(bar(), *parts, **({"gravity": 9.81} | given))


PIN = hinge("pin", "ground", "rod")
LEG = {"stiffness": 1.0, "length": 0.1}


def triangle(third: float) -> list[Any]:
    """Two bars between bearings."""
    return [
        bar("a"), bar("b"), hinge("h1", "ground", "a"), hinge("h2", "a", "b", at=1.0),
        hinge("h3", "ground", "b", at=third, on=1.0),
    ]  # fmt: skip


def test_what_is_legal() -> None:
    """A spring of free length zero whose ends coincide, a massless body that carries one with mass, a plate
    whose moments fulfil the triangle inequality with equality, a point mass away from its hinge.
    """
    made(PIN, spring("leg", "ground", "rod", stiffness=1.0))
    assemble(
        bar("a", mass=0.0, inertia=None), bar("tip", com=0.2), hinge("h", "ground", "a"),
        hinge("h2", "a", "tip", at=1.0),
    )  # fmt: skip
    bar(inertia=(1.0, 2.0, 3.0))
    problem = assemble(body("bob", mass=2.0, com=0.5), hinge("h", "ground", "bob"))
    assert float(problem.system.mass(problem.state.q, problem.params)[0, 0]) == 0.5


def test_redundant_constraints_are_reported() -> None:
    """A parallelogram with three equal cranks: its reactions are said not to be unique."""
    parts = [bar("coupler")]
    for k in range(3):
        parts += [
            bar(f"crank{k}"), hinge(f"o{k}", "ground", f"crank{k}", at=0.5 * k),
            hinge(f"a{k}", f"crank{k}", "coupler", at=1.0, on=0.5 * k),
        ]  # fmt: skip
    start = {f"crank{k}": (1.0, 2.0) if k == 0 else 1.0 for k in range(3)}
    with pytest.warns(UserWarning, match="1 of 4 constraints follow from the others"):
        problem = assemble(*parts, start=start)
    labels = problem.system.labels.v
    rates = [problem.state.v[labels.index(f"crank{k}.omega [rad/s]")] for k in range(3)]
    np.testing.assert_allclose(rates, 2.0, rtol=1e-12)
    assert abs(problem.state.v[labels.index("coupler.omega [rad/s]")]) <= 1e-12
