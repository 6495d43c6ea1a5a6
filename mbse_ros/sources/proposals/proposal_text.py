# SPDX-License-Identifier: Apache-2.0
"""A proposal as the YAML that `--sources` takes, with a comment on each guess."""

from __future__ import annotations

from collections.abc import Mapping

from ...bags.topics import TopicMap
from ..map import ARRIVAL, FORMAT
from .propose import ChannelProposal, Proposal
from .survey import TopicSurvey


def topic_lines(topics: Mapping[str, TopicSurvey]) -> list[str]:
    """A table of all topics: type, messages, rate, and where stamps come from."""
    rows = [('topic', 'type', 'messages', 'Hz', 'stamp')]
    for topic, survey in sorted(topics.items()):
        rows.append((topic, survey.msgtype, str(survey.count), f'{survey.rate:.3g}' if survey.rate else '',
                     survey.fault or (survey.stamp if survey.count else '')))
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return ['  '.join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def proposal_text(proposal: Proposal, machine: str, topics: Mapping[str, TopicSurvey], source: str) -> str:
    """The whole file; one without a guess is comments alone."""
    guesses = list(proposal.guesses.values())
    lines = [f'# Topics of {source}:', *(f'#   {line}' for line in topic_lines(topics)), '#',
             f'# A guess for the machine {machine}, by names and values alone: read each line before you trust it.']
    if guesses and all(_is_own(guess) for guess in guesses):
        lines.append('# All of these are the topics of this package: they are found without a map.')
    if guesses:
        lines += [f'format: {FORMAT}', *_topic_section(guesses), 'channels:']
        for guess in guesses:
            lines += _channel(guess)
    if proposal.left:
        lines += ['#', '# Left open:' if guesses else '# Nothing was found; left open:',
                  *(f'#   {name}: {text}' for name, text in proposal.left.items())]
    return '\n'.join(lines) + '\n'


def _is_own(guess: ChannelProposal) -> bool:
    """Whether a channel is where it is read without a map."""
    topics = TopicMap()
    kind, _, owner = guess.channel.partition('/')
    name = {'pressure': f'{topics.pressure}/{owner}', 'gyro': topics.imu, 'accelerometer': topics.imu}.get(
        kind, topics.position)
    return f'/{name}' in guess.candidate.topic


def _topic_section(guesses: list[ChannelProposal]) -> list[str]:
    """What all channels of a topic share."""
    found = {guess.candidate.topic: guess.candidate.survey for guess in guesses}
    lines = ['topics:']
    for topic, survey in found.items():
        if survey.stamp == ARRIVAL:
            lines.append('  # No stamp that is filled in: that of the arrival has the delays of the transport.')
        fastest = max(guess.candidate.rate for guess in guesses if guess.candidate.topic == topic)
        rate = f', rate: {fastest:.2g} Hz' if fastest else ''
        lines.append(f'  {topic}: {{type: {survey.msgtype}, stamp: {_quoted(survey.stamp)}{rate}}}')
    return lines


def _channel(guess: ChannelProposal) -> list[str]:
    """Why, what is doubtful, and the entry."""
    fit = guess.fits[0]
    offset = f', offset: {fit.offset}' if fit.offset else ''
    return [f'  # {guess.why}', *(f'  # doubtful: {doubt}' for doubt in guess.doubts), f'  {guess.channel}:',
            f'    {{topic: {guess.candidate.topic}, path: {_quoted(guess.candidate.text)}, unit: {fit.unit}{offset}}}']


def _quoted(text: str) -> str:
    """As YAML takes it inside braces."""
    if text.replace('_', '').replace('.', '').isalnum():
        return text
    return "'" + text.replace("'", "''") + "'"
