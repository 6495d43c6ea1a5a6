# SPDX-License-Identifier: Apache-2.0
"""A bag through the pipeline: what ``mbse estimate`` and ``mbse demo`` share."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..bags.bag import open_bag
from ..bags.reader import read_samples
from ..bags.series import TruthSeries, read_truth
from ..bags.topics import TopicMap
from ..errors import BagError, SampleError, SettingError
from ..estimators.settings import ObserverSettings
from ..machine import Machine
from ..payload.settings import PayloadSettings
from ..settings import Settings
from ..streams.interpolation import InterpolationSettings
from ..streams.pipeline import Output, Pipeline

TUNING = {'interpolation': InterpolationSettings, 'observer': ObserverSettings, 'payload': PayloadSettings}


@dataclass(frozen=True)
class Estimate:
    """Result of a bag: one Output per segment, what was odd about the bag, and the time it took."""

    machine: Machine
    outputs: tuple[Output, ...]
    truth: TruthSeries | None
    warnings: tuple[str, ...]
    seconds: float

    @property
    def stamps_ns(self) -> np.ndarray:
        """Stamps of the segments (n,), ns."""
        return np.array([o.state.stamp_ns for o in self.outputs], dtype=np.int64)

    @property
    def log_seconds(self) -> float:
        """Length of the log, s."""
        return (self.outputs[-1].state.stamp_ns - self.outputs[0].segment.start_ns) * 1e-9


def parse_tuning(words: Sequence[str]) -> dict[str, Settings]:
    """Settings from words ``observer.pressure_psd=1.0``; raises SettingError."""
    chosen: dict[str, dict[str, Any]] = {room: {} for room in TUNING}
    for word in words:
        key, sign, text = word.partition('=')
        room, _, name = key.partition('.')
        if not sign or room not in TUNING:
            raise SettingError('--set', word, f'<{"|".join(TUNING)}>.<name>=<value>')
        known = {f.name: type(f.default) for f in fields(TUNING[room])}
        if name not in known:
            raise SettingError(key, text, 'one of ' + ', '.join(known))
        chosen[room][name] = _value(key, text, known[name])
    return {room: kind(**chosen[room]) for room, kind in TUNING.items()}


def _value(key: str, text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise SettingError(key, text, f'a {kind.__name__}') from None


def estimate_bag(bag: Path, machine: Machine, tuning: dict[str, Settings], namespace: str | None = None,
                 backend: str = 'auto') -> Estimate:
    """Run a bag's samples, in the order of the bag, through the pipeline.

    Samples that cannot be used are dropped and counted in the warnings. Raises BagError when no segment comes out.
    """
    topics, source = TopicMap(namespace=namespace), open_bag(bag)
    reader = read_samples(source, machine.channels, machine.commands, topics)
    samples = list(reader)
    pipeline = Pipeline(machine, **tuning, backend=backend)
    outputs: list[Output] = []
    dropped: list[SampleError] = []
    start = time.perf_counter()
    for channel, stamp_ns, value in samples:
        try:
            outputs.extend(pipeline.add(channel, stamp_ns, value))
        except SampleError as error:
            dropped.append(error)
    seconds = time.perf_counter() - start
    warnings = reader.warnings + _summary(dropped) + ([pipeline.observer.note] if pipeline.observer.note else [])
    if not outputs:
        waiting = ', '.join(pipeline.interpolator.waiting_for) or 'more samples'
        raise BagError(str(bag), f'nothing to estimate: no samples of {waiting} ({len(samples)} samples read)'
                       + ''.join(f'; {w}' for w in warnings))
    return Estimate(machine, tuple(outputs), read_truth(source, topics), tuple(warnings), seconds)


def _summary(dropped: list[SampleError]) -> list[str]:
    """First dropped sample of each channel, with how many followed."""
    counts: dict[str, list[SampleError]] = {}
    for error in dropped:
        counts.setdefault(error.channel, []).append(error)
    return [f'{len(errors)} samples of {channel} dropped, the first: {errors[0]}' for channel, errors in counts.items()]


def truth_at(estimate: Estimate) -> TruthSeries | None:
    """Truth at the stamps of the segments; None where there is none, or a stamp has none."""
    if estimate.truth is None:
        return None
    place = {int(stamp): i for i, stamp in enumerate(estimate.truth.stamp_ns)}
    rows = [place.get(int(stamp)) for stamp in estimate.stamps_ns]
    if None in rows:
        return None
    columns = ('stamp_ns', 'position', 'velocity', 'acceleration', 'pressure', 'payload')
    return replace(estimate.truth, **{name: getattr(estimate.truth, name)[rows] for name in columns})
