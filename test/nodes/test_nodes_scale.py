# SPDX-License-Identifier: Apache-2.0
"""scale_node: what goes out, its buttons and parameters, its records, in the test's own process."""

import json
import math
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from cli_support import mbse

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from nodes_in_process import Sink, make  # noqa: F401
from nodes_support import ros, sent
from rclpy.parameter import Parameter
from scale_support import excavator, state
from std_srvs.srv import Trigger

from mbse_ros.errors import RecordsError
from mbse_ros.nodes.base.lifecycle import SUCCESS
from mbse_ros.nodes.base.node_settings import RecorderSettings
from mbse_ros.nodes.graphs.machine_graph import SCALE, MachineArguments, machine_graph
from mbse_ros.nodes.recorder_node import wanted_topics
from mbse_ros.nodes.scale_node import ScaleNode
from mbse_ros.scale.reading import Place
from mbse_ros.scale.record import LOAD, MISSED, TAKEN, TRUCK, Record
from mbse_ros.scale.store import RecordStore
from mbse_ros.srv import ScaleOrder
from mbse_ros.streams.records import PayloadStatus
from studies.shifts import Bucket, Shift, payload_of

CHART = 'format: mbse/scale/1\nattachments: {hook: 100 kg}\nload_chart: {limits: [[20 m, 1050 kg]]}\n'


@pytest.fixture(scope='module', autouse=True)
def _ros():
    with ros():
        yield


@pytest.fixture
def node(make, tmp_path):       # noqa: F811
    file = tmp_path / 'scale.yaml'
    file.write_text(CHART)
    return make(ScaleNode, machine='zx200', records=str(tmp_path / 'loads.db'), scale_file=str(file))


def records_of(shift):
    """State and payload of each reading: the swing is that of the place, the rest is the start's."""
    machine = excavator()
    z = machine.model.start.q[machine.model.z]
    for reading in shift.readings():
        yield state(machine, reading.stamp_ns, np.concatenate([[reading.place.swing], z[1:]])), payload_of(reading)


def feed(node, shift):
    for one, two in records_of(shift) if isinstance(shift, Shift) else shift:
        node.on_state(sent(one, 'zx200'))
        node.on_payload(sent(two, 'zx200'))


def said(node, topic, kinds=(LOAD, TRUCK, MISSED)):
    found = [json.loads(message.data) for message in node.sinks[f'scale/{topic}'].messages]
    return [item for item in found if topic != 'record' or item['kind'] in kinds]


def press(node, name):
    """The callback of a service, as a client calls it."""
    service, = [s for s in node.services if s.srv_name.endswith(f'/{name}')]
    return service.callback(Trigger.Request(), Trigger.Response())


EXACT = {'stddev': (0.0, 0.0), 'rate': 5.0}


def test_loads_totals_and_what_the_operator_sees(node):
    shift = Shift([Bucket(1000.0), Bucket(800.0)], **EXACT)
    feed(node, shift)
    loads = said(node, 'record')
    assert [(item['kind'], item['status'], item['truck']) for item in loads] == [('load', 'weighed', 'truck 1')] * 2
    assert [item['mass'] for item in loads] == pytest.approx([1000.0, 800.0], rel=0.02)
    assert loads[0]['taken']['swing'] == pytest.approx(0.0, abs=0.1)
    totals = said(node, 'totals')[-1]
    assert totals['loads'] == totals['day']['loads'] == 2 and totals['total'] == pytest.approx(1800.0, rel=0.02)
    assert totals['total_interval'][0] < 1800.0 < totals['total_interval'][1]
    assert [(item['load'], item['number']) for item in totals['last_loads']] == [(2, 4), (1, 2)]
    assert [item['load'] for item in loads] == [1, 2]
    live = said(node, 'live')
    assert any(item['carrying'] and item['mass'] > 900.0 for item in live) and not live[-1]['carrying']
    assert {item['overload'] for item in live} == {'ok', 'near', 'not_known'}
    assert live[-1]['radius'] > 1.0 and live[-1]['status'] in ('updating', 'too_slow')
    assert any(item['mass'] is None for item in live)       # while it digs: null, not NaN
    masses = [message.data for message in node.sinks['scale/mass'].messages]
    assert all(math.isfinite(mass) for mass in masses) and len(masses) < len(live)
    assert not node.warned


