# SPDX-License-Identifier: Apache-2.0
"""The error of the model, found where sensors contradict it: of the force balance (friction of another form, a force
beside the piston, another body than in the file), or of the pressures (another valve, hose or pump).

A balance that is trusted more than it deserves pulls motion and pressures away from their samples, always to the same
side; so does a model of the flows. Innovations of a filter that is right have mean 0: so their means over ``WINDOWS``
are compared with their own deviations, and with what the uncertain numbers of the file make of them; at rest, where
friction hides what pressures show, none counts; samples beyond the gate do, but no more than others. Where one is
beyond, the last ``REPLAY`` s run again with larger densities (a bank, half a decade apart): of the balance's error, of
all equations alike, since a file that is wrong of one cylinder is wrong of the others; of the pressures' random walk;
of both. Those that take the bias away are compared by their likelihood, at the smallest density that does; that of the
pressures has to be likelier than no error, too, since they may follow whatever is wrong. What holds from then on is
that density, and a decade for what the motion has already given way. A sensor that is wrong keeps its bias with any of
them, and nothing changes. What was weighed before counts as if that density had been known.

What the file states (``force_error`` of a cylinder) is known from the start, and the search goes on from there.

From then on the residuals of the balance, and the means of the pressures' innovations, say how large the error is
(covariance matching: R. K. Mehra, Approaches to adaptive filtering, IEEE Trans. Automatic Control 17, 1972): the
density rises with them at once and falls within ``FALLS``. The balance's error is one and the same for a while: for the
motion as long as ``TIME``, for the mass, which adds up what it learns, ``LASTS``. A mass that oscillates says the same
at once: see ``oscillation``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from math import exp, inf

import numpy as np

from ..errors import SettingError
from ..machine import Machine
from .activity import activity_of
from .hydraulic_dekf import HydraulicFilter
from .hydraulic_model import HydraulicModel, largest_pressure
from .hydraulic_state import MPA, PUSHED, ModelError
from .mass_information import LARGEST_ACTIVITY
from .observer_settings import ObserverSettings
from .oscillation import MassOscillation, Oscillation
from .parts.step import RunningFilter

WINDOWS = np.array([0.3, 1.0, 3.0])     # s over which innovations are averaged, the older ones fading
BIASED = 5.0        # deviations of such a mean, from which it is no chance
CLIPPED = 2.5       # deviations that one sample counts at most: a few that are far off make no bias
GATED = 6.5         # ... in what runs again: about those of the gate
REPLAY = 0.5        # s that run again
ENOUGH = 0.5        # share of that without which a bias may be one sample's
LESS = 0.1          # share of the squares of the means over that time that an error of the balance leaves
NOISY = 4.0         # mean square of what else is in the innovations, from which their noise is another than stated
SAID = 4.0          # sum of these squares, from which that says something
HALF_DECADE = 10.0 ** 0.5
BANK = 10.0 ** np.arange(-4.0, 0.1, 0.5)    # densities that are tried, as shares of the largest
NEARLY = 1.5, 0.1   # times the share that the largest leaves, and share, up to which a smaller one takes it away, too
MARGIN = 10.0       # factor on the one that is found
MATCHED = 2.0       # deviations of a mean residual of the balance, from which its density rises
TIME, LASTS = 0.3, 3.0          # s for which the error stays the same: for the motion, for the mass
FALLS = 60.0        # s within which a density falls to what the residuals say
USUAL = 0.1         # largest error that is looked for by default, a share of the largest pressure
ANOTHER = 0.15      # of the range of the payload's limits: a load that differs by more is taken for it instead
AGREED, SURELY = 8.0, 0.2       # s of motion without a bias, after which that share of it is enough: a force that is
                                # not in the file is there from the first motion on, loads come later
FIRST = 4.0         # the same, after which pressures that do not fit are no valve or pump, but a sensor
WAIT, LONGEST = 0.5, 30.0       # s after which a bias that is something else's is looked at again, first and at most


def stated_errors(machine: Machine) -> tuple[np.ndarray, np.ndarray]:
    """Densities (a,), MPa^2 s, of the errors that a machine's file states of its equations of weighing, as pressure on
    the pistons, and by what the mass takes these variances more than once; the largest where cylinders share one."""
    errors = machine.actuators.errors
    acts = np.eye(len(errors), dtype=bool) if machine.separable else machine.moved.T
    found = np.zeros((2, len(machine.weighing)))
    for i, k in enumerate(machine.weighing):
        for (_, error, unit), own in zip(errors, acts[k]):
            if own and error is not None:
                time = TIME if error.time is None else error.time
                density = 2.0 * (error.stddev * unit) ** 2 * time
                if density > found[0, i]:
                    found[:, i] = density, max(LASTS / time, 1.0) - 1.0
    return found[0], found[1]


def stated_keys(machine: Machine) -> list[str]:
    """Keys of the errors of the force balance that a machine's file states."""
    return [key for key, error, _ in machine.actuators.errors if error is not None and error.stddev > 0.0]


