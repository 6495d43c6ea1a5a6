# SPDX-License-Identifier: Apache-2.0
"""Valve commands that came late: they are counted, and a bag that holds the segments gives what was live."""

from dataclasses import replace

import numpy as np
import pytest
from core_support import crane, work_cycle

from mbse_ros.bags.bag import RawMessage, decode
from mbse_ros.bags.messages import header, make_message, record_message, typestore
from mbse_ros.bags.recorded_commands import StepCommands, quick_steps
from mbse_ros.bags.topics import JOINT_STATE
from mbse_ros.bags.writer import BagWriter
from mbse_ros.offline.bag import estimate_bag
from mbse_ros.streams.interpolation import Interpolator
from mbse_ros.streams.pipeline import Pipeline

MS, SECONDS = 1_000_000, 5
VALVE = 'command/lift_valve'


@pytest.fixture(scope='module')
def frames():
    """Sensors and commands of a work cycle."""
    found = work_cycle()
    return [frame for frame in found if frame.stamp_ns - found[0].stamp_ns < SECONDS * 1_000 * MS]


def arriving(frames, late_ns):
    """Samples in the order in which they come; the commands of every second half second are late, and keep their
    order."""
    samples, before = [], 0
    for frame in frames:
        samples += [(frame.stamp_ns, frame.stamp_ns, name, value) for name, value in frame.samples.items()]
        before = max(before, frame.stamp_ns + late_ns * (frame.stamp_ns // (500 * MS) % 2))
        samples += [(before, frame.stamp_ns, name, value) for name, value in frame.commands.items()]
    return [sample[1:] for sample in sorted(samples, key=lambda sample: sample[:2])]


def interpolated(machine, samples):
    """The interpolator and its segments."""
    interpolator = Interpolator(machine.channels, machine.commands)
    return interpolator, [s for stamp, name, value in samples for s in interpolator.add(name, stamp, value)]


def by_instant(segments):
    """The command of each step."""
    return {s.start_ns + (k + 1) * s.step_ns: float(row[0]) for s in segments for k, row in enumerate(s.command_values)}


@pytest.mark.parametrize('late_ms', [0, 5, 30, 100, 310])
def test_steps_with_another_command_are_counted(frames, late_ms):
    """As many as differ from those of commands in time; what is waited for is not late."""
    interpolator, segments = interpolated(crane(), arriving(frames, late_ms * MS))
    _, timely = interpolated(crane(), arriving(frames, 0))
    one, other = by_instant(segments), by_instant(timely)
    differing = sum(one[instant] != other[instant] for instant in one if instant in other)
    assert interpolator.late.get(VALVE, 0) == differing
    assert (differing > 100) is (late_ms >= 100) and (differing == 0) is (late_ms <= 30)


def bag_of(path, frames, segments, late_ns=0):
    """A bag of recorder_node: samples as they come, commands late or, if they wait for the others, by their stamps; and
    the segments of the graph."""
    with BagWriter(path, 'mcap', '/', 'patu655_lift') as writer:
        rest, waiting = iter(segments), []
        segment = next(rest, None)
        for frame in frames:
            writer.write_samples(frame.stamp_ns, frame.samples)
            waiting.append((frame.stamp_ns + late_ns * (frame.stamp_ns // (500 * MS) % 2), frame))
            while waiting and (waiting[0][0] <= frame.stamp_ns or frame is frames[-1]):
                _, sent = waiting.pop(0)
                values = np.array([sent.commands[VALVE]])
                message = make_message(JOINT_STATE, {'header': header(sent.stamp_ns, 'patu655_lift'),
                                                     'name': ['lift_valve'], 'position': values})
                writer.write_cdr('/sensors/valve_command', JOINT_STATE, frame.stamp_ns + MS,
                                 bytes(typestore().serialize_cdr(message, JOINT_STATE)))
            while segment is not None and segment.stamp_ns <= frame.stamp_ns:
                writer.write_record(segment)
                segment = next(rest, None)
    return path


@pytest.fixture(scope='module')
def live(frames):
    """What the graph made of commands that came 0.1 s late: segments, masses, states, steps with another command."""
    pipeline = Pipeline(crane(), backend='vm')
    outputs = [o for stamp, name, value in arriving(frames, 100 * MS) for o in pipeline.add(name, stamp, value)]
    return outputs, pipeline.interpolator.late[VALVE]


def differing(found, outputs):
    """How many of the states are not those of the outputs, by their stamps."""
    there = {o.state.stamp_ns: o.state.mean[-1] for o in outputs}
    states = {int(stamp): mean for stamp, mean in zip(found.track.stamp_ns, found.states.mean)}
    assert len(there.keys() & states.keys()) > 400
    return sum(not np.array_equal(states[stamp], there[stamp]) for stamp in there.keys() & states.keys())


@pytest.mark.parametrize('late_ms', [0, 200])
def test_a_bag_with_segments_gives_what_was_live(frames, live, tmp_path, late_ms):
    """Bit for bit, in whatever order the recorder got them; the result says how many steps have the recorded commands.
    Without the segments it is another."""
    outputs, late = live
    bag = bag_of(tmp_path / 'with', frames, [o.segment for o in outputs], late_ms * MS)
    found = estimate_bag(bag, crane(), {}, backend='vm')
    assert differing(found, outputs) == 0
    lines = [line for line in found.warnings if 'steps with the commands that the recorded segments have' in line]
    assert len(lines) == 1 and not any('which had the one before it' in line for line in found.warnings)
    assert late_ms or lines[0].startswith(f'{late} steps')
    without = estimate_bag(bag_of(tmp_path / 'without', frames, []), crane(), {}, backend='vm')
    assert differing(without, outputs) > 100 and not any('recorded segments' in line for line in without.warnings)


def test_commands_that_no_topic_has_sent_are_not_taken(frames, live, tmp_path):
    """Those of a map with a wrong sign, say, which was corrected since."""
    wrong = [replace(o.segment, command_values=-1.5 * o.segment.command_values - 0.1) for o in live[0]]
    found = estimate_bag(bag_of(tmp_path / 'bag', frames, wrong), crane(), {}, backend='vm')
    plain = estimate_bag(bag_of(tmp_path / 'plain', frames, []), crane(), {}, backend='vm')
    assert np.array_equal(found.states.mean, plain.states.mean)
    assert any('with commands that no topic has sent' in line for line in found.warnings)


@pytest.mark.parametrize('frame, machine', [('m', ''), ('patu655_lift', 'a2f0'), ('zx200', '0' * 17)])
def test_commands_are_read_without_the_rest(frames, live, frame, machine):
    segment = live[0][3].segment
    kind, message = record_message(segment, frame, machine)
    cdr = bytes(typestore().serialize_cdr(message, kind))
    found = quick_steps(cdr, 1, len(segment.values))
    assert isinstance(found, StepCommands) and found.first == segment.start_ns + segment.step_ns
    assert found.step == segment.step_ns
    np.testing.assert_array_equal(found.commands, segment.command_values)
    np.testing.assert_array_equal(decode(RawMessage(0, '', kind, cdr)).command_values, segment.command_values[:, 0])
    assert quick_steps(cdr, 1, len(segment.values) + 1) is None and quick_steps(cdr[:14], 1, 10) is None
