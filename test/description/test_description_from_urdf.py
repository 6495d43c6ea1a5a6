# SPDX-License-Identifier: Apache-2.0
"""Machine files from a URDF and what it lacks: the same machine comes back, ways to put it together are found, and
what is missing is asked for."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from new_machines import pins_of
from source_tree import ROOT
from urdf_of import CRANE, LIMIT, MIMIC, PINS, crane, excavator, inertial, joint, made, ur10e, urdf_of

import mbse_ros as mbse
from mbse_ros.description.assumptions import is_assumed
from mbse_ros.description.from_urdf.answers import asked, chains, read_robot_answers
from mbse_ros.description.from_urdf.closures import closures
from mbse_ros.description.from_urdf.layout import SeveralMachinesError, begun_robot
from mbse_ros.description.load import load_mechanism, parse_mechanism
from mbse_ros.description.model import MechanismDescription
from mbse_ros.description.templates.examples import EXAMPLES
from mbse_ros.description.templates.kinds import KINDS
from mbse_ros.errors import DescriptionError
from mbse_ros.machine import Machine

RNG = np.random.default_rng(3)


@pytest.fixture(scope='module')
def zx200(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return excavator(tmp_path_factory.mktemp('zx200'))


def test_an_excavator_comes_back(zx200: dict[str, Any]) -> None:
    """Bodies, pins and joints are where they were, in the frames of the URDF, over all strokes."""
    found, true = Machine(made(zx200)), mbse.load('zx200')
    assert found.coordinates == true.coordinates == ('swing_joint', 'boom', 'arm', 'bucket')
    names = {'boom': 'boom', 'arm': 'arm', 'bucket': 'bucket'}
    for _ in range(5):
        z = np.append(RNG.uniform(-1.0, 1.0), [RNG.uniform(0.05, 0.95) * item.stroke.value
                                               for item in true.description.cylinders.values()])
        one, other = found.outline(z), true.outline(z)
        for name in names:
            ends = one[f'cylinder/{name}'], other[f'cylinder/{name}']
            np.testing.assert_allclose(*ends, atol=1e-4)        # the file has 10 um
        teeth = other['bucket'][-2]
        assert np.linalg.norm(one['bucket'] - teeth, axis=1).min() < 1e-4
    for name in ('upper', 'boom', 'arm', 'bucket'):
        one, other = found.description.bodies[name], true.description.bodies[name]
        assert one.mass.value == other.mass.value and not is_assumed(one.mass)
        assert [item.value for item in one.center_of_mass] == [item.value for item in other.center_of_mass]


def test_the_ur10e_comes_back(tmp_path: Path) -> None:
    """Its public frames and those of the DH table give the same arm: the accelerations of any motion are the same, but
    for the rotors, which no URDF has."""
    (tmp_path / 'ur10e.urdf').write_text(ur10e())
    found, full = Machine(made({'urdf': str(tmp_path / 'ur10e.urdf'), 'load': '12.5 kg'})), mbse.load('ur10e')
    true = Machine(replace(full.description, drives={
        name: replace(drive, rotor_inertia=None) for name, drive in full.description.drives.items()}))
    assert found.coordinates == true.coordinates and found.channels == true.channels
    for _ in range(5):
        q, qd = RNG.uniform(-2.0, 2.0, (2, 6))
        turn = np.diag([-1.0, -1.0, 1.0])       # base_link and the base of the table
        flange = turn @ true.outline(q)['wrist_3'][-1]
        np.testing.assert_allclose(found.outline(q)['wrist_3_link'][-1], flange, atol=1e-5)
        one, other = (item.model.accelerations(q, qd) for item in (found, true))
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3 * np.abs(other).max())
    drives = {name: drive.largest for name, drive in true.description.drives.items()}
    assert {name: drive.largest for name, drive in found.description.drives.items()} == drives


@pytest.mark.parametrize(('axis', 'turn', 'end', 'sense'), [
    ('0 -1 0', '0 0 0', '2.9 0 0.02', 1), ('0 1 0', '0 0 0', '2.9 0 0.02', -1),
    ('0 0 1', f'{math.pi / 2} 0 0', '2.9 0.02 0', 1), ('1 0 0', f'0 0 {math.pi / 2}', '2.9 0 0.02', 0)])
def test_axes_and_frames_of_any_direction_are_the_same_crane(axis: str, turn: str, end: str, sense: int,
                                                             tmp_path: Path) -> None:
    """Negative axes, frames on their side (z is the axis); an axis along the boom is none."""
    limits = f'<limit lower="{-0.3 if sense > 0 else -1.2}" upper="{1.2 if sense > 0 else 0.3}"/>'
    answers = {**CRANE, **PINS, 'urdf': crane(tmp_path, axis, limits, turn=turn, end=end)}
    if not sense:
        with pytest.raises(DescriptionError, match='tip: got'):
            made(answers)
        return
    found = Machine(made(answers))
    first = Machine(made({**CRANE, **PINS, 'urdf': crane(tmp_path)}))
    for stroke in (0.05, 0.25, 0.5):
        one, other = (item.outline(np.array([stroke])) for item in (found, first))
        np.testing.assert_allclose(one['cylinder/boom'], other['cylinder/boom'], atol=1e-4)
        np.testing.assert_allclose(one['payload'], other['payload'], atol=1e-4)
    (start,) = found.position(np.array([0.25]))[:1]
    assert np.sign(start) == sense * np.sign(first.position(np.array([0.25]))[0])


def test_a_machine_that_works_along_y(tmp_path: Path) -> None:
    answers = {**CRANE, **PINS, 'urdf': crane(tmp_path, turn=f'0 0 {math.pi / 2}')}
    along_x = Machine(made({**CRANE, **PINS, 'urdf': crane(tmp_path)})).outline(np.array([0.2]))['payload'][0]
    along_y = Machine(made(answers | {'urdf': crane(tmp_path, turn=f'0 0 {math.pi / 2}')})).outline(
        np.array([0.2]))['payload'][0]
    np.testing.assert_allclose(along_y, [0.0, along_x[0], along_x[2]], atol=1e-4)


KINDS_OF_PINS = {'two_piece_excavator': '', 'loader_crane': '', 'forwarder_crane': 'A', 'telehandler': ''}


def of_kind(kind: str, folder: Path) -> tuple[MechanismDescription, dict[str, Any]]:
    """An invented machine, and the answers to its URDF, which are those of its kind by the names of joints."""
    given = {'kind': kind, **EXAMPLES[kind], 'positions': 'strokes'}
    own, names = parse_mechanism(mbse.new(given).text), {link.cylinder: link.name for link in KINDS[kind].links}
    tip = ('bucket', 'teeth') if 'bucket' in own.bodies else (KINDS[kind].links[-1].name, 'tip')
    path = folder / f'{kind}.urdf'
    path.write_text(urdf_of(own, {'tip_link': tip}, ('rocker', 'link', 'grapple')))
    answers = {'urdf': str(path), 'load': '300 kg', 'outer_boom_branch': KINDS_OF_PINS[kind] or 'auto'}
    for key, value in given.items():
        word, _, rest = key.partition('_')
        answers[f'{names.get(word, word)}_{rest}' if rest else key] = value
    if 'bucket' in own.bodies:
        near, _, across = given['bucket'].split(',')
        eye, end = (np.array([item.value for item in own.bodies['arm'].points[pin]]) for pin in ('arm_eye', 'end'))
        answers |= {'link_pin': f'{near}, {across}', 'arm_eye': [np.linalg.norm(eye), np.linalg.norm(eye - end)]}
    needed = {item.key for item in asked(answers)}
    return own, {key: value for key, value in answers.items() if key in needed or key == 'urdf'}


@pytest.mark.parametrize('kind', KINDS_OF_PINS)
def test_pins_of_a_kind_come_back_from_its_urdf(kind: str, tmp_path: Path) -> None:
    """Chains of several bodies, with telescopes and the linkage of a bucket."""
    own, answers = of_kind(kind, tmp_path)
    found = made(answers)
    assert len(found.cylinders) == len(own.cylinders)
    for one, other in zip(found.cylinders.values(), own.cylinders.values()):
        assert (one.bore, one.rod, one.closed_length, one.stroke) == (
            other.bore, other.rod, other.closed_length, other.stroke)
        for end in ('base', 'rod_eye'):
            places = []
            for machine, ref in ((found, getattr(one, end)), (own, getattr(other, end))):
                points = machine.ground if ref.body == 'ground' else machine.bodies[ref.body].points
                places.append([item.value for item in points[ref.point]])
            np.testing.assert_allclose(*places, atol=1e-4)
    for name, item in found.joints.items():
        if item.limits:
            np.testing.assert_allclose(item.limits, own.joints[name].limits, atol=0.02)     # theirs are rounded


def test_a_telescope_may_count_inwards_and_from_anywhere(tmp_path: Path) -> None:
    """Its axis points back, and 0 is 0.3 m further out than retracted: its cylinder is longest at the lower limit."""
    own, answers = of_kind('forwarder_crane', tmp_path)
    path = Path(answers['urdf'])
    low, high = own.joints['inner_boom_joint'].limits or (0.0, 0.0)
    line = next(line for line in path.read_text().splitlines() if 'name="inner_boom_joint"' in line)
    moved = line.replace('xyz="0 0 0"', 'xyz="0.3 0 0"').replace('xyz="1 0 0"', 'xyz="-1 0 0"').replace(
        LIMIT.format(low, high, 1000), LIMIT.format(0.3 - high, 0.3 - low, 1000))
    path.write_text(path.read_text().replace(line, moved))
    assert moved.count('0.3 0 0') == moved.count('-1 0 0') == 1
    one, other = Machine(made(answers)), Machine(own)
    for stroke in (0.1, 0.7, 1.3):
        z = np.array([0.25, 0.25, stroke])
        places = (machine.outline(z)['payload'] for machine in (one, other))
        np.testing.assert_allclose(*places, atol=1e-4)


def test_a_telescope_that_does_not_slide_as_far_as_its_cylinder_is_refused(tmp_path: Path) -> None:
    _, answers = of_kind('telehandler', tmp_path)
    with pytest.raises(DescriptionError, match='inner_boom_cylinder: .* as inner_boom_joint slides .* 2.02 m'):
        made({**answers, 'inner_boom_cylinder': '80 mm, 50 mm, 2.2 m, 3.2 m'})


def test_pins_may_be_links_of_the_urdf(zx200: dict[str, Any], tmp_path: Path) -> None:
    tips = {'bucket_tip': ('bucket', 'teeth'), 'eye': ('boom', 'boom_cylinder_eye'), 'base': (
        'upper', 'boom_cylinder_base')}
    path = tmp_path / 'zx200.urdf'
    path.write_text(urdf_of(load_mechanism('zx200'), tips, ('rocker', 'link')))
    answers = {**zx200, 'urdf': str(path), 'tool': 'bucket_tip', 'boom_eye': 'eye', 'boom_base': 'base'}
    found = made(answers)
    place = [item.value for item in found.bodies['boom'].points['boom_eye']]
    x, z = pins_of('zx200')['boom']['boom_cylinder_eye']
    np.testing.assert_allclose(place, [x, 0.0, z], atol=1e-5)
    with pytest.raises(DescriptionError, match='boom_eye: got .* fixed to boom'):
        made({**answers, 'boom_eye': 'base'})


def test_ways_to_close_are_all_found_and_limits_choose_among_them() -> None:
    """A lever of 1 m on a base 2 m away: twice, once for each side."""
    def lengths(angles: np.ndarray) -> np.ndarray:
        return np.hypot(np.cos(angles) - 2.0, np.sin(angles))
    both = closures([lengths], (1.5, 2.5), None)
    assert len(both) == 2 and sorted(np.sign(item.closed) for item in both) == [-1.0, 1.0]
    (one,) = closures([lengths], (1.5, 2.5), (0.6, 2.0))
    assert one.closed > 0.0
    np.testing.assert_allclose(lengths(np.array([one.closed, one.extended])), [1.5, 2.5], atol=1e-4)
    assert not closures([lengths], (0.9, 2.5), None)


def test_limits_that_are_not_those_of_the_stroke_are_told(tmp_path: Path) -> None:
    """Narrower ones are taken for soft limits; those of degrees are no radians."""
    plain = mbse.new({**CRANE, **PINS, 'urdf': crane(tmp_path)})
    narrow = mbse.new({**CRANE, **PINS, 'urdf': crane(tmp_path, limits='<limit lower="0.2" upper="0.4"/>')})
    assert not plain.warnings and len(narrow.warnings) == 1
    assert re.match(r'boom_joint: the stroke of boom turns it -\d+ to \d+ deg, the limits of the URDF are 11 to 23 deg',
                    narrow.warnings[0])
    with pytest.raises(DescriptionError, match=r'limit: got .-17 to 69., expected limits in rad.*look like degrees'):
        mbse.new({**CRANE, **PINS, 'urdf': crane(tmp_path, limits='<limit lower="-17" upper="69"/>')})


def test_several_machines_are_said_drawn_and_chosen(tmp_path: Path) -> None:
    """Without limits nothing says on which side of the boom its cylinder pulls."""
    answers = {**CRANE, **PINS, 'boom_eye': '0.3202 m, 2.5907 m', 'urdf': crane(tmp_path, limits='')}
    _, error = begun_robot(read_robot_answers(answers))
    assert isinstance(error, SeveralMachinesError) and error.key == 'boom_cylinder' and error.branch == 'boom_branch'
    assert len(error.layouts) > 1 and 'A (' in error.expected
    ranges = [made({**answers, 'boom_branch': letter}).joints['boom_joint'].limits
              for letter in 'ABCDEFGH'[:len(error.layouts)]]
    assert len(set(ranges)) == len(error.layouts)
    with pytest.raises(DescriptionError, match="boom_branch: got 'Z', expected auto, or one of A"):
        made({**answers, 'boom_branch': 'Z'})


@pytest.mark.parametrize(('mass', 'inertia', 'light'), [
    (1e-3, (1e-3, 1e-3, 1e-3), True), (0.0, (0.0, 0.0, 0.0), True), (1.0, (1.0, 1.0, 1.0), True),
    (150.0, (5.0, 67.0, 67.0), False)])
def test_placeholders_are_asked_for_and_marked(mass: float, inertia: Any, light: bool, tmp_path: Path) -> None:
    path = crane(tmp_path)
    Path(path).write_text(Path(path).read_text().replace(
        inertial(150.0, (1.2, 0, 0.05), (5.0, 67.0, 67.0)), inertial(mass, (0, 0, 0), inertia)))
    answers = {**CRANE, **PINS, 'urdf': path}
    if light:
        del answers['masses']
        assert 'boom' in next(item.text for item in asked(answers) if item.key == 'mass')
        with pytest.raises(DescriptionError, match='mass: got None'):
            made(answers)
        answers['mass'] = '1 t'
    body = made(answers).bodies['boom']
    assert is_assumed(body.mass) is light and body.mass.value == pytest.approx(150.0, rel=0.2)
    assert body.mass.stddev == pytest.approx((0.25 if light else 0.01) * body.mass.value)


def test_the_end_that_carries_the_load_is_asked_for_and_what_leads_elsewhere_is_held(zx200: dict[str, Any],
                                                                                   tmp_path: Path) -> None:
    """A camera pans on the boom: its mass counts with the boom's."""
    path = tmp_path / 'zx200.urdf'
    camera = f'<link name="camera">{inertial(100.0, (0, 0, 0), (1.0, 1.0, 1.0))}</link>' + joint(
        'pan_joint', 'boom', 'camera', (2.0, 0, 0.5), kind='continuous')
    path.write_text(Path(zx200['urdf']).read_text().replace('</robot>', camera + '</robot>'))
    answers = {**zx200, 'urdf': str(path)}
    assert 'camera, bucket_tip' in next(item.text for item in asked(answers) if item.key == 'tool')
    with pytest.raises(DescriptionError, match='tool: got None'):
        made({key: value for key, value in answers.items() if key in ('urdf', 'name')})
    assert chains(answers) == [(['camera'], ['swing_joint', 'boom_joint', 'pan_joint']), (
        ['bucket_tip'], ['swing_joint', 'boom_joint', 'arm_joint', 'bucket_joint'])]
    boom = made({**answers, 'tool': 'bucket_tip'}).bodies['boom']
    assert boom.mass.value == 2410.0
    assert boom.center_of_mass[0].value == pytest.approx((2310 * 2.46539 + 100 * 2.0) / 2410, abs=1e-4)


