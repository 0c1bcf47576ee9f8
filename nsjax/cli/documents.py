"""``nsjax docs``: the site of the documentation."""

from __future__ import annotations

import argparse
import importlib
import pathlib
import sys
from typing import Any

import nsjax
from nsjax.core import InputError


def add(commands: Any) -> None:
    """Adds the command and its arguments."""
    parser = commands.add_parser(
        "docs", help="build the site of the documentation",
        description="Builds guide, reference and notebooks as pages, in a checkout; every warning of the "
        "generator is an error. Needs the extra docs: pip install 'nsjax[docs]'.",
        epilog="example: nsjax docs --output site, then open site/index.html",
    )  # fmt: skip
    parser.set_defaults(command=_build)
    parser.add_argument("--output", metavar="FOLDER", default="site", help="(default: %(default)s)")


def _build(args: argparse.Namespace) -> int:
    root = pathlib.Path(nsjax.__file__).resolve().parents[1]
    if not (root / "docs" / "site.py").is_file():
        raise InputError(f"docs: {root} holds no folder docs; build the site in a checkout, which has it")
    sys.path.insert(0, str(root))
    print(f"{importlib.import_module('docs').build(args.output)} is the front page")
    return 0
