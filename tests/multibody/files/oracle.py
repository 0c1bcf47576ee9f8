"""The package `mujoco` as an oracle: accelerations with equalities held rigidly, at random states."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsjax.core.operators import prepared
from nsjax.multibody import LeftOutWarning, read_mjcf
from nsjax.multibody.contacts.groups import unused
from nsjax.multibody.files.actuators import acting_on, thrusts
from nsjax.multibody.files.model_source import compiled, opened
from nsjax.multibody.files.source import Source, identifier
from nsjax.multibody.files.starts import _coordinates, _entry
from nsjax.multibody.reactions import Instant
from nsjax.multibody.sensors import sensed
from nsjax.multibody.start import given_coordinates

mujoco = pytest.importorskip("mujoco", reason="the package mujoco is not installed")

SOFT = ("CONTACT", "LIMIT", "FRICTIONLOSS")
"""What is no smooth force, and is switched off in the oracle."""

STEP = 1e-3
"""Of differences of fourth order [s]."""


QUICKLY = {"xla_backend_optimization_level": 0}
"""A program that runs ten times is compiled quickly."""


def quiet(reader: Any, *given: Any, **more: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        return reader(*given, **more)


class Oracle:
    """A file as the library sees it.

    Args:
        text: of a MJCF or URDF; or a path.
        reader: of the library, for files of this kind.
    """

    def __init__(self, text: str, reader: Any = read_mjcf) -> None:
        who = reader.__name__
        spec, title, _ = opened(text, who)
        self.model, _ = compiled(spec, title, who)
        self.source = Source(mujoco, self.model, "text")
        for flag in SOFT:
            self.model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
        # a bound of several actuators together is left out by the reader, which says so
        for k in range(self.model.njnt):
            acting = acting_on(self.source, k)
            if len(acting) > 1 or any(thrusts(self.source, x) for x in acting):
                self.model.jnt_actfrclimited[k] = 0
        self.model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        self.data = mujoco.MjData(self.model)

    @property
    def sensors(self) -> dict[str, int]:
        """Numbers of the sensors by the names that they get."""
        taken = set[str]()
        own = [str(self.model.sensor(k).name) for k in range(self.model.nsensor)]
        return {unused(identifier(x or f"sensor{k}"), taken): k for k, x in enumerate(own)}

    def moved(self, q: np.ndarray, xi: np.ndarray) -> np.ndarray:
        found = q.copy()
        mujoco.mj_integratePos(self.model, found, xi, 1.0)
        return found

    def rows(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residuals of all equalities, and their directions."""
        self.data.qpos[:] = q
        mujoco.mj_fwdPosition(self.model, self.data)
        n, nv = self.data.nefc, self.model.nv
        return np.array(self.data.efc_pos[:n]), np.array(self.data.efc_J[: n * nv]).reshape(n, nv)

    def state(self, rng: np.random.Generator, wide: float) -> tuple[np.ndarray, np.ndarray]:
        """A position about the reference, and a velocity, that fulfil all equalities."""
        for _ in range(30):
            q = self._within(self.moved(self.model.qpos0.copy(), rng.uniform(-wide, wide, self.model.nv)))
            for _ in range(50):
                left, J = self.rows(q)
                if not left.size or np.max(np.abs(left)) < 1e-13:
                    break
                q = self.moved(q, -np.linalg.pinv(J, rcond=1e-8) @ left)
            left, J = self.rows(q)
            if (not left.size or np.max(np.abs(left)) < 1e-11) and self._inside(q):
                v = rng.normal(size=self.model.nv)
                return q, v - np.linalg.pinv(J, rcond=1e-8) @ (J @ v) if left.size else v
        raise AssertionError("no state of this file was found")

    def _within(self, q: np.ndarray) -> np.ndarray:
        """Hinges and slides a tenth inside of their limits."""
        model = self.model
        for k in range(model.njnt):
            if model.jnt_limited[k] and model.jnt_type[k] >= 2:
                (lower, upper), at = model.jnt_range[k], int(model.jnt_qposadr[k])
                q[at] = np.clip(q[at], 0.9 * lower + 0.1 * upper, 0.1 * lower + 0.9 * upper)
        return q

    def _inside(self, q: np.ndarray) -> bool:
        model = self.model
        single = [k for k in range(model.njnt) if model.jnt_limited[k] and model.jnt_type[k] >= 2]
        return all(
            model.jnt_range[k][0] <= q[model.jnt_qposadr[k]] <= model.jnt_range[k][1] for k in single
        )

    def accelerations(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """With the rows of all equalities held exactly; sensors are those of these accelerations.

        The drift of the rows is their derivative along the motion, by differences.
        """
        model, data = self.model, self.data
        weights = ((-2, 1.0), (-1, -8.0), (1, 8.0), (2, -1.0))
        drift = sum(w * (self.rows(self.moved(q, k * STEP * v))[1] @ v) for k, w in weights) / (12.0 * STEP)
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        mass = np.zeros((model.nv, model.nv))
        for row, unit in zip(mass, np.eye(model.nv), strict=True):
            mujoco.mj_mulM(model, data, row, unit)
        _, J = self.rows(q)
        mujoco.mj_forward(model, data)
        found = np.array(data.qacc_smooth)
        if J.shape[0]:
            answer = np.linalg.solve(mass, J.T)
            found = found - answer @ np.linalg.pinv(J @ answer, rcond=1e-9) @ (J @ found + drift)
        data.qacc[:] = found
        mujoco.mj_rnePostConstraint(model, data)
        mujoco.mj_sensorAcc(model, data)
        return found


@dataclasses.dataclass(frozen=True)
class Here:
    """The same file as a problem: where its joints' velocities stand, and what is looked at."""

    problem: Any
    file: Any
    oracle: Oracle

    @property
    def filters(self) -> Any:
        """Those of activations, None without."""
        return self.problem.system.parts if self.file.activations.time_constants else None

    @property
    def mechanism(self) -> Any:
        return self.problem.system.parts if self.filters is None else self.filters.system.parts

    @functools.cached_property
    def force(self) -> Any:
        return jax.jit(self.problem.system.force)

    def numbers(self, controls: np.ndarray, act: np.ndarray) -> tuple[Any, np.ndarray]:
        """Params of the mechanism with these controls and activations, and rates of activations in their
        order here.
        """
        names, delayed, given = self.oracle.source.names, self.file.activations, {}
        driven = {x.name for x in self.file}
        for k in range(self.oracle.source.actuators):
            if names["actuator", k] in driven:
                u = controls[self.oracle.source.control(k)]
                given[delayed.key(names["actuator", k])] = float(u)
        p = self.problem.replace(given).params
        if self.filters is None:
            return p, np.zeros(0)
        a = act[self.acting()]
        rest = np.concatenate([np.zeros(self.problem.system.nv - len(a)), a])
        force = self.force(0.0, self.problem.state.q, rest, p)[-len(a) :]
        constants = [T if isinstance(T, float) else 1.0 for T in delayed.time_constants.values()]
        return self.filters.model(p, a), np.asarray(force) / np.array(constants)

    def acting(self) -> np.ndarray:
        """Entries of the library's activations in the order here."""
        model, names = self.oracle.model, self.oracle.source.names
        at = {
            names["actuator", k]: int(model.actuator_actadr[k]) for k in range(self.oracle.source.actuators)
        }
        return np.array([at[x] for x in self.file.activations.time_constants], int)

    def places(self) -> np.ndarray:
        """Entries of ``v`` in the order of the library's velocities."""
        model, source, topology, found = self.oracle.model, self.oracle.source, self.mechanism.topology, []
        for k in range(model.njnt):
            free = int(model.jnt_type[k]) == 0
            body = source.names["body", int(model.jnt_bodyid[k])]
            link = topology.link_of[body] if free else topology.link_of_joint[source.names["joint", k]]
            found += range(link.v, link.v + link.size[1])
        return np.array(found)

    def state(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """In the coordinates of the problem."""
        model, source, start = self.oracle.model, self.oracle.source, {}
        for k, x in enumerate(_coordinates(source, q, "", [])):
            dof, size = int(model.jnt_dofadr[k]), {0: 6, 1: 3}.get(int(model.jnt_type[k]), 1)
            start |= _entry(source, k, x, v[dof : dof + size])
        return given_coordinates(self.mechanism, start, "start")[:2]


def compared(
    text: str, states: int = 10, seed: int = 0, wide: float = 0.5, reader: Any = read_mjcf
) -> dict[str, float]:  # fmt: skip
    """Largest errors over random states, each over one and the size of what is wanted: accelerations,
    sensors by the kinds of the library, residuals of the rows.
    """
    oracle, file = Oracle(text, reader), quiet(reader, text, contact=False)
    problem = quiet(file.problem)
    here = Here(problem, file, oracle)
    mechanism, places, rng = here.mechanism, here.places(), np.random.default_rng(seed)
    model, worst = oracle.model, {"accelerations": 0.0, "rows": 0.0}
    system = mechanism.system()

    @functools.partial(jax.jit, compiler_options=QUICKLY)
    def looked(q: jax.Array, v: jax.Array, params: Any) -> Any:
        t, p = jnp.zeros(()), prepared(system, params)
        seen = {x: sensed(mechanism, y, t, q, v, None, p) for x, y in file.sensors.items()}
        rows = system.constraint(t, q, p) if system.nb else jnp.zeros(1)
        return Instant(mechanism, t, q, v, p).balance[0], seen, rows

    for _ in range(states):
        q, v = oracle.state(rng, wide)
        controls, act = rng.normal(size=model.nu), rng.uniform(-0.4, 0.4, model.na)
        oracle.data.ctrl[:], oracle.data.act[:] = controls, act
        params, rates = here.numbers(controls, act)
        wanted = oracle.accelerations(q, v)
        found, seen, rows = looked(*map(jnp.asarray, here.state(q, v)), params)
        bounded(worst, "accelerations", np.asarray(found)[places], wanted)
        bounded(worst, "rows", rows, np.zeros(1))
        if rates.size:
            bounded(worst, "activations", rates, oracle.data.act_dot[here.acting()])
        for name, value in seen.items():
            k = oracle.sensors[name]
            kind = mujoco.mjtSensor(int(model.sensor_type[k])).name.removeprefix("mjSENS_").lower()
            first, size = int(model.sensor_adr[k]), int(model.sensor_dim[k])
            asked = np.array(oracle.data.sensordata[first : first + size])
            value = np.reshape(value, -1)
            if kind.endswith("quat") and float(np.sum(value * asked)) < 0.0:
                value = -value
            bounded(worst, kind, value, asked)
    return worst


def bounded(worst: dict[str, float], what: str, found: Any, wanted: Any) -> None:
    wanted = np.reshape(wanted, -1)
    error = float(np.max(np.abs(np.reshape(found, -1) - wanted))) / (1.0 + float(np.max(np.abs(wanted))))
    worst[what] = max(worst.get(what, 0.0), error)