def test_cylinders_that_mimic_joints_are_pins_and_no_ends(tmp_path: Path) -> None:
    """As public URDFs have them, to be drawn: a barrel that turns, a rod that slides in it; their frames are the pins.
    A joint that mimics another cannot carry the tool."""
    path = Path(crane(tmp_path))
    weight = inertial(0.03, (0, 0, 0), (1.0, 1.0, 1.0))
    cylinder = f'<link name="barrel">{weight}</link><link name="rod">{weight}</link><link name="eye_link"/>' + joint(
        'barrel_joint', 'base_link', 'barrel', (0.26, 0, -0.04), more=MIMIC, kind='continuous') + joint(
        'rod_joint', 'barrel', 'rod', (0, 0, 0), more=MIMIC + LIMIT.format(-2, 2, 1), kind='prismatic') + joint(
        'eye_joint', 'boom', 'eye_link', (0.3025, 0, -0.105))
    path.write_text(path.read_text().replace('</robot>', cylinder + '</robot>'))
    answers = {**CRANE, **PINS, 'urdf': str(path), 'boom_base': 'barrel', 'boom_eye': 'eye_link'}
    assert chains(answers) == [(['tip', 'eye_link'], ['boom_joint'])]
    found = made(answers)
    np.testing.assert_allclose([item.value for item in found.ground['boom_base']], [0.26, 0.0, -0.04], atol=1e-5)
    assert found.bodies['boom'].mass.value == 150.0
    with pytest.raises(DescriptionError, match=r'robot.joint\[barrel_joint\].mimic'):
        made({**answers, 'tool': 'rod'})


