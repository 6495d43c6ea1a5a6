# SPDX-License-Identifier: Apache-2.0
"""A loop that does not close: the answer that most probably is wrong, and what would fit."""

from __future__ import annotations

import re
from typing import Any

import pytest
from new_machines import CRANE, EXCAVATOR, LOADER, with_answer

from mbse_ros.description.templates.answers import read_answers, read_some
from mbse_ros.description.templates.chain import begun, layout_of
from mbse_ros.description.templates.examples import EXAMPLES
from mbse_ros.description.templates.kinds import KINDS
from mbse_ros.description.templates.likely import odd_mass
from mbse_ros.errors import DescriptionError

Wrong = tuple[dict[str, Any], str, str, str]
WRONG: dict[str, Wrong] = {
    'an extended length': (EXCAVATOR, 'boom_cylinder', '100 mm, 65 mm, 1.65 m, 2.4 m', 'the extended length'),
    'a closed length': (CRANE, 'tilt_cylinder', '90 mm, 50 mm, 0.94 m, 1.74 m', 'the closed length'),
    'an extended length of a Z-bar': (LOADER, 'tilt_cylinder', '130 mm, 70 mm, 1.05 m, 1.9 m', 'the extended length')}


def refused(answers: dict[str, Any]) -> DescriptionError:
    with pytest.raises(DescriptionError) as caught:
        layout_of(read_answers(answers))
    return caught.value


@pytest.mark.parametrize('what', WRONG)
def test_the_wrong_answer_is_named_with_what_would_fit(what: str) -> None:
    """And what would fit is no other error: the middle of the range closes the machine."""
    answers, key, value, part = WRONG[what]
    error = refused(with_answer(answers, key, value))
    assert error.key == key and f'most probably {part} of {key} is wrong' in error.expected, error
    low, high = map(float, re.search(r'wrong: (-?[0-9.]+) to (-?[0-9.]+) m would fit', error.expected).groups())
    parts = value.split(', ')
    place = ('the closed length', 'the extended length').index(part) + 2
    layout_of(read_answers(with_answer(answers, key, ', '.join(
        [*parts[:place], f'{0.5 * (low + high)} m', *parts[place + 1:]]))))


def test_several_suspects_come_with_their_ranges() -> None:
    """A link that is too short is not the first of them, since the cylinder would have to change less."""
    error = refused(with_answer(EXCAVATOR, 'link', '0.15 m'))
    assert 'or link, the length: 0.315 to ' in error.expected


def test_a_slip_of_the_decimal_point_and_a_wrong_sign_are_suspects() -> None:
    error = refused(with_answer(CRANE, 'lift_base', '0.25 m, -0.105 m'))
    assert 'lift_base is wrong: -1.05 m would fit' in error.expected and error.key == 'lift_base', error
    error = refused(with_answer(LOADER, 'tilt_base', '0.05 m, -0.45 m'))
    assert error.key == 'tilt_base' and 'is wrong: 0.45 m would fit' in error.expected, error


def test_a_triangle_that_hardly_closes_is_not_a_traceback() -> None:
    """18 mm short of a line: within what a tape measure leaves, but not with 5 mm more."""
    layout_of(read_answers(with_answer(EXCAVATOR, 'boom_eye', '1.65 m, 2.172 m')))


def test_some_answers_are_some_of_the_machine() -> None:
    keys = list(EXCAVATOR)
    some = {key: EXCAVATOR[key] for key in keys[:keys.index('arm_cylinder')]}
    answers = read_some(some)
    assert answers is not None and read_some({'kind': 'sledge'}) is None
    layout, error = begun(answers)
    assert [body.link.name for body in layout.bodies] == ['boom'] and error is None
    whole = read_some({**EXCAVATOR, 'link': '0.15 m'})
    assert whole is not None
    layout, error = begun(whole)
    assert [body.link.name for body in layout.bodies] == ['boom', 'arm'] and error is not None
    assert 'rocker' in str(error)


@pytest.mark.parametrize('kind', [name for name, kind in KINDS.items() if kind.by_cube])
def test_a_mass_with_a_digit_too_many_or_too_few_is_noticed(kind: str) -> None:
    """What would fit is said: a mass in which the right one is."""
    answers = {'kind': kind, **EXAMPLES[kind], 'load': '1 kg'}
    mass = float(answers['mass'].split()[0])
    assert not odd_mass(read_answers(answers))
    for slip in (0.1, 10.0):
        (said,) = odd_mass(read_answers({**answers, 'mass': f'{slip * mass} t'}))
        low, unit, high = re.search(r'weighs ([0-9.]+) ?(kg|t)? to ([0-9.]+) t', said).groups()
        assert (1e-3 if unit == 'kg' else 1.0) * float(low) < mass < float(high), said


def test_small_and_large_excavators_are_not_odd() -> None:
    """zx200, and lengths as those of 1.7 t and of 90 t are: operating mass, boom, arm."""
    for mass, boom, arm in (('20.5 t', '5.648 m', '2.889 m'), ('1.7 t', '1.8 m', '0.95 m'), ('90 t', '8.4 m', '3.6 m')):
        answers = read_some({'kind': 'excavator', 'mass': mass, 'boom': boom, 'arm': arm})
        assert answers is not None and not odd_mass(answers)
