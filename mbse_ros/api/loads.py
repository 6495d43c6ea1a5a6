# SPDX-License-Identifier: Apache-2.0
"""``loads``: the loads in bags, or in the records of a live scale, counted and weighed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SettingError, refuse_options
from ..machine import Machine
from .estimate import Tuning, words
from .load import Loadable, loaded_sources, recorded
from .results.result import Result
from .results.series import ResultSeries

if TYPE_CHECKING:
    from ..offline.log_loads import WeighedLoad
    from ..offline.weigh_bags import WeighedBags
    from ..report.data import Table
    from ..scale.comparison import Comparison


@dataclass(frozen=True, repr=False)
class Loads(Result):
    """Loads of a machine: ``found`` has all of it; ``comparison``: with masses that are known; ``several``: bags.

    ``t`` (k,): ends of the loads, s from the start of the first; ``mass``, ``lower``, ``upper`` (k,), kg.
    """

    found: WeighedBags
    comparison: Comparison | None = None
    several: bool = False

    @property
    def loads(self) -> tuple[WeighedLoad, ...]:
        """The loads, those that do not count too: ``start``, ``end``, s, ``mass``, ``lower``, ``upper``, kg,
        ``status``, ``trusted``, ``faults``."""
        return self.found.loads

    @property
    def t(self) -> np.ndarray:
        """Ends of the loads (k,), s from the start of the first one."""
        data = [load.record.data for load in self.loads]
        return np.array([1e-9 * (item['end_ns'] - data[0]['start_ns']) for item in data])

    @property
    def mass(self) -> np.ndarray:
        """Masses (k,), kg."""
        return self['mass']

    @property
    def lower(self) -> np.ndarray:
        """Lower ends (k,) of their 95 % intervals, kg."""
        return np.array([load.lower for load in self.loads])

    @property
    def upper(self) -> np.ndarray:
        """Upper ends (k,), kg."""
        return np.array([load.upper for load in self.loads])

    @property
    def _kept(self) -> WeighedBags:
        return self.found

    def series(self) -> list[ResultSeries]:
        """Their masses with the intervals."""
        mass = np.array([load.mass for load in self.loads])
        return [ResultSeries('mass', 'kg', mass, lower=self.lower, upper=self.upper)]

    def tables(self) -> list[Table]:
        """One row a load."""
        from ..offline.log_loads import CELLS
        from ..report.data import Table
        from ..scale.table import undone_loads
        undone = undone_loads(self.found.records)
        rows = [[*([Path(load.bag).resolve().name] if self.several else []),
                 *load.cells(undone, self.found.named_trucks)] for load in self.loads]
        columns = [*(['bag'] if self.several else []), *CELLS]
        return [Table(f'{self.found.machine}: loads', columns, rows)] if rows else []

    def summary(self) -> list[str]:
        """Totals, why loads are not trusted, and what the known masses say."""
        facts = {} if self.comparison is None else self.comparison.facts
        return [*self.found.summary(), *(f'{name}: {text}' for name, text in facts.items())]

    def _values(self, full: bool) -> dict[str, Any]:
        """Loads, totals and comparison, kg, s."""
        return self.found.to_json() | ({} if self.comparison is None else {'comparison': self.comparison.values})

    def report(self, folder: str | Path) -> Path:
        """Write the page of all loads with its PNGs; gives the page. Raises OSError."""
        from ..offline.loads_report import loads_report  # here, as they take their time to import
        from ..report.writer import write_report
        return write_report(loads_report(self.found, self.comparison), Path(folder))

    def write(self, path: str | Path) -> None:
        """Write the table of the loads: .csv, .parquet, or .xml for the counts of ISO 15143-3. Raises OSError,
        SettingError, MissingModuleError."""
        from ..scale.export import Equipment, write_loads
        write_loads(self.found.records, Path(path), Equipment(self.found.machine))


def loads(bags: str | Path | Sequence[str | Path] = (), machine: Loadable | None = None, *,
          known: str | None = None, records: str | Path | None = None, scale: str | Path | None = None,
          attachment: str | None = None, truck: Sequence[str] = (), tuning: Tuning | None = None, every: float = 0.0,
          valve: str | None = None, sources: str | Path | None = None, namespace: str | None = None,
          backend: str = 'auto') -> Loads:
    """Count and weigh the loads in bags of one machine, in their order, as the scale of the live graph does.

    ``machine``: default the one that the bags name; ``known``: what is known of the masses, '500+-2.5 kg', of every
    load, or a CSV table by load, truck or bag; ``records``: those of a live scale, instead of bags; ``scale``: file of
    attachments and load chart, ``attachment``: the one on the machine; ``truck``: that each bag is for. Others as of
    ``estimate``, ``tuning`` with ``scale.``. Raises BagError, RecordsError, DescriptionError, SettingError, ScaleError.

    >>> [round(float(mass), -1) for mass in loads('lift').mass]
    [200.0]
    """
    from ..offline.bag import KINDS, parse_tuning  # here, as they take their time to import
    from ..offline.known_masses import check_known, compared
    from ..offline.weigh_bags import recorded_loads, weigh_bags
    from ..scale.comparison import compare
    from ..scale.record_file import is_records
    from ..scale.scale_file import scale_of
    some = [bags] if isinstance(bags, (str, Path)) else list(bags)
    if known is not None:
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
    return Loads(found, None if known is None else compare(compared(known, found)), len(some) > 1)
