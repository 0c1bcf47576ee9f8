"""Commands with bad input, drawn at random: one sentence each, and nothing that a program would say."""

from __future__ import annotations

import pytest

from tests import inputs
from tests.inputs import Answer


def test_no_traceback_reaches_a_user() -> None:
    """``python -m tests.inputs`` prints the table."""
    found = [inputs.answer(argv) for argv in inputs.commands()]
    assert len(found) == inputs.DRAWS
    wrong = [x for x in found if x.fault()]
    assert not wrong, inputs.table(wrong)
    # most are refused, and what can be run is not
    assert 0.05 < sum(x.code is None for x in found) / len(found) < 0.3


@pytest.mark.parametrize(
    ("told", "fault"),
    [
        ("Traceback (most recent call last):\nKeyError: 3\n", "2 lines"),
        ("nsjax: TypeError: '>=' not supported; NSJAX_TRACEBACK=1 in the environment", "an exception"),
        ("nsjax: ValueError: shapes (3,) and (2,)", "an exception"),
        ("nsjax: " + 800 * "x", "807 characters"),
        ("nsjax: dt = 0; it must be positive\nnsjax: and more", "2 lines"),
        ("", "0 lines"),
        ("nsjax: warning: dt is large\nnsjax: dt = 0.0; it must be positive and finite", ""),
        ("usage: nsjax simulate\nnsjax simulate: error: argument --dt: invalid float value: 'x'", ""),
    ],
)
def test_faults_are_seen(told: str, fault: str) -> None:
    found = Answer(("simulate",), 2, told).fault()
    assert found.startswith(fault)
    assert bool(found) == bool(fault)
