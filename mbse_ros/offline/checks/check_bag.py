# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the data of a bag for a machine or a mechanism: its names, then its samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...bags.bag import open_bag
from ...bags.reader import BagReader
from ...bags.topics import TopicMap
from ...dynamics.model import Model
from ...filters.parts.problem import problem
from ...machine import Machine
from ...progress import lengthy
from ...report.result import Answer
from ...sources.map import SourceMap
from ...sources.reader import mechanism_reader, sample_reader
from ..bag import frame_of
from ..log_samples import LogSamples
from .another_machine import doubted_machine, machine_findings
from .mechanism_rules import mechanism_verdict
from .plausibility import Verdict, judged
from .remedies import Finding
from .time_rules import refused_stamps

EMPTY = 0.5         # share of samples without a value, from which a sensor counts as silent


@dataclass(frozen=True)
class Checked(Answer):
    """Findings on a ``bag`` for a ``machine`` or a ``mechanism``, by its name; what was ``unchecked``, with reasons;
    ``notes`` of the reader; how much was looked at."""

    findings: tuple[Finding, ...]
    unchecked: tuple[str, ...]
    notes: tuple[str, ...]
    samples: int
    seconds: float
    bag: str = ''
    machine: str = ''
    mechanism: str = ''

    def summary(self) -> list[str]:
        """Findings, what was not looked at, and the sum of it."""
        count, size = len(self.findings), f'{self.samples} samples, {self.seconds:.1f} s'
        found = [finding.line for finding in self.findings]
        found += [f'not checked: {reason}' for reason in self.unchecked]
        return [*found, f'{count} finding{"s" * (count != 1)} in {size}' if count else
                f'nothing wrong is seen in {size}']

    def _values(self, full: bool) -> dict[str, Any]:
        return {'bag': self.bag, **({'mechanism': self.mechanism} if self.mechanism else {'machine': self.machine}),
                'samples': self.samples, 'seconds': self.seconds,
                'findings': [{'kind': item.kind, 'channels': item.channels, 'seen': item.seen, 'remedy': item.remedy}
                             for item in self.findings], 'unchecked': self.unchecked, 'notes': self.notes}


@lengthy('reading and judging the bag')
def check_bag(bag: Path, machine: Machine, namespace: str | None = None,
              sources: SourceMap | None = None) -> Checked:
    """Read a bag and judge it. Raises BagError where nothing of it can be read as this machine's, and
    DescriptionError for a map that does not fit the bag."""
    reader = sample_reader(open_bag(bag), machine, namespace, sources)
    return check_read(reader, LogSamples.read(reader), machine)


def check_read(reader: BagReader, samples: LogSamples, machine: Machine) -> Checked:
    """Judge the ``samples`` that a reader gave to its end."""
    topics, source = TopicMap(), reader.bag
    findings = machine_findings(frame_of(source, reader.namespace, topics), machine,
                                topics.payloads(source.topics, reader.namespace))
    silent = _silent(samples, reader.channels)
    remedy = 'record them under these names, or name the machine that it is'
    if all(name.startswith('command/') for name in silent):
        remedy += ', or do without commands (valve: unknown)'
    if question := doubted_machine(machine.name, reader.channels, silent, reader.strangers):
        findings.insert(0, Finding('machine', silent, question, 'name the machine that it is', of_all=True))
    if len(silent) < len(reader.channels):
        findings += _missing(samples, silent, machine.channels, remedy)
    found = _checked(reader, samples, findings, judged(samples, machine, reader.ages))
    return found if samples.count else replace(found, notes=tuple(source.warnings))


@lengthy('reading and judging the bag')
def check_mechanism(bag: Path, model: Model, sensors: Sequence[str] = (), namespace: str | None = None,
                    sources: SourceMap | None = None) -> Checked:
    """The same of a mechanism with some of its ``sensors``, default all; raises as above, and SettingError."""
    names = problem(model, tuple(sensors) or tuple(model.description.mechanical_sensors)).channels
    reader = mechanism_reader(bag, model, names, namespace, sources)
    samples = LogSamples.read(reader)
    silent = _silent(samples, reader.channels)
    inputs = tuple(name for name in silent if name.startswith('input/'))
    findings = _missing(samples, tuple(name for name in silent if name not in inputs), names, 'record them under these '
                        'names, or name the sensors that there are; see mbse topics')
    found = _checked(reader, samples, findings, mechanism_verdict(samples, model, names, reader.ages))
    return replace(found, notes=(*found.notes, *(f'{name}: no sample in the bag: an estimate takes 0 for it'
                                                 for name in inputs)))


def _silent(samples: LogSamples, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in samples.names)


def _missing(samples: LogSamples, silent: tuple[str, ...], sensors: Sequence[str], remedy: str) -> list[Finding]:
    """Channels without a sample, with their remedy, and sensors most of whose samples have no value."""
    return [*([Finding('silent', silent, 'no sample in the bag', remedy)] if silent else []), *(
        Finding('silent', (name,), f'{100 * share:.0f} % of its samples have no value (NaN)',
                'look at its cable and its driver') for name in sensors if name in samples.names
        and (share := float(np.isnan(samples[name].values).mean())) >= EMPTY)]


def _checked(reader: BagReader, samples: LogSamples, findings: list[Finding], verdict: Verdict) -> Checked:
    """The findings with those on the clock of the log, and what the reader says."""
    silence = reader.silence()       # a finding
    notes = (*(line for line in reader.warnings if line not in silence), *verdict.notes)
    if reader.ages.set_ahead:
        findings.append(Finding('jump', samples.names, f'stamps leap by {reader.ages.set_ahead:.1f} s between messages '
                                'that were recorded one after the other', 'keep the clock from being set while it '
                                'records, or cut the log there: the estimate starts again'))
    findings += [*refused_stamps(reader.untimed), *verdict.findings]
    return Checked(tuple(findings), verdict.unchecked, notes, samples.count, samples.covered)
