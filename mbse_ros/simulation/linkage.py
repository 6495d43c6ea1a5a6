# SPDX-License-Identifier: Apache-2.0
"""A simulated mechanism with its sensors: samples with noise at a rate, and the truth beside them.

``Following``: inputs that hold it up, so that the coordinates they drive follow sines about the start. The
accelerations are affine in the inputs, ``zdd = a + B u``. For those of the driven coordinates the wish is that of an
oscillator, critically damped, about the sine; the inputs that give it follow (partial feedback linearisation: M. W.
Spong, Partial feedback linearization of underactuated mechanical systems, IROS 1994). What no input drives moves on by
itself. An input held over a sensor period is a command as of any controller: it is published, so known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..compiled import Kernel, Scan
from ..description.coordinate_units import unit_of
from ..dynamics.formulations.terms_arrays import STILL
from ..dynamics.model import Model
from ..errors import DescriptionError, DivergenceError, SettingError
from ..filters.parts.model_step import advance, rates
from ..filters.parts.problem import Problem, problem
from ..settings import Settings, setting

STIFFNESS = 2 * np.pi       # rad/s of the oscillator
LEAST = 1e-9                # share of the largest influence from which on an input moves a coordinate
SUBSTEP = 1e-3      # s, at most
UNHELD = 1e-3       # share of the accelerations without inputs that those which hold may leave
DAMPED = 1.0        # share of a velocity that damping takes in a period, at most: its force is held


def driven_coordinates(model: Model) -> list[int]:
    """Of each input, the place of the independent coordinate that it drives; -1: none."""
    coordinates = {force.input: force.coordinate for force in model.description.forces.values() if force.input}
    return [model.independent.index(coordinates[name]) if coordinates.get(name) in model.independent else -1
            for name in model.inputs]


def must_follow(model: Model) -> bool:
    """Whether sines of force would drive the mechanism where it cannot go: an input drives a length, whose stroke has
    ends, or acts on a body, where nothing damps it."""
    places = driven_coordinates(model)
    if not 0 < len(places) <= len(model.independent):
        return False
    lengths = [place for place in places if place >= 0 and unit_of(model.description, model.independent[place]) == 'm']
    return bool(lengths) or -1 in places


def holding_inputs(model: Model) -> np.ndarray:
    """Constant inputs (k,), N or N m, that hold the start at rest, the smallest of them. Raises DescriptionError where
    none do."""
    if model.unreduced:
        raise DescriptionError(model.description.file, 'initial.held', True,
                               f'false, or inputs of your own{model.why_unreduced("matrix_r")}')
    of, q = problem(model, ()), model.start.q
    free, B = Kernel(_influence(of), 'vm')(q, np.zeros(of.g), [model.start.t], np.asarray(model.parameters))
    B = B.reshape(of.g, len(model.inputs))
    u = -np.linalg.lstsq(B, free, rcond=LEAST)[0]
    left = np.abs(free + B @ u)
    loose = left > max(STILL, UNHELD * np.abs(free).max(initial=0.0))
    if loose.any():
        raise DescriptionError(model.description.file, 'initial.held', True,
                               'inputs that hold the start; nothing holds '
                               + ', '.join(np.array(model.independent)[loose]))
    return u


class Following:
    """``at (q, zd, t)``: inputs (k,) by which the driven coordinates follow ``travel sin(2 pi frequency t)`` about
    the start; each further one has 1.3 times the frequency. Raises SettingError where the inputs cannot."""

    def __init__(self, of: Problem, travel: float, frequency: float) -> None:
        self._travel, self._start = travel, of.model.start.q[of.model.z]
        self._parameters, self._z = np.asarray(of.model.parameters), of.model.z
        self._omega = 2 * np.pi * frequency * 1.3 ** np.arange(len(of.model.inputs))
        self._kernel = Kernel(_influence(of), 'vm')
        self._driven = self._chosen(of.model)

    def at(self, q: np.ndarray, zd: np.ndarray, t: float) -> np.ndarray:
        """Inputs at coordinates (n,) and independent velocities (g,)."""
        driven, w = self._driven, STIFFNESS
        free, B = self._kernel(q, zd, [t], self._parameters)
        B = B.reshape(len(zd), -1)
        phase = self._omega * t
        z = self._start[driven] + self._travel * np.sin(phase)
        rate = self._travel * self._omega * np.cos(phase)
        wish = -self._travel * self._omega ** 2 * np.sin(phase) + w * w * (z - q[self._z][driven]) \
            + 2 * w * (rate - zd[driven])
        return np.linalg.solve(B[driven], wish - free[driven])

    def _chosen(self, model: Model) -> list[int]:
        """The coordinate of each input: the one that it drives, else the free one that it moves most."""
        start = model.start
        _, B = self._kernel(start.q, start.qd[model.z], [start.t], self._parameters)
        B, places = np.abs(B.reshape(len(model.z), -1)), driven_coordinates(model)
        for k, name in enumerate(model.inputs):
            free = [place for place in range(len(model.z)) if place not in places]
            if places[k] < 0:
                if not free or not B[free, k].max() > LEAST * B.max():
                    raise SettingError('motion', 'follow', f'forces: input {name} of {model.description.name} has no '
                                                           'independent coordinate of its own to drive')
                places[k] = free[int(np.argmax(B[free, k]))]
        return places


def _influence(of: Problem) -> ca.Function:
    """``(q, zd, t, p) -> (a (g,), B (g k,), row by row)`` of ``zdd = a + B u``."""
    q, zd, u, t, p = of.symbols('q zd u t p')
    zdd = rates(of, q, zd, u, of.zeros(of.g), t, p).zdd
    B = ca.jacobian(zdd, u)
    free, B = ca.substitute([zdd, B], [u], [of.zeros(u.numel())])
    return ca.Function('mbse_influence', [q, zd, t, p], [free, ca.vec(ca.densify(B).T)], {'cse': True})


@dataclass(frozen=True)
class LinkagePlantSettings(Settings):
    """How a simulated mechanism moves and is sampled."""

    rate: float = setting(200.0, 'Rate of the sensors', 'Hz', 1.0, 1000.0)
    noise: float = setting(1.0, "Factor on the sensors' noise of the mechanism's file", '', 0.0, 100.0)
    motion: str = setting('auto', 'forces: inputs are sines; follow: inputs hold it and move their coordinates on '
                                  'sines; auto: follow where an input drives a length or acts on a body',
                          choices=('auto', 'forces', 'follow'))
    amplitude: float = setting(10.0, 'Of motion forces: amplitude of the inputs, N m or N', '', 0.0, 1e9)
    travel: float = setting(0.05, 'Of motion follow: amplitude of the driven coordinates, rad or m', '',
                            0.0, 10.0)
    frequency: float = setting(0.5, 'Frequency of the sines; of each further input 1.3 times that',
                               'Hz', 0.0, 100.0)
    damping: float = setting(2.0, 'Of motion forces: damping in the commands of inputs of independent coordinates, '
                                  'N m s/rad or N s/m', '', 0.0, 1e9)


@dataclass(frozen=True)
class LinkageFrame:
    """One instant: ``samples`` (s,) of the channels, ``inputs`` (k,) from now on, and the truth ``q``, ``qd`` (n,)."""

    stamp_ns: int
    samples: np.ndarray
    inputs: np.ndarray
    q: np.ndarray
    qd: np.ndarray


class SimulatedLinkage:
    """Motion of a model by the trapezoidal rule, its inputs held over a sensor period; the same seed gives the same
    samples. ``channels`` (s,) of ``sensors`` (default: all of the file). Raises SettingError."""

    def __init__(self, model: Model, sensors: Sequence[str] = (), seed: int = 1,
                 settings: LinkagePlantSettings = LinkagePlantSettings()) -> None:
        self.model, self.settings = model, settings
        self._problem = problem(model, tuple(sensors) or tuple(model.description.mechanical_sensors))
        self.channels = self._problem.channels
        self.period_ns = round(1e9 / settings.rate)
        self._substeps = max(1, round(self.period_ns * 1e-9 / SUBSTEP))
        self._dt = self.period_ns * 1e-9 / self._substeps
        self._scan = Scan(_step(self._problem), model.backend)
        self._follow, self._kernel = self._following(), Kernel(_influence(self._problem), 'vm')
        self._driven, self._sizes = driven_coordinates(model), (model.system.n, len(self.channels), len(model.inputs))
        self._number, self._parameters = np.arange(len(model.inputs)), np.asarray(model.parameters)
        self._x = np.concatenate([model.start.q, model.start.qd[model.z]])
        self._count, self._rng, self._u = 0, np.random.default_rng(seed), self._inputs(0.0)

    def frame(self) -> LinkageFrame:
        """The next instant, a period after the one before; raises DivergenceError."""
        t = self._count * self.period_ns * 1e-9
        n, s, k = self._sizes
        rows = np.empty((self._substeps, k + 1))
        rows[:, :k], rows[:, k] = self._u, t + self._dt * np.arange(1, self._substeps + 1)
        p = np.concatenate([[self._dt], self._parameters])
        self._x, ys = self._scan(self._x, rows, p)
        if not np.isfinite(ys).all():
            raise DivergenceError(self.model.description.name, self._count, f'at t = {t:.6g} s{self._advice()}')
        self._count += 1
        y = ys[-1]
        noise = self._rng.standard_normal(s) * self._problem.stddev * self.settings.noise
        samples = y[2 * n:2 * n + s] + noise
        samples = np.where(self._problem.angular, (samples + np.pi) % (2 * np.pi) - np.pi, samples)
        self._u = self._inputs(t + self.period_ns * 1e-9)
        return LinkageFrame(self._count * self.period_ns, samples, self._u, y[:n], y[n:2 * n])

    def inputs(self) -> np.ndarray:
        """Inputs (k,) in force until the next frame."""
        return self._u

    def _following(self) -> Following | None:
        """What holds the mechanism, where it is held."""
        of = self.settings
        if of.motion == 'follow' and not self.model.inputs:
            raise SettingError('motion', 'follow', f'auto or forces: {self.model.description.name} has no inputs')
        wanted = of.motion == 'follow' or of.motion == 'auto' and must_follow(self.model)
        return Following(self._problem, of.travel, of.frequency) if wanted else None

    def _advice(self) -> str:
        """What to change where the motion led out of the mechanism's reach."""
        if self._follow is not None:
            return '; a smaller travel, or a lower frequency, keeps it within its reach'
        if not self.model.inputs:
            return ''
        return '; a smaller amplitude, more damping or motion:=follow keeps it within its reach'

    def _inputs(self, t: float) -> np.ndarray:
        """Those of the motion that is followed, else sines less the damping of the coordinate that an input drives,
        both smaller where the damping, held over a period, would throw it back."""
        n = self._sizes[0]
        if self._follow is not None:
            return self._follow.at(self._x[:n], self._x[n:], t)
        of, zd, number = self.settings, self._x[n:], self._number
        u = of.amplitude * np.sin(2 * np.pi * of.frequency * 1.3 ** number * t + number)
        if of.damping > 0.0 and number.size:
            B = self._kernel(self._x[:n], zd, [t], self._parameters)[1].reshape(len(zd), len(number))
            for i, k in enumerate(self._driven):
                if k >= 0:
                    stopped = of.damping * abs(B[k, i]) * self.period_ns * 1e-9     # share of the velocity
                    u[i] = (u[i] - of.damping * zd[k]) / max(1.0, stopped / DAMPED)
        return u


def _step(of: Problem) -> ca.Function:
    """``(x = [q, zd], [u, t], [dt, p]) -> (x, [q, qd, sensors])`` by the trapezoidal rule."""
    n, g, k = of.n, of.g, of.system.u.numel() - of.g
    x, row = of.symbol('x', n + g), of.symbol('row', k + 1)
    numbers = of.symbol('numbers', 1 + of.system.values.symbol.numel())
    u, t, dt, p, none = row[:k, :], row[k], numbers[0], numbers[1:], of.zeros(g)
    q, zd, _ = advance(of, 'trapezoid', x[:n], x[n:], u, none, t, dt, p)
    now = rates(of, q, zd, u, none, t, p)
    h = of.sensors(q, zd, now.zdd, ca.vertcat(u, none), t, p)[0]
    return ca.Function('mbse_linkage_plant', [x, row, numbers], [ca.vertcat(q, zd), ca.vertcat(q, now.qd, h)],
                       {'cse': True})
