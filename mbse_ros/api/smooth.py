# SPDX-License-Identifier: Apache-2.0
"""``smooth``: the most likely motion of a whole log, and the payload, by the factor graph of the machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import SettingError, refuse_options
from ..machine import Machine
from .estimate import Log, Tuning, first_time, linkage_log, motion_of_log, of_machine, words
from .load import Loadable, recorded
from .results.machine_estimate import MachineEstimate
from .results.motion_estimate import MotionEstimate
from .results.result import Result
from .results.series import ResultSeries
from .results.simulations import entry_series

if TYPE_CHECKING:
    from ..graph.machines.machine_smoother import MachineSmoothed
    from ..offline.smooth_linkage import SmoothedLog
    from ..offline.smooth_machine import SmoothedBag

ENDINGS = {' rate': 'velocity', ' force': 'force'}


@dataclass(frozen=True, repr=False)
class SmoothedMachine(Result):
    """Smoothed motion and payload of a machine at times ``t`` (k,), s; SI.

    ``smoothed``: positions, velocities, ... (k, g) with their deviations, ``parameters``: what the log says of the
    machine's uncertain numbers ``names``; ``mass``, ``lower``, ``upper`` (k,), kg; ``filtered``: the filter's result
    beside it.
    """

    t: np.ndarray
    found: SmoothedBag
    filtered: MachineEstimate

    @property
    def smoothed(self) -> MachineSmoothed:
        """All of it."""
        return self.found.smoothed

    @property
    def _kept(self) -> SmoothedBag:
        return self.found

    def report(self, folder: str | Path) -> Path:
        """Write the report of the filter with the smoothed curves in it, plot and table into a new folder; gives it."""
        return self.found.report(Path(folder))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(item.name for item in self.series())

    @property
    def mass(self) -> np.ndarray:
        """Mass of the payload (k,), kg; of a whole log the same at all times."""
        return self.smoothed.mass

    @property
    def lower(self) -> np.ndarray:
        """Lower ends (k,) of its 95 % interval, kg."""
        return self.smoothed.lower

    @property
    def upper(self) -> np.ndarray:
        """Upper ends (k,), kg."""
        return self.smoothed.upper

    def series(self) -> list[ResultSeries]:
        """The mass, then the motion and the pressures, under the names of the filter's result."""
        s = self.smoothed
        return [ResultSeries('mass', 'kg', s.mass, lower=s.lower, upper=s.upper),
                *entry_series(self.filtered.machine, s, s.stddev)]


def smooth(log: Log, machine: Loadable | None = None, *, mechanism: Loadable | None = None, lag: float | None = None,
           sensors: Sequence[str] | None = None, step: float | None = None, valve: str | None = None,
           tuning: Tuning | None = None, sources: str | Path | None = None, namespace: str | None = None,
           backend: str = 'auto') -> SmoothedMachine | MotionEstimate:
    """Filter a log, then smooth it: all at once, or each instant as known ``lag``, s, after it.

    Arguments as of ``estimate``; ``tuning`` of a machine takes ``graph.`` too. A mechanism gives a ``MotionEstimate``
    whose ``estimator`` is 'smoother'; positions that no sensor saw have the deviation of the start. Whole logs of
    machines need GTSAM: MissingModuleError says how to get it. Raises also GraphError (nothing moved, or what the
    forces need is not measured) and DivergenceError.

    >>> smooth(simulate('four_bar', 2.0, sensors=['encoder']).samples, mechanism='four_bar').estimator
    'smoother'
    """
    if lag is not None and not (math.isfinite(lag) and lag > 0):
        raise SettingError('lag', lag, 'a positive number, s')
    item, assumed = recorded([log], machine, mechanism, valve, namespace, backend)
    found = words(tuning or {})
    if isinstance(item, Machine):
        refuse_options('a mechanism', {'sensors': sensors, 'step': step})
        from ..graph.machines.machine_graph import MachineGraphSettings
        from ..offline.bag import TUNING, parse_tuning
        from ..offline.smooth_machine import smooth_estimate
        settings = parse_tuning(found, {**TUNING, 'graph': MachineGraphSettings})['graph']
        of_filter = of_machine(log, item, [word for word in found if not word.startswith('graph.')], namespace, backend,
                               sources, assumed=assumed)
        return SmoothedMachine(of_filter.t, smooth_estimate(of_filter.estimate, lag, settings), of_filter)
    from ..offline.linkage import linkage_settings
    from ..offline.smooth_linkage import check_filter, smooth_linkage_log
    chosen = linkage_settings(found)
    check_filter(chosen)
    filtered = linkage_log(log, item, found, sensors or (), step, namespace, backend, sources)
    of_bag = str(log) if isinstance(log, (str, Path)) else 'samples'
    smoothed = smooth_linkage_log(filtered, chosen, lag, backend, of_bag)
    return _of_smoothed(smoothed, motion_of_log(filtered, first_time(log, filtered)))


def _of_smoothed(found: SmoothedLog, filtered: MotionEstimate) -> MotionEstimate:
    """The smoothed instants as arrays; what the filter made of the samples stays beside them."""
    at, column = found.place, found.column
    return MotionEstimate(
        found.model, 'smoother', filtered.t[at], tuple(_entry(name) for name in found.smoother.names), column('mean'),
        column('stddev'), column('q'), column('qd'), column('qdd'), found.model.independent, column('force'),
        filtered.channels, filtered.innovation[at], filtered.innovation_stddev[at], filtered.used[at],
        filtered.true_q[at], tuple(filtered.status[k] for k in at), found.warnings, found)


def _entry(name: str) -> str:
    """'position/theta' of 'theta', 'velocity/theta' of 'theta rate', and so on, as the filters name them."""
    if name.endswith(' bias'):
        return f'bias/{name.removesuffix(" bias")}'
    kind = next((kind for ending, kind in ENDINGS.items() if name.endswith(ending)), 'position')
    return f'{kind}/{name.removesuffix(" rate").removesuffix(" force")}'
