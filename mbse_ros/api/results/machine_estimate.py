# SPDX-License-Identifier: Apache-2.0
"""Result of the observer and the payload estimator of a machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...machine import Machine
from .result import Result
from .series import ResultSeries, entry_unit, with_entries
from .simulations import KINDS, MachineTruth

if TYPE_CHECKING:
    from ...offline.estimate import Estimate
    from ...offline.log_loads import WeighedLoad
    from ...payload.mass import Cause
    from ...report.data import Run


@dataclass(frozen=True, repr=False)
class MachineEstimate(Result):
    """Motion and payload of a machine at times ``t`` (k,), s, one for each sensor period; SI.

    ``names`` (l,) of the observer's state, such as ``position/lift``; ``mean``, ``stddev`` (k, l); ``mass``, ``lower``,
    ``upper`` (k,), kg: the payload and its 95 % interval, NaN while it is not known; ``status`` (k): why the mass is or
    is not updated, such as 'updating'. ``estimate``: all that was kept, with innovations.
    """

    t: np.ndarray
    estimate: Estimate

    @property
    def machine(self) -> Machine:
        """The machine."""
        return self.estimate.machine

    @property
    def names(self) -> tuple[str, ...]:
        """Names (l,) of the state's entries."""
        return self.estimate.last.state.names

    @property
    def mean(self) -> np.ndarray:
        """State (k, l)."""
        return self.estimate.states.mean

    @cached_property
    def stddev(self) -> np.ndarray:
        """Its standard deviations (k, l)."""
        return self.estimate.stddev

    @property
    def mass(self) -> np.ndarray:
        """Mass of the payload (k,), kg."""
        return self.estimate.states.mass

    @property
    def lower(self) -> np.ndarray:
        """Lower ends (k,) of its 95 % interval, kg."""
        return self.estimate.states.lower

    @property
    def upper(self) -> np.ndarray:
        """Upper ends (k,), kg."""
        return self.estimate.states.upper

    @property
    def status(self) -> tuple[str, ...]:
        """Status (k) of the mass, the words of ``streams.records.PayloadStatus`` in small letters."""
        return self.estimate.track.status_words

    @property
    def loads(self) -> tuple[WeighedLoad, ...]:
        """Loads as ``mbse loads`` has them: ``start``, ``end``, s, ``mass``, ``lower``, ``upper``, kg, ``status``,
        ``trusted``, ``faults``."""
        elapsed = self.estimate.track.elapsed - self.estimate.track.elapsed[0]
        times = ((load, np.interp([load.start, load.end], elapsed, self.t).tolist()) for load in self.estimate.loads)
        return tuple(replace(load, start=start, end=end) for load, (start, end) in times)

    @property
    def budget(self) -> tuple[Cause, ...]:
        """What makes the mass at the end uncertain, kg, the largest first."""
        return self.estimate.budget

    @property
    def _kept(self) -> Estimate:
        return self.estimate

    @property
    def run(self) -> Run:
        """All that the report shows."""
        from ...offline.estimate_report import report_run  # here, because it takes its time to import
        bag = self.estimate.facts.get('Bag')
        of = f'from {Path(bag).resolve().name}' if bag else f'of {self.machine.name}'
        return report_run(self.estimate, f'Estimate {of}', self.estimate.facts)

    def report(self, folder: str | Path) -> Path:
        """Write the report, index.html and PNGs; gives its page. Raises OSError, MbseError where the state over time
        was not kept."""
        from ...report.writer import write_report  # here, because it takes its time to import
        return write_report(self.run, Path(folder))

    def series(self) -> list[ResultSeries]:
        """The mass with its interval, then the state's entries with their deviations; pressures in one panel."""
        from ...offline.track import NUMBERS  # here, because it takes its time to import
        state = [ResultSeries(name, entry_unit(self.machine, name), self.mean[:, k], self.stddev[:, k],
                              panel='pressures' if name.startswith('pressure/') else '')
                 for k, name in enumerate(self.names) if name != 'payload/mass']
        state.sort(key=lambda item: KINDS.index(kind) if (kind := item.name.partition('/')[0]) in KINDS else len(KINDS))
        others = [ResultSeries(name, NUMBERS[name].unit, values)
                  for name, values in self.estimate.states.columns.items()]
        return [ResultSeries('mass', 'kg', self.mass, lower=self.lower, upper=self.upper), *state, *others]

    def _end(self) -> list[str]:
        payload = self.estimate.last.payload        # known where no states over time were kept, too
        return [f'mass {payload.mass:.6g} kg ({payload.lower:.6g} to {payload.upper:.6g})']

    def _found(self) -> dict[str, ResultSeries]:
        return with_entries(super()._found(), self.names, self.mean, self.stddev, partial(entry_unit, self.machine))

    @cached_property
    def truth(self) -> MachineTruth | None:
        """The true state at the same times where the bag is of a simulated machine, for ``plot(truth=...)``."""
        from ...offline.estimate import truth_at  # here, because it takes its time to import
        found = truth_at(self.estimate.truth, self.machine, self.estimate.track.stamp_ns)
        if found is None:
            return None
        return MachineTruth(self.t, self.machine, *(getattr(found, kind) for kind in (*KINDS, 'payload')))
