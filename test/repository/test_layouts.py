# SPDX-License-Identifier: Apache-2.0
"""The layouts for Foxglove and PlotJuggler: each topic and field in them against the real topics and message types."""

import json
import xml.etree.ElementTree as ElementTree

import pytest
from source_tree import ROOT

from mbse_ros.bags.messages import typestore
from mbse_ros.bags.topics import JOINT_STATE
from mbse_ros.machine import load_machine
from mbse_ros.nodes.graphs.machine_graph import MARKERS_FRAME, OUTPUTS, SCALE, STRING, machine_topics
from mbse_ros.scale.orders import BUTTONS
from mbse_ros.sources.fields import parse_path, store_fields
from mbse_ros.sources.getters import number_getter

FOLDER = ROOT / 'config' / 'layouts'
FOXGLOVE = {name: json.loads((FOLDER / f'{name}.json').read_text()) for name in ('foxglove', 'foxglove_scale')}
PLOTJUGGLER = ElementTree.parse(FOLDER / 'plotjuggler.xml').getroot()
MACHINE = load_machine('patu655_lift')
TOPICS = {f'/{topic.strip("/")}': kind for topic, kind in (machine_topics(MACHINE) | SCALE | OUTPUTS).items()}
NAMES = {*MACHINE.model.names, *MACHINE.valves, *(name.partition('/')[2] for name in MACHINE.channels)}


def check_number(topic, path):
    """Raise ValueError or KeyError where messages of a topic have no such number."""
    number_getter(parse_path(path), TOPICS[topic], store_fields(typestore()))


def in_foxglove(item):
    """Panels that a tree of Foxglove's layout shows."""
    return [item] if isinstance(item, str) else [*in_foxglove(item['first']), *in_foxglove(item['second'])]


def check_curve(name):
    """A curve as PlotJuggler names it: of a JointState by the name of the joint, which stands before the field."""
    topic = max((topic for topic in TOPICS if name.startswith(f'{topic}/')), key=len)
    path = name[len(topic) + 1:]
    if TOPICS[topic] == JOINT_STATE:
        joint, _, path = path.rpartition('/')
        if joint not in NAMES:
            raise ValueError(joint)
        path += '[0]'
    check_number(topic, path.replace('/', '.'))


@pytest.mark.parametrize('layout', FOXGLOVE.values(), ids=list(FOXGLOVE))
def test_foxglove_plots_what_is_there(layout):
    panels = layout['configById']
    assert sorted(in_foxglove(layout['layout'])) == sorted(panels)
    for panel in panels.values():
        if 'topicPath' in panel:        # a text: the field alone can be looked at
            topic, _, field = panel['topicPath'].partition('.')
            assert TOPICS[topic] == STRING and field == 'data'
        if 'serviceName' in panel:
            assert panel['serviceName'].removeprefix('/scale_node/') in BUTTONS and panel['requestPayload'] == '{}'
        for path in panel.get('paths', ()):
            check_number(*path['value'].split('.', 1))
    scene = panels['3D!machine']
    assert scene['followTf'] == MARKERS_FRAME and set(scene['topics']) <= set(TOPICS)
    assert panels['DiagnosticSummary!health']['topicToRender'] in TOPICS


def test_plotjuggler_plots_what_is_there():
    curves = [curve.get('name') for curve in PLOTJUGGLER.iter('curve')]
    topics = {topic.get('name') for topic in PLOTJUGGLER.iter('topic')}
    assert '/payload/mass' in curves and topics <= set(TOPICS)
    for name in curves:
        check_curve(name)
        assert any(name.startswith(f'{topic}/') for topic in topics)


@pytest.mark.parametrize('check, words', [
    (check_number, ('/payload', 'weight')), (check_number, ('/payload', 'reason')),
    (check_curve, ('/sensors/position/boom/position',)), (check_curve, ('/sensors/position/lift/place',))])
def test_the_checks_see_what_is_not_there(check, words):
    with pytest.raises(ValueError):
        check(*words)
