"""Sweeps: thousands of variants of a problem in one compiled program."""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax.sweep import reductions
    from nsjax.sweep.accuracy import Accuracy, AccuracyCheck, check_accuracy
    from nsjax.sweep.lyapunov import sweep_lyapunov
    from nsjax.sweep.mechanisms import SideBySide, side_by_side
    from nsjax.sweep.result import SweepResult
    from nsjax.sweep.run import sweep
    from nsjax.sweep.work_precision import WorkPrecision, sweep_time_step

__all__ = [
    "Accuracy", "AccuracyCheck", "SideBySide", "SweepResult", "WorkPrecision", "check_accuracy",
    "reductions", "side_by_side", "sweep", "sweep_lyapunov", "sweep_time_step",
]  # fmt: skip

lazily(__name__)
