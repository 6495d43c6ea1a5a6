# SPDX-License-Identifier: Apache-2.0
"""What the payload node reports: why the mass is held, and what makes it uncertain."""

from dataclasses import replace

import numpy as np
import pytest
import yaml

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
from core_support import feed, kinematic
from nodes_in_process import SECOND, make  # noqa: F401
from nodes_support import ros, sent, state
from two_payloads import text_with

from mbse_ros.bags.messages import packed_record
from mbse_ros.description.load import known_machines
from mbse_ros.description.model import fingerprint
from mbse_ros.errors import DescriptionError, SettingError
from mbse_ros.filters.hydraulic_state import MASS, state_names
from mbse_ros.filters.mass_information import columns
from mbse_ros.machine import load_machine
from mbse_ros.monitor.faults import NONE, Fault, reason_of
from mbse_ros.nodes.graphs.machine_graph import MachineArguments, check_machine, machine_topics
from mbse_ros.nodes.payload_node import PayloadNode, warm_up_payload
from mbse_ros.simulation.crane import SimulatedCrane
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import ObserverStatus, PayloadEstimate, PayloadStatus
from mbse_ros.streams.stages import PayloadStage

PERIOD = SECOND // 100
MACHINE = load_machine('patu655_lift')
NAMES = (*state_names(MACHINE)[0], MASS)
DOUBTFUL = [name for name, stddev in zip(MACHINE.parameters.names, MACHINE.parameters.stddev) if stddev]
OK, WARN = b'\x00', b'\x01'


@pytest.fixture(scope='module', autouse=True)
def _ros():
    with ros():
        yield


class Stream:
    """States in which an observer weighs, one after the other, to a payload node."""

    def __init__(self, node):
        self.node, self.count = node, 0

    def __call__(self, seconds, mass, stddev=20.0, forgotten=0.0, slopes=(), status=ObserverStatus.OK, reason='',
                 faults=NONE, speed=0.1):
        """``stddev``, kg, of one step; ``forgotten``: in each step, as a logarithm; ``slopes``, kg, by name."""
        for _ in range(round(100 * seconds)):
            self.count += 1
            given = state(self.count, self.count * PERIOD, names=NAMES)
            given.mean[:] = 0.0
            given.mean[:, NAMES.index('position/lift')], given.mean[:, NAMES.index('velocity/lift')] = 0.2675, speed
            weighing = np.zeros((len(given.mean), columns(len(DOUBTFUL))))
            weighing[:, 0], weighing[:, 1], weighing[:, 2] = stddev ** -2, stddev ** -2 * mass, -forgotten
            for name, slope in slopes:
                weighing[:, 3 + DOUBTFUL.index(name)] = stddev ** -2 * slope
            self.node.on_record(sent(replace(given, status=status, reason=reason, faults=faults,
                                             weighing=weighing)))

    @property
    def status(self):
        """The newest one on /diagnostics, and its numbers."""
        status = self.node.sinks['/diagnostics'].messages[-1].status[0]
        return status, {item.key: item.value for item in status.values}


@pytest.fixture
def stream(make):      # noqa: F811
    return Stream(make(PayloadNode, backend='vm'))


def test_before_there_is_a_mass(stream):
    stream(0.5, 100.0, status=ObserverStatus.STARTING, reason='settling after a start', faults=Fault.SETTLING)
    status, values = stream.status
    assert (status.level, status.message) == (WARN, 'NO_DATA: observer starting: settling after a start')
    assert values == {'mass': 'no mass yet', 'samples': '0', 'dropped, states': '0'}


def test_what_makes_the_mass_uncertain(stream):
    """The three largest, by their keys in the machine's file; what the file knows exactly is none."""
    slopes = list(zip(DOUBTFUL, (-3.0, 0.5, 7.0, 2.0)))
    stream(4.2, 100.0, stddev=20.0, slopes=slopes)
    status, values = stream.status
    assert (status.level, status.message) == (OK, 'UPDATING') and values['mass'].startswith('100.0 kg +- ')
    assert [values[f'uncertainty, cause {k}'] for k in (1, 2, 3)] == [
        f'{DOUBTFUL[2]}: 7 kg', f'{DOUBTFUL[0]}: 3 kg', f'{DOUBTFUL[3]}: 2 kg']
    assert 'uncertainty, cause 4' not in values
    few = Stream(stream.node)
    few.count = stream.count
    stream.node.stage.reset()
    few(1.2, 100.0, stddev=20.0)
    causes = [value for key, value in few.status[1].items() if key.startswith('uncertainty')]
    assert len(causes) == 1 and causes[0].startswith('noise of the sensors')


def test_another_load(stream):
    """100 kg, then 300 kg; while it changes the level is OK."""
    stream(3, 100.0)
    stream(1, 200.0, stddev=2000.0, forgotten=0.01)
    status, _ = stream.status
    assert (status.level, status.message) == (OK, 'CHANGING: the load changes')
    stream(4, 300.0)
    status, values = stream.status
    assert status.message == 'UPDATING' and values['mass'].startswith('300.0 kg')


