# SPDX-License-Identifier: Apache-2.0
"""What is said of stamps, rates and limits of a log; and nothing of a good one."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_support import COMMAND, PISTON, POSITION, START_NS, lift, mbse, recorded, stamped
from plausibility_logs import FIRST, HIGH, MACHINES, SECOND, changed, log_of, machine_of, named, plant, verdict

from mbse_ros.bags.bag import decode
from mbse_ros.bags.writer import BagWriter
from mbse_ros.offline.checks.log_verdict import log_verdict
from mbse_ros.offline.checks.offset_rules import offset_findings
from mbse_ros.offline.checks.plausibility import Verdict
from mbse_ros.offline.checks.remedies import Finding
from mbse_ros.offline.checks.time_rules import time_findings
from mbse_ros.offline.log_samples import LogSamples, Series
from mbse_ros.offline.track import Tracker
from mbse_ros.simulation.crane import CraneSettings, SimulatedCrane
from mbse_ros.simulation.cycle import WorkCycle
from mbse_ros.streams.pipeline import Pipeline

S, MS = 1_000_000_000, 1_000_000
HOURS = 7200 * S
STAMPS: dict[str, tuple[Callable[[int, int], int], str, str]] = {      # stamp and number to stamp, kind, words
    'ahead': (lambda t, k: t + HOURS, 'clock', 'stamps are 7200.000 s ahead'),
    'behind': (lambda t, k: t - HOURS, 'clock', 'stamps are 7200.000 s behind'),
    'from a start': (lambda t, k: t - START_NS + 900 * S, 'clock', 'it counts from another instant'),
    'GPS': (lambda t, k: t + 18 * S, 'clock', 'UTC, GPS time'),
    'us for ns': (lambda t, k: t // 1000, 'clock', 'the unit of its stamps'),
    'zero': (lambda t, k: 0, 'unstamped', '601 of 601 samples have the stamp 0'),
    'sometimes zero': (lambda t, k: t if k % 50 else 0, 'unstamped', '13 of 601 samples'),
    'whole seconds': (lambda t, k: t - t % S, 'stamp', 'whole seconds'),
    'milliseconds': (lambda t, k: t - t % S + t % S // MS, 'stamp', 'multiply nanosec by 1000000'),
    'microseconds': (lambda t, k: t - t % S + t % S // 1000, 'stamp', 'multiply nanosec by 1000'),
    'steps': (lambda t, k: t - t % (50 * MS), 'stamp', 'steps of 0.05 s'),
    'repeated': (lambda t, k: t - 10 * MS * (k % 40 == 1), 'repeated', 'the stamp of the one before'),
    'out of order': (lambda t, k: t - 35 * MS * (k % 40 == 1), 'order', 'by up to 0.025 s'),
    'set back': (lambda t, k: t - HOURS * (k > 300), 'jump', 'go back by 7199.990 s after 3.0 s'),
    'a counter': (lambda t, k: START_NS + t % 2 ** 32, 'jump', 'a counter of 32 bits')}


def restamped(name: str, stamp: Callable[[int, int], int], wrong: Callable[[str], bool]
              ) -> list[tuple[str, int, float]]:
    """The log of a machine with other stamps of some channels."""
    return [(c, stamp(START_NS + t, t // (10 * MS)) if wrong(c) else START_NS + t, v) for c, t, v in log_of(name)]


@pytest.mark.parametrize('case', STAMPS)
@pytest.mark.parametrize('name, channel', [('patu655_lift', 'position/lift'), ('zx200', 'pressure/arm_rod')])
def test_stamps_of_one_sensor(case: str, name: str, channel: str) -> None:
    stamp, kind, words = STAMPS[case]
    log = LogSamples.of(restamped(name, stamp, lambda c: c == channel))
    (found,) = time_findings(log)
    assert (found.kind, found.channels) == (kind, (channel,)) and words in found.line and found.remedy


@pytest.mark.parametrize('case', ['zero', 'whole seconds', 'milliseconds', 'repeated', 'set back', 'a counter'])
def test_stamps_of_all(case: str) -> None:
    """One finding, not one a channel; a common offset is none."""
    stamp, kind, _ = STAMPS[case]
    (found,) = time_findings(LogSamples.of(restamped('patu655_lift', stamp, lambda c: True)))
    assert found.kind == kind and len(found.channels) == 4
    for case in ('ahead', 'from a start', 'GPS'):
        assert not time_findings(LogSamples.of(restamped('patu655_lift', STAMPS[case][0], lambda c: True)))


@pytest.mark.parametrize('stamp', [
    lambda t, k: t + HOURS * (k == 300), lambda t, k: t - HOURS * (k == 300), lambda t, k: t + 300 * MS * (k > 300),
    lambda t, k: t + k * MS // 100])
def test_what_costs_nothing_is_not_wrong(stamp: Callable[[int, int], int]) -> None:
    """One stamp of another time, a pause, a clock that is a little fast; a pause of one channel that ends as much later
    than the others is a clock that was set."""
    assert not time_findings(LogSamples.of(restamped('patu655_lift', stamp, lambda c: True)))
    found = time_findings(LogSamples.of(restamped('patu655_lift', stamp, lambda c: c == 'position/lift')))
    assert [finding.kind for finding in found] == ['clock'] * (stamp(0, 301) == 300 * MS)


@pytest.mark.parametrize('hertz, words', [(2.0, 'nothing is interpolated'), (5.0, 'not seen'), (9.0, 'not seen'),
                                          (10.0, ''), (20.0, '')])
def test_rates(hertz: float, words: str) -> None:
    """Of a sensor, with 20 ms of jitter, too, and the setting; not of commands, which are held."""
    dice = np.random.default_rng(1)
    for jitter in (0.0, 0.02):
        log = [(name, START_NS + round((k / hertz + jitter * dice.uniform(-1, 1) / 2) * S), 0.1) for k in range(200)
               for name in ('position/lift', 'command/lift_valve')]
        findings = time_findings(LogSamples.of(log))
        assert [item.channels for item in findings] == [('position/lift',)] * bool(words)
        if words:
            assert words in findings[0].seen and 'interpolation.max_gap' in findings[0].seen
            assert '20 Hz' in findings[0].remedy


@pytest.mark.parametrize('name, channel, off', [
    ('patu655_lift', 'position/lift', 0.34), ('patu655', 'position/tilt', -0.3), ('zx200', 'position/boom', -0.3),
    ('zx200_can', 'position/boom_joint', 0.42), ('zx200_can', 'position/arm_joint', 1.2)])
def test_a_position_beyond_its_limits(name: str, channel: str, off: float) -> None:
    """From the first sample on, and not most of the time; an angle by what its cylinder reaches."""
    log = changed(log_of(name), lambda c, v: (c, v + off if c == channel else v))
    found = [item for item in verdict(log, machine_of(name)).findings if item.channels == (channel,)]
    assert found and all('zero' in item.remedy or item.kind == 'reversed' for item in found), found
    assert 'multiply by 0.001' not in ' '.join(item.remedy for item in found)


def arrived(folder: Path, wrong: str, by: float, late: float = 0.0, slow: str = '') -> Path:
    """A bag of the lift of which one topic is stamped ``by`` s too late, recorded after 2 to 6 ms and ``late`` s; one
    that is ``slow`` after 0.3 s more."""
    rows: list[tuple[int, str, str, Any]] = []
    dice = np.random.default_rng(1)
    for raw in lift():
        t = (raw.stamp_ns - START_NS) * 1e-9
        if t <= 14.0 and raw.topic != '/truth':
            message = decode(raw)
            if raw.topic == wrong:
                message = stamped(message, raw.stamp_ns + round(by * S))
            arrival = raw.stamp_ns + round((late + 0.3 * (raw.topic == slow) + dice.uniform(0.002, 0.006)) * S)
            rows.append((arrival, raw.topic, raw.msgtype, message))
    with BagWriter(folder, frame='patu655_lift') as writer:
        for stamp, topic, kind, message in sorted(rows, key=lambda row: row[0]):
            writer.write(topic, kind, stamp, message)
    return folder


@pytest.mark.parametrize('wrong, by', [(PISTON, 0.3), (PISTON, -0.2), (POSITION, -0.45), (COMMAND, 0.3)])
def test_stamps_against_the_times_of_the_recorder(wrong: str, by: float, tmp_path: Path) -> None:
    channel = {PISTON: 'pressure/lift_piston', POSITION: 'position/lift', COMMAND: 'command/lift_valve'}[wrong]
    bag = arrived(tmp_path / 'bag', wrong, by)
    done = mbse('check-data', bag, '--json', tmp_path / 'x.json')
    (found,) = json.loads((tmp_path / 'x.json').read_text())['findings']
    assert done.status == 1 and (found['kind'], found['channels']) == ('offset', [channel])
    assert f'delay: {by:.2f} s' in found['remedy']
    done = mbse('estimate', bag, '--json', tmp_path / 'y.json', '--backend', 'vm', '--every', 0.1)
    payload = json.loads((tmp_path / 'y.json').read_text())['payload']
    assert any(channel in line and f'delay: {by:.2f} s' in line for line in done.warnings)
    assert payload['trusted'] is False and payload['status'] in ('implausible', 'no_data')
    assert 'payload not trusted' in done.out or 'payload unknown' in done.out


def test_a_sensor_that_comes_late_with_right_stamps(tmp_path: Path) -> None:
    """It moves with the other chamber: no finding, though it is recorded 0.3 s later."""
    assert mbse('check-data', arrived(tmp_path / 'bag', '', 0.0, slow=PISTON)).status == 0


@cache
def moved(name: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """18 s in which a machine moves at random, 50 Hz."""
    machine = machine_of(name)
    rest = {valve: SECOND for valve in machine.valves[1:]}
    frames = [*SimulatedCrane(machine, 0.3 * HIGH[name], 5, WorkCycle(0.35, (*FIRST, *SECOND, *FIRST), {
        valve: (*moves, *FIRST, *moves) for valve, moves in rest.items()}), CraneSettings(rate=50.0),
        plant=plant(name)).run()]
    t = np.array([frame.stamp_ns for frame in frames]) * 1e-9
    return {c: (t, np.array([frame.samples[c] for frame in frames])) for c in machine.channels}


@pytest.mark.parametrize('name, channel', [
    ('patu655_lift', 'pressure/lift_rod'), ('patu655', 'pressure/tilt_piston'), ('patu655', 'pressure/lift_piston')])
@pytest.mark.parametrize('by', [0.3, -0.45])
def test_stamps_against_what_moves_together(name: str, channel: str, by: float) -> None:
    """As of a table, whose rows say nothing of their arrival."""
    series = {c: Series(t + by * (c == channel), values) for c, (t, values) in moved(name).items()}
    (found,), _ = offset_findings(series)
    assert found.channels == (channel,) and found.kind == 'offset'
    assert float(found.remedy.partition('delay: ')[2].partition(' s')[0]) == pytest.approx(by, abs=0.06)


def test_one_pressure_says_nothing_of_the_stamps_of_a_position() -> None:
    """As of a swing, which moves with one by chance."""
    series = {c: Series(t + 0.45 * (c == 'position/lift'), values) for c, (t, values) in moved('patu655_lift').items()}
    (found,), _ = offset_findings(series)
    assert found.channels == ('position/lift',)
    for other in ('pressure/lift_piston', 'pressure/lift_rod'):
        assert offset_findings({c: series[c] for c in ('position/lift', other)})[0] == []


@pytest.mark.parametrize('name', ['patu655_lift', 'patu655'])
@pytest.mark.parametrize('every', [1, 5, 10])
def test_what_moves_together_at_any_rate(name: str, every: int) -> None:
    """At 50, 10 and 5 Hz, phases apart, and with a few ms of delay, nothing is found."""
    series = {c: Series(t[k % every::every] + 0.02 * (k % 3), values[k % every::every])
              for k, (c, (t, values)) in enumerate(moved(name).items())}
    assert offset_findings(series)[0] == []
    assert offset_findings({c: Series(item.t[:200], item.values[:200] + 0.3) for c, item in series.items()})[0] == []


def test_a_clock_that_is_set_ahead_while_it_records(tmp_path: Path) -> None:
    """It looks like a pause, and the recorder knows that there was none; the data cover what they did."""
    with BagWriter(tmp_path / 'bag', frame='patu655_lift') as writer:
        for raw in lift():
            if raw.topic != '/truth' and raw.stamp_ns < START_NS + 10 * S:
                stamp = raw.stamp_ns + HOURS * (raw.stamp_ns > START_NS + 5 * S)
                writer.write(raw.topic, raw.msgtype, raw.stamp_ns, stamped(decode(raw), stamp))
    done = mbse('check-data', tmp_path / 'bag')
    assert done.status == 1 and 'stamps leap by 7200.0 s' in done.out and done.out.endswith(' samples, 10.0 s\n')


@pytest.mark.parametrize('late', [0.0, 0.4])
def test_a_recorder_that_is_late_with_all(late: float, tmp_path: Path) -> None:
    done = mbse('check-data', arrived(tmp_path / 'bag', '', 0.0, late))
    assert done.status == 0, done.out


def test_times_that_are_none(tmp_path: Path) -> None:
    """A nanosec that overflows is no time: the reader leaves it out, and that is a finding."""
    def edit(topic: str, t: float, message: Any) -> Any:
        if topic == PISTON:
            message.header.stamp.nanosec = min(message.header.stamp.nanosec * 10, 2 ** 32 - 1)
        return message
    done = mbse('check-data', recorded(tmp_path / 'bag', edit), '--json', tmp_path / 'x.json')
    kinds = {item['kind'] for item in json.loads((tmp_path / 'x.json').read_text())['findings']}
    assert done.status == 1 and 'unstamped' in kinds and 'whose stamp is not a time' in done.out


@pytest.mark.parametrize('name', MACHINES)
def test_good_logs(name: str) -> None:
    assert named(verdict([(c, START_NS + t, v) for c, t, v in log_of(name)], machine_of(name))) == {}


CRANE = 'patu655_lift'
SET = {'one sensor': ('pressure/lift_piston',), 'all sensors': ('position/lift', 'pressure/lift_piston',
                                                                'pressure/lift_rod'),
       'the commands': ('command/lift_valve',), 'both pressures': ('pressure/lift_piston', 'pressure/lift_rod')}


@pytest.mark.parametrize('by', (1.0, 3600.0))
@pytest.mark.parametrize('who', SET)
def test_a_clock_that_is_set_while_the_others_go_on(who: str, by: float) -> None:
    """It was called a cable that is loose, or another unit of the stamps of those that are right."""
    log = log_of(CRANE)
    first = min(stamp for _, stamp, _ in log)
    late = [(channel, stamp + round(by * 1e9) * (channel in SET[who] and stamp - first > 2.6e9), value)
            for channel, stamp, value in log]
    found = verdict(late, machine_of(CRANE)).findings
    assert [finding.kind for finding in found] == ['clock'] and set(found[0].channels) == set(SET[who])
    assert f'leap ahead by {by:.3f} s at t = 2.6 s' in found[0].seen
    for pause in (0.3, 1.0):     # a sensor that is silent, and ends with the others: its clock is right
        gap = [sample for sample in log if sample[0] not in SET[who] or not
               2.6e9 < sample[1] - first < (2.6 + pause) * 1e9]
        assert not any(finding.kind == 'clock' for finding in verdict(gap, machine_of(CRANE)).findings)
    both = [(channel, stamp + round(by * 1e9) * (stamp - first > 2.6e9), value) for channel, stamp, value in log]
    assert not any(finding.kind == 'clock' for finding in verdict(both, machine_of(CRANE)).findings)


@pytest.mark.parametrize('by', (-7200.0, 1.0, 7200.0))
@pytest.mark.parametrize('name', ('patu655_lift', 'zx200'))
def test_the_clock_of_the_commands_is_another(name: str, by: float) -> None:
    """Nothing wrong was seen."""
    log = [(c, START_NS + t + round(by * S) * c.startswith('command/'), v) for c, t, v in log_of(name)]
    (found,) = verdict(log, machine_of(name)).findings
    assert found.kind == 'clock' and set(found.channels) == set(machine_of(name).commands)


@pytest.mark.parametrize('kind, channel, excused', [
    ('rate', 'command/lift_valve', True), ('offset', 'command/lift_valve', True),
    ('range', 'command/lift_valve', False), ('rate', 'position/lift', False)])
def test_rare_or_late_commands_are_not_blamed_on_sensors_or_the_file(
        kind: str, channel: str, excused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands at 5 Hz made an excavator's oil_bulk_modulus the most likely culprit; one in another unit, or a sensor,
    excuses nothing."""
    log, pipeline, tracker = log_of(CRANE), Pipeline(machine_of(CRANE), segment=0.1), Tracker(False)
    for output in (*(output for sample in log for output in pipeline.add(*sample)), *pipeline.flush()):
        tracker.add(output)
    own, blames = Finding(kind, (channel,), 'seen', 'remedy'), ('fit_lines', 'implausible_lines')
    monkeypatch.setattr('mbse_ros.offline.checks.log_verdict.judged', lambda *_: Verdict((own,)))
    for name in blames:
        monkeypatch.setattr(f'mbse_ros.offline.checks.log_verdict.{name}', lambda *_, what=name, **__: [what])
    found = log_verdict(LogSamples.of(log), tracker.track(), pipeline)
    assert found.doubts == ((own.line,) if excused else (own.line,) * (kind == 'range') + blames)
    assert own.line in (*found.wrong, *found.odd) and all((name in found.odd) is not excused for name in blames)
    for name in blames:
        monkeypatch.setattr(f'mbse_ros.offline.checks.log_verdict.{name}', lambda *_, **__: [])
    assert log_verdict(LogSamples.of(log), tracker.track(), pipeline).doubts == (own.line,) * (kind != 'rate')


