"""What a model promises about the sparsity of its tangent matrix."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Dense:
    """No promise: every unknown may be coupled to every other one."""


Structure = Dense
