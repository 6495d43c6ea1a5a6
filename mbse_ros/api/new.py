# SPDX-License-Identifier: Apache-2.0
"""``new``: a machine file from what a tape measure, a data plate and a data sheet give, and from a URDF."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..description.from_urdf.answers import URDF, is_robot, read_robot_answers
from ..description.from_urdf.layout import robot_layout
from ..description.from_urdf.write import robot_text
from ..description.language.document import read_document
from ..description.load import parse_mechanism
from ..description.templates.answers import read_answers
from ..description.templates.chain import layout_of
from ..description.templates.likely import odd_mass
from ..description.templates.write import text_of
from ..report.result import Answer
from ..resources import read_text, write_whole
from .checked import checked

GIVEN = 'answers'       # as errors name answers that are no file


@dataclass(frozen=True)
class NewMachine(Answer):
    """A new machine: its ``name``, the ``text`` of its file, how many numbers and points are ``assumed``, and the
    cylinders ``without_pressures``, whose pressures are not measured; ``measured``: those of any, or efforts, are;
    ``planned``: `mbse calibrate --plan` serves it; ``warnings``: what is odd about the answers."""

    name: str
    text: str
    assumed: int
    without_pressures: tuple[str, ...] = ()
    measured: bool = True
    planned: bool = True
    warnings: tuple[str, ...] = ()

    def summary(self) -> list[str]:
        """What there is to know."""
        lacking = ', '.join(self.without_pressures)
        how = '`mbse calibrate --plan` says which motions find them' if self.planned else (
            '`mbse calibrate` finds them from a bag of the empty machine')
        if not self.measured:
            how = f'`mbse calibrate` needs pressures to find them, not measured are those of {lacking}'
        elif lacking:
            how += f', best with the pressures of {lacking} too'
        return [f'{self.name}: {self.assumed} numbers and points are assumed; {how}']

    def write(self, path: str | Path) -> None:
        """Write the file. Raises OSError."""
        write_whole(path, self.text)

    def _values(self, full: bool) -> dict[str, Any]:
        return {'name': self.name, 'text': self.text, 'assumed': self.assumed,
                'without_pressures': list(self.without_pressures), 'warnings': list(self.warnings)}


@checked
def new(answers: str | Path | Mapping[str, Any], urdf: str | Path | None = None) -> NewMachine:
    """A machine file from answers: lengths between pins by a tape measure, bores and lengths of cylinders, the
    operating mass, what is measured. Masses, centres of mass, friction and oil are typical of the kind and marked as
    assumed, with wide deviations.

    ``answers``: a YAML file, or a mapping, from questions to answers as text with units or in SI (masses with their
    unit); its ``kind`` says which they are (`mbse new --questions KIND`). With a ``urdf`` instead of a kind, as an
    argument or an answer (a path from the folder of the answers), frames, joints and masses are those of the URDF
    (`mbse new --urdf FILE --questions urdf`). The result: ``text`` of the file, ``write(path)``. Raises
    DescriptionError with the answer, its value and what was expected, DescriptionErrors of several; where all are
    sound, also for lengths that make no triangle.

    >>> new({'kind': 'single_cylinder', 'name': 'arm', 'mass': '300 kg', 'arm': '2 m', 'lift_base': '0.3 m, -0.8 m',
    ...      'lift_eye': '0.7 m, 1.4 m', 'lift_cylinder': '80 mm, 45 mm, 0.75 m, 1.15 m', 'positions': 'strokes'}).name
    'arm'
    """
    file = GIVEN if isinstance(answers, Mapping) else str(answers)
    tree: Any = dict(answers) if isinstance(answers, Mapping) else read_document(read_text(Path(answers)), file)
    if urdf is not None and isinstance(tree, dict):
        tree = {**tree, URDF: str(Path(urdf).resolve())}
    if is_robot(tree):
        return _of_robot(tree, file)
    given = read_answers(tree, file)
    text = text_of(layout_of(given))
    parse_mechanism(text, given.name)
    return NewMachine(given.name, text, text.count('source: assumed'), tuple(
        name for name in given.kind.cylinders if name not in given.pressures()), bool(given.pressures()),
        warnings=odd_mass(given))


def _of_robot(tree: Mapping[str, Any], file: str) -> NewMachine:
    given = read_robot_answers(tree, file)
    layout, name = robot_layout(given), str(given.values['name'])
    text = robot_text(given, layout)
    parse_mechanism(text, name)
    pressures, driven = given.pressures, bool(given.joints('drive'))
    return NewMachine(name, text, text.count('source: assumed'), tuple(
        item for item in given.cylinders.values() if item not in pressures), bool(pressures) or driven, not driven,
        tuple(layout.notes))