def test_commands_whose_stamps_are_late() -> None:
    """0.45 s; 0.2 s do not show, as a valve takes its time."""
    frames = moved(CRANE)
    t, position = frames['position/lift']
    sent = np.gradient(position, t) * 40.0
    for late, names in ((0.45, [('command/lift_valve',)]), (0.0, [])):
        series = {c: Series(*item) for c, item in frames.items()} | {'command/lift_valve': Series(t + late, sent)}
        assert [item.channels for item in offset_findings(series)[0]] == names


def test_forces_that_are_not_judged_for_rare_samples() -> None:
    """At 5 Hz the cylinders were said not to reach."""
    log = [(c, t, v) for c, t, v in log_of(CRANE) if t // (10 * MS) % 20 == 0 or c.startswith('command/')]
    (unchecked,) = verdict(log, machine_of(CRANE)).unchecked
    assert 'samples at 10 Hz' in unchecked and 'position/lift' in unchecked


def test_what_a_clock_that_is_set_explains_is_not_blamed_on_sensors_or_the_file(monkeypatch) -> None:
    log, pipeline, tracker = log_of(CRANE), Pipeline(machine_of(CRANE), segment=0.1), Tracker(False)
    for output in (*(output for sample in log for output in pipeline.add(*sample)), *pipeline.flush()):
        tracker.add(output)
    for blames in ('fit_lines', 'implausible_lines'):
        monkeypatch.setattr(f'mbse_ros.offline.checks.log_verdict.{blames}', lambda *_, what=blames, **__: [what])
    late = [(channel, stamp + 10 ** 9 * (channel == 'pressure/lift_piston' and stamp > log[0][1] + 2.6e9), value)
            for channel, stamp, value in log]
    sound, found = (log_verdict(LogSamples.of(samples), tracker.track(), pipeline) for samples in (log, late))
    assert sound.doubts == ('fit_lines', 'implausible_lines') and set(sound.doubts) <= set(sound.odd)
    (doubt,) = found.doubts
    assert 'leap ahead by 1.000 s' in doubt and found.wrong == (doubt,) and not set(found.odd) & set(sound.doubts)
