# SPDX-License-Identifier: Apache-2.0
"""The questions of a kind of machine, and their answers as numbers; every wrong one is refused with its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..language.entry import Entry
from ..language.quantity import ValueKind, positive, read_number
from ..language.units import split_number
from .kinds import KINDS, MachineKind

LENGTH = positive('m', 100.0)
BORE = ValueKind('m', 1e-3, 5.0)
HANGING = ValueKind('m', 0.1, 100.0)
PLACE = ValueKind('m', -100.0, 100.0)
POSITIONS = {'strokes': ('m', 1e-3), 'angles': ('rad', 1.7e-3), 'inclinations': ('rad', 3.5e-3)}
"""What measures the motion: unit and standard deviation, if none is given."""
REFERENCES = ('absolute', 'gauge')
WORDS = {'above': 1, 'below': -1}


@dataclass(frozen=True)
class Question:
    """``key`` of the answer; ``text`` that asks; an ``example``; ``default``: what counts without an answer, '' where
    one is needed."""

    key: str
    text: str
    example: str
    default: str = ''


@dataclass(frozen=True)
class Answers:
    """Answers to the questions of a kind, in SI: what was said to each, by its key."""

    kind: MachineKind
    name: str
    mass: float
    load: float
    entries: Mapping[str, Entry]

    def length(self, key: str) -> float:
        """m."""
        return read_number(self.entries[key], LENGTH)

    def several(self, key: str, what: str, count: int, kind: ValueKind = LENGTH) -> list[float]:
        """So many numbers in one list."""
        return [read_number(item, kind) for item in self.entries[key].items(what, count)]

    def point(self, key: str, side: int) -> tuple[list[float], int]:
        """Distances from the two pins of a body's line, and the side of the line, which a third item may change."""
        entry = self.entries[key]
        what = "two distances, from the first and from the last pin of the body, and, if need be, 'above' or 'below'"
        items = entry.items(what)
        if len(items) not in (2, 3):
            raise entry.error(what)
        if len(items) == 3:
            side = WORDS[items[2].choice(WORDS, 'a side of the line of the pins')]
        return [read_number(item, LENGTH) for item in items[:2]], side

    def cylinder(self, key: str) -> list[float]:
        """Bore, rod, closed and extended length from pin to pin, m."""
        entry = self.entries[key]
        items = entry.items('bore, rod, closed length and extended length, pin to pin', 4)
        bore, rod = (read_number(item, BORE) for item in items[:2])
        closed, extended = (read_number(item, LENGTH) for item in items[2:])
        if rod >= bore:
            raise items[1].error(f'a rod thinner than the bore, {bore:g} m')
        if not closed < extended < 2.0 * closed:
            raise items[3].error(f'more than the closed length, {closed:g} m, and less than twice as much')
        return [bore, rod, closed, extended]

    def positions(self) -> tuple[str, float]:
        """What measures the motion, and its standard deviation, m or rad."""
        entry = self.entries['positions']
        parts = entry.items('a word and a deviation') if isinstance(entry.value, list) else [entry]
        if len(parts) not in (1, 2):
            raise entry.error("a word, or a word and a deviation, such as '[strokes, 1 mm]'")
        word = parts[0].choice(POSITIONS, 'a kind of position sensors')
        unit, stddev = POSITIONS[word]
        return word, read_number(parts[1], positive(unit)) if len(parts) == 2 else stddev

    def pressures(self, cylinders: list[str]) -> list[str]:
        """Cylinders whose pressures are measured."""
        entry = self.entries['pressures']
        if entry.value in ('all', 'none'):
            return cylinders if entry.value == 'all' else []
        items = entry.items('cylinders, or all, or none') if isinstance(entry.value, list) else [entry]
        return [item.choice(cylinders, 'all, none, or cylinders of') for item in items]

    def pressure_sensors(self) -> tuple[float, bool]:
        """The end of their range, Pa, and whether they measure from the pressure of the atmosphere."""
        entry = self.entries['pressure_sensors']
        items = entry.items("a range and its reference, such as '[400 bar, gauge]'", 2)
        return read_number(items[0], ValueKind('Pa', 1e6, 2e8)), items[1].choice(REFERENCES, 'a reference') == 'gauge'

    def swing(self) -> float | None:
        """How far the foot of the boom is ahead of the swing axis, m; None: not measured."""
        return self._optional('swing', PLACE)

    def hanging(self) -> float | None:
        """From the pin of the hook to the load, m; None: it does not swing."""
        return self._optional('hanging', HANGING)

    def _optional(self, key: str, kind: ValueKind) -> float | None:
        entry = self.entries.get(key)
        return None if entry is None or entry.value == 'none' else read_number(entry, kind)


