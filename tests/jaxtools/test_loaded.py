"""What an import loads: `import nsjax` names, and each name loads what it needs when it is asked for."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
import types

import pytest

import nsjax
from nsjax.lazy import HOMES, LazyPackage
from nsjax.renamed import OTHER_WORDS

HEAVY = {"IPython", "h5py", "matplotlib", "mujoco", "optax", "pandas", "scipy", "tqdm", "xarray"}

OWN = {"nsjax", "nsjax.lazy"}
"""Modules of the package that `import nsjax` needs: the list of names, and what makes it one."""


def loaded(code: str) -> set[str]:
    """Modules of a process that executes some code."""
    whole = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def own(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "nsjax"}


def test_import_loads_names_alone() -> None:
    found = loaded("import nsjax")
    assert own(found) == OWN
    assert not {"jax", "numpy"} & found


def test_a_run_loads_no_parts_that_it_does_not_use() -> None:
    found = loaded(
        "import nsjax\nnsjax.configure, nsjax.simulate\n"
        "nsjax.models.bouncing_ball(), nsjax.schemes.moreau()"
    )
    assert not HEAVY & {name.partition(".")[0] for name in found}
    apart = ("analysis", "cli", "fem", "identify", "io", "plot", "statics", "sweep", "models.slider_crank")
    assert not {name for name in own(found) if name.startswith(tuple(f"nsjax.{x}" for x in apart))}
    parts = {"nsjax.multibody", *(f"nsjax.multibody.{x}" for x in ("numbers", "parts"))}
    assert {name for name in own(found) if name.startswith("nsjax.multibody")} <= parts


def test_robots_load_no_pictures_and_no_sweeps() -> None:
    found = loaded("from nsjax.multibody import assemble, body, hinge, read_mjcf")
    assert not (HEAVY - {"mujoco"}) & {name.partition(".")[0] for name in found}
    assert not {name for name in own(found) if name.startswith(("nsjax.plot", "nsjax.sweep", "nsjax.io"))}


PACKAGES = [
    package
    for package in (
        nsjax,
        *(
            importlib.import_module(x.name)
            for x in pkgutil.walk_packages(nsjax.__path__, "nsjax.")
            if x.ispkg
        ),
    )
    if isinstance(package, LazyPackage)
]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_lists_of_names_agree(package: types.ModuleType) -> None:
    """All public names are in the file's list for type checkers, which is where they are loaded from."""
    assert set(package.__all__) <= set(vars(package)[HOMES])
    assert set(package.__all__) <= set(dir(package))
    for name in dir(package):
        assert getattr(package, name) is getattr(package, name)
    with pytest.raises(AttributeError, match="has no attribute 'unheard_of'"):
        getattr(package, "unheard" + "_of")
    for word, here in OTHER_WORDS.get(package.__name__, {}).items():
        assert here in package.__all__
        with pytest.raises(AttributeError, match=f"no attribute '{word}'; did you mean '{here}'?"):
            getattr(package, word)


def test_a_function_hides_the_module_of_its_name() -> None:
    code = (
        "import nsjax.simulate, nsjax.sweep.program, nsjax.models.bouncing_ball\n"
        "import nsjax.models.bouncing_ball as ball\n"
        "from nsjax.models import bouncing_ball\n"
        "from nsjax import models, sweep\n"
        "assert callable(nsjax.simulate) and callable(sweep) and sweep is nsjax.sweep\n"
        "assert models.bouncing_ball is bouncing_ball is ball and callable(ball)\n"
        "assert nsjax.core.checks.check_kind and nsjax.fem.gauss\n"
    )
    assert "nsjax.sweep.run" in loaded(code)
