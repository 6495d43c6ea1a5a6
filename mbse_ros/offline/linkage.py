# SPDX-License-Identifier: Apache-2.0
"""A log of a mechanism through the filter: what ``mbse estimate``, ``mbse smooth`` and Python share."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..bags.bag import Bag, decode, open_bag
from ..bags.messages import header, linkage_message, stamp_of
from ..bags.writer import BagWriter
from ..description.model import fingerprint
from ..dynamics.model import Model
from ..errors import BagError, SampleError
from ..filters.whiteness import overstated
from ..monitor.status import Measured, ObserverStatus
from ..report.text import cost, cost_line
from ..sources.map import SourceMap
from ..sources.reader import mechanism_reader
from ..streams.linkage import LinkageEstimate, LinkageSettings, LinkageStage
from .bag import parse_tuning

TRUTH = 'truth/joint_states'
USUAL_STEP = 0.005      # s, where the samples do not give one
Samples = list[tuple[int, dict[str, float]]]    # stamps, ns, and values by channel


@dataclass(frozen=True)
class LinkageLog:
    """Result of a bag: the last estimate of each instant, in order; ``truth`` (k, n) of all coordinates at them, NaN
    where the bag has none; the ``samples`` that were read; what was odd; the time it took, s; ``doubts``: those of the
    ``warnings`` by which the motion is not to be trusted, whatever its status."""

    model: Model
    stage: LinkageStage
    estimates: tuple[LinkageEstimate, ...]
    truth: np.ndarray
    samples: Samples
    warnings: tuple[str, ...]
    seconds: float
    doubts: tuple[str, ...] = ()

    @property
    def step(self) -> float:
        """Time between two instants, s."""
        return self.stage.step_ns * 1e-9

    @property
    def sampled(self) -> np.ndarray:
        """Which channels (s,) of the filter had a sample."""
        return np.asarray((self.column('measured') != Measured.MISSING).any(axis=0))

    @property
    def used(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(name for name, has in zip(self.stage.channels, self.sampled) if has)

    @property
    def log_seconds(self) -> float:
        """Length of the log, s."""
        return (self.estimates[-1].stamp_ns - self.estimates[0].stamp_ns) * 1e-9 + self.step

    def column(self, name: str) -> np.ndarray:
        """An attribute of all estimates (k, ...)."""
        return np.array([getattr(estimate, name) for estimate in self.estimates])

    def errors(self) -> dict[str, float]:
        """RMSE of the independent coordinates against the truth in the bag, by name; empty where there is none."""
        error = (self.column('q') - self.truth)[:, self.model.z]
        known = np.isfinite(error).all(axis=1)
        if not known.any():
            return {}
        return dict(zip(self.model.independent, np.sqrt(np.mean(error[known] ** 2, axis=0)).tolist()))

    def summary(self) -> list[str]:
        """The end, how well it fits, and the cost."""
        last, health = self.estimates[-1], self.stage.health()
        lines = [f'{last.estimator} on {self.model.description.name}: {", ".join(self.used)}; '
                 f'{len(self.estimates)} instants of {self.step:g} s']
        for k, name in enumerate(last.names):
            lines.append(f'  {name} {last.mean[k]:.6g} +- {math.sqrt(max(last.covariance[k, k], 0.0)):.2g}')
        lines += [f'  added force {name} {value:.5g}' for name, value in zip(self.model.independent, last.force)]
        lines += [f'not trusted: {doubt}' for doubt in self.doubts]
        status = 'not trusted' if self.doubts and last.status is ObserverStatus.OK else last.status.name.lower()
        lines.append(f'{status}{": " if last.reason else ""}{last.reason}; NIS per measurement '
                     f'{health.mean_nis:.3g}, whiteness {health.whiteness:.2g}')
        lines += [f'RMSE against the truth: {name} {value:.3g}' for name, value in self.errors().items()]
        return [*lines, cost_line(self.seconds, self.log_seconds)]

    def to_json(self, full: bool = False) -> dict[str, Any]:
        """The end, how well it fits, the cost, and in ``full`` the state over time."""
        last, health = self.estimates[-1], self.stage.health()
        result: dict[str, Any] = {
            'mechanism': self.model.description.name, 'estimator': last.estimator, 'channels': self.used,
            'instants': len(self.estimates), 'names': last.names, 'mean': last.mean,
            'stddev': np.sqrt(np.diag(last.covariance)), 'force': last.force, 'status': last.status.name.lower(),
            'dropped': self.stage.dropped, 'rmse': self.errors(), 'mean_nis': health.mean_nis,
            'whiteness': health.whiteness, 'cost': cost(self.seconds, self.log_seconds),
            **({'trusted': False, 'doubts': self.doubts} if self.doubts else {})}
        if full:
            result['state'] = {
                'stamp_ns': self.column('stamp_ns'), 'mean': [e.mean for e in self.estimates],
                'stddev': [np.sqrt(np.diag(e.covariance)) for e in self.estimates], 'force': self.column('force'),
                'status': [e.status.name.lower() for e in self.estimates]}
        return result

    def write_bag(self, folder: Path) -> None:
        """States and all coordinates as a bag, as the node would publish them."""
        name, model, machine = self.model.description.name, self.model, fingerprint(self.model.description)
        with BagWriter(folder, frame=name) as writer:
            for e in self.estimates:
                kind, message = linkage_message(e, name, self.stage.channels, machine)
                writer.write('linkage_state', kind, e.stamp_ns, message)
                writer.write('estimated/joint_states', 'sensor_msgs/msg/JointState', e.stamp_ns, {
                    'header': header(e.stamp_ns, name), 'name': list(model.names), 'position': e.q, 'velocity': e.qd})


def linkage_settings(words: Sequence[str]) -> LinkageSettings:
    """Settings from words ``linkage.gate=0.99``, as ``parse_tuning`` has them; raises SettingError."""
    return parse_tuning(words, {'linkage': LinkageSettings})['linkage']


def estimate_linkage_bag(bag: Bag | str | Path, model: Model, settings: LinkageSettings, sensors: Sequence[str] = (),
                         step: float | None = None, namespace: str | None = None, backend: str = 'auto',
                         sources: SourceMap | None = None) -> LinkageLog:
    """Run a bag's samples, in the order of the bag, through the stage; step: default the fastest sensor's period.

    ``sources``: map of messages of other packages (docs/sources.md); None: the section of the mechanism's file, if the
    bag has one of its topics, else the package's own topics. Raises BagError when nothing can be estimated,
    SettingError, DescriptionError (map).
    """
    source = open_bag(bag)
    probe = LinkageStage(model, settings, sensors, step or USUAL_STEP, backend)
    reader = mechanism_reader(source, model, probe.channels, namespace, sources)
    samples = list(reader.instants())
    warnings = reader.warnings
    if not samples:
        raise BagError(str(source.path), '; '.join(['nothing to estimate: no samples on ' + ', '.join(reader.topics),
                                                    *warnings]))
    stage = probe if step else LinkageStage(model, settings, sensors, _period(samples), backend)
    estimates, seconds = through(stage, samples)
    if not estimates:
        raise BagError(str(source.path), '; '.join(['nothing to estimate: no sample of ' + ', '.join(stage.channels),
                                                    *warnings]))
    doubts = doubts_of(stage, estimates, samples)
    return LinkageLog(model, stage, estimates, _truth(source, model, reader.namespace, estimates), samples,
                      (*warnings, *oddities(stage, estimates), *doubts), seconds, doubts)


def estimate_linkage_samples(samples: Samples, model: Model, settings: LinkageSettings, sensors: Sequence[str] = (),
                             step: float | None = None, backend: str = 'auto') -> LinkageLog:
    """The same of samples by stamps, ns. Raises SampleError when nothing can be estimated, SettingError."""
    stage = LinkageStage(model, settings, sensors, step or _period(samples), backend)
    estimates, seconds = through(stage, samples)
    if not estimates:
        raise SampleError('samples', samples[0][0] if samples else 0, 'no value',
                          'samples of ' + ', '.join(stage.channels))
    doubts = doubts_of(stage, estimates, samples)
    return LinkageLog(model, stage, estimates, np.full((len(estimates), len(model.names)), np.nan), samples,
                      (*oddities(stage, estimates), *doubts), seconds, doubts)


def through(stage: LinkageStage, samples: Samples) -> tuple[tuple[LinkageEstimate, ...], float]:
    """The last estimate of each instant, in order, and the time it took, s."""
    last: dict[int, LinkageEstimate] = {}
    start = time.perf_counter()
    for stamp, values in samples:
        for estimate in stage.add(stamp, values):
            last[estimate.stamp_ns] = estimate
    return tuple(last[stamp] for stamp in sorted(last)), time.perf_counter() - start


def oddities(stage: LinkageStage, estimates: Sequence[LinkageEstimate]) -> list[str]:
    """Samples that were dropped; how long the filter coasted or was lost, when first, and why: a line each."""
    lines, step = [f'{count} samples dropped: {reason}' for reason, count in stage.dropped.items()], stage.step_ns
    for status, word in ((ObserverStatus.COASTING, 'coasted'), (ObserverStatus.LOST, 'was lost')):
        if found := [e for e in estimates if e.status is status]:
            lines.append(f'the filter {word} for {len(found) * step * 1e-9:.2f} s in all, first at '
                         f't = {(found[0].stamp_ns - estimates[0].stamp_ns) * 1e-9:.2f} s'
                         + f': {found[0].reason}' * bool(found[0].reason))
    return lines


def doubts_of(stage: LinkageStage, estimates: Sequence[LinkageEstimate], samples: Samples) -> tuple[str, ...]:
    """Channels whose noise is far smaller than stated: a line each."""
    innovation = np.array([estimate.innovation for estimate in estimates])
    return tuple(line for k, name in enumerate(stage.channels)
                 for line in overstated(name, innovation[:, k], np.array([values[name] for _, values in samples
                                                                          if name in values]), stage.stddev[k]))


def _period(samples: Samples) -> float:
    """Period of the fastest sensor, s, to a microsecond."""
    stamps: dict[str, list[int]] = {}
    for stamp, values in samples:
        for channel in values:
            if not channel.startswith('input/'):
                stamps.setdefault(channel, []).append(stamp)
    periods = [np.median(np.diff(np.unique(series))) for series in stamps.values() if len(series) > 1]
    return max(1e-4, round(min(periods) * 1e-3) * 1e-6) if periods else USUAL_STEP


def _truth(source: Bag, model: Model, space: str, estimates: Sequence[LinkageEstimate]) -> np.ndarray:
    """True coordinates (k, n) where a simulated mechanism recorded them."""
    places = {estimate.stamp_ns: i for i, estimate in enumerate(estimates)}
    truth = np.full((len(estimates), len(model.names)), np.nan)
    for raw in source.messages([f'{space}/{TRUTH}']):
        try:
            message = decode(raw)
        except SampleError:
            continue
        place = places.get(stamp_of(message))
        if place is not None:
            values = dict(zip(message.name, message.position))
            truth[place] = [values.get(name, np.nan) for name in model.names]
    return truth
