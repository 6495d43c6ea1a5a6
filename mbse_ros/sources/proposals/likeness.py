# SPDX-License-Identifier: Apache-2.0
"""How well the names of a number fit those of a channel."""

from __future__ import annotations

from typing import NamedTuple

from ...machine import Machine
from ...machine.channels import Channel
from .candidates import Candidate
from .words import PARTS, PORTS, QUANTITIES, parts_in, sides_in, words

NEUTRAL = {'joint', 'cylinder', 'sensor', 'link', 'volume', 'chamber', 'main', 'imu', 'x', 'y', 'z', 'of'}.union(
    *QUANTITIES.values())
BASE = {'base', 'body', 'chassis', 'undercarriage', 'vehicle', 'machine'}
UPPER = {'swing', 'track'}      # parts that an IMU of the base may be named after


class Likeness(NamedTuple):
    """``points``; ``sure``: enough to go by; ``words`` that say why, and doubts."""

    points: float
    sure: bool
    words: str
    doubts: tuple[str, ...] = ()


def likeness(machine: Machine, channel: Channel, candidate: Candidate) -> Likeness | None:
    """None where the names contradict each other."""
    owner = channel.name.partition('/')[2]
    if channel.sensor.kind == 'inclination':
        return _of_base(owner, candidate)
    if candidate.path[-1].field in ('roll', 'pitch'):
        return None
    if channel.kind in ('gyro', 'accelerometer'):
        return _of_axis(owner, candidate)
    part = _part(owner, candidate, _part_words(machine, channel, owner))
    if part is None or channel.kind != 'pressure':
        return part
    return _side(machine, channel, candidate, part)


def _part_words(machine: Machine, channel: Channel, owner: str) -> list[str]:
    """Words of the part that a channel is of: of a volume those of the cylinders whose chambers it joins."""
    volume = machine.hydraulics.volumes.get(channel.sensor.volume or '')
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


def _side(machine: Machine, channel: Channel, candidate: Candidate, part: Likeness) -> Likeness | None:
    """Which side of the piston, where the channel is of one."""
    volume = machine.hydraulics.volumes.get(channel.sensor.volume or '')
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
