# SPDX-License-Identifier: Apache-2.0
"""``Samples``: what sensors gave, as arrays; the form in which measurements enter and leave."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from ..errors import SettingError, did_you_mean
from ..report.result import Result, ResultSeries

if TYPE_CHECKING:
    from ..bags.channel_samples import Sample

Columns = Mapping[str, tuple[np.ndarray, np.ndarray]]       # channel -> times (k,), s, and values (k,)


@dataclass(frozen=True, repr=False)
class Samples(Result):
    """Samples of sensors: ``values`` (k, s), SI, of the channels ``names`` (s,) at times ``t`` (k,), s, ascending; NaN
    where a channel has none.

    Channels of a mechanism are its sensors (``crank_gyro``, ``tip.x`` of several components) and ``input/<name>``, what
    acts over the step that ends at the time. Those of a machine: ``position/lift``, ``pressure/lift_rod``,
    ``command/lift_valve`` and so on, see ``Machine.channels`` and ``commands``. ``start_ns``: stamp of t = 0.
    Raises SettingError for shapes that do not fit, and times that do not ascend.

    >>> Samples(np.array([0.0, 0.1]), ('encoder',), np.array([[0.5], [0.6]])).t
    array([0. , 0.1])
    """

    t: np.ndarray
    names: tuple[str, ...]
    values: np.ndarray
    channel_units: Mapping[str, str] = field(default_factory=dict)
    start_ns: int = 0

    def __post_init__(self) -> None:
        t, values = (_numbers(name, value) for name, value in (('t', self.t), ('values', self.values)))
        if isinstance(self.names, str) or not isinstance(self.names, Collection) or not all(
                isinstance(name, str) for name in self.names):
            raise SettingError('names', self.names, 'a list of names')
        for name, kind, expected in (('start_ns', Integral, 'a whole number'), ('channel_units', Mapping, 'a mapping')):
            if not isinstance(getattr(self, name), kind):
                raise SettingError(name, getattr(self, name), expected)
        names = tuple(self.names)
        values = values[:, None] if values.ndim == 1 and len(names) == 1 else values
        if t.ndim != 1 or not t.size or not np.isfinite(t).all() or (np.diff(t) <= 0).any():
            raise SettingError('t', t.shape, 'one finite time or more, s, each later than the one before')
        if values.shape != (len(t), len(names)):
            raise SettingError('values', values.shape, f'{(len(t), len(names))}: {len(t)} times of '
                               + (', '.join(names) or 'no channels'))
        if np.isinf(values).any():
            raise SettingError('values', 'infinity', 'finite numbers; NaN where a channel has no sample')
        if len(set(names)) < len(names):
            raise SettingError('names', names, 'each name once')
        for name, value in (('t', t), ('values', values), ('names', names)):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, columns: Columns, units: Mapping[str, str] = {}, start_ns: int = 0) -> Samples:
        """Samples of channels with times of their own: by name times (k,), s, and values (k,), SI."""
        if not columns:
            raise SettingError('columns', dict(columns), 'a channel or more')
        pairs = {name: _pair(name, pair) for name, pair in columns.items()}
        t = np.unique(np.concatenate([times for times, _ in pairs.values()]))
        values = np.full((len(t), len(pairs)), np.nan)
        for k, (times, column) in enumerate(pairs.values()):
            values[np.searchsorted(t, times), k] = column
        return cls(t, tuple(pairs), values, units, start_ns)

    def series(self) -> list[ResultSeries]:
        """One for each channel."""
        return [ResultSeries(name, self.channel_units.get(name, ''), column)
                for name, column in zip(self.names, self.values.T)]

    def columns(self, names: Sequence[str]) -> np.ndarray:
        """Values (k, len(names)) of these channels; raises SettingError for one that is not there."""
        missing = [name for name in names if name not in self.names]
        if missing:
            others = [name for name in self.names if name not in names]
            raise SettingError('samples', list(self.names), f'the channels {", ".join(names)}; missing: '
                               + ', '.join(missing) + (did_you_mean(others[0], missing) if others else ''))
        return self.values[:, [self.names.index(name) for name in names]]

    @property
    def stamps_ns(self) -> np.ndarray:
        """Stamps (k,), ns; the first one from 0 up, also where the times begin below."""
        offset = min(0.0, float(self.t[0])) if self.start_ns == 0 else 0.0
        return self.start_ns + np.rint(1e9 * (self.t - offset)).astype(np.int64)

    def listed(self) -> list[Sample]:
        """Single samples in the order of time, without those that are missing."""
        from ..bags.channel_samples import Sample  # here, because it takes its time to import
        return [Sample(name, stamp, value) for stamp, row in zip(self.stamps_ns.tolist(), self.values.tolist())
                for name, value in zip(self.names, row) if value == value]


def as_samples(data: Samples | Columns) -> Samples:
    """Samples, or what ``Samples.of`` makes of a mapping; raises SettingError."""
    if isinstance(data, Samples):
        return data
    if isinstance(data, Mapping):
        return Samples.of(data)
    raise SettingError('samples', type(data).__name__, 'the path of a bag, Samples (a simulation has them as '
                       '.samples), or a mapping from channels to (t, values)')


def _numbers(name: str, values: object) -> np.ndarray:
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise SettingError(name, type(values).__name__, 'an array of numbers') from None


def _pair(name: str, pair: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Times and values, as many of either."""
    try:
        times, values = (np.asarray(item, dtype=float) for item in pair)
    except (TypeError, ValueError):
        raise SettingError(name, type(pair).__name__, 'times and values, two arrays') from None
    if times.ndim != 1 or times.shape != values.shape or not times.size:
        raise SettingError(name, (times.shape, values.shape), 'times and values, two arrays of one length')
    return times, values


def stage_rows(samples: Samples) -> list[tuple[int, dict[str, float]]]:
    """Samples as the stage takes them: inputs, which are of the step before a time, at the start of that step. An
    instant at which all are missing is one, too."""
    t, stamps = samples.t, samples.stamps_ns
    before = np.concatenate([[0], stamps[:-1]]) if len(t) > 1 else np.zeros(1, dtype=np.int64)
    if len(t) > 1:
        before[0] = max(0, 2 * stamps[0] - stamps[1])
    rows: list[tuple[int, dict[str, float]]] = []
    nothing = {name: np.nan for name in samples.names if not name.startswith('input/')}
    for k, row in enumerate(samples.values.tolist()):
        here = {name: value for name, value in zip(samples.names, row) if value == value}
        inputs = {name: value for name, value in here.items() if name.startswith('input/')}
        if inputs:
            rows.append((int(before[k]), inputs))
        measured = {name: value for name, value in here.items() if name not in inputs}
        rows.append((int(stamps[k]), measured or nothing))
    return [(stamp, values) for stamp, values in rows if values]
