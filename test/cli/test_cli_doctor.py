# SPDX-License-Identifier: Apache-2.0
"""``mbse doctor`` without ROS: a line a check, exit status, JSON, computers on which something is missing."""

import json
import subprocess
import sys

import pytest
from cli_support import mbse, refused
from source_tree import ROOT

from mbse_ros.cli import doctor as module
from mbse_ros.doctor.checks import FAILS, OK, WARNING, Check

WITHOUT = 'import sys; sys.modules.update(dict.fromkeys({!r})); from mbse_ros.cli import main; main()'
LIMIT = 300.0       # s, on a machine with much else to do
LOOKS = ('compiler', 'cache', 'disk, cache', 'disk, working folder', 'real-time priority', 'locked memory',
         'CPU governor', 'CPUs', 'UDP buffer', 'clock', 'clock steps', 'date')
ROS = ('rclpy', 'messages', 'ROS distribution', 'RMW', 'DDS loopback')


def run_without(*missing, words=()):
    """The command in a process that cannot import some modules; its checks by name, and how it ended."""
    done = subprocess.run([sys.executable, '-c', WITHOUT.format(missing), 'doctor', *map(str, words)], cwd=ROOT,
                          capture_output=True, text=True, timeout=LIMIT)
    assert 'Traceback' not in done.stderr, done.stderr
    return done


def checks_in(path):
    return {check['name']: check for check in json.loads(path.read_text())['checks']}


@pytest.fixture
def few(monkeypatch):
    """Only the checks that a test gives."""
    def give(*checks):
        monkeypatch.setattr(module, 'look', lambda *_: iter(checks))
    return give


def test_a_line_for_each_and_the_sum(few, tmp_path):
    few(Check('a', OK, 'fine'), Check('b', WARNING, 'slow', 'quicker'))
    done = mbse('doctor', '--json', tmp_path / 'new' / 'x.json')
    assert done.status == 0 and not done.err and done.out.splitlines() == [
        'ok       a                     fine', 'warning  b                     slow  -> quicker',
        '2 checks: 1 ok, 1 warning, 0 fails']
    assert json.loads((tmp_path / 'new' / 'x.json').read_text()) == {'checks': [
        {'name': 'a', 'status': 'ok', 'found': 'fine', 'mend': ''},
        {'name': 'b', 'status': 'warning', 'found': 'slow', 'mend': 'quicker'}]}


def test_a_failure_is_status_1(few):
    few(Check('a', OK, 'fine'), Check('b', FAILS, 'gone', 'get it'))
    done = mbse('doctor')
    assert done.status == 1 and done.out.splitlines()[1].startswith('fails    b ') and not done.err


def test_bad_usage():
    assert refused('doctor', '--topics', 2).startswith('--topics: got 2.0, expected no such option here')
    assert refused('doctor', '--namespace', 'crane').startswith('--namespace: ')
    assert mbse('doctor', '--machine', 'patu655_lift', '--topics', '-1').status == 2


def test_a_json_that_cannot_be_written(few, tmp_path):
    few()
    assert str(tmp_path) in refused('doctor', '--json', tmp_path)


def test_without_ros_all_else_is_looked_at(tmp_path):
    done = run_without('rclpy', words=('--machine', 'patu655_lift', '--json', tmp_path / 'x.json'))
    found = checks_in(tmp_path / 'x.json')
    assert {*LOOKS, *ROS, 'python', 'dependencies', 'extras', 'machine'} == set(found)
    assert {found[name]['found'] for name in ROS} == {'not installed'}
    assert {found[name]['status'] for name in ROS} == {'warning'} and found['machine']['status'] == 'ok'
    assert all(bool(check['mend']) == (check['status'] != 'ok') for check in found.values())
    assert done.returncode == any(check['status'] == 'fails' for check in found.values())
    assert len(done.stdout.splitlines()) == len(found) + 1


def test_without_casadi_it_still_says_what_is_missing(tmp_path):
    done = run_without('casadi', 'numpy', 'rclpy', words=('--json', tmp_path / 'x.json'))
    found = checks_in(tmp_path / 'x.json')
    assert done.returncode == 1 and found['compiler']['status'] == 'fails' and found['python']['status'] == 'ok'
    assert found['compiler']['found'].startswith('cannot be looked at: ')


def test_a_machine_that_is_not_sound(tmp_path):
    text = (ROOT / 'config' / 'machines' / 'patu655_lift.yaml').read_text()
    file = tmp_path / 'crane.yaml'
    file.write_text(text.replace('format: mbse/machine/2', 'format: mbse/machine/2\nwheels: 4', 1))
    for name, expected in ((file, 'wheels'), ('no_such', 'no_such'), ('four_bar', 'four_bar')):
        check, = module.described(str(name), None, 0.0, [])
        assert check.status == FAILS and expected in check.found and check.mend
    file.write_text(text)
    check, = module.described(str(file), None, 0.0, [])
    assert check.status == OK and '3 channels' in check.found
