# SPDX-License-Identifier: Apache-2.0
"""The questions of a kind of machine, and their answers as numbers; every wrong one is refused with its name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ...errors import DescriptionError
from ..language.entry import Entry
from ..language.problems import Problems
from . import forms
from .examples import EXAMPLES
from .forms import Form, several
from .kinds import KINDS, MachineKind

_ALONG = 'how far ahead of the foot, and how far above it'


@dataclass(frozen=True)
class Question:
    """``key`` of the answer; ``text`` that asks; ``form`` of the answer; ``default``: what counts without an answer, ''
    where one is needed; ``late``: only asked where other answers leave it open."""

    key: str
    text: str
    form: Form
    default: str = ''
    late: bool = False

    def read(self, entry: Entry) -> Any:
        """The answer in SI; raises DescriptionError."""
        return self.form(forms.listed(entry))


@dataclass(frozen=True)
class Answers:
    """Answers to the questions of a kind: what was said to each, by its key, and what it is in SI."""

    kind: MachineKind
    entries: Mapping[str, Entry]
    values: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Of the machine."""
        return str(self.values['name'])

    @property
    def mass(self) -> float:
        """Of the machine, kg."""
        return float(self.values['mass'])

    @property
    def load(self) -> float:
        """The largest, kg."""
        return float(self.values['load'])

    def length(self, key: str) -> float:
        """m."""
        return float(self.values[key])

    def several(self, key: str) -> list[float]:
        """Numbers of one list, m; of a cylinder bore, rod, closed and extended length."""
        return list(self.values[key])

    def point(self, key: str, side: int) -> tuple[list[float], int]:
        """Distances from the two pins of a body's line, m, and the side of the line, if the answer does not say it."""
        distances, said = self.values[key]
        return distances, said or side

    def count(self, cylinder: str) -> int:
        """Cylinders side by side."""
        return int(self.values.get(f'{cylinder}_cylinders', 1))

    def positions(self) -> tuple[str, float]:
        """What measures the motion, and its standard deviation, m or rad."""
        word, stddev = self.values['positions']
        return word, stddev

    def pressures(self) -> list[str]:
        """Cylinders whose pressures are measured."""
        return list(self.values['pressures'])

    def pressure_sensors(self) -> tuple[float, bool]:
        """The end of their range, Pa, and whether they measure from the pressure of the atmosphere."""
        high, gauge = self.values['pressure_sensors']
        return high, gauge

    def swing(self) -> float | None:
        """How far the foot of the boom is ahead of the swing axis, m; None: not measured."""
        return self.values.get('swing')

    def grapple(self) -> float | None:
        """Mass of rotator and grapple, kg; None: there is none."""
        return self.values.get('grapple')

    def hanging(self) -> float | None:
        """From the pin of the hook to the load, m; None: it does not swing."""
        return self.values.get('hanging')


def questions(kind: MachineKind) -> list[Question]:
    """All of a kind, in their order."""
    whole = 'operating mass of the data plate' if kind.whole else 'mass of the crane, or of what the cylinder moves'
    found = [Question('name', 'name of the machine, of letters and digits', Entry.name),
             Question('mass', whole, forms.mass),
             Question('load', 'largest load', forms.mass, f'{100.0 * kind.load:g} % of the mass')]
    before = ''
    for k, link in enumerate(kind.links):
        name, cylinder = link.name, f'{link.cylinder} cylinder'
        if link.slides:
            found.append(Question(f'{link.cylinder}_cylinder', f'{cylinder}: bore, rod, and from pin to pin with the '
                                  f'{before} retracted and extended', forms.cylinder))
            continue
        retracted = ', retracted' * (link is not kind.links[-1] and kind.links[k + 1].slides)
        eye = _on(name, f'{link.cylinder}_eye', f'{cylinder}, eye of its rod')
        if kind.linkage == 'rocker' and link is kind.links[-1]:
            eye = Question(eye.key, f'{cylinder}, eye of its rod: from the first pin of the {name} and from the pin of '
                           "the bucket cylinder's base", forms.point)
        base = _on(before, f'{link.cylinder}_base', f'{cylinder}, pin of its base')
        if not k:
            base = Question(base.key, f'{cylinder}, pin of its base: how far ahead of the foot of the {name}, and how '
                            'far above it (below it: negative)', several(_ALONG, 2, forms.PLACE))
        found += [Question(name, f'{name}: length from its first to its last pin{retracted}', forms.length), base, eye,
                  _cylinder(link.cylinder)]
        if not k:
            found.append(Question(f'{link.cylinder}_cylinders', f'{cylinder}s side by side', forms.count, '1'))
        before = name
    found += _LINKAGES[kind.linkage](before)
    return [*found, Question('positions', f'what measures the motion: {", ".join(forms.POSITIONS)}; and its deviation',
                             forms.positions),
            Question('pressures', 'cylinders whose two pressures are measured: all, none, or names',
                     forms.pressures(kind.cylinders), 'all'),
            Question('pressure_sensors', 'range of the pressure sensors, and absolute or gauge',
                     forms.pressure_sensors, '400 bar, absolute')]


