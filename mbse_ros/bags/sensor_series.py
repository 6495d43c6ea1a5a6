# SPDX-License-Identifier: Apache-2.0
"""Samples of a mechanism's sensors out of a bag or a CSV table, on an even grid of time."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BagError
from .bag import Bag, decode
from .messages import stamp_of
from .topics import JOINT_STATE

FLOAT, IMU = 'std_msgs/msg/Float64', 'sensor_msgs/msg/Imu'
LONGEST = 2_000_000     # instants


@dataclass(frozen=True)
class SensorTable:
    """Times (k,), s from the first sample, and values (k, s) of the channels, SI, NaN where there is no sample."""

    t: np.ndarray
    values: np.ndarray


def read_sensors(path: Path, channels: Mapping[str, str], dt: float | None = None) -> SensorTable:
    """Samples of channels (name -> kind of its sensor), one channel ``sensor.x`` for each component.

    CSV: a column of time, ``t`` or ``t [s]``, and one for each channel, ``crank_gyro`` or ``crank_gyro [rad/s]``, SI.
    Bag: topics whose last part is the sensor's name (Imu, or Float64 with the channel's name), and JointState messages
    that name the sensor. ``dt``: the grid's; default the shortest usual time between the samples of a channel.
    Raises BagError.
    """
    samples = _from_table(path, tuple(channels)) if path.suffix.lower() == '.csv' else _from_bag(path, channels)
    missing = [channel for channel in channels if not samples.get(channel)]
    if missing:
        raise BagError(str(path), f'no samples of {", ".join(missing)}')
    return _gridded(path, [np.array(samples[channel], dtype=float) for channel in channels], dt)


def _gridded(path: Path, series: Sequence[np.ndarray], dt: float | None) -> SensorTable:
    """Each sample at the nearest instant of the grid, the later of two at the same one."""
    usual = [float(np.median(np.diff(np.unique(item[:, 0])))) for item in series if len(np.unique(item[:, 0])) > 1]
    if not usual:
        raise BagError(str(path), 'only one sample of each channel')
    step, first = dt or min(usual), min(item[0, 0] for item in series)
    count = int(round((max(item[-1, 0] for item in series) - first) / step)) + 1
    if count > LONGEST:
        raise BagError(str(path), f'{count} instants of {step:g} s, expected at most {LONGEST}')
    values = np.full((count, len(series)), np.nan)
    for k, item in enumerate(series):
        places = np.rint((item[:, 0] - first) / step).astype(int)
        inside = (places >= 0) & (places < count)
        values[places[inside], k] = item[inside, 1]
    return SensorTable(step * np.arange(count), values)


def _from_table(path: Path, channels: Sequence[str]) -> dict[str, list[tuple[float, float]]]:
    try:
        with open(path, newline='', encoding='utf-8-sig') as file:
            rows = [row for row in csv.reader(file) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise BagError(str(path), f'is no table: {error}') from error
    heads = [head.partition('[')[0].strip() for head in rows[0]] if rows else []
    for wanted in ('t', *channels):
        if heads.count(wanted) != 1:
            raise BagError(str(path), f'{heads.count(wanted)} columns {wanted!r}, expected one; there are '
                           + ', '.join(heads))
    samples: dict[str, list[tuple[float, float]]] = {channel: [] for channel in channels}
    at = {name: heads.index(name) for name in ('t', *channels)}
    for line, row in enumerate(rows[1:], 2):
        try:
            numbers = {name: float(row[place] or 'nan') for name, place in at.items()}
        except (ValueError, IndexError) as error:
            raise BagError(str(path), f'line {line}: expected numbers in the columns {", ".join(at)}') from error
        for channel in channels:
            if np.isfinite(numbers[channel]):
                samples[channel].append((numbers['t'], numbers[channel]))
    return samples


def _from_bag(path: Path, channels: Mapping[str, str]) -> dict[str, list[tuple[float, float]]]:
    bag, samples = Bag(path), {channel: [] for channel in channels}
    sensors = {channel.partition('.')[0] for channel in channels}
    topics = [topic for topic, kind in bag.topics.items() if kind == JOINT_STATE or topic.rpartition('/')[2] in (
        *channels, *sensors)]
    origin: int | None = None
    for raw in bag.messages(topics):
        message, last = decode(raw), raw.topic.rpartition('/')[2]
        stamp = raw.stamp_ns if raw.msgtype == FLOAT else stamp_of(message)
        origin = stamp if origin is None else origin
        for channel, value in _values(raw.msgtype, last, message, channels):
            samples[channel].append((1e-9 * (stamp - origin), value))
    return {channel: sorted(items) for channel, items in samples.items()}


def _values(msgtype: str, last: str, message: Any, channels: Mapping[str, str]) -> list[tuple[str, float]]:
    """Values of channels in one message."""
    if msgtype == JOINT_STATE:
        at = {name: k for k, name in enumerate(message.name)}
        pairs = [(channel, message.velocity if kind == 'rate' else message.position, at[channel])
                 for channel, kind in channels.items() if channel in at]
        return [(channel, float(values[k])) for channel, values, k in pairs if k < len(values)]
    if msgtype == IMU:
        mine = [channel for channel in channels if channel.partition('.')[0] == last]
        turning = bool(mine) and channels[mine[0]] == 'gyro'
        vector = message.angular_velocity if turning else message.linear_acceleration
        axes = 'z' if turning and len(mine) == 1 else 'xyz'
        return [(channel, float(getattr(vector, axes[k]))) for k, channel in enumerate(mine)]
    return [(last, float(message.data))] if msgtype == FLOAT and last in channels else []
