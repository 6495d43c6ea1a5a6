# SPDX-License-Identifier: Apache-2.0
"""Where each channel of a machine comes from in a bag: topic, field, rate, range, and what is missing or odd."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...bags.bag import Bag, open_bag
from ...bags.channel_samples import own_place
from ...bags.reader import BagReader
from ...bags.topics import TopicMap
from ...description.coordinate_units import unit_and_scale
from ...machine import Machine
from ...progress import lengthy
from ...report.text import number
from ...sources.map import SourceMap
from ...sources.reader import SourceReader, sample_reader
from ..log_samples import LogSamples
from .check_bag import Checked, check_read

COLUMNS = 'channel', 'topic', 'field', 'Hz', 'range', 'odd'
MISSING = 'missing'


class ChannelRow(NamedTuple):
    """A channel: where it is read, how often it is sampled, Hz, its lowest and highest value in ``unit``, NaN without
    a sample, and kinds of findings about it."""

    channel: str
    topic: str
    field: str
    rate: float
    low: float
    high: float
    unit: str
    odd: tuple[str, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """As text, under COLUMNS."""
        known = np.isfinite(self.low)
        return (self.channel, self.topic, self.field, number(self.rate) if self.rate else '',
                f'{number(self.low)} to {number(self.high)} {self.unit}' if known else '', ', '.join(self.odd))


@lengthy('reading and judging the bag')
def channel_table(bag: Bag | str | Path, machine: Machine, sources: SourceMap | None = None
                  ) -> tuple[list[ChannelRow], Checked]:
    """A row for each channel and command of a machine, and what is wrong with the data. Raises as ``check_bag``."""
    reader = sample_reader(open_bag(bag), machine, None, sources)
    samples = LogSamples.read(reader)
    checked = check_read(reader, samples, machine)
    return [_row(name, reader, samples, machine, checked) for name in reader.channels], checked


def _row(name: str, reader: BagReader, samples: LogSamples, machine: Machine, checked: Checked) -> ChannelRow:
    topics = TopicMap()
    topic, field = own_place(name, topics)
    topic = topics.absolute(topic, reader.namespace)
    if isinstance(reader, SourceReader):
        topic, field = reader.places.get(name, (topic, field))
    unit, scale = ('V', 1.0) if name.startswith('command/') else unit_and_scale(machine.description, name)
    if name not in samples.names:
        return ChannelRow(name, topic, field, 0.0, np.nan, np.nan, unit, (MISSING,))
    column = samples[name]
    values = column.values[np.isfinite(column.values)] * scale
    span = 1e-9 * float(np.ptp(column.stamps))
    rate = (len(column.stamps) - 1) / span if span > 0.0 else 0.0
    low, high = (float(values.min()), float(values.max())) if values.size else (np.nan, np.nan)
    odd = dict.fromkeys(item.kind for item in checked.findings if name in item.channels)
    return ChannelRow(name, topic, field, rate, low, high, unit, tuple(odd))