def _rocker(arm: str) -> list[Question]:
    """Of the bucket of an excavator."""
    return [_bucket(), _on(arm, 'bucket_base', 'bucket cylinder, pin of its base'),
            Question('rocker_pin', f'rocker, its pin on the {arm}: how far before the pin of the bucket, along the '
                     f'line of the pins of the {arm}, and how far above this line (a string)',
                     several('how far before the pin of the bucket, and how far above the line', 2, forms.PLACE)),
            Question('rocker', 'rocker: from its pin to the eye of the bucket cylinder', forms.length),
            Question('link', 'link: from the eye of the bucket cylinder to its pin on the bucket', forms.length),
            _cylinder('bucket'),
            Question('swing', 'how far the foot of the boom is ahead of the swing axis, if a sensor measures the swing '
                     'angle, else none', forms.optional(forms.PLACE), 'none')]


def _bellcrank(boom: str) -> list[Question]:
    """Of the bucket of a wheel loader."""
    return [_bucket(), Question('tilt_base', 'tilt cylinder, pin of its base: how far ahead of the foot of the '
                                f'{boom}, and how far above it', several(_ALONG, 2, forms.PLACE)),
            _on(boom, 'bellcrank_pin', f'bellcrank, its pin on the {boom}'),
            Question('bellcrank', 'bellcrank: from its pin to the eye of the tilt cylinder, from its pin to the pin of '
                     'the link, from the eye to the pin of the link', several(
                         'three lengths: its pin to the eye of the tilt cylinder, to the pin of the link, between '
                         'these', 3)),
            Question('link', 'link: from the bellcrank to the bucket', forms.length), _cylinder('tilt')]


def _hook(_: str) -> list[Question]:
    """Of a crane."""
    return [Question('hanging', 'from the pin of the hook to the middle of the load, if it swings, else none',
                     forms.optional(forms.HANGING), 'none')]


def _grapple(boom: str) -> list[Question]:
    """Of the crane of a forwarder."""
    return [Question('grapple', 'mass of rotator and grapple', forms.mass),
            Question('hanging', f'from the pin at the tip of the {boom} to the middle of the load in the grapple',
                     forms.optional(forms.HANGING))]


def _bucket() -> Question:
    return Question('bucket', 'bucket: from its pin to the pin of the link, from its pin to the teeth, from the pin of '
                    'the link to the teeth', several(
                        'three lengths: pin to pin of the link, pin to teeth, pin of the link to teeth', 3))


_LINKAGES = {'rocker': _rocker, 'bellcrank': _bellcrank, 'grapple': _grapple, '': _hook}


def template(kind: MachineKind) -> str:
    """A file of answers, those of a machine that closes, to be changed; what has a default is a comment."""
    return listed([f'# {kind.text}', f'kind: {kind.name}'], questions(kind), EXAMPLES[kind.name])


def listed(head: list[str], asked: Iterable[Question], examples: Mapping[str, str]) -> str:
    """A file of questions; without an example an answer is empty."""
    lines = list(head)
    for item in (item for item in asked if not item.late):
        lines += [f'# {item.text}', f'# {item.key}: {item.default}' if item.default else
                  f'{item.key}: {examples.get(item.key, "")}'.rstrip()]
    return '\n'.join(lines) + '\n'


def _on(body: str, key: str, what: str) -> Question:
    return Question(key, f'{what}: from the first and from the last pin of the {body}', forms.point)


def _cylinder(name: str) -> Question:
    return Question(f'{name}_cylinder', f'{name} cylinder: bore, rod, and from pin to pin closed and extended',
                    forms.cylinder)


def kind_of(root: Entry) -> MachineKind:
    """The kind that the answers name; raises DescriptionError."""
    if not isinstance(root.value, dict):
        raise root.error('a mapping from questions to answers, with the key kind')
    if 'kind' not in root.value:
        raise root.error('this key, which is missing; one of ' + ', '.join(KINDS), None, 'kind')
    return KINDS[root.part('kind', root.value['kind']).choice(KINDS, 'a kind of machine')]


def read_some(tree: Mapping[str, Any], file: str = 'answers') -> Answers | None:
    """Those of some answers that can be read; None without a kind."""
    kind = KINDS.get(str(tree.get('kind')))
    if kind is None:
        return None
    entries = {item.key: Entry(file, item.key, tree.get(item.key, item.default)) for item in questions(kind)}
    values = {}
    for item in questions(kind):
        if item.key in tree:
            with suppress(DescriptionError):
                values[item.key] = item.read(entries[item.key])
    return Answers(kind, entries, values)


def read_answers(tree: Any, file: str = 'answers') -> Answers:
    """Answers as a file or a terminal gives them: lists may be one text with commas. Raises DescriptionError,
    DescriptionErrors of several."""
    return Entry(file, '', tree).whole(_read)


def _read(root: Entry, problems: Problems) -> Answers:
    kind = kind_of(root)
    asked = questions(kind)
    parts = root.mapping(['kind', *(item.key for item in asked if not item.default)],
                         [item.key for item in asked if item.default])
    entries, values = {}, {}
    for item in asked:
        entry = entries[item.key] = parts.get(item.key, root.part(item.key, item.default))
        if item.key in parts or item.key != 'load':
            with entry.kept():
                values[item.key] = item.read(entry)
    if 'mass' in values:
        most = kind.most * values['mass']
        if values.setdefault('load', kind.load * values['mass']) > most:
            entries['load'].wrong(f'a load of at most {most:g} kg, for a mass of {values["mass"]:g} kg')
    problems.check()
    return Answers(kind, entries, values)
