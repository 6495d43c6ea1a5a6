# SPDX-License-Identifier: Apache-2.0
"""Machine files from lengths: the pins come back, and answers that are wrong are refused by name."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from new_machines import CRANE, EXCAVATOR, LOADER, MACHINES, SINGLE, along, measured, pins_of, with_answer

from mbse_ros.description.assumptions import is_assumed
from mbse_ros.description.basics import uncertain
from mbse_ros.description.language.document import read_document
from mbse_ros.description.load import load_mechanism, parse_mechanism
from mbse_ros.description.templates.answers import questions, read_answers, template
from mbse_ros.description.templates.chain import PLAY, layout_of
from mbse_ros.description.templates.examples import EXAMPLES
from mbse_ros.description.templates.geometry import TAPE, NoTriangleError, apex, deviations
from mbse_ros.description.templates.kinds import KINDS
from mbse_ros.description.templates.write import text_of
from mbse_ros.errors import DescriptionError, DescriptionErrors
from mbse_ros.machine import Machine, load_machine

TRUE = pins_of('zx200')
NAMES = {'boom': ('foot', 'arm_pin', {'boom_eye': 'boom_cylinder_eye', 'arm_base': 'arm_cylinder_base',
                                      'end': 'arm_pin'}),
         'arm': ('boom_pin', 'bucket_pin', {'arm_eye': 'arm_cylinder_eye', 'bucket_base': 'bucket_cylinder_base',
                                            'rocker_pin': 'rocker_pin', 'end': 'bucket_pin'}),
         'bucket': ('arm_pin', 'teeth', {'link_pin': 'link_pin', 'teeth': 'teeth'}),
         'rocker': ('arm_pin', 'eye', {'end': 'eye'}), 'link': ('eye', 'bucket_pin', {'end': 'bucket_pin'})}


def text(answers: dict[str, Any]) -> str:
    return text_of(layout_of(read_answers(answers)))


@settings(max_examples=40, deadline=None)
@given(scale=st.floats(0.3, 2.0), seed=st.integers(0, 2 ** 32 - 1))
def test_pins_of_a_machine_come_back_from_their_lengths(scale: float, seed: int) -> None:
    """Of machines of other sizes and somewhat other shapes; in the file to 10 um, as it is written."""
    rng = np.random.default_rng(seed)
    pins = {body: {pin: (scale * (x + 0.004 * rng.standard_normal()), scale * (z + 0.004 * rng.standard_normal()))
                   for pin, (x, z) in some.items()} for body, some in TRUE.items()}
    answers = measured(pins)
    for name, cylinder in load_mechanism('zx200').cylinders.items():    # short strokes: other shapes close there, too
        middle, part = cylinder.closed_length.value + 0.5 * cylinder.stroke.value, 0.3 * cylinder.stroke.value
        answers[f'{name}_cylinder'] = [0.1 * scale, 0.06 * scale, scale * (middle - part), scale * (middle + part)]
    layout = layout_of(read_answers(answers))
    file = parse_mechanism(text_of(layout))
    for body in layout.bodies:
        first, last, points = NAMES[body.link.name]
        own = pins[body.link.name]
        for pin, true in points.items():
            wanted = along((own[first], own[last]), own[true])
            assert body.points[pin][0] == pytest.approx(wanted, abs=1e-9), (body.link.name, pin)
            written = file.bodies[body.link.name].points[pin]
            assert (written[0].value, written[2].value) == pytest.approx(wanted, abs=1e-5)


def test_joints_start_where_the_true_machine_is_with_these_strokes() -> None:
    """zx200 in the middle of its strokes: its joints' angles, by the lines of their pins."""
    true = load_machine('zx200')
    strokes = {name: 0.5 * cylinder.stroke.value for name, cylinder in true.description.cylinders.items()}
    z = np.array([strokes.get(name, 0.0) for name in true.coordinates])
    q = true.model.position(z, true.model.start.q)
    starts = {joint.name: joint.start for joint in layout_of(read_answers(measured(TRUE))).joints}
    line = {body: math.atan2(TRUE[body][last][1] - TRUE[body][first][1], TRUE[body][last][0] - TRUE[body][first][0])
            for body, (first, last, _) in NAMES.items()}
    for joint, before, body in (('boom_joint', '', 'boom'), ('arm_joint', 'boom', 'arm'),
                                ('bucket_joint', 'arm', 'bucket')):
        turned = -(q[true.model.names.index(joint)] + true.description.joints[joint].rpy[1].value)
        assert starts[joint] == pytest.approx(line[body] - line.get(before, 0.0) + turned, abs=1e-5), joint


