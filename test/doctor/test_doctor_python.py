# SPDX-License-Identifier: Apache-2.0
"""The doctor's look at the interpreter and the packages."""

import re
from importlib import metadata

import pytest
from source_tree import ROOT

from mbse_ros.doctor.checks import FAILS, OK, WARNING, Check, examined
from mbse_ros.doctor.python import (
    EXTRAS,
    NEWEST,
    OLDEST,
    REQUIRED,
    dependency_checks,
    enough,
    extras_check,
    installed,
    python_check,
)


def listed(name):
    text = (ROOT / 'tools' / 'requirements' / name).read_text()
    return dict(re.findall(r'^([\w-]+)>=([\d.]+)', text, re.MULTILINE))


def test_the_versions_are_those_of_the_requirement_lists():
    assert REQUIRED == listed('python.in')
    assert EXTRAS == {name: listed(f'{name}.in') for name in EXTRAS}


def test_the_interpreter_is_that_of_setup_py():
    assert f'requires-python = ">={OLDEST[0]}.{OLDEST[1]}"' in (ROOT / 'pyproject.toml').read_text()
    assert f'{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}' in (ROOT / 'docs' / 'installation.md').read_text()


@pytest.mark.parametrize('version, status', [((3, 9), FAILS), ((3, 10), OK), ((3, 13), OK), ((3, 14), WARNING)])
def test_python(version, status):
    check = python_check(version, '.'.join(map(str, version)))
    assert check.status == status and bool(check.mend) == (status != OK)


@pytest.mark.parametrize('version, least, good', [
    ('1.21', '1.21', True), ('1.9', '1.21', False), ('2.0.0rc1', '1.21', True), ('6', '6.0', True), ('6.0', '6', True),
    ('3.6.4', '3.6.5', False), ('0.12+ds', '0.12', True), ('5.4.post1', '5.4', True)])
def test_versions_are_numbers(version, least, good):
    assert enough(version, least) is good


def test_each_bad_package_is_a_line():
    versions = {'new': '2.0', 'old': '0.9', 'gone': None, 'odd': ''}
    found = dependency_checks(dict.fromkeys(versions, '1.0'), versions.get)
    assert {check.name: check.status for check in found} == {
        'dependency old': FAILS, 'dependency gone': FAILS, 'dependency odd': WARNING}
    assert '0.9' in found[0].found and found[0].mend == 'pip install "old>=1.0"'


def test_the_packages_of_this_environment():
    assert installed('numpy') == metadata.version('numpy') and installed('no-such-package') is None
    assert [check.status for check in dependency_checks()] == [OK]


def test_extras_may_be_missing_but_not_old():
    assert extras_check(version=lambda name: None).status == OK
    old = extras_check({'graph': {'gtsam': '4.3'}}, lambda name: '4.2')
    assert old.status == WARNING and old.mend == 'pip install "gtsam>=4.3"'


def test_what_cannot_be_looked_at_is_a_line():
    def missing():
        raise ImportError("No module named 'casadi'")

    def unknown():
        raise OSError('no such file')
    assert examined('x', missing)[0] == Check('x', FAILS, "cannot be looked at: No module named 'casadi'",
                                              'install what is missing, then look again')
    assert examined('x', unknown)[0].status == WARNING
    assert examined('x', python_check) == [python_check()]
