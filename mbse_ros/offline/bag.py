# SPDX-License-Identifier: Apache-2.0
"""A bag through the pipeline: what ``mbse estimate`` and ``mbse demo`` share."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..bags.bag import Bag, looked_at, open_bag
from ..bags.channel_samples import Sample
from ..bags.reader import SampleReader
from ..bags.series import TruthSeries, read_truth
from ..bags.topics import JOINT_STATE, TopicMap
from ..errors import BagError, SampleError, SettingError
from ..estimators.observer_settings import ObserverSettings
from ..machine import Machine
from ..payload.load_log import Load
from ..payload.mass import Cause
from ..payload.payload_settings import PayloadSettings
from ..settings import Settings
from ..sources.map import SourceMap
from ..sources.reader import SourceReader, sample_reader
from ..streams.interpolation import InterpolationSettings
from ..streams.pipeline import Output, Pipeline
from .checks.findings import (
    dropped_lines,
    elapsed,
    fit_lines,
    machine_lines,
    mass_lines,
    sample_lines,
    state_lines,
    stroke_lines,
    unused_lines,
)
from .checks.plausibility import judged
from .memory import Room

TUNING = {'interpolation': InterpolationSettings, 'observer': ObserverSettings, 'payload': PayloadSettings}
KINDS = {'float': 'a number', 'int': 'a whole number', 'str': 'a word', 'bool': 'true or false'}
FLAGS = {'true': True, 'false': False}
LONGEST_HOLE_NS = 100_000_000
LOOK = 50_000       # samples between two looks at the memory
COLUMNS = ('position', 'velocity', 'acceleration', 'pressure', 'payload')


@dataclass(frozen=True)
class Estimate:
    """Result of a bag: one Output per segment, what was odd about the bag, and the time it took.

    ``loads`` one after the other, s from the first estimate; ``budget``: what makes the mass at the end uncertain.
    """

    machine: Machine
    outputs: tuple[Output, ...]
    truth: TruthSeries | None
    warnings: tuple[str, ...]
    seconds: float
    loads: tuple[Load, ...]
    budget: tuple[Cause, ...]

    @property
    def stamps_ns(self) -> np.ndarray:
        """Stamps of the segments (n,), ns."""
        return np.array([o.state.stamp_ns for o in self.outputs], dtype=np.int64)

    @property
    def elapsed(self) -> np.ndarray:
        """Time from the start of the log to the stamps (n,), s; after a clock that was set back it continues."""
        return elapsed(self.outputs)

    @property
    def log_seconds(self) -> float:
        """Length of the log, s."""
        return float(self.elapsed[-1])


def parse_tuning(words: Sequence[str], kinds: Mapping[str, type[Settings]] = TUNING) -> dict[str, Any]:
    """Settings by room from words ``observer.pressure_psd=1.0``, a later one before an earlier; raises SettingError."""
    chosen: dict[str, dict[str, Any]] = {room: {} for room in kinds}
    for word in words:
        key, sign, text = word.partition('=')
        room, _, name = key.partition('.')
        if not sign or room not in kinds:
            raise SettingError('--set', word, f'<{"|".join(kinds)}>.<name>=<value>')
        known: dict[str, type] = {item.name: type(item.default)
                                  for item in fields(kinds[room])}     # type: ignore[arg-type]
        if name not in known:
            raise SettingError(key, text, 'one of ' + ', '.join(known))
        try:
            chosen[room][name] = FLAGS[text] if known[name] is bool else known[name](text)
        except (ValueError, KeyError):
            raise SettingError(key, text, KINDS[known[name].__name__]) from None
    return {room: _settings(room, kinds[room], values) for room, values in chosen.items()}


def _settings(room: str, kind: type[Settings], values: dict[str, Any]) -> Settings:
    try:
        return kind(**values)
    except SettingError as error:
        raise SettingError(f'{room}.{error.name}', error.value, error.expected) from None


def estimate_bag(bag: Bag | str | Path, machine: Machine, tuning: dict[str, Any], namespace: str | None = None,
                 backend: str = 'auto', sources: SourceMap | None = None) -> Estimate:
    """Run a bag's samples, in the order of the bag, through the pipeline; ``sources``: see ``sources.reader``.

    Samples that cannot be used are dropped and counted in the warnings. Raises BagError when no segment comes out, or
    the log does not fit into memory, DescriptionError for a map that does not fit the bag.
    """
    topics, source = TopicMap(namespace=namespace), open_bag(bag)
    reader = sample_reader(source, machine, namespace, sources)
    room, samples = Room(str(source.path)), []
    for count, sample in enumerate(reader, 1):
        samples.append(sample)
        if count % LOOK == 0:
            room.check(count, count)
    found = _through(samples, machine, tuning, backend, room)
    warnings = reader.warnings + dropped_lines(found.dropped.values())
    if not found.outputs:
        raise BagError(str(source.path), _nothing(found.pipeline, samples, warnings))
    warnings += machine_lines(frame_of(source, reader, topics), machine)
    return _judged(found, samples, warnings, read_truth(source, topics))


def estimate_samples(samples: Sequence[Sample], machine: Machine, tuning: dict[str, Any],
                     backend: str = 'auto') -> Estimate:
    """The same of samples in the order in which they came. Raises SampleError when no segment comes out."""
    found = _through(samples, machine, tuning, backend)
    warnings = dropped_lines(found.dropped.values())
    if not found.outputs:
        raise SampleError('samples', 0, len(samples), _nothing(found.pipeline, samples, warnings))
    return _judged(found, samples, warnings, None)


class _Passed(NamedTuple):
    """What came out of the pipeline, what it dropped, by the place in the log, and the time it took, s."""

    pipeline: Pipeline
    outputs: tuple[Output, ...]
    dropped: dict[int, SampleError]
    seconds: float


def _through(samples: Sequence[Sample], machine: Machine, tuning: dict[str, Any], backend: str,
             room: Room | None = None) -> _Passed:
    pipeline = Pipeline(machine, **tuning, backend=backend)
    outputs: list[Output] = []
    dropped: dict[int, SampleError] = {}
    start = time.perf_counter()
    for place, sample in enumerate(samples):
        try:
            outputs.extend(pipeline.add(*sample))
        except SampleError as error:
            dropped[place] = error
        if room is not None and place % LOOK == LOOK - 1:
            room.check(place + 1, len(samples))
    return _Passed(pipeline, tuple(outputs), dropped, time.perf_counter() - start)


def _judged(found: _Passed, samples: Sequence[Sample], warnings: list[str], truth: TruthSeries | None) -> Estimate:
    """The result with what was odd about it."""
    pipeline, outputs, machine = found.pipeline, found.outputs, found.pipeline.machine
    start_ns, gap_ns = outputs[0].segment.start_ns, round(1e9 * pipeline.interpolator.settings.max_gap)
    warnings += unused_lines(pipeline.interpolator.dropped) + sample_lines(samples, found.dropped, start_ns, gap_ns)
    t = elapsed(outputs)
    warnings += stroke_lines(samples, machine) + state_lines(outputs, t) + fit_lines(outputs, t)
    warnings += mass_lines(outputs, t, machine.payload_data.limits)
    warnings += [finding.line for finding in judged(samples, machine).findings]
    warnings += [line for line in (pipeline.observer.note, pipeline.interpolator.clocks.words) if line]
    loads = tuple(load.shifted(-1e-9 * outputs[0].state.stamp_ns) for load in pipeline.payload.loads)
    return Estimate(machine, outputs, truth, tuple(warnings), found.seconds, loads, pipeline.payload.budget)


def _nothing(pipeline: Pipeline, samples: Sequence[Sample], warnings: Sequence[str]) -> str:
    """Why no segment came out."""
    found = {sample.channel for sample in samples}
    silent = [channel for channel in pipeline.interpolator.waiting_for if channel not in found]
    reason = 'an estimate needs two samples of every sensor'
    if silent:
        reason = 'no sample of ' + ', '.join(silent)
    if silent and all(channel.startswith('command/') for channel in silent):
        reason += ' (--valve unknown needs no command)'
    reason += f'; {pipeline.interpolator.clocks.words}' if pipeline.interpolator.clocks.apart else ''
    others = [line for line in warnings if line.partition(':')[0] not in silent]
    return '; '.join([f'nothing to estimate: {reason} ({len(samples)} samples read)', *others])


def frame_of(source: Bag, reader: SampleReader | SourceReader, topics: TopicMap) -> str:
    """frame_id of the first position message: bags of this package have the machine's name there."""
    topic = topics.absolute(topics.position, reader.namespace)
    for raw in source.messages([topic]) if source.topics.get(topic) == JOINT_STATE else ():
        try:
            return looked_at(raw).header.frame_id
        except SampleError:
            continue
    return ''


