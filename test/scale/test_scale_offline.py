# SPDX-License-Identifier: Apache-2.0
"""``mbse loads`` on bags of simulated machines, and what it writes."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ElementTree
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from cli_support import mbse
from core_support import crane, plant
from scale_support import excavator, scale, state, weighed
from source_tree import ROOT

from mbse_ros.bags.writer import BagWriter, write_frame
from mbse_ros.description.model import fingerprint
from mbse_ros.errors import MissingModuleError, SettingError
from mbse_ros.machine import load_machine
from mbse_ros.offline import weigh_bags as weigh_module
from mbse_ros.offline.bag import KINDS, parse_tuning
from mbse_ros.offline.long_log import LongLog
from mbse_ros.offline.weigh_bags import weigh_bags
from mbse_ros.scale import table
from mbse_ros.scale.reading import Whereabouts, swing_coordinate
from mbse_ros.scale.record import LOAD
from mbse_ros.scale.scale_file import ScaleFile, load_scale_file, scale_of
from mbse_ros.scale.store import RecordStore
from mbse_ros.scale.table import COLUMNS, NAMESPACE, Equipment, rows, write_loads
from mbse_ros.simulation.crane import SensorFrame, SimulatedCrane
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.sources.map import load_sources
from studies.shifts import Bucket, Shift

UP_DOWN = WorkCycle(0.3, tuple(Move(v, 1.5) for _ in range(4) for v in (4.0, -4.0)), load=(
    (0.0, 0.0), (2.4, 0.0), (2.5, 0.5), (5.9, 0.5), (6.0, 0.0), (9.4, 0.0), (9.5, 1.0), (12.0, 1.0)))
CHART = 'format: mbse/scale/1\nload_chart: {limits: [[5 m, 300 kg]]}\nattachments: {grapple: 40 kg}\n'


def write(frames: list[SensorFrame], folder: Path) -> Path:
    machine = crane()
    with BagWriter(folder, 'mcap', frame=machine.name) as writer:
        for frame in frames:
            write_frame(writer, machine, frame)
    return folder


@pytest.fixture(scope='module')
def frames() -> list[SensorFrame]:
    """200 kg, nothing, 400 kg until the end, on the crane."""
    return SimulatedCrane(crane(), 400.0, 1, UP_DOWN, plant=plant(), start_ns=1_700_000_000_000_000_000).run()


@pytest.fixture(scope='module')
def bag(frames, tmp_path_factory) -> Path:
    return write(frames, tmp_path_factory.mktemp('bags') / 'crane')


@pytest.fixture(scope='module')
def tooled(tmp_path_factory) -> Path:
    """The same with a grapple of 40 kg."""
    cycle = replace(UP_DOWN, load=tuple((t, (40.0 + 400.0 * share) / 440.0) for t, share in UP_DOWN.load))
    done = SimulatedCrane(crane(), 440.0, 1, cycle, plant=plant(), start_ns=1_700_000_000_000_000_000).run()
    return write(done, tmp_path_factory.mktemp('bags') / 'tooled')


def test_two_bags_of_the_same_time_are_said_to_be_counted_twice(bag) -> None:
    done = mbse('loads', bag, bag, '--machine', 'patu655_lift')
    assert done.status == 0
    assert 'crane: of the same time as crane: what was weighed in both is counted twice' in done.err
    assert 'same time' not in mbse('loads', bag, '--machine', 'patu655_lift').err


def test_the_estimate_knows_the_attachment(tooled, tmp_path) -> None:
    file = tmp_path / 'scale.yaml'
    file.write_text(CHART)
    done = mbse('estimate', tooled, '--machine', 'patu655_lift', '--json', tmp_path / 'found.json', '--scale', file,
                '--attachment', 'grapple')
    assert done.status == 0, done.err
    found = json.loads((tmp_path / 'found.json').read_text())['payload']
    assert found['mass'] == pytest.approx(400.0, abs=5.0) and found['interval'][0] < 400.0 < found['interval'][1]
    assert found['loads'][-1]['mass'] == pytest.approx(400.0, abs=5.0)      # not taken off twice
    assert 'with attachment grapple (+40 kg)' in done.out
    done = mbse('estimate', tooled, '--machine', 'patu655_lift', '--scale', file, '--attachment', 'graple')
    assert done.status != 0 and 'did you mean grapple' in done.err


def test_loads_of_a_bag_by_the_command(tooled, tmp_path) -> None:
    out, file = tmp_path / 'loads.csv', tmp_path / 'scale.yaml'
    file.write_text(CHART)
    done = mbse('loads', tooled, '--machine', 'patu655_lift', '-o', out, '--json', tmp_path / 'loads.json', '--scale',
                file, '--attachment', 'grapple', '--truck', 'T1')
    assert done.status == 0, done.err
    found = json.loads((tmp_path / 'loads.json').read_text())
    first, last = found['loads']
    assert first.keys() >= {'start_s', 'end_s', 'mass', 'interval', 'truck', 'status'}
    assert (first['status'], last['status'], first['truck']) == ('weighed', 'carried', 'T1')
    for load, true, begin, end in ((first, 200.0, 2.5, 6.0), (last, 400.0, 9.5, 12.0)):     # without the grapple
        assert load['interval'][0] < true < load['interval'][1] and load['mass'] == pytest.approx(true, abs=5.0)
        assert begin - 0.6 < load['start_s'] < begin + 0.5 and abs(load['end_s'] - end) < 0.6
    assert found['total'] == pytest.approx(first['mass'] + last['mass'])
    assert found['total_interval'][0] < 600.0 < found['total_interval'][1]
    assert len(found['overloads']) == 1 and '300 kg' in found['overloads'][0]       # with the grapple
    with out.open() as text:
        table = list(csv.DictReader(text))
    assert [float(row['mass_kg']) for row in table] == pytest.approx([first['mass'], last['mass']], rel=1e-6)
    assert [row['number'] for row in table] == ['1', '2']
    assert table[0]['taken_swing_rad'] == '' and table[0]['start'].startswith('2023-11-14T22:13:2')
    assert '2 loads' in done.out and 'overload: tooled' in done.err


def test_a_recording_in_two_bags_is_one_and_bags_apart_are_two(frames, bag, tmp_path) -> None:
    """Cut while 200 kg hang there: the load goes on in the second bag."""
    parts = [write(frames[:450], tmp_path / 'one'), write(frames[450:], tmp_path / 'two')]
    split = weigh_bags(parts, crane(), {})
    whole = weigh_bags([bag], crane(), {})
    assert [load.record.data['status'] for load in split.loads] == ['weighed', 'carried']
    assert split.book.all.mass.value == pytest.approx(whole.book.all.mass.value, abs=6.0)
    assert split.loads[0].bag.endswith('two') and split.loads[0].start < 0.0 < split.loads[0].end
    apart = weigh_bags([parts[0], parts[0]], crane(), {}, trucks=['A', 'B'])
    assert [(name, tally.count) for name, tally in apart.book.trucks.items()] == [('A', 1), ('B', 1)]


def test_why_nothing_was_weighed_is_said(frames, tmp_path) -> None:
    """A channel without values: no load, with the reason; nothing of it where all is well."""
    nothing = [replace(frame, samples=frame.samples | {'pressure/lift_rod': float('nan')}) for frame in frames[:300]]
    found = weigh_bags([write(nothing, tmp_path / 'nan')], crane(), {})
    assert not found.loads and any('the mass was held for 3.0 s' in line and 'missing: pressure/lift_rod' in line
                                   for line in found.warnings)
    assert found.held['missing'] == pytest.approx(3.0, abs=0.1)
    sound = weigh_bags([write(frames[:900], tmp_path / 'sound')], crane(), {})
    assert sound.loads and not any('the mass was held' in line for line in sound.warnings)


def test_loads_of_wrong_samples_are_not_trusted(frames, tmp_path) -> None:
    """A transducer that ends at a pressure: each door says so, and the total counts its loads as such."""
    name = 'pressure/lift_piston'
    end = sorted(frame.samples[name] for frame in frames)[len(frames) * 8 // 10]
    clipped = [replace(frame, samples=frame.samples | {name: min(frame.samples[name], end)}) for frame in frames]
    done = mbse('loads', write(clipped, tmp_path / 'clipped'), '--json', tmp_path / 'x.json')
    found = json.loads((tmp_path / 'x.json').read_text())
    assert found['count'] and found['untrusted'] == found['count'] == found['trucks']['truck 1']['untrusted']
    assert all(not load['trusted'] and f'{name}: 2' in load['why'] for load in found['loads'])
    assert found['total'] == 0.0 and found['untrusted_total'] == sum(load['mass'] for load in found['loads']) > 0.0
    loads = 'load' if found['count'] == 1 else 'loads'
    assert f"{found['count']} {loads} not trusted: {found['untrusted_total']:.1f} (" in done.out
    assert 'total' not in done.out and f'not trusted: {name}: ' in done.out
    assert any(f'clipped: {name}: ' in line and 'again and again' in line for line in done.warnings)


def test_what_the_estimate_finds_speaks_against_the_loads(frames, tmp_path) -> None:
    """Masses that cannot be, and samples that are often far from their prediction."""
    name = 'pressure/lift_piston'
    wrong = [replace(frame, samples=frame.samples | {name: frame.samples[name] + 3e6 * (k % 12 == 0)})
             for k, frame in enumerate(frames[:900])]
    found = weigh_bags([write(wrong, tmp_path / 'wrong')], crane(), {})
    assert found.book.all.untrusted == found.book.all.count > 0
    assert all('the mass was implausible for ' in load.record.data['why']
               and 'samples lie more than 6 sigma' in load.record.data['why'] for load in found.loads)


def test_sound_samples_are_trusted(frames, tmp_path) -> None:
    """As a whole, and where a log is judged in parts, which says what of which part."""
    found = weigh_bags([write(frames[:900], tmp_path / 'sound')], crane(), {})
    assert found.loads and found.book.all.untrusted == 0 and found.warnings == ()
    assert all(load.record.data['trusted'] and 'why' not in load.record.data for load in found.loads)


def test_a_doubtful_bag_says_nothing_of_another_one_with_the_same_stamps(frames, tmp_path) -> None:
    name = 'pressure/lift_piston'
    end = sorted(frame.samples[name] for frame in frames)[len(frames) * 8 // 10]
    clipped = [replace(frame, samples=frame.samples | {name: min(frame.samples[name], end)}) for frame in frames]
    bags = [write(clipped, tmp_path / 'clipped'), write(frames[:900], tmp_path / 'sound')]
    found = weigh_bags(bags, crane(), {})
    trusted = {place: {load.record.data['trusted'] for load in found.loads if load.bag == str(bag)}
               for place, bag in zip(('clipped', 'sound'), bags)}
    assert trusted == {'clipped': {False}, 'sound': {True}}


def test_a_long_log_is_judged_in_parts(frames, tmp_path, monkeypatch) -> None:
    """What is wrong with one part speaks against the loads of that part alone."""
    # sample by sample: all of so short a log is one block
    monkeypatch.setattr(LongLog, '_segments_of_blocks', LongLog._segments_one_by_one)
    file = tmp_path / 'map.yaml'
    file.write_text('format: mbse/sources/1\nchannels:\n  pressure/lift_piston: {topic: sensors/pressure/lift_piston, '
                    'path: fluid_pressure, unit: Pa}\n')
    monkeypatch.setattr(weigh_module, 'PART', len(frames) * 14 // 5)      # 8.4 s
    name, last = 'pressure/lift_piston', len(frames) * 3 // 4
    end = sorted(frame.samples[name] for frame in frames[last:])[len(frames) // 8]
    wrong = [replace(frame, samples=frame.samples | {name: min(frame.samples[name], end)}) if k > last else frame
             for k, frame in enumerate(frames)]
    found = weigh_bags([write(wrong, tmp_path / 'wrong')], crane(), {}, sources=load_sources(str(file)))
    assert [load.record.data['trusted'] for load in found.loads][0] and found.book.all.untrusted == 1
    assert any(': from ' in line and ' s on: ' in line and 'again and again' in line for line in found.warnings)


def test_tuning_of_the_scale_is_given_as_that_of_others(bag) -> None:
    tuning = parse_tuning(['scale.least_load=300', 'scale.carry_back=true'], KINDS)
    assert tuning['scale'].carry_back is True
    assert [load.record.data['mass'] > 300.0 for load in weigh_bags([bag], crane(), tuning).loads] == [True]
    with pytest.raises(SettingError, match='true or false'):
        parse_tuning(['scale.carry_back=yes'], KINDS)


@pytest.mark.parametrize('words, text', [
    (['--attachment', 'hook'], 'hook'), (['-o', 'loads.txt'], '.csv'), (['--truck', 'a', '--truck', 'b'], '--truck'),
    (['--set', 'scale.least=3'], 'least_load'), (['--scale', 'none.yaml'], 'none.yaml')])
def test_what_cannot_be_is_said(bag, tmp_path, words: list[str], text: str) -> None:
    done = mbse('loads', bag, *words)
    assert done.status == 2 and text in done.out + done.err


def test_counts_of_iso_15143_3(bag, tmp_path) -> None:
    """Elements and units as in the standard's snapshot of a fleet."""
    path = tmp_path / 'deep' / 'fleet.xml'
    found = weigh_bags([bag], crane(), {})
    *_, last = (record for record in found.records if record.kind == LOAD)
    doubtful = replace(last, number=99, data={**last.data, 'mass': 1000.0, 'trusted': False})   # neither in the count
    write_loads([*found.records, doubtful], path, Equipment('patu655_lift', 'crane 7', 'Kesla', '0815'))
    root = ElementTree.parse(path).getroot()
    name = f'{{{NAMESPACE}}}'
    assert root.tag == f'{name}Fleet' and root.attrib['snapshotTime'].startswith('2023-11-14T22:13:3')
    machine = root.find(f'{name}Equipment')
    assert [item.text for item in machine.find(f'{name}EquipmentHeader')] == ['Kesla', 'patu655_lift', 'crane 7',
                                                                               '0815']
    assert machine.find(f'{name}CumulativeLoadCount/{name}Count').text == '2'
    totals = machine.find(f'{name}CumulativePayloadTotals')
    assert [item.text for item in totals] == ['kilogram', str(round(found.book.all.mass.value))]
    assert 'datetime' in totals.attrib


