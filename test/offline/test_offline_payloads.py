# SPDX-License-Identifier: Apache-2.0
"""Several payloads as users have them: simulated, estimated from a bag, in text, JSON, series, report and bag."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from two_payloads import text_with

import mbse_ros as mbse
from mbse_ros.api.simulate import simulate_bag
from mbse_ros.bags.bag import open_bag
from mbse_ros.bags.topics import TopicMap
from mbse_ros.bags.writer import BagWriter, write_frame
from mbse_ros.errors import DescriptionError, SettingError
from mbse_ros.machine import load_machine
from mbse_ros.monitor.faults import Fault, PayloadStatus
from mbse_ros.offline.bag import estimate_bag
from mbse_ros.offline.checks.another_machine import machine_findings
from mbse_ros.offline.checks.check_bag import check_bag
from mbse_ros.offline.estimate import MachineEstimate
from mbse_ros.report.text import mass_answer
from mbse_ros.simulation.work import masses_of, working_machine

MASSES = {'boom': 90.0, 'jib': 180.0}


@pytest.fixture(scope='module')
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp('two') / 'two.yaml'
    path.write_text(text_with())
    return path


@pytest.fixture(scope='module')
def bag(file: Path) -> Path:
    path = file.parent / 'bag'
    written = simulate_bag(load_machine(str(file)), path, duration=3.0, cycle='random', seed=3, payload=MASSES)
    assert 'boom 90 kg, jib 180 kg' in written.summary()[0]
    return path


@pytest.fixture(scope='module')
def estimate(file: Path, bag: Path) -> MachineEstimate:
    return mbse.estimate(bag, machine=file, tuning=['observer.weighing=apart'], output=bag.parent / 'estimated')


def test_each_mass_in_text_and_json(estimate: MachineEstimate) -> None:
    result, lines = estimate.to_json(full=True), estimate.summary()
    assert list(result['payloads']) == ['boom', 'jib']
    for name, mass in MASSES.items():
        found, last = result['payloads'][name], estimate.payloads[name]
        assert found['interval'][0] <= mass <= found['interval'][1]
        assert [found['mass'], found['stddev'], found['status'], found['samples']] == [
            last.mass, last.stddev, last.status.name.lower(), last.samples]
        assert sum(cause['kg'] ** 2 for cause in found['budget']) == pytest.approx(found['stddev'] ** 2)
        assert any(line.startswith(f'payload {name} {last.mass:.2f} kg, 95 % interval') for line in lines)
        column = result['state'][f'mass/{name}']
        assert column[-1] == last.mass and len(column) == len(result['state']['stamp_ns'])
    assert result['payload']['mass'] == result['payloads']['boom']['mass']
    assert any(line.startswith('loads are not counted: ') and 'this machine has several' in line for line in lines)


def test_series_report_and_bag(estimate: MachineEstimate, bag: Path) -> None:
    by_name = {item.name: item for item in estimate.series()}
    jib = by_name['mass/jib']
    assert jib.unit == 'kg' and (jib.lower[-1], jib.upper[-1]) == (
        estimate.payloads['jib'].lower, estimate.payloads['jib'].upper)
    assert estimate['mass/jib'][-1] == estimate.payloads['jib'].mass
    signals = {signal.name: signal for signal in estimate.run.signals}
    half = (jib.upper[-1] - jib.lower[-1]) / 2
    headline, lines = mass_answer(estimate.run.payload)
    assert headline.startswith('boom: ') and any(line.startswith('jib: ') for line in lines)
    assert 1.96 * signals['payload jib'].estimated.stddev[-1] == pytest.approx(half, rel=1e-4)
    assert {'/payload', '/payloads/boom', '/payloads/jib'} <= open_bag(bag.parent / 'estimated').topics.keys()


def test_the_joint_way_is_refused_by_name(file: Path, bag: Path) -> None:
    with pytest.raises(SettingError, match="observer.weighing: got 'joint', expected apart"):
        estimate_bag(bag, load_machine(str(file)), {})
    for other in (lambda: mbse.smooth(bag, machine=file), lambda: mbse.loads(bag, machine=file)):
        with pytest.raises(DescriptionError, match='payloads: .*this is of one payload alone'):
            other()


def test_a_mass_wider_than_its_limits_is_no_number_in_the_summary(estimate: MachineEstimate) -> None:
    """With the reason instead; the other one stays."""
    last = estimate.last.payload
    vague = replace(last.payloads['jib'], mass=-7049.0, status=PayloadStatus.NOT_OBSERVABLE, reason='not known',
                    faults=Fault.VAGUE)
    output = replace(estimate.last, payload=replace(last, payloads={**last.payloads, 'jib': vague}))
    lines = replace(estimate, track=replace(estimate.track, last=output)).summary()
    assert 'payload jib unknown: not known' in lines and not any('7049' in line for line in lines)
    assert any(line.startswith(f"payload boom {last.payloads['boom'].mass:.2f} kg") for line in lines)


def test_a_bag_of_several_payloads_read_as_another_machine(file: Path, tmp_path: Path, estimate: MachineEstimate
                                                           ) -> None:
    """Under the name of a shipped machine, as a copy of its file has it: the topics of the masses show it."""
    shipped, crane = load_machine('patu655_lift'), working_machine(load_machine('patu655_lift'))
    with BagWriter(tmp_path / 'copy', frame=shipped.name, namespace='crane') as writer:
        for frame in islice(crane.run(), 40):
            write_frame(writer, shipped, frame)
        for name, payload in estimate.payloads.items():
            writer.write_record(payload, f'payloads/{name}')
    (warning,) = [line for line in estimate_bag(tmp_path / 'copy', shipped, {}, backend='vm').warnings
                  if line.startswith('payloads/')]
    assert warning.startswith('payloads/boom, payloads/jib: the bag has masses of these payloads, and patu655_lift ')
    (finding,) = [item for item in check_bag(tmp_path / 'copy', shipped).findings if item.kind == 'machine']
    assert finding.line == warning
    names = TopicMap().payloads(open_bag(tmp_path / 'copy').topics, '/crane')
    assert names == ('boom', 'jib') and not machine_findings('two', load_machine(str(file)), names)
    assert machine_findings('two', load_machine(str(file)), (*names, 'tip'))


def test_a_file_is_checked(file: Path) -> None:
    """`mbse check`: to how many kg each is weighed, less accurately than the only one."""
    found = mbse.check(file)
    assert found.trouble is None and not found.warnings
    (table,) = [section for section in found.sections if section.title.startswith('weighing')]
    widths = {row.name: float(row.value.removeprefix('+- ').removesuffix(' kg')) for row in table.rows}
    assert widths.keys() == MASSES.keys() and all(5.0 < width < 100.0 for width in widths.values())


def test_a_payload_without_a_lever(tmp_path: Path) -> None:
    """Only its own row says so, with a warning; the other is weighed."""
    path = tmp_path / 'pivot.yaml'
    path.write_text(text_with('payloads:\n  a: {body: boom, center: [0, 0, 0], limits: [0, 500]}\n'
                              '  b: {body: jib, center: [1.2, 0, 0], limits: [0, 1000]}\n'))
    with np.errstate(invalid='raise', divide='raise'):
        found = mbse.check(path)
    (table,) = [section for section in found.sections if section.title.startswith('weighing')]
    rows = {row.name: row.value for row in table.rows}
    assert rows['a'] == 'not distinguished' and 2.0 < float(rows['b'].split()[1]) < 100.0
    (warning,) = [text for text in found.warnings if text.startswith('payloads.')]
    assert warning.startswith('payloads.a: in a usual pose the cylinders distinguish its mass not at all')


def test_simulate_has_each_mass(file: Path) -> None:
    found = mbse.simulate(file, 0.2, payload=MASSES)
    for name, mass in MASSES.items():
        assert found[f'mass/{name}'] == pytest.approx(np.full(len(found.t), mass))
    for wrong in ('80', np.array([80.0]), True):
        with pytest.raises(SettingError, match='payload: got .*80.*, expected a number of kg|got True'):
            mbse.simulate('patu655_lift', payload=wrong)


def test_a_load_of_a_bag_is_a_number() -> None:
    with pytest.raises(SettingError, match="payloads: got {'empty': True}, expected a number of kg"):
        mbse.calibrate(['empty'], 'patu655_lift', payloads={'empty': True})


@pytest.mark.parametrize('text, expected', [
    ('200', 200.0), ('boom=120,tip=300', {'boom': 120.0, 'tip': 300.0}), ('a = 1e2', {'a': 100.0})])
def test_masses_of_a_word(text: str, expected: object) -> None:
    assert masses_of(text) == expected


@pytest.mark.parametrize('text', ['', 'x', 'a=', 'a=1,b', 'a=1=2', 'a=1,a=2'])
def test_masses_that_are_none(text: str) -> None:
    with pytest.raises(SettingError, match='payload: '):
        masses_of(text)


@pytest.mark.parametrize('payload, expected', [
    (50.0, 'masses by name: boom and jib'), ({'bom': 5.0}, 'did you mean boom'),
    ({'boom': 501.0, 'jib': 1.0}, 'payloads.boom.limits'), ({'boom': 1.0, 'jib': np.nan}, 'payloads.jib.limits'),
    ({'boom': 120.0}, 'boom and jib: jib missing'), ({}, 'boom and jib missing'),
    ({'boom': None, 'jib': 3.0}, 'boom missing'), ({'boom': '120', 'jib': 1.0}, "got '120', expected a number of kg")])
def test_masses_that_the_machine_does_not_have(file: Path, payload: object, expected: str) -> None:
    with pytest.raises(SettingError, match=expected):
        working_machine(load_machine(str(file)), payload)
