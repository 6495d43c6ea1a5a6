# SPDX-License-Identifier: Apache-2.0
"""The balance of forces of a machine over many instants: what is missing, and its exact derivatives by all numbers.

A log is taken in short windows: position, speed, acceleration and pressures or efforts, averaged by one and the same
weight. A straight parabola through the positions of a window is, by its second derivative, the mean of the acceleration
with the weight (1 - x^2)^2; with the same weight on positions and pressures the balance of forces holds for the means,
also while valves switch and the machine sways. All is linear in the samples, so their noise gives that of the means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from ..description.sections.load_payload import MASS
from ..errors import DescriptionError, PositionProblemError, SingularConfigurationError
from ..filters.force_balance import ForceBalance, force_balance
from ..filters.hydraulic_state import PUSHED, direct, state_names, uncertain_delays
from ..machine import Machine
from ..machine.equations import check_single, missing_words

WINDOW, OF_ARMS = 0.5, 0.2          # s: of machines that move by strokes, and of arms, which are faster
FEWEST = 8          # samples of a channel in a window
HOLE = 0.15         # of a window that may be without samples
KINDS = ('position', 'velocity', 'acceleration')
NEEDED = ('position/', *PUSHED, 'inclination/', 'base_acceleration/')

Samples = tuple[np.ndarray, np.ndarray]     # times (n,), s, and values (n,)
STEADY = 2.0        # times the transition velocity of the friction, from which it moves
SURE = 5.0          # standard deviations of the speed, as well
MARGIN = 0.01       # of the stroke, at its ends
BENT = 7 ** -0.5    # of half a window: deviation of the time in it with the weight (1 - x^2)^2
EXACT = 0.01        # of the force: what no model knows
STRAIGHT = 3.0      # times the error of second order of a window's means: a rough figure of all that they leave out
MORE = 1.5          # times half a window, over which the speed may change


@dataclass(frozen=True)
class Windows:
    """Means of the windows (n,) of a log at times ``t`` (n,), s: states ``X`` (n, nx), SI, as the observer's, 0 where
    the balance of forces asks for nothing; ``covariance`` (n, nx, nx) of them by the noise of the samples. Where the
    delay of a sensor is uncertain both go on with the rates of the state. ``ends`` (n, g, 2): speeds of the coordinates
    in the first and the last third."""

    t: np.ndarray
    X: np.ndarray
    covariance: np.ndarray
    ends: np.ndarray

    def part(self, chosen: np.ndarray) -> Windows:
        """Some of the windows."""
        return Windows(self.t[chosen], self.X[chosen], self.covariance[chosen], self.ends[chosen])


def window_length(machine: Machine) -> float:
    """Of the windows of a log, s."""
    return WINDOW if machine.cylinders else OF_ARMS


def needed_states(machine: Machine) -> tuple[str, ...]:
    """Entries of the state that the equations need whose pressures and efforts sensors measure; the others of the
    balance count for nothing."""
    pushes = {name for k in machine.weighing for name in machine.push_needs[k]}
    return tuple(name for name in state_names(machine)[0] if name.startswith(NEEDED)
                 and (name in pushes or not name.startswith(PUSHED)))


def check_measured(machine: Machine) -> None:
    """Raise DescriptionError where the sensors of a machine measure all that it needs of no equation of its force
    balance."""
    missing = missing_words(machine)
    if not machine.actuators.entries:
        missing = '; or '.join(f'pressure/{name}_piston and pressure/{name}_rod' for name in machine.cylinders)
    if not machine.weighing:
        raise DescriptionError(machine.description.file, 'sensors',
                               list(machine.measured_pushes),
                               ('both pressures of a cylinder' if machine.cylinders else 'the effort of a drive')
                               + ', best of all, to calibrate' + (missing and f'; missing: {missing}'))
    if names := [name for name in needed_states(machine) if name not in direct(machine)]:
        raise DescriptionError(machine.description.file, 'sensors', None,
                               'a sensor for each of these, which the force balance needs: ' + ', '.join(names))


def windows_of(machine: Machine, series: Mapping[str, Samples], length: float = 0.0) -> Windows:
    """Windows of a log, one after the other, in which all that is needed is measured; ``series``: by channel;
    ``length``, s, 0: ``window_length``.

    Raises DescriptionError where no sensor of the machine measures a coordinate or a volume by itself.
    """
    check_measured(machine)
    length = length or window_length(machine)
    names, channels = state_names(machine)[0], direct(machine)
    size = len(names) * (1 + uncertain_delays(machine))
    needed = {name: channels[name] for name in needed_states(machine)}
    own = {name: series[channel.name] for name, channel in needed.items() if channel.name in series}
    if len(own) < len(needed):
        return _empty(size, len(machine.coordinates))
    start, end = max(t[0] for t, _ in own.values()), min(t[-1] for t, _ in own.values())
    middle = np.arange(start + length / 2, end - length / 2 + 1e-9, length)
    X, P = np.zeros((len(middle), size)), np.zeros((len(middle), size, size))
    usable, ends = np.ones(len(middle), dtype=bool), np.zeros((len(middle), len(machine.coordinates), 2))
    for name, (t, y) in own.items():
        gain, offset, zero = needed[name].nominal
        noise, value = needed[name].sensor.noise / abs(gain), (y - offset) / gain + zero
        places = [names.index(f'{kind}/{name.partition("/")[2]}') for kind in KINDS] if name.startswith('position/') \
            else [names.index(name)]
        for k, (first, last) in enumerate(zip(*(np.searchsorted(t, middle + s * length / 2) for s in (-1, 1)))):
            x = (t[first:last] - middle[k]) / (length / 2)
            if len(x) < FEWEST or np.diff(x, prepend=-1.0, append=1.0).max() > 2 * HOLE:
                usable[k] = False
                continue
            rows, entries = _rows(x, length / 2)[:len(places)], places
            if size > len(names):
                rows, entries = np.vstack([rows, rows @ _slopes(t[first:last])]), [*places, *np.add(places, len(names))]
            X[k, entries] = rows @ value[first:last]
            P[k][np.ix_(entries, entries)] = noise ** 2 * rows @ rows.T
            if len(places) > 1:
                ends[k, places[0]] = [np.polyfit(x[third], value[first:last][third], 1)[0] / (length / 2)
                                      for third in (x <= x[len(x) // 3], x >= x[-1 - len(x) // 3])]
    return Windows(middle, X, P, ends).part(usable)


def _rows(x: np.ndarray, half: float) -> np.ndarray:
    """Weights (3, n) of samples at places x (n,), -1 to 1, in a window: mean, slope and second derivative. Each stands
    for what is nearest to it: a window that has a sample at one end alone is else one of another time."""
    cells = np.diff(np.concatenate([[-1.0], (x[1:] + x[:-1]) / 2, [1.0]]))
    weight = cells * (1 - x ** 2) ** 2
    fit = np.linalg.pinv(np.vander(x, 3, increasing=True) * np.sqrt(cells)[:, None]) * np.sqrt(cells)
    return np.vstack([weight / weight.sum(), fit[1] / half, 2 * fit[2] / half ** 2])


def _slopes(t: np.ndarray) -> np.ndarray:
    """Derivatives (n, n) by the time of samples at ``t`` (n,), s, as a matrix on their values: by second order."""
    return np.asarray(np.gradient(np.eye(len(t)), t, axis=0))


def _empty(size: int, g: int) -> Windows:
    return Windows(np.zeros(0), np.zeros((0, size)), np.zeros((0, size, size)), np.zeros((0, g, 2)))


@dataclass(frozen=True)
class Moments:
    """Instants (n,) at which forces are looked at: ``near`` (n, n_q - g) and states ``X`` (n, nx) as force_balance has
    them; ``counts`` (n, a): equations whose actuators move; ``variance`` (n, a) of each by the noise of the samples
    and by what the means of a window leave out;
    ``pistons``, ``speeds`` (n, actuators), m and m/s, or rad; ``levers`` (n, a) of their forces in the equations;
    ``t`` (n,), s."""

    near: np.ndarray
    X: np.ndarray
    counts: np.ndarray
    variance: np.ndarray
    pistons: np.ndarray
    speeds: np.ndarray
    levers: np.ndarray
    t: np.ndarray

    def part(self, chosen: np.ndarray) -> Moments:
        """Some of the instants."""
        return Moments(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


class CalibrationBalance:
    """Of one machine, its functions built once. ``equations``: names of its equations, by their actuators; ``X``:
    symbols of a window's state, with its rates where they count. Raises DescriptionError where a sensor is missing."""

    def __init__(self, machine: Machine) -> None:
        check_single(machine)
        check_measured(machine)
        self.machine, (self.names, _) = machine, state_names(machine)
        self.found: ForceBalance = force_balance(machine, self.names, rated=True)
        self.X = ca.vertcat(self.found.X, self.found.rate)
        self.equations = tuple('+'.join(name for name, own in zip(machine.actuators.names, row) if own)
                               for row in self.found.concerns)

    def terms(self, moments: Moments, numbers: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, ...]:
        """What is missing (n, a), N or N m, at ``numbers`` (k,), SI, and masses (n,), kg; its derivatives by the
        numbers (n, a, k) and by the mass (n, a)."""
        n, a, k = len(moments.X), self.found.g.numel(), len(numbers)
        if not n:
            return np.zeros((0, a)), np.zeros((0, a, k)), np.zeros((0, a))
        g, by_numbers, by_mass = map(np.asarray, self._terms(moments.near.T, moments.X.T, numbers,
                                                                         mass[None]))
        return g.T, by_numbers.reshape(a, k, n, order='F').transpose(2, 0, 1), by_mass.T

    @cached_property
    def _terms(self) -> ca.Function:
        p, mass = self.machine.parameters.symbol, self.mass
        found = [self.found.g, ca.jacobian(self.found.g, p), ca.jacobian(self.found.g, mass)]
        return ca.Function('mbse_calibration', [self.found.near, self.X, p, mass], [ca.densify(f) for f in found],
                           {'cse': True})

    @cached_property
    def mass(self) -> ca.SX:
        """Symbol of the load, kg; one that nothing depends on, of a machine without."""
        return self.machine.parameters.states.get(MASS, ca.SX.sym('no_load'))

    @cached_property
    def motion(self) -> ca.Function:
        """``(near, X, p, mass)`` -> pistons, speeds, their derivatives by X, those of g by X, size of the levers."""
        b = self.found
        levers = ca.sqrt(ca.sum2(b.levers ** 2))
        outputs = [b.pistons, b.speeds, ca.densify(ca.jacobian(b.speeds, self.X)),
                   ca.densify(ca.jacobian(b.g, self.X)), levers]
        inputs = [b.near, self.X, self.machine.parameters.symbol, self.mass]
        return ca.Function('mbse_calibration_motion', inputs, outputs, {'cse': True})

    def moments(self, windows: Windows, half: float, mass: float = 0.0) -> Moments:
        """Of windows of 2 ``half`` s: the mechanism's coordinates, and which equations count. Instants that the
        mechanism cannot reach are left out."""
        near, reached = self.solved(windows.X[:, :len(self.machine.coordinates)])
        w = windows.part(reached)
        n, a, c, nx = len(near), self.found.g.numel(), len(self.machine.actuators), self.X.numel()
        if not n:
            equations, pistons = np.zeros((0, a)), np.zeros((0, c))
            return Moments(near, w.X, equations.astype(bool), equations, pistons, pistons, equations, w.t)
        found = self.motion(near.T, w.X.T, self.machine.parameters.mean, mass)
        pistons, speeds, rates, slopes, levers = map(np.asarray, found)
        pistons, speeds, levers = pistons.T, speeds.T, levers.T
        rates, slopes = (item.reshape(size, nx, n, order='F').transpose(2, 0, 1) for item, size in
                         ((rates, c), (slopes, a)))
        variance = np.einsum('nai,nij,naj->na', slopes, w.covariance, slopes)
        bend = np.abs(self.bend(near, w.X, half, mass))
        pushes = [i for i, name in enumerate(self.names) if name.startswith(PUSHED)]
        forces = (np.abs(slopes[:, :, pushes]) @ np.abs(w.X[:, pushes, None]))[:, :, 0]
        straight = bend < np.maximum(np.sqrt(variance), EXACT * forces)
        variance += (STRAIGHT * np.where(straight, bend, 0.0)) ** 2
        moving = self._moving(pistons, speeds, rates, w, half)
        counts = np.array([moving[:, row].all(axis=1) for row in self.found.concerns]).T
        return Moments(near, w.X, counts & straight, variance, pistons, speeds, levers, w.t)

    def bend(self, near: np.ndarray, X: np.ndarray, half: float, mass: float) -> np.ndarray:
        """By how much the mean of what is missing over windows of 2 ``half`` s differs from that at their means (n, a),
        to second order in the way that the positions go: much where levers turn fast, as near a dead point."""
        g, found = len(self.machine.coordinates), []
        for sign in (0.0, -1.0, 1.0):
            ends = X.copy()
            ends[:, :g] += sign * BENT * half * X[:, g:2 * g]
            q = np.zeros((len(near), self.machine.system.n))
            q[:, self.machine.system.dependent], q[:, list(self.machine.model.z)] = near, X[:, :g]
            places = np.array([self._place(z, start) for z, start in zip(ends[:, :g], q)])
            numbers = self.machine.parameters.mean
            found.append(np.asarray(self.unbalanced(places.T, ends.T, numbers, mass)).T)
        bend = 0.5 * (found[1] + found[2]) - found[0]
        return np.where(np.isfinite(bend), bend, np.inf)

    def _place(self, z: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Dependent coordinates (n_q - g,) at z (g,); NaN where the mechanism does not reach."""
        try:
            return np.asarray(self.machine.position(z, start)[self.machine.system.dependent])
        except (PositionProblemError, SingularConfigurationError):
            return np.full(len(self.machine.system.dependent), np.nan)

    @cached_property
    def unbalanced(self) -> ca.Function:
        """``(near, X, p, mass)`` -> what is missing (a,), without derivatives."""
        return ca.Function('mbse_calibration_missing', [
            self.found.near, self.X, self.machine.parameters.symbol, self.mass], [self.found.g], {'cse': True})

    def _moving(self, pistons: np.ndarray, speeds: np.ndarray, rates: np.ndarray, w: Windows, half: float
                ) -> np.ndarray:
        """Actuators (n, c) whose friction is known by their motion over the whole window, inside their stroke."""
        g = len(self.machine.coordinates)
        change = np.abs(np.einsum('nci,ni->nc', rates[:, :, g:2 * g], w.X[:, 2 * g:3 * g])) * half * MORE
        doubt = np.sqrt(np.maximum(np.einsum('nci,nij,ncj->nc', rates, w.covariance, rates), 0.0))
        least = STEADY * np.array(self.machine.actuators.transitions)
        low, high = self.machine.stroke.T
        room = np.where(np.isfinite(high), MARGIN * (high - low), 0.0) + np.array(self.machine.actuators.ends)
        inside = (pistons > low + room) & (pistons < high - room)
        ends = rates[:, :, g:2 * g] @ w.ends * np.sign(speeds)[:, :, None]
        steady = (ends > least[:, None]).all(axis=2)
        return inside & steady & (np.abs(speeds) - change > np.maximum(least, SURE * doubt))

    def solved(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Dependent coordinates (r, n_q - g) along positions (n, g), and which (n,) of them are reached."""
        machine, q = self.machine, None
        found, reached = [], np.zeros(len(z), dtype=bool)
        for k, row in enumerate(z):
            try:
                q = machine.position(row, q)
            except (PositionProblemError, SingularConfigurationError):
                q = None
                continue
            found.append(q[machine.system.dependent])
            reached[k] = True
        return np.array(found).reshape(len(found), len(machine.system.dependent)), reached