def questions(kind: MachineKind) -> list[Question]:
    """All of a kind, in their order."""
    whole = 'operating mass of the data plate' if kind.bucket else 'mass of the crane, or of what the cylinder moves'
    found = [Question('name', 'name of the machine, of letters and digits', 'mini8'), Question('mass', whole, '8 t'),
             Question('load', 'largest load', '1 t', f'{100.0 * kind.load:g} % of the mass')]
    before = ''
    for k, link in enumerate(kind.links):
        name, cylinder = link.name, f'{link.cylinder} cylinder'
        eye = _on(name, f'{link.cylinder}_eye', f'{cylinder}, eye of its rod')
        if kind.linkage == 'rocker' and link is kind.links[-1]:
            eye = Question(eye.key, f'{cylinder}, eye of its rod: from the first pin of the {name} and from the pin of '
                           "the bucket cylinder's base", '0.50 m, 0.70 m')
        base = _on(before, f'{link.cylinder}_base', f'{cylinder}, pin of its base')
        if not k:
            base = Question(base.key, f'{cylinder}, pin of its base: how far ahead of the foot of the {name}, and how '
                            'far above it (below it: negative)', '0.35 m, -0.45 m')
        found += [Question(name, f'{name}: length from its first to its last pin', '3.70 m'), base, eye,
                  _cylinder(link.cylinder)]
        if not k:
            found.append(Question(f'{link.cylinder}_cylinders', f'{cylinder}s side by side', '2', '1'))
        before = name
    found += _LINKAGES[kind.linkage](before)
    return [*found, Question('positions', f'what measures the motion: {", ".join(POSITIONS)}; and its deviation',
                             'strokes, 1 mm'),
            Question('pressures', 'cylinders whose two pressures are measured: all, none, or names', 'all', 'all'),
            Question('pressure_sensors', 'range of the pressure sensors, and absolute or gauge', '400 bar, gauge',
                     '400 bar, absolute')]


def _rocker(arm: str) -> list[Question]:
    """Of the bucket of an excavator."""
    return [_bucket(), _on(arm, 'bucket_base', 'bucket cylinder, pin of its base'),
            Question('rocker_pin', f'rocker, its pin on the {arm}: how far before the pin of the bucket, along the '
                     f'line of the pins of the {arm}, and how far above this line (a string)', '0.30 m, 0.03 m'),
            Question('rocker', 'rocker: from its pin to the eye of the bucket cylinder', '0.42 m'),
            Question('link', 'link: from the eye of the bucket cylinder to its pin on the bucket', '0.40 m'),
            _cylinder('bucket'),
            Question('swing', 'how far the foot of the boom is ahead of the swing axis, if a sensor measures the swing '
                     'angle, else none', '0.2 m', 'none')]


def _bellcrank(boom: str) -> list[Question]:
    """Of the bucket of a wheel loader."""
    return [_bucket(), Question('tilt_base', 'tilt cylinder, pin of its base: how far ahead of the foot of the '
                                f'{boom}, and how far above it', '0.05 m, 0.45 m'),
            _on(boom, 'bellcrank_pin', f'bellcrank, its pin on the {boom}'),
            Question('bellcrank', 'bellcrank: from its pin to the eye of the tilt cylinder, from its pin to the pin of '
                     'the link, from the eye to the pin of the link', '0.60 m, 0.65 m, 1.20 m'),
            Question('link', 'link: from the bellcrank to the bucket', '1.10 m'), _cylinder('tilt')]


