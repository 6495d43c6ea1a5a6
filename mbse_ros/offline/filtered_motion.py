# SPDX-License-Identifier: Apache-2.0
"""A log of a mechanism through the filter: what ``mbse estimate``, ``mbse smooth`` and Python share."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..bags.bag import Bag, decode, open_bag
from ..bags.messages import header, linkage_message, stamp_of
from ..bags.writer import BagWriter
from ..description.model import fingerprint
from ..dynamics.model import Model
from ..errors import BagError, MbseError, SampleError
from ..filters.whiteness import overstated
from ..monitor.faults import Measured, ObserverStatus
from ..report.text import cost, cost_line
from ..sources.map import SourceMap
from ..sources.reader import mechanism_reader
from ..streams.linkage import LinkageEstimate, LinkageSettings, LinkageStage
from .advice import advice
from .bag import parse_tuning
from .checks.log_verdict import COPES
from .log_samples import LogSamples
from .motion_estimate import MotionEstimate
from .track import coasting_lines

TRUTH = 'truth/joint_states'
DRIFT = 0.1             # of a step, by which its samples may leave the grid over a log
USUAL_STEP = 0.005      # s, where the samples do not give one
SUFFICIENT = 'kinematic'        # the filter that needs sensors of positions and of accelerations
Samples = list[tuple[int, dict[str, float]]]    # stamps, ns, and values by channel
Axis = tuple[float, int]        # a time, s, and its stamp, ns


@dataclass(frozen=True, repr=False, kw_only=True)
class FilteredMotion(MotionEstimate):
    """Result of a log: the motion by the last estimate of each instant; ``stage`` that gave it, and of what
    ``samples``; the ``seconds`` it took; ``doubts``: those of the ``warnings`` by which the motion is not to be
    trusted, whatever its status; ``estimates``: as the stage gave them."""

    stage: LinkageStage
    estimates: tuple[LinkageEstimate, ...]
    samples: Samples
    seconds: float
    doubts: tuple[str, ...] = ()

    @property
    def step(self) -> float:
        """Time between two instants, s."""
        return self.stage.step_ns * 1e-9

    @property
    def log_seconds(self) -> float:
        """Length of the log, s."""
        return (self.estimates[-1].stamp_ns - self.estimates[0].stamp_ns) * 1e-9 + self.step

    def column(self, name: str) -> np.ndarray:
        """An attribute of all estimates (k, ...)."""
        return column(self.estimates, name)

    def errors(self) -> dict[str, float]:
        """RMSE of the independent coordinates against the truth in the bag, by name; empty where there is none."""
        error = (self.q - self.true_q)[:, self.model.z]
        known = np.isfinite(error).all(axis=1)
        if not known.any():
            return {}
        return dict(zip(self.model.independent, np.sqrt(np.mean(error[known] ** 2, axis=0)).tolist()))

    def summary(self) -> list[str]:
        """The end, how well it fits, and the cost."""
        last, health = self.estimates[-1], self.stage.health()
        lines = [f'{last.estimator} on {self.model.description.name}: {", ".join(self.channels)}; '
                 f'{len(self.estimates)} instants of {self.step:g} s']
        for k, name in enumerate(last.names):
            lines.append(f'  {name} {last.mean[k]:.6g} +- {math.sqrt(max(last.covariance[k, k], 0.0)):.2g}')
        lines += [f'  added force {name} {value:.5g}' for name, value in zip(self.model.independent, last.force)]
        status = 'not trusted' if self.doubts and last.status is ObserverStatus.OK else last.status.name.lower()
        lines += [*self._distrust, f'{status}{": " if last.reason else ""}{last.reason}; NIS per measurement '
                  f'{health.mean_nis:.3g}, whiteness {health.whiteness:.2g}']
        lines += [f'RMSE against the truth: {name} {value:.3g}' for name, value in self.errors().items()]
        return [*lines, cost_line(self.seconds, self.log_seconds)]

    def _values(self, full: bool) -> dict[str, Any]:
        """The end, how well it fits, the cost, and in ``full`` the state over time."""
        last, health = self.estimates[-1], self.stage.health()
        result: dict[str, Any] = {
            'mechanism': self.model.description.name, 'estimator': last.estimator, 'channels': self.channels,
            'instants': len(self.estimates), 'names': last.names, 'mean': last.mean,
            'stddev': np.sqrt(np.diag(last.covariance)), 'force': last.force, 'status': last.status.name.lower(),
            'dropped': self.stage.dropped, 'rmse': self.errors(), 'mean_nis': health.mean_nis,
            'whiteness': health.whiteness, 'cost': cost(self.seconds, self.log_seconds), **self._trust}
        if full:
            result['state'] = {
                'stamp_ns': self.column('stamp_ns'), 'mean': [e.mean for e in self.estimates],
                'stddev': [np.sqrt(np.diag(e.covariance)) for e in self.estimates], 'force': self.column('force'),
                'status': self.status}
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


def column(estimates: Sequence[LinkageEstimate], name: str) -> np.ndarray:
    """An attribute of all of them (k, ...)."""
    return np.array([getattr(estimate, name) for estimate in estimates])


def linkage_settings(words: Sequence[str]) -> LinkageSettings:
    """Settings from words ``linkage.gate=0.99``, as ``parse_tuning`` has them; raises SettingError."""
    return parse_tuning(words, {'linkage': LinkageSettings})['linkage']


def estimate_linkage_bag(bag: Bag | str | Path, model: Model, settings: LinkageSettings, sensors: Sequence[str] = (),
                         step: float | None = None, namespace: str | None = None, backend: str = 'auto',
                         sources: SourceMap | None = None) -> FilteredMotion:
    """Run a bag's samples, in the order of the bag, through the stage; step: default the fastest sensor's period.

    ``sources``: map of messages of other packages (docs/sources.md); None: the section of the mechanism's file, if the
    bag has one of its topics, else the package's own topics. Raises BagError when nothing can be estimated,
    SettingError, DescriptionError (map).
    """
    source = open_bag(bag)
    probe = LinkageStage(model, settings, sensors, step or USUAL_STEP, backend)
    reader = mechanism_reader(source, model, probe.channels, namespace, sources)
    samples = list(reader.instants())
    nothing = partial(_no_estimate, str(source.path), reader.warnings)
    if not samples:
        raise nothing('no samples on ', reader.topics)
    if settings.estimator == SUFFICIENT:        # what never comes determines nothing
        sent = {channel.partition('.')[0] for _, values in samples for channel in values}
        found = tuple(name for name in sensors or model.description.mechanical_sensors if name in sent)
        probe = LinkageStage(model, settings, found, step or USUAL_STEP, backend)
        sensors = found
    stage = probe if step else LinkageStage(model, settings, sensors, _period(samples), backend)
    return filtered_motion(stage, samples, (0.0, min(stamp for stamp, _ in samples)), partial(nothing, 'no sample of '),
                           reader.warnings, partial(_truth, source, model, reader.namespace))


def _no_estimate(path: str, warnings: Sequence[str], what: str, names: Sequence[str]) -> BagError:
    return BagError(path, '; '.join([f'nothing to estimate: {what}{", ".join(names)}', *warnings]))


def estimate_linkage_samples(samples: Samples, axis: Axis, model: Model, settings: LinkageSettings,
                             sensors: Sequence[str] = (), step: float | None = None, backend: str = 'auto'
                             ) -> FilteredMotion:
    """The same of samples by stamps, ns. Raises SampleError when nothing can be estimated, SettingError."""
    stage = LinkageStage(model, settings, sensors, step or _period(samples), backend)
    return filtered_motion(stage, samples, axis, no_sample)


def no_sample(channels: Sequence[str]) -> SampleError:
    """The error of samples that give no estimate."""
    return SampleError('samples', 0, 'no value', f'samples of {", ".join(channels)}')


def filtered_motion(stage: LinkageStage, samples: Samples, axis: Axis, nothing: Callable[[Sequence[str]], MbseError],
                    warnings: Sequence[str] = (), truth: Callable[[np.ndarray], np.ndarray] | None = None,
                    since: int | None = None) -> FilteredMotion:
    """The samples through the stage, from the state that it has; ``nothing``: the error where that gives no estimate;
    ``truth`` at stamps; ``since``: the first stamp that is wanted, of channels without samples, too."""
    last: dict[int, LinkageEstimate] = {}
    start = time.perf_counter()
    for stamp, values in samples:
        for estimate in stage.add(stamp, values):
            last[estimate.stamp_ns] = estimate
    found = tuple(last[stamp] for stamp in sorted(last) if since is None or stamp > since - stage.step_ns // 2)
    seconds = time.perf_counter() - start
    if not found:
        raise nothing(stage.channels)
    columns = {name: column(found, name) for name in ('q', 'qd', 'qdd', 'mean', 'force')}
    of, has = partial(column, found), (column(found, 'measured') != Measured.MISSING).any(axis=0)
    has |= since is not None
    stamps, channels = of('stamp_ns'), tuple(name for name, sent in zip(stage.channels, has) if sent)
    status = column(found, 'status')
    tried = advice(stage.channels, (stamps - stamps[0]) * 1e-9, of('innovation'), of('innovation_stddev'), of('used'),
                   status == ObserverStatus.LOST, stage.step_ns * 1e-9)
    odd, faint = [*oddities(stage, found), *tried], doubts_of(stage, found, samples)
    wrong = wrong_lines(stage.model, channels, samples) if odd or faint else ()
    return FilteredMotion(
        **columns, model=stage.model, estimator=found[-1].estimator, names=found[-1].names,
        t=axis[0] + (int(stamps[0]) - axis[1]) * 1e-9 + (stamps - stamps[0]) * 1e-9,
        stddev=np.sqrt(np.maximum(np.diagonal(of('covariance'), axis1=1, axis2=2), 0.0)),
        force_names=found[-1].force_names, channels=channels,
        covariances=of('covariance'), innovation=of('innovation')[:, has],
        innovation_stddev=of('innovation_stddev')[:, has],
        used=of('used')[:, has], true_q=np.full(columns['q'].shape, np.nan) if truth is None else truth(stamps),
        status=tuple(e.status.name.lower() for e in found), warnings=(*wrong, *warnings, *odd, *faint),
        stage=stage, estimates=found, samples=samples, seconds=seconds, doubts=(*wrong, *faint))


def oddities(stage: LinkageStage, estimates: Sequence[LinkageEstimate]) -> list[str]:
    """Samples that were dropped; how long the filter coasted or was lost, when first, and why: a line each."""
    stamps, reasons = column(estimates, 'stamp_ns'), [estimate.reason for estimate in estimates]
    return [*(f'{count} samples dropped: {reason}' for reason, count in stage.dropped.items()),
            *coasting_lines('filter', column(estimates, 'status'), np.full(len(stamps), stage.step_ns),
                            (stamps - stamps[0]) * 1e-9, reasons.__getitem__)]


def wrong_lines(model: Model, channels: Sequence[str], samples: Samples) -> tuple[str, ...]:
    """What is wrong with the samples, as ``check_data`` finds it, which explains what is odd: a line each."""
    from .checks.mechanism_rules import mechanism_verdict  # here: a sound log does not need it
    single = ((name, stamp, value) for stamp, values in samples for name, value in values.items())
    verdict = mechanism_verdict(LogSamples.of(single), model, channels)
    return tuple(item.line for item in verdict.findings if item.kind not in COPES)


def wrong_units(model: Model, channels: Sequence[str], t: np.ndarray, measured: np.ndarray) -> tuple[str, ...]:
    """The same of measurements (k, s) at times (k,), s."""
    stamps = np.rint((t - t[0]) * 1e9).astype(np.int64).tolist()
    return wrong_lines(model, channels, [(stamp, {name: value for name, value in zip(channels, row) if value == value})
                                         for stamp, row in zip(stamps, measured.tolist())])


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
    steps = [np.diff(np.unique(series)) for series in stamps.values() if len(series) > 1]
    return max(1e-4, step_of(min(steps, key=np.median))) if steps else USUAL_STEP


def step_of(intervals: np.ndarray) -> float:
    """The step, s, of so many intervals, ns: their median, to a microsecond unless even ones drift from it then."""
    usual = float(np.median(intervals))
    tidy = round(usual * 1e-3) * 1e3
    drift = len(intervals) * abs(usual - tidy) > DRIFT * usual and np.ptp(intervals) <= 1
    return round(usual) * 1e-9 if drift else tidy * 1e3 * 1e-12


def _truth(source: Bag, model: Model, space: str, stamps: np.ndarray) -> np.ndarray:
    """True coordinates (k, n) at stamps (k,), ns, where a simulated mechanism recorded them."""
    places = {stamp: i for i, stamp in enumerate(stamps.tolist())}
    truth = np.full((len(stamps), len(model.names)), np.nan)
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
