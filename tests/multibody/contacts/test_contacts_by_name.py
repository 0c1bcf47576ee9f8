"""Quantities of the contacts of a part by its name: the same shapes for one contact and for several."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np
import pytest

import nsjax
from nsjax import models, schemes
from nsjax import multibody as mb
from nsjax.core.operators import prepared
from nsjax.sensors import OF_CONTACTS, read

EVEN = 0.01 * np.eye(3)


def plane() -> Any:
    """Kinds of contacts of the plane, and the stops of a joint."""
    parts = [mb.body(x, mass=1.0, inertia=0.01) for x in ("a", "b", "c")]
    parts += [
        mb.hinge("arm", "ground", "c", limits=(-1.0, 1.0)),
        mb.contact("tip", mb.point("a"), mb.plane(), friction=0.3),
        mb.contact("ball", mb.sphere("b", 0.1), mb.plane(), friction=0.3),
        mb.contact("feet", mb.box("a", 0.1, 0.1), mb.plane(at=(0.0, -0.1))),
        mb.contact("guide", mb.corners("b", 0.1, 0.05), mb.walls(-9.0, 9.0), friction=0.1),
        mb.contact("hit", mb.sphere("a", 0.1), mb.sphere("b", 0.1), friction=0.1),
        mb.contact("bearing", mb.sphere("c", 0.1), mb.hole("ground", 0.5), friction=0.1),
        mb.contact("touch", mb.sphere("b", 0.1), mb.box("c", 0.1, 0.1)),
    ]
    return mb.assemble(*parts, gravity=9.81, start={"a": (0.0, 0.0, 0.0), "b": (1.0, 0.1, 0.0)})


def space(boxes: bool = False) -> Any:
    """Kinds of contacts of space, one with a grain, whose friction differs across it."""
    parts = [mb.body(x, mass=1.0, inertia=EVEN) for x in ("a", "b", "c")]
    parts += [
        mb.contact("tip", mb.point("a"), mb.plane(), friction=(0.2, 0.6), grain=(1.0, 0.0, 0.0)),
        mb.contact("pill", mb.capsule("b", 0.1, 0.2), mb.plane(), friction=0.3),
        mb.contact("can", mb.cylinder("c", 0.1, 0.2, axis=(0.0, 0.0, 1.0)), mb.plane(), friction=0.3),
        mb.contact("brick", mb.box("a", 0.1, 0.1, 0.1), mb.plane(at=(0.0, 0.0, -0.1)), friction=0.3),
    ]
    if boxes:
        parts += [mb.contact("on", mb.box("b", 0.1, 0.1, 0.1), mb.box("c", 0.1, 0.1, 0.1), friction=0.3)]
    start = {"b": ((1.0, 0.0, 0.2), EVEN[0] * 0), "c": ((3.0, 0.0, 0.2), EVEN[0] * 0)}
    return mb.assemble(*parts, gravity=(1.0, 2.0, -9.81), start=start)


@pytest.mark.parametrize(("made", "single"), [
    (models.bouncing_ball, None), *(
        pytest.param(x, single, marks=pytest.mark.slow) for x, single in (
            (space, {"tip"}), (plane, {"tip", "ball", "hit", "bearing", "touch"}),
            (lambda: space(boxes=True), {"tip"}),
        )
    ),
])  # fmt: skip
def test_a_part_has_an_axis_of_contacts(made: Any, single: set[str] | None) -> None:
    """All quantities of a part, one or several, are those of its contacts side by side."""
    problem = made()
    labels, system = problem.system.labels.contacts, problem.system
    traj = nsjax.simulate(*problem, schemes.moreau(), dt=1e-3, steps=3)
    parts = dict.fromkeys(x.split(".")[0] for x in labels)
    several = {part: [x for x in labels if x == part or x.startswith(f"{part}.")] for part in parts}
    assert single is None or {x for x, own in several.items() if own == [x]} == single
    row = traj.t[-1], traj.q[-1], traj.v[-1], jax.tree.map(lambda x: x[-1], traj._outputs())
    params = prepared(system, problem.params)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        for part, own in several.items():
            rows = traj.contacts(part)
            for one, all_of in OF_CONTACTS.items():
                found = read(system, f"{part}.{all_of}", *row, params)
                assert found.shape == (len(own), *((1 + system.nt,) if one in ("force", "impulse") else ()))
                each = [read(system, f"{x}.{one}", *row, params) for x in own]
                np.testing.assert_array_equal(found, np.stack(each))
                np.testing.assert_array_equal(found, getattr(rows, one)[-1])
                np.testing.assert_array_equal(each[-1], getattr(traj.contact(own[-1]), one)[-1])
                assert f"{part}.{all_of}" in traj.columns
    part = next(iter(parts))
    assert traj[f"{part}.forces"].shape == (4, len(several[part]), 1 + system.nt)
    np.testing.assert_array_equal(traj[f"{part}.forces.n"], traj.contacts(part).force[..., 0])


@pytest.mark.slow
def test_old_names_of_several_contacts_say_the_new_ones() -> None:
    traj = nsjax.simulate(*plane(), schemes.moreau(), dt=1e-3, steps=3)
    for old, new in (("feet.force", "feet.forces"), ("arm.impacts", "arm.impact_counts")):
        with pytest.warns(DeprecationWarning, match=f"{old} is called {new} since") as said:
            np.testing.assert_array_equal(traj[old], traj[new])
        assert said[0].filename == __file__
        assert old not in traj.columns
    with pytest.warns(DeprecationWarning, match=r"traj.contact\('feet'\) is called traj.contacts") as said:
        assert traj.contact("feet").gap.shape == (4, 4)
    assert said[0].filename == __file__
    with pytest.raises(KeyError, match="no contact 'fete'; did you mean 'feet'"):
        traj.contacts("fete")


@pytest.mark.slow
def test_tables_name_contacts_and_ways() -> None:
    """Three contacts are not the axes x, y and z."""
    pytest.importorskip("xarray")
    traj = nsjax.simulate(*space(), schemes.moreau(), dt=1e-3, steps=3)
    data = traj.to_xarray("pill.gaps", "tip.force", "tip.forces", "can.forces.t1")
    assert data["pill.gaps"].dims == ("time", "contact of pill")
    assert list(data["contact of pill"].values) == ["pill.0", "pill.1"]
    assert list(data["tip.force"]["way"].values) == ["n", "t1", "t2"]
    assert data["tip.forces"].dims == ("time", "contact of tip", "way")
    assert data["can.forces.t1"].dims == ("time", "contact of can")
    table = traj.to_pandas("tip.forces")
    assert "tip.forces[tip, t2]" in table.columns