def test_parquet_has_the_rows_and_types_of_the_table(bag, tmp_path) -> None:
    parquet = pytest.importorskip('pyarrow.parquet')
    found = weigh_bags([bag], crane(), {})
    path = tmp_path / 'loads.parquet'
    write_loads(found.records, path, Equipment('crane'))
    read = parquet.read_table(path)
    assert read.column_names == list(COLUMNS) and read.to_pylist() == rows(found.records)


def test_records_of_a_live_scale_are_exported(tmp_path) -> None:
    path = tmp_path / 'loads.db'
    with closing(RecordStore(path, 'excavator')) as store:
        stage = scale(store)
        weighed(stage, Shift([Bucket(1000.0), Bucket(800.0), Bucket(900.0)], stddev=(0.0, 0.0)))
        stage.undo()
    done = mbse('loads', '--records', path, '-o', tmp_path / 'loads.csv', '--json', tmp_path / 'loads.json')
    assert done.status == 0 and '2 loads' in done.out and 'excavator: loads' in done.out, done.err
    found = json.loads((tmp_path / 'loads.json').read_text())
    assert [load['status'] for load in found['loads']] == ['weighed', 'weighed', 'undone']
    assert found['total'] == pytest.approx(1800.0, abs=20.0) and found['loads'][0]['start_s'] == 0.0
    with (tmp_path / 'loads.csv').open() as text:
        assert [row['counts'] for row in csv.DictReader(text)] == ['true', 'true', 'false']
    for words, reason in (((), 'one bag or more'), (('--records', path, '--machine', 'zx200'), '--machine'),
                          (('--records', tmp_path / 'none.db'), 'no such file')):
        done = mbse('loads', *words)
        assert done.status == 2 and reason in done.err


