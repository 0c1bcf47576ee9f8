"""Properties of a process that determine the bits of a lane beside its program and numbers."""

from __future__ import annotations

import os

import jax
import jaxlib

from nsjax.version import __version__


def releases() -> dict[str, str]:
    """Releases, the kind of device, and the options of the compiler in this process."""
    flags = [x for x in os.environ.get("XLA_FLAGS", "").split() if "device_count" not in x]
    return {
        "nsjax": __version__, "jax": jax.__version__, "jaxlib": jaxlib.__version__,
        "device": jax.local_devices()[0].device_kind, "XLA_FLAGS": " ".join(sorted(flags)),
    }  # fmt: skip
