"""Services that `nsjax.configure` starts: cached programs, notes on compiling, a tested compiler option."""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.startup.cache import machine_key, use_cache
    from nsjax.startup.compilation import (
        ONE_KERNEL_BYTES,
        ONE_KERNEL_OPTION,
        TESTED_JAXLIB,
        interactive,
        one_kernel_works,
        watch_compiling,
    )

__all__ = [
    "ONE_KERNEL_BYTES",
    "ONE_KERNEL_OPTION",
    "TESTED_JAXLIB",
    "interactive",
    "machine_key",
    "one_kernel_works",
    "use_cache",
    "watch_compiling",
]

lazily(__name__)