def test_buttons(node):
    assert press(node, 'undo').success is False and 'no load' in press(node, 'load_done').message
    assert 'not known' in press(node, 'zero').message
    feed(node, Shift([Bucket(1000.0)], **EXACT))
    assert press(node, 'undo').success and said(node, 'totals')[-1]['loads'] == 0
    answer = press(node, 'zero')
    assert answer.success and json.loads(answer.message)['kind'] == 'zero'
    assert node.set_parameters([Parameter('truck', value='T7'), Parameter('target', value=3000.0)])[0].successful
    assert json.loads(press(node, 'new_truck').message)['truck'] == 'T7'
    totals = said(node, 'totals')[-1]
    assert (totals['truck'], totals['target'], totals['remaining']) == ('T7', 3000.0, 3000.0)
    assert press(node, 'reset').success


def order(node, **values):
    """The answer of the service of orders."""
    service, = [s for s in node.services if s.srv_name.endswith('/order')]
    return service.callback(ScaleOrder.Request(**values), ScaleOrder.Response())


def test_orders(node):
    """Name and target in the same call; sent again it is the same one; what is refused says why."""
    first = order(node, order='new_truck', key='a', truck='T7', target=3000.0, expected=1)
    assert first.success and not first.repeated and json.loads(first.message)['truck'] == 'T7'
    again = order(node, order='new_truck', key='a', truck='T7', target=3000.0, expected=1)
    assert again.success and again.repeated and again.message == first.message
    assert [item['truck'] for item in said(node, 'record')] == ['T7'] and said(node, 'totals')[-1]['target'] == 3000.0
    other = order(node, order='new_truck', key='b', truck='T8', expected=1)
    assert not other.success and 'number 2 by now' in other.message
    assert order(node, order='attach', attachment='hook').success and said(node, 'totals')[-1]['attachment'] == 'hook'
    assert 'expected one of zero' in order(node, order='stop').message


def test_a_damaged_file_is_said(make, tmp_path):      # noqa: F811
    """The scale continues with what is whole; the diagnostics say what is lost, and where the damaged file is."""
    path = tmp_path / 'loads.db'
    with closing(RecordStore(path, 'zx200')) as store:
        for k in range(3):
            store.append(Record(TRUCK, k, {'truck': f'T{k}', 'target': 0.0}), 0)
    path.write_bytes(path.read_bytes().replace(b'"T1"', b'"T9"'))
    node = make(ScaleNode, machine='zx200', records=str(path))
    feed(node, Shift([Bucket(1000.0)], **EXACT))
    status = [one for message in node.sinks['/diagnostics'].messages for one in message.status][-1]
    assert status.level == b'\x01' and 'record 2' in status.message and 'loads.damaged_' in status.message
    assert [item['truck'] for item in said(node, 'record')] == ['T2']


def test_an_attachment_is_a_parameter(node):
    assert node.set_parameters([Parameter('attachment', value='hook')])[0].successful
    assert said(node, 'totals')[-1]['attachment'] == 'hook'
    result, = node.set_parameters([Parameter('attachment', value='bucket')])
    assert not result.successful and 'hook' in result.reason
    feed(node, Shift([Bucket(1000.0)], **EXACT))
    assert said(node, 'record')[-1]['mass'] == pytest.approx(900.0, rel=0.03)


def test_the_attachment_at_the_start_is_that_of_the_equations(node, make):      # noqa: F811
    """Its mass is not taken off what is weighed; another one that is chosen later is."""
    hooked = make(ScaleNode, machine='zx200', records='none', scale_file=node.settings.scale_file, attachment='hook')
    assert hooked.machine.description.bodies['bucket'].mass.value == 760.0 and hooked.fingerprint != node.fingerprint
    assert hooked.stage._detector.tare.value == 0.0 and said(hooked, 'totals')[-1]['attachment'] == 'hook'
    assert hooked.set_parameters([Parameter('attachment', value='')])[0].successful
    assert hooked.stage._detector.tare.value == -100.0


def test_a_tuning_reaches_the_detection(node):
    assert node.set_parameters([Parameter('least_load', value=900.0)])[0].successful
    feed(node, Shift([Bucket(1000.0), Bucket(800.0)], **EXACT))
    assert len(said(node, 'record')) == 1


def test_records_outlive_the_node(node, make):      # noqa: F811
    feed(node, Shift([Bucket(1000.0)], **EXACT))
    node.set_parameters([Parameter('attachment', value='hook')])
    path = node.settings.records
    assert node.trigger_deactivate() == node.trigger_cleanup() == SUCCESS
    again = make(ScaleNode, machine='zx200', records=path, scale_file=node.settings.scale_file)
    totals = said(again, 'totals')[-1]
    assert totals['loads'] == 1 and totals['attachment'] == 'hook'


