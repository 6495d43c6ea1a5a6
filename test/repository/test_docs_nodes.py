# SPDX-License-Identifier: Apache-2.0
"""The pages about parameters, messages and topics say what the code says."""

import re

import pytest
from source_tree import ROOT
from write_pages import FAULTS, PAGES, main, with_faults

from mbse_ros.machine import load_machine
from mbse_ros.monitor.faults import KINDS, Fault
from mbse_ros.nodes.graphs.linkage_graph import SMOOTHED, linkage_topics
from mbse_ros.nodes.graphs.machine_graph import OUTPUTS, SCALE, machine_topics

TOPICS_PAGE = (ROOT / 'docs' / 'topics.md').read_text()


@pytest.mark.parametrize('name', PAGES)
def test_generated_pages_are_up_to_date(name):
    assert (ROOT / 'docs' / name).read_text() == PAGES[name](), 'run tools/write_pages.py docs'


def test_the_table_of_faults_has_the_numbers_of_the_code():
    page = (ROOT / 'docs' / 'safety.md').read_text()
    assert page == with_faults(page), 'run tools/write_pages.py docs'
    table = page.split(FAULTS[0])[1].split(FAULTS[1])[0]
    assert re.findall(r'^\| `(\w+)` ', table, re.MULTILINE) == [fault.name for fault in Fault]
    assert '`fastest_piston`, 1.5 m/s' in table and 'for 1 s after a fault' in table and '{' not in table


def test_a_fault_is_read_in_the_records_of_the_rooms_that_find_it():
    files = [ROOT / f'mbse_ros/{name}.py' for name in ('streams/linkage', 'streams/lagged', 'monitor/mechanism')]
    of_linkages = ''.join(path.read_text() for path in files)
    for fault, kind in KINDS.items():
        assert ('linkage_state' in kind.records) is (f'Fault.{fault.name}' in of_linkages), fault


def test_pages_are_written(tmp_path):
    main(str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == set(PAGES)


def test_every_topic_is_documented_with_its_type():
    table = dict(re.findall(r'^\| `([\w/<>]+)` \| `(\w+/msg/\w+)` \|', TOPICS_PAGE, re.MULTILINE))
    expected = {re.sub(r'^sensors/pressure/.*', 'sensors/pressure/<volume>', topic): kind
                for topic, kind in {**machine_topics(load_machine('patu655_lift')), **OUTPUTS, **SCALE}.items()}
    assert expected.items() <= table.items()
    assert set(table) - set(expected) == {
        'valve_command', 'trajectory_node/joint_trajectory',
        'wanted_speeds', 'state/predicted', 'sensors/imu/<sensor>', 'payloads/<name>',
        'tool_force/estimate'}
    assert table['payloads/<name>'] == expected['payload']


def test_every_topic_of_the_linkage_is_documented_with_its_type():
    table = dict(re.findall(r'^\| `([\w/<>]+)` \| (\w+/msg/\w+) \|', TOPICS_PAGE, re.MULTILINE))
    expected = {re.sub(r'(imu|value)/.*', lambda m: f'{m[1]}/<{"sensor" if m[1] == "imu" else "channel"}>', topic): kind
                for topic, kind in (linkage_topics('five_bar') | SMOOTHED).items()}
    assert expected.items() <= table.items() and set(table) - set(expected) == {
        'sensors/value/<channel>', 'sensors/position'}
