# SPDX-License-Identifier: Apache-2.0
"""``topics``: what is on the topics of a bag, and which of them could be the channels of a machine or a mechanism."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bags.bag import Bag
from ..errors import BagError, SettingError, refuse_options
from ..machine import Machine, load_machine
from ..report.data import PALETTE, Chart, Curve, Panel, Run, Table
from ..report.files import check_file, check_new
from ..report.result import Answer
from ..report.text import aligned, clock_of, number, slug, time_unit
from ..resources import write_whole
from .checked import checked
from .load import Loadable, loaded, loaded_sources, model_of

if TYPE_CHECKING:
    from ..offline.checks.channel_table import ChannelRow
    from ..sources.propose import Proposal
    from ..sources.survey import Survey, TopicSurvey

XYZ = 'x', 'y', 'z', 'w'        # parts of one vector, or of a quaternion


@dataclass(frozen=True)
class Topics(Answer):
    """``topics`` by their names: type, messages, rate, stamp; ``proposal``: guesses for the channels of a machine or a
    mechanism, and ``text``, the map of them, where one was named; ``words`` of both; ``source``: the bag's path;
    ``channels``: of a map, where each channel of the machine comes from."""

    topics: Mapping[str, TopicSurvey]
    proposal: Proposal | None
    text: str
    words: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    source: str = 'the ROS graph'
    channels: tuple[ChannelRow, ...] = ()

    def summary(self) -> list[str]:
        """The table of the topics, or the map, or where that was written."""
        return list(self.words)

    def write_page(self, path: str | Path) -> None:
        """Write all numbers of the topics over the time of their arrival as one page: a chart for the numbers of a
        topic that share a unit, where its type states one, else a field. Raises BagError without a number, OSError."""
        from ..report.writer import write_page  # here: slow to import
        write_page(_page(self), path)

    def _values(self, full: bool) -> dict[str, Any]:
        return {'topics': {name: {'type': item.msgtype, 'messages': item.count, 'rate': item.rate}
                           for name, item in self.topics.items()},
                **({'channels': [row._asdict() for row in self.channels]} if self.channels else {}),
                **({} if self.proposal is None else {'left': dict(self.proposal.left), 'map': self.text})}


@checked
def topics(bag: str | Path | Callable[[], Survey], machine: Loadable | None = None, *,
           mechanism: Loadable | None = None, output: str | Path | None = None,
           sources: str | Path | None = None) -> Topics:
    """List what is on the topics of a bag: types, rates and stamps; of a ``machine`` or a ``mechanism`` (name, path, or
    what ``load`` gave) propose a map of them, which ``sources`` of the other functions takes.

    ``bag``: its path, or what gives the ``Survey`` of a running graph, after all else is checked. ``output``: a new
    file for the map. With ``sources``, a map (of `sources` of the other functions; 'none': the topics of this
    package), each channel of the machine has a row: topic, field, rate, range, what is missing or odd; the findings of
    ``check_data`` follow. Raises BagError, DescriptionError, SettingError.

    >>> print(topics('lift').summary()[1])
    /sensors/position              sensor_msgs/msg/JointState     801       100  header
    """
    from ..sources.propose import channels_of, proposal_text, propose, topic_lines  # here: slow to import
    from ..sources.survey import survey_bag
    if mechanism is not None:
        refuse_options('a call without a mechanism', {'machine': machine})
    elif machine is None:
        refuse_options('a map, which needs a machine or a mechanism', {'output': output})
    if output is not None:
        check_new(Path(output), check=check_file)
    if sources is not None:
        return _mapped(bag, machine, sources, output)
    item = (model_of(mechanism, 'vm') if mechanism is not None else None if machine is None else
            load_machine(machine) if isinstance(machine, (str, Path)) else loaded(machine))
    warnings: tuple[str, ...] = ()
    source = str(bag) if isinstance(bag, (str, Path)) else Topics.source
    if isinstance(bag, (str, Path)):
        opened = Bag(Path(bag))
        found, warnings = survey_bag(opened).topics, tuple(opened.warnings)
    else:
        found = bag().topics
    if item is None:
        return Topics(found, None, '', tuple(topic_lines(found)), warnings, source)
    proposal = propose(found, item)
    text = proposal_text(proposal, item, found, source)
    words = tuple(text.splitlines())
    if output is not None:
        write_whole(Path(output), text)
        words = (f'wrote {output}: {len(proposal.guesses)} of {len(channels_of(item))} channels of '
                 f'{item.description.name}',)
    return Topics(found, proposal, text, words, warnings, source)


def _mapped(bag: str | Path | Callable[[], Survey], machine: Loadable | None, sources: str | Path,
            output: str | Path | None) -> Topics:
    """The channels of a machine by a map."""
    from ..offline.checks.channel_table import COLUMNS, channel_table  # here: slow to import
    refuse_options('a proposal: without sources', {'output': output})
    item = None if machine is None else loaded(machine)
    if not isinstance(item, Machine):
        raise SettingError('machine', None if item is None else item.description.name,
                           'a machine, whose channels the map has')
    if not isinstance(bag, (str, Path)):
        raise SettingError('sources', str(sources), 'a bag to read by it; of the running graph: mbse doctor --machine '
                           'NAME --sources MAP')
    rows, checked = channel_table(Bag(Path(bag)), item, loaded_sources(sources))
    lines = aligned([COLUMNS, *(row.cells for row in rows)])
    return Topics({}, None, '', (*lines, *checked.summary()), checked.notes, str(bag), tuple(rows))


def _page(found: Topics) -> Run:
    """All that the page shows; times from the first message of all topics that have numbers."""
    from ..sources.propose import COLUMNS, topic_rows  # here, as below: slow to import
    shown = {name: topic for name, topic in sorted(found.topics.items()) if topic.values and topic.arrivals}
    if not shown:
        raise BagError(found.source, 'no topic in it has numbers: see mbse topics')
    begin = min(topic.first_ns for topic in shown.values())
    unit, seconds = time_unit(1e-9 * (max(topic.last_ns for topic in shown.values()) - begin))
    charts = [Chart(name, slug(name), (Panel(title, stated, tuple(curves),
                                             x_label=f'time from the first message [{unit}]'),), _caption(topic))
              for name, topic in shown.items() for title, stated, curves in _curves(name, topic, begin, seconds)]
    return Run(f'Topics of {found.source}', f'{len(shown)} of {len(found.topics)} topics have numbers', tables=[
        Table('Topics', COLUMNS, topic_rows(found.topics))], charts=charts, clock=clock_of(begin, seconds),
        notes=[f'Warning: {warning}' for warning in found.warnings])


def _caption(topic: TopicSurvey) -> str:
    kept = f', of which {len(topic.arrivals)} drawn by lot are shown' if len(topic.arrivals) < topic.count else ''
    return f'{topic.msgtype}, {number(topic.rate)} Hz, {topic.count} messages{kept}'


def _curves(name: str, topic: TopicSurvey, begin: int, seconds: float) -> Iterator[tuple[str, str, list[Curve]]]:
    """Fields, unit and curves of each chart of a topic: no more of them than there are colours."""
    from ..sources.fields import path_text
    from ..sources.survey import stated_unit
    order = np.argsort(topic.arrivals, kind='stable')        # in a bag messages may come late
    t = 1e-9 / seconds * (np.array(topic.arrivals)[order] - begin)
    groups: dict[tuple[str, str], list[tuple[str, str, np.ndarray]]] = {}
    for path, values in topic.values.items():
        fields = [step.field for step in path]
        field, unit = '.'.join(fields[:-1] if fields[-1] in XYZ else fields), stated_unit(
            name, topic, path)
        groups.setdefault((unit, '' if unit else field), []).append((field, path_text(path), np.array(values)[order]))
    for (unit, _), numbers in groups.items():
        for first in range(0, len(numbers), len(PALETTE)):
            part = numbers[first:first + len(PALETTE)]
            yield ', '.join(dict.fromkeys(field for field, _, _ in part)), unit, [
                Curve(text, t, y, color, 'samples') for (_, text, y), color in zip(part, PALETTE)]