def test_a_load_that_was_gone_when_the_node_came_back(node, make):      # noqa: F811
    """It is a warning and in the totals until the operator has said that it counts."""
    instants = list(records_of(Shift([Bucket(1000.0)], **EXACT)))
    middle = next(k for k in range(len(instants)) if feed(node, instants[k:k + 1]) or node.stage._detector.carrying)
    path = node.settings.records
    assert [item['kind'] for item in said(node, 'record', (TAKEN,))] == [TAKEN] and middle < len(instants) - 10
    assert node.trigger_deactivate() == node.trigger_cleanup() == SUCCESS
    again = make(ScaleNode, machine='zx200', records=path, scale_file=node.settings.scale_file)
    feed(again, instants[-10:])
    assert [item['kind'] for item in said(again, 'record')] == [MISSED]
    assert said(again, 'totals')[-1]['missed'] == pytest.approx(1000.0, rel=0.03) and again.warned
    assert mbse('loads', '--records', path).err.startswith('warning: a load of ')
    assert press(again, 'load_done').success
    totals = said(again, 'totals')[-1]
    assert totals['missed'] is None and totals['loads'] == 1
    assert not mbse('loads', '--records', path).err


def test_an_overload_is_an_error_in_the_diagnostics(node):
    feed(node, Shift([Bucket(1100.0)], **EXACT))
    statuses = [message.status[0] for message in node.sinks['/diagnostics'].messages]
    assert any(status.level == b'\x02' and 'limit 1050 kg' in status.message for status in statuses)
    assert 'over' in {item['overload'] for item in said(node, 'live')}
    assert statuses[-1].level == b'\x00' and statuses[-1].name.startswith('scale_node load')


def test_a_disk_that_is_full_is_said_and_nothing_is_confirmed(node, monkeypatch):
    append = node._store.append

    def full(record, after):
        raise RecordsError('loads.db', 'database or disk is full')

    monkeypatch.setattr(node._store, 'append', full)
    feed(node, Shift([Bucket(1000.0)], **EXACT))
    answer = press(node, 'new_truck')
    assert not answer.success and 'full' in answer.message and not said(node, 'record')
    status = node.sinks['/diagnostics'].messages[-1].status[0]
    assert status.level == b'\x02' and 'full' in status.message
    monkeypatch.setattr(node._store, 'append', append)
    feed(node, Shift([Bucket(900.0)], start_ns=1_700_000_100_000_000_000, **EXACT))
    assert [item['kind'] for item in said(node, 'record')] == ['load', 'truck', 'load']


def test_other_machines_and_other_bytes_are_refused(node):
    (one, two), *_ = records_of(Shift([Bucket(1000.0)], **EXACT))
    node.on_payload(sent(two))
    node.on_state(b'\0\1\0\0')
    assert node.stage.live is None and node.warnings.total == 2
    node.on_state(sent(replace(one, names=('position/other', *one.names[1:])), 'zx200'))
    assert node.warnings.total == 3


def test_an_instant_without_its_state_is_not_weighed(node):
    for _, two in records_of(Shift([Bucket(1000.0)], **EXACT)):
        node.on_payload(sent(two, 'zx200'))
    assert node.stage.live is None and not said(node, 'record')


def test_the_graph_starts_it_and_records_its_topics() -> None:
    processes = {p.name: p for p in machine_graph(MachineArguments(scale=True, record='bag')).processes}
    parameters = processes['scale_node'].parameters
    assert (parameters['machine'], parameters['records'], parameters['wait_subscribers']) == ('patu655_lift', 'none', 1)
    also = processes['recorder_node'].parameters['also']
    topics, _ = wanted_topics(RecorderSettings(bag='bag', also=also))
    assert SCALE.items() <= topics.items()
    assert 'scale_node' not in {p.name for p in machine_graph(MachineArguments()).processes}
    live = machine_graph(MachineArguments(scale=True, simulate=False)).processes
    assert next(p for p in live if p.name == 'scale_node').parameters['records'] == ''


def test_a_place_is_where_the_state_says(node):
    feed(node, Shift([Bucket(1000.0)], **EXACT))
    taken, dropped = (Place(**said(node, 'record')[0][end]) for end in ('taken', 'dropped'))
    assert taken.distance(dropped) > 3.0 and dropped.swing == pytest.approx(1.6, abs=0.1)
    assert PayloadStatus.UPDATING.name.lower() in {item['status'] for item in said(node, 'live')}