def test_the_deviation_of_a_pin_is_that_of_its_lengths() -> None:
    """Against 20,000 draws."""
    lengths = (3.8, 1.65, 2.4)
    found = deviations(lambda sides: apex(sides[0], sides[1], sides[2], 1), lengths)
    rng = np.random.default_rng(1)
    drawn = np.array([apex(*(lengths + TAPE * rng.standard_normal(3)), 1) for _ in range(20_000)])
    assert found == pytest.approx(drawn.std(axis=0), rel=0.05)


def test_lengths_on_a_line_close_within_what_a_tape_measure_leaves() -> None:
    assert apex(2.0, 1.2, 0.79, 1)[1] == 0.0
    with pytest.raises(NoTriangleError, match=r'2, 1.2 and 0.7 m make no triangle: .* 100 mm longer'):
        apex(2.0, 1.2, 0.7, 1)


def test_the_answers_of_the_tutorial_are_those_of_the_tests() -> None:
    page = (Path(__file__).parents[2] / 'docs' / 'own_machine.md').read_text(encoding='utf-8')
    block = page[page.index('```yaml\n') + 8:]
    assert text(read_document(block[:block.index('```')], 'page')) == text(EXCAVATOR)


def test_an_excavator_is_few_answers_and_a_short_file() -> None:
    assert len(questions(KINDS['excavator'])) + 1 <= 25
    lines = [line for line in text(EXCAVATOR).splitlines() if line.strip() and not line.startswith('#')]
    assert len(lines) <= 60 and max(map(len, lines)) <= 140


@pytest.mark.parametrize('name', MACHINES)
def test_all_that_is_assumed_is_marked(name: str) -> None:
    machine = parse_mechanism(text(MACHINES[name]))
    numbers = uncertain(machine)
    marked = {key for key, number in numbers.items() if is_assumed(number)}
    taped = {key for key in numbers if '.points.' in key or key.startswith('points.')}
    assert marked | taped == set(numbers) - {'payload.hanging'} and not marked & taped
    assert {f'bodies.{body}.mass' for body in machine.bodies} <= marked


@pytest.mark.parametrize(('kind', 'body', 'positions'), [
    ('telehandler', 'inner_boom', 'angles'), ('forwarder_crane', 'inner_boom', 'strokes'),
    ('forwarder_crane', 'inner_boom', 'inclinations')])
def test_a_telescope_reaches_as_far_as_its_stroke(kind: str, body: str, positions: str) -> None:
    """From retracted to extended the last pin of the telescope moves along the boom by the stroke."""
    machine = Machine(parse_mechanism(text({'kind': kind, **EXAMPLES[kind], 'positions': positions})))
    place = list(machine.cylinders).index('telescope')
    joint = machine.description.joints[f'{body}_joint']
    stroke = machine.description.cylinders['telescope'].stroke.value
    assert joint.type == 'prismatic' and joint.limits == pytest.approx((-PLAY, stroke + PLAY))
    z = np.array(machine.model.start.q)[list(machine.model.z)]
    ends = []
    for share in (0.0, 1.0):
        z[machine.actuated[place]] = share * stroke
        q = machine.position(z)
        ends.append((q[machine.pistons[place]], q[machine.model.names.index(f'{body}_joint')]))
    assert np.diff(ends, axis=0)[0] == pytest.approx([stroke, stroke]) and ends[0][0] == pytest.approx(0.0, abs=1e-9)


def test_the_grapple_is_a_mass_at_the_tip() -> None:
    machine = parse_mechanism(text({'kind': 'forwarder_crane', **EXAMPLES['forwarder_crane']}))
    grapple, joint = machine.bodies['grapple'], machine.joints['grapple_joint']
    assert grapple.mass.value == 180.0 and joint.type == 'fixed' and joint.parent.point == 'tip'
    assert machine.payload is not None and machine.payload.hanging is not None


@pytest.mark.parametrize('kind', KINDS)
def test_the_template_asks_all_questions_of_a_kind(kind: str) -> None:
    tree = read_document(template(KINDS[kind]), 'x.yaml')
    needed = {item.key for item in questions(KINDS[kind]) if not item.default}
    assert isinstance(tree, dict) and tree.keys() == {'kind', *needed}
    read_answers(tree)


