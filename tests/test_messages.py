"""Sentences of the package that tests ask for. See `tests/messages.py` for what counts."""

from __future__ import annotations

from tests import messages

ASKED = 250
"""257 of 483 sentences were counted; new ones that share words with old ones may take a few away. Only ever
raised, towards all of them.
"""


def test_no_fewer_sentences_are_asked_for() -> None:
    left = messages.unasked()
    assert len(messages.sentences()) - len(left) >= ASKED, [x.place for x in left]


def test_a_sentence_is_told_from_its_values() -> None:
    """``f"docs: {output} is there and is no site; name a new folder"``, which `test_site.py` asks for."""
    (found,) = [x for x in messages.sentences() if ("no", "site") in x.pairs]
    assert ("is", "there") in found.pairs
    assert not [x for x in found.pairs if "output" in x]
    assert found not in messages.unasked()