def truth_at(truth: TruthSeries | None, machine: Machine, stamps_ns: np.ndarray) -> TruthSeries | None:
    """Truth at stamps (n,), ns: linear between those recorded, NaN outside them and in holes of more than 0.1 s.

    None where there is none, or it is of a machine with other independent coordinates or volumes.
    """
    if truth is None or (truth.cylinders, truth.volumes) != (machine.coordinates, machine.volumes):
        return None
    known, rows = np.unique(truth.stamp_ns, return_index=True)
    after = np.clip(np.searchsorted(known, stamps_ns), min(1, len(known) - 1), len(known) - 1)
    hole = (known[after] - known[np.maximum(after - 1, 0)] > LONGEST_HOLE_NS) & (known[after] != stamps_ns)
    t, wanted = (known - known[0]) * 1e-9, np.where(hole, np.nan, (stamps_ns - known[0]) * 1e-9)

    def at(column: np.ndarray) -> np.ndarray:
        flat = column[rows].reshape(len(known), -1).T
        values = np.array([np.interp(wanted, t, row, left=np.nan, right=np.nan) for row in flat])
        return values.T.reshape(len(stamps_ns), *column.shape[1:])

    columns = {name: at(getattr(truth, name)) for name in COLUMNS}
    return TruthSeries(stamps_ns, truth.cylinders, volumes=truth.volumes, **columns)
