# SPDX-License-Identifier: Apache-2.0
"""``topics``: what is on the topics of a bag, and which of them could be the channels of a machine or a mechanism."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..bags.bag import Bag
from ..errors import refuse_options
from ..machine import load_machine
from ..report.files import check_file, check_new
from ..report.result import Answer
from ..resources import write_whole
from .checked import checked
from .load import Loadable, loaded, model_of

if TYPE_CHECKING:
    from ..sources.propose import Proposal
    from ..sources.survey import Survey, TopicSurvey


@dataclass(frozen=True)
class Topics(Answer):
    """``topics`` by their names: type, messages, rate, stamp; ``proposal``: guesses for the channels of a machine or a
    mechanism, and ``text``, the map of them, where one was named; ``words`` of both."""

    topics: Mapping[str, TopicSurvey]
    proposal: Proposal | None
    text: str
    words: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    def summary(self) -> list[str]:
        """The table of the topics, or the map, or where that was written."""
        return list(self.words)

    def _values(self, full: bool) -> dict[str, Any]:
        return {'topics': {name: {'type': item.msgtype, 'messages': item.count, 'rate': item.rate}
                           for name, item in self.topics.items()},
                **({} if self.proposal is None else {'left': dict(self.proposal.left), 'map': self.text})}


@checked
def topics(bag: str | Path | Callable[[], Survey], machine: Loadable | None = None, *,
           mechanism: Loadable | None = None, output: str | Path | None = None) -> Topics:
    """List what is on the topics of a bag: types, rates and stamps; of a ``machine`` or a ``mechanism`` (name, path, or
    what ``load`` gave) propose a map of them, which ``sources`` of the other functions takes.

    ``bag``: its path, or what gives the ``Survey`` of a running graph, after all else is checked. ``output``: a new
    file for the map. Raises BagError, DescriptionError, SettingError.

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
    item = (model_of(mechanism, 'vm') if mechanism is not None else None if machine is None else
            load_machine(machine) if isinstance(machine, (str, Path)) else loaded(machine))
    warnings: tuple[str, ...] = ()
    if isinstance(bag, (str, Path)):
        source = Bag(Path(bag))
        found, warnings = survey_bag(source).topics, tuple(source.warnings)
    else:
        found = bag().topics
    if item is None:
        return Topics(found, None, '', tuple(topic_lines(found)), warnings)
    proposal = propose(found, item)
    text = proposal_text(proposal, item, found, str(bag) if isinstance(bag, (str, Path)) else 'the ROS graph')
    words = tuple(text.splitlines())
    if output is not None:
        write_whole(Path(output), text)
        words = (f'wrote {output}: {len(proposal.guesses)} of {len(channels_of(item))} channels of '
                 f'{item.description.name}',)
    return Topics(found, proposal, text, words, warnings)
