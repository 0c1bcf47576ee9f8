"""All tests, full-size ones too, in pieces that fit an hour each, with a report that is kept.

::

    python -m tests.nightly                # goes on where the last call of this commit stopped
    python -m tests.nightly --pieces 1     # one piece, then the report so far
    python -m tests.nightly --slow         # without the tests of the test command
    python -m tests.nightly --sample       # one case of every function; each commit draws others
    python -m tests.nightly --show         # the report alone
"""
