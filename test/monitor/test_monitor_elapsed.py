# SPDX-License-Identifier: Apache-2.0
"""Times of loads and logs on one axis that increases, whatever the clock of the stamps does."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from cli_support import START_NS, lift, mbse, stamped

from mbse_ros.bags.bag import decode
from mbse_ros.bags.writer import BagWriter
from mbse_ros.monitor.clocks import Elapsed, elapsed_at, set_back
from mbse_ros.offline.weigh_bags import recorded_loads
from mbse_ros.scale.detection import Detector
from mbse_ros.scale.load import Load, UncertainMass
from mbse_ros.scale.reading import Reading
from mbse_ros.scale.record import load_record
from mbse_ros.scale.store import RecordStore
from mbse_ros.streams.records import PayloadStatus

S, HOUR = 1_000_000_000, 3600.0
WRAP = 2.0 ** 32 * 1e-9     # s after which a counter of 32 bits of ns begins again
JUMPS = {'back': [(4.0, -HOUR)], 'ahead': [(4.0, HOUR)], 'a little': [(4.0, 0.5)], 'unset': [(4.0, -1.7e9 - 4.0)],
         'set late': [(0.0, -1.7e9), (4.0, 1.7e9)], 'twice': [(2.6, -HOUR), (4.0, 2.0 * HOUR)],
         'a counter that begins again': [(WRAP, -WRAP)]}

BEGINS = {'back': 4.0, 'unset': 4.0, 'set late': 4.0, 'twice': 2.6, 'a counter that begins again': WRAP}


@pytest.mark.parametrize('name', JUMPS)
def test_a_clock_that_jumps(name: str, tmp_path: Path) -> None:
    """One load, with the times of the clock beside it, that begins again where this is set back."""
    with BagWriter(tmp_path / 'bag', frame='patu655_lift') as writer:
        for raw in lift():
            t = (raw.stamp_ns - START_NS) * 1e-9
            if t > 5.6 or raw.topic == '/truth':
                continue
            stamp = raw.stamp_ns + sum(round(by * S) for at, by in JUMPS[name] if t >= at - 1e-9)
            writer.write(raw.topic, raw.msgtype, raw.stamp_ns, stamped(decode(raw), stamp))
    done = mbse('estimate', tmp_path / 'bag', '--json', tmp_path / 'x.json', '--backend', 'vm', '--every', 0.1)
    assert done.status == 0 and '5.6 s of data in ' in done.out
    (load,) = json.loads((tmp_path / 'x.json').read_text())['payload']['loads']
    begin = BEGINS.get(name, 0.0)
    assert begin - 0.2 <= load['start_s'] < begin + 1.2 and load['end_s'] == pytest.approx(5.5, abs=0.7)
    assert load['end_ns'] == stamp and load['end'].endswith('Z')
    assert not any('t = -' in line or ' 36' in line.partition('t = ')[2] for line in done.warnings)


def test_segments_with_restarts() -> None:
    far = 10 ** 12
    rows = np.array([(100, 110, 1), (110, 120, 0), (far, far + 10, 1), (90, 110, 1), (120, 130, 0), (150, 160, 1)])
    assert elapsed_at(rows[:, 0], rows[:, 1], rows[:, 2] > 0).tolist() == [10, 20, 30, 50, 70, 100]
    clock = Elapsed()
    assert [clock.add(*row) for row in rows.tolist()] == [10, 20, 30, 50, 70, 100] and clock.total == 100
    assert [clock.at(stamp) for stamp in (90, 100, 130, 140, 155)] == [30, 40, 70, 70, 95]      # of the newest piece
    assert clock.at(80) == 30                       # none of it: where the clock was set back
    clock = Elapsed()
    for row in rows[:3].tolist():
        clock.add(*row)
    assert [clock.at(stamp) for stamp in (105, 300, far + 5)] == [5, 20, 25]


def reading(stamp_ns: int, mass: float) -> Reading:
    return Reading(stamp_ns, mass, 1.0, PayloadStatus.UPDATING)


def test_both_sides_of_a_pause_and_of_a_clock_that_is_set_back() -> None:
    """A hole of 60 s is a pause, a longer one a clock that was set; stamps of one clock are up to 5 s out of order."""
    second = 10 ** 9
    for hole, total in ((59, 69), (61, 10)):
        clock = Elapsed()
        clock.add(0, 5 * second)
        assert clock.add((5 + hole) * second, (10 + hole) * second, restart=True) == total * second
        rows = np.array([[0, 5], [5 + hole, 10 + hole]]) * second
        assert elapsed_at(*rows.T, np.array([True, True]))[-1] == total * second
    for back, added in ((4.9, 0.0), (5.1, 5.1)):
        assert set_back([10 * second, int((10 - back) * second)]).tolist() == [0, round(added * second)]


def test_a_load_over_a_clock_that_is_set_for_the_first_time() -> None:
    """As of a computer without a battery: the load lasts as long as it did."""
    detector, loads = Detector((), 2500.0), []
    for k in range(300):
        stamp = k * S // 10 + (START_NS if k >= 100 else 0)
        loads += detector.process(reading(stamp, 1000.0 if 50 <= k < 200 else 0.0))
    (load,) = loads
    assert load.mass.value == pytest.approx(1000.0) and 10 * S < load.end_ns - load.start_ns < 16 * S


def test_records_of_a_clock_that_was_set_back(tmp_path: Path) -> None:
    store = RecordStore(tmp_path / 'x.db', 'zx200')
    for number, start in enumerate((0, 100, 100 - 3600, 200 - 3600)):
        stamp = START_NS + start * S
        store.append(load_record(Load(stamp, stamp + 30 * S, UncertainMass(800.0, 1.0), most=800.0), 'a'), number)
    store.close()
    loads = recorded_loads(tmp_path / 'x.db').loads
    times = [time for load in loads for time in (load.start, load.end)]
    assert times == sorted(times) and times[:4] == pytest.approx([0.0, 30.0, 100.0, 130.0]) and times[-1] < 400.0
    assert mbse('loads', '--records', tmp_path / 'x.db', '-o', tmp_path / 'x.csv', '--json', tmp_path / 'x.json',
                '--report', tmp_path / 'page').status == 0
    said = json.loads((tmp_path / 'x.json').read_text())['loads']
    assert [load['start'] for load in said] == [
        row['start'] for row in csv.DictReader((tmp_path / 'x.csv').open())] and said[0]['start'].endswith('Z')
    assert set_back([0, 4 * S, 0, 100 * S, 0]).tolist() == [0, 0, 0, 0, 100 * S]     # records come a little late


def test_readings_after_a_clock_was_set_back_are_of_another_load() -> None:
    detector = Detector((), 2500.0)
    for k in range(60):
        detector.process(reading(S * 100 + k * S // 10, 1000.0))
    assert detector.carrying
    detector.process(reading(S, 1000.0))
    assert not detector.carrying
