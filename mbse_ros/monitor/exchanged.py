# SPDX-License-Identifier: Apache-2.0
"""Whether the two pressures of a cylinder are exchanged: hoses, or plugs of sensors, that are swapped.

The masses of one motion agree with each other all the same, as long as the two pressures change little. So the machine
is weighed both ways, by the same force balance, at rest too, where friction is anything between two bounds. Each way
leaves the masses that all windows so far, and the payload's limits, allow (set-membership: F. C. Schweppe, Recursive
state estimation: unknown but bounded errors and system inputs, IEEE Trans. Automatic Control 13, 1968). The wrong way
leaves none as soon as the pressures have changed together, or at once, where no load within the limits explains them.

A window that contradicts those before is left out. If the next one does, too, the way that explains it may be the right
one. It is, if all windows agree with it while those as the pressures are contradict each other again and again, up and
down: a load that is filled or dumped does so in one direction, soil once up and once down. Where no way explains the
windows, the load is another, or something else pushes: what masses are possible begins again, and what has been found
of the hoses stays.

A window whose equations contradict each other, so that no load and no exchange explains it, after windows that one load
did: the tool touches something. That is so for as long as a contact lasts, and a sensor that has become wrong stays
wrong. What a machine weighs then is another mass in each equation.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from ..compiled import Kernel
from ..compiled.cache import built
from ..errors import PositionProblemError, SingularConfigurationError
from ..filters.force_balance import force_balance
from ..filters.hydraulic_state import PUSHED, direct, state_names
from ..filters.weighing import KNOWN, free_of_stops
from ..machine import Machine
from ..machine.equations import pressure_pairs
from .faults import Fault, reason_of
from .one_signal import OneSignal

WINDOW = 0.2        # s over which the machine is weighed with one mean acceleration; all known, twice that
SURE = 3.0          # standard deviations by which a mass may be off
LIKELY = 6.0        # standard deviations of its innovation, up to which a sample is used
CONTRADICTIONS = 3          # of windows as the pressures are, each in another direction than the one before
STOPPED = 1e-6      # m/s: no speed is known better
ROUGH = 1.0         # of the range of the payload's limits: a mass known no better speaks of no contact
FREE = 1.0          # s of windows that a load explains, before a contact and between two of them
TWICE = 2           # such windows in a row begin a contact: one may be a jerk
LONGEST = 10.0      # s of windows that none explains, for which a contact may last: what lasts longer is a sensor


def masses_both_ways(machine: Machine, pairs: list[tuple[int, int]]) -> ca.Function:
    """``(near, X, P, mass, p) -> (near+, masses, rooms)``, kg, (1 + ways, equations of the force balance): as the
    pressures are, and with those at each of ``pairs`` of places in the state ``X`` (nx,), SI, exchanged.

    ``near``: dependent coordinates nearby, ``near+``: those of X; ``P`` (nx, nx): covariance of X; ``mass``: kg, at
    which the balance is linearised; ``rooms``: by how much friction whose sign is not known, and ``SURE`` deviations of
    X and of the uncertain numbers ``p``, change a mass; infinite where a stop may push.
    """
    names, _ = state_names(machine)
    balance, parameters = force_balance(machine, names, smooth=True), machine.parameters.symbol
    X, P, mass = balance.X, ca.SX.sym('P', len(names), len(names)), ca.SX.sym('m')
    signs = ca.fabs(balance.signs)
    friction = ca.fabs(balance.levers) @ (balance.bounds * ca.if_else(signs ** 2 > KNOWN, 0, 1 + signs))
    g, G = ca.substitute([balance.g, ca.sum2(ca.jacobian(balance.g, machine.payload))], [machine.payload],
                         [ca.repmat(mass, machine.payload.numel())])
    slopes, numbers = ca.jacobian(g, X), ca.jacobian(g, parameters) @ ca.DM(machine.parameters.factor())
    room = friction + SURE * ca.sqrt(ca.sum2((slopes @ P) * slopes) + ca.sum2(numbers ** 2))
    room = ca.if_else(free_of_stops(machine, balance), room, np.inf)
    near = ca.SX.sym('near', balance.near.numel())
    solved = machine.closed(near, X[:len(machine.coordinates)])[machine.system.dependent]
    speeds, found = ca.sqrt(ca.fmax(ca.sum2((balance.rates @ P) * balance.rates), STOPPED ** 2)), []
    for one, other in ((0, 0), *pairs):
        order = list(range(len(names)))
        order[one], order[other] = other, one
        found.append(ca.substitute([mass - g / G, room / ca.fabs(G)], [X], [X[order]]))
    masses, rooms = ca.substitute([ca.horzcat(*parts).T for parts in zip(*found)], [balance.deviation], [speeds])
    masses, rooms = ca.substitute([masses, rooms], [balance.near], [solved])
    return ca.Function('mbse_exchanged', [near, X, P, mass, parameters], [solved, masses, rooms], {'cse': True})


Samples = tuple[np.ndarray, np.ndarray, np.ndarray]     # measured (channels,), innovations, their deviations


class Exchanged:
    """Of one machine; ``pairs``: pressure channels, piston and rod, of its cylinders.

    ``found``: cylinders of which the pressures must be exchanged for the forces to balance; ``open``: those whose
    pressures may be, and the mass would then be one that is not possible as it is. ``touches``: whether the last window
    is one of a contact, in which another force pushes than that of a load. ``signals``: whether two of its sensors show
    one signal, which takes all samples.
    """

    def __init__(self, machine: Machine) -> None:
        names, _ = state_names(machine)
        self.pairs = pressure_pairs(machine)
        self.signals = OneSignal(machine, self.pairs)
        places = [(names.index(piston), names.index(rod)) for piston, rod in self.pairs.values()]
        made_of = 'exchanged', machine.made_of, str(places)
        self.function = built(made_of, lambda: masses_both_ways(machine, places))
        self._machine, self._masses = machine, Kernel(self.function, 'vm')
        sensors = {names.index(name): item for name, item in direct(machine).items() if name.startswith(PUSHED)}
        self._places = np.array(list(sensors), dtype=int)
        self._channels = [machine.channels.index(item.name) for item in sensors.values()]
        self._gain, self._offset, self._zero = np.array([item.nominal for item in sensors.values()]).reshape(-1, 3).T
        self._variance = np.array([item.sensor.noise ** 2 for item in sensors.values()]) / self._gain ** 2
        self._count, self._limits = len(names), machine.payload_data.limits
        self.reset()

    def reset(self) -> None:
        """Nothing is known."""
        self.interrupt()
        self.signals.reset()
        self._suspected = np.ones(len(self.pairs), dtype=bool)
        self._contradictions, self._direction = 0, 0
        self._begun, self._exchanged = False, np.ones(len(self.pairs), dtype=bool)
        # s of windows that a load explains in a row, and that none does, and how many of the latter
        self._free, self._pushed, self._windows = 0.0, 0.0, 0
        self._begin()
        self._conclude()

    def interrupt(self) -> None:
        """What follows does not continue the motion before, or is not known well enough."""
        self._near: np.ndarray | None = None
        self._start: tuple[np.ndarray, np.ndarray, Samples] | None = None
        self._rows: list[tuple[np.ndarray, Samples]] = []
        self._lasted, self.touches = 0.0, False

    def said(self, updating: bool) -> tuple[str, Fault] | None:
        """Reason and fault of a mass that is wrong, or, of one that is ``updating``, may be; None for none."""
        if self.signals.found:
            names = ' and '.join(self.pairs[self.signals.found[0]])
            return f'{names} show one signal: two sensors in one line, or one field read for both', Fault.EXCHANGED
        if self.found:
            return reason_of(Fault.EXCHANGED, *(' and '.join(self.pairs[name]) for name in self.found)), Fault.EXCHANGED
        if updating and self.open:
            words = f'the hoses of {" or ".join(self.open)} may be swapped, which the next change of motion shows'
            return reason_of(Fault.NOT_TRUSTED, words), Fault.NOT_TRUSTED
        return None

    @property
    def _left(self) -> np.ndarray:
        return self._high >= self._low

    def take(self, dt: float, mean: np.ndarray, covariance: np.ndarray, samples: Samples, mass: float) -> None:
        """A state (nx,), SI, ``dt``, s, after the one before, its covariance (nx, nx), the ``samples`` there, NaN where
        there is none, and the mass, kg, NaN where it is not known."""
        if self._start is not None:
            self._rows.append((mean, samples))
            self._lasted += dt
            if self._lasted < WINDOW * (1 + (self._known and not self._windows)) - dt / 2:
                return
            self._weigh(*self._mean(self._start, mean, covariance), mass)
        self._start, self._rows, self._lasted = (mean, covariance, samples), [], 0.0

    def _mean(self, start: tuple[np.ndarray, np.ndarray, Samples], mean: np.ndarray, covariance: np.ndarray
              ) -> tuple[np.ndarray, np.ndarray]:
        """State (nx,) of the window between two states, and its covariance (nx, nx): the acceleration by the speeds at
        both ends, pressures as measured, without the model of the valves; both ends count half, since the mean is that
        of the time between them."""
        g, n = len(self._machine.coordinates), self._count
        rows = [(start[0], start[2]), *self._rows]
        weight = np.ones((len(rows), 1))
        weight[[0, -1]] = 0.5
        X = (weight * [row[:n] for row, _ in rows]).sum(axis=0) / weight.sum()
        P = covariance[:n, :n].copy()
        measured, innovation, stddev = np.array([row for _, row in rows])[:, :, self._channels].swapaxes(0, 1)
        used = weight * (np.abs(innovation) < LIKELY * stddev)
        count = used.sum(axis=0)
        some, motion = count > 0, np.arange(2 * g, 3 * g)
        places, count = self._places[some], count[some]
        pressures = (used * np.nan_to_num(measured)).sum(axis=0)[some] / count
        X[places] = (pressures - self._offset[some]) / self._gain[some] + self._zero[some]
        X[motion] = (mean - start[0])[g:2 * g] / self._lasted
        spread = (covariance + start[1])[g:2 * g, g:2 * g] / self._lasted ** 2
        for own, found in ((places, np.diag(self._variance[some] / count)), (motion, spread)):
            P[own], P[:, own] = 0.0, 0.0
            P[np.ix_(own, own)] = found
        return X, P

    def _weigh(self, X: np.ndarray, P: np.ndarray, mass: float) -> None:
        self.touches = False
        try:
            if self._near is None:
                self._near = self._machine.position(X[:len(self._machine.coordinates)])[self._machine.system.dependent]
        except (PositionProblemError, SingularConfigurationError):
            return
        at = float(np.clip(np.nan_to_num(mass), *self._limits))
        near, *found = self._masses(self._near, X, P, at, self._machine.parameters.mean)
        self._near = near if np.isfinite(near).all() else None
        masses, rooms = (item.reshape(1 + len(self.pairs), -1) for item in found)
        masses = np.where(np.isfinite(rooms), masses, at)       # without a lever any mass is possible
        low, high = (masses - rooms).max(axis=1), (masses + rooms).min(axis=1)
        sure = rooms <= ROUGH * (self._limits[1] - self._limits[0])
        self._touch(np.where(sure, masses - rooms, -np.inf).max(axis=1),
                    np.where(sure, masses + rooms, np.inf).min(axis=1), bool(np.count_nonzero(sure[0]) > 1))
        if self.touches:
            self._begin()       # it may be another load after it
        else:
            self._judge(low, high)
        self._conclude()

    def _touch(self, low: np.ndarray, high: np.ndarray, several: bool) -> None:
        """Whether a window with masses from ``low`` to ``high`` (1 + ways,), kg, is one of a contact: its equations
        contradict each other, or ``several`` weigh less than nothing, and no exchange explains that."""
        least, most = self._limits
        pushed = low[0] > high[0] or several and high[0] < least
        if not pushed:
            self._free += self._lasted
            if self._free >= FREE or self._windows < TWICE:
                self._pushed, self._windows = 0.0, 0
            return
        other = (np.fmax(low, least) <= np.fmin(high, most))[1:]
        self._begun = self._begun if self._windows else self._free >= FREE
        self._exchanged = other if self._windows < TWICE else self._exchanged & other     # the first is half of before
        self._free, self._pushed, self._windows = 0.0, self._pushed + self._lasted, self._windows + 1
        self.touches = (self._begun and self._windows >= TWICE and not self._exchanged.any()
                        and self._pushed <= LONGEST)

    def _conclude(self) -> None:
        """What the windows so far say."""
        middle = (self._low + self._high)[1:] / 2
        another = (middle < self._low[0]) | (middle > self._high[0])
        self._known = not (self._unexplained or self._suspected.any())
        proven = self._contradictions >= CONTRADICTIONS
        self.found = [name for name, some in zip(self.pairs, self._suspected) if proven and some]
        self.open = [name for name, some in zip(self.pairs, self._suspected & another) if some]

    def _begin(self) -> None:
        self._low, self._high = (np.full(1 + len(self.pairs), limit, dtype=float) for limit in self._limits)
        self._unexplained = False

    def _judge(self, low: np.ndarray, high: np.ndarray) -> None:
        """Masses from ``low`` to ``high`` (1 + ways,), kg, are possible in a window."""
        before = self._low, self._high
        self._low, self._high = np.fmax(self._low, low), np.fmin(self._high, high)
        left = self._left
        if left[0]:
            self._suspected &= left[1:]
            self._contradictions *= bool(self._suspected.any())
            self._low, self._high = (np.where(left, own, own[0]) for own in (self._low, self._high))    # from now on
        elif (left[1:] & (self._suspected | self._unexplained)).any():
            self._suspected = left[1:] if self._unexplained else self._suspected & left[1:]
            self._contradict(low[0], high[0], before[0][0])
        else:
            again, self._unexplained, (self._low, self._high) = self._unexplained, True, before
            if again:
                self._begin()
                self._judge(low, high)
            return
        self._unexplained = False

    def _contradict(self, low: float, high: float, before: float) -> None:
        """Masses of a window as the pressures are, kg, are not those that were at least ``before``: these begin again
        with it. Where it leaves no mass that the machine can carry, each window is a contradiction more."""
        low, high = max(low, self._limits[0]), min(high, self._limits[1])
        direction = 0 if low > high else 1 if low > before else -1
        self._contradictions += direction == 0 or direction != self._direction
        self._direction = direction
        self._low[0], self._high[0] = low, high
