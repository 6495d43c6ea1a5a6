# SPDX-License-Identifier: Apache-2.0
"""Payload estimator: samples by inverse dynamics, gates, filters, and a mass with its 95 % interval."""

from __future__ import annotations

from collections import deque
from copy import copy
from math import exp, inf, log, nan, sqrt

import numpy as np

from ..description.assumptions import is_assumed
from ..description.basics import uncertain
from ..estimators.hydraulic_state import center_numbers
from ..estimators.unweighed_motion import UnweighedMotion
from ..estimators.weighing import PAUSES
from ..machine import Machine
from .common_errors import NOTHING, CommonErrors
from .filter import SAMPLE_TIME, BatchScatter, LowPass, TriangularWindow, gain_of, t_quantile, window_of
from .gates import GATES
from .inverse_dynamics import InverseDynamics
from .mass import NORMAL, Cause, Mass
from .payload_settings import PayloadSettings
from .quarantine import Quarantine
from .state_gates import StateGates

HARDLY = 1e-8       # least share of the old information that counts after a restart: see ANOTHER in ``load_change``
UNKNOWN = 1.0       # standard deviation, in ranges of the payload's limits, from which a mass is not known
ANOTHER = 0.01      # of that range: two loads differ by more; what is less may be the model's
WIDE = 10.0         # standard deviation, in the same, of a mass of which nothing is known
NOISE = 'noise of the sensors and of what no model knows'
NAMED = 3           # numbers that are named where several may be wrong
RESTART = 0.8       # share of the information so far that still counts, from which down window and scatter start again
REMEMBERED = 0.5        # s between two memories of what is known
NONE = np.zeros(0, int)
CONVINCING = 20.0       # degrees of freedom from which a scatter counts against what is stated

# sums, window, scatter, samples, value of the window, share kept recently and in all: what ``doubt`` restores
Memory = tuple[np.ndarray, TriangularWindow, BatchScatter | None, int, np.ndarray | None, float, float]


