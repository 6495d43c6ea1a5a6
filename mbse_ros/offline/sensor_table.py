# SPDX-License-Identifier: Apache-2.0
"""Samples of a mechanism's sensors out of a bag or a CSV table, on an even grid of time."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..dynamics.model import Model
from ..errors import BagError
from ..resources import regular, said_of
from ..sources.map import SourceMap
from ..sources.reader import mechanism_reader
from ..sources.topic_samples import UnusableSample

LONGEST = 2_000_000     # instants


@dataclass(frozen=True)
class SensorTable:
    """Times (k,), s from the first sample; SI values (k, s) of the channels, NaN where there is no sample; inputs
    (k, u), held from sample to sample and 0 before the first; what was odd about the log."""

    t: np.ndarray
    values: np.ndarray
    inputs: np.ndarray
    warnings: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()


def read_sensors(path: Path, model: Model, channels: Sequence[str], dt: float | None = None,
                 namespace: str | None = None, sources: SourceMap | None = None, all_: bool = True) -> SensorTable:
    """Samples of a mechanism's channels (a sensor's name, or ``sensor.x`` for each of several components) and inputs.

    CSV: a column of time, ``t`` or ``t [s]``, one for each channel, ``crank_gyro`` or ``crank_gyro [rad/s]``, SI, and
    those of the inputs by their names, if they act. Bag: as ``sources.reader.mechanism_reader`` finds them.
    ``dt``: the grid's; default the shortest usual time between the samples of a channel. ``all_``: a channel without
    samples is an error; else only if none has any, and it is not among ``channels`` of the result. Raises BagError,
    SampleError, DescriptionError.
    """
    samples, warnings = ((_from_table(path, channels, model.inputs), []) if path.suffix.lower() == '.csv'
                         else _from_bag(path, model, channels, namespace, sources))
    missing = [channel for channel in channels if not samples.get(channel)]
    if missing and (all_ or len(missing) == len(channels)):
        about = [line for line in warnings if {*line.partition(':')[0].split(', ')} & {*missing}]
        raise BagError(str(path), '; '.join([f'no samples of {", ".join(missing)}', *about]))
    channels = tuple(channel for channel in channels if channel not in missing)
    series = [np.array(samples[channel], dtype=float) for channel in channels]
    t = _grid(path, series, dt)
    held = [_held(t + series_start(series), np.array(samples.get(f'input/{name}', []), dtype=float).reshape(-1, 2))
            for name in model.inputs]
    return SensorTable(t, np.column_stack([_nearest(t, item, series_start(series)) for item in series]),
                       np.column_stack(held) if held else np.zeros((len(t), 0)), tuple(warnings), channels)


def series_start(series: Sequence[np.ndarray]) -> float:
    """Time of the first sample, s."""
    return min(float(item[0, 0]) for item in series)


def _grid(path: Path, series: Sequence[np.ndarray], dt: float | None) -> np.ndarray:
    """Even times from 0 over all samples."""
    usual = [float(np.median(np.diff(np.unique(item[:, 0])))) for item in series if len(np.unique(item[:, 0])) > 1]
    if not usual:
        raise BagError(str(path), 'only one sample of each channel')
    step = dt or min(usual)
    count = int(round((max(float(item[-1, 0]) for item in series) - series_start(series)) / step)) + 1
    if not 2 <= count <= LONGEST:
        raise BagError(str(path), f'{count} instants of {step:g} s, expected 2 to {LONGEST}')
    return step * np.arange(count)


def _nearest(t: np.ndarray, samples: np.ndarray, start: float) -> np.ndarray:
    """Each sample at the nearest instant, the later of two at the same one."""
    values = np.full(len(t), np.nan)
    places = np.rint((samples[:, 0] - start) / (t[1] - t[0])).astype(int)
    inside = (places >= 0) & (places < len(t))
    values[places[inside]] = samples[inside, 1]
    return values


def _held(times: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """The last sample before each time, 0 before the first."""
    last = np.searchsorted(samples[:, 0], times + 1e-9, side='right') - 1
    return np.where(last >= 0, samples[np.maximum(last, 0), 1], 0.0) if len(samples) else np.zeros(len(times))


def _from_table(path: Path, channels: Sequence[str], inputs: Sequence[str]) -> dict[str, list[tuple[float, float]]]:
    try:
        with open(regular(path), newline='', encoding='utf-8-sig') as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BagError(str(path), f'is not a table: {said_of(error)}') from error
    heads = [head.partition('[')[0].strip() for head in rows[0]] if rows else []
    columns = {channel: channel for channel in channels} | {name: f'input/{name}' for name in inputs if name in heads}
    for wanted in ('t', *columns):
        if heads.count(wanted) != 1:
            raise BagError(str(path), f'{heads.count(wanted)} columns {wanted!r}, expected one; there are '
                           + ', '.join(heads))
    samples: dict[str, list[tuple[float, float]]] = {}
    at, time = {label: heads.index(name) for name, label in columns.items()}, heads.index('t')
    for line, row in enumerate(rows[1:], 2):
        try:
            t, numbers = float(row[time]), {label: float(row[place] or 'nan') for label, place in at.items()}
        except (ValueError, IndexError) as error:
            raise BagError(str(path), f'line {line}: expected numbers below t, {", ".join(columns)}') from error
        if abs(t) >= 2.0 ** 31:
            raise BagError(str(path), f'line {line}: t is {row[time]!r}, expected less than 2^31 s')
        for label, value in numbers.items():
            if np.isfinite(value) and np.isfinite(t):
                samples.setdefault(label, []).append((t, value))
    return {label: sorted(items) for label, items in samples.items()}


def _from_bag(path: Path, model: Model, channels: Sequence[str], namespace: str | None, sources: SourceMap | None
              ) -> tuple[dict[str, list[tuple[float, float]]], list[str]]:
    """Times, s, and values by channel, and what was odd; what cannot be read is an error."""
    reader = mechanism_reader(path, model, channels, namespace, sources)
    samples: dict[str, list[tuple[float, float]]] = {}
    origin: int | None = None
    for channel, stamp, value, _ in reader:
        origin = stamp if origin is None else origin        # seconds of an epoch would lose digits
        if np.isfinite(value):
            samples.setdefault(channel, []).append((1e-9 * (stamp - origin), value))
    for error in reader.refused:
        if not isinstance(error, UnusableSample) or error.source.own:
            raise error
    return {channel: sorted(items) for channel, items in samples.items()}, reader.warnings
