"""Names until version 0.2 work, and say those since."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import warnings
from typing import Any

import jax
import numpy as np
import pytest

import nsjax
from nsjax import Labels, State, System, models, reductions, schemes
from nsjax.analysis import energy_balance
from nsjax.core.scheme import Output
from nsjax.io.codec import describe_scheme, rebuild_scheme
from nsjax.renamed import OLD_FIELDS, OLD_NAMES, renamed_options
from nsjax.schemes import building


@pytest.mark.parametrize("package", OLD_NAMES)
def test_old_names_are_the_new_things(package: str) -> None:
    home = importlib.import_module(package)
    for old, new in OLD_NAMES[package].items():
        with pytest.warns(
            DeprecationWarning, match=f"{package}.{old} is called {package}.{new} since"
        ) as said:
            assert getattr(home, old) is getattr(home, new)
        assert said[0].filename == __file__
        public = getattr(home, "__all__", vars(home))
        assert new in {*public, "jaxtools"}
        assert old not in public


def test_an_unknown_name_is_none() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'tabel'"):
        nsjax.tabel  # noqa: B018


def test_options_by_their_old_names() -> None:
    @renamed_options(tolerance="cost_tolerance")
    def fit(x: int, *, cost_tolerance: float = 0.0) -> tuple[int, float]:
        return x, cost_tolerance

    with pytest.warns(DeprecationWarning, match="fit: tolerance is called cost_tolerance since") as said:
        assert fit(1, **{"tolerance": 0.5}) == (1, 0.5)
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(1, cost_tolerance=0.25) == (1, 0.25)
    with pytest.raises(TypeError, match="unexpected keyword argument 'tolerance'"):
        fit(1, cost_tolerance=0.25, **{"tolerance": 0.5})


def test_functions_that_take_them() -> None:
    for function, old, new in (
        (nsjax.identify, "tolerance", "cost_tolerance"),
        (nsjax.check_gradient, "tolerance", "secant_tolerance"),
        (nsjax.sweep, "rows", "samples"),
        (nsjax.sweep_time_step, "rows", "samples"),
    ):
        with (
            pytest.warns(DeprecationWarning, match=f"{old} is called {new} since"),
            pytest.raises(TypeError, match="required"),
        ):
            function(**{old: 1})


def _nothing(*_: Any) -> Any:
    return np.ones(1)


BRAKE = System(
    nq=1, nv=1, nd=1, mass=lambda q, p: np.eye(1), force=lambda t, q, v, p: -2.0 * v,
    dry_friction=lambda t, q, v, p: v, dry_friction_bound=_nothing,
    labels=Labels(dry_frictions=("brake",)),
)  # fmt: skip


def test_fields_by_their_old_names() -> None:
    names = {f.name: getattr(BRAKE, f.name) for f in dataclasses.fields(BRAKE)}
    for old, new in OLD_FIELDS["System"].items():
        words = f"{old} is called {new} since version 0.3"
        with pytest.warns(DeprecationWarning, match=words) as said:
            made = System(**{old: names[new]}, **{x: y for x, y in names.items() if x != new})
        assert made == BRAKE
        assert hash(made) == hash(BRAKE)
        assert said[0].filename == __file__
        with pytest.warns(DeprecationWarning, match=words) as said:
            assert getattr(made, old) is getattr(BRAKE, new)
        assert said[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="drag_bound is called") as said:
        other: Any = dataclasses.replace(BRAKE, **{"drag_bound": abs})
    assert other.dry_friction_bound is abs
    assert said[0].filename == __file__
    assert set(OLD_FIELDS["System"]).isdisjoint(f.name for f in dataclasses.fields(System))
    with pytest.warns(DeprecationWarning, match="Labels: drags is called dry_frictions"):
        assert Labels(**{"drags": ("brake",)}) == BRAKE.labels


def test_rows_by_their_old_names() -> None:
    start = State(t=0.0, q=np.zeros(1), v=np.ones(1))
    with pytest.warns(DeprecationWarning, match="drag_force is called dry_friction_force"):
        traj: Any = nsjax.simulate(
            BRAKE, {}, start, schemes.moreau(), dt=0.1, steps=3, save=["drag_force", "dry_friction_impulse"]
        )
    assert traj.impulse_normal is None
    for old, new in (OLD_FIELDS["RowQuantities"] | OLD_FIELDS["Trajectory"]).items():
        with pytest.warns(DeprecationWarning, match=f"Trajectory.{old} is called {new}"):
            np.testing.assert_array_equal(getattr(traj, old), getattr(traj, new))
    assert np.all(traj.dry_friction_impulse[1:] < 0.0)
    with pytest.warns(DeprecationWarning, match="drag_force is called dry_friction_force"):
        least = reductions.minimum("drag_force")(traj)
    assert least == reductions.minimum("dry_friction_force")(traj) == np.min(traj.dry_friction_force)
    with pytest.warns(DeprecationWarning, match="Output: drag_force is called"):
        output = Output(**dict.fromkeys(("event", "status", "contact")), **{"drag_force": 1.0})
    assert output.dry_friction_force == 1.0
    books: Any = energy_balance(nsjax.simulate(BRAKE, {}, start, schemes.moreau(), dt=0.1, steps=3))
    with pytest.warns(DeprecationWarning, match="EnergyBalance.drag is called dry_friction"):
        assert books.drag is books.dry_friction


def test_present_names_say_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        traj = nsjax.simulate(*models.bouncing_ball(), schemes.moreau(), dt=0.1, steps=2)
        assert dataclasses.replace(traj.system) == traj.system
        assert traj.mean_dry_friction_force.shape == (3, 0)


OLD_TOLERANCES = {
    name: "relative_tolerance" if name.startswith("nsga") else "contact_tolerance"
    for name in (*schemes.REGISTRY, "localized")
}


@pytest.mark.parametrize("name", OLD_TOLERANCES)
def test_tolerances_of_schemes(name: str) -> None:
    make: Any = getattr(schemes, name)
    make = functools.partial(make, schemes.bathe()) if name == "localized" else make
    new = OLD_TOLERANCES[name]
    with pytest.warns(DeprecationWarning, match=f"{name}: tolerance is called {new} since"):
        scheme = make(**{"tolerance": 1e-9})
    same = make(**{new: 1e-9})
    assert jax.tree.structure(scheme) == jax.tree.structure(same)
    assert jax.tree.leaves(scheme) == jax.tree.leaves(same)
    if hasattr(scheme.coef, new):
        with pytest.warns(DeprecationWarning, match=f"tolerance is called {new} since"):
            assert scheme.coef.tolerance == 1e-9


def test_a_sweep_by_an_old_key() -> None:
    values, run = [1e-9, 1e-3], {"dt": 0.05, "steps": 4}
    with pytest.warns(DeprecationWarning, match="tolerance is called contact_tolerance since"):
        old = nsjax.sweep(models.bouncing_ball(), schemes.moreau(), {"scheme.tolerance": values}, **run)
    new = nsjax.sweep(models.bouncing_ball(), schemes.moreau(), {"scheme.contact_tolerance": values}, **run)
    np.testing.assert_array_equal(old["q"], new["q"])
    np.testing.assert_array_equal(old.over["scheme.tolerance"], values)


def test_numbers_of_a_scheme_of_a_user() -> None:
    @building.record()
    class Own:
        tolerance: float = 1e-11
        stage_tolerance: float = 1e-12
        gap_tolerance: float = 1e-12

    with pytest.warns(DeprecationWarning, match=r"Own\.tolerance is called contact_tolerance") as said:
        scheme = building.impulse_scheme("own", _nothing, numbers=Own())
    assert said[0].filename == __file__
    assert scheme.coef.contact_tolerance == 1e-11


def test_files_with_old_names_of_numbers() -> None:
    content = describe_scheme(schemes.localized(schemes.moreau_theta(contact_tolerance=2e-9)))
    numbers = content["numbers"]
    saved = {name.replace("contact_tolerance", "tolerance"): x for name, x in numbers.items()}
    assert set(saved) - set(numbers) == {"tolerance", "inner.tolerance"}
    again = rebuild_scheme({**content, "numbers": saved})
    assert describe_scheme(again) == content
