# SPDX-License-Identifier: Apache-2.0
"""The numbers of surveyed topics, with what their names say of them, and how well these fit those of a channel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import NamedTuple

import numpy as np

from ...description.machine_parts import Volume
from ...description.model import MechanismDescription
from ...machine.channels import Channel
from ..path import Path, PathStep, path_text
from .survey import TopicSurvey
from .words import PARTS, PORTS, QUANTITIES, parts_in, quantities_in, sides_in, words

FEWEST = 5      # values
NEUTRAL = {'joint', 'cylinder', 'sensor', 'link', 'volume', 'chamber', 'main', 'imu', 'x', 'y', 'z', 'of'}.union(
    *QUANTITIES.values())
BASE = {'base', 'body', 'chassis', 'undercarriage', 'vehicle', 'machine'}
UPPER = {'swing', 'track'}      # parts that an IMU of the base may be named after


@dataclass(frozen=True)
class Candidate:
    """A number: ``path`` in messages of ``topic``; ``values`` (k,); ``words`` of path and topic; the ``kinds`` of
    channels that it can be; ``group``: numbers with the same one share a unit; ``holder``: the type of its message."""

    topic: str
    survey: TopicSurvey
    path: Path
    values: np.ndarray
    own_words: tuple[str, ...]
    topic_words: tuple[str, ...]
    kinds: frozenset[str]
    group: str
    holder: str

    @property
    def words(self) -> tuple[str, ...]:
        """Words of the path, then those of the topic."""
        return self.own_words + self.topic_words

    @property
    def text(self) -> str:
        """The path."""
        return path_text(self.path)

    @property
    def rate(self) -> float:
        """Values per second: of messages that alternate only those that have it."""
        return self.survey.rate * self.values.size / len(self.survey.values[self.path])

    @property
    def length(self) -> float:
        """Median length of the vector that has this number as x, y or z; NaN where not all three are known."""
        parts = [self.survey.values.get((*self.path[:-1], PathStep(axis)), []) for axis in 'xyz']
        if self.path[-1].field not in ('x', 'y', 'z') or not all(parts):
            return nan
        lengths = np.linalg.norm(np.array(parts, dtype=float), axis=0)
        return float(np.median(lengths[np.isfinite(lengths)])) if np.isfinite(lengths).any() else nan

    def __str__(self) -> str:
        return f'{self.text} of {self.topic}'


def candidates_of(topics: Mapping[str, TopicSurvey]) -> list[Candidate]:
    """All numbers that have values, of topics that are not results of this package."""
    found = []
    for topic, survey in topics.items():
        if survey.msgtype.startswith('mbse_ros/'):
            continue
        for path in survey.values:
            values = survey.series(path)
            if values.size < FEWEST:
                continue
            own, around = tuple(words(path_text(path))), tuple(words(topic))
            kinds = _kinds(path, survey.msgtype, own, around)
            if kinds:
                found.append(Candidate(topic, survey, path, values, own, around, frozenset(kinds),
                                       _group(topic, path, survey.msgtype), _holder(path, survey.msgtype)))
    return found


def _kinds(path: Path, msgtype: str, own: tuple[str, ...], around: tuple[str, ...]) -> set[str]:
    """Kinds of channels that a number can be; none of one that is a command, a result or something else."""
    fields = [step.field for step in path]
    if 'angular_velocity' in fields:
        return {'gyro', 'velocity'}
    if 'linear_acceleration' in fields:
        return {'accelerometer'}
    if fields[-1] in ('roll', 'pitch'):
        return {'position'}
    if fields[-1] == 'fluid_pressure':
        return set() if 'other' in quantities_in(own + around) else {'pressure'}
    said = quantities_in(own) or quantities_in(around)
    if 'other' in quantities_in(own) | quantities_in(around):
        return set()
    if 'pressure' in said:
        return {'pressure'}
    if 'velocity' in said:
        return {'velocity'}
    return said & {'position', 'velocity', 'pressure'} or {'position', 'velocity', 'pressure'}


def _group(topic: str, path: Path, msgtype: str) -> str:
    """Numbers of one array, or of one type of topics of a single number."""
    fields = '.'.join(step.field for step in path)
    return f'{msgtype} {fields}' if len(path) == 1 and path[0].selection is None else f'{topic} {fields}'


def _holder(path: Path, msgtype: str) -> str:
    """Type of the message that a field is in, as far as it matters here."""
    return 'sensor_msgs/msg/FluidPressure' if path[-1].field == 'fluid_pressure' else msgtype


class Likeness(NamedTuple):
    """``points``; ``sure``: enough to go by; ``words`` that say why, and doubts."""

    points: float
    sure: bool
    words: str
    doubts: tuple[str, ...] = ()


def likeness(description: MechanismDescription, channel: Channel, candidate: Candidate) -> Likeness | None:
    """None where the names contradict each other."""
    owner = channel.name.partition('/')[2]
    if channel.sensor.kind == 'inclination':
        return _of_base(owner, candidate)
    if candidate.path[-1].field in ('roll', 'pitch'):
        return None
    if channel.kind in ('gyro', 'accelerometer'):
        return _of_axis(owner, candidate)
    part = _part(owner, candidate, _part_words(_volume(description, channel), owner))
    if part is None or channel.kind != 'pressure':
        return part
    return _side(_volume(description, channel), candidate, part)


def _volume(description: MechanismDescription, channel: Channel) -> Volume | None:
    """What a pressure is the pressure of; None of a supply, and of another channel."""
    hydraulics = description.hydraulics
    return None if hydraulics is None else hydraulics.volumes.get(channel.sensor.volume or '')


def _part_words(volume: Volume | None, owner: str) -> list[str]:
    """Words of the part that a channel is of: of a volume those of the cylinders whose chambers it joins."""
    named = words(owner)
    return named if volume is None or parts_in(named) else [
        word for cylinder, _ in volume.chambers for word in words(cylinder)]


def _part(owner: str, candidate: Candidate, wanted: list[str]) -> Likeness | None:
    """By parts of a machine, whatever they are called, else by the same words."""
    parts = parts_in(wanted)
    theirs = parts_in(candidate.own_words) or parts_in(candidate.topic_words)
    if parts and theirs:
        if not parts & theirs:
            return None
        both = sorted(parts & theirs)
        said = [word for word in candidate.words if any(word in PARTS[name] for name in both)]
        return Likeness(3.0 if parts == theirs else 2.0, True, f'name: {" ".join(dict.fromkeys(said))}')
    same = [word for word in dict.fromkeys(wanted) if word not in NEUTRAL and word in candidate.words]
    if same:
        return Likeness(2.0, True, f'name: {" ".join(same)}')
    return Likeness(0.0, False, 'nothing in its name')


def _side(volume: Volume | None, candidate: Candidate, part: Likeness) -> Likeness | None:
    """Which side of the piston, where the channel is of one."""
    sides = {side for _, side in volume.chambers} if volume else set()
    if len(sides) != 1:
        return part
    wanted, theirs = next(iter(sides)), sides_in(candidate.own_words) or sides_in(candidate.topic_words)
    if theirs and wanted not in theirs:
        return None
    if len(theirs) == 1:
        return part._replace(points=part.points + 2.0, words=f'{part.words}, {wanted} side')
    ports = {PORTS[word] for word in candidate.own_words if word in PORTS}
    if len(ports) == 1:
        if ports != {wanted}:
            return None
        doubt = f'its port is taken for the {wanted} side'
        return part._replace(points=part.points + 1.0, doubts=(doubt, *part.doubts))
    return part._replace(sure=False)


def _of_axis(owner: str, candidate: Candidate) -> Likeness | None:
    """Of one axis of an IMU."""
    name, _, axis = owner.partition('.')
    if candidate.path[-1].field != (axis or candidate.path[-1].field):
        return None
    found = _part(owner, candidate, words(name))
    return found and found._replace(words=f'{found.words}, axis {candidate.path[-1].field}')


def _of_base(owner: str, candidate: Candidate) -> Likeness | None:
    """Roll or pitch of the base: only of an orientation, and not of one that is named after a boom or a bucket."""
    if candidate.path[-1].field != owner.rpartition('_')[2] or parts_in(candidate.words) - UPPER:
        return None
    said = [word for word in candidate.words if word in BASE]
    doubt = 'is it level with the base, or does it swing with the upper structure?'
    return Likeness(2.0 if said else 1.0, bool(said), f'name: {" ".join(said) or candidate.path[-1].field}', (doubt,))