WRONG: dict[str, tuple[dict[str, Any], str, Any, str, str]] = {
    'no kind': (EXCAVATOR, 'kind', None, 'kind', 'excavator, two_piece_excavator'),
    'another kind': (EXCAVATOR, 'kind', 'excavater', 'kind', 'did you mean excavator?'),
    'a missing answer': (EXCAVATOR, 'rocker', None, 'rocker', 'missing'),
    'a wrong question': (EXCAVATOR, 'rocker_pins', '2 m', 'rocker_pins', 'did you mean rocker_pin?'),
    'another unit': (EXCAVATOR, 'mass', '8 m', 'mass', 'a unit of kg'),
    'a mass without its unit': (EXCAVATOR, 'mass', '14', 'mass', "with its unit, '14 kg' or '14 t'"),
    'a load without its unit': (CRANE, 'load', 900, 'load', "with its unit, '900 kg' or '900 t'"),
    'a load above the mass': (EXCAVATOR, 'load', '9 t', 'load', 'at most 8000 kg'),
    'a load of 20 cranes': (CRANE, 'load', '22 t', 'load', 'at most 11000 kg'),
    'millimetres without a unit': (EXCAVATOR, 'boom', '3840', 'boom', 'up to 100 m'),
    'one length of two': (EXCAVATOR, 'boom_eye', '1.65 m', 'boom_eye', 'two distances'),
    'no triangle': (EXCAVATOR, 'boom_eye', '1.65 m, 2.0 m', 'boom_eye', 'boom: 3.84, 1.65 and 2 m make no triangle'),
    'a bucket of no triangle': (EXCAVATOR, 'bucket', '0.32 m, 1.03 m, 1.5 m', 'bucket', 'make no triangle'),
    'a cylinder that is too long': (EXCAVATOR, 'boom_cylinder', '100 mm, 65 mm, 1.65 m, 2.4 m', 'boom_cylinder',
                                    'by boom_base, boom_eye, boom_cylinder'),
    'a link that does not reach': (EXCAVATOR, 'link', '0.15 m', 'bucket_cylinder', 'rocker_pin, rocker, link, bucket'),
    'closed longer than extended': (EXCAVATOR, 'arm_cylinder', '95 mm, 65 mm, 2.24 m, 1.23 m', 'arm_cylinder[3]',
                                    'more than the closed length'),
    'a thick rod': (EXCAVATOR, 'arm_cylinder', '65 mm, 95 mm, 1.23 m, 2.24 m', 'arm_cylinder[1]', 'thinner'),
    'three numbers of a cylinder': (EXCAVATOR, 'arm_cylinder', '95 mm, 65 mm, 1.23 m', 'arm_cylinder', 'extended'),
    'a bellcrank of no triangle': (LOADER, 'bellcrank', '0.6 m, 0.65 m, 1.6 m', 'bellcrank', 'make no triangle'),
    'a tilt cylinder that is too long': (LOADER, 'tilt_cylinder', '130 mm, 70 mm, 1.05 m, 1.9 m', 'tilt_cylinder',
                                         'tilt_base, bellcrank_pin, bellcrank, link, bucket'),
    'a link that is too short at the ends': (
        {**LOADER, 'tilt_cylinder': '130 mm, 70 mm, 1.25 m, 1.35 m'}, 'link', '0.95 m', 'bellcrank_pin',
        'ends of the boom'),
    'a side that is none': (CRANE, 'tilt_eye', '0.32 m, 2.66 m, left', 'tilt_eye[2]', 'above, below'),
    'sensors of nothing': (CRANE, 'positions', 'lasers', 'positions', 'strokes, angles, inclinations'),
    'a deviation of another unit': (CRANE, 'positions', 'strokes, 1 deg', 'positions[1]', 'a unit of m'),
    'pressures of no cylinder': (CRANE, 'pressures', 'boom', 'pressures', 'lift, tilt'),
    'no reference': (CRANE, 'pressure_sensors', '250 bar, relative', 'pressure_sensors[1]', 'gauge'),
    'a name with a blank': (SINGLE, 'name', 'my arm', 'name', 'a name of letters'),
    'a load that hangs in m of kg': (SINGLE, 'hanging', '1.5 kg', 'hanging', 'a unit of m'),
    'many cylinders': (SINGLE, 'lift_cylinders', '9', 'lift_cylinders', 'side by side')}


@pytest.mark.parametrize('what', WRONG)
def test_a_wrong_answer_is_refused_by_its_name(what: str) -> None:
    answers, key, value, place, expected = WRONG[what]
    with pytest.raises(DescriptionError) as caught:
        text(with_answer(answers, key, value))
    assert caught.value.key == place and expected in f'{caught.value}', str(caught.value)


def test_all_wrong_answers_are_said_at_once_and_lengths_only_after_them() -> None:
    """boom_eye makes no triangle, which is not said while other answers cannot be read."""
    wrong = {**EXCAVATOR, 'mass': '8', 'boom_eye': '1.65 m, 2.0 m', 'boom_cylinders': '9', 'positions': 'lasers',
             'arm_cylinder': '65 mm, 95 mm, 1.23 m, 2.24 m', 'lenk': '0.38 m'}
    del wrong['rocker'], wrong['link']
    with pytest.raises(DescriptionErrors) as caught:
        text(wrong)
    assert [error.key for error in caught.value.errors] == [
        'lenk', 'rocker', 'mass', 'boom_cylinders', 'arm_cylinder[1]', 'positions']