class ForceError:
    """Of an observer that weighs by equations (a,). What is found besides the stated densities, and ``known`` (a,),
    that of the file: ``density`` (a,), MPa^2 s, and ``walk``, MPa^2/s, of the pressures; 0 where nothing is.

    The setting ``force_error`` is the standard deviation of the balance's error that is looked for at most, as a share
    of the machine's largest pressure on the pistons; 0: none is; -1: ``USUAL``, but of a machine whose load hangs, or
    whose tool touches something, it is a swing or soil. ``pressure_error``, MPa^2/s: the same of the pressures.
    """

    def __init__(self, machine: Machine, model: HydraulicModel, filter_: HydraulicFilter) -> None:
        lively, a, m = activity_of(machine, model), len(machine.weighing), len(model.measured)
        self._concerns = np.zeros((a, m), dtype=bool)       # whether a channel shows that an equation is wrong
        for k, coordinate in enumerate(machine.coordinates):
            shows = {f'position/{coordinate}', f'velocity/{coordinate}'}
            own = [j for j, item in enumerate(model.measured) if j in lively.channels[k]
                   or item.index is not None and model.names[item.index] in shows]
            for i in lively.equations[k]:
                self._concerns[i, own] = True
        state, (low, high) = filter_.state.places, machine.payload_data.limits
        self._moved, self._silent = state['moved'], ~self._concerns.any(axis=0)
        self._activity, self._mass, self._another = state['mass'].start, state['x'].stop - 1, ANOTHER * (high - low)
        self._pressures = np.array([name.startswith(PUSHED) for name in machine.channels])
        self._pressure, self._channels = largest_pressure(machine) / MPA, m
        tuning, outputs = filter_.tuning.places, filter_.outputs.places
        self._balance, self._slow, self._walk = (tuning[name] for name in ('force_psd', 'force_slow', 'pressure_psd'))
        self._innovation, self._spread, self._shared, self._weighing = (
            outputs[name] for name in ('innovation', 'innovation_variance', 'shared', 'weighing'))
        self._changes, self._oscillation = state['mass'], MassOscillation()
        self._both = np.r_[outputs['balance'], self._shared.start + m:self._shared.stop]   # of the equations
        payload = machine.description.payload
        self.known, self._known_slow = stated_errors(machine)
        self._ambiguous = bool(machine.swings) or payload is not None and bool(payload.contact)
        self.configure(ObserverSettings())

    def configure(self, settings: ObserverSettings) -> None:
        """Nothing is known of an error beyond the stated densities. Raises SettingError."""
        largest = settings.force_error
        if -1.0 < largest < 0.0:
            raise SettingError('observer.force_error', largest, '-1, or from 0 to 1')
        self._outer = largest < 0.0 and self._ambiguous
        largest = USUAL if largest < 0.0 else largest
        self._stated = np.append(settings.force_psd + self.known, settings.pressure_psd)
        self._largest = np.append(np.full(len(self.known), 2.0 * (largest * self._pressure) ** 2 * TIME),
                                  settings.pressure_error)
        self.reset()

    def reset(self) -> None:
        """Nothing is known."""
        self._densities, self._peak = np.zeros((2, len(self._concerns) + 1))
        self._agreed, self._frequency = 0.0, 0.0
        self.interrupt()

    def interrupt(self) -> None:
        """What was measured before belongs to another state."""
        self._wait, self._again = 0.0, WAIT
        self._segments: deque[tuple[np.ndarray, ...]] = deque()    # as for a replay, and what counts
        self._steps = 0
        self._oscillation.reset()
        self._clear()

    def _clear(self) -> None:
        size = self._channels + len(self._concerns)
        self._sums = np.zeros((3, len(WINDOWS), size))

    @property
    def found(self) -> ModelError | None:
        """None where nothing was found."""
        return ModelError(np.sqrt(self.density / (2.0 * TIME)), self.walk,
                          self._frequency) if self._densities.any() else None

    @property
    def density(self) -> np.ndarray:
        """Of the force balance (a,), MPa^2 s, 0 where nothing was found."""
        return self._densities[:-1]

    @property
    def walk(self) -> float:
        """Of the pressures, MPa^2/s, 0 where nothing was found."""
        return float(self._densities[-1])

    def slow(self, density: np.ndarray) -> np.ndarray:
        """By what (a,) the mass takes the variance of such an error more than once."""
        return np.where(density > 0.0, LASTS / TIME - 1.0, self._known_slow)

    def take(self, running: RunningFilter[HydraulicFilter], start: np.ndarray, u: np.ndarray, y: np.ndarray, dt: float,
             quiet: bool, outside: bool = False) -> float:
        """After a segment of steps ``dt``, s, from the flat state ``start`` with inputs ``u`` and outputs ``y``: the
        share of what was known of the mass that still counts, nearly always 1; else ``running`` has the state with the
        density that is found. ``quiet``: commands are not rare, and no equation is closed; ``outside``: a force acts
        from outside, so that the balance is not used.
        """
        if not self._largest.any():
            return 1.0
        if not quiet:
            self.interrupt()
            return 1.0
        # at rest a friction that is not known explains whatever a pressure shows
        moves = self._silent | (self._concerns & (running.state[self._moved, None] > 0.5)).any(axis=0)
        there = (u[:, :self._channels] == u[:, :self._channels]) & moves
        self._segments.append((start, u, running.tuning.copy(), y, there))
        self._steps += len(u)
        while self._steps - len(self._segments[0][1]) >= REPLAY / dt:
            self._steps -= len(self._segments.popleft()[1])
        squares = self._follow(there, y, dt)
        biased = squares[:self._channels] > BIASED ** 2
        self._wait -= len(u) * dt
        wrong = np.any(self._concerns & biased, axis=1) if np.count_nonzero(biased) else biased[:0]
        self._agreed += len(u) * dt * (there.any() and not wrong.any())
        if outside:
            self._oscillation.reset()
        elif swings := self._oscillation.take(y[:, self._weighing], dt):
            share = self._calmed(running, swings, dt)
            if share < 1.0:
                return share
        if wrong.any() and self._wait <= 0.0 and self._steps * dt > ENOUGH * REPLAY:
            return self._found(running, wrong, outside)
        if self._densities.any() and not outside:
            flows = squares[:self._channels][self._pressures].max(initial=0.0)
            self._match(np.append(squares[self._channels:], flows), len(u) * dt)
        return 1.0

    def _follow(self, there: np.ndarray, y: np.ndarray, dt: float) -> np.ndarray:
        """Squares (channels + a,) of the means, the largest of all windows, over their variances, in which what is
        uncertain is the same all the time."""
        m, since = self._channels, 0
        for row in np.flatnonzero(there.any(axis=1)).tolist():
            steps, new = row + 1 - since, np.ones((3, 1, m + len(self._concerns)))
            ratios, sampled, shared = new[:, 0, :m]
            sampled[:] = there[row]
            np.divide(y[row, self._innovation] * sampled, np.sqrt(y[row, self._spread]), out=ratios)
            np.minimum(np.maximum(ratios, -CLIPPED, out=ratios), CLIPPED, out=ratios)
            np.multiply(y[row, self._shared][:m], sampled, out=shared)
            new[[0, 2], 0, m:] = np.add.reduce(y[since:row + 1, self._both]).reshape(2, -1) / steps ** 0.5
            self._sums *= self._kept(steps * dt)
            self._sums += new
            since = row + 1
        sums, squares, known = self._sums
        return np.maximum.reduce(sums ** 2 / np.maximum(squares + known ** 2, 1.0))

    @staticmethod
    @lru_cache(maxsize=64)
    def _kept(duration: float) -> np.ndarray:
        """What is left (3, windows, 1) of sums, of squares, and of what is the same all the time, after that, s."""
        kept = np.exp(-duration / WINDOWS)
        return np.array([kept, kept ** 2, kept])[:, :, None]

    def _calmed(self, running: RunningFilter[HydraulicFilter], swings: Oscillation, dt: float) -> float:
        """Take a mass that ``swings`` for the smallest error of the balance with which it is not significant, and not
        for a load that changes; the share of what was known of the mass that still counts."""
        now, largest, found = running.tuning[self._balance].copy(), self._largest[:-1], self._densities.copy()
        for share in BANK:
            found[:-1] = np.minimum(np.maximum(HALF_DECADE * now, share * largest), largest)
            reported = np.concatenate(self._replayed(running, found)[0])[:, self._weighing]
            if swings.significance(reported, dt) < 1.0:
                break
        if not (found[:-1] > now).any():
            return 1.0      # it is as large as it may be
        found[:-1] = np.maximum(now, np.minimum(MARGIN * found[:-1], largest))
        self._densities, self._peak[:-1], self._frequency = found, 1.0, swings.frequency
        running.state[self._changes] = 0.0
        running.state[self._activity] = 1.0
        self.interrupt()
        return float(np.min(now / found[:-1]))

    def _found(self, running: RunningFilter[HydraulicFilter], wrong: np.ndarray, outside: bool) -> float:
        """Look for the density with which equations that may be ``wrong`` (a,) agree with the samples."""
        now = np.maximum(self._densities, self._stated)
        channels = self._concerns[wrong].any(axis=0)
        seen = [(there, y) for *_, y, there in self._segments]
        before, likely = self._bias(seen, channels)
        balance = np.append(np.ones(len(wrong), dtype=bool), False)
        force, flow = balance & (self._largest > now), ~balance & (self._largest > now)
        force &= not outside
        flow &= self._agreed < FIRST
        found = [item for item in (self._enough(running, parts, channels, before) for parts in (force, flow)) if item]
        if not found and force.any() and flow.any() and not self._outer:
            found = [item for item in [self._enough(running, force | flow, channels, before)] if item]
        best = max(found, key=lambda item: item[0], default=None)
        if best and best[2][-1] and best[0] < likely:
            best = next((item for item in found if not item[2][-1]), None)
        if best and self._outer and not best[2][-1]:
            best = None
        if best and not self._another_load(running, channels, before, best[0] if best[2][-1] else -inf):
            _, share, parts = best
            found_now = np.where(parts, np.maximum(now, min(MARGIN * share, 1.0) * self._largest), self._densities)
            running.state = self._replay(running, found_now, channels)[2]
            self._densities, self._peak[parts] = found_now, 1.0
            self.interrupt()
            return float(np.min(now / np.maximum(found_now, now)))
        wait = self._again
        self.interrupt()
        self._wait, self._again = wait, min(2.0 * wait, LONGEST)
        return 1.0

    def _enough(self, running: RunningFilter[HydraulicFilter], parts: np.ndarray, channels: np.ndarray, before: float
                ) -> tuple[float, float, np.ndarray] | None:
        """The smallest densities of these ``parts`` (a + 1,) that take the bias ``before`` away: logarithm of their
        likelihood, share of the largest, and parts; None where not even the largest do."""
        now = np.maximum(self._densities, self._stated)
        if not parts.any() or before < SAID:
            return None     # most biases are those of something else, and then of no density
        least = self._replay(running, np.where(parts, self._largest, self._densities), channels)[0]
        if not least < LESS * before:
            return None
        enough = max(NEARLY[0] * least, NEARLY[1] * before)
        for share in BANK:
            density = np.where(parts, np.maximum(now, share * self._largest), self._densities)
            if (density > now).any():
                left, likely, _ = self._replay(running, density, channels)
                if left <= enough or share == BANK[-1]:
                    return likely, float(share), parts
        return None

    def _another_load(self, running: RunningFilter[HydraulicFilter], channels: np.ndarray, before: float, than: float
                      ) -> bool:
        """Whether a load that changes explains the bias ``before`` of channels, with a likelihood of more ``than`` so
        much; then it may, from now on."""
        left, likely, state = self._replay(running, self._densities, channels, True)
        another = self._another * max(1.0 - self._agreed / AGREED, SURELY)
        if not (left < LESS * before and abs(state[self._mass] - self._segments[0][0][self._mass]) > another
                and likely > than):
            return False
        running.state[self._activity] = LARGEST_ACTIVITY
        return True

    def _replay(self, running: RunningFilter[HydraulicFilter], density: np.ndarray, channels: np.ndarray,
                changes: bool = False) -> tuple[float, float, np.ndarray]:
        """Bias of the channels, infinite where one of them is noise that no density explains, logarithm of the
        likelihood, and the flat state, after the last segments with densities (a + 1,); with a load that ``changes``
        all the time, if it is to."""
        outputs, state = self._replayed(running, density, changes)
        seen = [(there, y) for (*_, there), y in zip(self._segments, outputs)]
        return *self._bias(seen, channels, NOISY), state

    def _replayed(self, running: RunningFilter[HydraulicFilter], density: np.ndarray, changes: bool = False
                  ) -> tuple[list[np.ndarray], np.ndarray]:
        """Outputs of the last segments, and the flat state after them."""
        state, outputs = self._segments[0][0], []
        for _, u, p, *_ in self._segments:
            p = p.copy()
            if changes:
                state = state.copy()
                state[self._activity] = LARGEST_ACTIVITY
            p[self._balance], p[self._slow] = np.maximum(p[self._balance], density[:-1]), self.slow(density[:-1])
            p[self._walk] = np.maximum(p[self._walk], density[-1])
            state, y, _ = running.steps(state, u, p)
            outputs.append(y)
        return outputs, state

    def _bias(self, seen: Sequence[tuple[np.ndarray, np.ndarray]], channels: np.ndarray, noisy: float = inf
              ) -> tuple[float, float]:
        """Sum over the ``channels`` (m,) of the squares of the means of their innovations, over their variances, in
        segments with samples that count and outputs; infinite where the mean square of what else is in one is
        ``noisy``. Logarithm of the likelihood of all innovations, without a constant."""
        sums, squares, counts, known = np.zeros((4, self._channels))
        likely = 0.0
        for there, y in seen:
            ratios = np.where(there, y[:, self._innovation], 0.0) / np.sqrt(y[:, self._spread])
            ratios = np.clip(ratios, -GATED, GATED)
            sums += np.add.reduce(ratios)
            squares += np.add.reduce(ratios ** 2)
            likely -= 0.5 * float(np.sum(np.log(y[:, self._spread]), where=there))
            counts += np.count_nonzero(there, axis=0)
            known += np.add.reduce(np.where(there, y[:, self._shared][:, :self._channels], 0.0))
        left, likely = squares - sums ** 2 / np.maximum(counts, 1.0), likely - 0.5 * float(squares.sum())
        return inf if np.any((left > noisy * np.maximum(counts, 1.0))[channels]) else float(np.sum(
            (sums ** 2 / np.maximum(counts + known ** 2, 1.0))[channels])), likely

    def _match(self, squares: np.ndarray, duration: float) -> None:
        """Follow the residuals of the balance, and the pressures, by their ``squares`` (a + 1,)."""
        known = self._densities > 0.0
        self._peak = np.maximum(self._peak * exp(-duration / FALLS), squares)
        rises = known & (squares > MATCHED ** 2)
        if rises.any():
            self._densities = np.where(rises, np.minimum(self._densities * squares, self._largest), self._densities)
            self._sums[:, :, np.append(rises[-1] & self._pressures, rises[:-1])] = 0.0
        else:
            falls = np.minimum(self._peak, 1.0) ** (duration / FALLS)
            self._densities = np.where(self._densities * falls > self._stated, self._densities * falls, 0.0)
