# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the data of a bag for a machine: its names, then its samples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...bags.bag import open_bag
from ...bags.topics import TopicMap
from ...machine import Machine
from ...sources.map import SourceMap
from ...sources.reader import sample_reader
from ..bag import frame_of
from ..log_samples import LogSamples
from .findings import machine_findings
from .plausibility import judged
from .remedies import Finding
from .time_rules import refused_stamps

if TYPE_CHECKING:
    from ...report.data import Table

EMPTY = 0.5         # share of samples without a value, from which a sensor counts as silent


@dataclass(frozen=True)
class Checked:
    """Findings on a ``bag`` for a ``machine``; what was ``unchecked``, with reasons; ``notes`` of the reader; how much
    was looked at."""

    findings: tuple[Finding, ...]
    unchecked: tuple[str, ...]
    notes: tuple[str, ...]
    samples: int
    seconds: float
    bag: str = ''
    machine: str = ''

    @property
    def warnings(self) -> tuple[str, ...]:
        """None: what is odd is a finding."""
        return ()

    def tables(self) -> list[Table]:
        """None."""
        return []

    def summary(self) -> list[str]:
        """Findings, what was not looked at, and the sum of it."""
        count, size = len(self.findings), f'{self.samples} samples, {self.seconds:.1f} s'
        found = [finding.line for finding in self.findings]
        found += [f'not checked: {reason}' for reason in self.unchecked]
        return [*found, f'{count} finding{"s" * (count != 1)} in {size}' if count else
                f'nothing wrong is seen in {size}']

    def to_json(self, full: bool = False) -> dict[str, Any]:
        """The same."""
        from ...report.files import plain  # here, as it takes its time to import
        found: dict[str, Any] = plain({
            'bag': self.bag, 'machine': self.machine, 'samples': self.samples, 'seconds': self.seconds,
            'findings': [{'kind': item.kind, 'channels': item.channels, 'seen': item.seen, 'remedy': item.remedy}
                         for item in self.findings], 'unchecked': self.unchecked, 'notes': self.notes})
        return found


def check_bag(bag: Path, machine: Machine, namespace: str | None = None,
              sources: SourceMap | None = None) -> Checked:
    """Read a bag and judge it. Raises BagError where nothing of it can be read as this machine's, and
    DescriptionError for a map that does not fit the bag."""
    topics, source = TopicMap(namespace=namespace), open_bag(bag)
    reader = sample_reader(source, machine, namespace, sources)
    samples = LogSamples.read(reader)
    findings = machine_findings(frame_of(source, reader.namespace, topics), machine)
    silent = tuple(name for name in (*machine.channels, *machine.commands) if name not in samples.names)
    if silent:
        remedy = 'record them under these names, or name the machine that it is (--machine)'
        if all(name.startswith('command/') for name in silent):
            remedy += ', or do without commands (--valve unknown)'
        findings.append(Finding('silent', silent, 'no sample in the bag', remedy))
    findings += [Finding('silent', (name,), f'{100 * share:.0f} % of its samples have no value (NaN)',
                         'look at its cable and its driver') for name in machine.channels if name in samples.names
                 and (share := float(np.isnan(samples[name].values).mean())) >= EMPTY]
    verdict = judged(samples, machine, reader.ages)
    silence = reader.silence()       # a finding
    notes = (*(line for line in reader.warnings if line not in silence), *verdict.notes)
    if reader.ages.set_ahead:
        findings.append(Finding('jump', samples.names, f'stamps leap by {reader.ages.set_ahead:.1f} s between messages '
                                'that were recorded one after the other', 'keep the clock from being set while it '
                                'records, or cut the log there: the estimate starts again'))
    findings += [*refused_stamps(reader.untimed), *verdict.findings]
    return Checked(tuple(findings), verdict.unchecked, notes, samples.count, samples.covered)
