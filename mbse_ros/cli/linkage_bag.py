# SPDX-License-Identifier: Apache-2.0
"""A bag of a mechanism's sensors through the linkage stage."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from ..bags.bag import Bag, decode, open_bag
from ..bags.messages import stamp_of
from ..dynamics.model import Model
from ..errors import BagError, SampleError, SettingError
from ..streams.linkage import LinkageEstimate, LinkageSettings, LinkageStage
from ..streams.linkage.sources import Sources

TRUTH = 'truth/joint_states'
KINDS = {'float': 'a number', 'int': 'a whole number', 'str': 'a word'}
Samples = list[tuple[int, dict[str, float]]]


@dataclass(frozen=True)
class LinkageLog:
    """Result of a bag: the last estimate of each instant, in order; ``truth`` (k, n) of all coordinates at them, NaN
    where the bag has none; what was odd; the time it took, s."""

    model: Model
    stage: LinkageStage
    estimates: tuple[LinkageEstimate, ...]
    truth: np.ndarray
    warnings: tuple[str, ...]
    seconds: float

    @property
    def log_seconds(self) -> float:
        """Length of the log, s."""
        return (self.estimates[-1].stamp_ns - self.estimates[0].stamp_ns) * 1e-9 + self.stage.step_ns * 1e-9


def linkage_settings(words: Sequence[str], **given: str) -> LinkageSettings:
    """Settings from words ``linkage.gate=0.99``; raises SettingError."""
    kinds = {item.name: type(item.default) for item in fields(LinkageSettings)}
    values: dict[str, Any] = dict(given)
    for word in words:
        key, sign, text = word.partition('=')
        room, _, name = key.partition('.')
        if not sign or room != 'linkage' or name not in kinds:
            raise SettingError('--set', word, 'linkage.<name>=<value>, name one of ' + ', '.join(kinds))
        try:
            values[name] = kinds[name](text)
        except ValueError:
            raise SettingError(key, text, KINDS[kinds[name].__name__]) from None
    return LinkageSettings(**values)


def estimate_linkage_bag(bag: Path, model: Model, settings: LinkageSettings, sensors: Sequence[str] = (),
                         step: float | None = None, unstamped: Sequence[str] = (), namespace: str | None = None,
                         backend: str = 'auto') -> LinkageLog:
    """Run a bag's samples, in the order of the bag, through the stage; ``step``: default the fastest sensor's period.

    Raises BagError when nothing can be estimated, SettingError.
    """
    source = open_bag(bag)
    probe = LinkageStage(model, settings, sensors, step or 0.005, backend)
    sources = Sources(model.description, probe.channels, model.inputs, unstamped)
    space = namespace_of(source, sources, namespace)
    samples, warnings = read_samples(source, sources, space)
    if not samples:
        raise BagError(str(bag), 'nothing to estimate: no samples on ' + ', '.join(sources.topics))
    stage = probe if step else LinkageStage(model, settings, sensors, _period(samples), backend)
    last: dict[int, LinkageEstimate] = {}
    start = time.perf_counter()
    for stamp, values in samples:
        for estimate in stage.add(stamp, values):
            last[estimate.stamp_ns] = estimate
    seconds = time.perf_counter() - start
    if not last:
        raise BagError(str(bag), 'nothing to estimate: no sample of ' + ', '.join(stage.channels))
    estimates = tuple(last[stamp] for stamp in sorted(last))
    stage.health()
    warnings += [f'{count} samples dropped: {reason}' for reason, count in stage.dropped.items()]
    warnings += [f'{count} of {len(estimates)} instants {name}' for name, count in
                 Counter(e.status.name for e in estimates).items() if name not in ('OK', 'STARTING')]
    return LinkageLog(model, stage, estimates, _truth(source, model, space, estimates), tuple(warnings), seconds)


def namespace_of(source: Bag, sources: Sources, given: str | None) -> str:
    """Namespace of the sensors' topics in a bag."""
    if given is not None:
        return '/' + given.strip('/') if given.strip('/') else ''
    spaces = {topic[:-len(name) - 1] for topic in source.topics for name in sources.topics
              if topic.endswith('/' + name)}
    if len(spaces) > 1:
        raise BagError(str(source.path), 'several namespaces: ' + ', '.join(sorted(s or '/' for s in spaces)))
    return spaces.pop() if spaces else ''


def read_samples(source: Bag, sources: Sources, space: str) -> tuple[Samples, list[str]]:
    """Samples in the order of the bag, on topics under a namespace, and what could not be read."""
    kinds = {f'{space}/{name}': kind for name, kind in sources.topics.items()}
    missing = [topic for topic in kinds if topic not in source.topics]
    warnings = [f'{topic}: not in the bag' for topic in missing]
    unreadable: Counter[str] = Counter()
    found: Samples = []
    for raw in source.messages([topic for topic in kinds if topic in source.topics]):
        try:
            topic, message = raw.topic[len(space) + 1:], decode(raw)
            stamp = raw.stamp_ns if topic in sources.values else stamp_of(message)      # without one: the recorder's
            found.append((stamp, sources.samples(topic, message)))
        except (SampleError, ValueError, AttributeError) as error:
            unreadable[f'{raw.topic}: {error}'] += 1
    return found, warnings + [f'{count} unreadable: {text}' for text, count in unreadable.most_common(5)]


def _period(samples: Samples) -> float:
    """Period of the fastest sensor, s, to a microsecond."""
    stamps: dict[str, list[int]] = {}
    for stamp, values in samples:
        for channel in values:
            if not channel.startswith('input/'):
                stamps.setdefault(channel, []).append(stamp)
    periods = [np.median(np.diff(np.unique(series))) for series in stamps.values() if len(series) > 1]
    return max(1e-4, round(min(periods) * 1e-3) * 1e-6) if periods else 0.005


def _truth(source: Bag, model: Model, space: str, estimates: Sequence[LinkageEstimate]) -> np.ndarray:
    """True coordinates (k, n) where a simulated mechanism told them."""
    places = {estimate.stamp_ns: i for i, estimate in enumerate(estimates)}
    truth = np.full((len(estimates), len(model.names)), np.nan)
    topic = f'{space}/{TRUTH}'
    for raw in source.messages([topic]) if topic in source.topics else ():
        try:
            message = decode(raw)
        except SampleError:
            continue
        place = places.get(stamp_of(message))
        if place is not None:
            values = dict(zip(message.name, message.position))
            truth[place] = [values.get(name, np.nan) for name in model.names]
    return truth
