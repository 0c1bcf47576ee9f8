"""Computes all goldens anew and prints which change: ``python -m tests.goldens [--write] [WORD ...]``.

With words, cases that have them all in their names. ``--write`` keeps what was found. Programs are compiled
as those of quick tests, with ``NSJAX_TEST_OPTIMISED=1`` as users do; what is compared is the same.
"""

from __future__ import annotations

import argparse
import os
import time

from nsjax.jaxtools.compilation import unoptimised


def main() -> int:
    """Returns 1 where a golden changes."""
    parser = argparse.ArgumentParser(prog="python -m tests.goldens", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the new numbers")
    parser.add_argument("words", nargs="*", metavar="WORD")
    given = parser.parse_args()
    if os.environ.get("NSJAX_TEST_OPTIMISED", "0") == "0":
        os.environ["XLA_FLAGS"] = " ".join(f"--{k}={v}".lower() for k, v in unoptimised().items())
    import nsjax
    from tests.goldens import cases

    nsjax.configure(announce=False)
    kept = cases.read() if cases.FILE.exists() else {"runs": {}, "gradients": {}}
    goldens: dict[str, dict[str, cases.Kept]] = {"runs": {}, "gradients": {}}
    changed = 0
    for what, compute, pairs in (
        ("runs", cases.run, cases.design()), ("gradients", cases.gradient, cases.GRADIENTS),
    ):  # fmt: skip
        for pair in pairs:
            name = cases.title(*pair)
            old = kept[what].get(name)
            if not all(word in f"{what} {name}" for word in given.words):
                goldens[what] |= {} if old is None else {name: old}
                continue
            before = time.process_time()
            found = goldens[what][name] = compute(*pair)
            far = {"new": 0.0} if old is None else cases.changes(name, found, old)
            changed += bool(far)
            said = ", ".join(f"{k} {x:.1e}" for k, x in far.items()) or "as before"
            print(f"{what}: {name}: {said} ({time.process_time() - before:.1f} CPU s)", flush=True)
    print(f"{changed} changed")
    if given.write:
        cases.write(goldens)
    return int(changed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
