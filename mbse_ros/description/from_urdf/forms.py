# SPDX-License-Identifier: Apache-2.0
"""Forms of answers that only a URDF needs, as those of ``templates.forms``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Literal

from ..language.entry import Entry
from ..language.quantity import ValueKind, read_number
from ..robots.urdf import entry_name
from ..templates import forms
from ..templates.answers import Question
from ..templates.forms import Form
from ..templates.kinds import MASS_SPREAD
from .chain import UPRIGHT, ChainBody, RobotChain

Moves = Literal['cylinder', 'linkage', 'drive', 'sensor', 'still']
WORDS: tuple[Moves, ...] = ('cylinder', 'linkage', 'drive', 'sensor', 'still')
MOVES = ('cylinder; linkage (a cylinder with rocker and link, as of a bucket); drive (a motor whose effort is '
         'measured); sensor (measured alone, as a swing); still (does not move)')
FITTING = 'which of the drawn machines it is, where the lengths of the {} cylinder leave several: auto, or A, B, ...'
LETTERS = ascii_uppercase
AUTO = 'auto'
SHARE = ValueKind('1', 1e-3, 1.0)
IN_LINKS = {'unknown': (0.5, 1.0), 'included': (0.0, 0.0), 'apart': (1.0, MASS_SPREAD)}
"""Whether masses of links include those of cylinders: share of the typical masses that counts, and its deviation."""


@dataclass(frozen=True)
class Pin:
    """A pin by the ``link`` of the URDF that has its origin there, or by two ``lengths``, m, and the ``side`` of the
    line of pins, if the answer says it."""

    link: str = ''
    lengths: tuple[float, float] = (0.0, 0.0)
    side: int | None = None


def moves(entry: Entry) -> Moves:
    """What moves a joint."""
    word = entry.choice(WORDS, 'what moves the joint')
    return next(item for item in WORDS if item == word)


def motion(chain: RobotChain, joint: str) -> str:
    """What a joint does, in words."""
    body = next(item for item in chain.bodies if item.joint.name == joint)
    if body.joint.limits is None:
        return 'slides' if body.slides else 'turns'
    low, high = body.joint.limits
    return (f'slides {low:.4g} to {high:.4g} m' if body.slides else
            f'turns {math.degrees(low):.0f} to {math.degrees(high):.0f} deg')


def pin(chain: RobotChain) -> Form:
    """Two distances, and a side; or a link."""
    def read(entry: Entry) -> Pin:
        if isinstance(entry.value, str):
            return Pin(_link(entry, chain))
        (first, second), side = forms.point(entry)
        return Pin('', (first, second), side)
    return read


def ahead(chain: RobotChain) -> Form:
    """How far ahead of a pin, and how far above it; or a link."""
    def read(entry: Entry) -> Pin:
        if isinstance(entry.value, str):
            return Pin(_link(entry, chain))
        x, z = (read_number(item, forms.PLACE) for item in entry.items(
            'how far ahead of the pin, and how far above it, or the name of a link', 2))
        return Pin('', (x, z), 1)
    return read


def _link(entry: Entry, chain: RobotChain) -> str:
    seats = chain.robot.seats
    word = entry_name(entry.text('two lengths, or a link of the URDF'))
    if word not in seats:
        raise entry.error('two lengths with a comma between them, or a link of the URDF that has its frame at the pin')
    return word


def place(entry: Entry) -> list[float]:
    """Three coordinates, m."""
    return [read_number(item, forms.PLACE) for item in entry.items('x, y and z', 3)]


def share(entry: Entry) -> float:
    """A deviation as a share."""
    return read_number(entry, SHARE)


def axis(entry: Entry) -> str:
    """An axis of the root."""
    return entry.choice(UPRIGHT, 'an axis')


def efforts(entry: Entry) -> str:
    """What is measured of drives."""
    return entry.choice(('effort', 'current'), 'what is measured')


def cylinder_masses(entry: Entry) -> tuple[float, float]:
    """Whether the masses of the URDF include the cylinders."""
    return IN_LINKS[entry.choice(IN_LINKS, 'whether the masses of the URDF include the cylinders')]


def topic(entry: Entry) -> str:
    """A topic; '' of none."""
    word = entry.text('a topic, or none')
    if word != 'none' and not word.startswith('/'):
        raise entry.error('a topic, which begins with /, or none')
    return '' if word == 'none' else word


def branch(entry: Entry) -> int | None:
    """Which of several machines; None: the one that fits."""
    word = entry.choice((AUTO, *LETTERS), 'auto, or the letter of a drawn machine')
    return None if word == AUTO else LETTERS.index(word)


def each(count: int, kind: ValueKind) -> Form:
    """One number for all, or one for each of so many."""
    def read(entry: Entry) -> list[float]:
        if not isinstance(entry.value, list):
            return [read_number(entry, kind)] * count
        if len(entry.value) not in (1, count):
            raise entry.error(f'one number for all, or {count}')
        found = [read_number(item, kind) for item in entry.items('numbers')]
        return found if len(found) == count else found * count
    return read


def linkage(chain: RobotChain, body: ChainBody, far: str) -> Iterator[Question]:
    """Questions of the linkage of a bucket, the ``body``: rocker on its parent, and link."""
    parent = body.parent
    yield Question('rocker_pin', f'rocker, its pin on {parent}: how far before the pin of {body.name}, along the line '
                   f'of the pins of {parent}, and how far above this line (a string); or a link of the URDF',
                   ahead(chain))
    yield Question('rocker', 'rocker: from its pin to the eye of the cylinder', forms.length)
    yield Question('link', f'link: from the eye of the cylinder to its pin on {body.name}', forms.length)
    yield Question('link_pin', f'link, its pin on {body.name}: {far} {body.name}; or a link of the URDF', pin(chain))
