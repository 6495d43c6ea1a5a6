# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/arm.md, as they stand there, with a small arm instead of that of the page."""

import re

import pytest
import small_arm
from cli_support import mbse as command
from source_tree import ROOT

import mbse_ros as mbse

PAGE = (ROOT / 'docs' / 'arm.md').read_text(encoding='utf-8')


def commands(heading):
    """Those in blocks, or between backticks, of a section."""
    section = PAGE.split(f'## {heading}\n')[1].split('\n## ')[0]
    return [line.split() for line in re.findall(r'\./mbse ((?:simulate|calibrate|estimate) [^`\n]*)', section)]


def done(words, machine):
    found = command(*(str(machine) if word == 'ur10e' else word for word in words))
    assert found.status == 0, found.err
    return found.out


@pytest.fixture
def machine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'small_arm.yaml').write_text(small_arm.TEXT)
    return tmp_path / 'small_arm.yaml'


def test_ten_minutes(machine):
    gain = 1.1, 0.92
    for name, load, seconds in (('empty', 0.0, 60.0), ('load', 2.0, 10.0)):
        mbse.write_bag(machine.parent / name, small_arm.log(seconds, load, 5, gain), machine)
    calibrate, estimate, *_ = commands('With a UR10e')
    assert calibrate[:2] == ['calibrate', 'empty'] and estimate[:2] == ['estimate', 'load']
    done(calibrate, machine)
    assert list((machine.parent / 'out' / 'residuals').glob('*.png'))
    mass, low, high = map(float, re.search(r'payload ([\d.]+) kg, .* interval ([\d.]+) to ([\d.]+) kg',
                                           done(estimate, machine)).groups())
    assert low < 2.0 < high and abs(mass - 2.0) < 0.1


def test_without_an_arm(machine):
    """Its lines in their order: a load is simulated and weighed, then an empty motion is made."""
    simulate, estimate, empty = commands('Try it without an arm')
    done(simulate, machine)
    low, high = map(float, re.search(r'interval ([\d.]+) to ([\d.]+) kg', done(estimate, machine)).groups())
    assert low < float(simulate[simulate.index('--payload') + 1]) < high
    done(empty, machine)
