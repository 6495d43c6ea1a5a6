# SPDX-License-Identifier: Apache-2.0
"""Which number of which topic could be which channel of a machine or a mechanism: by names, types, units and ranges.

A guess needs a name that fits, unless nothing else could be meant, and values that it can have. What several
numbers fit equally well, or none, stays open.

``proposal_text`` is a proposal as the YAML that ``--sources`` takes, with a comment on each guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..bags.topics import JOINTS, TopicMap
from ..description.coordinate_units import measured_unit
from ..dynamics.model import Model
from ..machine import Machine
from ..machine.channels import Channel, sensor_channels
from ..report.text import aligned, number
from .candidates import (
    FASTER,
    STILL,
    Candidate,
    Likeness,
    UnitFit,
    candidates_of,
    effort_fit,
    likeness,
    position_fits,
    pressure_fit,
    pressure_units,
    rate_fits,
)
from .fields import ARRIVAL
from .map import FORMAT
from .survey import TopicSurvey

COLUMNS = 'topic', 'type', 'messages', 'Hz', 'stamp'
SURE = 2.0          # points of a name from which it counts
IMPOSSIBLE = -1e6
NEARLY = 0.25       # points between two numbers that fit equally well
SHOWN = 4           # candidates that are named where a channel stays open


@dataclass(frozen=True)
class ChannelProposal:
    """``fits``: possible units, the chosen one first; ``why``, and what is doubtful."""

    channel: str
    candidate: Candidate
    fits: tuple[UnitFit, ...]
    why: str
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Proposal:
    """``guesses`` by channel; ``left``: what is known of each channel that stays open."""

    guesses: Mapping[str, ChannelProposal]
    left: Mapping[str, str]


class _Match(NamedTuple):
    """How a number fits a channel."""

    score: float
    likeness: Likeness
    fits: tuple[UnitFit, ...]


@dataclass
class _Search:
    """Channels of one kind against all numbers of that kind."""

    item: Machine | Model
    candidates: Sequence[Candidate]
    units: Mapping[str, list[str]] = field(default_factory=dict)

    def match(self, channel: Channel, candidate: Candidate) -> _Match | None:
        """None where it cannot be."""
        like = likeness(self.item.description, channel, candidate)
        if like is None:
            return None
        fits = tuple(self.fits(channel, candidate))
        if not fits:
            return None
        moves = 0.5 * (not np.isfinite(fits[0].share) or fits[0].share > STILL)
        return _Match(like.points + 1.0 + moves, like, fits)

    def fits(self, channel: Channel, candidate: Candidate) -> list[UnitFit]:
        """Units in which the values are possible."""
        if channel.kind == 'pressure':
            units = self.units.get(candidate.group, [])
            return [fit for fit in (pressure_fit(candidate.values, unit) for unit in units) if fit]
        if channel.kind == 'effort':
            return [effort_fit(candidate.values, measured_unit(self.item.description, channel.sensor.name))]
        if channel.kind == 'position':
            fits = position_fits(candidate.values, self.item, channel)
            return [fit for fit in fits if fit.unit == 'rad'] if candidate.path in candidate.survey.angles else fits
        return rate_fits(candidate.values, measured_unit(self.item.description, channel.sensor.name),
                         candidate.length, FASTER if isinstance(self.item, Model) else 1.0)


def channels_of(item: Machine | Model) -> tuple[Channel, ...]:
    """Channels of a machine, or of the sensors of a mechanism that its filters know."""
    if isinstance(item, Machine):
        return item.all_channels
    sensors = item.description.mechanical_sensors
    return tuple(channel for channel in sensor_channels(item.description) if channel.sensor.name in sensors)


def propose(topics: Mapping[str, TopicSurvey], item: Machine | Model) -> Proposal:
    """Guesses for the channels of a machine or a mechanism, and what is left open of the others, of the commands and of
    the inputs."""
    known, wanted = candidates_of(topics), channels_of(item)
    guesses: dict[str, ChannelProposal] = {}
    left: dict[str, str] = {}
    for kind in dict.fromkeys(channel.kind for channel in wanted):
        channels = [channel for channel in wanted if channel.kind == kind]
        own = [candidate for candidate in known if kind in candidate.kinds]
        search = _Search(item, own, _pressure_units(own) if kind == 'pressure' else {})
        matches = [[search.match(channel, candidate) for candidate in own] for channel in channels]
        chosen = _assigned(matches)
        for row, channel in enumerate(channels):
            guess = _guess(channel, row, matches, own, chosen.get(row))
            if guess is None:
                left[channel.name] = _open(search, channel, matches[row])
            else:
                guesses[channel.name] = guess
    for name in item.commands if isinstance(item, Machine) else ():
        left[name] = 'in V, and what is recorded is seldom that: `valve: unknown` needs no commands'
    for name in item.inputs if isinstance(item, Model) else ():
        left[f'input/{name}'] = 'a force or torque: without one an estimate takes 0 for it'
    return Proposal(_one_unit(guesses), left)


def _pressure_units(candidates: Sequence[Candidate]) -> dict[str, list[str]]:
    """Units by group of numbers that share one: by the largest pressure among them. FluidPressure is in Pa if it can
    be."""
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(candidate.group, []).append(candidate)
    found = {}
    for group, members in groups.items():
        largest = max(float(np.percentile(member.values, 99.8)) for member in members)
        hints = {word for member in members for word in member.words}
        stated = {'Pa'} if members[0].holder == 'sensor_msgs/msg/FluidPressure' else set()
        found[group] = pressure_units(largest, stated or hints)
    return found


def _assigned(matches: Sequence[Sequence[_Match | None]]) -> dict[int, int]:
    """Column of each row, so that the points in all are most."""
    if not matches or not matches[0]:
        return {}
    points = np.array([[IMPOSSIBLE if match is None else match.score for match in row] for row in matches])
    rows, columns = linear_sum_assignment(-points)
    return {int(row): int(column) for row, column in zip(rows, columns) if points[row, column] > IMPOSSIBLE / 2}


def _guess(channel: Channel, number: int, matches: Sequence[Sequence[_Match | None]], candidates: Sequence[Candidate],
           place: int | None) -> ChannelProposal | None:
    """The guess for channel ``number``, where a name speaks for it or nothing else is possible: no other number for it,
    and the number for no other channel."""
    row = matches[number]
    if place is None or (match := row[place]) is None:
        return None
    alone = sum(other is not None for other in row) == sum(other[place] is not None for other in matches) == 1
    if not match.likeness.sure and not alone:
        return None
    near = [candidate for other, candidate in zip(row, candidates) if other is not None and other is not match
            and other.score > match.score - NEARLY]
    if near and not match.likeness.sure:
        return None
    doubts = [*match.likeness.doubts, *(f'{candidate} fits as well' for candidate in near[:SHOWN])]
    if alone and not match.likeness.sure:
        doubts.append('no name supports it, but no other number is possible')
    if match.fits[0].share < STILL:
        doubts.append('it hardly moves, so its range says little')
    return ChannelProposal(channel.name, candidates[place], match.fits,
                           f'{match.likeness.words}; {match.fits[0].words}',
                           tuple(doubts))


def _open(search: _Search, channel: Channel, row: Sequence[_Match | None]) -> str:
    """What could be looked at for a channel without a guess."""
    possible = sorted(((match.score, str(candidate)) for match, candidate in zip(row, search.candidates) if match),
                      reverse=True)
    if possible:
        more = f' and {len(possible) - SHOWN} more' if len(possible) > SHOWN else ''
        return 'no name decides; possible by their values: ' + ', '.join(name for _, name in possible[:SHOWN]) + more
    named = [candidate for candidate in search.candidates
             if (like := likeness(search.item.description, channel, candidate)) is not None and like.points >= SURE]
    if named:
        low, high = float(named[0].values.min()), float(named[0].values.max())
        return f'{named[0]} has a fitting name, but {low:.4g} to {high:.4g} is possible in no unit'
    return 'no number of this kind' if not search.candidates else 'no number has a fitting name and possible values'


def _one_unit(guesses: Mapping[str, ChannelProposal]) -> dict[str, ChannelProposal]:
    """Numbers of one array are in one unit: the one that most of them can be in, SI where several are."""
    groups: dict[tuple[str, str], list[ChannelProposal]] = {}
    for guess in guesses.values():
        groups.setdefault((guess.candidate.group, guess.channel.partition('/')[0]), []).append(guess)
    found = dict(guesses)
    for members in groups.values():
        count: dict[str, int] = {}
        for guess in members:
            for fit in guess.fits:
                count[fit.unit] = count.get(fit.unit, 0) + 1
        order = sorted(count, key=lambda unit: (-count[unit], _rank(unit, members)))
        for guess in members:
            fits = sorted(guess.fits, key=lambda fit: order.index(fit.unit))
            head = guess.why.partition('; ')[0]
            others = dict.fromkeys(fit.unit for fit in fits[1:] if fit.unit != fits[0].unit
                                   and count[fit.unit] == count[fits[0].unit])
            doubts = (*guess.doubts, *(f'could be in {unit} as well (mbse check-data decides, by the forces)'
                                       for unit in others))
            found[guess.channel] = replace(guess, fits=tuple(fits), why=f'{head}; {fits[0].words}', doubts=doubts)
    return found


def _rank(unit: str, members: Sequence[ChannelProposal]) -> tuple[bool, bool, int]:
    """Order of the units that the members can be in: what a name hints at, a pressure's as they come, SI."""
    hinted = any(unit.lower() in guess.candidate.words for guess in members)
    places = [[fit.unit for fit in guess.fits].index(unit) for guess in members
              if unit in [fit.unit for fit in guess.fits]]
    return not hinted, unit not in ('rad', 'm', 'rad/s', 'm/s', 'm/s^2'), min(places)


