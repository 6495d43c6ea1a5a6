# SPDX-License-Identifier: Apache-2.0
"""``smooth``: the most likely motion of a whole log, and the payload, by the factor graph of the machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SettingError, refuse_options
from ..machine import Machine
from .estimate import Log, Tuning, first_time, linkage_log, motion_of_log, of_machine, words
from .load import Loadable, loaded
from .results.machine_estimate import KINDS, MachineEstimate
from .results.motion_estimate import MotionEstimate
from .results.result import Result
from .results.series import ResultSeries, entry_unit

if TYPE_CHECKING:
    from ..graph.machines.machine_smoother import MachineSmoothed
    from ..offline.smooth_linkage import SmoothedLog
    from ..offline.smooth_machine import SmoothedBag

ENDINGS = {' rate': 'velocity', ' force': 'force'}


@dataclass(frozen=True)
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
    def warnings(self) -> tuple[str, ...]:
        """What was odd about the samples, and what the smoother makes no use of."""
        return self.found.warnings

    def summary(self) -> list[str]:
        """What ``mbse smooth`` says of the log, a line each."""
        return self.found.summary()

    def to_json(self, full: bool = False) -> dict[str, Any]:
        """What ``mbse smooth --json`` writes; ``full``: with every instant."""
        return self.found.to_json(full)

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
        from ..offline.smooth_machine import owners  # here, because graphs take their time to import
        machine, s = self.filtered.machine, self.smoothed
        found = [ResultSeries('mass', 'kg', s.mass, lower=s.lower, upper=s.upper)]
        for kind in KINDS:
            for k, owner in enumerate(owners(machine, kind)):
                name = f'{kind}/{owner}'
                found.append(ResultSeries(name, entry_unit(machine, name), getattr(s, kind)[:, k], s.stddev[kind][:, k],
                                          panel='pressures' if kind == 'pressure' else ''))
        return found


def smooth(log: Log, machine: Loadable, *, lag: float | None = None, tuning: Tuning | None = None,
           sensors: Sequence[str] | None = None, step: float | None = None, namespace: str | None = None,
           backend: str = 'auto') -> SmoothedMachine | MotionEstimate:
    """Filter a log, then smooth it: all at once, or each instant as known ``lag``, s, after it.

    Arguments as of ``estimate``; ``tuning`` of a machine takes ``graph.`` too. A mechanism gives a ``MotionEstimate``
    whose ``estimator`` is 'smoother'; positions that no sensor saw have the deviation of the start. Whole logs of
    machines need GTSAM: MissingModuleError says how to get it. Raises also GraphError (nothing moved, or what the
    forces need is not measured) and DivergenceError.
    """
    if lag is not None and not (math.isfinite(lag) and lag > 0):
        raise SettingError('lag', lag, 'a positive number, s')
    item, found = loaded(machine), dict(tuning or {})
    if isinstance(item, Machine):
        refuse_options('a mechanism', {'sensors': sensors, 'step': step})
        return _machine(log, item, found, lag, namespace, backend)
    from ..offline.linkage import linkage_settings
    from ..offline.smooth_linkage import check_filter, smooth_linkage_log
    settings = linkage_settings(words(found))
    check_filter(settings)
    filtered = linkage_log(log, item, found, sensors or (), step, namespace, backend)
    smoothed = smooth_linkage_log(filtered, settings, lag, backend)
    return _of_smoothed(smoothed, motion_of_log(filtered, first_time(log, filtered)))


def _machine(log: Log, machine: Machine, tuning: Tuning, lag: float | None, namespace: str | None, backend: str
             ) -> SmoothedMachine:
    from ..graph.machines.machine_settings import MachineGraphSettings
    from ..offline.bag import parse_tuning
    from ..offline.smooth_machine import smooth_estimate
    own = {name: value for name, value in tuning.items() if name.startswith('graph.')}
    settings = parse_tuning(words(own), {'graph': MachineGraphSettings})['graph']
    rest = {name: value for name, value in tuning.items() if name not in own}
    filtered = of_machine(log, machine, rest, namespace, backend)
    return SmoothedMachine(filtered.t, smooth_estimate(filtered.estimate, lag, settings), filtered)


def _of_smoothed(found: SmoothedLog, filtered: MotionEstimate) -> MotionEstimate:
    """The smoothed instants as arrays; what the filter made of the samples stays beside them."""
    at, column = found.place, found.column
    return MotionEstimate(
        found.model, 'smoother', filtered.t[at], tuple(_entry(name) for name in found.smoother.names), column('mean'),
        column('stddev'), column('q'), column('qd'), column('qdd'), found.model.independent, column('force'),
        filtered.channels, filtered.innovation[at], filtered.innovation_stddev[at], filtered.used[at],
        filtered.true_q[at], tuple(filtered.status[k] for k in at), filtered.warnings, found)


def _entry(name: str) -> str:
    """'position/theta' of 'theta', 'velocity/theta' of 'theta rate', and so on, as the filters name them."""
    if name.endswith(' bias'):
        return f'bias/{name.removesuffix(" bias")}'
    kind = next((kind for ending, kind in ENDINGS.items() if name.endswith(ending)), 'position')
    return f'{kind}/{name.removesuffix(" rate").removesuffix(" force")}'
