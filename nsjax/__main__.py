"""``python -m nsjax``."""

from nsjax.cli import main

raise SystemExit(main())
