# SPDX-License-Identifier: Apache-2.0
"""A bag through the pipeline: what ``mbse estimate`` and ``mbse demo`` share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..bags.bag import Bag, looked_at, open_bag
from ..bags.channel_samples import Sample
from ..bags.recorded_commands import RecordedCommands
from ..bags.series import TruthSeries, read_truth
from ..bags.topics import JOINT_STATE, TopicMap
from ..description.load import every_machine
from ..errors import BagError, DescriptionError, SampleError, SettingError
from ..filters.observer_settings import ObserverSettings
from ..machine import Machine
from ..machine.find_machine import DEFAULT
from ..monitor.clocks import Ages
from ..payload.mass import PayloadSettings
from ..scale.scale_file import ScaleSettings, scale_of
from ..scale.stage import ScaleStage
from ..settings import Settings
from ..sources.map import SourceMap
from ..sources.reader import sample_reader
from ..streams.interpolation import InterpolationSettings
from ..streams.pipeline import Output
from .checks.another_machine import machine_findings
from .checks.log_verdict import log_verdict, nothing, stage_lines
from .estimate import MachineEstimate
from .log_loads import LogLoads, WeighedLoad
from .log_samples import LogSamples
from .long_log import LongLog
from .track import Tracker

TUNING = {'interpolation': InterpolationSettings, 'observer': ObserverSettings, 'payload': PayloadSettings}
KINDS = {**TUNING, 'scale': ScaleSettings}
TYPES = {'float': 'a number', 'int': 'a whole number', 'str': 'a word', 'bool': 'true or false'}
FLAGS = {'true': True, 'false': False}
LOOK = 5_000        # segments between two looks at the memory
CGROUP = Path('/sys/fs/cgroup')         # of a container: its own, see cgroups(7)
MEMINFO = Path('/proc/meminfo')
SPARE = 200e6       # bytes that others may need
MEGA = 1e6


def parse_tuning(words: Sequence[str], kinds: Mapping[str, type[Settings]] = TUNING) -> dict[str, Any]:
    """Settings by room from words ``observer.pressure_psd=1.0``, a later one before an earlier. Raises SettingError."""
    chosen: dict[str, dict[str, Any]] = {room: {} for room in kinds}
    for word in words:
        key, sign, text = word.partition('=')
        room, _, name = key.partition('.')
        if not sign or room not in kinds:
            raise SettingError('tuning', word, f'<{"|".join(kinds)}>.<name>=<value>')
        known: dict[str, type] = {item.name: type(item.default)
                                  for item in fields(kinds[room])}     # type: ignore[arg-type]
        if name not in known:
            near = get_close_matches(name, known, 3, 0.5)
            raise SettingError('tuning', key, f'a setting of {room}: {" or ".join(near) or ", ".join(known)}')
        try:
            chosen[room][name] = FLAGS[text] if known[name] is bool else known[name](text)
        except (ValueError, KeyError):
            raise SettingError(key, text, TYPES[known[name].__name__]) from None
    return {room: _settings(room, kinds[room], values) for room, values in chosen.items()}


def _settings(room: str, kind: type[Settings], values: dict[str, Any]) -> Settings:
    try:
        return kind(**values)
    except SettingError as error:
        raise SettingError(f'{room}.{error.name}', error.value, error.expected) from None


def estimate_bag(bag: Bag | str | Path, machine: Machine, tuning: dict[str, Any], namespace: str | None = None,
                 backend: str = 'auto', sources: SourceMap | None = None, states: bool = True,
                 take: Callable[[Output], None] | None = None, every: float = 0.0, scale: str | Path = ''
                 ) -> MachineEstimate:
    """Run a bag's samples, in the order of the bag, through the pipeline; ``sources``: see ``sources.reader``.

    ``states``: keep what the end of each segment has of them; ``take`` gets each Output as it comes, none is kept.
    ``every``: a result each so many s, in fewer calls; motion and mass are the same, but what is looked for in the
    samples of each result, as a wrong unit, is found later. 0: one a sensor period, as the nodes. ``scale``: file of
    attachments, by default the machine's section `scale`.
    Where the bag has the segments of a graph, each step has the command that it had there, see ``RecordedCommands``.
    Samples that cannot be used are dropped and counted in the warnings. Raises BagError when no segment comes out, or
    there is no memory left, DescriptionError for a map that does not fit the bag.
    """
    topics, source = TopicMap(namespace=namespace), open_bag(bag)
    reader = sample_reader(source, machine, namespace, sources)
    used = RecordedCommands(source, machine.commands, reader.namespace)
    found = _Passed(reader, machine, tuning, backend, states, every, used, str(source.path), scale)
    found.run(take)
    warnings = reader.warnings + found.log.dropped.lines()
    other = [item.line for item in machine_findings(frame_of(source, reader.namespace, topics), machine,
                                                    topics.payloads(source.topics, reader.namespace))]
    other += found.log.aging
    if not found.tracker:
        why = nothing(found.log, found.samples, warnings, other, reader.strangers)
        raise BagError(str(source.path), f'nothing to estimate: {why}')
    return found.judged(other, warnings, read_truth(source, topics), reader.ages)


def estimate_samples(samples: Sequence[Sample], machine: Machine, tuning: dict[str, Any],
                     backend: str = 'auto', every: float = 0.0, scale: str | Path = '') -> MachineEstimate:
    """The same of samples in the order in which they came. Raises SampleError when no segment comes out."""
    found = _Passed(samples, machine, tuning, backend, True, every, scale=scale)
    found.run()
    warnings = found.log.dropped.lines()
    if not found.tracker:
        silent = [name for name in found.log.pipeline.interpolator.waiting_for if name not in found.samples.names]
        if silent:
            raise SampleError(', '.join(silent), samples[0].stamp_ns if samples else 0, float('nan'),
                              'numbers: all samples are NaN, and nothing can be estimated without them')
        raise SampleError('samples', 0, len(samples),
                          f'samples to estimate from; {nothing(found.log, found.samples, warnings)}')
    return found.judged([*found.log.aging], warnings, None)


class _Passed:
    """A log on its way through the pipeline, and what is kept of it: its samples and a row for each segment."""

    def __init__(self, reader: Iterable[Sample], machine: Machine, tuning: dict[str, Any], backend: str, states: bool,
                 every: float = 0.0, used: RecordedCommands | None = None, name: str = 'samples',
                 scale: str | Path = '') -> None:
        self.samples, self.tracker, self.seconds, self.name = LogSamples(), Tracker(states), 0.0, name
        tuning = dict(tuning)
        settings = tuning.pop('scale', ScaleSettings())
        self.log, self.used = LongLog(reader, machine, tuning, backend, every, self.samples, commands=used), used
        self.loads, self.uncounted = _loads_of(self.log.pipeline.machine, settings, name, scale)

    def run(self, take: Callable[[Output], None] | None = None) -> None:
        """All of it."""
        start = time.perf_counter()
        with closing(iter(self.log)) as outputs:
            for count, output in enumerate(outputs, 1):
                self.tracker.add(output)
                if self.loads is not None:
                    self.loads.take(output)
                if take is not None:
                    take(output)
                if count % LOOK == 0:
                    check_memory(self.name)
        self.seconds = time.perf_counter() - start

    def judged(self, other: list[str], warnings: list[str], truth: TruthSeries | None, ages: Ages | None = None
               ) -> MachineEstimate:
        """The result with what was odd about it: that it is of an ``other`` machine, what is wrong, the rest."""
        pipeline, track = self.log.pipeline, self.tracker.track()
        verdict = log_verdict(self.samples, track, pipeline, ages)
        loads: tuple[WeighedLoad, ...] = ()
        if self.loads is not None:
            self.loads.close()
            loads, _ = self.loads.doubted(lambda load: verdict.doubts)
        warnings = [*other, *verdict.wrong, *warnings, *verdict.odd, *stage_lines(pipeline, self.used),
                    *(self.loads.questions if self.loads is not None else [])]
        return MachineEstimate(pipeline.machine, track, truth, tuple(warnings), self.seconds, loads,
                               pipeline.payload.budget, verdict.doubts, self.uncounted,
                               budgets=pipeline.payload.budgets)


def available() -> float:
    """Bytes that this process can still have, of the computer and of the container's limit; inf where none is said."""
    found = float('inf')
    with suppress(OSError, ValueError, KeyError, IndexError):
        lines = dict(line.split(':', 1) for line in MEMINFO.read_text().splitlines())
        found = 1024.0 * int(lines['MemAvailable'].split()[0])
    with suppress(OSError, ValueError):
        limit, now = ((CGROUP / name).read_text().strip() for name in ('memory.max', 'memory.current'))
        if limit != 'max':
            found = min(found, float(limit) - float(now))
    return found


