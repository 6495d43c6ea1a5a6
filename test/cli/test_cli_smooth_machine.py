# SPDX-License-Identifier: Apache-2.0
"""``mbse smooth`` of a machine, from a bag to its files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli_support import mbse, refused
from core_support import crane, plant

import mbse_ros as mbse_api
from mbse_ros.bags.writer import BagWriter, write_frame
from mbse_ros.simulation.crane import SimulatedCrane
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.streams.records import PayloadStatus


@pytest.fixture(autouse=True)
def gtsam():
    return pytest.importorskip('gtsam', reason='GTSAM is not installed (extra "graph")')


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One lift of 2.5 s."""
    return recorded(tmp_path_factory.mktemp('bags') / 'lift', Move(5.0, 1.8))


def recorded(folder: Path, move: Move) -> Path:
    simulated = SimulatedCrane(crane(), 50.0, 1, WorkCycle(0.3, (Move(0.0, 0.3), move, Move(0.0, 0.4))), plant=plant())
    with BagWriter(folder, frame=crane().name) as writer:
        for frame in simulated.run():
            write_frame(writer, simulated.machine, frame)
    return folder


@pytest.mark.usefixtures('few_frames')
def test_a_bag_is_smoothed_beside_the_filter(bag: Path, tmp_path: Path) -> None:
    done = mbse('smooth', bag, '-o', tmp_path / 'out', '--json', tmp_path / 'f.json', '--full')
    assert done.status == 0, done
    found = json.loads((tmp_path / 'f.json').read_text())
    low, high = found['payload']['interval']
    assert low < 50.0 < high and high - low < 12.0 and found['truth'] == 50.0
    assert found['filter']['interval'][0] < 50.0 < found['filter']['interval'][1]
    assert f'payload {found["payload"]["mass"]:.2f} kg' in done.out and 'filter: ' in done.out
    assert {'smoothed.png', 'smoothed.csv', 'index.html'} <= {file.name for file in (tmp_path / 'out').iterdir()}
    assert ', smoothed' in (tmp_path / 'out' / 'index.html').read_text()
    rows = np.genfromtxt(tmp_path / 'out' / 'smoothed.csv', delimiter=',', skip_header=1)
    assert len(rows) == found['instants'] == len(found['state']['position'])
    assert rows[-1, -2] == pytest.approx(found['payload']['mass'])


def test_with_a_lag(bag: Path, tmp_path: Path) -> None:
    done = mbse('smooth', bag, '--machine', 'patu655_lift', '--lag', 0.6, '--json', tmp_path / 'f.json', '--full')
    assert done.status == 0 and '0.6 s of lag' in done.out, done
    found = json.loads((tmp_path / 'f.json').read_text())
    assert found['payload']['interval'][0] < 50.0 < found['payload']['interval'][1]
    assert found['state']['payload_mass'][0] is None


@pytest.mark.parametrize('words, said', [
    (('--lag', 0.1), 'lag'), (('--set', 'graph.min_sped=1'), 'min_speed'), (('--set', 'graph.min_speed=x'), 'a number'),
    (('--step', 0.01), 'mechanism'), (('--set', 'graph.min_speed=0.9'), 'never move')])
def test_what_cannot_be_done_is_said_in_one_line(bag: Path, words: tuple, said: str) -> None:
    assert said in refused('smooth', bag, '--machine', 'patu655_lift', *words)


def test_a_crane_at_rest_has_no_mass(tmp_path: Path) -> None:
    assert 'friction at standstill' in refused('smooth', recorded(tmp_path / 'rest', Move(0.0, 0.5)))


def test_a_mass_that_the_filter_contradicts_is_not_trusted(bag: Path) -> None:
    """One load for the whole log is what the smoother takes: masses of the filter beside its interval, none at all, a
    log that is doubted, and numbers far from the file speak against its mass."""
    found = mbse_api.smooth(bag, 'patu655_lift')
    s, states = found.smoothed, found.filtered.states
    assert not found.doubts and 'trusted' not in found.to_json()['payload']

    def doubted(**changes) -> str:
        other = replace(found, **changes)
        lines = other.summary()
        assert lines[0].startswith('payload not trusted: ') and len(other.doubts) == 1
        assert lines[1] == f'not trusted: {other.doubts[0]}' and other.to_json()['payload']['doubts'] == [*other.doubts]
        return other.doubts[0]

    weighed = np.array([word == 'updating' for word in found.filtered.track.status_words])
    away = states.upper[weighed].max() - s.lower[-1] + 1.0
    assert 'the load changes in this log' in doubted(smoothed=replace(s, mass=s.mass + away))
    low, high = np.quantile(states.upper[weighed], [0.05, 0.15])       # beyond the one interval, within the other share
    assert not replace(found, smoothed=replace(s, mass=s.mass + low - s.lower[-1])).doubts
    assert replace(found, smoothed=replace(s, mass=s.mass + high - s.lower[-1] + 1e-9)).doubts

    place = s.names.index('cylinders.lift.friction.scale')
    stated = found.machine.parameters.stddev[found.machine.parameters.names.index('cylinders.lift.friction.scale')]
    moved = s.parameters.copy()
    moved[place] = 1.0 + 5.1 * stated
    assert 'cylinders.lift.friction.scale by 5.1' in doubted(smoothed=replace(s, parameters=moved))
    moved[place] = 1.0 + 4.9 * stated
    assert not replace(found, smoothed=replace(s, parameters=moved)).doubts

    assert doubted(filtered=replace(found.filtered, doubts=('pressures in bar',))) == 'pressures in bar'
    held = replace(found.filtered.track, status=np.full_like(found.filtered.track.status, PayloadStatus.NO_DATA))
    assert 'trusts no mass' in doubted(filtered=replace(found.filtered, track=held))
