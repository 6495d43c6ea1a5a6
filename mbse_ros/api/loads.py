# SPDX-License-Identifier: Apache-2.0
"""``loads``: the loads in bags, or in the records of a live scale, counted and weighed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SettingError, refuse_options
from ..machine import Machine
from .estimate import Tuning, words
from .load import Loadable, loaded_sources, recorded

if TYPE_CHECKING:
    from ..offline.loads import Loads


def loads(bags: str | Path | Sequence[str | Path] = (), machine: Loadable | None = None, *,
          known: str | float | None = None, records: str | Path | None = None, scale: str | Path | None = None,
          attachment: str | None = None, truck: Sequence[str] = (), tuning: Tuning | None = None, every: float = 0.0,
          valve: str | None = None, sources: str | Path | None = None, namespace: str | None = None,
          backend: str = 'auto') -> Loads:
    """Count and weigh the loads in bags of one machine, in their order, as the scale of the live graph does.

    ``machine``: default the one that the bags name; ``known``: what is known of the masses, 500 or '500+-2.5 kg', of
    every load, or a CSV table by load, truck or bag; ``records``: those of a live scale, instead of bags; ``scale``:
    file of attachments and load chart, ``attachment``: the one on it; ``truck``: that each bag is for. Others as of
    ``estimate``, ``tuning`` with ``scale.``. Raises BagError, RecordsError, DescriptionError, SettingError, ScaleError.

    >>> [round(float(mass), -1) for mass in loads('lift').mass]
    [200.0]
    """
    from ..offline.bag import KINDS, parse_tuning  # here, as they take their time to import
    from ..offline.loads import check_known, compared
    from ..offline.weigh_bags import recorded_loads, weigh_bags
    from ..scale.comparison import compare
    from ..scale.record_file import is_records
    from ..scale.scale_file import scale_of
    some = [bags] if isinstance(bags, (str, Path)) else list(bags)
    if known is not None:
        known = f'{known:g}' if isinstance(known, (int, float)) else known
        if not isinstance(known, str):
            raise SettingError('known', known, 'a mass of every load, kg or as text, or the path of a table')
        check_known(known)
    if (records is None) == (not some):
        raise SettingError('bags', [str(bag) for bag in some], 'one bag or more, or the records of a live scale')
    for bag in some:
        if is_records(Path(bag)):
            raise SettingError('bags', str(bag), 'folders of bags; this file has the records of a live scale: give it '
                               f'as records (--records {bag})')
    if records is not None:
        refuse_options('bags', {'machine': machine, 'scale': scale, 'attachment': attachment, 'truck': truck or None,
                                'tuning': tuning or None, 'valve': valve, 'sources': sources, 'namespace': namespace,
                                'every': every or None})
        found = recorded_loads(records)
    else:
        if len(truck) > len(some):
            raise SettingError('truck', truck[len(some)], f'one for each of the {len(some)} bags at most')
        settings = parse_tuning(words(tuning or {}), KINDS)
        item, assumed = recorded(some, machine, valve=valve, namespace=namespace)
        if not isinstance(item, Machine):
            raise SettingError('machine', item.description.name, 'a machine: this file has no cylinders')
        found = weigh_bags(some, item, settings, scale_of(item, scale or ''), attachment or '', truck, namespace,
                           backend, loaded_sources(sources), every)
        found = replace(found, warnings=(*assumed, *found.warnings))
    return replace(found, several=len(some) > 1,
                   comparison=None if known is None else compare(compared(known, found)))
