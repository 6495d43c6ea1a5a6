# SPDX-License-Identifier: Apache-2.0
"""What mutations of files and messages have found, one case each; and that the campaign sees what it looks for."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections import Counter
from dataclasses import replace
from functools import cache
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from source_tree import ROOT

from mbse_ros.bags.messages import MOST_STEPS, record_message, record_of
from mbse_ros.dynamics.forces.motion_table import oddities, read_motion_table, row_motion
from mbse_ros.dynamics.model import load_model
from mbse_ros.errors import MOST, BagError, DescriptionError, MbseError, PositionProblemError, SampleError
from mbse_ros.filters.linkage_settings import LinkageSettings
from mbse_ros.machine import load_machine
from mbse_ros.streams.linkage import MOST_BRIDGED, LinkageStage
from mbse_ros.streams.records import Segment

sys.path.insert(0, str(ROOT / 'benchmarks'))
from fuzz import run as room
from fuzz.bags import McapBag, SqliteBag
from fuzz.files import MachineFile, MechanismFile, RobotFile, Table
from fuzz.kind import Kind, Wrong, refused

SEGMENT = Segment(1, 0, 1_000_000, True, ('position/lift',), np.full((10, 1), 0.25), np.array([10.0]),
                  ('command/lift_valve',), np.zeros((10, 1)))


@pytest.mark.parametrize('repeats', [np.nan, np.inf, 0.0, -1.0, 5e-324, 1e300])
def test_samples_that_are_shared_by_no_number_of_steps(repeats):
    """They ended the observer: a division by zero, an infinity as a count."""
    message = record_message(replace(SEGMENT, repeats=np.array([repeats])), 'm')[1]
    with pytest.raises(SampleError, match='segment.repeats.*from 1'):
        record_of(Segment, message)


@pytest.mark.parametrize('steps, step_ns', [(MOST_STEPS + 1, 1_000), (10, 2 ** 31), (100_000, 1_000_000)])
def test_a_segment_of_hours_is_refused(steps, step_ns):
    """One message of some MB would keep the observer for minutes."""
    long = replace(SEGMENT, step_ns=step_ns, values=np.zeros((steps, 1)), commands=(),
                   command_values=np.zeros((steps, 0)))
    with pytest.raises(SampleError, match=f'segment.steps.*at most {MOST_STEPS} and 10 s'):
        record_of(Segment, record_message(long, 'm')[1])


def test_the_longest_segment_of_the_interpolation_is_read():
    long = replace(SEGMENT, step_ns=100_000, values=np.zeros((MOST_STEPS, 1)), commands=(),
                   command_values=np.zeros((MOST_STEPS, 0)))
    assert len(record_of(Segment, record_message(long, 'm')[1]).values) == MOST_STEPS


@pytest.mark.parametrize('place', [1e300, -1e155, 1e10])
def test_a_cylinder_in_another_galaxy(place):
    """The square of a coordinate was an OverflowError, which ended the drawing."""
    with pytest.raises(PositionProblemError):
        load_machine('patu655_lift').position(np.array([place]))


def test_times_too_uneven_for_a_smooth_motion(tmp_path):
    """It was numpy's LinAlgError."""
    path = tmp_path / 'm.csv'
    times = [0.01 * k for k in range(11)] + [1e300]
    path.write_text('t,x,x.velocity\n' + ''.join(f'{t},{0.2 + 0.01 * k},1\n' for k, t in enumerate(times)))
    table = read_motion_table(path, {'x': 'm'})
    for use in (lambda: oddities(table, {'x': 'm'}), lambda: row_motion(table, 'x')):
        with pytest.raises(BagError, match='m.csv: got rows .* apart, expected times that are less uneven'):
            use()


def test_a_stamp_an_hour_ahead_does_not_fill_the_hour():
    """At 1 kHz and with the longest `restart_after` it took minutes and GB."""
    stage = LinkageStage(load_model('five_bar', backend='vm'), LinkageSettings(restart_after=3600.0),
                         ('encoder_1', 'encoder_2'), 0.001, 'vm')
    samples = {'encoder_1': 1.0, 'encoder_2': 1.0}
    stage.add(0, samples)
    assert not stage.add(MOST_BRIDGED * 10 ** 6 + 10 ** 9, samples) and 'out of reach' in str(stage.dropped)
    assert stage.add(10 ** 6, samples)


