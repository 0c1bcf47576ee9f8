"""Time-stepping schemes, one file per family, and their registry."""

from nsjax.schemes.moreau import moreau
from nsjax.schemes.registry import REGISTRY, SchemeEntry

__all__ = ["REGISTRY", "SchemeEntry", "moreau"]
