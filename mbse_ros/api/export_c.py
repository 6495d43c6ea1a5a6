# SPDX-License-Identifier: Apache-2.0
"""``export_c``: a mechanism, or a machine's estimator, as plain C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..dynamics.model import Model, load_model
from ..errors import SettingError, refuse_options
from ..machine import Machine
from .checked import checked
from .estimate import Tuning, words
from .load import Loadable, loaded, model_of, named

if TYPE_CHECKING:
    from ..embedded.write import EstimatorExport
    from ..export.write import Export


@checked
def export_c(model: Loadable, folder: str | Path, dt: float = 1e-3, order: str | None = None, *,
             coordinates: str | None = None, independent: Sequence[str] | None = None, free: Sequence[str] = (),
             estimator: bool = False, single: bool | None = None, rate: float | None = None,
             tuning: Tuning | None = None, attachment: str | None = None, scale: str | Path | None = None
             ) -> Export | EstimatorExport:
    """Write a model as C99 that needs nothing but libm (docs/export_c.md).

    ``folder``: new, empty, or an earlier export. ``dt``, s: step of the recorded transitions that its test compares;
    ``order``: 'exact' (the default), or '1' to '4' of the series. Of a mechanism by its name ``coordinates``,
    ``independent`` ones and ``free`` numbers as of ``load``.

    ``estimator``: of a machine its observer and payload estimator, one function a tick, instead; ``dt``: steps in a
    tick, ``rate`` of the ticks, Hz (default 100), ``single`` precision, ``tuning`` of ``observer.`` and ``payload.``,
    ``attachment``, the tool on it, and the file of its ``scale``, as of ``load``.

    Gives the ``folder``, its ``files``, ``summary()``, and of a mechanism the ``names`` and units of the vectors.
    Raises SettingError, OSError, DescriptionError, ScaleError, SingularConfigurationError (a singular start).

    >>> export_c('four_bar', 'c').files[2:4]
    ('four_bar.c', 'four_bar.h')
    """
    if estimator:
        refuse_options('a mechanism, not an estimator', {'order': order, 'coordinates': coordinates,
                                                        'independent': independent, 'free': free or None})
        return _estimator(loaded(model, None, attachment, scale), folder, 100.0 if rate is None else rate, dt,
                          bool(single), words(tuning or {}))
    refuse_options('an estimator', {'single': single, 'rate': rate, 'tuning': tuning or None,
                                    'attachment': attachment, 'scale': scale})
    from ..dynamics.singular import check_regular  # here, because they take their time to import
    from ..export.write import export_c as write
    if coordinates is not None or independent is not None or free:
        given = None if independent is None else tuple(independent)
        item = load_model(named(model), coordinates, given, tuple(free), 'vm')
    else:
        item = model_of(model, 'vm')
    check_regular(item, item.start)
    return write(item, folder, dt, order or 'exact')


def _estimator(machine: Model | Machine, folder: str | Path, rate: float, dt: float, single: bool,
               tuning: Sequence[str]) -> EstimatorExport:
    from ..embedded.tables import EstimatorSetup  # here, because they take their time to import
    from ..embedded.write import export_estimator
    from ..offline.bag import TUNING, parse_tuning
    kinds = {room: kind for room, kind in TUNING.items() if room in ('observer', 'payload')}
    found = parse_tuning(tuning, kinds)
    if not isinstance(machine, Machine):
        raise SettingError('estimator', True, f'a machine: {machine.description.name} has no cylinders')
    observer = replace(found['observer'], force_error=0.0, pressure_error=0.0)     # the C text looks for none
    return export_estimator(EstimatorSetup(machine, observer, found['payload'], rate, dt), folder, single)