def _hook(_: str) -> list[Question]:
    """Of a crane."""
    return [Question('hanging', 'from the pin of the hook to the middle of the load, if it swings, else none', '1.5 m',
                     'none')]


def _bucket() -> Question:
    return Question('bucket', 'bucket: from its pin to the pin of the link, from its pin to the teeth, from the pin of '
                    'the link to the teeth', '0.33 m, 1.10 m, 1.20 m')


_LINKAGES = {'rocker': _rocker, 'bellcrank': _bellcrank, '': _hook}


def template(kind: MachineKind) -> str:
    """A file of answers with examples, to be filled in; what has a default is a comment."""
    lines = [f'# {kind.text}', f'kind: {kind.name}']
    for item in questions(kind):
        lines += [f'# {item.text}', f'# {item.key}: {item.default}' if item.default else f'{item.key}: {item.example}']
    return '\n'.join(lines) + '\n'


def _on(body: str, key: str, what: str) -> Question:
    return Question(key, f'{what}: from the first and from the last pin of the {body}', '1.20 m, 2.60 m')


def _cylinder(name: str) -> Question:
    return Question(f'{name}_cylinder', f'{name} cylinder: bore, rod, and from pin to pin closed and extended',
                    '100 mm, 65 mm, 1.40 m, 2.30 m')


def kind_of(root: Entry) -> MachineKind:
    """The kind that the answers name; raises DescriptionError."""
    if not isinstance(root.value, dict):
        raise root.error('a mapping from questions to answers, with the key kind')
    if 'kind' not in root.value:
        raise root.error('this key, which is missing; one of ' + ', '.join(KINDS), None, 'kind')
    return KINDS[Entry(root.file, 'kind', root.value['kind']).choice(KINDS, 'a kind of machine')]


def read_answers(tree: Any, file: str = 'answers') -> Answers:
    """Answers as a file or a terminal gives them: lists may be one text with commas. Raises DescriptionError."""
    root = Entry(file, '', tree)
    kind = kind_of(root)
    asked = questions(kind)
    parts = root.mapping(['kind', *(item.key for item in asked if not item.default)],
                         [item.key for item in asked if item.default])
    entries = {item.key: _listed(parts.get(item.key, Entry(file, item.key, item.default))) for item in asked}
    mass = _mass(entries['mass'])
    load = _mass(entries['load']) if 'load' in parts else kind.load * mass
    if load > kind.most * mass:
        raise entries['load'].error(f'a load of at most {kind.most * mass:g} kg, for a mass of {mass:g} kg')
    return Answers(kind, entries['name'].name(), mass, load, entries)


def _listed(entry: Entry) -> Entry:
    """Numbers as text, and a text with commas as a list."""
    value = entry.value
    if isinstance(value, str) and ',' in value:
        value = [part.strip() for part in value.strip('[] ').split(',')]
    items = [_plain(item) for item in value] if isinstance(value, (list, tuple)) else _plain(value)
    return Entry(entry.file, entry.key, items)


def _mass(entry: Entry) -> float:
    """kg; a number without a unit may be t as well."""
    mass = read_number(entry, positive('kg'))
    if not split_number(entry.value)[1]:
        raise entry.error(f"a mass with its unit, such as '{entry.value.strip()} t'")
    return mass


def _plain(value: Any) -> Any:
    return repr(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def count_of(answers: Answers, cylinder: str) -> int:
    """Cylinders side by side."""
    entry = answers.entries.get(f'{cylinder}_cylinders')
    known = [str(k) for k in range(1, 9)]
    return 1 if entry is None else int(entry.choice(known, 'how many cylinders work side by side'))
