# SPDX-License-Identifier: Apache-2.0
"""``mbse new``: from a file of answers, and asked in the terminal."""

from __future__ import annotations

from pathlib import Path

import yaml
from cli_support import mbse, refused
from new_machines import CRANE, SINGLE
from typer.testing import CliRunner

from mbse_ros.cli.app import command_line

CRANE_URDF = """<robot name="crane"><link name="base_link"/><link name="tip"/>
<link name="boom"><inertial><origin xyz="1.2 0 0.05"/><mass value="150"/>
<inertia ixx="5" iyy="67" izz="67" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="boom_joint" type="continuous"><parent link="base_link"/><child link="boom"/><axis xyz="0 -1 0"/></joint>
<joint name="end" type="fixed"><parent link="boom"/><child link="tip"/><origin xyz="2.9 0 0.02"/></joint></robot>"""

def test_a_file_of_answers_gives_a_machine_and_its_picture(tmp_path: Path) -> None:
    (tmp_path / 'answers.yaml').write_text(yaml.safe_dump(SINGLE), encoding='utf-8')
    done = mbse('new', '--answers', tmp_path / 'answers.yaml', '-o', tmp_path / 'arm.yaml',
                '--draw', tmp_path / 'arm.png')
    assert done.status == 0 and 'the cylinders reach over their strokes' in done.out and not done.err
    assert (tmp_path / 'arm.png').read_bytes().startswith(b'\x89PNG')
    assert mbse('check', tmp_path / 'arm.yaml').status == 0


def test_a_mass_that_is_odd_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / 'answers.yaml').write_text(yaml.safe_dump({**CRANE, 'mass': '11 t'}), encoding='utf-8')
    done = mbse('new', '--answers', tmp_path / 'answers.yaml', '-o', tmp_path / 'crane.yaml')
    assert done.status == 0 and done.err.startswith('warning: mass: 11 t is odd for boom and outer_boom of 5.3 m')


def test_what_is_wrong_is_one_line_with_the_answer(tmp_path: Path) -> None:
    (tmp_path / 'answers.yaml').write_text(yaml.safe_dump({**SINGLE, 'lift_eye': '0.7 m, 1.1 m'}), encoding='utf-8')
    line = refused('new', '--answers', tmp_path / 'answers.yaml', '-o', tmp_path / 'arm.yaml')
    assert 'answers.yaml: lift_eye:' in line and 'no triangle' in line and not (tmp_path / 'arm.yaml').exists()
    assert 'output' in refused('new', '--answers', tmp_path / 'answers.yaml')


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / 'answers.yaml').write_text(yaml.safe_dump(SINGLE), encoding='utf-8')
    for taken in ('arm.yaml', 'crane_answers.yaml'):
        (tmp_path / taken).write_text('edited by hand')
    line = refused('new', '--answers', tmp_path / 'answers.yaml', '-o', tmp_path / 'arm.yaml')
    assert 'arm.yaml' in line and 'exists already' in line
    assert 'crane_answers.yaml: exists already' in refused('new', '-o', tmp_path / 'crane.yaml')
    assert all((tmp_path / taken).read_text() == 'edited by hand' for taken in ('arm.yaml', 'crane_answers.yaml'))


def test_questions_are_a_file_to_be_filled_in(tmp_path: Path) -> None:
    done = mbse('new', '--questions', 'loader_crane')
    assert done.status == 0 and yaml.safe_load(done.out)['kind'] == 'loader_crane'
    assert 'did you mean loader_crane?' in refused('new', '--questions', 'loader_cran')


def asked(tmp_path: Path, said: list[str], *options: str) -> tuple[int, str]:
    """Exit status and output with these lines in the terminal; after them the input ends, which counts as Ctrl-C."""
    done = CliRunner().invoke(command_line('new'), ['new', '-o', str(tmp_path / 'arm.yaml'), *options],
                              input='\n'.join(said) + '\n')
    return done.exit_code, done.output


def test_the_terminal_asks_and_asks_again(tmp_path: Path) -> None:
    """An eye that is too far away first, and four answers of a wrong form; Enter takes what stands there."""
    wrong = {'mass': '300', 'lift_base': '0.3 m', 'lift_cylinder': '80 mm, 45 mm, 0.75 m, 1.15 kg',
             'positions': 'lasers'}
    keys = ('name', 'mass', 'load', 'arm', 'lift_base', 'lift_eye', 'lift_cylinder', 'lift_cylinders', 'hanging',
            'positions', 'pressures', 'pressure_sensors')
    first = {**SINGLE, 'lift_eye': '0.7 m, 1.1 m'}
    said = [line for key in keys for line in ([wrong[key]] if key in wrong else []) + [first.get(key, '')]]
    status, output = asked(tmp_path, ['crane', 'single_cylinder', *said, '', SINGLE['lift_eye']])
    assert status == 0 and 'no triangle' in output, output
    for text in ("mass: got '300', expected a mass with its unit", "lift_base: got '0.3 m', expected a list",
                 "lift_cylinder[3]: got '1.15 kg'", "positions: got 'lasers'"):
        assert text in output and 'errors' not in output, text
    kept = yaml.safe_load((tmp_path / 'arm_answers.yaml').read_text())
    assert kept == SINGLE and (tmp_path / 'arm.yaml').is_file()


