# SPDX-License-Identifier: Apache-2.0
"""The mass of an observer that estimates motion and mass together: its information is collected, step by step, and what
the masses of many poses say of the consider parameters is taken off.

A sample is not held back, as gates and covariance know nothing that comes late. What was learnt in the last half second
or so is discarded where the state turns out to be wrong.
"""

from __future__ import annotations

from collections import deque
from math import exp, isfinite, log, nan, sqrt

import numpy as np

from ..filters.mass_information import MassInformation, additive_columns
from ..filters.weighing import PAUSES
from ..machine import Machine
from .common_errors import NOTHING, CommonErrors
from .filter import MassFilter
from .gates import GATES, StateGates
from .mass import NORMAL, Cause, Mass, PayloadSettings, causes, noise_of, other_filters, uncertain_numbers
from .signs import AxisSigns
from .unstated import UNSTATED, UnstatedErrors
from .zeros import in_words, position_zeros

HARDLY = 1e-8       # least share of the old information that counts after a restart: see ANOTHER in ``monitor.mass``
UNKNOWN = 1.0       # standard deviation, in ranges of the payload's limits, from which a mass is not known
WIDE = 10.0         # standard deviation, in the same, of a mass of which nothing is known
ANOTHER = 0.01      # of that range: two loads differ by more; what is less may be the model's
NAMED = 3           # numbers that are named where several may be wrong
REMEMBERED = 0.5        # s between two memories of what is known
CONVINCING = 20.0       # degrees of freedom from which a scatter counts against what is stated