def test_another_axis_than_z_may_point_up(tmp_path: Path) -> None:
    path = Path(crane(tmp_path))
    first = Machine(made({**CRANE, **PINS, 'urdf': str(path)})).outline(np.array([0.2]))
    lying = path.read_text().replace('xyz="0 0 1" rpy="0 0 0"', f'xyz="0 1 0" rpy="{-math.pi / 2} 0 0"')
    path.write_text(lying.replace('name="tip"/>', 'name="tip"/><link name="foot"/>').replace(
        '</robot>', joint('foot_joint', 'base_link', 'foot', (0.26, -0.04, 0)) + '</robot>'))
    found = Machine(made({**CRANE, **PINS, 'urdf': str(path), 'up': 'y', 'boom_base': 'foot'})).outline(np.array([0.2]))
    for part in ('payload', 'cylinder/boom'):
        np.testing.assert_allclose(found[part], first[part], atol=1e-4)
    with pytest.raises(DescriptionError, match='level and parallel'):
        made({**CRANE, **PINS, 'urdf': str(path), 'boom_joint': 'cylinder'})


def test_an_excavator_of_30_g_links_gets_typical_masses_and_keeps_its_centres(zx200: dict[str, Any], tmp_path: Path
                                                                             ) -> None:
    """Centres may be those of the shapes; the one of the arm is that of the boom, and is not believed."""
    path, own = tmp_path / 'zx200.urdf', load_mechanism('zx200')
    text = re.sub('<mass value="[^"]*"/><inertia [^>]*/>', '<mass value="0.03"/>' + re.findall(
        '<inertia [^>]*/>', inertial(1.0, (0, 0, 0), (1.0, 1.0, 1.0)))[0], Path(zx200['urdf']).read_text())
    x, y, z = (item.value for item in own.bodies['arm'].center_of_mass)
    assert f'{x:.12g} {y:.12g} {z:.12g}' in text
    boom = [item.value for item in own.bodies['boom'].center_of_mass]
    path.write_text(text.replace(f'{x:.12g} {y:.12g} {z:.12g}', '{:.12g} {:.12g} {:.12g}'.format(*boom)))
    answers = {**zx200, 'urdf': str(path), 'mass': '20 t'}
    del answers['masses']
    bodies = made(answers).bodies
    assert [round(bodies[name].mass.value) for name in ('upper', 'boom', 'arm', 'bucket')] == [16000, 2300, 1000, 660]
    bucket = [item.value for item in own.bodies['bucket'].center_of_mass]
    assert [item.value for item in bodies['bucket'].center_of_mass] == bucket
    assert [item.value for item in bodies['boom'].center_of_mass] != boom
    assert bodies['upper'].inertia[2].value == pytest.approx(16000 * (0.2 * 5.648) ** 2, rel=0.1)


