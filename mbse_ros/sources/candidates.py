# SPDX-License-Identifier: Apache-2.0
"""The numbers of surveyed topics, and how well they fit a channel: what their names say, and in which units their
values can be its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log, nan
from typing import NamedTuple

import numpy as np

from ..bags.topics import JOINT_STATE
from ..description.coordinate_units import measured_unit, unit_of
from ..description.language.units import parse_unit
from ..description.machine_parts import Volume
from ..description.model import MechanismDescription
from ..dynamics.model import Model
from ..machine import Machine
from ..machine.channels import Channel
from ..report.text import number
from .fields import Path, PathStep, path_text
from .survey import TopicSurvey
from .words import PARTS, PORTS, QUANTITIES, parts_in, quantities_in, sides_in, words

FEWEST = 5      # values
NEUTRAL = {'joint', 'cylinder', 'sensor', 'link', 'volume', 'chamber', 'main', 'imu', 'x', 'y', 'z', 'of'}.union(
    *QUANTITIES.values())
BASE = {'base', 'body', 'chassis', 'undercarriage', 'vehicle', 'machine'}
UPPER = {'swing', 'track'}      # parts that an IMU of the base may be named after
UNITS = {'Pa': ('Pa', 'kPa', 'bar', 'MPa'), 'rad': ('rad', 'deg'), 'm': ('m', 'mm', 'cm'), 'rad/s': ('rad/s', 'deg/s'),
         'm/s': ('m/s', 'mm/s'), 'm/s^2': ('m/s^2', 'standard_gravity')}
LARGEST = (3e6, 45e6)       # Pa, the largest pressure of a machine at work
RELIEF = 30e6               # Pa
LOWEST = -0.3e6             # Pa, of a sensor that is off by so much
ROOM = 0.05                 # of a range, that values may be outside it
FAST = {'rad/s': 5.0, 'm/s': 3.0}       # no machine is faster; a mechanism without cylinders may be, ...
FASTER = 20.0               # ... by so many times
TURNS = 100.0               # rad to each side of 0 of an angle of such a mechanism that has no limits
GRAVITY = (5.0, 15.0)       # m/s^2, usual length of the vector that an accelerometer measures
STILL = 0.02                # of a range, that a position moves at least: else its range says little


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
    if fields[-1] == 'effort' and msgtype == JOINT_STATE:
        return {'effort'}
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


class UnitFit(NamedTuple):
    """In ``unit``, with ``offset`` text or '', the values span ``low`` to ``high``, SI; ``share`` of the channel's
    range that they cover, NaN where it has none; ``words`` about it."""

    unit: str
    offset: str
    low: float
    high: float
    share: float
    words: str


def ends(values: np.ndarray) -> tuple[float, float]:
    """Lowest and highest value, without single spikes."""
    low, high = np.percentile(values, [0.2, 99.8])
    return float(low), float(high)


def pressure_units(largest: float, hints: Iterable[str] = ()) -> list[str]:
    """Units in which the largest of several pressures is one of a machine at work: those that names hint at first,
    then the one that comes nearest to what relief valves are set to."""
    hinted = {word.lower() for word in hints}
    sizes = {unit: largest * parse_unit(unit)[0] for unit in UNITS['Pa']}
    fitting = [unit for unit, size in sizes.items() if LARGEST[0] <= size <= LARGEST[1]]
    return sorted(fitting, key=lambda unit: (unit.lower() not in hinted, abs(log(sizes[unit] / RELIEF))))


def pressure_fit(values: np.ndarray, unit: str) -> UnitFit | None:
    """Of a pressure in a unit; None where values are below zero by far."""
    low, high = (parse_unit(unit)[0] * end for end in ends(values))
    if low < LOWEST or high > LARGEST[1]:
        return None
    return UnitFit(unit, '', low, high, float('nan'), f'{1e-6 * low:.2g} to {1e-6 * high:.3g} MPa as {unit}')


def position_fits(values: np.ndarray, item: Machine | Model, channel: Channel) -> list[UnitFit]:
    """Units, and zeros of a stroke, with which the values are inside the channel's range; the best first."""
    unit = measured_unit(item.description, channel.sensor.name)
    low, high, zeros = channel_range(item, channel)
    found = []
    for name in UNITS[unit]:
        factor = parse_unit(name)[0]
        first, last = (factor * end for end in ends(values))
        for zero in zeros:
            room = ROOM * (high - low)
            if low - room <= first - zero and last - zero <= high + room:
                share = (last - first) / (high - low)
                offset = f'{-zero:g} m' if zero else ''
                told = f'{_shown(first - zero, unit)} to {_shown(last - zero, unit)} of {_shown(low, unit)} to ' \
                       f'{_shown(high, unit)} as {name}' + (' pin to pin' if zero else '')
                found.append(UnitFit(name, offset, first - zero, last - zero, share, told))
    return sorted(found, key=lambda fit: -fit.share)


def channel_range(item: Machine | Model, channel: Channel) -> tuple[float, float, Sequence[float]]:
    """Range of a position channel, SI, and what its zeros may be: of a stroke also the pins' distance, closed."""
    name, description = channel.name.partition('/')[2], item.description
    if name in description.cylinders:
        cylinder = description.cylinders[name]
        return 0.0, cylinder.stroke.value, (0.0, cylinder.closed_length.value)
    if isinstance(item, Machine) and name in item.coordinates:
        low, high = item.range[item.coordinates.index(name)].tolist()
        return low, high, (0.0,)
    coordinate = description.coordinates.get(name)
    joint = description.joints.get(coordinate.joint) if coordinate else None
    if joint is not None and joint.limits is not None:
        return *joint.limits, (0.0,)
    if channel.sensor.kind == 'inclination':
        return -0.8, 0.8, (0.0,)
    turning = (unit_of(description, name) or 'rad') == 'rad' or channel.sensor.kind == 'inclinometer'
    wide = 20.0 if not turning else np.pi if isinstance(item, Machine) or channel.sensor.wraps else TURNS
    return -wide, wide, (0.0,)


def rate_fits(values: np.ndarray, unit: str, length: float = nan, fast: float = 1.0) -> list[UnitFit]:
    """Units in which a velocity, an angular velocity or a specific force is one of a machine, or of what is so many
    times as ``fast``; ``length``: usual one of
    the vector of which a specific force is a component, NaN where it is not known."""
    found = []
    for name in UNITS[unit]:
        low, high = (parse_unit(name)[0] * end for end in ends(values))
        weight = parse_unit(name)[0] * length if unit == 'm/s^2' else nan
        if max(-low, high) <= fast * FAST.get(unit, 30.0) and not (weight < GRAVITY[0] or weight > GRAVITY[1]):
            found.append(UnitFit(name, '', low, high, nan, f'{number(low)} to {number(high)} {unit} as {name}'))
    return found


def effort_fit(values: np.ndarray, unit: str) -> UnitFit:
    """In the unit of the sensor in the machine's file: a message does not say whether it has torques or currents."""
    low, high = ends(values)
    return UnitFit(unit.replace(' ', '*'), '', low, high, nan,
                   f"{number(low)} to {number(high)} {unit}, the unit of the sensor in the machine's file")


def _shown(value: float, unit: str) -> str:
    factor, name = {'rad': (180.0 / np.pi, 'deg'), 'm': (1e3, 'mm')}.get(unit, (1.0, unit))
    return f'{number(factor * value)} {name}'