def topic_rows(topics: Mapping[str, TopicSurvey]) -> list[tuple[str, ...]]:
    """A table with COLUMNS of all topics: type, messages, rate, and where stamps come from."""
    return [(topic, survey.msgtype, str(survey.count), number(survey.rate) if survey.rate else '',
             survey.fault or (survey.stamp if survey.count else '')) for topic, survey in sorted(topics.items())]


def topic_lines(topics: Mapping[str, TopicSurvey]) -> list[str]:
    """The same as lines of text, the headings first."""
    return aligned([COLUMNS, *topic_rows(topics)])


def proposal_text(proposal: Proposal, item: Machine | Model, topics: Mapping[str, TopicSurvey], source: str) -> str:
    """The whole file; one without a guess is comments alone."""
    guesses = list(proposal.guesses.values())
    lines = [f'# Topics of {source}:', *(f'#   {line}' for line in topic_lines(topics)), '#',
             f'# A guess for the {"machine" if isinstance(item, Machine) else "mechanism"} {item.description.name}, by '
             'names and values alone: read each line before you trust it.']
    if guesses and all(_is_own(guess, item) for guess in guesses):
        lines.append('# All of these are the topics of this package: they are found without a map.')
    if guesses:
        lines += [f'format: {FORMAT}', *_topic_section(guesses), 'channels:']
        for guess in guesses:
            lines += _channel(guess)
    if proposal.left:
        lines += ['#', '# Left open:' if guesses else '# Nothing was found; left open:',
                  *(f'#   {name}: {text}' for name, text in proposal.left.items())]
    return '\n'.join(lines) + '\n'


def _is_own(guess: ChannelProposal, item: Machine | Model) -> bool:
    """Whether a channel is where it is read without a map."""
    topics = TopicMap()
    if isinstance(item, Model):
        own = JOINTS, topics.position, topics.imu, 'sensors/value'
        return any(f'/{name}' in guess.candidate.topic for name in own)
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
        rate = f', rate: {number(fastest, 2)} Hz' if fastest else ''
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