def test_links_with_the_numbers_of_another_are_asked_for(zx200: dict[str, Any], tmp_path: Path) -> None:
    text = Path(zx200['urdf']).read_text()
    path = tmp_path / 'zx200.urdf'
    path.write_text(re.sub('<inertial>.*?</inertial>', inertial(500.0, (0, 0, 0), (90.0, 90.0, 90.0)), text))
    answers = {**zx200, 'urdf': str(path), 'mass': '20 t'}
    del answers['masses']
    bodies = made(answers).bodies
    assert [round(bodies[name].mass.value) for name in ('boom', 'arm', 'bucket')] == [2300, 1000, 660]
    assert all(is_assumed(bodies[name].mass) for name in ('upper', 'boom', 'arm', 'bucket'))


def test_the_crane_of_the_page_is_a_machine(tmp_path: Path) -> None:
    """docs/own_machine.md: URDF and answers."""
    page = (ROOT / 'docs' / 'own_machine.md').read_text(encoding='utf-8')
    part = page[page.index('## With a URDF'):]
    for language, name in (('xml', 'crane.urdf'), ('yaml', 'answers.yaml')):
        block = part[part.index(f'```{language}\n') + len(language) + 4:]
        (tmp_path / name).write_text(block[:block.index('```')])
    mbse.new(tmp_path / 'answers.yaml').write(tmp_path / 'crane.yaml')
    checked = mbse.check(tmp_path / 'crane.yaml')
    assert checked.trouble is None and not checked.warnings, checked.warnings
