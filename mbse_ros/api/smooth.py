# SPDX-License-Identifier: Apache-2.0
"""``smooth``: the most likely motion of a whole log, and the payload, by the factor graph of the machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SettingError, refuse_options
from ..machine import Machine
from .estimate import Log, Tuning, first_time, linkage_log, motion_of_log, of_machine, words
from .load import Loadable, recorded
from .results.motion_estimate import MotionEstimate

if TYPE_CHECKING:
    from ..offline.smooth_linkage import SmoothedLog
    from ..offline.smooth_machine import SmoothedMachine

ENDINGS = {' rate': 'velocity', ' force': 'force'}


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
        return smooth_estimate(of_filter, lag, settings)
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
