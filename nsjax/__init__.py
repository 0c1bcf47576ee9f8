"""nsjax: a differentiable simulator for mechanical systems that hit, slide, stick and bend."""

from typing import TYPE_CHECKING

from nsjax.lazy import lazily

if TYPE_CHECKING:
    from nsjax import (
        analysis,
        fem,  # noqa: F401
        gradient_notes,
        io,
        linalg,
        math,  # noqa: F401
        models,
        multibody,
        plot,
        schemes,
        shapes,
        status,
    )
    from nsjax.check_gradient import GradientCheck, check_gradient
    from nsjax.configure import configure
    from nsjax.consistent import Consistent, consistent
    from nsjax.contact import ContactLaw, Criteria
    from nsjax.core import (
        Carry,
        Event,
        InputError,
        Labels,
        Output,
        Problem,
        Scheme,
        State,
        System,
        from_lagrangian,
    )
    from nsjax.core.filters import with_actuator_dynamics
    from nsjax.core.inputs import with_inputs
    from nsjax.core.signals import signal
    from nsjax.environment import environment
    from nsjax.identify import Estimate, Recording, identify, losses, transforms
    from nsjax.io import (
        Stopped,
        export_program,
        load,
        load_program,
        resume,
        save,
        simulate_to_file,
        to_paraview,
    )
    from nsjax.jaxtools.precision import single_precision
    from nsjax.plot import animate
    from nsjax.simulate import simulate
    from nsjax.stepper import Stepper, stepper
    from nsjax.sweep import (
        AccuracyCheck,
        SideBySide,
        SweepResult,
        WorkPrecision,
        check_accuracy,
        reductions,
        side_by_side,
        sweep,
        sweep_lyapunov,
        sweep_time_step,
    )
    from nsjax.trajectory import RunError, Trajectory
    from nsjax.version import __version__

__all__ = [
    "AccuracyCheck", "Carry", "Consistent", "ContactLaw", "Criteria", "Estimate", "Event", "GradientCheck",
    "InputError", "Labels", "Output", "Problem", "Recording", "RunError", "Scheme", "SideBySide", "State",
    "Stepper", "Stopped", "SweepResult", "System", "Trajectory", "WorkPrecision", "__version__", "analysis",
    "animate", "check_accuracy", "check_gradient", "configure", "consistent", "environment",
    "export_program", "from_lagrangian", "gradient_notes", "identify", "io", "linalg", "load",
    "load_program", "losses", "models", "multibody", "plot", "reductions", "resume", "save", "schemes",
    "shapes", "side_by_side", "signal", "simulate", "simulate_to_file", "single_precision", "status",
    "stepper", "sweep", "sweep_lyapunov", "sweep_time_step", "to_paraview", "transforms",
    "with_actuator_dynamics", "with_inputs",
]  # fmt: skip

lazily(__name__)
