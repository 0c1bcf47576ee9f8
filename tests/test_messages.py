"""Sentences of the package that tests ask for. See `tests/messages.py` for what counts."""

from __future__ import annotations

from tests import messages


def test_every_sentence_is_asked_for_or_has_a_reason() -> None:
    assert not messages.unexplained()


def test_reasons_are_needed() -> None:
    """One that a test asks for by now, or that is gone, is taken out of the list."""
    left = {(x.place.partition(":")[0], x.pieces[0]) for x in messages.unasked()}
    assert set(messages.REASONS) <= left
    assert len(messages.REASONS) <= 12  # of 487 sentences; only ever lowered


def test_a_sentence_is_told_from_its_values() -> None:
    """``f"docs: {output} exists and is no site; name a new folder"``, which `test_site.py` asks for."""
    (found,) = [x for x in messages.sentences() if ("no", "site") in x.pairs]
    assert ("exists", "and") in found.pairs
    assert not [x for x in found.pairs if "output" in x]
    assert found not in messages.unasked()
