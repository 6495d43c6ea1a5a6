# SPDX-License-Identifier: Apache-2.0
"""The C++ broadcaster uses what `mbse export-c --estimator` writes and the message has, and every status of it."""

import re

import pytest
from source_tree import ROOT

from mbse_ros.embedded.template_header import HEADER

SOURCE = (ROOT / 'examples' / 'payload_broadcaster.cpp').read_text()
CODE = re.sub(r'//.*|"[^"]*"', '', SOURCE)
MESSAGE = (ROOT / 'msg' / 'PayloadEstimate.msg').read_text()
PAGE = (ROOT / 'docs' / 'integration.md').read_text()


def members(struct):
    """Names of the members of a struct of the header."""
    body = re.search(rf'typedef struct \{{([^{{}}]*)\}} @name@_{struct};', HEADER)[1]
    return set(re.findall(r'(\w+)(?:\[[^;,]*\])?[;,]', re.sub(r'/\*.*?\*/', '', body)))


def statuses():
    """Of the mass, by the header."""
    part = HEADER.split('/* status: ')[1].split('/* observer: ')[0]
    return set(re.findall(r'#define @NAME@_(\w+) \d', part))


def test_names_are_those_of_the_header():
    macros = set(re.findall(r'#define @NAME@_(\w+)', HEADER)) | {'MACHINE', 'FINGERPRINT'}
    functions = set(re.findall(r'@name@_(\w+)\(', HEADER)) | {'estimator', 'input', 'output'}
    assert {'STEP', 'UPDATING'} - macros == {'STEP'} and set(re.findall(r'ZX200_(\w+)', CODE)) <= macros
    assert 'step' in functions and set(re.findall(r'zx200_(\w+)', CODE)) <= functions
    assert {'sample', 'command'} == set(re.findall(r'input_\.(\w+)', CODE)) == members('input')
    used = set(re.findall(r'output_\.(\w+)', CODE))
    assert 'held_mass' in used and used <= members('output')


def test_each_status_has_a_meaning_and_only_one_is_a_mass():
    cases = dict(re.findall(r'case ZX200_(\w+): return \{PayloadEstimate::(\w+)', SOURCE))
    assert cases.keys() | {'NO_DATA'} == statuses()
    assert [name for name, meaning in cases.items() if meaning == 'UPDATING'] == ['UPDATING']
    assert re.search(r'default: return \{PayloadEstimate::NO_DATA', SOURCE)
    assert set(re.findall(r'PayloadEstimate::(\w+)', CODE)) <= set(re.findall(r'^uint8 (\w+)=', MESSAGE, re.MULTILINE))


def test_fields_are_those_of_the_message():
    fields = set(re.findall(r'^[\w/]+ (\w+)(?: +#|$)', MESSAGE, re.MULTILINE))
    assert {'mass', 'status'} <= fields == set(re.findall(r'message_\.(\w+)', CODE))


@pytest.mark.parametrize('name', ['samples', 'commands'])
def test_the_page_names_its_parameters(name):
    assert f'auto_declare<std::vector<std::string>>("{name}"' in SOURCE and f'       {name}: [' in PAGE


def test_the_class_is_the_one_of_the_page():
    assert 'PLUGINLIB_EXPORT_CLASS(mbse_examples::PayloadBroadcaster, controller_interface' in SOURCE
    assert 'type="mbse_examples::PayloadBroadcaster"' in PAGE and len(SOURCE.splitlines()) < 200
