"""Starts of model files whose reference position and key frames do not close their loops."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from nsjax.multibody import LeftOutWarning, read_mjcf

OPEN = """<mujoco><worldbody>
<body name="a"><joint name="left" type="slide" axis="1 0 0"/><geom name="ga" size="0.1"/>
  <site name="sa" pos="0.02 0 0"/></body>
<body name="b"><joint name="right" type="slide" axis="1 0 0"/><geom name="gb" size="0.1"/>
  <site name="sb"/></body>
</worldbody><equality><connect name="pin" site1="sa" site2="sb"/></equality>
<keyframe><key name="far" qpos="0.1 0.5"/><key name="near" qpos="0.1 0.1201"/></keyframe></mujoco>"""
"""Two slides whose pin is open by 2 cm; without contacts."""


@pytest.mark.filterwarnings("ignore::nsjax.multibody.start.RedundantConstraintsWarning")
def test_an_open_loop_begins_at_the_nearest_position() -> None:
    """Both slides move by half of what is open; what is rounding of printed digits is not told."""
    model = read_mjcf(OPEN, contact=False)
    with pytest.warns(
        LeftOutWarning, match=r"the reference position does not close the loops or couplings: the start is "
        r"the nearest position that does, with '(left|right)' moved by 0\.01",
    ):  # fmt: skip
        problem = model.problem()
    assert np.allclose(problem.state.q, [-0.01, 0.01], atol=1e-9)  # the closure's tolerance
    with pytest.warns(LeftOutWarning, match=r"key frame 'far' does not close .* moved by 0\.19"):
        problem = model.problem("far")
    assert np.allclose(problem.state.q, [0.29, 0.31], atol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeftOutWarning)
        problem = model.problem("near")
    assert np.allclose(problem.state.q, [0.10005, 0.12005], atol=1e-9)


def test_a_light_with_a_picture_is_read() -> None:
    """Pictures are left out, and with them what a light names."""
    model = read_mjcf(
        "<mujoco><asset><texture name='sky' type='cube' file='none.png'/></asset><worldbody>"
        "<light type='image' texture='sky'/><body name='a'><freejoint/><geom size='0.1'/></body>"
        "</worldbody></mujoco>"
    )
    assert [part.name for part in model if part.kind == "body"] == ["a"]
