# SPDX-License-Identifier: Apache-2.0
"""The pages about parameters, messages and topics say what the code says."""

import re

import pytest
from source_tree import ROOT

from mbse_ros.machine import load_machine
from mbse_ros.nodes.graphs.documents import PAGES, main
from mbse_ros.nodes.graphs.linkage_graph import SMOOTHED, linkage_topics
from mbse_ros.nodes.graphs.machine_graph import OUTPUTS, SCALE, machine_topics

TOPICS_PAGE = (ROOT / 'docs' / 'topics.md').read_text()


@pytest.mark.parametrize('name', PAGES)
def test_generated_pages_are_up_to_date(name):
    assert (ROOT / 'docs' / name).read_text() == PAGES[name](), 'run python -m mbse_ros.nodes.graphs.documents docs'


def test_pages_are_written(tmp_path):
    main(str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == set(PAGES)


def test_every_topic_is_documented_with_its_type():
    table = dict(re.findall(r'^\| `([\w/<>]+)` \| `(\w+/msg/\w+)` \|', TOPICS_PAGE, re.MULTILINE))
    expected = {re.sub(r'^sensors/pressure/.*', 'sensors/pressure/<volume>', topic): kind
                for topic, kind in {**machine_topics(load_machine('patu655_lift')), **OUTPUTS, **SCALE}.items()}
    assert expected.items() <= table.items()
    assert set(table) - set(expected) == {'valve_command', 'sensors/imu/<sensor>'}


def test_every_topic_of_the_linkage_is_documented_with_its_type():
    table = dict(re.findall(r'^\| `([\w/<>]+)` \| (\w+/msg/\w+) \|', TOPICS_PAGE, re.MULTILINE))
    expected = {re.sub(r'(imu|value)/.*', lambda m: f'{m[1]}/<{"sensor" if m[1] == "imu" else "channel"}>', topic): kind
                for topic, kind in (linkage_topics('five_bar') | SMOOTHED).items()}
    assert expected.items() <= table.items() and set(table) - set(expected) == {'sensors/value/<channel>'}