def test_a_wrong_clock_beside_does_not_hold_up_the_return_from_a_wrong_stamp():
    """Its samples came between those that agreed, and the stage was silent until the wrong stamp had passed."""
    sensors = 'encoder_1', 'encoder_2'
    stage = LinkageStage(load_model('five_bar', backend='vm'), LinkageSettings(), sensors, 0.005, 'vm')
    stage.add(0, {'encoder_1': 1.0})
    assert stage.add(9 * 10 ** 9, {'encoder_1': 1.0})
    told = [stage.add(stamp, {'encoder_1': 1.0}) for k in range(1, 5) for stamp in (k * 10 ** 7, k * 10 ** 17)]
    assert told[4] and told[4][0].restart and told[4][0].stamp_ns == 3 * 10 ** 7 and told[6]


def test_an_error_that_quotes_a_megabyte_is_cut_in_its_middle():
    text = str(DescriptionError('x.yaml', 'mass', 'a' * 10 ** 6, 'a mass'))
    assert len(text) < MOST + 10 and text.startswith('x.yaml: mass: got') and text.endswith('expected a mass')


# The campaign itself

@pytest.mark.parametrize('kind', [MachineFile, MechanismFile, RobotFile, Table, McapBag, SqliteBag])
def test_cases_are_made_again_by_their_number_and_do_no_harm(kind, tmp_path):
    thing = kind(tmp_path)
    made = [thing.make(room.random_of('x', 1, index)) for index in range(8)]
    assert made == [thing.make(room.random_of('x', 1, index)) for index in range(8)]
    assert len({str(case) for case in made}) > 5
    for case in made:
        room.written(case, tmp_path)
        assert sum(thing.run(case).values()) == 1
        room.emptied(tmp_path)


class Bad(Kind):
    """Does what must not happen in the case of its number."""

    def make(self, random: Random) -> dict[str, bytes]:
        """Nothing."""
        return {}

    def run(self, case: dict[str, bytes]) -> Counter[str]:
        """Count, but for once."""
        self.number = getattr(self, 'number', -1) + 1
        if self.number == 3:
            self.harm()
        return Counter(['taken'])

    def harm(self) -> None:
        """What must not happen."""
        raise KeyError('x')


class Dies(Bad):
    def harm(self):
        os.kill(os.getpid(), 11)


class Hangs(Bad):
    def harm(self):
        time.sleep(600)


class Eats(Bad):
    def harm(self):
        self.kept = bytearray(b'x') * (2 * room.MEMORY)


class Prints(Bad):
    def harm(self):
        os.write(2, b'Traceback (most recent call last): of another language')


@cache
def processes() -> SimpleNamespace:
    """In the place of multiprocessing: workers are forked from a process that has imported this file once."""
    context = multiprocessing.get_context('forkserver')
    context.set_forkserver_preload([__name__])
    return SimpleNamespace(get_context=lambda method: context)


@pytest.mark.parametrize('kind, said', [(Bad, 'KeyError'), (Dies, 'SIGSEGV'), (Hangs, 'hangs'), (Eats, 'MemoryError'),
                                        (Prints, 'another language')])
def test_what_must_not_happen_is_seen(kind, said, monkeypatch):
    """And the cases behind it are run all the same."""
    monkeypatch.setattr(room, 'LIMIT', 1.0)
    monkeypatch.setattr(room, 'multiprocessing', processes())
    monkeypatch.setenv('PYTHONPATH', os.pathsep.join(sys.path))     # where the forking process finds this file
    told = []
    tally = room.watched(kind, 'x', 0, 0, 8, time.monotonic() + 300, lambda index, text: told.append((index, text)))
    assert told[0][0] == 3 and said in told[0][1], told
    assert tally.cases == 8 and [index for index, _ in tally.failures] == [index for index, _ in told]


def test_an_error_without_words_is_no_refusal():
    with pytest.raises(Wrong, match='MbseError of 0 characters'):
        refused(MbseError(''))