def test_without_pyarrow_it_says_what_to_install(monkeypatch, tmp_path) -> None:
    monkeypatch.setitem(__import__('sys').modules, 'pyarrow', None)
    with pytest.raises(MissingModuleError, match='parquet'):
        table.write_parquet([], tmp_path / 'loads.parquet')


def test_the_swing_and_the_radius_of_an_excavator() -> None:
    """The place is turned about the axis of the swing; the radius stays."""
    machine = excavator()
    assert swing_coordinate(machine) == 'swing_joint' and swing_coordinate(crane()) == ''
    where = Whereabouts(machine)
    z = machine.model.start.q[machine.model.z]
    first = where.place(state(machine, 0, z))
    radius = where.radius
    assert where.place(state(machine, 50_000_000, z)) is None       # at most 10 a second
    turned = where.place(state(machine, 10 ** 9, z + [1.0, 0.0, 0.0, 0.0]))
    assert turned.swing == pytest.approx(first.swing + 1.0) and where.radius == pytest.approx(radius)
    assert first.z == pytest.approx(turned.z) and first.distance(turned) > 1.0
    assert radius == pytest.approx(((first.x - 0.10787) ** 2 + (first.y + 0.034301) ** 2) ** 0.5)


def test_a_scale_section_in_the_machines_file_changes_no_number(tmp_path) -> None:
    text = (ROOT / 'config' / 'machines' / 'patu655_lift.yaml').read_text()
    path = tmp_path / 'crane.yaml'
    path.write_text(text + '\nscale:\n  attachments: {grapple: 40 kg}\n')
    machine = load_machine(str(path))
    assert fingerprint(machine.description) == fingerprint(crane().description)
    assert set(scale_of(machine).attachments) == {'grapple'} and scale_of(crane()) == ScaleFile()
    file = tmp_path / 'scale.yaml'
    file.write_text(CHART)
    assert replace(load_scale_file(file), chart=None) == scale_of(machine)