def check_memory(name: str) -> None:
    """Raises BagError where almost none is left for the rest of a log."""
    left = available() - SPARE
    if left < 0.0:
        raise BagError(name, f'no memory is left for the rest of the log ({max(available(), 0.0) / MEGA:.0f} MB): '
                       '`mbse loads` and `mbse fleet` weigh logs of any length, `ros2 bag convert` cuts them')


def _loads_of(machine: Machine, settings: ScaleSettings, bag: str, scale: str | Path) -> tuple[LogLoads | None, str]:
    """What finds the loads of a log, or why nothing does."""
    if machine.description.payloads:
        return None, 'they are found where there is one `payload`, and this machine has several'
    try:
        found = LogLoads(ScaleStage(machine, settings, scale_of(machine, scale)))
    except DescriptionError as error:
        return None, str(error)
    found.begin(bag)
    return found, ''


def frame_of(source: Bag, namespace: str, topics: TopicMap) -> str:
    """frame_id of the first position message: bags of this package have the machine's name there."""
    topic = topics.absolute(topics.position, namespace)
    for raw in source.messages([topic]) if source.topics.get(topic) == JOINT_STATE else ():
        try:
            return looked_at(raw).header.frame_id
        except SampleError:
            continue
    return ''


def recorded_machine(bags: Sequence[Bag | str | Path], namespace: str | None = None) -> tuple[str, tuple[str, ...]]:
    """Name of the machine that bags of this package were recorded on, and a warning for each where no sample names one:
    it is read as of ``DEFAULT``. A bag that cannot be read names none: who reads it says so.

    Raises BagError for one that is not in ``config/machines``, whose file only the caller knows, and for several.
    """
    names: dict[str, str] = {}
    assumed: list[str] = []
    for bag in bags:
        topics = TopicMap(namespace=namespace)
        try:
            source = open_bag(bag)
            frame = frame_of(source, topics.find_namespace(source.topics, str(source.path)), topics)
        except BagError:
            continue
        if frame and frame not in every_machine():
            raise BagError(str(source.path), f'recorded on {frame!r} (frame_id of its samples), which is not in '
                           f'config/machines: name its file as the machine; {DEFAULT} is the default only where no '
                           'machine is named')
        names.setdefault(frame or DEFAULT, str(source.path))
        if not frame:
            assumed.append(f'{source.path}: no sample names the machine (frame_id), and none was named: read as a bag '
                           f'of {DEFAULT}')
    if len(names) > 1:
        raise BagError(list(names.values())[1], 'bags of several machines: ' + ', '.join(
            f'{path} of {name}' for name, path in names.items()) + '; name one as the machine')
    return next(iter(names), DEFAULT), tuple(assumed)