class JointEstimator:
    """A ``PayloadEstimator`` for an observer that weighs; acceleration closes no gate, the observer knows how well it
    is known."""

    def __init__(self, machine: Machine, settings: PayloadSettings, backend: str = 'auto') -> None:
        self.machine, self.settings, parameters = machine, settings, machine.parameters
        self._gates = StateGates(machine, backend)
        self._gates.configure(settings)
        self._numbers = uncertain_numbers(machine)
        self._consider, self._stddev = parameters.consider, parameters.stddev[parameters.consider]
        self._additive, self._zeros = additive_columns(len(self._consider)), position_zeros(machine)
        low, high = machine.payload_data.limits
        self._signs, self._unstated = AxisSigns(machine), UnstatedErrors(machine)
        self._least, self._span = (UNKNOWN * (high - low)) ** -2, high - low
        self.reset()

    @property
    def kept(self) -> float:
        """See ``PayloadEstimator``; so the others."""
        return self._filter.kept - self._same

    def configure(self, settings: PayloadSettings) -> None:
        """Take new tuning from the next segment on."""
        changed, self.settings = other_filters(settings, self.settings), settings
        self._gates.configure(settings)
        if changed:
            self._tune(self._filter.dt)

    def _tune(self, dt: float) -> None:
        self._memories.clear()
        self._filter.tune(self.settings, dt)

    def reset(self) -> None:
        """Forget the mass, and the errors that all masses have in common."""
        self._gates.reset()
        self._signs.reset()
        self._unstated.reset()
        self._common = self._no_errors()
        self._same = 0.0        # logarithm of the share that counts of a load that is the same
        self._filter = MassFilter(len(self.machine.parameters.names), self.settings)
        self._age = 0.0
        self._memories: deque[MassFilter] = deque(maxlen=2)
        self._restarted = 1.0       # share of the information that counts from the next sample on

    def _no_errors(self, balanced: bool = True) -> CommonErrors:
        """Nothing is known of them; a balance that is not as exact as stated makes masses contradict each other, too:
        that is no wrong zero."""
        return CommonErrors(list(self.machine.parameters.consider_names), WIDE * self._span, ANOTHER * self._span,
                            list(self._zeros) if balanced else ())

    def _distrust(self, found: MassInformation[np.ndarray]) -> np.ndarray:
        """Logarithms (n,) of the share that counts since the force balance is known to be less exact: the load is the
        same, but masses weighed before do not contradict those after any more."""
        lost = float(np.add.reduce(found.log_trusted))
        if lost:
            self._same += lost
            self._unstated.doubted = True
            self._common = self._no_errors(False)
        return found.log_trusted

    def restart(self, pause: float = 0.0) -> None:
        """The state starts again after a ``pause``, s; the mass stays."""
        self._gates.reset()
        self._memories.clear()
        if self._filter.value is not None:
            self._restarted = max(self._restarted * exp(-pause / PAUSES) if pause > 0.0 else 0.0, HARDLY)

    def process(self, mean: np.ndarray, covariance: np.ndarray, dt: float, reported: np.ndarray,
                share: float = 1.0) -> Mass:
        """Take what the observer reports, and its derivatives by the consider parameters."""
        if dt != self._filter.dt:
            self._tune(dt)
        self._remember(len(mean) * dt)
        closed, found = self._gates.closed(mean), MassInformation.of(reported)
        taken = (closed == 0) & (found.information > 0.0)
        some, lost = int(np.count_nonzero(taken)), found.log_kept + self._distrust(found)
        if self._filter.value is not None and self._filter.total >= self._least:
            self._signs.take(mean, found, taken, float(self._filter.value[0]), dt)
        forgotten = lost
        if self._restarted < 1.0 and some:
            self._filter.forget(self._restarted)
            self._restarted, lost = 1.0, np.where(np.arange(len(reported)) == 0, log(self._restarted), 0.0)
        sums = reported.take(self._additive, axis=1)
        since = self._common.take(sums if share == 1.0 else sums * share, taken, lost, dt, share != 1.0)
        self._filter.take_some(self._rows(sums) if some else sums, taken, forgotten)
        if since is not None:       # the load, or a sensor, is another
            self._filter.forget(NOTHING)
            self._filter.replace(self._rows(since[None])[0])
        if some and self._filter.value is not None:
            self._unstated.take(mean[-1], float(self._filter.value[0]), self._filter.kept, len(mean) * dt)
        information, weighted = sums[-1, :2].tolist()
        return self._result(weighted / information if information > 0 else nan, GATES[int(closed[-1])], some)

    def _rows(self, sums: np.ndarray) -> np.ndarray:
        """Rows (n, 2 + parameters) of the filter; ``sums`` (n, 2 + k) has derivatives for one standard deviation."""
        rows = np.zeros((len(sums), 2 + len(self.machine.parameters.names)))
        rows[:, :2] = sums[:, :2]
        rows[:, 2 + self._consider] = sums[:, 2:] / self._stddev
        return rows

    def _remember(self, duration: float) -> None:
        """Keep what is known, now and then: see ``doubt``."""
        self._age += duration
        if self._age >= REMEMBERED or not self._memories:
            self._memories.append(self._filter.copy())
            self._age = 0.0

    def doubt(self) -> None:
        """Discard what the last half second, or up to a second, has added."""
        self._common.doubt()
        if self._memories:
            kept, self._filter = self._filter.kept, self._memories[0]
            self._memories.clear()
            self._filter.forget(float(np.exp(kept - self._filter.kept)))

    def hold(self, reported: np.ndarray | None = None) -> Mass:
        """The mass so far; of ``reported`` only a change of the load is used."""
        if reported is not None and reported.size:
            found = MassInformation.of(reported)
            lost = float((found.log_kept + self._distrust(found)).sum())
            if isfinite(lost):      # else of a state that left the finite numbers
                self._filter.forget(float(np.exp(lost)))
                self._common.forget(lost)
        return self._result(nan, GATES[0])

    def difference(self, new: Mass, old: Mass) -> tuple[float, float]:
        """By how much two masses differ, kg, without what is known of the errors, and its standard deviation."""
        if not len(new.slopes) == len(old.slopes) == len(self._consider):
            return new.mass - old.mass, 0.0
        slopes = new.slopes - old.slopes
        known, covariance, _ = self._errors()
        return (new.weighed - old.weighed - float(slopes @ known),
                sqrt(max(float(slopes @ covariance @ slopes), 0.0)))

    def budget(self, noise: float) -> tuple[Cause, ...]:
        """What makes the mass uncertain, the largest first.

        Of numbers about whose errors the poses tell, what these errors still do: their prior through the estimate.
        """
        if self._filter.value is None:
            return ()
        slopes = self._slopes(self._filter.value)
        through = self._errors()[1] @ slopes
        kg, stated = np.zeros(len(self.machine.parameters.names)), self._common.stated
        kg[self._consider] = np.abs(through) * np.sqrt(stated)
        own = causes(self._numbers, sqrt(noise ** 2 + max(float(slopes @ through - stated @ through ** 2), 0.0)),
                      kg[np.flatnonzero(self.machine.parameters.stddev)], noise_of(self.machine))
        unstated = self._unstated.stddev(float(self._filter.value[0]))
        return own if not unstated else tuple(sorted([*own, Cause(UNSTATED, unstated, True)],
                                                     key=lambda item: -item.kg))

    def _errors(self) -> tuple[np.ndarray, np.ndarray, str]:
        """Errors (k,) that all masses have in common, and their covariance (k, k); as the file states where what was
        found is incredible, and that in words."""
        if not self._common.incredible:
            return self._common.mean, self._common.covariance, ''
        if self._common.broken:
            return self._common.mean, self._common.covariance, self._suspects()
        size = len(self._consider)
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
        """Derivatives (k,) of a mass by the consider parameters, for a standard deviation of each."""
        return value[1 + self._consider] * self._stddev

    def _result(self, raw: float, gate: str, taken: int = 0) -> Mass:
        """The information that the observer reports is used, unless the samples scatter more than it says."""
        value, total = self._filter.value, self._filter.total
        if value is None or total < self._least:
            return Mass(nan, nan, nan, raw, nan, 0, gate, nan)
        variance, freedom = self._filter.variance
        variance = max(1 / total, variance if freedom >= CONVINCING else 0.0)
        slopes, mass = self._slopes(value), float(value[0])
        known, covariance, contradiction = self._errors()
        contradiction = self._signs.wrong or contradiction
        unstated, low_passed = self._unstated.stddev(mass), self._filter.low_passed
        stddev = sqrt(variance + max(float(slopes @ covariance @ slopes), 0.0) + unstated ** 2)
        return Mass(mass - float(slopes @ known), stddev, NORMAL * stddev, raw,
                    float(low_passed[0]) - float(self._slopes(low_passed) @ known), self._filter.samples, gate,
                    sqrt(variance), taken, mass, slopes, contradiction, self._common.surprised, self._common.lean,
                    self._common.settling, self._wrong_zeros(), (known, covariance))

    def _wrong_zeros(self) -> tuple[str, ...]:
        """Channels whose zeros are not as the file states them, by how much, and the 95 % interval."""
        return tuple(in_words(self.machine, self._zeros[zero.place], zero) for zero in self._common.wrong_zeros)