class PayloadEstimator:
    """Mass of the payload of one machine from states of the observer, segment by segment.

    ``kept``: logarithm of the share of the first information on the mass that still counts.
    """

    _window: TriangularWindow
    _scatter: BatchScatter | None
    _window_value: np.ndarray | None

    def __init__(self, machine: Machine, settings: PayloadSettings, backend: str = 'auto') -> None:
        self.machine = machine
        self._dynamics, self._gates = InverseDynamics(machine, backend), StateGates(machine, backend)
        self._parameter_variance = (machine.parameters.stddev ** 2).tolist()
        self._width = 1 + len(self._parameter_variance)
        self._doubtful = np.flatnonzero(machine.parameters.stddev)
        self._deviations = machine.parameters.stddev[self._doubtful]
        self._followed = np.setdiff1d(self._doubtful, list(center_numbers(machine).values()))    # by such an observer
        self._stated_deviations = machine.parameters.stddev[self._followed]
        self._places, self._own = 2 + self._followed, 1 + self._followed    # of their derivatives in a row, a value
        self._told = np.array([0, 1, *range(3, self.columns)])      # what is reported of the mass itself
        low, high = machine.payload_data.limits
        self._least = (UNKNOWN * (high - low)) ** -2
        self._unknown, self._span = WIDE * (high - low), high - low
        self._unweighed = UnweighedMotion(machine)
        self.settings = settings
        self._dynamics.configure(settings)
        self._gates.configure(settings)
        self._dt = SAMPLE_TIME
        self.reset()

    def configure(self, settings: PayloadSettings) -> None:
        """Take new tuning from the next segment on.

        The mass so far stays; with another gain, window or batch the filters continue from it, and its scatter is
        collected again.
        """
        shape = ('low_pass_gain', 'window', 'batch_time')
        changed = any(getattr(settings, name) != getattr(self.settings, name) for name in shape)
        self.settings = settings
        self._dynamics.configure(settings)
        self._gates.configure(settings)
        if changed:
            self._continue_in_new_filters()

    def _continue_in_new_filters(self) -> None:
        sums = self._low_pass.sums
        self._memories.clear()
        self._make_filters()
        self._low_pass.sums = sums
        if self._window_value is not None:
            self._window_value = self._window.update(self._low_pass.value[None, :])

    def reset(self) -> None:
        """Forget the mass, and the errors that all masses have in common."""
        self._dynamics.reset()
        self._gates.reset()
        self._unweighed.reset()
        self._common = CommonErrors([self.machine.parameters.names[k] for k in self._followed], self._unknown,
                                    ANOTHER * self._span)
        self._quarantine = Quarantine(1 + self._width)
        self._make_filters()
        self._samples = 0
        self._window_value = None
        self._stated, self._age, self.kept = False, 0.0, 0.0
        self._memories: deque[Memory] = deque(maxlen=2)
        self._restarted = 1.0       # share of the information that counts from the next sample on

    def restart(self, pause: float = 0.0) -> None:
        """The state starts again after a ``pause``, s, of all sensors: joint angles are solved again, the mass stays.

        The longer the pause, the less what was known counts. 0: the state was wrong, or the clock has jumped; what an
        observer then finds of the mass is all that counts.
        """
        self._dynamics.reset()
        self._gates.reset()
        self._quarantine.clear()
        self._memories.clear()
        if self._window_value is not None:
            self._restarted = max(self._restarted * exp(-pause / PAUSES) if pause > 0.0 else 0.0, HARDLY)

    @property
    def columns(self) -> int:
        """How many numbers per step an observer that estimates the mass reports."""
        return 3 + len(self._followed)

    def process(self, mean: np.ndarray, covariance: np.ndarray, dt: float,
                reported: np.ndarray | None = None, share: float = 1.0) -> Mass:
        """Take the states (n, nx), SI, of a segment with the covariance (nx, nx) of its last; step ``dt``, s.

        ``reported`` (n, 3 + k): what an observer that estimates motion and mass together reports on the mass, see
        StateEstimate; None or empty: it estimates no mass, and the inverse dynamics of the states gives it.
        ``share`` of their information that counts where masses are compared: 1, or less where their errors are alike.
        Raises PositionProblemError where the cylinders cannot reach.
        """
        if dt != self._dt:
            self._dt = dt
            self._continue_in_new_filters()
        if reported is not None and reported.size:
            return self._weighed(mean, dt, reported, share)
        samples, before = self._dynamics.process(mean, covariance), self._samples
        if samples.clean:
            clean = None if samples.clean == len(samples.rows) else samples.closed == 0
            taken = self._quarantine.pass_through(samples.rows, clean, round(self.settings.guard_time / dt))
            if len(taken):
                self._take(taken, dt)
        else:
            self._quarantine.clear()
        if not self._unweighed.whole:
            self._forget_unweighed(mean[-1], bool(samples.clean))
        information, weighted = samples.rows[-1, :2].tolist()
        return self._result(weighted / information if information > 0 else nan, GATES[int(samples.closed[-1])],
                            self._samples - before)

    def _forget_unweighed(self, mean: np.ndarray, weighs: bool) -> None:
        """Forget what was known of the mass as far as cylinders have moved that no equation weighs."""
        noise = self._result(nan, GATES[0]).noise
        if noise == noise:
            share, _ = self._unweighed.take(mean[:len(self.machine.coordinates)], np.array([weighs]),
                                            (noise / self._span) ** 2)
            self._forget(exp(share))

    def _weighed(self, mean: np.ndarray, dt: float, reported: np.ndarray, share: float) -> Mass:
        """Take the information on the mass that the observer reports, and its derivatives by the uncertain numbers.

        Acceleration closes no gate: the observer weighs it, and knows how well.
        """
        self._remember(len(mean) * dt)
        closed = self._gates.closed(mean)
        information, forgotten = reported[:, 0], reported[:, 2]
        taken = (closed == 0) & (information > 0.0)
        some, lost = int(np.count_nonzero(taken)), forgotten
        if self._restarted < 1.0 and some:
            self._forget(self._restarted)
            self._restarted, lost = 1.0, np.where(np.arange(len(reported)) == 0, log(self._restarted), 0.0)
        told = reported.take(self._told, axis=1)
        since = self._common.take(told if share == 1.0 else told * share, taken, lost, dt, share != 1.0)
        self._take_all(self._rows(reported) if some else reported, taken, forgotten.copy(), dt)
        if since is not None:
            self._weigh_again(since)
        last, weighted = reported[-1, :2].tolist()
        raw = weighted / last if last > 0 else nan
        self._stated = True
        return self._result(raw, GATES[int(closed[-1])], some)

    def _rows(self, reported: np.ndarray) -> np.ndarray:
        """Rows (n, 2 + parameters), as in MassSamples, of what an observer reports."""
        rows = np.zeros((len(reported), 1 + self._width))
        rows[:, :2] = reported[:, :2]
        rows[:, self._places] = reported[:, 3:] / self._stated_deviations
        return rows

    def _weigh_again(self, since: np.ndarray) -> None:
        """Of the information on the mass only what has come ``since`` (2 + k,) counts: load or sensor are another."""
        self._forget(NOTHING)
        sums = np.zeros_like(self._low_pass.sums)
        sums[:2] = since[:2]
        sums[self._places] = since[2:] / self._stated_deviations
        self._low_pass.sums = sums
        self._window_value = self._window.update(self._low_pass.value[None, :])

    def _take_all(self, rows: np.ndarray, taken: np.ndarray, forgotten: np.ndarray, dt: float) -> None:
        """Rows (n, 2 + parameters) of which some are ``taken``, between the steps in which the window starts again."""
        first = 0
        while first < len(rows):
            total = forgotten[first:].cumsum()
            lost = (np.flatnonzero(self._kept * np.exp(total) < RESTART)
                    if self._kept * exp(max(np.minimum.reduce(total), -700.0)) < RESTART else NONE)
            if lost.size and lost[0] == 0:
                self._forget(float(np.exp(forgotten[first])))
                forgotten[first] = 0.0
                continue
            part = slice(first, first + int(lost[0]) if lost.size else len(rows))
            total, where = total[:part.stop - first], taken[part].nonzero()[0]
            first, left = part.stop, float(total[-1])
            self.kept += left
            self._kept *= exp(left)
            if where.size:
                at = total[where]
                at[1:] -= at[:-1].copy()
                self._take(rows if len(where) == len(rows) else rows[part][where], dt, at)
                left -= float(total[where[-1]])
            if left:
                self._low_pass.sums *= exp(left)

    def _remember(self, duration: float) -> None:
        """Keep what is known, now and then: see ``doubt``."""
        self._age += duration
        if self._age >= REMEMBERED or not self._memories:
            self._memories.append(self._known())
            self._age = 0.0

    def _known(self) -> Memory:
        return (self._low_pass.sums.copy(), self._window.copy(), copy(self._scatter), self._samples,
                None if self._window_value is None else self._window_value.copy(), self._kept, self.kept)

    def doubt(self) -> None:
        """Discard what the last half second, or up to a second, has added."""
        self._common.doubt()
        if self._memories:
            kept = self.kept
            (self._low_pass.sums, self._window, self._scatter, self._samples, self._window_value, self._kept,
             before) = self._memories[0]
            self._memories.clear()
            self.kept = before
            self._forget(float(np.exp(kept - before)))

    def _forget(self, kept: float) -> None:
        """Of the information so far only a share still counts; where much is lost, window and scatter start again."""
        if kept < 1.0:
            self.kept += log(max(kept, 1e-300))
            self._low_pass.sums *= kept
            self._kept *= kept
            if self._kept < RESTART:
                self._window.clear()
                self._scatter, self._kept = None, 1.0

    def hold(self, reported: np.ndarray | None = None) -> Mass:
        """The mass so far, when there is no state to use; of ``reported`` only a change of the load is used."""
        self._quarantine.clear()
        if reported is not None and reported.size:
            self._forget(float(np.exp(reported[:, 2].sum())))
            self._common.forget(float(reported[:, 2].sum()))
        return self._result(nan, GATES[0])

    def difference(self, new: Mass, old: Mass) -> tuple[float, float]:
        """By how much two masses differ, kg, and the standard deviation of what the uncertain numbers make of it: they
        are as wrong in both, but another pose makes another error of it."""
        if not len(new.slopes) == len(old.slopes) == len(self._followed):
            return new.mass - old.mass, 0.0
        slopes = new.slopes - old.slopes
        known, covariance, _ = self._errors()
        return (new.weighed - old.weighed - float(slopes @ known),
                sqrt(max(float(slopes @ covariance @ slopes), 0.0)))

    def budget(self, noise: float) -> tuple[Cause, ...]:
        """What makes the mass uncertain, the largest first: ``noise``, kg, and the uncertain numbers by their keys.

        Of numbers about whose errors the poses tell, what these errors still do: their prior through the estimate.
        """
        if self._window_value is None:
            return ()
        kg = np.abs(self._window_value[1 + self._doubtful]) * self._deviations
        if self._stated:
            own = np.isin(self._doubtful, self._followed)
            slopes = self._slopes(self._window_value)
            through = self._errors()[1] @ slopes
            noise = sqrt(noise ** 2 + max(float(slopes @ through - through @ through), 0.0))
            kg[own] = np.abs(through)
        names = [self.machine.parameters.names[place] for place in self._doubtful]
        known = uncertain(self.machine.description)
        found = [Cause(NOISE, noise), *(Cause(name, float(item), name in known and is_assumed(known[name]))
                                        for name, item in zip(names, kg))]
        return tuple(sorted(found, key=lambda cause: -cause.kg))

    def _errors(self) -> tuple[np.ndarray, np.ndarray, str]:
        """Errors (k,) that all masses have in common, and their covariance (k, k); as the file states where what was
        found is incredible, and that in words."""
        if not self._common.incredible:
            return self._common.mean, self._common.covariance, ''
        if self._common.broken:
            return self._common.mean, self._common.covariance, self._suspects()
        size = len(self._followed)
        return np.zeros(size), np.eye(size), self._suspects()

    def _suspects(self) -> str:
        """What may be wrong, in words: of many that may be some."""
        found = list(dict.fromkeys(map(self._in_words, self._common.suspects)))
        return ' or '.join([*found[:NAMED], *(['another number'] if len(found) > NAMED else [])])

    def _in_words(self, number: str) -> str:
        """An uncertain number; of a sensor by its channel."""
        for channel in self.machine.all_channels if number else ():
            if number.startswith(f'sensors.{channel.sensor.name}.'):
                return f'{channel.name} ({number.rsplit(".", 1)[1]})'
        return number

    def _slopes(self, value: np.ndarray) -> np.ndarray:
        """Derivatives (k,) of a mass by the numbers that an observer follows, for a standard deviation of each."""
        return value[self._own] * self._stated_deviations

    def _make_filters(self) -> None:
        self._gain = gain_of(self.settings.low_pass_gain, self._dt)
        self._low_pass = LowPass(self._gain, self._width)
        self._window = TriangularWindow(window_of(self.settings.window, self._dt), self._width)
        self._scatter = None
        self._kept = 1.0

    def _take(self, rows: np.ndarray, dt: float, forgotten: np.ndarray | None = None) -> None:
        """Send samples (n, 2 + parameters), as in MassSamples, through the filters; ``forgotten`` (n,): logarithm of
        the share of older information that still counts at each."""
        self._samples += len(rows)
        self._window_value = self._window.update(self._low_pass.update(rows, forgotten))
        if self._scatter is None:
            self._scatter = BatchScatter(self._gain, max(1, round(self.settings.batch_time / dt)))
        weight, weighted = np.add.reduce(rows[:, :2]).tolist()
        self._scatter.update(weight, weighted, len(rows))

    def _result(self, raw: float, gate: str, taken: int = 0) -> Mass:
        """The information that an observer reports is used, unless the samples scatter more than it says."""
        total = self._low_pass.total
        if self._window_value is None or self._stated and total < self._least:
            return Mass(nan, nan, nan, raw, nan, 0, gate, nan)
        mass = float(self._window_value[0])
        variance, freedom = self._scatter.variance(mass, total) if self._scatter else (inf, 0.0)
        low_passed = float(self._low_pass.sums[1]) / total
        if self._stated:
            variance = max(1 / total, variance if freedom >= CONVINCING else 0.0)
            slopes = self._slopes(self._window_value)
            known, covariance, contradiction = self._errors()
            systematic = max(float(slopes @ covariance @ slopes), 0.0)
            half = NORMAL * sqrt(variance + systematic)
            return Mass(mass - float(slopes @ known), sqrt(variance + systematic), half, raw,
                        low_passed - float(self._slopes(self._low_pass.value) @ known), self._samples, gate,
                        sqrt(variance), taken, mass, slopes, contradiction, self._common.surprised, self._common.lean,
                        self._common.settling)
        if variance == inf:      # not two batches yet: as uncertain as one sample by the observer's covariance
            variance, freedom = self._samples / total, inf
        systematic = sum(s * s * v for s, v in zip(self._window_value[1:].tolist(), self._parameter_variance))
        half = sqrt(t_quantile(freedom) ** 2 * variance + NORMAL ** 2 * systematic)
        return Mass(mass, sqrt(variance + systematic), half, raw, low_passed, self._samples, gate, sqrt(variance),
                    taken)