def test_contact_and_masses_that_cannot_be_are_warnings(stream):
    stream(2, 100.0)
    stream(0.5, 100.0, faults=Fault.OUTSIDE_FORCE)
    status, values = stream.status
    said = f'CONTACT: {reason_of(Fault.OUTSIDE_FORCE)}'
    assert status.level == WARN and status.message.startswith(said) and values['mass'].startswith('100.0 kg')
    stream(0.5, 100.0)
    assert stream.status[0].level == WARN and stream.status[0].message.startswith('NO_DATA: observer not trusted')
    stream(2, 100.0)
    assert (stream.status[0].level, stream.status[0].message) == (OK, 'UPDATING')
    stream.node.stage.reset()
    stream(2, -700.0)
    assert stream.status[0].level == WARN and stream.status[0].message.startswith('IMPLAUSIBLE: the mass is not within')


def test_the_level_of_each_status(stream):
    """Slow or changing is no fault; a machine that rests is OK, with the reason."""
    estimate = PayloadEstimate(1, 0, 50.0, 1.0, 48.0, 52.0, 50.0, 50.0, 10, PayloadStatus.UPDATING)
    levels = {status.name: stream.node.level(replace(estimate, status=status)) for status in PayloadStatus}
    assert {name for name, level in levels.items() if level == WARN} == {'NO_DATA', 'IMPLAUSIBLE', 'CONTACT'}
    assert set(levels.values()) == {OK, WARN}
    stream(1, 100.0)
    stream(1.2, 100.0, speed=0.0)
    assert stream.status[0].level == OK and stream.status[0].message.startswith('TOO_SLOW: piston too slow')


def test_a_machine_whose_sensors_weigh_nothing(make, tmp_path):     # noqa: F811
    """Its states are answered with no mass, the status and the sensors to add."""
    tree = yaml.safe_load(known_machines()['patu655_lift'].read_text())
    tree['sensors'] = {name: item for name, item in tree['sensors'].items() if item['kind'] != 'pressure'}
    file = tmp_path / 'strokes.yaml'
    file.write_text(yaml.safe_dump(tree, sort_keys=False))
    node = make(PayloadNode, machine=str(file), backend='vm')
    machine = load_machine(str(file))
    for k in range(1, 31):
        given = state(k, k * PERIOD, names=state_names(machine)[0])
        node.on_record(packed_record(given, machine.name, fingerprint(machine.description)))
    status = node.sinks['/diagnostics'].messages[-1].status[0]
    assert status.level == OK and 'pressure/lift_piston and pressure/lift_rod' in status.message
    assert {item.key: item.value for item in status.values}['mass'] == 'no mass yet'


def test_the_first_state_finds_its_estimator_warm_whether_the_observer_weighs_or_not(monkeypatch):
    seen, stage = [], PayloadStage(MACHINE, backend='vm')
    with monkeypatch.context() as patch:
        for kind, estimator in (('joint', stage._joint), ('apart', stage._paper)):
            patch.setattr(estimator, 'process', lambda *given, kind=kind, of=estimator.process: (
                seen.append(kind), of(*given))[1])
        warm_up_payload(stage, MACHINE)
    assert sorted(seen) == ['apart', 'joint'] and stage.budget == ()


def test_each_of_several_payloads_has_its_topic(make, tmp_path):     # noqa: F811
    """`payloads/NAME` with the message of one; `payload` is the first; the diagnostics have all."""
    file = tmp_path / 'two.yaml'
    file.write_text(text_with())
    node, machine = make(PayloadNode, machine=str(file), backend='vm'), load_machine(str(file))
    frames = SimulatedCrane(machine, {'boom': 100.0, 'jib': 200.0}, 1, WorkCycle(
        0.35, (Move(6.0, 1.2),), {'tilt_valve': (Move(5.0, 1.2),)})).run()
    outputs = feed(Pipeline(machine, observer=kinematic()), frames)
    for output in outputs:
        node.on_record(packed_record(output.state, machine.name, fingerprint(machine.description)))
    sinks, last = node.sinks, outputs[-1].payload
    assert set(last.payloads) == {'boom', 'jib'}
    for topic, found in (('payload', last), *((f'payloads/{name}', item) for name, item in last.payloads.items())):
        message = sinks[topic].messages[-1]
        assert len(sinks[topic].messages) == len(outputs) and message.machine == fingerprint(machine.description)
        assert [message.mass, message.lower, message.upper] == pytest.approx([found.mass, found.lower, found.upper])
        assert (message.status, message.reason) == (found.status, found.reason)
    assert 150.0 < last.payloads['jib'].mass < 250.0 and 50.0 < last.mass < 150.0
    values = node.values(last)
    assert values['mass of jib'].endswith('kg (95 %)') and values['mass of boom'].endswith(f': {values["mass"]}')
    assert 'mass of jib' in {item.key for item in sinks['/diagnostics'].messages[-1].status[0].values}


def test_a_graph_of_several_payloads_weighs_apart(tmp_path):
    """It is refused before a process starts: by the default, with the scale, and with outputs."""
    file = tmp_path / 'two.yaml'
    file.write_text(text_with())
    machine = check_machine(MachineArguments(machine=str(file), preset='paper'))
    assert {'payloads/boom', 'payloads/jib', 'payload'} <= machine_topics(machine).keys()
    with pytest.raises(SettingError, match='preset: .*several payloads are weighed apart'):
        check_machine(MachineArguments(machine=str(file)))
    for option in ('scale', 'display', 'outputs'):
        with pytest.raises(DescriptionError, match='this is of one payload alone'):
            check_machine(MachineArguments(machine=str(file), preset='paper', **{option: True}))
