# SPDX-License-Identifier: Apache-2.0
"""A bag of other people's messages as one of this package's topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from ..bags.channel_samples import Sample
from ..bags.writer import BagWriter
from ..errors import BagError
from ..machine import Machine
from .map import SourceMap
from .reader import sample_reader


class ImportedBag(NamedTuple):
    """How many samples of which channels over which time, and what was odd about the bag."""

    samples: int
    channels: tuple[str, ...]
    seconds: float
    warnings: tuple[str, ...]


def import_bag(bag: str | Path, machine: Machine, folder: str | Path, sources: SourceMap | None = None,
               namespace: str | None = None, storage: str = 'mcap') -> ImportedBag:
    """Write the samples of a machine's channels into a new bag, on the package's own topics, in the order of the bag.

    Raises DescriptionError and BagError as ``sample_reader``, and BagError where nothing is found or written.
    """
    reader = sample_reader(bag, machine, namespace, sources)
    samples = list(reader)
    if not samples:
        raise BagError(str(bag), '; '.join(['has no sample of ' + machine.name, *reader.warnings]))
    with BagWriter(folder, storage, frame=machine.name) as writer:
        for stamp, together in _instants(samples):
            values = {sample.channel: sample.value for sample in together}
            commands = {name: value for name, value in values.items() if name.startswith('command/')}
            writer.write_samples(stamp, {name: value for name, value in values.items() if name not in commands},
                                 commands)
    stamps = [sample.stamp_ns for sample in samples]
    return ImportedBag(len(samples), tuple(dict.fromkeys(sample.channel for sample in samples)),
                       (max(stamps) - min(stamps)) * 1e-9, tuple(reader.warnings))


def _instants(samples: Iterable[Sample]) -> Iterator[tuple[int, list[Sample]]]:
    """Samples with one stamp that follow each other, none of a channel twice."""
    for stamp, together in groupby(samples, key=lambda sample: sample.stamp_ns):
        left = list(together)
        while left:
            first = list({sample.channel: sample for sample in reversed(left)}.values())[::-1]
            yield stamp, first
            left = [sample for sample in left if not any(sample is other for other in first)]
