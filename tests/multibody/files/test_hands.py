"""Hands that tendons move, of packages that are not installed for the tests: against the library.

``pip install gymnasium-robotics playground`` brings the files.
"""

from __future__ import annotations

import importlib.util
import pathlib
import xml.etree.ElementTree as ET

import pytest

from tests.multibody.files.oracle import compared

HANDS = {
    "shadow": ("gymnasium_robotics", "envs/assets/hand/reach.xml"),
    "adroit": ("gymnasium_robotics", "envs/assets/adroit_hand/adroit_relocate.xml"),
    "aero": ("mujoco_playground", "_src/manipulation/aero_hand/xmls/right_hand.xml"),
}
"""Package and file: 44 sums of joints with limits each, and 20 ropes, most of them about cylinders."""


@pytest.mark.parametrize("name", HANDS)
def test_hands(name: str) -> None:
    """Accelerations, and lengths of tendons where the file has sensors of them."""
    package, inside = HANDS[name]
    found = importlib.util.find_spec(package)
    if found is None:
        pytest.skip(f"the package {package}, which has the file, is not installed")
    (folder,) = found.submodule_search_locations or ()
    path = pathlib.Path(folder) / inside
    text = str(path)
    if name == "aero":  # its package lacks the meshes, which are visible alone
        tree = ET.parse(path).getroot()
        for parent in list(tree.iter()):
            for x in [x for x in parent if "mesh" in x.attrib or (parent.tag, x.tag) == ("asset", "mesh")]:
                parent.remove(x)
        text = ET.tostring(tree, encoding="unicode")
    worst = compared(text, states=40, wide=1.0)
    assert worst["accelerations"] < 1e-11
    assert max(worst.values()) < 1e-11
    assert ("tendonpos" in worst) == (name == "aero")