def test_what_was_answered_before_an_interrupt_is_kept(tmp_path: Path) -> None:
    status, output = asked(tmp_path, ['single_cylinder', 'arm', '300 kg', '', '2 m'])
    assert status != 0 and 'arm_answers.yaml' in output and not (tmp_path / 'arm.yaml').exists(), output
    kept = tmp_path / 'arm_answers.yaml'
    given = ('kind', 'name', 'mass', 'arm')
    assert yaml.safe_load(kept.read_text()) == {key: SINGLE[key] for key in given}
    others = {key: value for key, value in SINGLE.items() if key not in given}
    kept.write_text(kept.read_text() + yaml.safe_dump(others))
    assert mbse('new', '--answers', kept, '-o', tmp_path / 'arm.yaml').status == 0


def test_an_interrupt_before_any_answer_leaves_no_file(tmp_path: Path) -> None:
    assert asked(tmp_path, ['crane'])[0] != 0 and not list(tmp_path.iterdir())


def test_the_page_is_drawn_again_at_each_answer(tmp_path: Path) -> None:
    """Before the cylinder is known there is no machine; a loop that does not close is said on it; the end is not loaded
    again."""
    page = tmp_path / 'arm.html'
    start = ['single_cylinder', 'arm', '300 kg', '', '2 m', '0.3 m, -0.8 m', '0.7 m, 1.4 m']
    asked(tmp_path, start, '--draw', str(page))
    text = page.read_text()
    assert 'http-equiv="refresh"' in text and '<svg' not in text and '0.7 m, 1.4 m' in text
    (tmp_path / 'arm_answers.yaml').unlink()
    asked(tmp_path, [*start, '80 mm, 45 mm, 0.75 m, 1.45 m'], '--draw', str(page))      # 0.85 + 0.7 m apart at most
    assert '<svg' in page.read_text() and 'class="wrong"' not in page.read_text()
    (tmp_path / 'arm_answers.yaml').unlink()
    _, output = asked(tmp_path, [*start, '80 mm, 45 mm, 1.15 m, 1.75 m'], '--draw', str(page))
    said = 'most probably the extended length of lift_cylinder is wrong: '
    assert said in page.read_text() and output.count(said) == 1     # at once, not at the end
    (tmp_path / 'arm_answers.yaml').unlink()
    (tmp_path / 'answers.yaml').write_text(yaml.safe_dump(SINGLE), encoding='utf-8')
    done = mbse('new', '--answers', tmp_path / 'answers.yaml', '-o', tmp_path / 'arm.yaml', '--draw', page)
    text = page.read_text()
    assert done.status == 0 and 'refresh' not in text and 'the cylinders reach over their strokes' in text
    assert text.count('<polygon') == 5 and text.count('<line') == 1        # arm, barrel, rod, two feet; the metre


def test_a_urdf_is_asked_for_what_it_lacks_and_machines_to_choose_from_are_drawn(tmp_path: Path) -> None:
    """Without limits the boom's cylinder may be on either side: a page shows both, and the terminal asks which."""
    urdf = tmp_path / 'crane.urdf'
    urdf.write_text(CRANE_URDF)
    pins = ['0.26 m, -1.04 m', '0.3202 m, 2.5907 m']
    said = [*4 * [''], '500 kg', *pins, '100 mm, 56 mm, 0.82 m, 1.355 m', 'B', '', 'included', '', 'strokes', *3 * ['']]
    status, output = asked(tmp_path, said, '--urdf', str(urdf))
    assert status == 0 and 'boom_joint move tip' in output and 'the answer boom_branch as well' in output, output
    page = (tmp_path / 'arm_choice.html').read_text()
    assert page.count('<svg') > 1 and '<h2>B</h2>' in page and 'http-equiv' not in page
    kept = yaml.safe_load((tmp_path / 'arm_answers.yaml').read_text())
    assert kept['boom_branch'] == 'B' and kept['urdf'] == str(urdf) and 'name' not in kept
    done = mbse('new', '--answers', tmp_path / 'arm_answers.yaml', '-o', tmp_path / 'again.yaml')
    assert done.status == 0 and (tmp_path / 'again.yaml').read_text() == (tmp_path / 'arm.yaml').read_text()


def test_answers_that_leave_several_machines_are_refused_with_their_picture(tmp_path: Path) -> None:
    (tmp_path / 'crane.urdf').write_text(CRANE_URDF)
    answers = {'load': '500 kg', 'boom_base': '0.26 m, -1.04 m', 'boom_eye': '0.3202 m, 2.5907 m',
               'boom_cylinder': '100 mm, 56 mm, 0.82 m, 1.355 m'}
    (tmp_path / 'answers.yaml').write_text(yaml.safe_dump(answers))
    line = refused('new', '--urdf', tmp_path / 'crane.urdf', '--answers', tmp_path / 'answers.yaml', '-o',
                   tmp_path / 'crane.yaml')
    assert 'boom_branch' in line and '<h2>A</h2>' in (tmp_path / 'crane_choice.html').read_text()
    (tmp_path / 'crane.urdf.xacro').write_text(CRANE_URDF)
    assert 'xacro FILE' in refused('new', '--urdf', tmp_path / 'crane.urdf.xacro', '--questions', 'urdf')


def test_questions_to_a_urdf_are_a_file_to_be_filled_in(tmp_path: Path) -> None:
    (tmp_path / 'crane.urdf').write_text(CRANE_URDF)
    done = mbse('new', '--urdf', tmp_path / 'crane.urdf', '--questions', 'urdf')
    needed = {'urdf', 'load', 'boom_base', 'boom_eye', 'boom_cylinder'}
    assert done.status == 0 and set(yaml.safe_load(done.out)) == needed and '# boom_joint: cylinder' in done.out
    assert 'of a URDF' in refused('new', '--urdf', tmp_path / 'crane.urdf', '--questions', 'excavator')
