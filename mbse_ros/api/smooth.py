# SPDX-License-Identifier: Apache-2.0
"""``smooth``: the most likely motion of a whole log, and the payload, by the factor graph of the machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SettingError, refuse_options
from ..machine import Machine
from .estimate import Log, Tuning, of_machine, of_mechanism, words
from .load import Loadable, recorded

if TYPE_CHECKING:
    from ..offline.smooth_machine import SmoothedMachine
    from ..offline.smoothed_motion import SmoothedMotion


def smooth(log: Log, machine: Loadable | None = None, *, mechanism: Loadable | None = None, lag: float | None = None,
           sensors: Sequence[str] | None = None, step: float | None = None, valve: str | None = None,
           tuning: Tuning | None = None, sources: str | Path | None = None, namespace: str | None = None,
           backend: str = 'auto') -> SmoothedMachine | SmoothedMotion:
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
    from ..offline.filtered_motion import linkage_settings
    from ..offline.smoothed_motion import check_filter, smooth_motion
    chosen = linkage_settings(found)
    check_filter(chosen)
    filtered = of_mechanism(log, item, found, sensors or (), step, namespace, backend, sources=sources)
    return smooth_motion(filtered, chosen, lag, backend, str(log) if isinstance(log, (str, Path)) else 'samples')
