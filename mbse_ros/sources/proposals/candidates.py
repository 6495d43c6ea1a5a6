# SPDX-License-Identifier: Apache-2.0
"""The numbers of surveyed topics, with what their names say of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan

import numpy as np

from ..path import Path, PathStep, path_text
from .survey import TopicSurvey
from .words import quantities_in, words

FEWEST = 5      # values


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
